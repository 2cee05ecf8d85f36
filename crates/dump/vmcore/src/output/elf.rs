//! Writes ELF vmcores: uncompressed, for tools without support for other formats. Long runs of
//! dropped pages are left out; short ones occupy space in the file, as each run costs a program
//! header. Dropped pages are never read, as they may be broken: they and zero pages are holes of
//! the file.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    let mut header = header(plan, &parts);
    let mut at = (header.len() as u64).next_multiple_of(page);
    let mut places = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        program_header(&mut header, n + 1, dump, part, at);
        places.push(at);
        at += (part.stored.end - part.stored.start) * page;
    }
    // Incomplete until all pages are written; the mark is taken back last.
    put(&mut header, FLAGS, 1_u32.to_le_bytes());
    sink.write(0, &header)?;
    let all = Mutex::new(Written {
        bytes: at,
        ..Written::default()
    });
    let next = AtomicUsize::new(0);
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
        while let Some((part, place)) = {
            let n = next.fetch_add(1, Ordering::Relaxed);
            parts.get(n).zip(places.get(n))
        } {
            copy.part(&part.stored, *place)?;
        }
        lock(&all).add(copy.written);
        Ok(())
    })?;
    let written = lock(&all).clone();
    if written.unreadable == 0 && !dump.incomplete() {
        put(&mut header, FLAGS, 0_u32.to_le_bytes());
        sink.write(0, &header[..HEADER])?;
    }
    sink.finish(at)?;
    Ok(written)
}

/// Divides memory into parts inside and outside the file.
fn parts(plan: &Plan<'_>) -> Result<Vec<Part>, DumpError> {
    let mut parts: Vec<Part> = Vec::new();
    let mut kept_words = vec![0; plan.words()];
    let mut memory = vec![0; plan.words()];
    for n in 0..plan.blocks() {
        let first = plan.pages(n).start;
        plan.read(n, &mut kept_words)?;
        plan.dump().memory(first, &mut memory)?;
        for run in bits::runs(&memory) {
            let start = first + run.start as u64;
            let end = first + run.end as u64;
            // Memory after the existing part, or after a hole.
            match parts.last_mut().filter(|part| part.end == start) {
                Some(part) => part.end = end,
                None => parts.push(Part {
                    stored: start..start,
                    end,
                }),
            }
            let mut own = vec![0; kept_words.len()];
            bits::set(&mut own, run);
            own.iter_mut()
                .zip(&kept_words)
                .for_each(|(own, kept_words)| *own &= kept_words);
            for run in bits::runs(&own) {
                keep(&mut parts, first + run.start as u64..first + run.end as u64);
            }
        }
    }
    Ok(parts)
}

/// Adds a run of kept pages to the last part, or begins another one after a long gap.
fn keep(parts: &mut Vec<Part>, run: Range<u64>) {
    let Some(last) = parts.last_mut() else { return };
    let end = last.end;
    if last.stored.is_empty() && run.start > last.stored.start || run.start >= last.stored.end + GAP
    {
        last.end = run.start;
        parts.push(Part { stored: run, end });
    } else {
        last.stored.end = run.end;
    }
}

/// Returns the header, space for the program headers, and the notes.
fn header(plan: &Plan<'_>, parts: &[Part]) -> Vec<u8> {
    let dump = plan.dump();
    let count = parts.len() + 1;
    let many = count >= usize::from(PN_XNUM);
    let sections = HEADER + count * PROGRAM_HEADER;
    let notes = sections + if many { HEADER } else { 0 };
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(notes, 0);
    let mut own = plan.notes().to_vec();
    if !dump.erasure().text.is_empty() {
        own.extend(note::encode("ERASEINFO", 0, &dump.erasure().text));
    }
    bytes.extend(&own);
    put(&mut bytes, 16, 4_u16.to_le_bytes());
    put(&mut bytes, 18, dump.machine().elf().to_le_bytes());
    put(&mut bytes, 20, 1_u32.to_le_bytes());
    put(&mut bytes, 32, (HEADER as u64).to_le_bytes());
    put(&mut bytes, 52, (HEADER as u16).to_le_bytes());
    put(&mut bytes, 54, (PROGRAM_HEADER as u16).to_le_bytes());
    put(
        &mut bytes,
        56,
        u16::try_from(count).unwrap_or(PN_XNUM).to_le_bytes(),
    );
    if many {
        put(&mut bytes, 40, (sections as u64).to_le_bytes());
        put(&mut bytes, 58, (HEADER as u16).to_le_bytes());
        put(&mut bytes, 60, 1_u16.to_le_bytes());
        // sh_info; the plan has fewer parts than a 32-bit number can count.
        put(&mut bytes, sections + 44, (count as u32).to_le_bytes());
    }
    put(&mut bytes, HEADER, 4_u32.to_le_bytes());
    for (field, number) in [(8, notes), (32, own.len()), (40, own.len())] {
        put(&mut bytes, HEADER + field, (number as u64).to_le_bytes());
    }
    bytes
}

fn program_header(bytes: &mut [u8], n: usize, dump: &Dump, part: &Part, at: u64) {
    let page = dump.page_size();
    let start = HEADER + n * PROGRAM_HEADER;
    put(bytes, start, 1_u32.to_le_bytes());
    let physical = part.stored.start * page;
    let stored = (part.stored.end - part.stored.start) * page;
    let numbers = [
        at,
        dump.virtual_address(physical),
        physical,
        stored,
        (part.end - part.stored.start) * page,
    ];
    for (n, number) in numbers.into_iter().enumerate() {
        put(bytes, start + 8 + n * 8, number.to_le_bytes());
    }
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
