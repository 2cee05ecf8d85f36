//! Writes ELF vmcores: uncompressed, for tools without support for other formats. Long runs of
//! dropped pages are left out; short ones occupy space in the file, as each run costs a program
//! header. Dropped pages are never read, as they may be broken: they and zero pages are holes of
//! the file.

use std::ops::Range;
use std::sync::Mutex;

use crate::bits;
use crate::bytes::{index_from, is_zero, put};
use crate::dump::Dump;
use crate::elf::{PN_XNUM, PROGRAM_HEADER};
use crate::error::DumpError;
use crate::note;
use crate::output::kdump::Written;
use crate::output::sink::Sink;
use crate::plan::{Plan, Work, crew, lock};
use crate::reader::Reader;
use crate::segments::{Collector, Segment, Segments};
use crate::window::PIECE_MAX;

/// Shortest run of dropped pages that is worth a program header.
const GAP: u64 = 256;
/// Sizes of the ELF header and of a section header, in bytes.
const HEADER: usize = 64;
/// Offset of e_flags; 1 marks an incomplete file, like makedumpfile.
const FLAGS: usize = 48;

/// Pages in the file, and pages after them that are not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    stored: Range<u64>,
    /// The end of the memory.
    end: u64,
}

/// Writes a plan's pages as an ELF vmcore. An unreadable page is counted and no error.
///
/// # Errors
/// If the dump cannot be read or the file cannot be written.
pub fn write(plan: &Plan<'_>, work: &Work, sink: &dyn Sink) -> Result<Written, DumpError> {
    let dump = plan.dump();
    let page = dump.page_size();
    let parts = parts(plan)?;
    let mut header = Header::new(plan, parts.count);
    let data = header.size().next_multiple_of(page);
    // Incomplete until all pages are written; the mark is taken back last.
    put(&mut header.start, FLAGS, 1_u32.to_le_bytes());
    header.write(&parts.segments, data, sink)?;
    let at = data + parts.stored;
    let all = Mutex::new(Written {
        bytes: at,
        ..Written::default()
    });
    let rest = Mutex::new(parts.segments.all_from(0));
    crew(work.threads, || {
        let reader = Reader::new(dump, work.io);
        let written = Written::default();
        let mut copy = Copy {
            reader,
            plan,
            sink,
            page,
            written,
            block: 0..0,
            words: vec![0; plan.words()],
        };
        loop {
            let next = lock(&rest).next();
            let Some(part) = next else { break };
            let pages = part.start / page..(part.start + part.stored) / page;
            copy.part(&pages, data + part.offset)?;
        }
        lock(&all).add(copy.written);
        Ok(())
    })?;
    let written = lock(&all).clone();
    if written.unreadable == 0 && !dump.incomplete() {
        put(&mut header.start, FLAGS, 0_u32.to_le_bytes());
        sink.write(0, &header.start[..HEADER])?;
    }
    sink.finish(at)?;
    Ok(written)
}

/// All parts, packed: there may be a million. Their offsets are from the first one's bytes.
struct Parts {
    segments: Segments,
    count: usize,
    /// All bytes in the file.
    stored: u64,
}

/// Collects parts.
struct PartCollector<'d> {
    dump: &'d Dump,
    /// The last one, which may still grow.
    last: Option<Part>,
    done: Collector,
    count: usize,
    stored: u64,
}

impl PartCollector<'_> {
    /// Adds memory: to the existing part, or as another one after a hole.
    fn add_memory(&mut self, pages: Range<u64>) {
        match self.last.as_mut().filter(|part| part.end == pages.start) {
            Some(part) => part.end = pages.end,
            None => self.begin(Part {
                stored: pages.start..pages.start,
                end: pages.end,
            }),
        }
    }

    /// Adds a run of kept pages to the last part, or begins another one after a long gap.
    fn keep(&mut self, run: Range<u64>) {
        let Some(last) = &mut self.last else { return };
        let end = last.end;
        if last.stored.is_empty() && run.start > last.stored.start
            || run.start >= last.stored.end + GAP
        {
            last.end = run.start;
            self.begin(Part { stored: run, end });
        } else {
            last.stored.end = run.end;
        }
    }

    fn begin(&mut self, part: Part) {
        self.close();
        self.last = Some(part);
    }

    fn close(&mut self) {
        if let Some(Part { stored, end }) = self.last.take() {
            let page = self.dump.page_size();
            let start = stored.start * page;
            let size = (stored.end - stored.start) * page;
            self.done.push(Segment {
                start,
                memory: (end - stored.start) * page,
                stored: size,
                offset: self.stored,
                address: self.dump.virtual_address(start),
            });
            self.stored += size;
            self.count += 1;
        }
    }

    fn finish(mut self) -> Parts {
        self.close();
        Parts {
            segments: self.done.finish(),
            count: self.count,
            stored: self.stored,
        }
    }
}

/// Divides memory into parts inside and outside the file.
fn parts(plan: &Plan<'_>) -> Result<Parts, DumpError> {
    let mut parts = PartCollector {
        dump: plan.dump(),
        last: None,
        done: Collector::default(),
        count: 0,
        stored: 0,
    };
    let mut kept_words = vec![0; plan.words()];
    let mut memory = vec![0; plan.words()];
    for n in 0..plan.blocks() {
        let first = plan.pages(n).start;
        plan.read(n, &mut kept_words)?;
        plan.dump().memory(first, &mut memory)?;
        for run in bits::runs(&memory) {
            parts.add_memory(first + run.start as u64..first + run.end as u64);
            let mut own = vec![0; kept_words.len()];
            bits::set(&mut own, run);
            own.iter_mut()
                .zip(&kept_words)
                .for_each(|(own, kept_words)| *own &= kept_words);
            for run in bits::runs(&own) {
                parts.keep(first + run.start as u64..first + run.end as u64);
            }
        }
    }
    Ok(parts.finish())
}

/// What lies before the memory: the ELF header, the program headers and the notes.
struct Header {
    /// The ELF header, and the program header of the notes.
    start: Vec<u8>,
    /// Number of the other program headers.
    count: usize,
    /// What follows these: a section header, if they are many, and the notes.
    end: Vec<u8>,
}

/// Bytes of program headers that are written at once.
const PIECE: usize = 64 << 10;

impl Header {
    fn new(plan: &Plan<'_>, parts: usize) -> Self {
        let dump = plan.dump();
        let count = parts + 1;
        let many = count >= usize::from(PN_XNUM);
        let sections = HEADER + count * PROGRAM_HEADER;
        let mut end = vec![0; if many { HEADER } else { 0 }];
        let notes = sections + end.len();
        end.extend(plan.notes());
        if !dump.erasure().text.is_empty() {
            end.extend(note::encode("ERASEINFO", 0, &dump.erasure().text));
        }
        let mut start = b"\x7fELF\x02\x01\x01".to_vec();
        start.resize(HEADER + PROGRAM_HEADER, 0);
        put(&mut start, 16, 4_u16.to_le_bytes());
        put(&mut start, 18, dump.machine().elf().to_le_bytes());
        put(&mut start, 20, 1_u32.to_le_bytes());
        put(&mut start, 32, (HEADER as u64).to_le_bytes());
        put(&mut start, 52, (HEADER as u16).to_le_bytes());
        put(&mut start, 54, (PROGRAM_HEADER as u16).to_le_bytes());
        let short = u16::try_from(count).unwrap_or(PN_XNUM);
        put(&mut start, 56, short.to_le_bytes());
        if many {
            put(&mut start, 40, (sections as u64).to_le_bytes());
            put(&mut start, 58, (HEADER as u16).to_le_bytes());
            put(&mut start, 60, 1_u16.to_le_bytes());
            // sh_info; the plan has fewer parts than a 32-bit number can count.
            put(&mut end, 44, (count as u32).to_le_bytes());
        }
        put(&mut start, HEADER, 4_u32.to_le_bytes());
        let size = sections + end.len() - notes;
        for (field, number) in [(8, notes), (32, size), (40, size)] {
            put(&mut start, HEADER + field, (number as u64).to_le_bytes());
        }
        Self {
            start,
            count: parts,
            end,
        }
    }

    /// Returns its bytes in the file.
    fn size(&self) -> u64 {
        (self.start.len() + self.count * PROGRAM_HEADER + self.end.len()) as u64
    }

    /// Writes it, with the program headers of parts whose bytes begin at `data`.
    fn write(&self, parts: &Segments, data: u64, sink: &dyn Sink) -> Result<(), DumpError> {
        let mut bytes = self.start.clone();
        let mut at = 0;
        for part in parts.all_from(0) {
            push_program_header(&mut bytes, &part, data);
            if bytes.len() >= PIECE {
                sink.write(at, &bytes)?;
                at += bytes.len() as u64;
                bytes.clear();
            }
        }
        bytes.extend(&self.end);
        sink.write(at, &bytes)
    }
}

fn push_program_header(bytes: &mut Vec<u8>, part: &Segment, data: u64) {
    // PT_LOAD, without flags; no alignment.
    let numbers = [
        1,
        data + part.offset,
        part.address,
        part.start,
        part.stored,
        part.memory,
        0,
    ];
    bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
}

struct Copy<'a> {
    reader: Reader<'a>,
    plan: &'a Plan<'a>,
    sink: &'a dyn Sink,
    page: u64,
    written: Written,
    /// The block whose bits are in `words`.
    block: Range<u64>,
    words: Vec<u64>,
}

impl Copy<'_> {
    /// Copies the kept pages of a part, whose first page goes to `place`.
    fn part(&mut self, pages: &Range<u64>, place: u64) -> Result<(), DumpError> {
        let mut at = pages.start;
        while at < pages.end {
            if !self.block.contains(&at) {
                self.block = self.plan.read_around(at, &mut self.words)?;
            }
            let end = pages.end.min(self.block.end);
            let mut own = vec![0; self.words.len()];
            let wanted = index_from(self.block.start, at)..index_from(self.block.start, end);
            bits::set(&mut own, wanted);
            own.iter_mut()
                .zip(&self.words)
                .for_each(|(own, kept_words)| *own &= kept_words);
            let first = self.block.start;
            for run in bits::runs(&own) {
                let run = first + run.start as u64..first + run.end as u64;
                self.zeros(at..run.start, pages.start, place)?;
                self.run(&run, place + (run.start - pages.start) * self.page)?;
                at = run.end;
            }
            self.zeros(at..end, pages.start, place)?;
            at = end;
        }
        Ok(())
    }

    /// Leaves space for dropped pages of a part that begins with page `first` at `place`.
    fn zeros(&self, pages: Range<u64>, first: u64, place: u64) -> Result<(), DumpError> {
        let count = pages.end.saturating_sub(pages.start);
        if count == 0 {
            return Ok(());
        }
        self.sink
            .zeros(place + (pages.start - first) * self.page, count * self.page)
    }

    /// Copies consecutive kept pages.
    fn run(&mut self, pages: &Range<u64>, place: u64) -> Result<(), DumpError> {
        // At most 256 KiB.
        let most = (PIECE_MAX as u64 / self.page).max(1);
        let mut at = pages.start;
        while at < pages.end {
            let count = (pages.end - at).min(most);
            let offset = place + (at - pages.start) * self.page;
            let length = (count * self.page) as usize;
            let before = at;
            match self.reader.bytes(at * self.page, length) {
                Ok(bytes) => {
                    self.written.pages += count;
                    let zero = bytes
                        .chunks(self.page as usize)
                        .filter(|page| is_zero(page))
                        .count() as u64;
                    self.written.zero += zero;
                    if zero < count {
                        self.sink.write(offset, bytes)?;
                    } else {
                        self.sink.zeros(offset, count * self.page)?;
                    }
                    at += count;
                }
                // One page of the piece is unreadable: find it page by page, and lose no other.
                Err(_) => {
                    self.single(at, offset)?;
                    at += 1;
                }
            }
            self.sink.add_progress((at - before) * self.page);
        }
        Ok(())
    }

    /// Copies one page of an unreadable piece.
    fn single(&mut self, page: u64, offset: u64) -> Result<(), DumpError> {
        match self.reader.bytes(page * self.page, self.page as usize) {
            Ok(bytes) => {
                self.written.pages += 1;
                self.sink.write(offset, bytes)?;
            }
            Err(error) => {
                self.written.unreadable += 1;
                self.written.why.get_or_insert(error);
            }
        }
        Ok(())
    }
}
