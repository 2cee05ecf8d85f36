//! Dumps: the memory of a guest whose kernel died. The machine writes it, `vmcore` filters it.

use std::path::Path;

use machine::DeadMemory;
use model::{FailureReason, Outcome};
use vmcore::{
    Codec, Dump, DumpError, FileSink, Filter, Io, Level, Overwrite, Plan, Reader, Style, Work,
};

/// Size limit of a dump (bytes); a truncated dump says so.
const BYTES_MAX: u64 = 64 << 20;
/// Memory for filtering, in bytes.
const MEMORY: u64 = 64 << 20;

/// Returns the name of the dump artifact of a workload or of the boot.
pub(crate) fn artifact(of: &str) -> String {
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

/// The memory of a kernel that died.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dumped {
    pub(crate) bytes: Vec<u8>,
    /// Why it has all pages; `None` if it is filtered.
    pub(crate) unfiltered: Option<String>,
}

/// Returns the memory of a guest without free pages, user pages and the page cache (level 31), or
/// all of it but zero pages if the kernel does not describe its memory, as one without VMCOREINFO;
/// the error says why there is none.
pub(crate) fn dump(memory: &DeadMemory) -> Result<Dumped, String> {
    let filtered = memory.file.with_file_name("filtered");
    let unfiltered = match write(&memory.file, &filtered, Level::MAX) {
        Ok(()) => None,
        Err(
            error @ (DumpError::NoNote | DumpError::NoteLacks(_) | DumpError::Structure { .. }),
        ) => {
            drop(std::fs::remove_file(&filtered));
            write(&memory.file, &filtered, Level::ZERO_PAGES).map_err(|error| error.to_string())?;
            Some(in_short(&error).to_owned())
        }
        Err(error) => return Err(error.to_string()),
    };
    let bytes = std::fs::read(&filtered).map_err(|error| error.to_string())?;
    Ok(Dumped { bytes, unfiltered })
}

/// Returns why a dump cannot be filtered: the advice of `marvin dump` is for those who call it.
fn in_short(error: &DumpError) -> &'static str {
    match error {
        DumpError::NoNote => {
            "the kernel has no VMCOREINFO (CONFIG_VMCORE_INFO, CONFIG_CRASH_CORE before 6.9)"
        }
        DumpError::NoteLacks(_) => "its VMCOREINFO lacks lines that describe struct page",
        _ => "its memory map cannot be read",
    }
}

fn write(whole: &Path, filtered: &Path, level: Level) -> Result<(), DumpError> {
    // The machine has no VMCOREINFO device, but memory holds a copy.
    let dump = Dump::open(&[whole.to_owned()])?.with_found_info();
    let mut reader = Reader::new(&dump, Io::Read);
    let filter = Filter::for_level(&mut reader, level)?;
    let work = Work {
        threads: 1,
        io: Io::Read,
        memory: MEMORY,
        folder: None,
    };
    let plan = Plan::make(&dump, filter.as_ref(), &work)?;
    let names = vmcore::names(&mut reader);
    let limit = Some(BYTES_MAX);
    let style = Style {
        codec: Codec::Zstd,
        effort: None,
        level,
        part: None,
        limit,
        names,
    };
    let sink = FileSink::create(filtered, Overwrite::No)?;
    vmcore::write_kdump(&plan, &style, &work, &sink).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{Level, died, write};
    use model::{FailureReason, Outcome, Stage, SubjectFailure};
    use vmcore::{Dump, DumpError};

    #[test]
    fn only_dead_kernels_are_dumped() {
        let failed = |reason| {
            died(&Outcome::Failed(SubjectFailure {
                stage: Stage::Workload,
                reason,
                console_tail: String::new(),
            }))
        };
        assert!(failed(FailureReason::Panicked) && failed(FailureReason::Oopsed));
        assert!(
            !failed(FailureReason::Hung)
                && !failed(FailureReason::OutOfMemory)
                && !died(&Outcome::Completed)
        );
    }

    #[test]
    fn kernel_without_vmcoreinfo_is_dumped_whole() {
        let folder = tempfile::tempdir().unwrap();
        let [whole, filtered] = ["whole", "filtered"].map(|name| folder.path().join(name));
        synthetic_dumps::Synthetic {
            groups: "0x10+8 anon".to_owned(),
            ..Default::default()
        }
        .write(&whole)
        .unwrap();
        let mut bytes = std::fs::read(&whole).unwrap();
        let place = bytes
            .windows(10)
            .position(|name| name == b"VMCOREINFO")
            .unwrap();
        bytes[place..place + 10].copy_from_slice(b"SOMETHING!");
        std::fs::write(&whole, bytes).unwrap();
        assert!(matches!(
            write(&whole, &filtered, Level::MAX),
            Err(DumpError::NoNote)
        ));
        drop(std::fs::remove_file(&filtered));
        write(&whole, &filtered, Level::ZERO_PAGES).unwrap();
        let dump = Dump::open(&[filtered]).unwrap();
        assert!(
            !dump.incomplete() && dump.pages() == 0x2000,
            "{}",
            dump.pages()
        );
    }
}
