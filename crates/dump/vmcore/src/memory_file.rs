//! A file with a guest's memory, from QEMU's `memory-backend-file`, read as a dump: it has no
//! header, so the addresses of its bytes are given or guessed.
//!
//! The file is never written. It has no registers, and so the new dump has none.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::dump::Dump;
use crate::elf::ADDRESS_MAX;
use crate::error::DumpError;
use crate::machine::Machine;
use crate::memmap::MemoryMap;
use crate::reader::{Io, Reader};
use crate::search;
use crate::segments::Segment;
use crate::storage::Storage;

/// Where the memory of QEMU's PCs below 4 GiB ends, if they have more: q35 and microvm with much
/// and with little memory, pc with much and with little (`pc_q35_init`, `pc_init1`,
/// `microvm_memory_init`). The guest's memory shows which one it is.
const LOW_ENDS: [u64; 4] = [0x8000_0000, 0xb000_0000, 0xc000_0000, 0xe000_0000];
/// Where the rest of it begins.
const HIGH: u64 = 1 << 32;
/// Where all memory of QEMU's virt begins (`VIRT_MEM`, hw/arm/virt.c).
const VIRT: u64 = 1 << 30;
/// Most notes to try: earlier kernels may have left some.
const NOTES_MAX: usize = 8;
/// Most parts of a guest's memory: those of the NUMA nodes of a large guest.
const PARTS_MAX: usize = 1024;
const PAGE: u64 = 4096;
/// First bytes of files that are dumps already.
const DUMPS: [&[u8]; 2] = [b"KDUMP   ", b"makedumpfile"];
const ELF: &[u8] = b"\x7fELF";
/// Type of an ELF core, and its offset. A microvm's memory begins with the headers of its vmlinux,
/// of another type.
const CORE: (usize, &[u8]) = (16, &[4, 0]);

/// A part of a guest's memory: `FILE`, or `FILE@ADDRESS[+SIZE][:OFFSET]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The file of a guest's memory, as QEMU's `memory-backend-file` keeps it.
    pub path: PathBuf,
    place: Option<FileRange>,
}

/// The location of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileRange {
    /// Physical address in the guest.
    address: u64,
    /// Bytes; `None` for all up to the file's end.
    size: Option<u64>,
    offset: u64,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("name the file of the guest's memory".to_owned());
        }
        // A file name may contain the character too.
        let split = text
            .rsplit_once('@')
            .and_then(|(path, place)| Some((path, FileRange::parse(place)?)));
        Ok(match split.filter(|(path, _)| !path.is_empty()) {
            Some((path, place)) => Self {
                path: path.into(),
                place: Some(place),
            },
            None => Self {
                path: text.into(),
                place: None,
            },
        })
    }
}

impl FileRange {
    fn parse(text: &str) -> Option<Self> {
        let (span, offset) = text.split_once(':').unwrap_or((text, "0"));
        let (address, size) = match span.split_once('+') {
            Some((address, size)) => (address, Some(number(size)?)),
            None => (span, None),
        };
        Some(Self {
            address: number(address)?,
            size,
            offset: number(offset)?,
        })
    }
}

/// Parses a number of bytes: `0x1000`, `4096`, `4K`, `2G`.
fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units
        .into_iter()
        .find_map(|(letter, shift)| Some((text.strip_suffix(letter)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Opens a guest's memory, with the given VMCOREINFO or else the one in the memory.
///
/// # Errors
/// If the file cannot be read, its parts exceed it, or their addresses cannot be found.
pub fn open(parts: &[Part], note: Option<&[u8]>) -> Result<Dump, DumpError> {
    let Some(Part { path, .. }) = parts.first() else {
        let what = "no file of a guest's memory is named";
        return Err(DumpError::Usage(what.to_owned()));
    };
    if let Some(other) = parts.iter().find(|part| part.path != *path) {
        let one = path.display();
        let other = other.path.display();
        return Err(DumpError::Usage(format!(
            "{one} and {other}: the memory of a guest is read from one file only"
        )));
    }
    let storage = Storage::of_memory(path)?;
    let size = storage.size() - storage.size() % PAGE;
    check_file(&storage, size)?;
    let places: Option<Vec<FileRange>> = parts.iter().map(|part| part.place.clone()).collect();
    match places {
        Some(places) => with_note(
            Dump::of_memory(storage, &make_segments(path, size, &places)?),
            note,
        ),
        None if parts.len() > 1 => Err(DumpError::Usage(format!(
            "{} has several parts: say for each where it is, as in {0}@0+2G and {0}@4G:2G",
            path.display()
        ))),
        None => guess_layout(storage, size, note),
    }
}

fn with_note(dump: Dump, note: Option<&[u8]>) -> Result<Dump, DumpError> {
    match note {
        Some(text) => Ok(dump.with_info(text)),
        None => {
            // A note of an earlier kernel may be in memory too; its tables are gone.
            let (dump, _) = try_notes(dump, |dump, text| {
                let dump = dump.with_info(text);
                let found = MemoryMap::find(&mut Reader::new(&dump, Io::Read)).is_ok();
                Ok((dump, found))
            })?;
            Ok(dump)
        }
    }
}

/// Tries the notes in memory one by one until one is valid; returns whether one was.
fn try_notes(
    mut dump: Dump,
    mut attempt: impl FnMut(Dump, &[u8]) -> Result<(Dump, bool), DumpError>,
) -> Result<(Dump, bool), DumpError> {
    let mut from = 0;
    for _ in 0..NOTES_MAX {
        let Some((page, text)) = search::next(&dump, from) else {
            break;
        };
        let right;
        (dump, right) = attempt(dump, &text)?;
        if right {
            return Ok((dump, true));
        }
        from = page + 1;
    }
    Ok((dump, false))
}

/// Chooses the layout that matches the kernel's memory map.
fn guess_layout(storage: Storage, size: u64, note: Option<&[u8]>) -> Result<Dump, DumpError> {
    let pc = layouts(Machine::X86_64, size);
    let dump = Dump::of_memory(storage, pc.first().map(Vec::as_slice).unwrap_or_default());
    let (dump, right) = match note {
        Some(text) => try_layouts(dump, size, text)?,
        None => try_notes(dump, |dump, text| try_layouts(dump, size, text))?,
    };
    if right || pc.len() == 1 {
        return Ok(dump);
    }
    let why = if dump.info().is_empty() {
        "there is no VMCOREINFO in it (--vmcoreinfo FILE gives one)"
    } else {
        "its kernel's memory map agrees with none that QEMU's PCs have"
    };
    let path = dump.path().display();
    Err(DumpError::Usage(format!(
        "cannot find where {path} is in the guest: {why}; give the address of each part, as in --ram {path}@0+2G --ram {path}@4G:2G"
    )))
}

/// Lays memory of `size` bytes out in each way that the machine of a note has, until one fits;
/// returns whether one did.
fn try_layouts(dump: Dump, size: u64, note: &[u8]) -> Result<(Dump, bool), DumpError> {
    let mut dump = dump.with_info(note);
    // The first one again at the end: the search for notes uses it.
    for layout in layouts(dump.machine(), size).iter().rev() {
        dump = dump.laid(layout);
        if fits(&dump) {
            return Ok((dump, true));
        }
    }
    Ok((dump, false))
}

/// Returns whether the kernel has records of all this memory, and of none above it.
fn fits(dump: &Dump) -> bool {
    let Ok(map) = MemoryMap::find(&mut Reader::new(dump, Io::Read)) else {
        return false;
    };
    let pages = map.section_pages();
    dump.extents()
        .flat_map(|extent| extent.start / pages..extent.end.div_ceil(pages))
        .all(|number| map.address(number, number * pages).is_some())
}

/// Returns all layouts of a machine with this much memory: a PC, or QEMU's virt for Arm.
fn layouts(machine: Machine, size: u64) -> Vec<Vec<Segment>> {
    if machine == Machine::Aarch64 {
        return vec![vec![segment(VIRT, 0, size)]];
    }
    let whole = (size <= LOW_ENDS[3]).then(|| vec![segment(0, 0, size)]);
    let split = LOW_ENDS.into_iter().filter(|end| *end < size);
    let split = split.map(|end| vec![segment(0, 0, end), segment(HIGH, end, size - end)]);
    whole.into_iter().chain(split).collect()
}

fn segment(start: u64, offset: u64, size: u64) -> Segment {
    Segment {
        start,
        memory: size,
        stored: size,
        offset,
        address: 0,
    }
}

/// Refuses files that are no guest's memory.
fn check_file(storage: &Storage, size: u64) -> Result<(), DumpError> {
    let path = storage.path();
    if size == 0 {
        let what = format!(
            "it has {} bytes, less than a page of memory",
            storage.size()
        );
        return Err(DumpError::Unknown {
            path: path.to_owned(),
            what,
        });
    }
    let mut start = [0; 18];
    storage.fill(0, &mut start)?;
    let is_core = start.starts_with(ELF) && start[CORE.0..] == *CORE.1;
    if is_core || DUMPS.iter().any(|dump| start.starts_with(dump)) {
        return Err(DumpError::Usage(format!(
            "{} is a dump: name it without --ram",
            path.display()
        )));
    }
    Ok(())
}

/// Returns the given parts.
fn make_segments(path: &Path, size: u64, places: &[FileRange]) -> Result<Vec<Segment>, DumpError> {
    let mut loads: Vec<Segment> = Vec::new();
    for place in places {
        let load = make_segment(size, place, &loads).map_err(|what| {
            let FileRange {
                address, offset, ..
            } = place;
            DumpError::Usage(format!(
                "--ram {}@{address:#x} at offset {offset:#x}: {what}",
                path.display()
            ))
        })?;
        loads.push(load);
    }
    Ok(loads)
}

/// Returns a given part of a file of `size` bytes; an error says what is wrong with it beside the
/// parts before it.
fn make_segment(size: u64, place: &FileRange, loads: &[Segment]) -> Result<Segment, String> {
    let length = place.size.unwrap_or(size.saturating_sub(place.offset));
    if length == 0
        || place
            .offset
            .checked_add(length)
            .is_none_or(|end| end > size)
    {
        return Err(format!("the file has only {size:#x} bytes"));
    }
    if [place.address, place.offset, length]
        .iter()
        .any(|number| number % PAGE != 0)
    {
        return Err("addresses, sizes and offsets are multiples of 4096".to_owned());
    }
    if place
        .address
        .checked_add(length)
        .is_none_or(|end| end > ADDRESS_MAX)
    {
        return Err("no machine has such addresses".to_owned());
    }
    let end = place.address + length;
    if loads
        .iter()
        .any(|load| load.start < end && place.address < load.start + load.memory)
    {
        return Err("another part is there already".to_owned());
    }
    if loads.len() == PARTS_MAX {
        return Err("that are too many parts".to_owned());
    }
    Ok(segment(place.address, place.offset, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::{FileRange, Part, layouts};
    use crate::machine::Machine;

    fn place(text: &str) -> Option<(u64, Option<u64>, u64)> {
        let part: Part = text.parse().unwrap();
        part.place.map(
            |FileRange {
                 address,
                 size,
                 offset,
             }| (address, size, offset),
        )
    }

    #[test]
    fn places_are_read() {
        assert_eq!(place("ram"), None);
        assert_eq!(place("ram@4G"), Some((4 << 30, None, 0)));
        assert_eq!(place("a@b@0+2G"), Some((0, Some(2 << 30), 0)));
        assert_eq!(
            place("ram@0x100000000+4096:2G"),
            Some((4 << 30, Some(4096), 2 << 30))
        );
        for name in ["a@b", "ram@", "ram@4X", "ram@1+2+3", "ram@99999999T", "@4G"] {
            let part: Part = name.parse().unwrap();
            assert_eq!((part.path.to_str(), part.place), (Some(name), None));
        }
    }

    #[test]
    fn layouts_hold_each_byte_once() {
        for (size, count) in [
            (1 << 30, 1),
            (0xb000_0000, 2),
            (0xe000_0000, 4),
            (8 << 30, 4),
        ] {
            let layouts = layouts(Machine::X86_64, size);
            assert_eq!(layouts.len(), count, "{size:#x}");
            for layout in layouts {
                let mut end = 0;
                for load in &layout {
                    assert_eq!(load.offset, end);
                    end += load.memory;
                }
                assert_eq!(end, size);
            }
        }
    }

    proptest! {
        #[test]
        fn no_word_is_too_strange(text in ".{1,40}") {
            let part: Part = text.parse().unwrap();
            assert!(text.starts_with(part.path.to_str().unwrap()));
        }
    }
}
