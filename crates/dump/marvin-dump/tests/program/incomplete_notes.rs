//! Notes that lack lines: a dump is written in any case, and says what it still has.

use std::path::Path;

use synthetic_dumps::Synthetic;
use vmcore::Dump;

use crate::Outcome;
use crate::command_line::CommandResult;

/// Writes a dump whose note lacks lines, and whose kernel has no BTF.
fn write(folder: &Path, lacks: &[&str]) -> Outcome {
    Synthetic {
        groups: "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab".to_owned(),
        btf: false,
        lacks: lacks.iter().map(|line| (*line).to_owned()).collect(),
        ..Synthetic::default()
    }
    .write(&folder.join("vmcore"))?;
    Ok(())
}

#[test]
fn lacking_notes_still_leave_dumps() -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut all = String::new();
    for lacks in [
        &["NUMBER(PAGE_BUDDY_MAPCOUNT_VALUE)"][..],
        &["OFFSET(page._mapcount)", "NUMBER(PG_lru)"],
        &["SIZE(page)"],
        &["SYMBOL(init_top_pgt)"],
    ] {
        write(folder.path(), lacks)?;
        for line in [
            "-d 31 -f -e --threads 1 --compress none @vmcore @out",
            "info @out",
            "-d 1 -f -E --message-level 0 @out @copy",
        ] {
            all += &CommandResult::run(folder.path(), line, b"")?.all();
        }
        let marks = ["out", "copy"].map(|name| Dump::open(&[folder.path().join(name)]));
        let [dump, copy] = marks;
        let lines = dump?.not_excluded();
        assert!(!lines.is_empty());
        assert!(
            copy?.not_excluded().starts_with(&lines),
            "copies keep the mark"
        );
    }
    insta::assert_snapshot!(all);
    Ok(())
}

#[test]
fn dumps_without_notes_are_written_too() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    write(folder.path(), &[])?;
    // Another name, so that the note is not found, neither at its place nor in memory.
    let mut bytes = std::fs::read(&path)?;
    let name = b"VMCOREINFO";
    let at = bytes.windows(name.len()).position(|bytes| bytes == name);
    bytes[at.ok_or("no note")?] = b'W';
    std::fs::write(&path, bytes)?;
    let line = "-d 31 --threads 1 @vmcore @out";
    let transcript = CommandResult::run(folder.path(), line, b"")?.transcript();
    assert!(transcript.ends_with("exit code 0\n"), "{transcript}");
    assert!(
        transcript.contains("warning: no page is excluded by its kind: the dump has no VMCOREINFO"),
        "{transcript}"
    );
    let dump = Dump::open(&[folder.path().join("out")])?;
    assert_eq!(dump.level(), Some(1), "of 31 only zero pages were possible");
    assert!(!dump.incomplete());
    Ok(())
}
