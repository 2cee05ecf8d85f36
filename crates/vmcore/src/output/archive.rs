//! Writes archives sequentially, so that they can go through a pipe. Several threads fill and compress blocks, each
//! from its own pages; a block is written when it is ready, and the index has the order.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::archive::table::{self, Entry, Slot};
use crate::archive::{self, BlockEntry, Head, Header, NOTES_MAX, PLACE, RANGES_MAX, TRAILER};
use crate::bits;
use crate::bytes::is_zero;
use crate::compress::{Codec, Compressor};
use crate::dump::Dump;
use crate::error::DumpError;
use crate::output::kdump::{Style, Written};
use crate::output::sink::Sink;
use crate::plan::{Plan, Work, crew, lock};
use crate::reader::Reader;
use crate::twins::{Stored, Twins};
use crate::window::PIECE_MAX;

/// Bytes of an unpacked block: larger ones gain little, and reading one page unpacks all of it.
const BLOCK: u64 = 1 << 20;
/// Pages that a thread takes at once, in blocks.
const CLAIM: u64 = 16;
/// Default level of zstd.
const EFFORT: i32 = 3;

/// Writes a dump.
///
/// # Errors
/// If the dump cannot be read or the archive cannot be written.
pub fn write(plan: &Plan<'_>, style: &Style, work: &Work, sink: &dyn Sink) -> Result<Written, DumpError> {
    let dump = plan.dump();
    let block = (BLOCK / dump.page_size()).max(1);
    // Errors before writing begins.
    drop(compressor(style)?);
    let header = header(plan, style, block)?.encode();
    let least = header.len() as u64 + index_size(0);
    if let Some(limit) = style.limit.filter(|limit| *limit < least) {
        return Err(DumpError::Usage(format!("a limit of {limit} bytes: the header alone has {least}")));
    }
    sink.write(0, &header)?;
    let job = Job {
        dump,
        plan,
        style,
        sink,
        block,
        next: AtomicU64::new(0),
        full: AtomicBool::new(false),
        twins: Twins::new(work.memory / 16),
        file: Mutex::new(Output { end: header.len() as u64, places: Vec::new() }),
        written: Mutex::new(Written::default()),
    };
    crew(threads(style, work), || Packer::new(&job, work)?.run())?;
    let mut written = lock(&job.written).clone();
    let mut file = lock(&job.file);
    file.places.sort_unstable_by_key(|place| place.first);
    let incomplete = written.unreadable > 0 || written.full || dump.incomplete();
    let index = archive::index(&file.places, file.end, incomplete);
    sink.write(file.end, &index)?;
    written.bytes = file.end + index.len() as u64;
    sink.finish(written.bytes)?;
    Ok(written)
}

fn compressor(style: &Style) -> Result<Compressor, DumpError> {
    Compressor::new(Codec::Zstd, Some(style.effort.unwrap_or(EFFORT)), BLOCK as usize)
}

/// Returns the number of threads: together they need no more than half of the memory.
fn threads(style: &Style, work: &Work) -> usize {
    // A block, its packed form, and the tables of zstd, which grow with the effort.
    let each = match style.effort.unwrap_or(EFFORT) {
        ..=3 => 4 << 20,
        4..=6 => 6 << 20,
        _ => 16 << 20,
    };
    usize::try_from(work.memory / 2 / each).unwrap_or(usize::MAX).clamp(1, work.threads.max(1))
}

/// Returns the size of the index of so many blocks, with the end.
fn index_size(blocks: usize) -> u64 {
    (8 + blocks * PLACE + TRAILER) as u64
}

fn header(plan: &Plan<'_>, style: &Style, block: u64) -> Result<Header, DumpError> {
    let dump = plan.dump();
    let (mut memory, mut words): (Vec<Range<u64>>, _) = (Vec::new(), vec![0; plan.words()]);
    for n in 0..plan.blocks() {
        let first = plan.pages(n).start;
        dump.memory(first, &mut words)?;
        for run in bits::runs(&words) {
            let run = first + run.start as u64..first + run.end as u64;
            match memory.last_mut().filter(|last| last.end == run.start) {
                Some(last) => last.end = run.end,
                None => memory.push(run),
            }
        }
        if memory.len() > RANGES_MAX {
            return Err(DumpError::Usage(format!("memory is in more than {RANGES_MAX} pieces: not for an archive")));
        }
    }
    if dump.notes().len().max(dump.erasure().text.len()) > NOTES_MAX {
        return Err(DumpError::Usage(format!("notes of more than {NOTES_MAX} bytes: not for an archive")));
    }
    Ok(Header {
        machine: dump.machine(),
        page: dump.page_size(),
        pages: dump.pages(),
        // Pages that an earlier pass left out are missing here too.
        level: dump.level().unwrap_or_default() | u32::from(style.level.number()),
        block,
        names: style.names.clone(),
        notes: dump.notes().to_vec(),
        erased: dump.erasure().text.clone(),
        memory,
    })
}

/// The data of all threads.
struct Job<'a> {
    dump: &'a Dump,
    plan: &'a Plan<'a>,
    style: &'a Style,
    sink: &'a dyn Sink,
    /// Pages of data per block.
    block: u64,
    /// The next piece of work.
    next: AtomicU64,
    /// Limit of the file's size.
    full: AtomicBool,
    twins: Twins,
    file: Mutex<Output>,
    written: Mutex<Written>,
}

/// The state of the file.
struct Output {
    end: u64,
    places: Vec<BlockEntry>,
}

impl Job<'_> {
    /// Appends a block; returns whether it fitted.
    fn append(&self, head: &Head, table: &[u8], packed: &[u8]) -> Result<bool, DumpError> {
        let bytes = [&head.encode(table), table, packed].concat();
        // Waiting threads sleep.
        let mut file = lock(&self.file);
        let offset = file.end;
        let end = offset + bytes.len() as u64;
        if self.style.limit.is_some_and(|limit| end + index_size(file.places.len() + 1) > limit) {
            self.full.store(true, Ordering::Relaxed);
            return Ok(false);
        }
        self.sink.write(offset, &bytes)?;
        file.end = end;
        file.places.push(BlockEntry::of(offset, head));
        Ok(true)
    }
}

/// One thread's work.
struct Packer<'a> {
    job: &'a Job<'a>,
    /// `None` while its bytes are in use.
    reader: Option<Reader<'a>>,
    /// For comparing pages that may be equal.
    again: Reader<'a>,
    compressor: Compressor,
    page: usize,
    entries: Vec<Entry>,
    data: Vec<u8>,
    /// The contents of the block, counted when it is written.
    zero: u64,
    twins: u64,
    /// Pages of the block by key, which other threads cannot refer to yet.
    pending: BTreeMap<u64, Stored>,
    written: Written,
}

impl<'a> Packer<'a> {
    fn new(job: &'a Job<'a>, work: &Work) -> Result<Self, DumpError> {
        Ok(Self {
            job,
            reader: Some(Reader::new(job.dump, work.io)),
            again: Reader::new(job.dump, work.io),
            compressor: compressor(job.style)?,
            // At most 64 KiB.
            page: job.dump.page_size() as usize,
            entries: Vec::new(),
            data: Vec::new(),
            zero: 0,
            twins: 0,
            pending: BTreeMap::new(),
            written: Written::default(),
        })
    }

    fn run(mut self) -> Result<(), DumpError> {
        let (plan, claim) = (self.job.plan, CLAIM * self.job.block);
        loop {
            let rank = self.job.next.fetch_add(claim, Ordering::Relaxed);
            if rank >= plan.kept() || self.job.full.load(Ordering::Relaxed) {
                break;
            }
            self.claim(plan.page_at(rank)?..plan.page_at(rank + claim)?)?;
        }
        let mut all = lock(&self.job.written);
        all.add(self.written);
        all.full |= self.job.full.load(Ordering::Relaxed);
        Ok(())
    }

    /// Writes blocks of the kept pages among these.
    fn claim(&mut self, pages: Range<u64>) -> Result<(), DumpError> {
        let plan = self.job.plan;
        let mut words = vec![0; plan.words()];
        let most = (PIECE_MAX / self.page).max(1);
        for n in plan.from(pages.start)..plan.blocks() {
            let first = plan.pages(n).start;
            if first >= pages.end {
                break;
            }
            plan.read(n, &mut words)?;
            let within = |page: u64| usize::try_from(page.saturating_sub(first)).unwrap_or(usize::MAX);
            bits::clear(&mut words, 0..within(pages.start));
            bits::clear(&mut words, within(pages.end)..usize::MAX);
            for run in bits::runs(&words) {
                for at in run.clone().step_by(most) {
                    self.pages(first + at as u64, (run.end - at).min(most))?;
                }
            }
        }
        self.flush()
    }

    /// Adds consecutive pages to blocks.
    fn pages(&mut self, first: u64, count: usize) -> Result<(), DumpError> {
        let size = self.job.dump.page_size();
        // The bytes stay in place while the other fields change.
        let Some(mut reader) = self.reader.take() else { return Ok(()) };
        let done = match reader.bytes(first * size, count * self.page) {
            Ok(bytes) => {
                (first..).zip(bytes.chunks_exact(self.page)).try_for_each(|(page, bytes)| self.put(page, bytes))
            }
            // One of them is unreadable; try the others.
            Err(_) => (first..first + count as u64).try_for_each(|page| match reader.bytes(page * size, self.page) {
                Ok(bytes) => self.put(page, bytes),
                Err(error) => {
                    self.written.unreadable += 1;
                    self.written.why.get_or_insert(error);
                    Ok(())
                }
            }),
        };
        self.reader = Some(reader);
        self.job.sink.add_progress(count as u64 * size);
        done
    }

    /// Adds a page to the block; writes a full block.
    fn put(&mut self, page: u64, bytes: &[u8]) -> Result<(), DumpError> {
        let instead = self.job.plan.instead(page, bytes)?;
        let bytes = instead.as_deref().unwrap_or(bytes);
        let slot = self.slot(page, bytes)?;
        match slot {
            Slot::Zero => self.zero += 1,
            Slot::Twin(_) => self.twins += 1,
            Slot::Data(_) => self.data.extend_from_slice(bytes),
        }
        self.entries.push(Entry { page, slot });
        if self.data.len() as u64 >= self.job.block * self.job.dump.page_size() { self.flush() } else { Ok(()) }
    }

    /// Decides how to store a page.
    fn slot(&mut self, page: u64, bytes: &[u8]) -> Result<Slot, DumpError> {
        if is_zero(bytes) {
            return Ok(Slot::Zero);
        }
        let key = Twins::key(bytes);
        if let Some(twin) = self.pending.get(&key).copied().or_else(|| self.job.twins.find(key))
            && self.is_twin(twin.page, bytes)?
        {
            return Ok(Slot::Twin(twin.page));
        }
        self.pending.insert(key, Stored { page, offset: 0, size: 0, codec: Codec::None });
        // A block has few pages.
        Ok(Slot::Data((self.data.len() / self.page) as u32))
    }

    /// Returns whether another page is stored with the same content.
    fn is_twin(&mut self, page: u64, bytes: &[u8]) -> Result<bool, DumpError> {
        let Ok(other) = self.again.bytes(page * self.job.dump.page_size(), self.page) else { return Ok(false) };
        let instead = self.job.plan.instead(page, other)?;
        Ok(instead.as_deref().unwrap_or(other) == bytes)
    }

    /// Compresses and writes the block.
    fn flush(&mut self) -> Result<(), DumpError> {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else { return Ok(()) };
        let table = table::encode(&self.entries);
        let (packed, codec) = self.compressor.compress(&self.data).unwrap_or((&self.data, Codec::None));
        // All of these are at most a few MiB.
        let head = Head {
            first: first.page,
            end: last.page + 1,
            pages: self.entries.len() as u32,
            data: (self.data.len() / self.page) as u32,
            table: table.len() as u32,
            packed: packed.len() as u32,
            codec,
            sum: archive::sum(&[packed]),
        };
        let there = self.job.append(&head, &table, packed)?;
        while let Some((key, stored)) = self.pending.pop_first().filter(|_| there) {
            self.job.twins.insert(key, stored);
        }
        if there {
            self.written.pages += self.entries.len() as u64;
            self.written.zero += self.zero;
            self.written.twins += self.twins;
        }
        self.pending.clear();
        self.entries.clear();
        self.data.clear();
        (self.zero, self.twins) = (0, 0);
        Ok(())
    }
}

/// A stream, such as a pipe: writes sequentially.
pub struct Stream<W> {
    state: Mutex<(W, u64)>,
}

impl<W> std::fmt::Debug for Stream<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Stream<W> {
    /// Makes a stream.
    #[must_use]
    pub fn new(stream: W) -> Self {
        Self { state: Mutex::new((stream, 0)) }
    }
}

impl<W: Write + Send> Sink for Stream<W> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DumpError> {
        let mut state = lock(&self.state);
        let behind = if state.1 == offset { Ok(()) } else { Err(io::Error::from(io::ErrorKind::NotSeekable)) };
        let written = behind.and_then(|()| state.0.write_all(bytes));
        written.map_err(DumpError::writing(Path::new("the stream"), offset))?;
        state.1 += bytes.len() as u64;
        Ok(())
    }

    fn finish(&self, size: u64) -> Result<(), DumpError> {
        lock(&self.state).0.flush().map_err(DumpError::writing(Path::new("the stream"), size))
    }
}
