//! Bad input: truncated anywhere, changed anywhere, full disks, closed pipes. An error or a usable
//! dump, never a panic.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::prelude::{any, prop, proptest};
use synthetic_dumps::Synthetic;
use vmcore::{
    Codec, Dump, DumpError, FileSink, Filter, Flattened, Io, Level, Overwrite, Plan, Reader, Style,
    Work, write_kdump,
};

type Outcome = Result<(), Box<dyn Error>>;

const GROUPS: &str = "0x010+40 anon\n 0x080+3 cache 4\n 0x0c0 free 4\n 0x480 huge 5";

fn small() -> Synthetic {
    Synthetic {
        groups: GROUPS.to_owned(),
        own: 0x100,
        memory: vec![0..0x50, 0x58..0x4ec],
        ..Synthetic::default()
    }
}

fn work(io: Io) -> Work {
    Work {
        threads: 1,
        io,
        memory: 64 << 20,
        folder: None,
    }
}

fn style() -> Style {
    let names = ["Linux", "", "", "", "x86_64", ""].map(str::to_owned);
    Style {
        codec: Codec::Zstd,
        effort: None,
        level: Level::MAX,
        part: None,
        limit: None,
        names,
    }
}

/// Most pages to visit one by one.
const PAGES_MAX: u64 = 1 << 22;

/// Uses a dump in every way.
fn use_all(path: &Path, out: &Path, io: Io) -> Result<(), DumpError> {
    let dump = Dump::open(&[path.to_owned()])?;
    let filter = Filter::new(&mut Reader::new(&dump, io), Level::MAX);
    let plan = Plan::make(&dump, filter.as_ref().ok(), &work(io))?;
    if dump.pages() > PAGES_MAX {
        // A changed header may ask for terabytes: writing and reading these one by one would take
        // hours.
        return filter.map(drop);
    }
    let written = write_kdump(
        &plan,
        &style(),
        &work(io),
        &FileSink::create(out, Overwrite::Yes)?,
    )?;
    let copy = Dump::open(&[out.to_owned()])?;
    let mut reader = Reader::new(&copy, io);
    let readable = (0..copy.pages())
        .filter(|page| reader.bytes(page * 4096, 4096).is_ok())
        .count() as u64;
    assert_eq!(
        readable, written.pages,
        "all that was written, and no more, can be read"
    );
    assert_eq!(
        copy.incomplete(),
        dump.incomplete() || written.unreadable > 0
    );
    filter.map(drop)
}

/// Returns the bytes of a dump, original and written.
fn both(folder: &Path) -> Result<[Vec<u8>; 2], Box<dyn Error>> {
    let path = folder.join("vmcore");
    let out = folder.join("out");
    small().write(&path)?;
    use_all(&path, &out, Io::Map)?;
    Ok([std::fs::read(path)?, std::fs::read(out)?])
}

#[test]
fn truncated_dump_is_an_error_or_incomplete() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("cut");
    let out = folder.path().join("copy");
    for bytes in both(folder.path())? {
        let fine = (0..600)
            .chain((600..12_000).step_by(97))
            .chain((12_000..bytes.len()).step_by(90_001));
        for length in fine {
            std::fs::write(&path, &bytes[..length])?;
            let complete =
                Dump::open(std::slice::from_ref(&path)).is_ok_and(|dump| !dump.incomplete());
            let elf = bytes.starts_with(b"\x7fELF");
            assert!(
                !(complete && elf && length < bytes.len() - 4096),
                "{length}"
            );
            drop(use_all(&path, &out, Io::Read));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 200, ..Default::default() })]

    /// Changes bytes in headers, notes, page tables, records, bitmaps and descriptors.
    #[test]
    fn dump_with_changed_bytes_does_no_harm(
        which in 0_usize..2,
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(),
            0_u8..4,
            any::<[u8; 8]>()),
            1..6,
        ),
    ) {
        thread_local! {
            static BOTH: (tempfile::TempDir, [Vec<u8>; 2]) = {
                let folder = tempfile::tempdir().unwrap();
                let both = both(folder.path()).unwrap();
                (folder, both)
            };
        }
        BOTH.with(|(folder, both)| {
            let path = folder.path().join("changed");
            let out = folder.path().join("copy");
            std::fs::write(&path, &both[which]).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            // Half of the changes hit bytes that are not zero: most bytes of a dump are zero and irrelevant.
            let full: Vec<usize> = (0..both[which].len())
                .step_by(8)
                .filter(|at| both[which][*at..].iter().take(8).any(|byte| *byte != 0))
                .collect();
            for (place, kind, bytes) in changes {
                let at = if kind < 2 {
                    full[place.index(full.len())]
                } else {
                    place.index(8192.min(both[which].len()))
                };
                let bytes = if kind == 1 { [0xff; 8] } else { bytes };
                file.write_all_at(&bytes[..1 + usize::from(bytes[0]) % 8], at as u64)
                    .unwrap();
            }
            drop(use_all(&path, &out, Io::Read));
        });
    }
}

/// Returns the error of opening a file with these bytes.
fn open_error(folder: &Path, name: &str, bytes: &[u8]) -> Result<String, Box<dyn Error>> {
    let path = folder.join(name);
    std::fs::write(&path, bytes)?;
    let Err(error) = Dump::open(&[path]) else {
        return Err(format!("{name} was opened").into());
    };
    let error = error.to_string();
    Ok(error.replace(&folder.display().to_string(), "FOLDER"))
}

fn changed(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn non_dump_is_an_error() -> Outcome {
    let folder = tempfile::tempdir()?;
    let [elf, kdump] = both(folder.path())?;
    let all = [
        open_error(folder.path(), "empty", b"")?,
        open_error(folder.path(), "text", &[b'a'; 1000])?,
        open_error(folder.path(), "short", &elf[..200])?,
        open_error(folder.path(), "narrow", &changed(&elf, 4, &[1]))?,
        open_error(folder.path(), "big-endian", &changed(&elf, 5, &[2]))?,
        open_error(folder.path(), "sparc", &changed(&elf, 18, &[43]))?,
        open_error(folder.path(), "program", &changed(&elf, 16, &[2]))?,
        open_error(folder.path(), "no-headers", &changed(&elf, 56, &[0, 0]))?,
        open_error(folder.path(), "far", &changed(&elf, 32, &[0xff; 8]))?,
        open_error(
            folder.path(),
            "huge",
            &changed(&elf, 64 + 56 + 40, &(1_u64 << 60).to_le_bytes()),
        )?,
        open_error(
            folder.path(),
            "mips",
            &changed(&kdump, 12 + 4 * 65, b"mips64"),
        )?,
        open_error(
            folder.path(),
            "odd-pages",
            &changed(&kdump, 428, &5000_u32.to_le_bytes()),
        )?,
        open_error(
            folder.path(),
            "huge-pages",
            &changed(&kdump, 428, &(512_u32 << 10).to_le_bytes()),
        )?,
        open_error(
            folder.path(),
            "pages-of-arm",
            &changed(&kdump, 428, &(64_u32 << 10).to_le_bytes()),
        )?,
        open_error(
            folder.path(),
            "many-pages",
            &changed(&kdump, 4096 + 96, &(1_u64 << 60).to_le_bytes()),
        )?,
        open_error(
            folder.path(),
            "sparse",
            &changed(&kdump, 4096 + 96, &(1_u64 << 38).to_le_bytes()),
        )?,
        open_error(
            folder.path(),
            "few-bits",
            &changed(&kdump, 436, &0_u32.to_le_bytes()),
        )?,
        open_error(folder.path(), "cut", &kdump[..9000])?,
    ];
    insta::assert_snapshot!(all.join("\n"));
    Ok(())
}

#[test]
fn inconsistent_notes_are_errors() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    small().write(&path)?;
    let mut all = Vec::new();
    let dump = Dump::open(std::slice::from_ref(&path))?;
    let lines: Vec<String> = dump
        .info()
        .lines()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    for (key, line) in [
        ("SIZE(page)", ""),
        ("SIZE(page)", "SIZE(page)=5000000000"),
        ("NUMBER(phys_base)", "NUMBER(phys_base)=1152921504606846976"),
        ("NUMBER(SECTION_SIZE_BITS)", "NUMBER(SECTION_SIZE_BITS)=-1"),
        (
            "SYMBOL(mem_section)",
            "SYMBOL(mem_section)=ffff8880deadbeef",
        ),
        ("OFFSET(page.mapping)", "OFFSET(page.mapping)=4096"),
        ("NUMBER(PG_lru)", "NUMBER(PG_lru)=64"),
        ("SIZE(mem_section)", "SIZE(mem_section)=4"),
        ("SYMBOL(init_top_pgt)", ""),
    ] {
        let text: Vec<&str> = lines
            .iter()
            .map(String::as_str)
            .filter(|own| !own.starts_with(key))
            .chain(Some(line))
            .collect();
        let dump = Dump::open(std::slice::from_ref(&path))?.with_info(text.join("\n").as_bytes());
        all.push(
            Filter::new(&mut Reader::new(&dump, Io::Map), Level::MAX)
                .map(drop)
                .unwrap_err()
                .to_string(),
        );
    }
    let none = Dump::open(std::slice::from_ref(&path))?.with_info(b"");
    all.push(
        Filter::new(&mut Reader::new(&none, Io::Map), Level::MAX)
            .map(drop)
            .unwrap_err()
            .to_string(),
    );
    insta::assert_snapshot!(all.join("\n"));
    Ok(())
}

#[test]
fn a_note_cannot_change_the_size_of_pages() -> Outcome {
    let folder = tempfile::tempdir()?;
    let [elf, _] = both(folder.path())?;
    let path = folder.path().join("changed");
    let at = elf
        .windows(13)
        .position(|bytes| bytes == b"PAGESIZE=4096")
        .ok_or("no line")?;
    for size in ["8192", "1024", "9999"] {
        let mut bytes = elf.clone();
        bytes[at + 9..at + 13].copy_from_slice(size.as_bytes());
        std::fs::write(&path, bytes)?;
        let dump = Dump::open(std::slice::from_ref(&path))?;
        assert_eq!((dump.page_size(), dump.pages()), (4096, 0x4ec), "{size}");
        assert!(
            Filter::new(&mut Reader::new(&dump, Io::Map), Level::MAX).is_err(),
            "{size}"
        );
    }
    Ok(())
}

#[test]
fn given_note_replaces_the_dumps_note() -> Outcome {
    let folder = tempfile::tempdir()?;
    let [mut elf, _] = both(folder.path())?;
    let path = folder.path().join("arm");
    elf[18] = 183;
    std::fs::write(&path, elf)?;
    let dump = Dump::open(std::slice::from_ref(&path))?;
    assert_eq!((dump.page_size(), dump.pages()), (4096, 0x4ec));
    let dump = dump.with_info(b"PAGESIZE=65536\n");
    assert_eq!((dump.page_size(), dump.pages()), (65536, 0x4f));
    assert_eq!(
        dump.notes()
            .windows(9)
            .filter(|bytes| bytes == b"PAGESIZE=")
            .count(),
        1
    );
    Ok(())
}

#[test]
fn full_disk_and_closed_pipe_are_errors() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    small().write(&path)?;
    let dump = Dump::open(&[path])?;
    let plan = Plan::make(&dump, None, &work(Io::Map))?;
    let full = FileSink::create(Path::new("/dev/full"), Overwrite::No)?;
    let error = write_kdump(&plan, &style(), &work(Io::Map), &full).unwrap_err();
    insta::assert_snapshot!(error, @"no space is left for /dev/full (at offset 0x0): make room, or drop more with a higher --level or a list such as --level 17,31; what was written is marked incomplete");
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let error = Flattened::begin(writer).map(drop).unwrap_err();
    insta::assert_snapshot!(error, @"the reader of the output went away at offset 0x0: the dump there is not complete");
    Ok(())
}

#[test]
fn cyclic_page_tables_terminate() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    small().write(&path)?;
    let pages = Dump::open(std::slice::from_ref(&path))?.pages();
    let end = std::fs::metadata(&path)?.len();
    // The topmost table is page 0x100 of memory; the last page of memory is the last of the file.
    let root = end - (pages - 0x100) * 4096;
    let file = File::options().write(true).open(&path)?;
    let circle: Vec<u8> = (0..512).flat_map(|_| 0x10_0063_u64.to_le_bytes()).collect();
    file.write_all_at(&circle, root)?;
    // All addresses are mapped to the same page: there is some result.
    drop(use_all(&path, &folder.path().join("copy"), Io::Read));
    Ok(())
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, ..Default::default() })]

    /// Changes numbers in the kernel's tables of symbols, nodes and processors, in list heads, and in the types.
    #[test]
    fn cyclic_processor_lists_terminate(
        changes in prop::collection::vec((0_u64..3, 0_u64..512, 0_usize..8, any::<u64>()), 1..5),
    ) {
        thread_local! {
            static DUMP: (tempfile::TempDir, Vec<u8>) = {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("vmcore");
                let groups = "0x010+8 listed\n 0x040+4 listed 2".to_owned();
                let synthetic = Synthetic {
                    groups,
                    own: 0x100,
                    memory: std::iter::once(0..0x500).collect(),
                    ..Synthetic::default()
                };
                synthetic.write(&path)
                    .unwrap();
                let bytes = std::fs::read(path).unwrap();
                (folder, bytes)
            };
        }
        DUMP.with(|(folder, bytes)| {
            let path = folder.path().join("changed");
            std::fs::write(&path, bytes).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            // The kernel's data, and the sets of two processors after it: only the first bytes of each are used.
            let data = bytes.len() as u64 - (0x500 - 0x100 - 1002) * 4096;
            let likely = [
                0,
                u64::MAX,
                u64::MAX / 2,
                1 << 12,
                0x1000_0000_0010,
                16,
                0xffff_8880_0000_0000,
            ];
            for (page, place, which, number) in changes {
                let at = data + page * 4096 + place % if page == 0 { 280 } else { 34 } * 8;
                let number = likely.get(which).copied().unwrap_or(number);
                file.write_all_at(&number.to_le_bytes(), at).unwrap();
            }
            let dump = Dump::open(&[path]).unwrap();
            let filter = Filter::new(&mut Reader::new(&dump, Io::Read), Level::MAX).unwrap();
            let plan = Plan::make(&dump, Some(&filter), &work(Io::Read)).unwrap();
            let free = 0x500 - plan.kept_count();
            // Only pages with consistent links are trusted: those on lists.
            assert!(free == plan.counts().listed && free <= 8 + 4 * 4, "{free}");
        });
    }
}
