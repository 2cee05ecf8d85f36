//! Written dumps read back: every codec and format, and again from the written dump.

use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use synthetic_dumps::Synthetic;
use vmcore::{
    Codec, Dump, DumpError, FileSink, Filter, Flattened, Io, Level, MemoryError, MemoryMap,
    Overwrite, Plan, Reader, Sink, Style, Work, Written, write_kdump,
};

type Outcome = Result<(), Box<dyn Error>>;

const GROUPS: &str =
    "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8\n 0x400+100 slab\n 0x600+700 kernel";

fn work(threads: usize) -> Work {
    Work {
        threads,
        io: Io::Map,
        memory: 64 << 20,
        folder: None,
    }
}

fn style(codec: Codec, level: Level) -> Style {
    Style {
        codec,
        effort: None,
        level,
        part: None,
        limit: None,
        names: <[String; 6]>::default().map(|_| "x86_64".to_owned()),
    }
}

fn synthetic(folder: &Path) -> Result<Dump, Box<dyn Error>> {
    let path = folder.join("vmcore");
    let memory = vec![0..0x9f, 0x100..0x2000];
    Synthetic {
        groups: GROUPS.to_owned(),
        memory,
        gap: 128,
        ..Synthetic::default()
    }
    .write(&path)?;
    Ok(Dump::open(&[path])?)
}

fn plan<'d>(dump: &'d Dump, level: Level, work: &Work) -> Result<Plan<'d>, Box<dyn Error>> {
    let filter = level
        .filters()
        .then(|| Filter::new(&mut Reader::new(dump, work.io), level))
        .transpose()?;
    Ok(Plan::make(dump, filter.as_ref(), work)?)
}

/// Writes a dump into a file; returns the opened file and the result.
fn write(plan: &Plan<'_>, style: &Style, path: PathBuf) -> Result<(Dump, Written), Box<dyn Error>> {
    let written = write_kdump(
        plan,
        style,
        &work(2),
        &FileSink::create(&path, Overwrite::No)?,
    )?;
    assert_eq!(std::fs::metadata(&path)?.len(), written.bytes);
    Ok((Dump::open(&[path])?, written))
}

/// Compares two dumps: `copy` has the pages of the plan and no others.
fn same(dump: &Dump, copy: &Dump, plan: &Plan<'_>) -> Outcome {
    let pages = plan.kept_pages()?;
    let mut one = Reader::new(dump, Io::Read);
    let mut other = Reader::new(copy, Io::Map);
    for page in 0..dump.pages() {
        let found = other.bytes(page * 4096, 4096).map(<[u8]>::to_vec);
        match pages.binary_search(&page) {
            Ok(_) => assert_eq!(found?, one.bytes(page * 4096, 4096)?, "page {page:#x}"),
            Err(_) => assert_eq!(
                found,
                Err(MemoryError::Absent(page * 4096)),
                "page {page:#x}"
            ),
        }
    }
    assert_eq!(copy.info(), dump.info());
    assert_eq!(copy.notes(), dump.notes());
    assert_eq!(copy.pages(), dump.pages());
    assert_eq!(copy.machine(), dump.machine());
    assert!(!copy.incomplete());
    Ok(())
}

#[test]
fn written_data_reads_back() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = synthetic(folder.path())?;
    for codec in [Codec::None, Codec::Zlib, Codec::Snappy, Codec::Zstd] {
        for level in [0, 1, 31] {
            let level = Level::new(level).ok_or("no level")?;
            let plan = plan(&dump, level, &work(1))?;
            let path = folder
                .path()
                .join(format!("{}{}", codec.name(), level.number()));
            let (copy, written) = write(&plan, &style(codec, level), path)?;
            same(&dump, &copy, &plan)?;
            assert_eq!(written.pages, plan.kept_count());
            assert!(written.zero > 0 && written.unreadable == 0 && !written.full);
        }
    }
    Ok(())
}

#[test]
fn written_dump_can_be_filtered_again() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = synthetic(folder.path())?;
    let all = plan(&dump, Level::new(0).ok_or("no level")?, &work(1))?;
    let (whole, _) = write(
        &all,
        &style(Codec::Snappy, Level::MAX),
        folder.path().join("whole"),
    )?;
    let direct = plan(&dump, Level::MAX, &work(1))?;
    let again = plan(&whole, Level::MAX, &work(2))?;
    assert_eq!(direct.kept_pages()?, again.kept_pages()?);
    assert_eq!(direct.counts(), again.counts());
    let (copy, _) = write(
        &again,
        &style(Codec::Zstd, Level::MAX),
        folder.path().join("again"),
    )?;
    same(&dump, &copy, &direct)
}

#[test]
fn flattened_dumps_are_read_in_place() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = synthetic(folder.path())?;
    let plan = plan(&dump, Level::MAX, &work(1))?;
    let path = folder.path().join("flat");
    let sink = Flattened::begin(std::fs::File::create(&path)?)?;
    write_kdump(&plan, &style(Codec::Zstd, Level::MAX), &work(2), &sink)?;
    drop(sink);
    let copy = Dump::open(&[path])?;
    assert!(copy.flattened());
    same(&dump, &copy, &plan)
}

#[test]
fn equal_pages_are_stored_once() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    Synthetic::default().write(&path)?;
    // Two equal pages of noise, consecutive in the file's last segment.
    let file = std::fs::File::options().write(true).open(&path)?;
    let noise: Vec<u8> = (0..1024_u32)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_be_bytes())
        .collect();
    let end = file.metadata()?.len();
    std::os::unix::fs::FileExt::write_all_at(&file, &noise, end - 8192)?;
    std::os::unix::fs::FileExt::write_all_at(&file, &noise, end - 4096)?;
    let dump = Dump::open(&[path])?;
    let plan = plan(&dump, Level::new(0).ok_or("no level")?, &work(1))?;
    let (copy, written) = write(
        &plan,
        &style(Codec::None, Level::MAX),
        folder.path().join("copy"),
    )?;
    assert!(written.twins >= 1, "{written:?}");
    same(&dump, &copy, &plan)
}

/// Records the order of writes.
#[derive(Default)]
struct Watched(Mutex<Vec<(u64, Vec<u8>)>>);

impl Sink for Watched {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((offset, bytes.to_vec()));
        Ok(())
    }

    fn finish(&self, _size: u64) -> Result<(), DumpError> {
        Ok(())
    }
}

#[test]
fn a_descriptor_is_written_behind_its_data() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = synthetic(folder.path())?;
    let plan = plan(&dump, Level::new(0).ok_or("no level")?, &work(1))?;
    let sink = Watched::default();
    write_kdump(&plan, &style(Codec::Zstd, Level::MAX), &work(2), &sink)?;
    let writes = sink.0.into_inner().unwrap();
    let header = &writes[0].1;
    let sub_blocks = u32::from_le_bytes(header[432..436].try_into()?);
    let bitmap_blocks = u32::from_le_bytes(header[436..440].try_into()?);
    let first = u64::from(1 + sub_blocks + bitmap_blocks) * 4096;
    let descriptors = first..first + plan.kept_count() * 24;
    let mut written: Vec<Range<u64>> = Vec::new();
    let mut seen = 0;
    for (offset, bytes) in &writes {
        if !descriptors.contains(offset) {
            written.push(*offset..offset + bytes.len() as u64);
            continue;
        }
        for descriptor in bytes.chunks_exact(24) {
            let at = u64::from_le_bytes(descriptor[..8].try_into()?);
            let end = at + u64::from(u32::from_le_bytes(descriptor[8..12].try_into()?));
            assert!(
                written
                    .iter()
                    .any(|range| range.start <= at && end <= range.end),
                "{at:#x} to {end:#x}"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, plan.kept_count());
    Ok(())
}

#[test]
fn file_cut_at_a_limit_is_usable() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = synthetic(folder.path())?;
    let plan = plan(&dump, Level::new(16).ok_or("no level")?, &work(1))?;
    let path = folder.path().join("part");
    let style = Style {
        limit: Some(1 << 20),
        ..style(Codec::None, Level::MAX)
    };
    let written = write_kdump(
        &plan,
        &style,
        &work(1),
        &FileSink::create(&path, Overwrite::No)?,
    )?;
    assert!(written.full && written.bytes <= 1 << 20 && written.pages < plan.kept_count());
    let copy = Dump::open(&[path])?;
    assert!(copy.incomplete());
    let mut reader = Reader::new(&copy, Io::Map);
    let readable = plan
        .kept_pages()?
        .into_iter()
        .filter(|page| reader.bytes(page * 4096, 4096).is_ok())
        .count();
    assert_eq!(readable as u64, written.pages);
    // The pages that lead to all others came first, though their offsets are higher.
    MemoryMap::find(&mut reader)?;
    Ok(())
}

#[test]
fn bitmap_larger_than_memory_goes_to_file() -> Outcome {
    let folder = tempfile::tempdir()?;
    let dump = synthetic(folder.path())?;
    let small = Work {
        memory: 64,
        folder: Some(folder.path().to_owned()),
        ..work(2)
    };
    assert_eq!(
        plan(&dump, Level::MAX, &small)?.kept_pages()?,
        plan(&dump, Level::MAX, &work(1))?.kept_pages()?
    );
    let nowhere = Plan::make(
        &dump,
        None,
        &Work {
            folder: None,
            ..small
        },
    );
    insta::assert_snapshot!(nowhere.unwrap_err(), @"the bits of 8192 pages need 4096 bytes: give --memory 1M, or a folder for them with --work-dir");
    Ok(())
}

#[test]
fn more_program_headers_than_e_phnum_are_read() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("vmcore");
    let count = 70_000_u64;
    synthetic_dumps::headers::write(&path, count, 1)?;
    let dump = Dump::open(&[path])?;
    let plan = plan(&dump, Level::new(0).ok_or("no level")?, &work(1))?;
    assert_eq!(plan.kept_count(), count);
    let (copy, written) = write(
        &plan,
        &style(Codec::Zstd, Level::MAX),
        folder.path().join("copy"),
    )?;
    // Each of the two threads stores it at most once.
    assert!((count - 2..count).contains(&written.twins), "{written:?}");
    assert_eq!(
        Reader::new(&copy, Io::Map).bytes((count - 1) * 2 * 4096, 4096)?,
        [7; 4096]
    );
    Ok(())
}
