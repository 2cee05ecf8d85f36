//! How far a build is: the objects that make's log names, and how many a whole build of the same
//! kernel config had.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::KernelError;

/// Time between two looks at the log.
const LOOK: Duration = Duration::from_millis(200);
/// Time between two reports.
const REPORT: Duration = Duration::from_secs(1);
/// What make prints before it makes an object (scripts/Makefile.build: `quiet_cmd_cc_o_c`,
/// `quiet_cmd_as_o_S`, `quiet_cmd_rustc_o_rs`).
const MAKES_OBJECT: [&str; 3] = ["CC", "AS", "RUSTC"];

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildProgress {
    /// Objects so far.
    pub objects: u64,
    /// Objects of a whole build of this kernel config, if there was one.
    pub whole: Option<u64>,
    /// Whether objects of an earlier build are reused, so that fewer are made.
    pub is_partial: bool,
    pub seconds: u64,
}

/// The objects of whole builds, by kernel config, in the workshop.
#[derive(Debug)]
pub(crate) struct ObjectCounts {
    file: PathBuf,
}

impl ObjectCounts {
    const FOLDER: &str = "object-counts";

    /// `key` identifies the kernel config.
    pub(crate) fn of_config(workshop: &Path, key: &str) -> Self {
        Self {
            file: workshop.join(Self::FOLDER).join(key),
        }
    }

    pub(crate) fn read(&self) -> Option<u64> {
        fs::read_to_string(&self.file).ok()?.trim().parse().ok()
    }

    /// Keeps the number of a build, unless a larger one is known: a later build makes fewer.
    pub(crate) fn keep(&self, objects: u64) -> Result<(), KernelError> {
        if objects == 0 || self.read().is_some_and(|known| known >= objects) {
            return Ok(());
        }
        let folder = self.file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&self.file, format!("{objects}\n")))
            .map_err(KernelError::io(&self.file))
    }
}

/// Counts the objects in a log that grows.
#[derive(Debug)]
struct ObjectCounter {
    log: PathBuf,
    /// Bytes that were read, up to the end of a line.
    read: u64,
    objects: u64,
}

impl ObjectCounter {
    fn new(log: &Path) -> Self {
        Self {
            log: log.to_owned(),
            read: 0,
            objects: 0,
        }
    }

    /// Counts the lines since the last time; an unreadable log has none.
    fn update(&mut self) -> u64 {
        let mut text = Vec::new();
        let added = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut text)
        });
        let end = text.iter().rposition(|byte| *byte == b'\n');
        if let (Ok(_), Some(end)) = (added, end) {
            let lines = String::from_utf8_lossy(&text[..=end]);
            self.objects += lines.lines().filter(|line| is_object(line)).count() as u64;
            self.read += end as u64 + 1;
        }
        self.objects
    }
}

/// Returns whether a line of make names an object of the kernel: `  CC [M]  fs/fuse/dev.o`.
fn is_object(line: &str) -> bool {
    let mut words = line.split_whitespace();
    line.starts_with("  ")
        && words
            .next()
            .is_some_and(|word| MAKES_OBJECT.contains(&word))
        && words.last().is_some_and(|file| file.ends_with(".o"))
}

/// Runs a build in a thread of its own and reports the objects in its log about once a second.
/// Returns the build's result and its number of objects.
pub(crate) fn run_with_reports<T: Send>(
    log: &Path,
    build: impl FnOnce() -> T + Send,
    report: &mut dyn FnMut(u64, Duration),
) -> (T, u64) {
    // Lines of the last run are none of this one.
    drop(fs::remove_file(log));
    let mut counter = ObjectCounter::new(log);
    // The time is that of the sleeps: nothing here reads the clock.
    let mut elapsed = Duration::ZERO;
    let mut reported = Duration::ZERO;
    thread::scope(|scope| {
        let building = scope.spawn(build);
        while !building.is_finished() {
            thread::sleep(LOOK);
            elapsed += LOOK;
            if elapsed - reported >= REPORT {
                reported = elapsed;
                report(counter.update(), elapsed);
            }
        }
        let result = building
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (result, counter.update())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{ObjectCounter, ObjectCounts, is_object, run_with_reports};

    #[test]
    fn objects_are_recognised() {
        for object in [
            "  CC      mm/memory.o",
            "  CC [M]  fs/fuse/dev.o",
            "  AS      arch/x86/lib/getuser.o",
        ] {
            assert!(is_object(object), "{object}");
        }
        for other in [
            "  HOSTCC  scripts/kallsyms.o",
            "  AR      mm/built-in.a",
            "  LD      vmlinux.o",
            "  CC      arch/x86/kernel/asm-offsets.s",
            "mm/memory.c:7: error: CC x.o",
        ] {
            assert!(!is_object(other), "{other}");
        }
    }

    #[test]
    fn growing_log_is_counted_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut counter = ObjectCounter::new(&log);
        assert_eq!(counter.update(), 0);
        fs::write(&log, "  CC      a.o\n  CC      b").unwrap();
        assert_eq!(counter.update(), 1);
        fs::write(&log, "  CC      a.o\n  CC      b.o\n  LD      c.o\n").unwrap();
        assert_eq!([counter.update(), counter.update()], [2, 2]);
    }

    #[test]
    fn whole_builds_are_remembered_by_config() {
        let workshop = tempfile::tempdir().unwrap();
        let counts = ObjectCounts::of_config(workshop.path(), "abc");
        assert_eq!(counts.read(), None);
        for objects in [0, 1743, 12] {
            counts.keep(objects).unwrap();
        }
        assert_eq!(counts.read(), Some(1743));
    }

    #[test]
    fn build_is_reported_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "  CC      old.o\n").unwrap();
        let mut reports = Vec::new();
        let build = || {
            fs::write(&log, "  CC      a.o\n").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1500));
            7
        };
        let ended = run_with_reports(&log, build, &mut |objects, _| reports.push(objects));
        assert_eq!((ended, reports), ((7, 1), vec![1]));
    }
}
