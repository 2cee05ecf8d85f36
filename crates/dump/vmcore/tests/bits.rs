//! One changed bit in a written dump: each bit of its metadata, and each of the first pages' data.

use std::error::Error;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use synthetic_dumps::Synthetic;
use vmcore::{
    Codec, Dump, FileSink, Filter, Io, Level, Overwrite, Plan, Reader, Style, Work, check,
    write_kdump,
};

type Outcome = Result<(), Box<dyn Error>>;

const PAGE: u64 = 4096;
/// Pages whose data is changed bit by bit; more of the same codec have the same checksum.
const CHANGED_PAGES: usize = 3;

fn work() -> Work {
    Work {
        threads: 1,
        io: Io::Read,
        memory: 64 << 20,
        folder: None,
    }
}

/// Writes a small dump as a kdump file with this codec; returns the numbers of its pages.
fn written(folder: &Path, codec: Codec) -> Result<(PathBuf, Vec<u64>), Box<dyn Error>> {
    let path = folder.join("vmcore");
    Synthetic {
        // The kernel's own pages are from 0x1000 on.
        groups:
            "0x010+100 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x200+3500 anon\n 0x1400+3000 anon"
                .to_owned(),
        memory: vec![0..0x9f, 0x100..0x2000],
        ..Synthetic::default()
    }
    .write(&path)?;
    let dump = Dump::open(&[path])?;
    let filter = Filter::new(&mut Reader::new(&dump, Io::Read), Level::MAX)?;
    let plan = Plan::make(&dump, Some(&filter), &work())?;
    let path = folder.join(codec.name());
    let style = Style {
        codec,
        effort: None,
        level: Level::MAX,
        part: None,
        limit: None,
        names: <[String; 6]>::default().map(|_| "x86_64".to_owned()),
    };
    let sink = FileSink::create(&path, Overwrite::No)?;
    write_kdump(&plan, &style, &work(), &sink)?;
    Ok((path, plan.kept_pages()?))
}

/// Where parts of a kdump file are.
struct Places {
    descriptors: u64,
    /// The data of the pages in the order of their descriptors.
    data: Vec<Range<u64>>,
}

impl Places {
    /// Finds them by the offsets that crash's diskdump.h has.
    fn find(whole: &[u8], pages: usize) -> Result<Self, Box<dyn Error>> {
        let word = |at: usize| -> Result<u64, Box<dyn Error>> {
            let bytes = whole.get(at..at + 4).ok_or("too short")?;
            Ok(u64::from(u32::from_le_bytes(bytes.try_into()?)))
        };
        let descriptors = (1 + word(432)? + word(436)?) * word(428)?;
        let mut data = Vec::new();
        for at in (usize::try_from(descriptors)?..).step_by(24).take(pages) {
            let offset = word(at)? | word(at + 4)? << 32;
            data.push(offset..offset + word(at + 8)?);
        }
        Ok(Self { descriptors, data })
    }
}

/// Calls `is_found` with each changed bit of a range of the file; returns those of which it says no.
fn change_each(
    file: &File,
    whole: &[u8],
    range: Range<u64>,
    mut is_found: impl FnMut(u64) -> Result<bool, Box<dyn Error>>,
) -> Result<Vec<String>, Box<dyn Error>> {
    let mut silent = Vec::new();
    for place in range {
        let byte = whole[usize::try_from(place)?];
        for bit in 0..8 {
            file.write_all_at(&[byte ^ 1 << bit], place)?;
            if !is_found(place)? {
                silent.push(format!("{place:#x} bit {bit}"));
            }
        }
        file.write_all_at(&[byte], place)?;
    }
    Ok(silent)
}

/// Opens a dump and reads it as `marvin-dump check` does; returns whether anything is wrong.
fn is_damaged(path: &Path) -> Result<bool, Box<dyn Error>> {
    let Ok(dump) = Dump::open(&[path.to_owned()]) else {
        return Ok(true);
    };
    if dump.are_notes_damaged() || dump.are_headers_damaged() || dump.incomplete() {
        return Ok(true);
    }
    Ok(check(&dump, &work())?.pages > 0)
}

/// Opens a dump and reads one page; returns whether that fails.
fn is_unreadable(dump: &Dump, page: u64) -> bool {
    let mut reader = Reader::new(dump, Io::Read);
    reader.bytes(page * PAGE, 4096).is_err()
}

#[test]
fn each_changed_bit_of_metadata_is_found() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (path, pages) = written(folder.path(), Codec::Zstd)?;
    assert!(!is_damaged(&path)?);
    let whole = std::fs::read(&path)?;
    let places = Places::find(&whole, pages.len())?;
    let file = File::options().write(true).open(&path)?;
    // Headers, notes, bitmaps, and what is between them.
    let mut silent = change_each(&file, &whole, 0..places.descriptors, |_| is_damaged(&path))?;
    // An open dump reads descriptors when it reads a page.
    let dump = Dump::open(std::slice::from_ref(&path))?;
    let end = places.descriptors + pages.len() as u64 * 24;
    silent.extend(change_each(
        &file,
        &whole,
        places.descriptors..end,
        |place| {
            let number = usize::try_from((place - places.descriptors) / 24)?;
            Ok(is_unreadable(&dump, pages[number]))
        },
    )?);
    assert!(silent.is_empty(), "{}: {silent:?}", silent.len());
    assert_eq!(std::fs::read(&path)?, whole);
    Ok(())
}

#[test]
fn each_changed_bit_of_pages_is_found() -> Outcome {
    for codec in Codec::ALL {
        let folder = tempfile::tempdir()?;
        let (path, pages) = written(folder.path(), codec)?;
        let whole = std::fs::read(&path)?;
        let places = Places::find(&whole, pages.len())?;
        let file = File::options().write(true).open(&path)?;
        let dump = Dump::open(std::slice::from_ref(&path))?;
        let changed = pages.iter().zip(&places.data).take(CHANGED_PAGES);
        assert_eq!(changed.len(), CHANGED_PAGES);
        for (page, data) in changed {
            let silent = change_each(&file, &whole, data.clone(), |_| {
                Ok(is_unreadable(&dump, *page))
            })?;
            assert!(silent.is_empty(), "{}: {silent:?}", codec.name());
        }
    }
    Ok(())
}
