//! kdump-compressed files: headers, bitmaps, page descriptors, and the pages, compressed one by
//! one.
//!
//! One file, or the files of a split set. `output` writes them.

use std::ops::Range;
use std::path::Path;

use crate::bits;
use crate::bytes::{array, put, u32_at, u32_or_zero, u64_at, u64_or_zero};
use crate::checksums::{Checks, SEAL, SUM, SUM_MARK, content_sum, seal};
use crate::compress::{Codec, Decompressor};
use crate::error::{DumpError, MemoryError};
use crate::machine::Machine;
use crate::note::{self, Info};
use crate::storage::Storage;
use crate::syscall_counts::Counted;

/// The signature of a file.
pub(crate) const SIGNATURE: &[u8; 8] = b"KDUMP   ";
/// Size of the descriptor of a page, in bytes.
pub(crate) const DESCRIPTOR: usize = 24;
/// Status: the writer did not finish.
pub(crate) const INCOMPLETE: u32 = 8;
/// Size of the second header, in bytes.
pub(crate) const SUB_HEADER: usize = 104;
/// Offsets of the fields of the two headers.
pub(crate) mod field {
    pub(crate) const VERSION: usize = 8;
    pub(crate) const UTSNAME: usize = 12;
    pub(crate) const UTSNAME_PART: usize = 65;
    pub(crate) const TIME: usize = 408;
    pub(crate) const STATUS: usize = 424;
    pub(crate) const BLOCK_SIZE: usize = 428;
    pub(crate) const SUB_BLOCKS: usize = 432;
    pub(crate) const BITMAP_BLOCKS: usize = 436;
    pub(crate) const MAX_MAPNR: usize = 440;
    pub(crate) const NR_CPUS: usize = 460;

    pub(crate) const PHYS_BASE: usize = 0;
    pub(crate) const LEVEL: usize = 8;
    pub(crate) const SPLIT: usize = 12;
    pub(crate) const START_PFN: usize = 16;
    pub(crate) const END_PFN: usize = 24;
    pub(crate) const INFO: usize = 32;
    pub(crate) const NOTES: usize = 48;
    pub(crate) const ERASED: usize = 64;
    pub(crate) const START_PFN_64: usize = 80;
    pub(crate) const END_PFN_64: usize = 88;
    pub(crate) const MAX_MAPNR_64: usize = 96;
}

/// Limit of memory: each page has a bit, and the bits are counted.
const MEMORY_MAX: u64 = 128 << 40;
/// Limit of the bytes before the bitmaps: the largest notes, and more than is beside them.
const HEADS_MAX: u64 = 65 << 20;
/// Bytes of the bitmaps that are read at once.
const BITMAP_PIECE: usize = 256 << 10;
/// Pages of one lookup: their bits and descriptors are cached.
const CHUNK: u64 = 4096;

/// The headers of a file.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) machine: Machine,
    /// uname's names, as in the file.
    names: Vec<u8>,
    pub(crate) status: u32,
    pub(crate) page: u64,
    pub(crate) sub_blocks: u64,
    /// Blocks of one of the two bitmaps.
    pub(crate) bitmap_blocks: u64,
    pub(crate) pages: u64,
    pub(crate) level: u32,
    /// The pages of this file, if it belongs to a split set.
    pub(crate) split: Option<Range<u64>>,
    pub(crate) notes: Vec<u8>,
    /// What the file's checksums say.
    pub(crate) checks: Checks,
    /// The text of the note, if it is not among the notes.
    pub(crate) info: Vec<u8>,
    /// The erase info, as text.
    pub(crate) erased: Vec<u8>,
}

/// Returns the machine of `uname`, the fifth of its names.
fn machine_name(header: &[u8]) -> String {
    let start = field::UTSNAME + 4 * field::UTSNAME_PART;
    let name = header
        .get(start..start + field::UTSNAME_PART)
        .unwrap_or_default();
    String::from_utf8_lossy(name)
        .trim_end_matches('\0')
        .to_owned()
}

fn unknown_machine(path: &Path, machine: &str) -> DumpError {
    DumpError::Unknown {
        path: path.to_owned(),
        what: format!("a kdump file of a machine `{}`", machine.escape_default()),
    }
}

impl Header {
    /// Reads both headers and the notes.
    pub(crate) fn read(storage: &Storage) -> Result<Self, DumpError> {
        let path = storage.path();
        let first = storage.bytes(0, 464, "the kdump header")?;
        let page = u64::from(u32_or_zero(&first, field::BLOCK_SIZE));
        let machine = machine_name(&first);
        let named = Machine::from_name(&machine);
        // What QEMU writes for Arm (`ELF_MACHINE_UNAME`, dump/dump.c).
        if named.is_none() && (machine != "Unknown" || !Machine::Aarch64.has_pages_of(page)) {
            return Err(unknown_machine(path, &machine));
        }
        let mut header = Self {
            version: u32_or_zero(&first, field::VERSION),
            machine: named.unwrap_or(Machine::Aarch64),
            names: first
                .get(field::UTSNAME..field::UTSNAME + 6 * field::UTSNAME_PART)
                .unwrap_or_default()
                .to_vec(),
            status: u32_or_zero(&first, field::STATUS),
            page,
            sub_blocks: u64::from(u32_or_zero(&first, field::SUB_BLOCKS)),
            bitmap_blocks: u64::from(u32_or_zero(&first, field::BITMAP_BLOCKS)) / 2,
            pages: u64::from(u32_or_zero(&first, field::MAX_MAPNR)),
            level: 0,
            split: None,
            notes: Vec::new(),
            checks: Checks::default(),
            info: Vec::new(),
            erased: Vec::new(),
        };
        header.check_page(storage)?;
        header.read_second(storage)?;
        if named.is_none() {
            header.machine = Machine::from_info(&header.info())
                .ok_or_else(|| unknown_machine(path, &machine))?;
            header.check_page(storage)?;
        }
        header.check(storage)?;
        header.verify(storage)?;
        Ok(header)
    }

    /// Verifies the checksums of headers and notes: with one wrong bit other pages would be excluded
    /// when the file is filtered again.
    fn verify(&mut self, storage: &Storage) -> Result<(), DumpError> {
        // A damaged number of blocks may be any.
        let length = self.bitmap().min(storage.size()).min(HEADS_MAX);
        let mut heads = vec![0; usize::try_from(length).unwrap_or_default()];
        storage.fill_known(0, &mut heads)?;
        let at = usize::try_from(self.page).unwrap_or(usize::MAX);
        let second = heads.get(at..).unwrap_or_default();
        let number = |at| usize::try_from(u64_or_zero(second, at)).unwrap_or(usize::MAX);
        let start = number(field::NOTES);
        let notes = start..start.saturating_add(number(field::NOTES + 8));
        self.checks = Checks::make(&heads, notes, &self.erased);
        Ok(())
    }

    fn read_second(&mut self, storage: &Storage) -> Result<(), DumpError> {
        let second = storage.bytes(self.page, SUB_HEADER as u64, "the second kdump header")?;
        self.level = u32_at(&second, field::LEVEL).unwrap_or_default();
        if self.version >= 6 {
            self.pages = u64_or_zero(&second, field::MAX_MAPNR_64);
        }
        if self.version >= 2 && u32_at(&second, field::SPLIT) == Some(1) {
            let (start, end) = if self.version >= 6 {
                (field::START_PFN_64, field::END_PFN_64)
            } else {
                (field::START_PFN, field::END_PFN)
            };
            self.split = Some(u64_or_zero(&second, start)..u64_or_zero(&second, end));
        }
        if self.version >= 4 && u64_or_zero(&second, field::NOTES) > 0 {
            self.notes = storage.bytes(
                u64_or_zero(&second, field::NOTES),
                u64_or_zero(&second, field::NOTES + 8),
                "the notes",
            )?;
        }
        if self.version >= 3 && u64_or_zero(&second, field::INFO) > 0 {
            self.info = storage.bytes(
                u64_or_zero(&second, field::INFO),
                u64_or_zero(&second, field::INFO + 8),
                "the VMCOREINFO text",
            )?;
        }
        let at = u64_or_zero(&second, field::ERASED);
        let size = u64_or_zero(&second, field::ERASED + 8);
        // It is last in the file and only informative: a truncated one is no reason to fail.
        if self.version >= 5
            && size > 0
            && at
                .checked_add(size)
                .is_some_and(|end| end <= storage.size())
        {
            self.erased = storage.bytes(at, size, "the text on what was erased")?;
        }
        Ok(())
    }

    /// Returns the kernel's description of its layout.
    pub(crate) fn info(&self) -> Info {
        let within = note::vmcoreinfo(&self.notes).map(|range| Info::parse(&self.notes[range]));
        within.unwrap_or_else(|| Info::parse(&self.info))
    }

    fn check_page(&self, storage: &Storage) -> Result<(), DumpError> {
        if self.machine.has_pages_of(self.page) {
            return Ok(());
        }
        let what = format!(
            "pages of {} bytes, which {} does not have",
            self.page,
            self.machine.name()
        );
        Err(storage.malformed(field::BLOCK_SIZE as u64, what))
    }

    fn check(&self, storage: &Storage) -> Result<(), DumpError> {
        if self.pages > MEMORY_MAX / self.page {
            let what = format!("{} pages, beyond any machine's", self.pages);
            return Err(storage.malformed(field::MAX_MAPNR as u64, what));
        }
        if self.pages > self.bitmap_blocks * self.page * 8 {
            let what = format!(
                "bitmaps of {} blocks for {} pages",
                self.bitmap_blocks, self.pages
            );
            return Err(storage.malformed(field::BITMAP_BLOCKS as u64, what));
        }
        Ok(())
    }

    /// Returns the offset of the bitmap of memory; that of stored pages follows.
    fn bitmap(&self) -> u64 {
        (1 + self.sub_blocks) * self.page
    }

    fn bitmap_size(&self) -> u64 {
        self.bitmap_blocks * self.page
    }

    fn descriptors(&self) -> u64 {
        self.bitmap() + 2 * self.bitmap_size()
    }
}

#[derive(Debug)]
struct Part {
    storage: Storage,
    header: Header,
    /// The pages whose descriptors are here.
    range: Range<u64>,
    /// The number of its stored pages before each chunk of the range.
    ranks: Vec<u64>,
}

/// The pages of a kdump file or a split set.
#[derive(Debug)]
pub(crate) struct Pages {
    parts: Vec<Part>,
}

impl Pages {
    /// Combines files that belong together.
    pub(crate) fn new(files: Vec<(Storage, Header)>) -> Result<Self, DumpError> {
        let mut parts = Vec::new();
        for (storage, header) in files {
            let range = header.split.clone().unwrap_or(0..header.pages);
            if range.start > range.end || range.end > header.pages {
                let what = format!("pages {} to {} of {}", range.start, range.end, header.pages);
                return Err(storage.malformed(header.page + field::START_PFN_64 as u64, what));
            }
            let mut part = Part {
                storage,
                header,
                range,
                ranks: Vec::new(),
            };
            part.rank()?;
            parts.push(part);
        }
        parts.sort_by_key(|part| part.range.start);
        for pair in parts.windows(2) {
            let one = &pair[0];
            let other = &pair[1];
            one.belongs_to(other)?;
            if one.range.end > other.range.start {
                let what = format!(
                    "holds pages that {} holds too",
                    one.storage.path().display()
                );
                return Err(DumpError::malformed(other.storage.path(), 0, what));
            }
        }
        Ok(Self { parts })
    }

    /// Returns the first pages that no file has: one of a split set is missing.
    pub(crate) fn missing(&self) -> Option<Range<u64>> {
        let starts = self
            .parts
            .iter()
            .map(|part| part.range.start)
            .chain(self.header().map(|header| header.pages));
        let ends = std::iter::once(0).chain(self.parts.iter().map(|part| part.range.end));
        ends.zip(starts)
            .map(|(end, start)| end..start)
            .find(|range| range.start < range.end)
    }

    /// Returns the header of the first file.
    pub(crate) fn header(&self) -> Option<&Header> {
        self.parts.first().map(|part| &part.header)
    }

    /// Returns the size of a block in bytes. It is that of a page, but for QEMU's files of Arm: the
    /// largest that Arm has.
    pub(crate) fn block_size(&self) -> u64 {
        self.header().map_or(4096, |header| header.page)
    }

    /// Returns whether the first file is flattened.
    pub(crate) fn flattened(&self) -> bool {
        self.parts
            .first()
            .is_some_and(|part| part.storage.flattened())
    }

    /// Returns the number of system calls on the files.
    pub(crate) fn calls(&self) -> Counted {
        self.parts.iter().fold(Counted::default(), |sum, part| {
            sum.plus(part.storage.calls().counted())
        })
    }

    /// Returns the path of the first file.
    pub(crate) fn path(&self) -> &Path {
        self.parts
            .first()
            .map_or(Path::new(""), |part| part.storage.path())
    }

    /// Sets the bits of pages that were memory, from page `first`.
    pub(crate) fn memory(&self, first: u64, words: &mut [u64]) -> Result<(), DumpError> {
        let Some(part) = self.parts.first() else {
            return Ok(());
        };
        // A stored page was memory, regardless of the other bitmap.
        self.stored(first, words)?;
        let mut own = vec![0; words.len()];
        part.bitmap(Bitmap::Memory, first, &mut own)?;
        words
            .iter_mut()
            .zip(own)
            .for_each(|(word, own)| *word |= own);
        Ok(())
    }

    /// Sets the bits of stored pages, from page `first`.
    pub(crate) fn stored(&self, first: u64, words: &mut [u64]) -> Result<(), DumpError> {
        words.fill(0);
        let mut own = vec![0; words.len()];
        for part in &self.parts {
            let end = first + words.len() as u64 * 64;
            if part.range.start < end && first < part.range.end {
                part.bitmap(Bitmap::Stored, first, &mut own)?;
                let mut mask = vec![0; words.len()];
                bits::set_ranges(&mut mask, first, std::iter::once(part.range.clone()));
                words
                    .iter_mut()
                    .zip(own.iter().zip(mask))
                    .for_each(|(word, (own, mask))| *word |= own & mask);
            }
        }
        Ok(())
    }

    fn part(&self, page: u64) -> Option<(usize, &Part)> {
        let n = self.parts.partition_point(|part| part.range.end <= page);
        self.parts
            .get(n)
            .filter(|part| part.range.contains(&page))
            .map(|part| (n, part))
    }
}

#[derive(Clone, Copy)]
enum Bitmap {
    Memory,
    Stored,
}

impl Part {
    /// Counts the stored pages before each chunk.
    fn rank(&mut self) -> Result<(), DumpError> {
        let header = &self.header;
        if header.descriptors() > self.storage.size() {
            let path = self.storage.path().to_owned();
            let size = self.storage.size();
            return Err(DumpError::Truncated {
                path,
                what: "the bitmaps",
                end: header.descriptors(),
                size,
            });
        }
        self.check_bitmaps()?;
        // One number for each chunk, 8 bytes for 16 MiB, makes every page one lookup away.
        let mut count = 0;
        let mut words = [0; CHUNK as usize / 64];
        let mut at = self.range.start;
        while at < self.range.end {
            self.ranks.push(count);
            self.bitmap(Bitmap::Stored, at, &mut words)?;
            let inside = usize::try_from(self.range.end - at).unwrap_or(usize::MAX);
            bits::clear(&mut words, inside..usize::MAX);
            count += bits::count(&words);
            at += CHUNK;
        }
        Ok(())
    }

    /// Verifies the checksum of the bitmaps, if there is one: with one wrong bit every later page
    /// would be another.
    fn check_bitmaps(&self) -> Result<(), DumpError> {
        let mut sum = [0; SUM];
        let place = self.header.bitmap() - SUM as u64;
        self.storage.fill_known(place, &mut sum)?;
        let Some(expected) = sum.strip_prefix(SUM_MARK) else {
            return Ok(());
        };
        let mut found = crc32fast::Hasher::new();
        let mut at = self.header.bitmap();
        let end = self.header.descriptors();
        let mut bytes = vec![0; BITMAP_PIECE];
        while at < end {
            let length = usize::try_from(end - at)
                .unwrap_or(BITMAP_PIECE)
                .min(BITMAP_PIECE);
            self.storage.fill_known(at, &mut bytes[..length])?;
            found.update(&bytes[..length]);
            at += length as u64;
        }
        if expected == found.finalize().to_le_bytes() {
            return Ok(());
        }
        let what = "the bitmaps are damaged: their checksum is wrong; copy the file again";
        Err(self
            .storage
            .malformed(self.header.bitmap(), what.to_owned()))
    }

    /// Refuses a file that belongs to another dump.
    fn belongs_to(&self, other: &Self) -> Result<(), DumpError> {
        let one = &self.header;
        let two = &other.header;
        let what = if (one.page, one.pages, one.bitmap_blocks)
            != (two.page, two.pages, two.bitmap_blocks)
        {
            "sizes"
        } else if one.names != two.names {
            "names of the system"
        } else if one.notes != two.notes || one.info != two.info {
            "notes"
        } else if !self.has_bitmaps_of(other)? {
            "bitmaps"
        } else {
            return Ok(());
        };
        let what = format!(
            "is of another dump than {}: their {what} differ",
            self.storage.path().display()
        );
        Err(DumpError::malformed(other.storage.path(), 0, what))
    }

    /// Returns whether both bitmaps equal those of another file with as many pages.
    fn has_bitmaps_of(&self, other: &Self) -> Result<bool, DumpError> {
        let mut words = [[0; CHUNK as usize / 64]; 2];
        for which in [Bitmap::Memory, Bitmap::Stored] {
            let mut at = 0;
            while at < self.header.pages {
                self.bitmap(which, at, &mut words[0])?;
                other.bitmap(which, at, &mut words[1])?;
                if words[0] != words[1] {
                    return Ok(false);
                }
                at += CHUNK;
            }
        }
        Ok(true)
    }

    /// Reads bits from page `first`, at any multiple of 8 and, for split files, any number.
    fn bitmap(&self, which: Bitmap, first: u64, words: &mut [u64]) -> Result<(), DumpError> {
        let header = &self.header;
        let start = match which {
            Bitmap::Memory => header.bitmap(),
            Bitmap::Stored => header.bitmap() + header.bitmap_size(),
        };
        words.fill(0);
        let skip = first / 8;
        let shift = first % 8;
        let available = header.bitmap_size().saturating_sub(skip);
        let wanted = words.len() * 8 + usize::from(shift > 0);
        let mut bytes =
            vec![0; usize::try_from(available).map_or(wanted, |available| wanted.min(available))];
        self.storage.fill(start + skip, &mut bytes)?;
        for (n, word) in words.iter_mut().enumerate() {
            let mut wide = [0; 16];
            let from = bytes.get(n * 8..).unwrap_or_default();
            let length = from.len().min(9);
            wide[..length].copy_from_slice(&from[..length]);
            *word = (u128::from_le_bytes(wide) >> shift) as u64;
        }
        // Bits after the last page are meaningless.
        let inside = usize::try_from(header.pages.saturating_sub(first)).unwrap_or(usize::MAX);
        bits::clear(words, inside..usize::MAX);
        Ok(())
    }
}

/// Where a page's data is, by its descriptor, unchecked.
struct Data {
    offset: u64,
    size: u32,
    flags: u32,
}

/// Reads pages of a kdump file, and caches its last lookup.
#[derive(Debug, Default)]
pub(crate) struct PageReader {
    /// The chunk and file of the cache.
    chunk: Option<(usize, u64)>,
    words: Vec<u64>,
    descriptors: Vec<u8>,
    packed: Vec<u8>,
    decompressor: Decompressor,
}

impl PageReader {
    /// Reads a page into `buffer`, which is one page long.
    pub(crate) fn read(
        &mut self,
        pages: &Pages,
        page: u64,
        buffer: &mut [u8],
    ) -> Result<(), MemoryError> {
        let address = page * buffer.len() as u64;
        let (n, part) = pages.part(page).ok_or(MemoryError::Absent(address))?;
        let chunk = (page - part.range.start) / CHUNK;
        if self.chunk != Some((n, chunk)) {
            // A chunk that was loaded in part is no chunk.
            self.chunk = None;
            self.load(part, chunk)
                .map_err(|error| unreadable(address, 0, &error))?;
            self.chunk = Some((n, chunk));
        }
        let bit = usize::try_from((page - part.range.start) % CHUNK).unwrap_or_default();
        if !bits::has(&self.words, bit) {
            return Err(MemoryError::Absent(address));
        }
        // Descriptors are dense: a page's is behind those of the stored pages before it.
        let mut before = self.words[..bit / 64].to_vec();
        before.push(self.words[bit / 64] & ((1 << (bit % 64)) - 1));
        let at = usize::try_from(bits::count(&before)).unwrap_or_default() * DESCRIPTOR;
        let descriptor: [u8; DESCRIPTOR] =
            array(&self.descriptors, at).ok_or(MemoryError::Absent(address))?;
        self.unpack(part, &descriptor, page, buffer)
    }

    fn load(&mut self, part: &Part, chunk: u64) -> Result<(), DumpError> {
        let first = part.range.start + chunk * CHUNK;
        self.words.resize(CHUNK as usize / 64, 0);
        part.bitmap(Bitmap::Stored, first, &mut self.words)?;
        bits::clear(
            &mut self.words,
            usize::try_from(part.range.end - first).unwrap_or(usize::MAX)..usize::MAX,
        );
        let rank = usize::try_from(chunk)
            .ok()
            .and_then(|chunk| part.ranks.get(chunk))
            .copied()
            .unwrap_or_default();
        let length = usize::try_from(bits::count(&self.words)).unwrap_or_default() * DESCRIPTOR;
        self.descriptors.resize(length, 0);
        let at = part.header.descriptors() + rank * DESCRIPTOR as u64;
        let available = usize::try_from(part.storage.size().saturating_sub(at))
            .unwrap_or(usize::MAX)
            .min(length);
        // Truncated descriptors are zero, like missing ones of an incomplete file.
        self.descriptors[available..].fill(0);
        part.storage
            .fill_known(at, &mut self.descriptors[..available])
            .map(drop)
    }

    fn unpack(
        &mut self,
        part: &Part,
        descriptor: &[u8; DESCRIPTOR],
        page: u64,
        buffer: &mut [u8],
    ) -> Result<(), MemoryError> {
        let address = page * buffer.len() as u64;
        let offset = u64_at(descriptor, 0).unwrap_or_default();
        let size = u32_at(descriptor, 8).unwrap_or_default();
        let flags = u32_at(descriptor, 12).unwrap_or_default();
        let is_sealed = part.header.checks.are_pages_sealed;
        if offset == 0 && (!is_sealed || *descriptor == [0; DESCRIPTOR]) {
            // An incomplete file: its writer did not reach this page.
            return Err(MemoryError::Absent(address));
        }
        let data = Data {
            offset,
            size,
            flags,
        };
        let found = u64_at(descriptor, SEAL).unwrap_or_default();
        let content = found as u32;
        let result = if is_sealed && found != seal(descriptor, page, content) {
            Err("a page whose descriptor is damaged: its checksum is wrong".to_owned())
        } else {
            self.unpack_data(part, data, buffer)
                .and_then(|()| match is_sealed {
                    true if content != content_sum(&self.packed) => {
                        Err("a page that is damaged: its checksum is wrong".to_owned())
                    }
                    _ => Ok(()),
                })
        };
        result.map_err(|what| MemoryError::Unreadable {
            address,
            offset: part.storage.place(offset),
            what,
        })
    }

    /// Unpacks the data of a page; an error says what is wrong with it.
    fn unpack_data(&mut self, part: &Part, data: Data, buffer: &mut [u8]) -> Result<(), String> {
        let Data {
            offset,
            size,
            flags,
        } = data;
        let Some(codec) = Codec::from_flag(flags) else {
            return Err(format!(
                "a page with flags {flags:#x}, of no compression that is known"
            ));
        };
        // A compressed page is smaller than a page, or it would be stored uncompressed.
        let size = usize::try_from(size)
            .ok()
            .filter(|size| (1..=buffer.len() * 2).contains(size));
        let size = size.ok_or("a page of an impossible size")?;
        if offset
            .checked_add(size as u64)
            .is_none_or(|end| end > part.storage.size())
        {
            return Err(format!(
                "a page beyond the end of the file, which has {:#x} bytes",
                part.storage.size()
            ));
        }
        self.packed.resize(size, 0);
        part.storage
            .fill(offset, &mut self.packed)
            .map_err(|error| error.to_string())?;
        let unpacked = self.decompressor.decompress(codec, &self.packed, buffer);
        unpacked.ok_or_else(|| {
            format!(
                "a page that {} cannot unpack to {} bytes",
                codec.name(),
                buffer.len()
            )
        })
    }
}

fn unreadable(address: u64, offset: u64, error: &DumpError) -> MemoryError {
    MemoryError::Unreadable {
        address,
        offset,
        what: error.to_string(),
    }
}

/// Where the data of a page is, for its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    /// No more than a page.
    pub(crate) size: u32,
    pub(crate) codec: Codec,
    /// See [`content_sum`].
    pub(crate) sum: u32,
}

/// Returns the descriptor of page number `page`.
pub(crate) fn descriptor(page: u64, place: &Place) -> [u8; DESCRIPTOR] {
    let mut bytes = [0; DESCRIPTOR];
    put(&mut bytes, 0, place.offset.to_le_bytes());
    put(&mut bytes, 8, place.size.to_le_bytes());
    put(&mut bytes, 12, place.codec.flag().to_le_bytes());
    let seal = seal(&bytes, page, place.sum);
    put(&mut bytes, SEAL, seal.to_le_bytes());
    bytes
}
