//! Called as makedumpfile: exit codes and defaults are those that scripts expect.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use synthetic_dumps::Synthetic;
use vmcore::{Codec, Dump};

use crate::Outcome;

/// Runs a link of that name in a directory and returns the exit code.
fn code(folder: &Path, name: &str, line: &str) -> Result<Option<i32>, Box<dyn std::error::Error>> {
    let link = folder.join(name);
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_marvin-dump"), &link)?;
    }
    let words = line.split(' ').filter(|word| !word.is_empty());
    Ok(Command::new(link)
        .args(words)
        .current_dir(folder)
        .output()?
        .status
        .code())
}

/// Returns the compression of a file.
fn codec(folder: &Path, name: &str) -> Result<Option<Codec>, Box<dyn std::error::Error>> {
    Ok(Dump::open(&[folder.join(name)])?.codec())
}

#[test]
fn scripts_get_the_exit_codes_of_makedumpfile() -> Outcome {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    Synthetic::default().write(&folder.join("vmcore"))?;
    std::fs::write(folder.join("there"), "precious")?;
    for (line, theirs, ours) in [
        ("-l -d 31 vmcore out", 0, 0),
        ("-l -d 31 vmcore there", 1, 2),
        ("-l -d 0 -L 450000 vmcore small", 1, 3),
        ("-l -d 0 -L 10 vmcore small", 1, 2),
        ("-d 32 vmcore wrong", 1, 2),
        ("--no-such-option", 1, 2),
        ("-d 31 nothing out", 1, 2),
        (
            "--check-params -l -d 31 --message-level 1 /proc/vmcore vmcore",
            0,
            0,
        ),
        ("-v", 0, 0),
    ] {
        assert_eq!(
            code(folder, "makedumpfile", line)?,
            Some(theirs),
            "makedumpfile {line}"
        );
        for name in ["out", "small"] {
            drop(std::fs::remove_file(folder.join(name)));
        }
        assert_eq!(
            code(folder, "marvin-dump", line)?,
            Some(ours),
            "marvin-dump {line}"
        );
        for name in ["out", "small"] {
            drop(std::fs::remove_file(folder.join(name)));
        }
    }
    assert_eq!(std::fs::read_to_string(folder.join("there"))?, "precious");
    Ok(())
}

#[test]
fn pages_are_raw_unless_a_codec_is_named() -> Outcome {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    Synthetic::default().write(&folder.join("vmcore"))?;
    assert_eq!(code(folder, "makedumpfile", "-d 31 vmcore raw")?, Some(0));
    assert_eq!(
        code(folder, "makedumpfile", "-l -d 31 vmcore lzo")?,
        Some(0)
    );
    assert_eq!(code(folder, "marvin-dump", "-d 31 vmcore ours")?, Some(0));
    assert_eq!(
        [
            codec(folder, "raw")?,
            codec(folder, "lzo")?,
            codec(folder, "ours")?
        ],
        [Some(Codec::None), Some(Codec::Lzo), Some(Codec::Zstd)]
    );
    Ok(())
}

#[test]
fn joined_files_keep_their_codec() -> Outcome {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    Synthetic::default().write(&folder.join("vmcore"))?;
    assert_eq!(
        code(folder, "makedumpfile", "--split -l -d 31 vmcore one two")?,
        Some(0)
    );
    assert_eq!(
        code(folder, "makedumpfile", "--reassemble one two joined")?,
        Some(0)
    );
    assert_eq!(
        code(folder, "marvin-dump", "--reassemble -z one two other")?,
        Some(0)
    );
    assert_eq!(
        [codec(folder, "joined")?, codec(folder, "other")?],
        [Some(Codec::Lzo), Some(Codec::Zstd)]
    );
    Ok(())
}

#[test]
fn calls_of_kdump_utils_succeed() -> Outcome {
    // Those of mkdumprd, dracut/99kdumpbase/kdump.sh and kdumpctl of Fedora's kdump-utils
    // (63f248c).
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    Synthetic::default().write(&folder.join("vmcore"))?;
    let options = "-l --message-level 7 -d 31";
    assert_eq!(
        code(
            folder,
            "makedumpfile",
            &format!("--check-params {options} vmcore dumpfile")
        )?,
        Some(0)
    );
    assert_eq!(
        code(
            folder,
            "makedumpfile",
            &format!("--check-params -F {options} vmcore")
        )?,
        Some(0)
    );
    assert_eq!(
        code(
            folder,
            "makedumpfile",
            &format!("{options} --num-threads=2 vmcore saved")
        )?,
        Some(0)
    );
    // A raw disk: the stream is copied there, and read back after the restart, with what the disk
    // had before behind it.
    let script = format!(
        "./makedumpfile {options} -F vmcore | dd of=disk bs=512 && printf 'old bytes' >> disk && \
        ./makedumpfile -R restored < disk"
    );
    assert!(
        Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder)
            .output()?
            .status
            .success()
    );
    assert_eq!(
        [codec(folder, "saved")?, codec(folder, "restored")?],
        [Some(Codec::Lzo); 2]
    );
    Ok(())
}
