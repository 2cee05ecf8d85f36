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
fn estimates_are_near_the_written_sizes() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    let memory = 0..0x3000;
    Synthetic {
        memory: vec![memory.clone()],
        own: 0x2800,
        ..Synthetic::default()
    }
    .write(&path)?;
    // A third of the pages are equal to others, in runs; the rest are of unequal size when packed.
    let file = std::fs::File::options().write(true).open(&path)?;
    let end = file.metadata()?.len();
    let mut state = 1_u64;
    for page in (0x200_u64..0x2400).filter(|page| page % 5 != 0) {
        let copied = if page % 3 == 0 { page / 90 } else { page };
        let mut content = vec![0; 4096];
        for at in (0..(copied * 7 % 3000) as usize).step_by(8) {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(copied);
            let word = if page % 3 == 0 {
                copied.rotate_left(at as u32)
            } else {
                state
            };
            content[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        file.write_all_at(&content, end - (memory.end - page) * 4096)?;
    }
    let answer = CommandResult::run(folder.path(), "estimate --json @vmcore", b"")?.answer;
    let answer: serde_json::Value = serde_json::from_slice(&answer)?;
    for row in answer["rows"].as_array().ok_or("no rows")? {
        for (name, words) in [
            ("zstd_bytes", "-z"),
            ("zlib_bytes", "-c"),
            ("snappy_bytes", "-p"),
            ("none_bytes", "--compress none"),
        ] {
            let line = format!("-d {} {words} -f @vmcore @out", row["level"]);
            seen(folder.path(), &line)?;
            let written = std::fs::metadata(folder.path().join("out"))?.len() as f64;
            let ratio = row[name].as_f64().ok_or("no size")? / written;
            assert!(
                (0.9..1.1).contains(&ratio),
                "{line}: {ratio:.3} of {written}"
            );
        }
    }
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
