//! Archives: they read back as written, through files and streams; truncated or damaged ones are read as far as
//! possible.

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Parser;
use marvin_dump::Arguments;
use proptest::prelude::{any, prop, proptest};
use synthetic_dumps::Synthetic;
use vmcore::{
    Codec, Dump, DumpError, FileSink, Format, Io, Level, MemoryError, Overwrite, Plan, Reader, Stream, Style, Work,
    Written, write_archive,
};

use crate::Outcome;
use crate::command_line::CommandResult;

const GROUPS: &str = "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab\n 0x600+700 kernel";
/// Size of a block's header.
const HEAD: usize = 64;

/// Runs a command line in a directory; returns all output, and the bytes of standard output.
fn seen(folder: &Path, line: &str) -> Result<(String, Vec<u8>), Box<dyn Error>> {
    let result = CommandResult::of(folder, line, &[])?;
    Ok((result.transcript(), result.answer))
}

fn fine(folder: &Path, line: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let (said, answer) = seen(folder, line)?;
    assert!(said.ends_with("exit code 0\n"), "{said}");
    Ok(answer)
}

/// Makes a dump named `vmcore` with distinct pages, equal pages and zero pages.
fn folder() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let memory = vec![0..0x9f, 0x100..0x2000];
    Synthetic { groups: GROUPS.to_owned(), memory, gap: 128, ..Synthetic::default() }
        .write(&folder.path().join("vmcore"))?;
    Ok(folder)
}

/// Returns the pages of a dump; `None` for missing ones.
fn pages(path: &Path) -> Result<Vec<Option<Vec<u8>>>, DumpError> {
    let dump = Dump::open(&[path.to_owned()])?;
    let mut reader = Reader::new(&dump, Io::Read);
    Ok((0..dump.pages()).map(|page| reader.bytes(page * 4096, 4096).ok().map(<[u8]>::to_vec)).collect())
}

#[test]
fn all_formats_hold_the_same_pages() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    for level in [0, 1, 17, 31] {
        fine(folder.path(), &format!("-d {level} -f @vmcore @kdump"))?;
        let all = pages(&path("kdump"))?;
        fine(folder.path(), &format!("-d {level} -f --archive --verify --threads 2 @vmcore @archive"))?;
        std::fs::write(path("stream"), fine(folder.path(), &format!("-d {level} --archive @vmcore"))?)?;
        fine(folder.path(), "-d 0 -f @archive @back")?;
        fine(folder.path(), "-f -d 0 --archive --effort 1 @kdump @again")?;
        std::fs::write(path("flat"), fine(folder.path(), "-F @stream")?)?;
        for name in ["archive", "stream", "back", "again", "flat"] {
            assert!(pages(&path(name))? == all, "{name}, level {level}");
        }
        let [one, other] = [path("vmcore"), path("archive")].map(|path| Dump::open(&[path]));
        let (one, other) = (one?, other?);
        assert_eq!((other.format(), other.incomplete()), (Format::Archive, false));
        assert_eq!((one.notes(), one.info(), one.pages()), (other.notes(), other.info(), other.pages()));
    }
    Ok(())
}

#[test]
fn full_archive_can_be_filtered_and_read() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    fine(folder.path(), "-d 0 --archive @vmcore @all")?;
    fine(folder.path(), "-d 31 @vmcore @direct")?;
    fine(folder.path(), "-d 31 @all @indirect")?;
    assert!(pages(&path("direct"))? == pages(&path("indirect"))?);
    fine(folder.path(), "-d 31 -E @all @elf")?;
    fine(folder.path(), "-d 31 -f @elf @indirect")?;
    assert!(pages(&path("direct"))? == pages(&path("indirect"))?);
    for line in ["dmesg", "estimate"] {
        assert_eq!(seen(folder.path(), &format!("{line} @vmcore"))?.1, seen(folder.path(), &format!("{line} @all"))?.1);
    }
    fine(folder.path(), "-d 31 --archive @all @least")?;
    insta::assert_snapshot!(String::from_utf8(fine(folder.path(), "info @least")?)?);
    Ok(())
}

#[test]
fn archive_messages_are_readable() -> Outcome {
    let folder = folder()?;
    let mut all = String::new();
    for line in [
        "-d 31 --archive --json @vmcore",
        "-d 31 --archive --verify @vmcore",
        "-d 31 --archive -L 100 @vmcore @tiny",
        "-d 31 --archive @vmcore /dev/full",
        "-d 31 --archive --effort 99 @vmcore @out",
    ] {
        all += &seen(folder.path(), line)?.0;
    }
    insta::assert_snapshot!(all);
    for line in ["-c", "-E", "-F", "--split"] {
        let parsed = Arguments::try_parse_from(["marvin-dump", "--archive", line, "in", "out"]);
        assert!(parsed.unwrap_err().to_string().contains("cannot be used with"), "{line}");
    }
    Ok(())
}

fn style() -> Style {
    let names = <[String; 6]>::default();
    Style { codec: Codec::Zstd, effort: None, level: Level::MAX, part: None, limit: None, names }
}

/// Limit on data of an archive's block (bytes).
const BLOCK: usize = 1 << 20;

/// Memory with `pages` that compress well, in an ELF file; more than one block of an archive.
fn large(path: &Path, count: usize) -> Result<Dump, Box<dyn Error>> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(4096, 0);
    for (at, number) in [(16, 4_u16), (18, 62), (54, 56), (56, 1)] {
        bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
    }
    let size = count as u64 * 4096;
    for (at, number) in [(32, 64), (64, 1), (64 + 8, 4096), (64 + 24, 0x10_0000), (64 + 32, size), (64 + 40, size)] {
        bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(number));
    }
    for page in 0..count {
        let mut own = [0; 4096];
        match page % 7 {
            3 => {}
            5 => own[7..9].copy_from_slice(b"no"),
            _ => own.iter_mut().enumerate().for_each(|(n, byte)| *byte = (page * 31 + n / 7 * (page % 13)) as u8),
        }
        if page % 7 != 3 {
            own[4088..].copy_from_slice(&(1 + page as u64 / 1000).to_le_bytes());
        }
        bytes.extend(own);
    }
    std::fs::write(path, bytes)?;
    Ok(Dump::open(&[path.to_owned()])?)
}

fn work(threads: usize) -> Work {
    Work { threads, io: Io::Read, memory: 64 << 20, folder: None }
}

fn archive(dump: &Dump, style: &Style, path: &Path, threads: usize) -> Result<Written, DumpError> {
    let plan = Plan::make(dump, None, &work(threads))?;
    write_archive(&plan, style, &work(threads), &FileSink::create(path, Overwrite::Yes)?)
}

/// Returns the offsets of an archive's blocks.
fn blocks(bytes: &[u8]) -> Vec<usize> {
    bytes.windows(8).enumerate().filter(|(_, bytes)| bytes == b"MDUMPBLK").map(|(at, _)| at).collect()
}

/// Counts pages equal to the dump's, and pages missing silently; collects the messages about others.
fn compare(dump: &Dump, path: &Path) -> Result<(usize, usize, Vec<String>), DumpError> {
    let copy = Dump::open(&[path.to_owned()])?;
    let (mut one, mut other) = (Reader::new(dump, Io::Read), Reader::new(&copy, Io::Read));
    let (mut same, mut absent, mut result) = (0, 0, Vec::new());
    for page in dump.pages() - 3000..dump.pages() {
        match other.bytes(page * 4096, 4096) {
            Ok(bytes) => {
                assert_eq!(bytes, one.bytes(page * 4096, 4096).unwrap_or_default(), "page {page:#x}");
                same += 1;
            }
            Err(MemoryError::Absent(_)) => absent += 1,
            Err(error) => result.push(error.to_string()),
        }
    }
    Ok((same, absent, result))
}

#[test]
fn damaged_block_is_named_and_skipped() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let dump = large(&path("vmcore"), 3000)?;
    let written = archive(&dump, &style(), &path("archive"), 2)?;
    assert_eq!((written.pages, written.zero, written.unreadable), (3000, 429, 0));
    assert!(written.twins > 400, "{written:?}");
    let bytes = std::fs::read(path("archive"))?;
    assert_eq!(written.bytes, bytes.len() as u64);
    let starts = blocks(&bytes);
    assert!(starts.len() > 2 && starts.len() < 3000 * 4096 / BLOCK, "{starts:?}");
    assert_eq!(compare(&dump, &path("archive"))?, (3000, 0, Vec::new()));
    for at in [starts[1] + 1, starts[1] + 9, starts[1] + 25, starts[1] + 62, starts[1] + HEAD, starts[2] - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        std::fs::write(path("changed"), changed)?;
        let (same, absent, result) = compare(&dump, &path("changed"))?;
        assert!(same > 1000 && absent == 0 && result.len() < 2000, "{at}: {same} {absent} {}", result.len());
        let place = format!("offset {:#x} of the file", starts[1]);
        assert!(result[0].contains(&place) && result[0].contains("damaged"), "{at}: {}", result[0]);
        // A dump converted from it carries the mark.
        let said = seen(folder.path(), "-d 0 -f @changed @copy")?.0;
        assert!(said.contains("cannot be read and are missing") && said.contains("damaged"), "{said}");
        assert!(said.ends_with("exit code 3\n"), "{said}");
        assert!(Dump::open(&[path("copy")])?.incomplete());
    }
    Ok(())
}

#[test]
fn truncated_archive_is_an_error_or_incomplete() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let dump = large(&path("vmcore"), 3000)?;
    archive(&dump, &style(), &path("archive"), 1)?;
    let bytes = std::fs::read(path("archive"))?;
    let starts = blocks(&bytes);
    let close = |at: usize| at - 2..at + HEAD + 3;
    let lengths =
        (0..starts[0] + HEAD + 3).chain(close(starts[1])).chain(close(starts[2])).chain(bytes.len() - 400..bytes.len());
    for length in lengths {
        std::fs::write(path("cut"), &bytes[..length])?;
        match Dump::open(&[path("cut")]) {
            Ok(dump) => assert!(dump.incomplete() && length >= starts[0], "{length}"),
            Err(DumpError::Truncated { end, size, .. }) => assert!(size == length as u64 && end > size, "{length}"),
            Err(error) => assert!(matches!(error, DumpError::Unknown { .. }) && length < 512, "{length}: {error}"),
        }
    }
    let whole = |length: usize| -> Result<usize, Box<dyn Error>> {
        std::fs::write(path("cut"), &bytes[..length])?;
        let (same, absent, result) = compare(&dump, &path("cut"))?;
        assert_eq!((same + absent, result), (3000, Vec::new()));
        Ok(same)
    };
    assert_eq!(whole(starts[0])?, 0);
    assert!(whole(starts[1])? > 0 && whole(starts[1])? < whole(starts[2])?);
    assert_eq!(whole(bytes.len() - 1)?, 3000);
    Ok(())
}

#[test]
fn limited_archive_is_marked_incomplete() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let dump = large(&path("vmcore"), 3000)?;
    let all = archive(&dump, &style(), &path("archive"), 1)?;
    let style = Style { limit: Some(all.bytes - 1), ..style() };
    let part = archive(&dump, &style, &path("part"), 1)?;
    assert!(part.full && part.bytes < all.bytes && part.pages > 0 && part.pages < 3000, "{part:?}");
    let (same, absent, result) = compare(&dump, &path("part"))?;
    assert_eq!((same as u64, absent as u64, result), (part.pages, 3000 - part.pages, Vec::new()));
    assert!(Dump::open(&[path("part")])?.incomplete());
    Ok(())
}

#[test]
fn closed_pipe_is_reported() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = large(&folder.path().join("vmcore"), 10)?;
    let plan = Plan::make(&dump, None, &work(1))?;
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let error = write_archive(&plan, &style(), &work(1), &Stream::new(writer)).unwrap_err();
    insta::assert_snapshot!(error, @"the reader of the output went away at offset 0x0: the dump there is not complete");
    Ok(())
}

#[test]
fn damaged_header_is_explained() -> Outcome {
    let folder = folder()?;
    fine(folder.path(), "-d 31 --archive @vmcore @archive")?;
    let path = folder.path().join("changed");
    let bytes = std::fs::read(folder.path().join("archive"))?;
    let mut all = Vec::new();
    for (at, new) in [
        (8, &[2_u8][..]),
        (12, &[0xff; 4]),
        (40, &[0xff; 4]),
        (16, &[1]),
        (20, &[1]),
        (28, &[0xff; 4]),
        (32, &[0xff; 8]),
        (100, b"x"),
    ] {
        for sound in [false, true] {
            let mut bytes = bytes.clone();
            bytes[at..at + new.len()].copy_from_slice(new);
            if sound {
                // Forged with knowledge of the format.
                let size = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
                let rest = bytes.get(512..size).unwrap_or_default();
                let sum = crc32fast::hash(&[&bytes[..508], rest].concat());
                bytes[508..512].copy_from_slice(&sum.to_le_bytes());
            }
            std::fs::write(&path, &bytes)?;
            let result =
                Dump::open(std::slice::from_ref(&path)).map_or_else(|error| error.to_string(), |_| "fine".to_owned());
            all.push(result.replace(&folder.path().display().to_string(), "FOLDER"));
        }
    }
    insta::assert_snapshot!(all.join("\n"));
    Ok(())
}

/// Corrects all checksums of an archive, so that the reader accepts its content.
fn make_sound(bytes: &mut [u8]) {
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes) as usize
    };
    let put = |bytes: &mut [u8], at: usize, sum: u32| {
        if let Some(place) = bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    };
    let size = number(bytes, 12).clamp(512, bytes.len());
    let sum = crc32fast::hash(&[&bytes[..508], &bytes[512..size]].concat());
    put(bytes, 508, sum);
    for at in blocks(bytes) {
        let table = at + HEAD;
        let data = table + number(bytes, at + 32);
        let end = data + number(bytes, at + 36);
        if end <= bytes.len() {
            let sum = crc32fast::hash(&bytes[data..end]);
            put(bytes, at + 44, sum);
            let sum = crc32fast::hash(&[&bytes[at..at + 60], &bytes[table..data]].concat());
            put(bytes, at + 60, sum);
        }
    }
    let end = bytes.len() - 64;
    let index = bytes.windows(8).rposition(|bytes| bytes == b"MDUMPIDX").unwrap_or(end);
    let sum = crc32fast::hash(&bytes[index.min(end)..end]);
    put(bytes, end + 28, sum);
    let sum = crc32fast::hash(&[&bytes[end..end + 52], &bytes[end + 56..]].concat());
    put(bytes, end + 52, sum);
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 100, ..Default::default() })]

    /// Bytes change anywhere, with and without correct checksums: the result is an error or a dump, and damage is never
    /// accepted as correct.
    #[test]
    fn changed_archive_does_no_harm(
        sound in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<[u8; 4]>()), 1..5),
    ) {
        thread_local! {
            static MADE: (tempfile::TempDir, Vec<u8>, Vec<Option<Vec<u8>>>) = {
                let folder = folder().unwrap();
                fine(folder.path(), "-d 17 --archive --threads 1 @vmcore @archive").unwrap();
                let bytes = std::fs::read(folder.path().join("archive")).unwrap();
                let pages = pages(&folder.path().join("archive")).unwrap();
                (folder, bytes, pages)
            };
        }
        MADE.with(|(folder, bytes, own)| {
            let path: PathBuf = folder.path().join("changed");
            let mut changed = bytes.clone();
            for (place, front, new) in changes {
                let at = place.index(if front { 600 } else { bytes.len() - 4 });
                changed[at..at + 4].copy_from_slice(&new);
            }
            if sound {
                make_sound(&mut changed);
            }
            std::fs::write(&path, &changed).unwrap();
            let Ok(dump) = Dump::open(std::slice::from_ref(&path)) else { return };
            if dump.pages() > 1 << 20 {
                return;
            }
            let found = pages(&path).unwrap();
            let differ = found.iter().zip(own).any(|(one, other)| one.is_some() && one != other);
            assert!(sound || !differ, "damage was not found");
            drop(seen(folder.path(), "-d 31 -f @changed @copy").unwrap());
        });
    }
}

#[test]
fn erased_data_is_not_in_an_archive() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    fine(folder.path(), "-d 31 --exclude-vmemmap @vmcore @kdump")?;
    fine(folder.path(), "-d 31 --exclude-vmemmap --archive @vmcore @archive")?;
    assert!(pages(&path("kdump"))? == pages(&path("archive"))?);
    Ok(())
}
