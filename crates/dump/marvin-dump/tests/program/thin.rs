//! The memory map without its records of excluded pages (`--exclude-vmemmap`).

use std::error::Error;
use std::path::Path;

use clap::Parser;
use marvin_dump::Arguments;
use synthetic_dumps::Synthetic;
use vmcore::{Dump, Io, Reader};

use crate::Outcome;
use crate::command_line::CommandResult;

/// Size of a page (bytes), and records in it.
const PAGE: usize = 4096;
const RECORDS: u64 = 64;

/// Runs a command line in a directory; returns all output.
fn seen(folder: &Path, line: &str) -> Result<String, Box<dyn Error>> {
    Ok(CommandResult::run(folder, line, &[])?.transcript())
}

/// A page of a dump.
#[derive(Debug, PartialEq)]
struct Page {
    number: u64,
    bytes: Vec<u8>,
}

/// Returns all pages of a dump.
fn pages(path: &Path) -> Result<Vec<Page>, Box<dyn Error>> {
    let dump = Dump::open(&[path.to_owned()])?;
    let mut reader = Reader::new(&dump, Io::Read);
    let mut pages = Vec::new();
    for number in 0..dump.pages() {
        if let Ok(bytes) = reader.bytes(number * PAGE as u64, PAGE) {
            let bytes = bytes.to_vec();
            pages.push(Page { number, bytes });
        }
    }
    Ok(pages)
}

/// The replacement of an excluded page's record.
fn cleared_record() -> [u8; 64] {
    let mut record = [0; 64];
    record[48..52].fill(0xff);
    record
}

/// Pages 0x400 to 0x7ff are anonymous, except one slab page; 0x800 to 0xbff are free blocks and
/// 0xc00 to 0xfff page cache.
const GROUPS: &str = "0x400+500 anon
    0x5f4 slab
    0x5f5+523 anon
    0x800+4 free 8
    0xc00+1024 cache";

fn check(scattered: bool) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let memory = vec![0..0x2f00, 0x2f80..0x3000];
    let synthetic = Synthetic {
        groups: GROUPS.to_owned(),
        memory,
        scattered,
        ..Synthetic::default()
    };
    let records = synthetic.write(&path("vmcore"))?;
    assert!(records > 0);
    seen(folder.path(), "-d 31 --message-level 0 @vmcore @whole")?;
    let transcript = seen(folder.path(), "-d 31 -e --threads 2 --verify @vmcore @thin")?;
    assert!(
        transcript.contains("verified") && transcript.ends_with("exit code 0\n"),
        "{transcript}"
    );
    let whole = pages(&path("whole"))?;
    let thin = pages(&path("thin"))?;
    let changed: Vec<_> = whole
        .iter()
        .zip(&thin)
        .filter(|(one, other)| one != other)
        .collect();
    assert_eq!(whole.len(), thin.len(), "no page is missing");
    // Sixteen pages of records of anonymous pages, except that of the slab page; as many of the
    // page cache. Of free pages, only record pages with the head of a block change, and only
    // behind the head, which is unused.
    assert_eq!(
        changed.len() as u64,
        1024 / RECORDS - 1 + 1024 / RECORDS + 1024 / RECORDS
    );
    for (before, after) in changed {
        assert_eq!(before.number, after.number);
        for (before, after) in before.bytes.chunks(64).zip(after.bytes.chunks(64)) {
            let free = before[48..52] == 0xf000_0000_u32.to_le_bytes();
            assert!(
                if free {
                    before == after
                } else {
                    after == cleared_record()
                },
                "{before:?} {after:?}"
            );
        }
    }
    // Excluded pages stay excluded, and no others are lost.
    seen(folder.path(), "-d 31 --message-level 0 @thin @again")?;
    assert!(pages(&path("again"))? == thin);
    seen(folder.path(), "-d 31 -e --message-level 0 @thin @twice")?;
    assert!(pages(&path("twice"))? == thin);
    Ok(())
}

#[test]
fn records_of_excluded_pages_are_cleared() -> Outcome {
    check(false)
}

#[test]
fn scattered_records_are_cleared() -> Outcome {
    check(true)
}

#[test]
fn without_a_filter_all_records_stay() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    Synthetic {
        groups: GROUPS.to_owned(),
        ..Synthetic::default()
    }
    .write(&path("vmcore"))?;
    seen(folder.path(), "-d 0 --message-level 0 @vmcore @whole")?;
    seen(folder.path(), "-d 0 -e --message-level 0 @vmcore @thin")?;
    assert!(pages(&path("whole"))? == pages(&path("thin"))?);
    let elf = Arguments::try_parse_from(["marvin-dump", "-e", "-E", "in", "out"]);
    assert!(elf.unwrap_err().to_string().contains("cannot be used with"));
    Ok(())
}
