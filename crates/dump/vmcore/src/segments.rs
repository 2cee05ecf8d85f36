//! Physical memory of an ELF vmcore: segments by address, without overlaps.
//!
//! A file may have a million of them and a capture kernel has little memory, so they are packed:
//! each is stored as its differences from the one before, which are small. Unsorted ones are
//! sorted in parts, which are then merged.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// The kernel's text on x86-64 has virtual addresses from here on (`__START_KERNEL_map`).
const TEXT: u64 = 0xffff_ffff_8000_0000;
/// Segments that are packed together, and unpacked to find one.
const CHUNK: usize = 16;
/// Segments that are sorted at once.
const SORTED: usize = 4096;
/// Segments begin and end at pages, so the bits within a page are 0 in most differences.
const SHIFT: u32 = 12;
const PAGE_BITS: u64 = (1 << SHIFT) - 1;

/// A piece of physical memory and its location in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    pub(crate) fn end(&self) -> u64 {
        self.start + self.memory
    }

    /// Returns the part of it with these addresses.
    fn part(&self, range: Range<u64>) -> Self {
        let skipped = range.start - self.start;
        let memory = range.end - range.start;
        Self {
            start: range.start,
            memory,
            stored: self.stored.saturating_sub(skipped).min(memory),
            offset: self.offset.saturating_add(skipped),
            address: self.address.wrapping_add(skipped),
        }
    }
}

/// A segment, and its rank among those that overlap it: the lowest counts.
#[derive(Debug, Clone, Default)]
struct Ranked {
    segment: Segment,
    rank: u64,
}

/// Some packed segments.
#[derive(Debug)]
struct Chunk {
    /// The highest address after one of them.
    end: u64,
    bytes: Box<[u8]>,
}

/// Packs segments in the order of their start.
#[derive(Debug, Default)]
struct Packer {
    chunks: Vec<Chunk>,
    bytes: Vec<u8>,
    /// Number of segments in `bytes`.
    count: usize,
    last: Ranked,
    end: u64,
    overlaps: bool,
}

impl Packer {
    fn push(&mut self, next: Ranked) {
        self.overlaps |= next.segment.start < self.end;
        self.end = self.end.max(next.segment.end());
        if self.count == CHUNK {
            self.close();
        }
        let before = if self.count == 0 {
            &Ranked::default()
        } else {
            &self.last
        };
        pack(&mut self.bytes, before, &next);
        self.count += 1;
        self.last = next;
    }

    fn close(&mut self) {
        let end = self.end;
        let bytes = Box::from(self.bytes.as_slice());
        self.chunks.push(Chunk { end, bytes });
        self.bytes.clear();
        self.count = 0;
    }

    fn finish(mut self) -> Vec<Chunk> {
        if self.count > 0 {
            self.close();
        }
        self.chunks
    }
}

/// Appends a segment as its differences from the one before.
fn pack(bytes: &mut Vec<u8>, before: &Ranked, next: &Ranked) {
    let (old, new) = (&before.segment, &next.segment);
    let differences = [
        new.start.wrapping_sub(old.end()),
        new.memory,
        new.stored.wrapping_sub(new.memory),
        new.offset.wrapping_sub(old.offset.wrapping_add(old.stored)),
        (new.address.wrapping_sub(new.start)).wrapping_sub(old.address.wrapping_sub(old.start)),
    ];
    for difference in differences {
        put_number(bytes, fold_pages(difference));
    }
    let rank = next.rank.wrapping_sub(before.rank).wrapping_sub(1);
    put_number(bytes, zigzag(rank));
}

/// Reads the segment at the front of `bytes`, and removes it there.
fn unpack(bytes: &mut &[u8], before: &Ranked) -> Option<Ranked> {
    let mut next = || take_number(bytes).map(unfold_pages);
    let old = &before.segment;
    let start = next()?.wrapping_add(old.end());
    let memory = next()?;
    let stored = next()?.wrapping_add(memory);
    let offset = next()?.wrapping_add(old.offset.wrapping_add(old.stored));
    let above = next()?.wrapping_add(old.address.wrapping_sub(old.start));
    let rank = unzigzag(take_number(bytes)?);
    Some(Ranked {
        segment: Segment {
            start,
            memory,
            stored,
            offset,
            address: above.wrapping_add(start),
        },
        rank: rank.wrapping_add(before.rank).wrapping_add(1),
    })
}

/// Makes small numbers of differences close to 0 of either sign.
fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64) >> 63) as u64
}

fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

/// Makes small numbers of differences that are a few pages of either sign: the bits within a page
/// come last, and are 0 for whole pages.
fn fold_pages(difference: u64) -> u64 {
    let number = zigzag(difference);
    let sign = number & 1;
    let pages = (number >> 1) ^ (sign * PAGE_BITS);
    (pages >> SHIFT | (pages & PAGE_BITS) << (63 - SHIFT)) << 1 | sign
}

fn unfold_pages(number: u64) -> u64 {
    let sign = number & 1;
    let pages = (number >> 1) << SHIFT & u64::MAX >> 1 | number >> (64 - SHIFT);
    unzigzag((pages ^ (sign * PAGE_BITS)) << 1 | sign)
}

/// Appends a number with seven bits per byte, the lowest first.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The segments of a chunk.
struct ChunkSegments<'c> {
    bytes: &'c [u8],
    last: Ranked,
}

impl Iterator for ChunkSegments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        self.last = unpack(&mut self.bytes, &self.last)?;
        Some(self.last.segment.clone())
    }
}

/// Reads packed segments, and frees each chunk behind it.
#[derive(Debug)]
struct Run {
    chunks: std::vec::IntoIter<Chunk>,
    bytes: Box<[u8]>,
    at: usize,
    last: Ranked,
}

impl Iterator for Run {
    type Item = Ranked;

    fn next(&mut self) -> Option<Ranked> {
        if self.at >= self.bytes.len() {
            self.bytes = self.chunks.next()?.bytes;
            self.at = 0;
            self.last = Ranked::default();
        }
        let mut rest = &self.bytes[self.at..];
        self.last = unpack(&mut rest, &self.last)?;
        self.at = self.bytes.len() - rest.len();
        Some(self.last.clone())
    }
}

/// Several runs, as one in the order of their starts.
#[derive(Debug)]
struct Merge {
    runs: Vec<Run>,
    /// The next segment of each run.
    heads: Vec<Option<Ranked>>,
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Merge {
    fn new(mut runs: Vec<Run>) -> Self {
        let heads: Vec<Option<Ranked>> = runs.iter_mut().map(Run::next).collect();
        let order = heads.iter().enumerate();
        let order = order
            .filter_map(|(n, head)| Some(Reverse((head.as_ref()?.segment.start, n))))
            .collect();
        Self { runs, heads, order }
    }

    /// Returns where the next segment starts.
    fn start(&self) -> Option<u64> {
        self.order.peek().map(|Reverse((start, _))| *start)
    }

    fn take(&mut self) -> Option<Ranked> {
        let Reverse((_, n)) = self.order.pop()?;
        let next = self.runs[n].next();
        if let Some(next) = &next {
            self.order.push(Reverse((next.segment.start, n)));
        }
        std::mem::replace(&mut self.heads[n], next)
    }
}

/// Collects segments in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    count: u64,
    /// The last ones, not yet sorted.
    last: Vec<Ranked>,
    runs: Vec<Packer>,
}

impl Collector {
    pub(crate) fn push(&mut self, segment: Segment) {
        if segment.memory == 0 {
            return;
        }
        // The text last, because its addresses are not those of the direct map.
        let text = u64::from(segment.address >= TEXT) << 32;
        let rank = text | self.count;
        self.count += 1;
        self.last.push(Ranked { segment, rank });
        if self.last.len() == SORTED {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.last.sort_by_key(|next| next.segment.start);
        let Some(first) = self.last.first() else {
            return;
        };
        let start = first.segment.start;
        let run = self.runs.last();
        if run.is_none_or(|run| run.last.segment.start > start) {
            self.runs.push(Packer::default());
        }
        if let Some(run) = self.runs.last_mut() {
            self.last.drain(..).for_each(|next| run.push(next));
        }
    }

    /// Returns the segments. Of overlapping ones the first in the file counts, and the kernel's
    /// text last.
    pub(crate) fn finish(mut self) -> Segments {
        self.sort();
        drop(std::mem::take(&mut self.last));
        if let [run] = self.runs.as_slice()
            && !run.overlaps
        {
            let chunks = self.runs.pop().map(Packer::finish).unwrap_or_default();
            return Segments { chunks };
        }
        let runs = self.runs.into_iter().map(|run| Run {
            chunks: run.finish().into_iter(),
            bytes: Box::default(),
            at: 0,
            last: Ranked::default(),
        });
        resolve(Merge::new(runs.collect()))
    }
}

/// Removes overlaps.
fn resolve(mut merge: Merge) -> Segments {
    let mut packer = Packer::default();
    // Those that begin before `at`, by rank; some have ended.
    let mut active: BTreeMap<u64, Segment> = BTreeMap::new();
    // Where the last one starts that is not yet packed, and up to where it counts.
    let mut pending: Option<(Ranked, Range<u64>)> = None;
    let mut at = 0;
    loop {
        while merge.start().is_some_and(|start| start <= at) {
            let Some(Ranked { segment, rank }) = merge.take() else {
                break;
            };
            // Most overlaps are of this kind: the text, and memory that is listed twice.
            let is_covered = active
                .first_key_value()
                .is_some_and(|(first, other)| *first < rank && other.end() >= segment.end());
            if !is_covered {
                active.insert(rank, segment);
            }
        }
        while let Some(first) = active.first_entry()
            && first.get().end() <= at
        {
            first.remove();
        }
        let next = merge.start();
        let Some((rank, segment)) = active.first_key_value() else {
            match next {
                Some(start) => at = start,
                None => break,
            }
            continue;
        };
        let until = segment.end().min(next.unwrap_or(u64::MAX));
        match &mut pending {
            Some((last, range)) if last.rank == *rank && range.end == at => range.end = until,
            _ => {
                let (rank, segment) = (*rank, segment.clone());
                let begun = pending.replace((Ranked { segment, rank }, at..until));
                push_part(&mut packer, begun);
            }
        }
        at = until;
    }
    push_part(&mut packer, pending);
    Segments {
        chunks: packer.finish(),
    }
}

fn push_part(packer: &mut Packer, part: Option<(Ranked, Range<u64>)>) {
    if let Some((Ranked { segment, rank }, range)) = part {
        let segment = segment.part(range);
        packer.push(Ranked { segment, rank });
    }
}

/// Segments by address, without overlaps.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    chunks: Vec<Chunk>,
}

impl FromIterator<Segment> for Segments {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        let mut all = Collector::default();
        segments.into_iter().for_each(|segment| all.push(segment));
        all.finish()
    }
}

impl Segments {
    /// Returns the segment with `address`, or the next one above it.
    pub(crate) fn from(&self, address: u64) -> Option<Segment> {
        self.all_from(address).next()
    }

    /// Returns the segment with `address`, or the next one above it, and all above that.
    pub(crate) fn all_from(&self, address: u64) -> impl Iterator<Item = Segment> + '_ {
        let first = self.chunks.partition_point(|chunk| chunk.end <= address);
        (first..self.chunks.len())
            .flat_map(|n| self.chunk(n))
            .skip_while(move |segment| segment.end() <= address)
    }

    /// Returns the segments of a chunk.
    pub(crate) fn chunk(&self, n: usize) -> impl Iterator<Item = Segment> + '_ {
        ChunkSegments {
            bytes: self.chunks.get(n).map_or(&[][..], |chunk| &chunk.bytes),
            last: Ranked::default(),
        }
    }

    /// Returns the address after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.chunks.last().map_or(0, |chunk| chunk.end)
    }

    /// Returns the pages with some of the memory, merged, as page numbers, of those that `within`
    /// has; a range may begin before and end behind.
    pub(crate) fn pages(
        &self,
        page: u64,
        which: Which,
        within: Range<u64>,
    ) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut ranges = self
            .all_from(within.start.saturating_mul(page))
            .take_while(move |segment| segment.start / page < within.end)
            .filter_map(move |segment| {
                let length = match which {
                    Which::Memory => segment.memory,
                    Which::Stored => segment.stored,
                };
                let end = (segment.start + length).div_ceil(page);
                (length > 0).then_some(segment.start / page..end)
            })
            .peekable();
        std::iter::from_fn(move || {
            let mut range = ranges.next()?;
            while let Some(next) = ranges.next_if(|next| next.start <= range.end) {
                range.end = range.end.max(next.end);
            }
            Some(range)
        })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{Ranked, SORTED, Segment, Segments, TEXT, fold_pages, pack, unfold_pages, unpack};

    /// Returns where an address is in the file, by the first of the segments that has it.
    fn first_offset(loads: &[Segment], address: u64) -> Option<u64> {
        let texts = loads.iter().filter(|load| load.address >= TEXT);
        let direct = loads.iter().filter(|load| load.address < TEXT);
        direct
            .chain(texts)
            .find(|load| load.start <= address && address < load.end())
            .map(|load| load.offset + (address - load.start))
    }

    proptest! {
        /// For any segments, each address is found in the first one of the file that has it.
        #[test]
        fn the_first_of_the_file_counts(
            loads in prop::collection::vec((0_u64..100, 0_u64..30), 0..40),
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
                    address: if n < first_text { 0 } else { TEXT },
                })
                .collect();
            let segments: Segments = loads.iter().cloned().collect();
            for address in 0..140 {
                let found = segments.from(address).filter(|s| s.start <= address);
                assert_eq!(
                    found.map(|s| s.offset + (address - s.start)),
                    first_offset(&loads, address)
                );
            }
            let all: Vec<Segment> = segments.all_from(0).collect();
            assert!(all.is_sorted_by(|one, other| one.end() <= other.start));
        }

        #[test]
        fn packed_segments_are_unpacked_unchanged(
            numbers in prop::collection::vec(any::<(u64, u64, u64, u64)>(), 1..20),
        ) {
            let most = 1 << 52;
            let mut before = Ranked::default();
            for (start, memory, stored, other) in numbers {
                let segment = Segment {
                    start: start % most,
                    memory: memory % most,
                    stored: stored % most,
                    offset: other,
                    address: start ^ other,
                };
                let next = Ranked { segment, rank: memory >> 40 };
                let mut bytes = Vec::new();
                pack(&mut bytes, &before, &next);
                let mut rest = bytes.as_slice();
                let read = unpack(&mut rest, &before).unwrap();
                assert_eq!((&read.segment, read.rank), (&next.segment, next.rank));
                assert!(rest.is_empty());
                before = next;
            }
        }
    }

    #[test]
    fn few_pages_of_either_sign_are_small() {
        for pages in [0_u64, 1, 7, 300] {
            for difference in [pages << 12, (pages << 12).wrapping_neg()] {
                let number = fold_pages(difference);
                assert!(number <= 2 * pages + 1, "{difference:#x}: {number:#x}");
                assert_eq!(unfold_pages(number), difference);
            }
        }
    }

    /// Segments of a page each with a hole behind it, in an order by a step.
    fn many(step: u64) -> Vec<Segment> {
        let count = 10 * SORTED as u64 + 1;
        (0..count)
            .map(|n| n * step % count)
            .map(|n| Segment {
                start: n * 8192,
                memory: 4096,
                stored: 4096,
                offset: n * 4096,
                address: 0xffff_8880_0000_0000 + n * 8192,
            })
            .collect()
    }

    #[test]
    fn unsorted_segments_equal_sorted_ones() {
        let sorted = many(1);
        let segments: Segments = many(11).into_iter().collect();
        assert_ne!(many(11), sorted);
        assert_eq!(segments.all_from(0).collect::<Vec<_>>(), sorted);
    }

    #[test]
    fn packed_segments_need_little_memory() {
        let sorted = many(1);
        let segments: Segments = sorted.iter().cloned().collect();
        let bytes: usize = segments.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        let plain = size_of_val(sorted.as_slice());
        assert!(bytes * 4 < plain, "{bytes} of {plain} bytes");
    }
}
