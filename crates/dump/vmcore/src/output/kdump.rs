//! Writes kdump-compressed files: several threads compress pages and write them into reserved
//! space, in any order, which the format allows. Equal pages are stored once.
//!
//! The file is marked as incomplete until its last header is written, so that a partly written one
//! is usable.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::bits;
use crate::bytes::{index_from, is_zero, put};
use crate::checksums::{MARKS, NOTES_MARK, PAGES_MARK, SUM, SUM_MARK, content_sum, mark_heads};
use crate::compress::{Codec, Compressor};
use crate::dedup::{Pending, Stored, Twins};
use crate::dump::Dump;
use crate::error::{DumpError, MemoryError};
use crate::exclusion::Level;
use crate::kdump::{DESCRIPTOR, INCOMPLETE, Place, SIGNATURE, SUB_HEADER, descriptor, field};
use crate::note;
use crate::output::sink::Sink;
use crate::plan::{Plan, Work, crew, lock};
use crate::reader::Reader;
use crate::window::PIECE_MAX;

/// Bytes that a thread reserves and writes at once: few system calls, and little space lost where
/// two threads' extents meet.
const EXTENT: u64 = 256 << 10;

/// Options of a kdump file.
#[derive(Debug, Clone)]
pub struct Style {
    /// How pages are compressed, each alone.
    pub codec: Codec,
    /// The codec's level, for zlib and zstd; `None` for the default.
    pub effort: Option<i32>,
    /// The level of the filter, which the header names.
    pub level: Level,
    /// The page numbers of this file, if it is one of a split set.
    pub part: Option<Range<u64>>,
    /// Limit of the file's size in bytes.
    pub limit: Option<u64>,
    /// Names of the system, as `uname` has them: system, node, release, version, machine, domain.
    pub names: [String; 6],
}

/// The result of writing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Size of the file in bytes, with its holes.
    pub bytes: u64,
    /// Pages that a reader finds in the file.
    pub pages: u64,
    /// Of these, zero pages.
    pub zero: u64,
    /// Of these, pages that share the data of an equal page.
    pub twins: u64,
    /// Unreadable pages; the file is marked as incomplete.
    pub unreadable: u64,
    /// Why the first unreadable page could not be read.
    pub why: Option<MemoryError>,
    /// The limit was reached; the file is marked as incomplete.
    pub full: bool,
}

impl Written {
    /// Adds the result of another thread or file.
    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.pages += other.pages;
        self.zero += other.zero;
        self.twins += other.twins;
        self.unreadable += other.unreadable;
        self.full |= other.full;
        self.why = self.why.take().or(other.why);
    }
}

/// The offsets of the file's parts.
struct Shape {
    page: u64,
    sub_blocks: u64,
    bitmap_blocks: u64,
    /// Number of pages with descriptors before those of this file.
    skipped: u64,
    descriptors: u64,
    data: u64,
}

impl Shape {
    fn new(dump: &Dump, plan: &Plan<'_>, part: Range<u64>) -> Result<Self, DumpError> {
        let page = dump.page_size();
        let sub_blocks = ((SUB_HEADER + plan.notes().len() + MARKS) as u64).div_ceil(page);
        let bitmap_blocks = dump.pages().div_ceil(8 * page);
        let skipped = kept_before(plan, part.start)?;
        let end = kept_before(plan, part.end)?;
        let descriptors = (1 + sub_blocks + 2 * bitmap_blocks) * page;
        let data = descriptors + (end - skipped) * DESCRIPTOR as u64;
        Ok(Self {
            page,
            sub_blocks,
            bitmap_blocks,
            skipped,
            descriptors,
            data,
        })
    }

    fn bitmap(&self) -> u64 {
        (1 + self.sub_blocks) * self.page
    }
}

/// Returns the number of kept pages before page `page`.
fn kept_before(plan: &Plan<'_>, page: u64) -> Result<u64, DumpError> {
    let mut words = vec![0; plan.words()];
    let mut low = 0;
    let mut high = plan.blocks();
    while low < high {
        let middle = low + (high - low) / 2;
        if plan.pages(middle).end <= page {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if low == plan.blocks() || plan.pages(low).start >= page {
        return Ok(plan.before(low));
    }
    plan.read(low, &mut words)?;
    let inside = usize::try_from(page - plan.pages(low).start).unwrap_or(usize::MAX);
    bits::clear(&mut words, inside..usize::MAX);
    Ok(plan.before(low) + bits::count(&words))
}

/// Writes a plan's pages as a kdump-compressed file, or as one file of a split set. An unreadable
/// page is counted and no error.
///
/// # Errors
/// If headers and bitmaps exceed the limit, or the file cannot be written.
pub fn write(
    plan: &Plan<'_>,
    style: &Style,
    work: &Work,
    sink: &dyn Sink,
) -> Result<Written, DumpError> {
    let dump = plan.dump();
    let part = style.part.clone().unwrap_or(0..dump.pages());
    let shape = Shape::new(dump, plan, part.clone())?;
    let page = usize::try_from(shape.page).unwrap_or_default();
    let erase_info = &dump.erasure().text;
    let needed = shape.data + shape.page + erase_info.len() as u64;
    if let Some(limit) = style.limit.filter(|limit| *limit < needed) {
        return Err(DumpError::Usage(format!(
            "a limit of {limit} bytes: headers and bitmaps alone have {needed}"
        )));
    }
    // An error of the codec before the file is touched.
    drop(Compressor::new(style.codec, style.effort, page)?);
    let mut header = header(plan, style, &shape);
    // Header and bitmaps before any page: an interrupted file is readable as far as it goes.
    sink.write(0, &header)?;
    write_bitmaps(plan, &shape, sink)?;
    // The page of zeros, to which all zero pages refer.
    let zeros = vec![0; page];
    sink.write(shape.data, &zeros)?;
    let job = Job {
        dump,
        plan,
        style,
        shape: &shape,
        sink,
        part,
        next: AtomicUsize::new(0),
        limit: style.limit.map(|limit| limit - erase_info.len() as u64),
        end: AtomicU64::new(shape.data + shape.page),
        used: AtomicU64::new(shape.data + shape.page),
        // Most of the memory is for the bits and the windows.
        twins: Twins::new(work.memory / 16),
        zeros: Place {
            offset: shape.data,
            size: u32::try_from(page).unwrap_or_default(),
            codec: Codec::None,
            sum: content_sum(&zeros),
        },
        written: Mutex::new(Written::default()),
    };
    crew(work.threads, || Writer::new(&job, work)?.run())?;
    let size = job.used.load(Ordering::Relaxed);
    let mut written = lock(&job.written).clone();
    written.bytes = size + erase_info.len() as u64;
    if !erase_info.is_empty() {
        // Behind the data, whose size is known only now.
        sink.write(size, erase_info)?;
        put(&mut header[page..], field::ERASED, size.to_le_bytes());
        put(
            &mut header[page..],
            field::ERASED + 8,
            (erase_info.len() as u64).to_le_bytes(),
        );
        mark_heads(&mut header, page + SUB_HEADER, plan.notes(), erase_info);
    }
    let is_complete = written.unreadable == 0 && !written.full && !dump.incomplete();
    if is_complete {
        put(&mut header, field::STATUS, style.codec.flag().to_le_bytes());
    }
    // With the second header in one piece: they have one checksum.
    match (is_complete, erase_info.is_empty()) {
        (_, false) => sink.write(0, &header[..page + SUB_HEADER])?,
        (true, true) => sink.write(0, &header[..page])?,
        (false, true) => {}
    }
    sink.finish(written.bytes)?;
    Ok(written)
}

/// Returns both headers and the notes.
fn header(plan: &Plan<'_>, style: &Style, shape: &Shape) -> Vec<u8> {
    let dump = plan.dump();
    let notes = plan.notes();
    // Headers and notes of a dump: below 64 MiB, as they were read.
    let mut bytes = vec![0; ((1 + shape.sub_blocks) * shape.page) as usize];
    let page = shape.page as usize;
    bytes[..8].copy_from_slice(SIGNATURE);
    put(&mut bytes, field::VERSION, 6_u32.to_le_bytes());
    for (n, name) in style.names.iter().enumerate() {
        let at = field::UTSNAME + n * field::UTSNAME_PART;
        let length = name.len().min(field::UTSNAME_PART - 1);
        bytes[at..at + length].copy_from_slice(&name.as_bytes()[..length]);
    }
    let time: u64 = dump
        .info()
        .text("CRASHTIME")
        .and_then(|time| time.parse().ok())
        .unwrap_or_default();
    put(&mut bytes, field::TIME, time.to_le_bytes());
    put(
        &mut bytes,
        field::STATUS,
        (INCOMPLETE | style.codec.flag()).to_le_bytes(),
    );
    put(&mut bytes, field::BLOCK_SIZE, saturated(shape.page));
    put(&mut bytes, field::SUB_BLOCKS, saturated(shape.sub_blocks));
    put(
        &mut bytes,
        field::BITMAP_BLOCKS,
        saturated(2 * shape.bitmap_blocks),
    );
    put(&mut bytes, field::MAX_MAPNR, saturated(dump.pages()));
    put(
        &mut bytes,
        field::NR_CPUS,
        saturated(note::processors(notes) as u64),
    );
    let second = &mut bytes[page..];
    let base = dump.info().number("phys_base").unwrap_or_default();
    put(second, field::PHYS_BASE, base.to_le_bytes());
    // Pages that an earlier pass left out are missing here too.
    put(
        second,
        field::LEVEL,
        (dump.level().unwrap_or_default() | u32::from(style.level.number())).to_le_bytes(),
    );
    if let Some(part) = &style.part {
        put(second, field::SPLIT, 1_u32.to_le_bytes());
        for (old, new, number) in [
            (field::START_PFN, field::START_PFN_64, part.start),
            (field::END_PFN, field::END_PFN_64, part.end),
        ] {
            put(second, old, number.to_le_bytes());
            put(second, new, number.to_le_bytes());
        }
    }
    put(second, field::MAX_MAPNR_64, dump.pages().to_le_bytes());
    let start = shape.page + SUB_HEADER as u64;
    if let Some(info) = note::vmcoreinfo(notes) {
        put(
            second,
            field::INFO,
            (start + info.start as u64).to_le_bytes(),
        );
        put(second, field::INFO + 8, (info.len() as u64).to_le_bytes());
    }
    if !notes.is_empty() {
        put(second, field::NOTES, start.to_le_bytes());
        put(second, field::NOTES + 8, (notes.len() as u64).to_le_bytes());
        second[SUB_HEADER..SUB_HEADER + notes.len()].copy_from_slice(notes);
    }
    // Before the checksum of the bitmaps, which comes when these are written.
    let sum = crc32fast::hash(notes).to_le_bytes();
    let marks = [PAGES_MARK, &NOTES_MARK[..], &sum].concat();
    let at = second.len() - MARKS;
    second[at..at + marks.len()].copy_from_slice(&marks);
    mark_heads(&mut bytes, page + SUB_HEADER, notes, &[]);
    bytes
}

/// Returns a number for a field of 32 bits; readers of large dumps use the second header's fields.
fn saturated(number: u64) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

/// Writes the bitmap of memory and that of stored pages.
fn write_bitmaps(plan: &Plan<'_>, shape: &Shape, sink: &dyn Sink) -> Result<(), DumpError> {
    let mut words = vec![0; plan.words()];
    let size = shape.bitmap_blocks * shape.page;
    let mut bitmap = BitmapWriter {
        sink,
        at: shape.bitmap(),
        pending: Vec::new(),
        end: 0,
        sum: crc32fast::Hasher::new(),
    };
    for (start, stored) in [(0, false), (size, true)] {
        // There are no bits outside memory.
        for n in (0..plan.blocks()).filter(|n| !stored || !plan.is_empty(*n)) {
            let first = plan.pages(n).start;
            if stored {
                plan.read(n, &mut words)?;
            } else {
                plan.dump().memory(first, &mut words)?;
            }
            let room = usize::try_from(size.saturating_sub(first / 8)).unwrap_or(usize::MAX);
            bitmap.add(start + first / 8, &words, room)?;
        }
        bitmap.skip_to(start + size)?;
    }
    let checksum = [&SUM_MARK[..], &bitmap.sum.finalize().to_le_bytes()].concat();
    sink.write(shape.bitmap() - SUM as u64, &checksum)
}

/// Writes the bitmaps from `at` on, in large pieces and with holes, and adds up their checksum.
struct BitmapWriter<'s> {
    sink: &'s dyn Sink,
    at: u64,
    pending: Vec<u8>,
    /// Where they end, from `at` on.
    end: u64,
    sum: crc32fast::Hasher,
}

impl BitmapWriter<'_> {
    /// Adds bits at `start` bytes, at most `room` bytes of them.
    fn add(&mut self, start: u64, words: &[u64], room: usize) -> Result<(), DumpError> {
        if self.end < start || self.pending.len() >= EXTENT as usize {
            self.skip_to(start)?;
        }
        let before = self.pending.len();
        bits::append_bytes(words, &mut self.pending);
        self.pending.truncate(before.saturating_add(room));
        self.end = start + (self.pending.len() - before) as u64;
        Ok(())
    }

    /// Writes what is pending, and zeros up to `start`.
    fn skip_to(&mut self, start: u64) -> Result<(), DumpError> {
        if !self.pending.is_empty() {
            self.sink.write(
                self.at + self.end - self.pending.len() as u64,
                &self.pending,
            )?;
            self.sum.update(&self.pending);
            self.pending.clear();
        }
        let gap = start.saturating_sub(self.end);
        self.sink.zeros(self.at + self.end, gap)?;
        add_zeros(&mut self.sum, gap);
        self.end = start;
        Ok(())
    }
}

/// Adds zeros to a checksum.
fn add_zeros(sum: &mut crc32fast::Hasher, mut count: u64) {
    const ZEROS: [u8; 4096] = [0; 4096];
    while count > 0 {
        let piece = usize::try_from(count)
            .unwrap_or(ZEROS.len())
            .min(ZEROS.len());
        sum.update(&ZEROS[..piece]);
        count -= piece as u64;
    }
}

/// The data of all threads.
struct Job<'a> {
    dump: &'a Dump,
    plan: &'a Plan<'a>,
    style: &'a Style,
    shape: &'a Shape,
    sink: &'a dyn Sink,
    part: Range<u64>,
    /// The next piece of work. Relaxed, as are the offsets below: threads only need different
    /// numbers, and what they write is ordered by the lock of `twins`.
    next: AtomicUsize,
    /// Limit of the file's size, without the erase info.
    limit: Option<u64>,
    /// The end of the reserved space.
    end: AtomicU64,
    /// The end of the written data.
    used: AtomicU64,
    twins: Twins,
    /// The page of zeros.
    zeros: Place,
    written: Mutex<Written>,
}

struct Writer<'a> {
    job: &'a Job<'a>,
    /// `None` while its bytes are in use.
    reader: Option<Reader<'a>>,
    /// For comparing pages that may be equal, while the first reader's bytes are in use.
    again: Reader<'a>,
    compressor: Compressor,
    page: usize,
    written: Written,
    /// Unwritten data, and its offset.
    buffer: Vec<u8>,
    start: u64,
    /// The end of this thread's reserved space.
    limit: u64,
    descriptors: Vec<u8>,
    /// Pages in the buffer, which other threads cannot refer to yet.
    pending: Pending,
}

impl<'a> Writer<'a> {
    fn new(job: &'a Job<'a>, work: &Work) -> Result<Self, DumpError> {
        let page = usize::try_from(job.shape.page).unwrap_or_default();
        Ok(Self {
            job,
            reader: Some(Reader::new(job.dump, work.io)),
            again: Reader::new(job.dump, work.io),
            compressor: Compressor::new(job.style.codec, job.style.effort, page)?,
            page,
            written: Written::default(),
            buffer: Vec::new(),
            start: 0,
            limit: 0,
            descriptors: Vec::new(),
            pending: Pending::default(),
        })
    }

    fn run(mut self) -> Result<(), DumpError> {
        let plan = self.job.plan;
        let mut words = vec![0; plan.words()];
        while !self.written.full {
            let next = plan.piece(self.job.next.fetch_add(1, Ordering::Relaxed));
            let Some((block, piece, turn)) = next else {
                break;
            };
            if plan.is_empty(block) {
                continue;
            }
            plan.read(block, &mut words)?;
            let first = plan.pages(block).start;
            // Pages before this file's are in the plan, but not in the file.
            let part = &self.job.part;
            let own = (first + piece.start as u64).max(part.start)
                ..(first + piece.end as u64).min(part.end);
            for span in plan.spans(own, turn) {
                let start = index_from(first, span.start);
                let end = index_from(first, span.end);
                let mut cut = words[piece.start / 64..piece.end / 64].to_vec();
                bits::clear(&mut cut, 0..start - piece.start);
                bits::clear(&mut cut, end - piece.start..usize::MAX);
                let rank = plan.before(block) + bits::count_before(&words, start);
                self.piece(first + piece.start as u64, &cut, rank)?;
            }
        }
        self.flush()?;
        lock(&self.job.written).add(self.written);
        Ok(())
    }

    /// Writes the pages of a piece; `rank` pages are kept before them.
    fn piece(&mut self, first: u64, words: &[u64], rank: u64) -> Result<(), DumpError> {
        self.descriptors.clear();
        let most = PIECE_MAX / self.page;
        for run in bits::runs(words) {
            let mut page = run.start;
            while page < run.end {
                let count = (run.end - page).min(most);
                self.pages(first + page as u64, count)?;
                page += count;
            }
        }
        if self.descriptors.is_empty() {
            return Ok(());
        }
        // A descriptor in the file promises its data, even if this process is killed now.
        self.flush()?;
        self.job
            .sink
            .add_progress((self.descriptors.len() / DESCRIPTOR) as u64 * self.job.shape.page);
        let offset =
            self.job.shape.descriptors + (rank - self.job.shape.skipped) * DESCRIPTOR as u64;
        self.job.sink.write(offset, &self.descriptors)
    }

    fn pages(&mut self, first: u64, count: usize) -> Result<(), DumpError> {
        let address = first * self.job.shape.page;
        // The bytes stay in place while the other fields change.
        let Some(mut reader) = self.reader.take() else {
            return Ok(());
        };
        let result = match reader.bytes(address, count * self.page) {
            Ok(bytes) => bytes
                .chunks_exact(self.page)
                .enumerate()
                .try_for_each(|(n, bytes)| self.store(first + n as u64, bytes)),
            // One of them is unreadable; try the others.
            Err(_) => (0..count as u64).try_for_each(|n| {
                match reader.bytes(address + n * self.job.shape.page, self.page) {
                    Ok(bytes) => self.store(first + n, bytes),
                    Err(error) => {
                        self.written.unreadable += 1;
                        self.written.why.get_or_insert(error);
                        self.descriptors.extend([0; DESCRIPTOR]);
                        Ok(())
                    }
                }
            }),
        };
        self.reader = Some(reader);
        result
    }

    /// Stores a page and its descriptor.
    fn store(&mut self, number: u64, bytes: &[u8]) -> Result<(), DumpError> {
        // A descriptor of zeros keeps the place of each later one, and reads as a missing page.
        if self.written.full {
            self.descriptors.extend([0; DESCRIPTOR]);
            return Ok(());
        }
        let instead = self.job.plan.instead(number, bytes)?;
        let bytes = instead.as_deref().unwrap_or(bytes);
        self.written.pages += 1;
        if is_zero(bytes) {
            self.written.zero += 1;
            let place = self.job.zeros;
            self.descriptors.extend(descriptor(number, &place));
            return Ok(());
        }
        // The key is a hint: a page is a twin only if its bytes are equal.
        let key = Twins::key(bytes);
        if self.job.twins.note(key)
            && let Some(twin) = self.find_twin(key)
            && self.is_twin(twin.page, bytes)?
        {
            self.written.twins += 1;
            self.descriptors.extend(descriptor(number, &twin.place));
            return Ok(());
        }
        let compressor = &mut self.compressor;
        let (packed, codec) = compressor.compress(bytes).unwrap_or((bytes, Codec::None));
        // At most a page.
        let size = packed.len() as u32;
        let sum = content_sum(packed);
        let reservation = Reservation {
            job: self.job,
            buffer: &mut self.buffer,
            start: &mut self.start,
            limit: &mut self.limit,
        };
        let Some(offset) = reservation.put(packed)? else {
            self.written.pages -= 1;
            self.written.full = true;
            self.descriptors.extend([0; DESCRIPTOR]);
            return Ok(());
        };
        let place = Place {
            offset,
            size,
            codec,
            sum,
        };
        self.pending.push(
            key,
            Stored {
                page: number,
                place,
            },
        );
        if self.buffer.is_empty() {
            self.publish();
        }
        self.descriptors.extend(descriptor(number, &place));
        Ok(())
    }

    /// Returns a page with this key.
    fn find_twin(&self, key: u64) -> Option<Stored> {
        self.pending.find(key).or_else(|| self.job.twins.find(key))
    }

    /// Returns whether another page is stored with the same content.
    fn is_twin(&mut self, page: u64, bytes: &[u8]) -> Result<bool, DumpError> {
        let Ok(other) = self.again.bytes(page * self.job.shape.page, self.page) else {
            return Ok(false);
        };
        let instead = self.job.plan.instead(page, other)?;
        Ok(instead.as_deref().unwrap_or(other) == bytes)
    }

    fn flush(&mut self) -> Result<(), DumpError> {
        Reservation {
            job: self.job,
            buffer: &mut self.buffer,
            start: &mut self.start,
            limit: &mut self.limit,
        }
        .flush()?;
        self.publish();
        Ok(())
    }

    /// Lets all threads refer to pages whose data was written.
    fn publish(&mut self) {
        for (key, stored) in self.pending.take() {
            self.job.twins.insert(key, stored);
        }
    }
}

/// Space in the file that one thread has reserved.
struct Reservation<'w, 'a> {
    job: &'a Job<'a>,
    buffer: &'w mut Vec<u8>,
    start: &'w mut u64,
    limit: &'w mut u64,
}

impl Reservation<'_, '_> {
    /// Writes data into the space and returns its offset; `None` if the file would exceed its
    /// limit.
    fn put(mut self, data: &[u8]) -> Result<Option<u64>, DumpError> {
        let end = *self.start + self.buffer.len() as u64 + data.len() as u64;
        if end > *self.limit && !self.reserve()? {
            return Ok(None);
        }
        // Computed after reserving, which may have moved the start.
        let offset = *self.start + self.buffer.len() as u64;
        self.buffer.extend_from_slice(data);
        if self.buffer.len() as u64 >= EXTENT {
            self.flush()?;
        }
        Ok(Some(offset))
    }

    /// Reserves more; if the new space is adjacent, no byte is lost.
    fn reserve(&mut self) -> Result<bool, DumpError> {
        let reserved = self.job.end.fetch_add(EXTENT, Ordering::Relaxed);
        if self
            .job
            .limit
            .is_some_and(|limit| reserved + EXTENT > limit)
        {
            return Ok(false);
        }
        if reserved != *self.limit {
            // Less than a page of the old space is left over, and stays a hole.
            self.flush()?;
            *self.start = reserved;
        }
        *self.limit = reserved + EXTENT;
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), DumpError> {
        if !self.buffer.is_empty() {
            self.job.sink.write_pages(*self.start, self.buffer)?;
            *self.start += self.buffer.len() as u64;
            self.buffer.clear();
            self.job.used.fetch_max(*self.start, Ordering::Relaxed);
        }
        Ok(())
    }
}
