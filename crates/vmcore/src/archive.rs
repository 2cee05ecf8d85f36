//! Archives: the smallest form of a dump, written sequentially and read at random. Blocks of pages are compressed
//! independently; `docs/archive.md` specifies every byte.
//!
//! This module has the file's parts and opens archives. `blocks` reads pages, `output` writes archives.

pub(crate) mod blocks;
pub(crate) mod table;

use std::ops::Range;
use std::path::Path;

use crate::archive::table::Entry;
use crate::bits;
use crate::bytes::{array, put, u32_at, u64_at};
use crate::compress::Codec;
use crate::error::DumpError;
use crate::machine::Machine;
use crate::storage::Storage;

/// Magic numbers of an archive, its blocks, its index and its end.
pub(crate) const SIGNATURE: &[u8; 8] = b"MDUMPARC";
const BLOCK: &[u8; 8] = b"MDUMPBLK";
const INDEX: &[u8; 8] = b"MDUMPIDX";
const END: &[u8; 8] = b"MDUMPEND";
/// Raise it if old readers would misunderstand a file.
const VERSION: u32 = 1;
/// Sizes of the header without notes and memory, of a block's head, of an entry of the index and of the end, in bytes.
const HEADER: usize = 512;
pub(crate) const HEAD: usize = 64;
pub(crate) const PLACE: usize = 32;
pub(crate) const TRAILER: usize = 64;
/// The end says that pages are missing.
const INCOMPLETE: u32 = 1;
/// Offsets of the header's fields.
mod field {
    pub(super) const VERSION: usize = 8;
    pub(super) const SIZE: usize = 12;
    pub(super) const PAGE: usize = 16;
    pub(super) const MACHINE: usize = 20;
    pub(super) const LEVEL: usize = 24;
    pub(super) const BLOCK: usize = 28;
    pub(super) const PAGES: usize = 32;
    pub(super) const NOTES: usize = 40;
    pub(super) const RANGES: usize = 44;
    pub(super) const NAMES: usize = 48;
    pub(super) const ERASED: usize = 440;
    pub(super) const NAME: usize = 65;
    pub(super) const SUM: usize = 508;
}
/// Most bytes of memory, as in kdump files.
const MEMORY_MAX: u64 = 128 << 40;
/// Largest unpacked block, in bytes.
const BLOCK_MAX: u64 = 4 << 20;
/// Most ranges of memory, and most bytes of all notes and of the erase info.
pub(crate) const RANGES_MAX: usize = 1 << 20;
pub(crate) const NOTES_MAX: usize = 16 << 20;
/// Most bytes of a block's table.
const TABLE_MAX: u32 = 1 << 20;
/// Most blocks.
const BLOCKS_MAX: u64 = 2 << 20;

/// The header of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) machine: Machine,
    pub(crate) page: u64,
    /// The number after the last page.
    pub(crate) pages: u64,
    pub(crate) level: u32,
    /// Most pages of data of a block.
    pub(crate) block: u64,
    /// Names of the system, as `uname` has them.
    pub(crate) names: [String; 6],
    pub(crate) notes: Vec<u8>,
    /// The erase info: what was erased before writing, as text.
    pub(crate) erased: Vec<u8>,
    /// The pages of memory, in order.
    pub(crate) memory: Vec<Range<u64>>,
}

impl Header {
    /// Returns the bytes of the file from its beginning to the first block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.resize(HEADER, 0);
        bytes.extend(&self.notes);
        bytes.extend(&self.erased);
        bytes
            .extend(self.memory.iter().flat_map(|range| [range.start.to_le_bytes(), range.end.to_le_bytes()].concat()));
        // Notes and ranges are bounded: all of these are small.
        for (at, number) in [
            (field::VERSION, u64::from(VERSION)),
            (field::SIZE, bytes.len() as u64),
            (field::PAGE, self.page),
            (field::MACHINE, u64::from(self.machine.elf())),
            (field::LEVEL, u64::from(self.level)),
            (field::BLOCK, self.block),
            (field::NOTES, self.notes.len() as u64),
            (field::ERASED, self.erased.len() as u64),
            (field::RANGES, self.memory.len() as u64),
        ] {
            put(&mut bytes, at, (number as u32).to_le_bytes());
        }
        put(&mut bytes, field::PAGES, self.pages.to_le_bytes());
        for (n, name) in self.names.iter().enumerate() {
            let (at, length) = (field::NAMES + n * field::NAME, name.len().min(field::NAME - 1));
            bytes[at..at + length].copy_from_slice(&name.as_bytes()[..length]);
        }
        let sum = Self::sum(&bytes);
        put(&mut bytes, field::SUM, sum.to_le_bytes());
        bytes
    }

    fn sum(bytes: &[u8]) -> u32 {
        let (own, rest) = bytes.split_at(HEADER);
        sum(&[&own[..field::SUM], rest])
    }

    /// Reads the header; returns it and its size in bytes.
    fn read(storage: &Storage) -> Result<(Self, u64), DumpError> {
        let what = "the archive's header";
        let own = storage.bytes(0, HEADER as u64, what)?;
        let number = |at| u32_at(&own, at).unwrap_or_default();
        let wrong = |at: usize, what: String| DumpError::malformed(storage.path(), at as u64, what);
        let [size, notes, erased, ranges] =
            [field::SIZE, field::NOTES, field::ERASED, field::RANGES].map(|at| number(at) as usize);
        if number(field::VERSION) != VERSION {
            let what = format!("an archive of version {}; this program knows {VERSION}", number(field::VERSION));
            return Err(wrong(field::VERSION, what));
        }
        if notes > NOTES_MAX
            || erased > NOTES_MAX
            || ranges > RANGES_MAX
            || size != HEADER + notes + erased + ranges * 16
        {
            return Err(wrong(
                field::SIZE,
                format!("a header of {size} bytes, with {notes} of notes and {ranges} ranges"),
            ));
        }
        let bytes = storage.bytes(0, size as u64, what)?;
        if Self::sum(&bytes) != number(field::SUM) {
            return Err(wrong(
                field::SUM,
                "the header is damaged: its checksum is wrong; copy the file again".to_owned(),
            ));
        }
        let machine = u16::try_from(number(field::MACHINE)).ok().and_then(Machine::from_elf);
        let machine = machine.ok_or_else(|| wrong(field::MACHINE, format!("machine {}", number(field::MACHINE))))?;
        let names = [0, 1, 2, 3, 4, 5].map(|n| {
            let at = field::NAMES + n * field::NAME;
            String::from_utf8_lossy(&bytes[at..at + field::NAME]).trim_end_matches('\0').to_owned()
        });
        let header = Self {
            machine,
            page: u64::from(number(field::PAGE)),
            pages: u64_at(&bytes, field::PAGES).unwrap_or_default(),
            level: number(field::LEVEL),
            block: u64::from(number(field::BLOCK)),
            names,
            notes: bytes[HEADER..HEADER + notes].to_vec(),
            erased: bytes[HEADER + notes..HEADER + notes + erased].to_vec(),
            memory: bytes[HEADER + notes + erased..].chunks_exact(16).filter_map(range).collect(),
        };
        header.check().map_err(|(at, what)| wrong(at, what))?;
        Ok((header, size as u64))
    }

    fn check(&self) -> Result<(), (usize, String)> {
        if !self.machine.has_pages_of(self.page) {
            return Err((field::PAGE, format!("pages of {} bytes", self.page)));
        }
        if self.pages > MEMORY_MAX / self.page {
            return Err((field::PAGES, format!("{} pages, beyond any machine's", self.pages)));
        }
        if self.block == 0 || self.block * self.page > BLOCK_MAX {
            return Err((field::BLOCK, format!("blocks of {} pages", self.block)));
        }
        let mut end = 0;
        for range in &self.memory {
            if range.start < end || range.end <= range.start || range.end > self.pages {
                let at = HEADER + self.notes.len() + self.erased.len();
                return Err((at, format!("memory in pages {} to {} of {}", range.start, range.end, self.pages)));
            }
            end = range.end;
        }
        Ok(())
    }
}

fn range(bytes: &[u8]) -> Option<Range<u64>> {
    Some(u64_at(bytes, 0)?..u64_at(bytes, 8)?)
}

/// The head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its first page, and the number after its last.
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// Number of pages in its table, and of those with data.
    pub(crate) pages: u32,
    pub(crate) data: u32,
    /// Bytes of the table and of the packed data.
    pub(crate) table: u32,
    pub(crate) packed: u32,
    pub(crate) codec: Codec,
    /// Checksum of the packed data.
    pub(crate) sum: u32,
}

impl Head {
    /// Returns the size of the block in the file.
    pub(crate) fn size(&self) -> u64 {
        HEAD as u64 + u64::from(self.table) + u64::from(self.packed)
    }

    /// Returns the bytes of the head.
    pub(crate) fn encode(&self, table: &[u8]) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        put(&mut bytes, 0, *BLOCK);
        put(&mut bytes, 8, self.first.to_le_bytes());
        put(&mut bytes, 16, self.end.to_le_bytes());
        let numbers = [self.pages, self.data, self.table, self.packed, self.codec.flag(), self.sum];
        for (n, number) in numbers.into_iter().enumerate() {
            put(&mut bytes, 24 + n * 4, number.to_le_bytes());
        }
        let all = sum(&[&bytes[..60], table]);
        put(&mut bytes, 60, all.to_le_bytes());
        bytes
    }

    /// Reads head and table at an offset; `None` if they are invalid.
    fn read(storage: &Storage, offset: u64) -> Result<Option<(Self, Vec<u8>)>, DumpError> {
        let mut bytes = [0; HEAD];
        if storage.size().saturating_sub(offset) < HEAD as u64 {
            return Ok(None);
        }
        storage.fill(offset, &mut bytes)?;
        let number = |at| u32_at(&bytes, at).unwrap_or_default();
        let Some(codec) = Codec::from_flag(number(40)) else { return Ok(None) };
        let head = Self {
            first: u64_at(&bytes, 8).unwrap_or_default(),
            end: u64_at(&bytes, 16).unwrap_or_default(),
            pages: number(24),
            data: number(28),
            table: number(32),
            packed: number(36),
            codec,
            sum: number(44),
        };
        let there = storage.size() - offset;
        if !bytes.starts_with(BLOCK) || head.table > TABLE_MAX || head.size() > there || head.first >= head.end {
            return Ok(None);
        }
        let mut table = vec![0; head.table as usize];
        storage.fill(offset + HEAD as u64, &mut table)?;
        Ok((sum(&[&bytes[..60], &table]) == number(60)).then_some((head, table)))
    }
}

/// The location of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub(crate) offset: u64,
    /// Its first page, and the number after its last.
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// Its bytes in the file, and the pages in its table.
    pub(crate) size: u32,
    pub(crate) pages: u32,
}

impl BlockEntry {
    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            offset: u64_at(bytes, 0)?,
            first: u64_at(bytes, 8)?,
            end: u64_at(bytes, 16)?,
            size: u32_at(bytes, 24)?,
            pages: u32_at(bytes, 28)?,
        })
    }

    /// Returns the entry of a block at an offset.
    pub(crate) fn of(offset: u64, head: &Head) -> Self {
        // A table and a block's data: far below 4 GiB, and within the file.
        Self { offset, first: head.first, end: head.end, size: head.size() as u32, pages: head.pages }
    }
}

/// Returns index and end of an archive whose blocks, sorted by page, end at offset `at`.
pub(crate) fn index(places: &[BlockEntry], at: u64, incomplete: bool) -> Vec<u8> {
    let mut bytes = INDEX.to_vec();
    for place in places {
        bytes.extend([place.offset, place.first, place.end].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend([place.size, place.pages].into_iter().flat_map(u32::to_le_bytes));
    }
    let mut end = [0; TRAILER];
    put(&mut end, 0, at.to_le_bytes());
    put(&mut end, 8, (places.len() as u64).to_le_bytes());
    put(&mut end, 16, places.iter().map(|place| u64::from(place.pages)).sum::<u64>().to_le_bytes());
    put(&mut end, 24, if incomplete { INCOMPLETE } else { 0 }.to_le_bytes());
    put(&mut end, 28, sum(&[&bytes]).to_le_bytes());
    put(&mut end, 56, *END);
    let own = sum(&[&end[..52], &end[56..]]);
    put(&mut end, 52, own.to_le_bytes());
    bytes.extend(end);
    bytes
}

/// Returns the CRC-32 of some bytes, as in zlib.
pub(crate) fn sum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// An open archive.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) storage: Storage,
    pub(crate) header: Header,
    /// By page, without overlaps.
    places: Vec<BlockEntry>,
    /// It is truncated, its index is damaged, or its end says that pages are missing.
    pub(crate) incomplete: bool,
}

impl Archive {
    /// Reads header and index; if the index is invalid, the heads of all blocks from the first on.
    pub(crate) fn open(storage: Storage) -> Result<Self, DumpError> {
        let (header, start) = Header::read(&storage)?;
        let (places, incomplete) = match read_index(&storage, &header, start)? {
            Some(found) => found,
            None => (walk(&storage, &header, start)?, true),
        };
        Ok(Self { storage, header, places, incomplete })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        self.storage.path()
    }

    /// Returns number and entry of the block that would contain a page.
    fn place(&self, page: u64) -> Option<(usize, &BlockEntry)> {
        let n = self.places.partition_point(|place| place.end <= page);
        self.places.get(n).filter(|place| place.first <= page).map(|place| (n, place))
    }

    /// Reads the head and the table of a block, or returns why it cannot be read.
    fn table(&self, n: usize) -> Result<(Head, Vec<Entry>), String> {
        let damaged = || format!("block {n} is damaged: the checksum of its table is wrong");
        let place = self.places.get(n).ok_or_else(damaged)?;
        let (head, table) =
            Head::read(&self.storage, place.offset).map_err(|error| error.to_string())?.ok_or_else(damaged)?;
        let entries = table::decode(&table, &head)
            .filter(|_| BlockEntry::of(place.offset, &head) == *place && u64::from(head.data) <= self.header.block);
        Ok((head, entries.ok_or_else(|| format!("block {n} is wrong: its table does not fit"))?))
    }

    /// Sets the bits of pages that were memory, from page `first`.
    pub(crate) fn memory(&self, first: u64, words: &mut [u64]) {
        words.fill(0);
        bits::set_ranges(words, first, &self.header.memory);
    }

    /// Sets the bits of stored pages, from page `first`. In a damaged block all memory counts as stored, so that
    /// reading it gives the reason.
    pub(crate) fn stored(&self, first: u64, words: &mut [u64]) {
        words.fill(0);
        let end = first + words.len() as u64 * 64;
        let within = |page: u64| usize::try_from(page.clamp(first, end) - first).unwrap_or(usize::MAX);
        let from = self.places.partition_point(|place| place.end <= first);
        for (n, place) in self.places.iter().enumerate().skip(from).take_while(|(_, place)| place.first < end) {
            match self.table(n) {
                Ok((_, entries)) => {
                    for entry in entries {
                        bits::set(words, within(entry.page)..within(entry.page + 1));
                    }
                }
                Err(_) => {
                    let mut all = vec![0; words.len()];
                    bits::set_ranges(&mut all, first, &self.header.memory);
                    bits::clear(&mut all, 0..within(place.first));
                    bits::clear(&mut all, within(place.end)..usize::MAX);
                    words.iter_mut().zip(all).for_each(|(word, all)| *word |= all);
                }
            }
        }
    }
}

/// Reads the index, and whether the end says that pages are missing; `None` if it is invalid.
fn read_index(storage: &Storage, header: &Header, start: u64) -> Result<Option<(Vec<BlockEntry>, bool)>, DumpError> {
    let mut end = [0; TRAILER];
    let Some(at) = storage.size().checked_sub(TRAILER as u64).filter(|at| *at >= start) else { return Ok(None) };
    storage.fill(at, &mut end)?;
    let numbers = [0, 8].map(|at| u64_at(&end, at).unwrap_or_default());
    let [flags, index_sum, own] = [24, 28, 52].map(|at| u32_at(&end, at).unwrap_or_default());
    let [offset, count] = numbers;
    let sound = array(&end, 56) == Some(*END) && sum(&[&end[..52], &end[56..]]) == own;
    if !sound || count > BLOCKS_MAX || offset.checked_add(8 + count * PLACE as u64) != Some(at) {
        return Ok(None);
    }
    let bytes = storage.bytes(offset, at - offset, "the index")?;
    if !bytes.starts_with(INDEX) || sum(&[&bytes]) != index_sum {
        return Ok(None);
    }
    let places: Vec<BlockEntry> = bytes[8..].chunks_exact(PLACE).filter_map(BlockEntry::decode).collect();
    let inside = |place: &BlockEntry| place.offset.checked_add(u64::from(place.size)).is_some_and(|end| end <= offset);
    let sound = places.iter().all(inside) && in_order(&places, header);
    Ok(sound.then_some((places, flags & INCOMPLETE != 0)))
}

fn in_order(places: &[BlockEntry], header: &Header) -> bool {
    let mut end = 0;
    places.iter().all(|place| {
        let sound = place.first >= end && place.first < place.end && place.end <= header.pages;
        end = place.end;
        sound
    })
}

/// Finds the complete blocks of a truncated archive.
fn walk(storage: &Storage, header: &Header, start: u64) -> Result<Vec<BlockEntry>, DumpError> {
    let (mut places, mut at): (Vec<BlockEntry>, u64) = (Vec::new(), start);
    while let Some((head, _)) = Head::read(storage, at)? {
        places.push(BlockEntry::of(at, &head));
        at += head.size();
        if places.len() as u64 > BLOCKS_MAX {
            return Err(DumpError::malformed(storage.path(), at, "more blocks than any archive has"));
        }
    }
    places.sort_by_key(|place| place.first);
    if !in_order(&places, header) {
        return Err(DumpError::malformed(storage.path(), start, "its blocks hold the same pages twice"));
    }
    Ok(places)
}
