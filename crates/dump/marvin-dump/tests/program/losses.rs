//! Losses that must be reported: broken pages, parts of different dumps in one, forged bytes, a
//! file that was there and is gone, an endless log.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use synthetic_dumps::Synthetic;
use vmcore::{Dump, Io, Log, LogPart, Reader};

use crate::Outcome;
use crate::command_line::CommandResult;

/// Runs a command line in a directory; returns messages and answer.
fn seen(folder: &Path, line: &str, input: &[u8]) -> Result<(String, Vec<u8>), Box<dyn Error>> {
    let result = CommandResult::run(folder, line, input)?;
    Ok((result.transcript(), result.answer))
}

fn synthetic(groups: &str) -> Synthetic {
    Synthetic {
        groups: groups.to_owned(),
        memory: vec![0..0x9f, 0x100..0x2000],
        ..Synthetic::default()
    }
}

const GROUPS: &str = "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab\n 0x600+2 poisoned\n 0x602 slab";

fn folder() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    synthetic(GROUPS).write(&folder.path().join("vmcore"))?;
    Ok(folder)
}

#[test]
fn elf_output_has_no_excluded_page() -> Outcome {
    let folder = folder()?;
    for line in ["-d 0 -E @vmcore @elf", "-d 31 -E -f @vmcore @elf"] {
        let transcript = seen(folder.path(), line, b"")?.0;
        assert!(transcript.ends_with("exit code 0\n"), "{transcript}");
        let copy = Dump::open(&[folder.path().join("elf")])?;
        let mut reader = Reader::new(&copy, Io::Map);
        // Pages of the dump contain their number.
        assert_eq!(reader.bytes(0x602 * 4096, 2)?, [2, 6]);
        assert_eq!(reader.bytes(0x600 * 4096, 8192)?, [0; 8192], "{line}");
        let data = std::fs::metadata(folder.path().join("elf"))?;
        assert!(
            data.blocks() * 512 < data.len(),
            "{line}: dropped pages are holes"
        );
    }
    Ok(())
}

#[test]
fn flattened_elf_has_all_its_bytes() -> Outcome {
    let folder = folder()?;
    let stream = seen(folder.path(), "-d 31 -E -F --message-level 0 @vmcore", b"")?.1;
    std::fs::write(folder.path().join("flat"), stream)?;
    let transcript = seen(folder.path(), "-d 31 -E @vmcore @elf", b"")?.0
        + &seen(folder.path(), "-d 0 -z --verify @elf @one", b"")?.0
        + &seen(folder.path(), "-d 0 -z --verify @flat @two", b"")?.0;
    assert_eq!(
        transcript.matches("exit code 0\n").count(),
        3,
        "{transcript}"
    );
    Ok(())
}

#[test]
fn parts_of_different_dumps_are_not_joined() -> Outcome {
    let folder = folder()?;
    synthetic("0x010+40 anon").write(&folder.path().join("other"))?;
    let mut renamed = synthetic(GROUPS);
    renamed.kernel.release = "6.12.1";
    renamed.write(&folder.path().join("renamed"))?;
    let mut all = String::new();
    for line in [
        "-d 31 --split --message-level 0 @vmcore @s1 @s2 @s3",
        "-d 31 --split --message-level 0 @other @o1 @o2",
        "-d 31 --split --message-level 0 @renamed @r1 @r2 @r3",
        "--reassemble @s1 @o2 @whole",
        "--reassemble @s1 @r2 @s3 @whole",
        "--reassemble @s1 @s2 @s2 @whole",
        "--reassemble @s1 @s3 @whole",
        "--reassemble @s2 @s3 @whole",
        "--reassemble @s1 @s2 @whole",
        "-d 0 --threads 1 --compress none @s1 @s3 @whole",
    ] {
        all += &seen(folder.path(), line, b"")?.0;
    }
    insta::assert_snapshot!(all);
    Ok(())
}

/// A record of a flattened stream: where it starts, and how many bytes follow its header.
struct Record {
    start: usize,
    size: usize,
}

fn records(stream: &[u8]) -> Result<Vec<Record>, Box<dyn Error>> {
    let mut start = 4096;
    let mut found = Vec::new();
    while stream[start..start + 8] != u64::MAX.to_be_bytes() {
        let size = u64::from_be_bytes(stream[start + 8..start + 16].try_into()?);
        let size = usize::try_from(size)?;
        found.push(Record { start, size });
        start += 16 + size;
    }
    Ok(found)
}

#[test]
fn missing_records_are_not_read_as_zeros() -> Outcome {
    let folder = folder()?;
    let stream = seen(
        folder.path(),
        "-d 31 -F --compress none --threads 1 --message-level 0 @vmcore",
        b"",
    )?
    .1;
    let path = folder.path().join("flat");
    let all = records(&stream)?;
    let mut fine = Vec::new();
    let count = all.len();
    for Record { start, size } in all {
        let mut less = stream[..start].to_vec();
        less.extend(&stream[start + 16 + size..]);
        std::fs::write(&path, less)?;
        let transcript = seen(
            folder.path(),
            "-d 0 -f --compress none --threads 1 --verify @flat @again",
            b"",
        )?
        .0;
        if transcript.ends_with("exit code 0\n") {
            fine.push(size);
        }
    }
    // The rest of both bitmaps, behind the last page's bits, is unused, and read as zeros.
    assert_eq!(fine, [4096 - 0x2000 / 8, 4096 - 0x2000 / 8]);
    assert!(count > 7, "{count}");
    let Record { start, size } = records(&stream)?[2];
    let strange = [
        &stream[..start + 8],
        &u64::MAX.to_be_bytes(),
        &stream[start + 16 + size..],
    ]
    .concat();
    std::fs::write(&path, &strange)?;
    let transcript =
        seen(folder.path(), "info @flat", b"")?.0 + &seen(folder.path(), "-R @out", &strange)?.0;
    insta::assert_snapshot!(transcript);
    Ok(())
}

#[test]
fn invalid_stream_leaves_the_file_alone() -> Outcome {
    let folder = folder()?;
    let path = folder.path().join("there");
    std::fs::write(&path, "precious")?;
    std::os::unix::fs::symlink(&path, folder.path().join("link"))?;
    let stream = seen(folder.path(), "-d 31 -F --message-level 0 @vmcore", b"")?.1;
    for name in ["there", "link"] {
        for input in [&b""[..], &[b'a'; 5000], &stream[..stream.len() - 20]] {
            let transcript = seen(folder.path(), &format!("-f -R @{name}"), input)?.0;
            assert!(transcript.ends_with("exit code 2\n"), "{transcript}");
            assert_eq!(std::fs::read(&path)?, b"precious");
        }
    }
    let transcript = seen(folder.path(), "-R @there", &stream)?.0;
    assert!(transcript.contains("exists already"), "{transcript}");
    let transcript = seen(folder.path(), "-f -R @link", &stream)?.0;
    assert!(transcript.ends_with("exit code 0\n"), "{transcript}");
    assert!(!Dump::open(&[path])?.incomplete());
    let names = std::fs::read_dir(folder.path())?.collect::<Result<Vec<_>, _>>()?;
    assert_eq!(names.len(), 3, "nothing else is left: {names:?}");
    Ok(())
}

#[test]
fn cut_stream_leaves_a_readable_dump() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    let line = "-d 31 -F --threads 1 --message-level 0 @vmcore";
    let stream = seen(folder.path(), line, b"")?.1;
    let original = Dump::open(&[path("vmcore")])?;
    let mut counts = Vec::new();
    for part in [60, 80, 99] {
        let name = format!("cut{part}");
        let cut = &stream[..stream.len() * part / 100];
        let transcript = seen(folder.path(), &format!("-R @{name}"), cut)?.0;
        assert!(transcript.ends_with("exit code 3\n"), "{transcript}");
        assert!(transcript.contains("not complete"), "{transcript}");
        let dump = Dump::open(&[path(&name)])?;
        assert!(dump.incomplete(), "{part} %: the file says so");
        let mut expected = Reader::new(&original, Io::Read);
        let mut found = Reader::new(&dump, Io::Read);
        let mut count = 0;
        for page in 0..dump.pages() {
            if let Ok(bytes) = found.bytes(page * 4096, 4096) {
                assert_eq!(bytes, expected.bytes(page * 4096, 4096)?, "page {page:#x}");
                count += 1;
            }
        }
        counts.push(count);
    }
    assert!(counts.is_sorted() && counts[0] < counts[2], "{counts:?}");
    Ok(())
}

/// Note lines for a log whose structures are in the image's first page, and its bytes in the
/// second.
const LOG_NOTE: &str = "SYMBOL(prb)=ffffffff81000800\n\
    OFFSET(printk_ringbuffer.desc_ring)=0\nOFFSET(printk_ringbuffer.text_data_ring)=64\nOFFSET(atomic_long_t.counter)=0\n\
    OFFSET(prb_desc_ring.count_bits)=0\nOFFSET(prb_desc_ring.descs)=8\nOFFSET(prb_desc_ring.infos)=16\n\
    OFFSET(prb_desc_ring.head_id)=24\nOFFSET(prb_desc_ring.tail_id)=32\n\
    OFFSET(prb_data_ring.size_bits)=0\nOFFSET(prb_data_ring.data)=8\n\
    OFFSET(prb_desc.state_var)=0\nOFFSET(prb_desc.text_blk_lpos)=8\nSIZE(prb_desc)=24\n\
    OFFSET(prb_data_blk_lpos.begin)=0\nOFFSET(prb_data_blk_lpos.next)=8\n\
    OFFSET(printk_info.ts_nsec)=0\nOFFSET(printk_info.text_len)=8\nOFFSET(printk_info.seq)=16\nSIZE(printk_info)=24\n";

const IMAGE: u64 = 0xffff_ffff_8100_0000;
/// Where the log's structures are, from the image's start.
const RING: u64 = 0x808;
const DESCRIPTORS: u64 = 0xa00;
const INFOS: u64 = 0xd00;
const TEXTS: u64 = 0x1000;

/// Writes a dump with a log of `count` records with texts of `length` bytes, each in a block of
/// `block` bytes; returns the file offset of the image.
fn write_log(
    path: &Path,
    count: u64,
    [length, block]: [u64; 2],
    size_bits: u64,
) -> Result<u64, Box<dyn Error>> {
    Synthetic {
        extra_note: LOG_NOTE.to_owned(),
        ..Synthetic::default()
    }
    .write(path)?;
    let file = File::options().write(true).open(path)?;
    let page = file.metadata()?.len() - (0x2000 - 0x1000 - 1000) * 4096;
    let put = |at: u64, numbers: &[u64]| {
        let bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        file.write_all_at(&bytes, page + at)
    };
    put(0x800, &[IMAGE + RING])?;
    let descriptors = [5, IMAGE + DESCRIPTORS, IMAGE + INFOS, count - 1, 0];
    put(RING, &descriptors)?;
    put(RING + 64, &[size_bits, IMAGE + TEXTS])?;
    file.write_all_at(&[b'x'; 4096], page + TEXTS)?;
    for id in 0..count {
        let begin = id * block % 4096;
        put(DESCRIPTORS + id * 24, &[1 << 62 | id, begin, begin + 64])?;
        put(INFOS + id * 24, &[1_234_567_000 * (id + 1), length, id + 7])?;
        put(TEXTS + begin, &[id])?;
        file.write_all_at(b"hello\nyou\x1b", page + TEXTS + begin + 8)?;
    }
    Ok(page)
}

/// Writes a log, and returns what the library reads.
fn log(path: &Path, count: u64, length: u64, size_bits: u64) -> Result<Log, Box<dyn Error>> {
    write_log(path, count, [length, 64], size_bits)?;
    let dump = Dump::open(&[path.to_owned()])?;
    Ok(Log::read(&mut Reader::new(&dump, Io::Read), LogPart::All)?)
}

#[test]
fn endless_log_is_cut() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    let whole = log(&path, 2, 10, 12)?;
    assert_eq!(whole.missing, [""; 0]);
    insta::assert_snapshot!(whole.text, @r"
    [    1.234567] hello
    [    1.234567] you\u{1b}
    [    2.469134] hello
    [    2.469134] you\u{1b}
    ");
    // Thirty-two records of a page each, in a ring of one page.
    let lies = log(&path, 32, 4000, 12)?;
    assert!(
        lies.text.len() < 10_000 && lies.text.ends_with("or than 128 MiB\n"),
        "{}",
        lies.text.len()
    );
    insta::assert_snapshot!(log(&path, 2, 10, 31).unwrap_err(), @"the VMCOREINFO note says SYMBOL(prb)=ffffffff81000800: there is no ring buffer of a sane size there");
    Ok(())
}

#[test]
fn damaged_log_says_what_is_missing() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    let image = write_log(&path, 20, [10, 64], 12)?;
    let whole = CommandResult::run(folder.path(), "dmesg @vmcore", b"")?;
    assert_eq!(whole.code, 0, "{}", whole.messages);
    let lines = whole.answer.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, 40);
    let bytes = std::fs::read(&path)?;
    let file = File::options().write(true).open(&path)?;
    // Each bit of what readers follow: the ring's structures, descriptors, and heads of texts.
    let ring = (RING..RING + 40).chain(RING + 64..RING + 80);
    // In steps that meet each of a descriptor's bytes.
    let descriptors = (DESCRIPTORS..DESCRIPTORS + 20 * 24).step_by(5);
    let heads = (0..20).map(|id| TEXTS + id * 64);
    let mut silent = Vec::new();
    for (turn, at) in (0..).zip(ring.chain(descriptors).chain(heads)) {
        let byte = bytes[usize::try_from(image + at)?];
        file.write_all_at(&[byte ^ 1 << (turn % 8)], image + at)?;
        let seen = CommandResult::run(folder.path(), "dmesg @vmcore", b"")?;
        file.write_all_at(&[byte], image + at)?;
        let is_whole = seen.answer == whole.answer;
        if seen.code == 0 && !is_whole {
            silent.push(format!("{at:#x}: {}", String::from_utf8(seen.answer)?));
        } else if seen.code == 3 {
            assert!(seen.messages.contains("the log is not complete"));
        }
    }
    assert!(silent.is_empty(), "{}: {}", silent.len(), silent.join("\n"));
    Ok(())
}

#[test]
fn log_without_ends_has_all_records() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    let image = write_log(&path, 20, [10, 64], 12)?;
    let whole = CommandResult::run(folder.path(), "dmesg @vmcore", b"")?.answer;
    let file = File::options().write(true).open(&path)?;
    // The ring's end and beginning, and a text that is another record's.
    file.write_all_at(&[0xff; 8], image + RING + 24)?;
    file.write_all_at(&[3; 8], image + TEXTS + 64)?;
    let seen = CommandResult::run(folder.path(), "dmesg @vmcore", b"")?;
    let answer = String::from_utf8(seen.answer)?;
    let expected = String::from_utf8(whole)?.replace(
        "[    2.469134] hello\n[    2.469134] you\\u{1b}",
        "[    2.469134] (text lost)",
    );
    assert_eq!(answer, expected);
    insta::assert_snapshot!(seen.messages, @r"
    warning: the log is not complete: 1 records have no text, or that of another one
    warning: the log is not complete: the ring's beginning and end are damaged
    ");
    assert_eq!(seen.code, 3);
    Ok(())
}

#[test]
fn changed_bits_are_found_by_check() -> Outcome {
    ["-z", "-l", "--compress none"]
        .into_iter()
        .try_for_each(change_bits)
}

/// Changes single bits in bitmaps, descriptors and pages, and checks each file.
fn change_bits(codec: &str) -> Outcome {
    let folder = folder()?;
    let line = format!("-d 16 {codec} --verify @vmcore @out");
    let transcript = seen(folder.path(), &line, b"")?.0;
    assert!(
        transcript.contains("verified: 7837 pages are equal"),
        "{transcript}"
    );
    let answer = String::from_utf8(seen(folder.path(), "check @out", b"")?.1)?;
    assert_eq!(answer, "all 7837 pages can be read\n");
    let whole = std::fs::read(folder.path().join("out"))?;
    let number = |at: usize, size: usize| -> Result<usize, Box<dyn Error>> {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(whole.get(at..at + size).ok_or("too short")?);
        Ok(usize::from_le_bytes(bytes))
    };
    // Offsets as crash's diskdump.h has them.
    let page = number(428, 4)?;
    let sub = number(432, 4)?;
    let blocks = number(436, 4)?;
    let bitmaps = (1 + sub) * page;
    let descriptors = (1 + sub + blocks) * page;
    // Of the headers and of the bitmaps.
    let heads = (0..bitmaps).step_by(211);
    let mut places: Vec<usize> = heads.chain((bitmaps..descriptors).step_by(4999)).collect();
    let mut packed = 0;
    let mut at = descriptors;
    while packed < 24 {
        let offset = number(at, 8)?;
        let size = number(at + 8, 4)?;
        // Each byte of the descriptor, in turn.
        places.push(at + packed % 24);
        places.extend([offset, offset + size / 2, offset + size - 1]);
        packed += 1;
        at += 24 * 7;
    }
    let file = File::options()
        .write(true)
        .open(folder.path().join("out"))?;
    for (turn, place) in places.into_iter().enumerate() {
        file.write_all_at(&[whole[place] ^ 1 << (turn % 8)], place as u64)?;
        let transcript = seen(folder.path(), "check @out", b"")?.0;
        file.write_all_at(&whole[place..=place], place as u64)?;
        assert!(
            !transcript.ends_with("exit code 0\n"),
            "a bit at {place:#x}: {transcript}"
        );
    }
    Ok(())
}

#[test]
fn changed_notes_are_not_trusted() -> Outcome {
    let folder = folder()?;
    seen(folder.path(), "-d 0 -z @vmcore @out", b"")?;
    let whole = std::fs::read(folder.path().join("out"))?;
    let line = b"NUMBER(PG_lru)=5";
    let at = whole.windows(line.len()).position(|bytes| bytes == line);
    let mut damaged = whole.clone();
    // Another flag: pages of the kernel would be taken for page cache.
    damaged[at.ok_or("no line")? + line.len() - 1] ^= 1;
    std::fs::write(folder.path().join("damaged"), damaged)?;
    let checked = seen(folder.path(), "check @damaged", b"")?.0;
    assert!(checked.ends_with("exit code 1\n"), "{checked}");
    let transcript = seen(folder.path(), "-d 31 @damaged @copy", b"")?.0;
    assert!(
        transcript.contains("warning: no page is excluded by its kind: the notes are damaged")
            && transcript.ends_with("exit code 0\n"),
        "{transcript}"
    );
    let transcript = seen(folder.path(), "-d 31 @out @small", b"")?.0;
    assert!(!transcript.contains("damaged"), "{transcript}");
    Ok(())
}

#[test]
fn log_by_changed_notes_is_not_complete() -> Outcome {
    let folder = tempfile::tempdir()?;
    write_log(&folder.path().join("vmcore"), 20, [10, 64], 12)?;
    seen(folder.path(), "-d 0 -z @vmcore @out", b"")?;
    let fine = CommandResult::run(folder.path(), "dmesg @out", b"")?;
    assert_eq!((fine.code, fine.messages.as_str()), (0, ""));
    let mut damaged = std::fs::read(folder.path().join("out"))?;
    let line = b"NUMBER(PG_lru)=5";
    let at = damaged.windows(line.len()).position(|bytes| bytes == line);
    damaged[at.ok_or("no line")?] ^= 1;
    std::fs::write(folder.path().join("out"), damaged)?;
    let seen = CommandResult::run(folder.path(), "dmesg @out", b"")?;
    assert_eq!((seen.code, seen.answer), (3, fine.answer));
    assert!(
        seen.messages
            .contains("the notes, which say where it is, are damaged")
    );
    Ok(())
}

/// Returns where the notes of a kdump file are, by its second header.
fn notes_of(whole: &[u8]) -> Result<std::ops::Range<usize>, Box<dyn Error>> {
    // Offsets as crash's diskdump.h has them: offset_note and size_note.
    let number = |at: usize| -> Result<usize, Box<dyn Error>> {
        let bytes = whole.get(4096 + at..4096 + at + 8).ok_or("too short")?;
        Ok(usize::try_from(u64::from_le_bytes(bytes.try_into()?))?)
    };
    let start = number(48)?;
    Ok(start..start + number(56)?)
}

#[test]
fn changed_bits_are_found_when_filtering_again() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    seen(folder.path(), "-d 0 -z @vmcore @out", b"")?;
    let line = "-d 31 -f --threads 1 -z @out @copy";
    let transcript = seen(folder.path(), line, b"")?.0;
    assert!(transcript.ends_with("exit code 0\n"), "{transcript}");
    let expected = std::fs::read(path("copy"))?;
    let whole = std::fs::read(path("out"))?;
    let notes = notes_of(&whole)?;
    let word = |at: usize| -> Result<usize, Box<dyn Error>> {
        let bytes = whole.get(at..at + 4).ok_or("too short")?;
        Ok(usize::try_from(u32::from_le_bytes(bytes.try_into()?))?)
    };
    let descriptors = (1 + word(432)? + word(436)?) * word(428)?;
    // Each byte of both headers that is not zero, and some of those that are.
    let heads = (0..4096).chain(4096..4096 + 104);
    let heads = heads.filter(|at| whole[*at] != 0 || at % 97 == 0);
    // Of pages that are kept, each byte of a descriptor in turn.
    let kept = (0..24).map(|n| descriptors + (0x1000 + n * 3) * 24 + n);
    let file = File::options().write(true).open(path("out"))?;
    let mut silent = Vec::new();
    for (turn, place) in heads.chain(notes.step_by(61)).chain(kept).enumerate() {
        file.write_all_at(&[whole[place] ^ 1 << (turn % 8)], place as u64)?;
        let result = CommandResult::run(folder.path(), line, b"")?;
        file.write_all_at(&whole[place..=place], place as u64)?;
        let is_told = result.code != 0 || result.messages.contains("the notes are damaged");
        if !is_told && std::fs::read(path("copy"))? != expected {
            silent.push(format!("{place:#x}: {}", result.messages));
        }
    }
    assert!(silent.is_empty(), "{}: {silent:?}", silent.len());
    Ok(())
}

#[test]
fn other_machines_are_named() -> Outcome {
    let folder = folder()?;
    let whole = std::fs::read(folder.path().join("vmcore"))?;
    for (order, machine, name) in [
        (1, [22, 0], "a dump of s390x; x86_64 and aarch64 are read"),
        (2, [0, 21], "a big-endian ELF file: a dump of ppc64;"),
        (2, [0, 22], "a big-endian ELF file: a dump of s390x;"),
        (1, [99, 0], "ELF machine 99"),
    ] {
        let mut bytes = whole.clone();
        bytes[5] = order;
        bytes[18..20].copy_from_slice(&machine);
        std::fs::write(folder.path().join("other"), bytes)?;
        let transcript = seen(folder.path(), "info @other", b"")?.0;
        assert!(transcript.contains(name), "{transcript}");
    }
    Ok(())
}

#[test]
fn other_machines_have_zero_pages_excluded_only() -> Outcome {
    let folder = folder()?;
    let path = |name: &str| folder.path().join(name);
    let whole = std::fs::read(path("vmcore"))?;
    let original = Dump::open(&[path("vmcore")])?;
    for (machine, name) in [(21, "ppc64le"), (243, "riscv64")] {
        let mut bytes = whole.clone();
        bytes[18..20].copy_from_slice(&[machine, 0]);
        std::fs::write(path("other"), bytes)?;
        let why = format!("this is a dump of {name}, whose page tables are not read");
        for (line, is_told) in [
            ("-d 0 -f -c --verify @other @out", false),
            ("-d 1 -f -z --verify @other @out", false),
            ("-d 31 -f -E --verify @other @out", true),
            ("-d 1 -f -F @other", false),
        ] {
            let transcript = seen(folder.path(), line, b"")?.0;
            assert!(transcript.ends_with("exit code 0\n"), "{transcript}");
            assert_eq!(transcript.contains(&why), is_told, "{transcript}");
        }
        for line in ["usage @other", "dmesg @other"] {
            let transcript = seen(folder.path(), line, b"")?.0;
            assert!(
                transcript.contains(&why) && transcript.ends_with("exit code 2\n"),
                "{transcript}"
            );
        }
        let copy = Dump::open(&[path("out")])?;
        assert_eq!((copy.machine().name(), copy.page_size()), (name, 4096));
        let mut expected = Reader::new(&original, Io::Read);
        let mut found = Reader::new(&copy, Io::Read);
        for page in [0x10, 0x80, 0x600, 0x1fff] {
            let bytes = found.bytes(page * 4096, 4096)?;
            assert_eq!(bytes, expected.bytes(page * 4096, 4096)?, "{page:#x}");
        }
    }
    Ok(())
}
