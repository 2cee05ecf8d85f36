//! A bounded run of the fuzzing bodies: small valid files, changed with a fixed pseudorandom
//! sequence; and each format truncated at every byte. No panic, bounded memory, a correct result or
//! an error.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};

use synthetic_dumps::Synthetic;
use synthetic_dumps::damage::{Numbers, ODD, changed, tiny};
use vmcore::fuzzing::{self, Form, What};
use vmcore::{Codec, Dump, Io, Reader};

type Outcome = Result<(), Box<dyn Error>>;

thread_local! {
    /// Bytes that this thread has allocated, and their maximum.
    static USED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(change: impl Fn(usize) -> usize) {
    // A thread is not counted while it ends.
    USED.try_with(|used| {
        let now = change(used.get().0);
        used.set((now, used.get().1.max(now)));
    })
    .ok();
}

// SAFETY: it does what the system's allocator does; counting does not allocate, for the counters
// are const.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|used| used + layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(|used| used + layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(|used| (used + size).saturating_sub(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(|used| used.saturating_sub(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Most bytes that a body may allocate beside its input: those for the largest supported dump.
const MEMORY_MAX: usize = 48 << 20;

/// Runs a body and reports its input if it allocated too much memory.
fn bounded(what: &str, body: impl FnOnce()) {
    let before = USED.get().0;
    USED.set((before, before));
    body();
    let most = USED.get().1 - before;
    assert!(most <= MEMORY_MAX, "{what}: {most} bytes");
}

/// Runs a body on changed seeds.
fn fuzz(what: &str, seeds: &[Vec<u8>], times: usize, mut body: impl FnMut(&[u8])) {
    for (n, seed) in seeds.iter().enumerate() {
        let mut numbers = Numbers::new(n as u64);
        for round in 0..times {
            let bytes = if round == 0 {
                seed.clone()
            } else {
                changed(seed, &mut numbers)
            };
            bounded(&format!("{what}, seed {n}, round {round}"), || body(&bytes));
        }
    }
}

const fn file(what: What) -> Form {
    Form {
        what,
        flattened: false,
    }
}

const fn flat(what: What) -> Form {
    Form {
        what,
        flattened: true,
    }
}

/// A directory with small valid files.
struct Seeds {
    folder: tempfile::TempDir,
}

impl Seeds {
    fn new() -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("tiny"), tiny())?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the tiny dump in a format.
    fn made(&self, form: Form) -> Result<Vec<u8>, Box<dyn Error>> {
        Ok(fuzzing::converted(
            &self.path("tiny"),
            form,
            &self.path("made"),
        )?)
    }
}

/// A small dump with a memory map; as a file, its zeros are many.
fn mapped(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let groups = "0x010+40 anon\n 0x080+3 cache 4\n 0x0c0 free 4\n 0x480 huge 5".to_owned();
    Synthetic {
        groups,
        own: 0x100,
        memory: vec![0..0x50, 0x58..0x4ec],
        ..Synthetic::default()
    }
    .write(path)?;
    Ok(std::fs::read(path)?)
}

#[test]
fn files_of_all_formats() -> Outcome {
    let seeds = Seeds::new()?;
    let scratch = seeds.path("scratch");
    let elf = [tiny(), seeds.made(file(What::Elf))?];
    fuzz("elf", &elf, 1500, |bytes| fuzzing::elf(bytes, &scratch));
    let kdump = [Codec::Zstd, Codec::Zlib, Codec::Snappy, Codec::Lzo]
        .map(|codec| seeds.made(file(What::Kdump(codec))));
    let kdump = kdump.into_iter().collect::<Result<Vec<_>, _>>()?;
    fuzz("kdump", &kdump, 700, |bytes| {
        fuzzing::kdump(bytes, &scratch);
    });
    let flattened = [
        seeds.made(flat(What::Kdump(Codec::Zstd)))?,
        seeds.made(flat(What::Elf))?,
    ];
    fuzz("flattened", &flattened, 1000, |bytes| {
        fuzzing::flattened(bytes, &scratch);
    });
    Ok(())
}

#[test]
fn maps_that_lie() -> Outcome {
    let seeds = Seeds::new()?;
    let scratch = seeds.path("scratch");
    let image = mapped(&seeds.path("mapped"))?;
    let mut numbers = Numbers::new(7);
    for round in 0..60 {
        let changes: Vec<u8> = (0..1 + numbers.below(6))
            .flat_map(|_| {
                let odd = if numbers.below(2) == 0 {
                    ODD[numbers.below(ODD.len())]
                } else {
                    numbers.next()
                };
                [
                    &(numbers.next() as u32).to_le_bytes()[..],
                    &odd.to_le_bytes(),
                ]
                .concat()
            })
            .collect();
        bounded(&format!("image, round {round}"), || {
            fuzzing::image(&image, &changes, &scratch);
        });
    }
    Ok(())
}

#[test]
fn notes_types_and_streams() -> Outcome {
    let seeds = Seeds::new()?;
    mapped(&seeds.path("mapped"))?;
    let dump = Dump::open(&[seeds.path("mapped")])?;
    let text: String = dump
        .info()
        .lines()
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect();
    fuzz(
        "note",
        &[dump.notes().to_vec(), text.into_bytes()],
        4000,
        fuzzing::note,
    );
    let types: [u32; 13] = [
        0x0001_eb9f,
        24,
        0,
        28,
        28,
        13,
        1,
        6 << 24 | 1,
        4,
        1,
        12,
        0,
        0,
    ];
    let mut btf: Vec<u8> = types[..11]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    btf.extend(b"\0PG_reserved\0");
    fuzz("btf", &[btf], 20_000, fuzzing::btf);
    let lzo = [
        &b"\x15abcd\x6e\x00XY\x20\x00\x00\x01\x00\x00"[..],
        &[17, 0, 0],
    ]
    .concat();
    fuzz("lzo", &[lzo], 20_000, fuzzing::lzo);
    Ok(())
}

/// Truncates a file at every byte: readable pages are correct, and missing ones are detected.
fn cut(seeds: &Seeds, whole: &[u8], original: &[Option<Vec<u8>>]) -> Outcome {
    let path = seeds.path("cut");
    std::fs::write(&path, whole)?;
    let file = File::options().write(true).open(&path)?;
    let mut complete = 0;
    for length in (0..=whole.len()).rev() {
        file.set_len(length as u64)?;
        let Ok(dump) = Dump::open(std::slice::from_ref(&path)) else {
            continue;
        };
        let mut reader = Reader::new(&dump, Io::Read);
        let mut all = true;
        for (page, content) in original.iter().enumerate() {
            let Some(content) = content else { continue };
            match reader.bytes(page as u64 * 4096, 4096) {
                // A segment that ends within a page is padded with zeros, and the file is marked as
                // incomplete.
                Ok(found) => {
                    let same = found
                        .iter()
                        .zip(content)
                        .all(|(found, was)| found == was || *found == 0 && dump.incomplete());
                    assert!(same, "{length}: page {page}");
                    all &= found == content;
                }
                Err(_) => all = false,
            }
        }
        complete += usize::from(all && !dump.incomplete());
        // A truncated kdump file reports it only when its pages are read.
        let elf = whole.starts_with(b"\x7fELF");
        assert!(!elf || all || dump.incomplete(), "{length}");
    }
    assert!((1..whole.len()).contains(&complete), "{complete}");
    Ok(())
}

#[test]
fn each_format_cut_off_at_every_byte() -> Outcome {
    let seeds = Seeds::new()?;
    let tiny = tiny();
    let page = |n: usize| Some(tiny[n * 4096..][..4096].to_vec());
    let original = [
        None,
        page(1),
        page(2),
        page(3),
        None,
        None,
        page(4),
        page(5),
    ];
    cut(&seeds, &tiny, &original)?;
    for form in [
        file(What::Kdump(Codec::Zstd)),
        file(What::Kdump(Codec::Lzo)),
        flat(What::Kdump(Codec::Zstd)),
        flat(What::Elf),
    ] {
        cut(&seeds, &seeds.made(form)?, &original)?;
    }
    Ok(())
}
