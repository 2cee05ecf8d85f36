//! The tables, equal results with windows of any size, and system calls counted as the system
//! counts them.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use clap::Parser;
use serde_json::Value;
use synthetic_dumps::{KERNELS, Synthetic};
use vmcore::{
    Codec, Dump, FileSink, Filter, Io, Level, Overwrite, Plan, Reader, Style, Work, write_kdump,
};

use super::{Arguments, answer};

type Outcome = Result<(), Box<dyn Error>>;

/// A dump of many sections with every kind of block, and its directory.
fn folder() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let groups = "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab\n 0x600 huge 9\n 0x2800+20 free 3";
    for (name, scattered) in [("vmcore", false), ("scattered", true)] {
        let groups = groups.to_owned();
        let memory = vec![0..0x9f, 0x100..0x4000];
        Synthetic {
            groups,
            memory,
            scattered,
            kernel: KERNELS[5],
            ..Synthetic::default()
        }
        .write(&folder.path().join(name))?;
    }
    Ok(folder)
}

/// Answers a command line, where `@` stands for the directory.
fn answer_line(folder: &Path, line: &str) -> Result<String, String> {
    let folder = format!("{}/", folder.display());
    let line = format!("dump_access {line}").replace('@', &folder);
    let arguments =
        Arguments::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?;
    answer(&arguments).map_err(|error| error.to_string().replace(&folder, ""))
}

#[test]
fn windows_of_any_size_find_the_same() -> Outcome {
    let folder = folder()?;
    for name in ["vmcore", "scattered"] {
        let dump = Dump::open(&[folder.path().join(name)])?;
        let filter = Filter::new(&mut Reader::new(&dump, Io::Read), Level::MAX)?;
        let plan = |io| {
            Plan::make(
                &dump,
                Some(&filter),
                &Work {
                    threads: 1,
                    io,
                    memory: 1 << 20,
                    folder: None,
                },
            )
        };
        let expected = plan(Io::Read)?;
        for bits in 12..=25 {
            let found = plan(Io::Windows(1 << bits))?;
            assert_eq!(found.counts(), expected.counts(), "{name}, {bits}");
            assert_eq!(
                found.kept_pages()?,
                expected.kept_pages()?,
                "{name}, {bits}"
            );
        }
    }
    Ok(())
}

#[test]
fn tables_are_readable_and_drawn() -> Outcome {
    let folder = folder()?;
    let mut all = String::new();
    for which in ["map-size", "cycles", "calls"] {
        let line = format!("{which} @vmcore --times 1 --svg @{which}.svg");
        let text = answer_line(folder.path(), &line)?;
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let svg = std::fs::read_to_string(folder.path().join(format!("{which}.svg")))?;
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        for mark in [
            "font-weight=\"bold\"",
            "rotate(-90",
            "fill=\"#fff\"",
            " [s]",
        ] {
            assert!(svg.contains(mark), "{mark}: {svg}");
        }
        // Measurements vary.
        all.extend(text.split_inclusive('\n').take(5));
    }
    insta::assert_snapshot!(all);
    let error = answer_line(folder.path(), "calls @vmcore --svg @vmcore").unwrap_err();
    assert!(error.contains("File exists"), "{error}");
    Dump::open(&[folder.path().join("vmcore")])?;
    Ok(())
}

#[test]
fn larger_windows_take_fewer_calls() -> Outcome {
    let folder = folder()?;
    let text = answer_line(folder.path(), "map-size @vmcore --times 1 --json")?;
    let document: Value = serde_json::from_str(&text)?;
    let rows = document["rows"].as_array().ok_or("no rows")?;
    let calls = |row: &Value, kind: &str| row["in_memory"]["calls"][kind].as_u64();
    let maps: Vec<Option<u64>> = rows
        .iter()
        .filter(|row| row["io"] == "mmap")
        .map(|row| calls(row, "mmap"))
        .collect();
    assert_eq!(maps.len(), 14);
    assert!(
        maps.is_sorted_by(|one, next| one >= next) && maps[0] > maps[13],
        "{maps:?}"
    );
    let read = rows
        .iter()
        .find(|row| row["io"] == "read")
        .ok_or("no row")?;
    assert_eq!(calls(read, "mmap"), Some(0));
    assert!(calls(read, "read") > Some(0));
    Ok(())
}

#[test]
fn unmappable_dump_is_reported() -> Outcome {
    let folder = folder()?;
    let dump = Dump::open(&[folder.path().join("vmcore")])?;
    let work = Work {
        threads: 1,
        io: Io::Read,
        memory: 1 << 20,
        folder: None,
    };
    let plan = Plan::make(&dump, None, &work)?;
    let style = Style {
        codec: Codec::None,
        effort: None,
        level: Level::MAX,
        part: None,
        limit: None,
        names: ["Linux", "node", "6.12.0", "#1", "x86_64", ""].map(str::to_owned),
    };
    let sink = FileSink::replacing(&folder.path().join("small"), Overwrite::No)?;
    write_kdump(&plan, &style, &work, &sink)?;
    drop(sink);
    let errors = ["map-size @small", "calls -d 1,2,4,8 @vmcore"]
        .map(|line| answer_line(folder.path(), line).unwrap_err());
    insta::assert_snapshot!(errors.join("\n"), @r"
    small cannot be mapped, as it is kdump-compressed or flattened: name an ELF vmcore
    cannot compare more than 3 levels
    ");
    answer_line(folder.path(), "cycles @small --times 1")?;
    Ok(())
}

/// The variable with the dump of the process below.
const COUNTED: &str = "DUMP_ACCESS_COUNTED";

#[test]
fn process_that_counts_its_calls() -> Outcome {
    // The next test starts this one again, under strace.
    if let Some(folder) = std::env::var_os(COUNTED) {
        let folder = Path::new(&folder);
        let text = answer_line(folder, "calls @vmcore --times 2 --json")?;
        std::fs::write(folder.join("counted"), text)?;
    }
    Ok(())
}

/// Counts strace's calls on a file: mapped, unmapped, read.
fn traced(log: &str, path: &str) -> [u64; 3] {
    let mut counts = [0; 3];
    let mut mapped = BTreeSet::new();
    for line in log.lines() {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let of_dump = call.contains(&format!("<{path}>"));
        if call.starts_with("mmap(") && of_dump {
            counts[0] += 1;
            mapped.insert(
                call.rsplit("= ")
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            );
        } else if let Some(rest) = call.strip_prefix("munmap(") {
            let address = rest.split(',').next().unwrap_or_default();
            counts[1] += u64::from(mapped.remove(address));
        } else if call.starts_with("pread64(") && of_dump {
            counts[2] += 1;
        }
    }
    counts
}

#[test]
fn calls_are_counted_as_the_system_counts_them() -> Outcome {
    let folder = folder()?;
    let dump = folder.path().join("vmcore");
    let log = folder.path().join("log");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-y", "-e", "trace=mmap,munmap,pread64", "-o"])
        .arg(&log)
        .arg(std::env::current_exe()?)
        .args(["--exact", "tests::process_that_counts_its_calls"])
        .env(COUNTED, folder.path());
    match command.output() {
        Ok(output) if output.status.success() => {}
        other => {
            let why = other.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
            writeln!(
                std::io::stderr(),
                "calls are not compared with strace's, which cannot be run: {why:?}"
            )?;
            return Ok(());
        }
    }
    let counted = std::fs::read_to_string(folder.path().join("counted"))?;
    let document: Value = serde_json::from_str(&counted)?;
    let own = ["mmap", "munmap", "read"]
        .map(|kind| document["all_calls"][kind].as_u64().unwrap_or_default());
    let path = dump.canonicalize()?.display().to_string();
    assert_eq!(traced(&std::fs::read_to_string(&log)?, &path), own);
    assert!(own[0] > 0 && own[2] > 0, "{own:?}");
    Ok(())
}
