//! Pages by use, as a user sees them.

use std::error::Error;
use std::os::unix::fs::FileExt;
use std::path::Path;

use synthetic_dumps::Synthetic;

use crate::command_line::CommandResult;

/// Runs a command line in a directory; returns all output.
fn seen(folder: &Path, line: &str) -> Result<String, Box<dyn Error>> {
    Ok(CommandResult::run(folder, line, &[])?.all())
}

fn folder() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let groups = "0x010+40 anon\n 0x080+3 cache 4\n 0x0c0+5 private\n 0x100 free 8\n 0x400+100 slab\n 0x600 poisoned
        0x700+2 offline";
    let memory = vec![0..0xf0, 0x100..0x2000];
    Synthetic {
        groups: groups.to_owned(),
        memory,
        ..Synthetic::default()
    }
    .write(&folder.path().join("vmcore"))?;
    Ok(folder)
}

#[test]
fn pages_are_counted_by_their_kinds() -> Result<(), Box<dyn Error>> {
    let folder = folder()?;
    let mut all = String::new();
    for line in [
        "usage @vmcore",
        "--mem-usage @vmcore",
        "usage --json @vmcore",
    ] {
        all += &seen(folder.path(), line)?;
    }
    seen(folder.path(), "-d 17 @vmcore @out")?;
    for line in [
        "usage @out",
        "usage @nothing",
        "--mem-usage",
        "--mem-usage @vmcore -i @vmcore",
    ] {
        all += &seen(folder.path(), line)?;
    }
    insta::assert_snapshot!(all);
    Ok(())
}

#[test]
fn virtual_ranges_of_kcore_are_skipped() -> Result<(), Box<dyn Error>> {
    let folder = folder()?;
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(folder.path().join("vmcore"))?;
    let mut table = [0; 8];
    file.read_exact_at(&mut table, 32)?;
    // The physical address of the first memory: /proc/kcore has ranges of virtual memory without
    // one.
    file.write_all_at(&u64::MAX.to_le_bytes(), u64::from_le_bytes(table) + 56 + 24)?;
    let transcript = seen(folder.path(), "usage @vmcore")?;
    assert!(
        transcript.contains("in all                               7936"),
        "{transcript}"
    );
    Ok(())
}
