//! A limit of the address space (`ulimit -v`): dumps of several shapes, and one of 2 TB.
#![expect(clippy::print_stdout, reason = "the matrix, for --nocapture")]

use std::fmt::Write;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use synthetic_dumps::Synthetic;
use synthetic_dumps::headers;
use synthetic_dumps::large::{Large, Mix};

use crate::Outcome;

/// Runs the program in a directory with a limit in KiB, as a separate process.
fn limited(folder: &Path, limit: &str, out: &str) -> io::Result<Output> {
    let words = format!("-d 31 --threads 2 --force vmcore {out}");
    limited_words(folder, limit, &words)
}

fn limited_words(folder: &Path, limit: &str, words: &str) -> io::Result<Output> {
    let program = env!("CARGO_BIN_EXE_marvin-dump");
    let line = format!("ulimit -v {limit} && exec {program} {words}");
    Command::new("sh")
        .args(["-c", &line])
        .current_dir(folder)
        .env_remove("RUST_BACKTRACE")
        .output()
}

/// Writes a dump of a machine with 2 TB.
fn folder_with_large_dump() -> io::Result<tempfile::TempDir> {
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

/// Steps of the limit, and its highest value, in KiB.
const STEP: u64 = 4 << 10;
const HIGHEST: u64 = 160 << 10;
/// What is done with each dump; the answer is on standard output.
const COMMANDS: [&str; 7] = [
    "-d 31 --threads 1 -F vmcore",
    "-E -d 31 --threads 1 -F vmcore",
    "info vmcore",
    "check vmcore",
    "usage vmcore",
    "estimate vmcore",
    "dmesg vmcore",
];
/// Commands that read each page, which takes too long for the largest dump.
const THOROUGH: [&str; 2] = ["check vmcore", "estimate vmcore"];

const LARGE: &str = "256 GiB";

/// Writes a dump of each shape into a directory of its name.
fn write_shapes(folder: &Path) -> Outcome {
    let path = |name: &str| -> io::Result<_> {
        std::fs::create_dir(folder.join(name))?;
        Ok(folder.join(name).join("vmcore"))
    };
    let groups = "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab";
    let plain = Synthetic {
        groups: groups.to_owned(),
        ..Synthetic::default()
    };
    plain.write(&path("elf")?)?;
    for (name, options) in [("kdump", "-c"), ("flattened", "-F -c")] {
        let words = format!("-d 1 --threads 1 --message-level 0 {options} ../elf/vmcore");
        let out = if name == "kdump" { " vmcore" } else { "" };
        path(name)?;
        let output = limited_words(&folder.join(name), "unlimited", &(words + out))?;
        assert!(output.status.success(), "{output:?}");
        if name == "flattened" {
            std::fs::write(folder.join(name).join("vmcore"), output.stdout)?;
        }
    }
    headers::write(&path("headers, sorted")?, 70_001, 1)?;
    headers::write(&path("headers, unsorted")?, 70_001, 7777)?;
    // Notes of very many processors.
    let mut lines = plain.clone();
    lines.extra_note = (0..100_000)
        .map(|n| format!("NUMBER(n{n})={n}\n"))
        .collect();
    lines.write(&path("notes")?)?;
    let large = Large {
        memory: 256 << 30,
        distinct: 8,
        mix: Mix::Free,
    };
    large.write(&path(LARGE)?)?;
    Ok(())
}

/// Returns the lowest limit at which the program starts at all, in KiB.
fn lowest_limit(folder: &Path) -> io::Result<u64> {
    for limit in (STEP..HIGHEST).step_by(1 << 10) {
        let output = limited_words(folder, &limit.to_string(), "--version")?;
        if output.status.success() {
            return Ok(limit);
        }
    }
    Ok(HIGHEST)
}

/// Lets a command work with more and more memory until it succeeds; returns that limit in KiB.
/// Until then each failure is one error, and no signal.
fn smallest_limit(folder: &Path, words: &str, lowest: u64) -> io::Result<Option<u64>> {
    let free = limited_words(folder, "unlimited", words)?;
    for limit in (lowest..HIGHEST).step_by(STEP as usize) {
        let output = limited_words(folder, &limit.to_string(), words)?;
        if output.status.code() == free.status.code() && output.stdout == free.stdout {
            return Ok(Some(limit));
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let errors = text.lines().filter(|line| line.starts_with("error: "));
        assert!(
            matches!(output.status.code(), Some(2 | 5)) && errors.count() == 1,
            "{words} in {limit} KiB: signal {:?}, {text}",
            output.status.signal()
        );
    }
    Ok(None)
}

#[test]
fn each_shape_has_a_smallest_limit() -> Outcome {
    let folder = tempfile::tempdir()?;
    write_shapes(folder.path())?;
    let lowest = lowest_limit(folder.path())?;
    println!(
        "`--version` needs {} MiB; each command in MiB:",
        lowest >> 10
    );
    let mut shapes: Vec<_> = std::fs::read_dir(folder.path())?.collect::<Result<_, _>>()?;
    shapes.sort_by_key(std::fs::DirEntry::file_name);
    for shape in shapes {
        let name = shape.file_name().display().to_string();
        let mut row = format!("{name:18}");
        let is_large = name == LARGE;
        for words in COMMANDS {
            if is_large && THOROUGH.contains(&words) {
                continue;
            }
            let limit = smallest_limit(&shape.path(), words, lowest)?;
            let limit = limit.ok_or(format!("{name}: {words} needs more than all"))?;
            let command = words.split(' ').take(2).collect::<Vec<_>>().join(" ");
            let command = command.trim_end_matches(" vmcore");
            write!(row, "  {command}: {}", limit >> 10)?;
        }
        println!("{row}");
    }
    Ok(())
}

#[test]
fn million_headers_need_little_address_space() -> Outcome {
    let folder = tempfile::tempdir()?;
    // Of which no order and no list of ranges fits: 40 and 16 bytes each, beside what the program
    // needs for itself.
    for step in [1, 777_777] {
        headers::write(&folder.path().join("vmcore"), 1_000_000, step)?;
        let output = limited_words(folder.path(), "49152", "info vmcore")?;
        let text = String::from_utf8(output.stdout)?;
        assert!(text.contains("1000000 pages, 3.8 GiB"), "{text}");
        assert_eq!(output.status.code(), Some(0));
    }
    Ok(())
}
