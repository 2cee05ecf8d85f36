//! The kernel's log in a dump, whole and since it was cleared, beside makedumpfile's.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crash_guests::elf::Elf;
use crash_guests::pages;

use crate::readers::Program;

/// Record from which on the log counts as not cleared.
const FIRST: u64 = 100;

/// Writes what a guest would have after `dmesg -C`, and compares the logs.
pub(crate) fn story(vmcore: &Path, folder: &Path) {
    let elf = Elf::open(vmcore);
    let value: u64 = elf.vmcoreinfo["OFFSET(latched_seq.val)"].parse().unwrap();
    let at = elf.place(pages::image_to_physical(
        &elf,
        elf.symbol("clear_seq") + value,
    ));
    let file = std::fs::File::options().write(true).open(vmcore).unwrap();
    file.write_all_at(&[FIRST.to_le_bytes(), FIRST.to_le_bytes()].concat(), at)
        .unwrap();
    let (Some(ours), Some(theirs)) = (Program::marvin_dump(), Program::makedumpfile()) else {
        return;
    };
    let log = |program: &Program, more: &[&str], name: &str| {
        let out = folder.join(name);
        let words = [&["--dump-dmesg", "-f", "--message-level", "4"], more].concat();
        let ended = Command::new(&program.path)
            .args(words)
            .args([vmcore, &out])
            .output()
            .unwrap();
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stderr)
        );
        std::fs::read_to_string(out).unwrap()
    };
    for more in [&[][..], &["--partial-dmesg"]] {
        let own = log(&ours, more, "own");
        let other = log(&theirs, more, "other");
        // Old ones have no column for the caller.
        let text = |line: &str| line.rsplit("] ").next().unwrap_or_default().to_owned();
        let [own_lines, others] =
            [&own, &other].map(|log| log.lines().map(text).collect::<Vec<_>>());
        assert_eq!(own_lines, others, "{more:?}");
        println!(
            "{} lines of the log {more:?}, as makedumpfile has them",
            own_lines.len()
        );
    }
    let all = log(&ours, &[], "all");
    let part = log(&ours, &["--partial-dmesg"], "part");
    assert!(
        all.ends_with(&part) && part.len() < all.len() && !part.is_empty(),
        "the end of the log"
    );
}
