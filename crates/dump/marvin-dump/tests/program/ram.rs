//! A guest's memory in a file, as QEMU keeps it: no header, and the program has to find its guest
//! addresses.

use std::error::Error;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use synthetic_dumps::Synthetic;
use vmcore::memory_file::Part;
use vmcore::{Dump, Filter, Format, Io, Level, Plan, Reader, Work, memory_file};

use crate::Outcome;
use crate::command_line::CommandResult;

const PAGE: u64 = 4096;
/// The first page above 4 GiB.
const HIGH: u64 = 1 << 20;
/// The page with the kernel's note.
const NOTE_PAGE: u64 = 0x900;

/// Writes the memory of a machine as one file, with the kernel's note in it; returns a dump of the
/// same machine.
fn guest(folder: &Path, memory: Vec<Range<u64>>) -> Result<Dump, Box<dyn Error>> {
    let elf = folder.join("vmcore");
    let groups = "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab".to_owned();
    Synthetic {
        groups,
        memory: memory.clone(),
        section_bits: 27,
        ..Synthetic::default()
    }
    .write(&elf)?;
    let dump = Dump::open(&[elf])?;
    let mut reader = Reader::new(&dump, Io::Read);
    let file = File::create(folder.join("ram"))?;
    let mut at = 0;
    for range in memory {
        // All of the kernel's data is below these; the rest of each range stays a hole.
        for page in range.clone().take(0x8000) {
            let bytes = reader.bytes(page * PAGE, 4096)?;
            if bytes.iter().any(|byte| *byte != 0) {
                file.write_all_at(bytes, at + (page - range.start) * PAGE)?;
            }
        }
        if range.contains(&NOTE_PAGE) {
            file.write_all_at(&note(dump.info()), at + (NOTE_PAGE - range.start) * PAGE)?;
        }
        at += (range.end - range.start) * PAGE;
    }
    file.set_len(at)?;
    drop(reader);
    Ok(dump)
}

fn note(info: &vmcore::Info) -> Vec<u8> {
    let mut text = format!("OSRELEASE={}\n", info.text("OSRELEASE").unwrap_or_default());
    text.extend(
        info.lines()
            .filter(|(key, _)| *key != "OSRELEASE")
            .map(|(key, value)| format!("{key}={value}\n")),
    );
    let mut note = [11_u32, text.len() as u32, 0]
        .map(u32::to_le_bytes)
        .concat();
    note.extend(b"VMCOREINFO\0\0");
    note.extend(text.as_bytes());
    note
}

fn part(folder: &Path, place: &str) -> Part {
    format!("{}{place}", folder.join("ram").display())
        .parse()
        .unwrap_or_else(|text| panic!("{text}"))
}

fn kept_pages(dump: &Dump) -> Result<Vec<u64>, Box<dyn Error>> {
    let filter = Filter::for_level(&mut Reader::new(dump, Io::Read), Level::MAX)?;
    let work = Work {
        threads: 2,
        io: Io::Map,
        memory: 64 << 20,
        folder: None,
    };
    let plan = Plan::make(dump, filter.as_ref(), &work)?;
    let pages = plan.kept_pages()?;
    assert!(plan.kept_count() < plan.memory(), "something was left out");
    Ok(pages)
}

#[test]
fn kernel_note_locates_its_memory() -> Outcome {
    for (low, high) in [
        (0x8_0000, 0x4_0000),
        (0xb_0000, 0x8000),
        (0xc_0000, 0x8000),
        (0xe_0000, 0x8000),
    ] {
        let folder = tempfile::tempdir()?;
        let dump = guest(folder.path(), vec![0..low, HIGH..HIGH + high])?;
        let found = memory_file::open(&[part(folder.path(), "")], None)?;
        assert_eq!(
            (found.format(), found.pages()),
            (Format::Memory, HIGH + high),
            "{low:#x}"
        );
        assert_eq!(found.info(), dump.info());
        assert_eq!(kept_pages(&found)?, kept_pages(&dump)?, "{low:#x}");
        let given = [
            part(folder.path(), &format!("@0+{:#x}", low * PAGE)),
            part(folder.path(), &format!("@4G:{:#x}", low * PAGE)),
        ];
        assert_eq!(
            kept_pages(&memory_file::open(&given, None)?)?,
            kept_pages(&dump)?
        );
    }
    Ok(())
}

#[test]
fn small_guest_is_located_without_note() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = guest(folder.path(), std::iter::once(0..0x8000).collect())?;
    let found = memory_file::open(&[part(folder.path(), "")], None)?;
    assert_eq!(kept_pages(&found)?, kept_pages(&dump)?);
    // A microvm's memory begins like this, with its vmlinux.
    let file = File::options()
        .write(true)
        .open(folder.path().join("ram"))?;
    file.write_all_at(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0", 0)?;
    assert_eq!(
        kept_pages(&memory_file::open(&[part(folder.path(), "")], None)?)?,
        kept_pages(&dump)?
    );
    std::fs::write(folder.path().join("ram"), [7; 8192])?;
    let silent = memory_file::open(&[part(folder.path(), "")], None)?;
    assert_eq!((silent.pages(), silent.info().is_empty()), (2, true));
    let text = b"OSRELEASE=given\n";
    assert_eq!(
        memory_file::open(&[part(folder.path(), "")], Some(text))?
            .info()
            .text("OSRELEASE"),
        Some("given")
    );
    Ok(())
}

#[test]
fn stale_note_is_not_believed() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = guest(folder.path(), std::iter::once(0..0x8000).collect())?;
    let file = File::options()
        .write(true)
        .open(folder.path().join("ram"))?;
    // In front of the right one.
    let stale = vmcore::Info::parse(
        b"OSRELEASE=stale\nPAGESIZE=4096\nSYMBOL(mem_section)=ffffffff81000000\n",
    );
    file.write_all_at(&note(&stale), 0x50 * PAGE)?;
    let found = memory_file::open(&[part(folder.path(), "")], None)?;
    assert_eq!(found.info(), dump.info());
    Ok(())
}

/// Runs a command line in a directory; returns all output.
fn seen(folder: &Path, line: &str) -> Result<String, Box<dyn Error>> {
    Ok(CommandResult::run(folder, line, &[])?.all())
}

#[test]
fn guest_memory_is_described() -> Outcome {
    let folder = tempfile::tempdir()?;
    guest(folder.path(), std::iter::once(0..0x8000).collect())?;
    let file = File::create(folder.path().join("large"))?;
    file.set_len(5 << 30)?;
    std::fs::write(folder.path().join("empty"), "")?;
    let mut all = String::new();
    for line in [
        "info --ram @ram",
        "-d 31 --compress none --threads 1 --verify --ram @ram @out",
        "info @out",
        "-d 31 --ram @ram --dry-run",
        "-d 31 --ram @ram",
        "-d 31 --ram @ram @vmcore @out",
        "-d 31 -f --ram @ram @ram",
        "info --ram @vmcore",
        "info --ram @empty",
        "info --ram @nothing",
        "info --ram @ram@0+1M --ram @ram@64K",
        "info --ram @ram@0+4000",
        "info --ram @ram@4G+1G",
        "info --ram @ram --ram @ram@4G",
        "info --ram @ram --ram @large",
        "info --ram @ram@0xffffffffff000",
        "dmesg --ram @ram",
    ] {
        all += &seen(folder.path(), line)?;
    }
    insta::assert_snapshot!(all);
    Ok(())
}

#[test]
fn large_guest_without_note_is_refused() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ram");
    File::create(&path)?.set_len(3 << 30)?;
    let error = memory_file::open(
        &[part(folder.path(), "")],
        Some(b"OSRELEASE=1\nPAGESIZE=4096\n"),
    )
    .err()
    .map(|e| e.to_string());
    let error = error
        .unwrap_or_default()
        .replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(error, @"cannot find where FOLDER/ram is in the guest: its kernel's memory map agrees with none that QEMU's PCs have; give the address of each part, as in --ram FOLDER/ram@0+2G --ram FOLDER/ram@4G:2G");
    let paths: Vec<PathBuf> = vec![path];
    assert!(Dump::open(&paths).is_err(), "without --ram it is no dump");
    Ok(())
}

#[test]
fn other_commands_accept_guest_memory() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = guest(folder.path(), std::iter::once(0..0x8000).collect())?;
    let usage = seen(folder.path(), "--mem-usage --ram @ram")?;
    assert_eq!(
        usage.lines().skip(1).collect::<Vec<_>>(),
        seen(folder.path(), "usage --ram @ram")?
            .lines()
            .skip(1)
            .collect::<Vec<_>>()
    );
    let transcript = seen(folder.path(), "-g @text --ram @ram")?;
    assert!(transcript.ends_with("exit code 0\n"), "{transcript}");
    assert_eq!(
        &vmcore::Info::parse(&std::fs::read(folder.path().join("text"))?),
        dump.info()
    );
    Ok(())
}
