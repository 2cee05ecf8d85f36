//! A limit of the address space (`ulimit -v`), and a dump of 2 TB.

use std::path::Path;
use std::process::{Command, Output};

use synthetic_dumps::large::{Large, Mix};

use crate::Outcome;

/// Runs the program in a directory with a limit in KiB, as a separate process.
fn limited(folder: &Path, limit: &str, out: &str) -> std::io::Result<Output> {
    let program = env!("CARGO_BIN_EXE_marvin-dump");
    let line =
        format!("ulimit -v {limit} && exec {program} -d 31 --threads 2 --force vmcore {out}");
    Command::new("sh")
        .args(["-c", &line])
        .current_dir(folder)
        .env_remove("RUST_BACKTRACE")
        .output()
}

/// Writes a dump of a machine with 2 TB.
fn folder_with_large_dump() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    Large {
        memory: 2 << 40,
        distinct: 512,
        mix: Mix::Free,
    }
    .write(&folder.path().join("vmcore"))?;
    Ok(folder)
}

#[test]
fn limited_address_space_yields_an_equal_dump() -> Outcome {
    let folder = folder_with_large_dump()?;
    let free = limited(folder.path(), "unlimited", "free")?;
    assert!(free.status.success(), "{free:?}");
    let equal = std::fs::read(folder.path().join("free"))?;
    for limit in ["65536", "49152"] {
        let output = limited(folder.path(), limit, "out")?;
        assert!(output.status.success(), "{limit}: {output:?}");
        let written = std::fs::read(folder.path().join("out"))?;
        assert!(written == equal, "{limit}");
    }
    Ok(())
}

#[test]
fn too_small_address_space_is_one_error() -> Outcome {
    let folder = folder_with_large_dump()?;
    let output = limited(folder.path(), "24576", "out")?;
    let text = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.starts_with("error: the limit of the address space (ulimit -v) is ")
            && text.lines().count() == 1,
        "{text}"
    );
    assert!(!folder.path().join("out").exists());
    Ok(())
}
