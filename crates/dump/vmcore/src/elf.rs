//! ELF vmcores: headers, program headers, notes, and the file offset of each piece of physical
//! memory.
//!
//! Includes QEMU's, whose program headers are not after the ELF header (`e_phoff`), and files with
//! more than 65535 of them.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::bytes::{u16_or_zero, u32_at, u64_or_zero};
use crate::error::DumpError;
use crate::machine::{Machine, elf_name};
use crate::storage::Storage;

/// Size of a 64-bit program header, in bytes.
pub(crate) const PROGRAM_HEADER: usize = 56;
/// Offset of the flags in the ELF header, and the flag of an incomplete dump
/// (`DUMP_ELF_INCOMPLETE`, makedumpfile's `elf_info.h`).
pub(crate) const FLAGS: usize = 48;
pub(crate) const INCOMPLETE: u32 = 1;
const ET_CORE: u16 = 4;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// Stands for a number of program headers that does not fit; the first section header then has it.
pub(crate) const PN_XNUM: u16 = 0xffff;
/// Most program headers: one for every other 4 MiB of 64 TiB.
const HEADERS_MAX: u64 = 1 << 20;
/// Program headers that are read at once.
const HEADERS_PIECE: u64 = 1024;
/// Bits of the longest physical address of the supported architectures.
pub(crate) const ADDRESS_MAX: u64 = 1 << 52;

/// A piece of physical memory and its location in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) memory: u64,
    /// Its bytes in the file; the rest was left out.
    pub(crate) stored: u64,
    pub(crate) offset: u64,
    /// Virtual address in the file.
    pub(crate) address: u64,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start + self.memory
    }
}

/// The headers of an ELF vmcore.
#[derive(Debug)]
pub(crate) struct Elf {
    pub(crate) machine: Machine,
    pub(crate) loads: Vec<Segment>,
    pub(crate) notes: Vec<u8>,
    /// The file is truncated, or marked as incomplete.
    pub(crate) incomplete: bool,
}

pub(crate) fn read(storage: &Storage) -> Result<Elf, DumpError> {
    let header = storage.bytes(0, 64, "the ELF header")?;
    if header[4] != 2 {
        return Err(unknown(storage, "a 32-bit ELF file".to_owned()));
    }
    if header[5] != 1 {
        let machine = u16_or_zero(&header, 18).swap_bytes();
        let what = format!("a big-endian ELF file: {}", elf_name(machine));
        return Err(unknown(storage, what));
    }
    let machine = Machine::from_elf(u16_or_zero(&header, 18))
        .ok_or_else(|| unknown(storage, elf_name(u16_or_zero(&header, 18))))?;
    if u16_or_zero(&header, 16) != ET_CORE {
        return Err(unknown(
            storage,
            format!(
                "an ELF file of type {}, not a core",
                u16_or_zero(&header, 16)
            ),
        ));
    }
    let count = headers(storage, u16_or_zero(&header, 56), u64_or_zero(&header, 40))?;
    let table = u64_or_zero(&header, 32);
    let size = u16_or_zero(&header, 54);
    if usize::from(size) < PROGRAM_HEADER {
        return Err(storage.malformed(54, format!("program headers of {size} bytes")));
    }
    let mut elf = Elf {
        machine,
        loads: Vec::new(),
        notes: Vec::new(),
        incomplete: u32_at(&header, FLAGS) == Some(INCOMPLETE),
    };
    // In pieces: a capture kernel has little memory, and the table may have 56 MiB.
    let mut done = 0;
    while done < count {
        let piece = (count - done).min(HEADERS_PIECE);
        let start = table.saturating_add(done * u64::from(size));
        let bytes = storage.bytes(
            start,
            piece * u64::from(size),
            "the table of program headers",
        )?;
        for (n, header) in bytes.chunks_exact(usize::from(size)).enumerate() {
            elf.program_header(storage, header, start + n as u64 * u64::from(size))?;
        }
        done += piece;
    }
    Ok(elf)
}

fn unknown(storage: &Storage, what: String) -> DumpError {
    DumpError::Unknown {
        path: storage.path().to_owned(),
        what,
    }
}

/// Returns the number of program headers.
fn headers(storage: &Storage, count: u16, sections: u64) -> Result<u64, DumpError> {
    let count = if count == PN_XNUM {
        let section = storage.bytes(sections, 64, "the first section header")?;
        // sh_info
        u64::from(u32_at(&section, 44).unwrap_or_default())
    } else {
        u64::from(count)
    };
    if count == 0 || count > HEADERS_MAX {
        return Err(storage.malformed(56, format!("{count} program headers")));
    }
    Ok(count)
}

impl Elf {
    fn program_header(
        &mut self,
        storage: &Storage,
        header: &[u8],
        at: u64,
    ) -> Result<(), DumpError> {
        let offset = u64_or_zero(header, 8);
        let stored = u64_or_zero(header, 32);
        let memory = u64_or_zero(header, 40);
        match u32_at(header, 0) {
            Some(PT_NOTE) if self.notes.len() as u64 + stored.min(NOTES_MAX + 1) > NOTES_MAX => {
                return Err(storage.malformed(at, "more than 16 MiB of notes".to_owned()));
            }
            Some(PT_NOTE) => self
                .notes
                .extend(storage.bytes(offset, stored, "the notes")?),
            Some(PT_LOAD) => {
                let start = u64_or_zero(header, 24);
                let memory = memory.max(stored);
                if start == u64::MAX {
                    // Virtual memory of /proc/kcore without a fixed physical address
                    // (`update_kcore_size` and `read_kcore_iter` in
                    // fs/proc/kcore.c).
                    return Ok(());
                }
                if start
                    .checked_add(memory)
                    .is_none_or(|end| end > ADDRESS_MAX)
                {
                    let what = format!(
                        "memory from {start:#x} of {memory:#x} bytes, beyond any machine's"
                    );
                    return Err(storage.malformed(at, what));
                }
                // Truncated dumps are accepted: there may be no other record of the crash.
                let stored_here = storage.size().saturating_sub(offset).min(stored);
                self.incomplete |= stored_here < stored;
                self.loads.push(Segment {
                    start,
                    memory,
                    stored: stored_here,
                    offset,
                    address: u64_or_zero(header, 16),
                });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Limit of all notes in bytes: those of thousands of processors.
const NOTES_MAX: u64 = 16 << 20;
/// The kernel's text on x86-64 has virtual addresses from here on (`__START_KERNEL_map`).
const TEXT: u64 = 0xffff_ffff_8000_0000;

/// Physical memory of an ELF vmcore: its segments by address, without overlaps.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    list: Vec<Segment>,
}

/// Most pieces while overlaps are resolved.
const PIECES_MAX: usize = 1 << 24;

impl Segments {
    /// Sorts segments. Of overlapping ones the first in the file counts, and the kernel's text
    /// last, because its addresses are not those of the direct map.
    ///
    /// # Errors
    /// If they overlap so often that no program can have written them.
    pub(crate) fn new(mut loads: Vec<Segment>) -> Result<Self, &'static str> {
        loads.retain(|load| load.memory > 0);
        // As kernels write them, but for their text: without a tree, which takes as much again.
        if loads.is_sorted_by(|one, other| one.end() <= other.start) {
            loads.shrink_to_fit();
            return Ok(Self { list: loads });
        }
        let is_text = |load: &Segment| load.address >= TEXT;
        let direct = loads.iter().filter(|load| !is_text(load));
        if direct.is_sorted_by(|one, other| one.end() <= other.start) {
            return Ok(Self::with_text(loads));
        }
        // By end address, which finds overlaps at once.
        let mut by_end: BTreeMap<u64, Segment> = BTreeMap::new();
        let (text, direct): (Vec<&Segment>, Vec<_>) = loads.iter().partition(|load| is_text(load));
        let mut pieces = 0;
        for load in direct.into_iter().chain(text) {
            let mut rest = Some(load.clone());
            while let Some(segment) = rest.take() {
                pieces += 1;
                if pieces > PIECES_MAX {
                    return Err("segments that lie above each other without end");
                }
                let other = by_end
                    .range(segment.start + 1..)
                    .next()
                    .map(|(end, other)| (other.start, *end));
                match other.filter(|(start, _)| *start < segment.end()) {
                    None => drop(by_end.insert(segment.end(), segment)),
                    Some((start, end)) => {
                        if segment.start < start {
                            let before = part(&segment, segment.start..start);
                            by_end.insert(before.end(), before);
                        }
                        if end < segment.end() {
                            rest = Some(part(&segment, end..segment.end()));
                        }
                    }
                }
            }
        }
        Ok(Self {
            list: by_end.into_values().collect(),
        })
    }

    /// Makes them of segments that are sorted and do not overlap, but for the kernel's text.
    fn with_text(mut loads: Vec<Segment>) -> Self {
        let text: Vec<Segment> = loads.extract_if(.., |load| load.address >= TEXT).collect();
        let mut all = Self { list: loads };
        for segment in text {
            // The parts of it that no other has.
            let mut parts = Vec::new();
            let mut at = segment.start;
            while at < segment.end() {
                let next = all.from(at);
                let start = next.map_or(segment.end(), |other| other.start.min(segment.end()));
                if start > at {
                    parts.push(part(&segment, at..start));
                }
                at = next.map_or(segment.end(), Segment::end);
            }
            all.list.extend(parts);
            all.list.sort_unstable_by_key(|segment| segment.start);
        }
        all
    }

    /// Returns the segment with `address`, or the next one above it.
    pub(crate) fn from(&self, address: u64) -> Option<&Segment> {
        self.list.get(
            self.list
                .partition_point(|segment| segment.end() <= address),
        )
    }

    /// Returns the address after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.list.last().map_or(0, Segment::end)
    }

    /// Returns the pages with some of the memory, merged, as page numbers, of those that `within`
    /// has; a range may begin before and end behind.
    pub(crate) fn pages(&self, page: u64, which: Which, within: Range<u64>) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let first = within.start.saturating_mul(page);
        let from = self.list.partition_point(|segment| segment.end() <= first);
        for segment in &self.list[from..] {
            if segment.start / page >= within.end {
                break;
            }
            let length = match which {
                Which::Memory => segment.memory,
                Which::Stored => segment.stored,
            };
            if length == 0 {
                continue;
            }
            let start = segment.start / page;
            let end = (segment.start + length).div_ceil(page);
            match ranges.last_mut().filter(|last| last.end >= start) {
                Some(last) => last.end = last.end.max(end),
                None => ranges.push(start..end),
            }
        }
        ranges
    }
}

/// The kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// All that existed.
    Memory,
    /// All that the file has.
    Stored,
}

fn part(segment: &Segment, range: Range<u64>) -> Segment {
    let skipped = range.start - segment.start;
    let memory = range.end - range.start;
    Segment {
        start: range.start,
        memory,
        stored: segment.stored.saturating_sub(skipped).min(memory),
        offset: segment.offset.saturating_add(skipped),
        address: segment.address.wrapping_add(skipped),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::{Segment, Segments};

    proptest! {
        /// For any segments, each address is found in the first one of the file that has it.
        #[test]
        fn the_first_of_the_file_counts(
            loads in prop::collection::vec((0_u64..100, 0_u64..30), 0..12),
            is_sorted: bool,
            text: u8,
        ) {
            let mut loads = loads;
            if is_sorted {
                // Without overlaps, as kernels write them.
                loads.sort_unstable();
                loads.dedup_by(|next, last| last.0 + last.1 > next.0);
            }
            let texts = usize::from(text % 3);
            loads.extend((0..texts as u64).map(|n| (20 + 5 * n, 40)));
            let first_text = loads.len() - texts;
            let loads: Vec<Segment> = loads
                .iter()
                .enumerate()
                .map(|(n, (start, memory))| Segment {
                    start: *start,
                    memory: *memory,
                    stored: *memory,
                    offset: 1000 * n as u64,
                    address: if n < first_text { 0 } else { super::TEXT },
                })
                .collect();
            let segments = Segments::new(loads.clone()).unwrap();
            for address in 0..140 {
                let first = loads
                    .iter()
                    .find(|s| s.start <= address && address < s.start + s.memory);
                let found = segments.from(address).filter(|s| s.start <= address);
                assert_eq!(
                    found.map(|s| s.offset + (address - s.start)),
                    first.map(|s| s.offset + (address - s.start))
                );
            }
        }
    }
}
