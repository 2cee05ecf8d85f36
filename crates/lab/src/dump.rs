//! Dumps: the memory of a guest whose kernel died. The machine writes it, `vmcore` filters it.

use machine::DeadMemory;
use model::{FailureReason, Outcome};
use vmcore::{Codec, Dump, DumpError, FileSink, Filter, Io, Level, Overwrite, Plan, Reader, Style, Work};

/// Size limit of a dump (bytes); a truncated dump says so.
const BYTES_MAX: u64 = 64 << 20;
/// Memory for filtering, in bytes.
const MEMORY: u64 = 64 << 20;

/// Returns the name of the dump artifact of a workload or of the boot.
pub(crate) fn artefact(of: &str) -> String {
    format!("{of}.vmcore")
}

/// Returns whether an artifact of this name is a dump.
#[must_use]
pub fn is_dump(name: &str) -> bool {
    name.ends_with(".vmcore")
}

/// Returns whether the kernel died, so that its memory may show why.
pub(crate) fn died(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(failure) if is_death(&failure.reason))
}

/// Returns whether a failure is the death of the kernel.
pub(crate) fn is_death(reason: &FailureReason) -> bool {
    matches!(reason, FailureReason::Panicked | FailureReason::Oopsed)
}

/// Returns the memory of a guest without free pages, user pages and the page cache (level 31), as a kdump-compressed
/// file; the error says why there is none.
pub(crate) fn dump(memory: &DeadMemory) -> Result<Vec<u8>, String> {
    let filtered = memory.file.with_file_name("filtered");
    filter(&memory.file, &filtered).map_err(|error| error.to_string())?;
    std::fs::read(&filtered).map_err(|error| error.to_string())
}

fn filter(whole: &std::path::Path, filtered: &std::path::Path) -> Result<(), DumpError> {
    // The machine has no VMCOREINFO device, but memory holds a copy.
    let dump = Dump::open(&[whole.to_owned()])?.with_found_info();
    let mut reader = Reader::new(&dump, Io::Read);
    let filter = Filter::new(&mut reader, Level::MAX)?;
    let work = Work { threads: 1, io: Io::Read, memory: MEMORY, folder: None };
    let plan = Plan::make(&dump, Some(&filter), &work)?;
    let names = vmcore::names(&mut reader);
    let limit = Some(BYTES_MAX);
    let style = Style { codec: Codec::Zstd, effort: None, level: Level::MAX, part: None, limit, names };
    let sink = FileSink::create(filtered, Overwrite::No)?;
    vmcore::write_kdump(&plan, &style, &work, &sink).map(drop)
}

#[cfg(test)]
mod tests {
    use super::died;
    use model::{FailureReason, Outcome, Stage, SubjectFailure};

    #[test]
    fn only_dead_kernels_are_dumped() {
        let failed = |reason| {
            died(&Outcome::Failed(SubjectFailure { stage: Stage::Workload, reason, console_tail: String::new() }))
        };
        assert!(failed(FailureReason::Panicked) && failed(FailureReason::Oopsed));
        assert!(!failed(FailureReason::Hung) && !failed(FailureReason::OutOfMemory) && !died(&Outcome::Completed));
    }
}
