//! The plan of a new dump: the pages that it will hold. Several threads make it in one pass over
//! the memory map.
//!
//! The bits are in memory if they fit into the limit, else in a file: so memory of any size is
//! filtered in one pass and in bounded memory.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::bits;
use crate::dump::Dump;
use crate::error::DumpError;
use crate::exclusion::Class;
use crate::filter::{Counts, Filter};
use crate::note::{self, MARK};
use crate::progress::Progress;
use crate::reader::{Io, Reader};
use crate::thin_vmemmap::Thin;
use crate::write_order;

/// Pages of a block if there is no memory map with a section size: those of a section of x86-64.
const BLOCK_PAGES: u64 = 32768;
/// Blocks that a thread takes at once. The records of neighbours share page tables and windows,
/// which each thread keeps for itself.
const CLAIM: usize = 16;

/// Pages that a thread writes at once; their descriptors, 96 KiB, are one write.
const PIECE_PAGES: u64 = 4096;

/// When a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// With the priority group of this number.
    Group(usize),
    /// After all groups.
    Rest,
}

/// Pages to write together, sorted and disjoint, and the pieces with them.
#[derive(Debug)]
struct Group {
    pages: Vec<Range<u64>>,
    pieces: Vec<usize>,
}

/// Returns the parts of a range in `ranges`, which are sorted and disjoint.
pub(crate) fn common(pages: &Range<u64>, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let skip = ranges.partition_point(|range| range.end <= pages.start);
    let within = ranges[skip..]
        .iter()
        .take_while(|range| range.start < pages.end);
    let parts = within.map(|range| range.start.max(pages.start)..range.end.min(pages.end));
    parts.filter(|part| part.start < part.end).collect()
}

/// Returns the parts of a range outside `ranges`, which are sorted and disjoint.
pub(crate) fn without(pages: Range<u64>, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut rest = Vec::new();
    let mut start = pages.start;
    for range in common(&pages, ranges) {
        rest.push(start..range.start);
        start = range.end;
    }
    rest.push(start..pages.end);
    rest.retain(|range| range.start < range.end);
    rest
}

/// The part of the memory for collecting pages of lists.
const LISTED_PART: u64 = 16;

/// Rows of sections for choosing the faster way to read.
const PROBES: usize = 16;
/// Sections of a row: a window on /proc/vmcore is mapped as a whole, and covers the records of so
/// many.
const ROW: usize = 8;
/// At most one of this many sections is filtered twice.
const PROBED: usize = 16;

/// Resources for filtering and writing.
#[derive(Debug, Clone)]
pub struct Work {
    /// Number of threads; 0 counts as one.
    pub threads: usize,
    /// How to read the dump.
    pub io: Io,
    /// Limit of the bits and tables that grow with the dump, in bytes.
    pub memory: u64,
    /// A directory for the bits if they need more than half of that limit.
    pub folder: Option<PathBuf>,
}

/// The pages of a new dump.
#[derive(Debug)]
pub struct Plan<'d> {
    dump: &'d Dump,
    notes: Vec<u8>,
    block_pages: u64,
    /// Numbers of the blocks with memory.
    blocks: Vec<u64>,
    /// Number of kept pages before each of them, and in total.
    before: Vec<u64>,
    store: Store,
    counts: Counts,
    memory: u64,
    /// The replacement of the memory map, if it is thinned.
    thin: Option<Thin>,
    /// The groups to write before the other pages, in order.
    groups: Vec<Group>,
    /// All pages of groups, sorted and disjoint.
    grouped: Vec<Range<u64>>,
}

/// The result of the scan over all blocks.
#[derive(Debug, Default)]
struct Scan {
    /// Number of kept pages of each block.
    kept_per_block: Vec<u64>,
    counts: Counts,
    memory: u64,
}

/// The storage of the bits, block after block.
#[derive(Debug)]
enum Store {
    Memory(Mutex<Vec<u64>>),
    File(File, PathBuf),
}

impl<'d> Plan<'d> {
    /// Makes a plan: all pages of the dump without those that the filter drops.
    ///
    /// # Errors
    /// If the dump cannot be read, or the bits fit neither into the memory nor into the directory.
    pub fn make(dump: &'d Dump, filter: Option<&Filter>, work: &Work) -> Result<Self, DumpError> {
        Self::make_watched(dump, filter, work, &Progress::default())
    }

    /// Makes a plan like [`Plan::make`], and reports progress.
    ///
    /// # Errors
    /// As for that.
    pub fn make_watched(
        dump: &'d Dump,
        filter: Option<&Filter>,
        work: &Work,
        progress: &Progress,
    ) -> Result<Self, DumpError> {
        let block_pages = filter.map_or(BLOCK_PAGES, |filter| filter.map().section_pages());
        let blocks = blocks(dump, block_pages)?;
        // Before the scan, so that a lack of space is an error at once and not after minutes.
        let store = Store::new(dump, blocks.len() as u64 * (block_pages / 8), work)?;
        let plan = Self {
            dump,
            notes: dump.notes().to_vec(),
            block_pages,
            blocks,
            before: Vec::new(),
            store,
            counts: Counts::default(),
            memory: 0,
            thin: None,
            groups: Vec::new(),
            grouped: Vec::new(),
        };
        progress.expect(plan.blocks.len() as u64 * block_pages * dump.page_size());
        // Relaxed: threads only need different numbers; their results go through the mutex.
        let next = AtomicUsize::new(0);
        let scan = Mutex::new(Scan {
            kept_per_block: vec![0; plan.blocks.len()],
            ..Scan::default()
        });
        crew(work.threads, || {
            let mut scanner = filter.map(|filter| filter.scanner(Reader::new(dump, work.io)));
            let mut memory = 0;
            let mut keep = vec![0; plan.words()];
            loop {
                let first = next.fetch_add(CLAIM, Ordering::Relaxed);
                let last = (first + CLAIM).min(plan.blocks.len());
                for n in first..last {
                    let number = plan.blocks[n];
                    dump.memory(number * block_pages, &mut keep)?;
                    memory += bits::count(&keep);
                    // An input that was filtered before lacks some of its memory.
                    dump.stored(number * block_pages, &mut keep)?;
                    if let Some(scanner) = &mut scanner {
                        scanner.section(number, &mut keep);
                    }
                    // Blocks without kept pages need no bits.
                    if keep.iter().any(|word| *word != 0) {
                        plan.put(n, &keep)?;
                    }
                    lock(&scan).kept_per_block[n] = bits::count(&keep);
                }
                progress.add(last.saturating_sub(first) as u64 * block_pages * dump.page_size());
                if last >= plan.blocks.len() {
                    let mut scan = lock(&scan);
                    scan.memory += memory;
                    if let Some(scanner) = &scanner {
                        scan.counts.add(scanner.counts());
                    }
                    return Ok(());
                }
            }
        })?;
        let scan = scan.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut plan = Self {
            before: sums(scan.kept_per_block),
            counts: scan.counts,
            memory: scan.memory,
            ..plan
        };
        if let Some(filter) = filter {
            // Both need the bits: listed pages are dropped from them, and slabs, which are written
            // early, are sought among the kept pages only.
            plan.drop_listed(filter, work)?;
            let groups = write_order::groups(&mut Reader::new(dump, work.io), filter, &plan)?;
            plan.group(groups);
        }
        Ok(plan)
    }

    /// Sets groups of pages to write before the others; of the first two, the last pages come
    /// first.
    fn group(&mut self, groups: [Vec<Range<u64>>; 5]) {
        for (number, group) in groups.into_iter().enumerate() {
            let pages: Vec<Range<u64>> = bits::merge(group)
                .into_iter()
                .flat_map(|range| without(range, &self.grouped))
                .collect();
            let mut pieces = self.pieces_of(&pages);
            if number < 2 {
                // The image's data, which readers need first, is at its end.
                pieces.reverse();
            }
            self.grouped = bits::merge(self.grouped.iter().chain(&pages).cloned().collect());
            self.groups.push(Group { pages, pieces });
        }
    }

    /// Returns the pieces with some pages.
    fn pieces_of(&self, pages: &[Range<u64>]) -> Vec<usize> {
        // A block may be smaller than a piece.
        let step = PIECE_PAGES.min(self.block_pages) as usize;
        // A set: ranges may share a piece, which is written once.
        let mut pieces = BTreeSet::new();
        for range in pages {
            // The last page too: a step may pass over the beginning of its piece.
            let samples = range.clone().step_by(step).chain(range.end.checked_sub(1));
            pieces.extend(samples.filter_map(|page| self.piece_with(page)));
        }
        pieces.into_iter().collect()
    }

    /// Returns the piece with a page, in order of addresses; `None` outside memory.
    fn piece_with(&self, page: u64) -> Option<usize> {
        let n = self.blocks.binary_search(&(page / self.block_pages)).ok()?;
        Some(n * self.pieces() + usize::try_from(page % self.block_pages / PIECE_PAGES).ok()?)
    }

    /// Returns the number of pieces of a block.
    fn pieces(&self) -> usize {
        usize::try_from(self.block_pages.div_ceil(PIECE_PAGES)).unwrap_or(1)
    }

    /// Returns the `n`th piece to write: its block, its pages in that, and which of these; empty
    /// after the last.
    ///
    /// The pages that are needed to find others come first, so that an incomplete dump is readable
    /// as far as possible.
    pub(crate) fn piece(&self, n: usize) -> Option<(usize, Range<usize>, Turn)> {
        let mut piece = n;
        let mut turn = Turn::Rest;
        for (number, group) in self.groups.iter().enumerate() {
            match group.pieces.get(piece) {
                Some(own) => {
                    (piece, turn) = (*own, Turn::Group(number));
                    break;
                }
                None => piece -= group.pieces.len(),
            }
        }
        let block = piece / self.pieces();
        let start = piece % self.pieces() * PIECE_PAGES as usize;
        let end = (start + PIECE_PAGES as usize).min(self.words() * 64);
        (block < self.blocks()).then_some((block, start..end, turn))
    }

    /// Returns the pages whose turn it is, as ranges.
    pub(crate) fn spans(&self, pages: Range<u64>, turn: Turn) -> Vec<Range<u64>> {
        match turn {
            Turn::Group(number) => self
                .groups
                .get(number)
                .map_or_else(Vec::new, |group| common(&pages, &group.pages)),
            Turn::Rest => without(pages, &self.grouped),
        }
    }

    /// Drops the free pages on per-processor lists. They are unordered; to avoid reading blocks
    /// again and again, as many as fit into memory are sorted first.
    fn drop_listed(&mut self, filter: &Filter, work: &Work) -> Result<(), DumpError> {
        let most = usize::try_from(work.memory / LISTED_PART / 8)
            .unwrap_or(usize::MAX)
            // With a tiny limit, too: a page at a time would read its block each time.
            .max(1 << 10);
        let mut pages = Vec::new();
        // The walk cannot be ended from within: the first error is kept until its end.
        let mut result = Ok(());
        filter.listed(&mut Reader::new(self.dump, work.io), |page| {
            pages.push(page);
            if pages.len() >= most && result.is_ok() {
                result = self.drop_free(&mut pages);
            }
        });
        result?;
        self.drop_free(&mut pages)
    }

    /// Drops these free pages, if they are still kept, and empties the list.
    fn drop_free(&mut self, pages: &mut Vec<u64>) -> Result<(), DumpError> {
        pages.sort_unstable();
        let mut kept_per_block: Vec<u64> = self
            .before
            .windows(2)
            .map(|sums| sums[1] - sums[0])
            .collect();
        let mut words = vec![0; self.words()];
        for pages in pages.chunk_by(|one, other| one / self.block_pages == other / self.block_pages)
        {
            let Ok(n) = self.blocks.binary_search(&(pages[0] / self.block_pages)) else {
                continue;
            };
            self.read(n, &mut words)?;
            for page in pages {
                let bit = usize::try_from(page % self.block_pages).unwrap_or(usize::MAX);
                bits::clear(&mut words, bit..bit.saturating_add(1));
            }
            self.put(n, &words)?;
            // The difference, as the scan may have dropped a listed page already.
            let left = bits::count(&words);
            let dropped = kept_per_block[n] - left;
            self.counts.listed += dropped;
            self.counts.dropped[Class::Free as usize] += dropped;
            kept_per_block[n] = left;
        }
        self.before = sums(kept_per_block);
        pages.clear();
        Ok(())
    }

    /// Measures whether filtering is faster with mapping or with reading, on some rows of sections
    /// each. A small dump is mapped without measuring, which would take longer than it can
    /// save. `mapped` is the kind of mapping.
    ///
    /// # Errors
    /// If the dump cannot be read.
    pub fn faster(
        dump: &Dump,
        mapped: Io,
        filter: &Filter,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Io, DumpError> {
        let block_pages = filter.map().section_pages();
        let blocks = filter.blocks(dump)?;
        if blocks.len() < PROBES * ROW * PROBED {
            return Ok(mapped);
        }
        let mut keep = vec![0; usize::try_from(block_pages / 64).unwrap_or_default()];
        let mut spent = [Vec::new(), Vec::new()];
        let mut scanners = [mapped, Io::Read].map(|io| filter.scanner(Reader::new(dump, io)));
        for (n, row) in blocks
            .chunks(blocks.len() / PROBES)
            .take(PROBES)
            .enumerate()
        {
            let start = clock();
            // In turns, so that a busy host or an odd stretch of memory slows both down.
            for number in row.iter().take(ROW) {
                dump.memory(number * block_pages, &mut keep)?;
                scanners[n % 2].section(*number, &mut keep);
            }
            spent[n % 2].push(clock().saturating_sub(start));
        }
        let [map, read] = spent.map(|mut spent| {
            spent.sort_unstable();
            // The median and not the sum, which one interruption would spoil.
            spent.get(spent.len() / 2).copied().unwrap_or_default()
        });
        // If both are about equal, map: pages that are touched again, as when copying, then cost
        // less.
        Ok(if read * 10 < map * 9 {
            Io::Read
        } else {
            mapped
        })
    }

    /// Thins the memory map: leaves out records of dropped pages.
    ///
    /// # Errors
    /// If the layout of records is not supported.
    pub fn with_thin_map(
        self,
        reader: &mut Reader<'_>,
        filter: &Filter,
    ) -> Result<Self, DumpError> {
        let thin = Some(Thin::new(reader, filter, &self)?);
        Ok(Self { thin, ..self })
    }

    /// Returns the replacement of a page; `None` if it is unchanged.
    pub(crate) fn instead(&self, page: u64, bytes: &[u8]) -> Result<Option<Vec<u8>>, DumpError> {
        self.thin
            .as_ref()
            .map_or(Ok(None), |thin| thin.page(self, page, bytes))
    }

    /// Marks the new dump with which pages of its level it still has, and why: as a note, which
    /// copies keep.
    #[must_use]
    pub fn with_mark(mut self, lines: &[String]) -> Self {
        if !lines.is_empty() {
            let text = lines.join("\n") + "\n";
            let note = note::encode(MARK.0, MARK.1, text.as_bytes());
            self.notes.extend(note);
        }
        self
    }

    /// Returns the notes of the new dump.
    pub(crate) fn notes(&self) -> &[u8] {
        &self.notes
    }

    /// Returns the planned dump.
    #[must_use]
    pub fn dump(&self) -> &'d Dump {
        self.dump
    }

    /// Returns the number of kept pages.
    #[must_use]
    pub fn kept_count(&self) -> u64 {
        self.before.last().copied().unwrap_or_default()
    }

    /// Returns the number of pages of memory in the dump, kept or not.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns how many pages of each class the filter dropped; all zero without a filter.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the numbers of the kept pages.
    ///
    /// # Errors
    /// If the bits cannot be read back.
    pub fn kept_pages(&self) -> Result<Vec<u64>, DumpError> {
        let mut words = vec![0; self.words()];
        let mut pages = Vec::new();
        for n in 0..self.blocks() {
            self.read(n, &mut words)?;
            let first = self.pages(n).start;
            pages.extend(bits::runs(&words).flatten().map(|bit| first + bit as u64));
        }
        Ok(pages)
    }

    /// Returns the number of words of a block's bits.
    pub(crate) fn words(&self) -> usize {
        // Sections have at most 2^36 bytes.
        (self.block_pages / 64) as usize
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the pages of the `n`th block.
    pub(crate) fn pages(&self, n: usize) -> Range<u64> {
        let start = self.blocks.get(n).copied().unwrap_or_default() * self.block_pages;
        start..start + self.block_pages
    }

    /// Returns the number of kept pages before the `n`th block.
    pub(crate) fn before(&self, n: usize) -> u64 {
        self.before.get(n).copied().unwrap_or_default()
    }

    /// Returns the number of the `rank`th kept page, from 0; after the last one, the number after
    /// the last page.
    pub fn page_at(&self, rank: u64) -> Result<u64, DumpError> {
        // A block without kept pages has the same sum as the next one: the last of equal sums is
        // that of the block with the page.
        let n = self
            .before
            .partition_point(|before| *before <= rank)
            .saturating_sub(1);
        if n >= self.blocks() {
            return Ok(self
                .blocks()
                .checked_sub(1)
                .map_or(0, |last| self.pages(last).end));
        }
        let mut words = vec![0; self.words()];
        self.read(n, &mut words)?;
        let skip = usize::try_from(rank - self.before(n)).unwrap_or(usize::MAX);
        let bit = bits::runs(&words).flatten().nth(skip).unwrap_or_default();
        Ok(self.pages(n).start + bit as u64)
    }

    /// Reads the bits of the block with page `page`, and returns its pages.
    pub(crate) fn read_around(
        &self,
        page: u64,
        words: &mut [u64],
    ) -> Result<Range<u64>, DumpError> {
        let number = page / self.block_pages;
        match self.blocks.binary_search(&number) {
            Ok(n) => self.read(n, words)?,
            // No memory, so no page is kept.
            Err(_) => words.fill(0),
        }
        Ok(number * self.block_pages..(number + 1) * self.block_pages)
    }

    /// Returns the bits of 64 pages from `page`, a multiple of 64.
    pub(crate) fn word(&self, page: u64) -> Result<u64, DumpError> {
        let Ok(n) = self.blocks.binary_search(&(page / self.block_pages)) else {
            return Ok(0);
        };
        let index =
            n * self.words() + usize::try_from(page % self.block_pages / 64).unwrap_or_default();
        match &self.store {
            Store::Memory(all) => Ok(lock(all).get(index).copied().unwrap_or_default()),
            Store::File(file, path) => {
                let offset = index as u64 * 8;
                let mut bytes = [0; 8];
                file.read_exact_at(&mut bytes, offset)
                    .map_err(DumpError::reading(path, offset))?;
                Ok(u64::from_le_bytes(bytes))
            }
        }
    }

    /// Returns whether the `n`th block has no kept page.
    pub(crate) fn is_empty(&self, n: usize) -> bool {
        self.before(n) == self.before(n + 1)
    }

    /// Reads the bits of the `n`th block.
    pub(crate) fn read(&self, n: usize, words: &mut [u64]) -> Result<(), DumpError> {
        let index = n * words.len();
        // Nothing was stored for it: the sums say as much without a system call.
        if self.is_empty(n) {
            words.fill(0);
            return Ok(());
        }
        match &self.store {
            Store::Memory(all) => {
                words.copy_from_slice(&lock(all)[index..index + words.len()]);
                Ok(())
            }
            Store::File(file, path) => {
                let offset = index as u64 * 8;
                let mut bytes = vec![0; words.len() * 8];
                file.read_exact_at(&mut bytes, offset)
                    .map_err(DumpError::reading(path, offset))?;
                bits::from_bytes(&bytes, words);
                Ok(())
            }
        }
    }

    /// Writes the bits of the `n`th block.
    fn put(&self, n: usize, words: &[u64]) -> Result<(), DumpError> {
        let index = n * words.len();
        match &self.store {
            Store::Memory(all) => {
                lock(all)[index..index + words.len()].copy_from_slice(words);
                Ok(())
            }
            Store::File(file, path) => {
                let offset = index as u64 * 8;
                let mut bytes = Vec::new();
                bits::append_bytes(words, &mut bytes);
                file.write_all_at(&bytes, offset)
                    .map_err(DumpError::writing(path, offset))
            }
        }
    }
}

/// Returns the prefix sums, with the total.
fn sums(numbers: Vec<u64>) -> Vec<u64> {
    let mut sums = vec![0];
    sums.extend(numbers.iter().scan(0, |sum, number| {
        *sum += number;
        Some(*sum)
    }));
    sums
}

/// Returns the numbers of the blocks with memory.
pub(crate) fn blocks(dump: &Dump, block_pages: u64) -> Result<Vec<u64>, DumpError> {
    /// Most blocks: 64 TiB in sections of 128 MiB, twice.
    const BLOCKS_MAX: u64 = 1 << 20;
    let mut blocks: Vec<u64> = Vec::new();
    for extent in dump.extents().filter(|extent| extent.start < extent.end) {
        // Two extents may lie in one block, which is listed once.
        let first = (extent.start / block_pages).max(blocks.last().map_or(0, |last| last + 1));
        let end = extent.end.div_ceil(block_pages);
        if end.saturating_sub(first) > BLOCKS_MAX - blocks.len() as u64 {
            let what = format!(
                "it speaks of {:#x} bytes of memory, more than any machine has",
                extent.end * dump.page_size()
            );
            return Err(DumpError::malformed(dump.path(), 0, what));
        }
        blocks.extend(first..end);
    }
    Ok(blocks)
}

impl Store {
    fn new(dump: &Dump, size: u64, work: &Work) -> Result<Self, DumpError> {
        // The other half is for the readers' windows.
        if size <= work.memory / 2 {
            let words = usize::try_from(size / 8).unwrap_or_default();
            return Ok(Self::Memory(Mutex::new(vec![0; words])));
        }
        let Some(folder) = &work.folder else {
            return Err(DumpError::Usage(format!(
                "the bits of {} pages need {size} bytes: give --memory {}M, or a folder for them with --work-dir",
                dump.pages(),
                (size * 2).div_ceil(1 << 20),
            )));
        };
        let (file, path) = scratch(folder)?;
        // Its whole length now: `word` also reads blocks without kept pages, which are never
        // written.
        file.set_len(size)
            .map_err(DumpError::writing(&path, size))?;
        Ok(Self::File(file, path))
    }
}

/// Makes a file that is deleted when closed.
fn scratch(folder: &std::path::Path) -> Result<(File, PathBuf), DumpError> {
    let folder = if folder.as_os_str().is_empty() {
        std::path::Path::new(".")
    } else {
        folder
    };
    // Threads of a process may want one at the same time.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".marvin-dump-{}-{number}", std::process::id()));
    let options = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .to_owned();
    let file = options.open(&path).map_err(DumpError::writing(&path, 0))?;
    // At once, so that a killed program leaves nothing behind.
    std::fs::remove_file(&path).map_err(DumpError::writing(&path, 0))?;
    Ok((file, path))
}

/// Locks; ignores the poison of a panicked thread, whose panic ends the program anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a closure in several threads; returns the first error.
pub(crate) fn crew(
    threads: usize,
    work: impl Fn() -> Result<(), DumpError> + Sync,
) -> Result<(), DumpError> {
    if threads <= 1 {
        return work();
    }
    let first = Mutex::new(None);
    std::thread::scope(|scope| {
        // If the system refuses more threads, the existing ones do all the work.
        for _ in 1..threads {
            if std::thread::Builder::new()
                .spawn_scoped(scope, || keep_first_error(&first, work()))
                .is_err()
            {
                break;
            }
        }
        keep_first_error(&first, work());
    });
    first
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(()), Err)
}

fn keep_first_error(first: &Mutex<Option<DumpError>>, result: Result<(), DumpError>) {
    if let Err(error) = result {
        lock(first).get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::Plan;
    use crate::dump::Dump;
    use crate::exclusion::Level;
    use crate::filter::Filter;
    use crate::reader::{Io, Reader};
    use synthetic_dumps::large::{Large, Mix};

    /// Returns the choice if each measured row takes as long as `times` says.
    fn chosen(memory: u64, times: &[u64]) -> (Io, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmcore");
        Large {
            memory,
            distinct: 8,
            mix: Mix::Free,
        }
        .write(&path)
        .unwrap();
        let dump = Dump::open(&[path]).unwrap();
        let filter = Filter::new(&mut Reader::new(&dump, Io::Map), Level::MAX).unwrap();
        let calls = Cell::new(0);
        let now = Cell::new(0);
        let clock = || {
            let n = calls.replace(calls.get() + 1);
            if n % 2 == 1 {
                now.set(now.get() + times[(n / 2) as usize % times.len()]);
            }
            Duration::from_micros(now.get())
        };
        (
            Plan::faster(&dump, Io::Map, &filter, &clock).unwrap(),
            calls.get(),
        )
    }

    #[test]
    fn faster_plan_is_chosen_regardless_of_interruptions() {
        const LARGE: u64 = 1 << 40;
        assert_eq!(chosen(LARGE, &[100, 50]), (Io::Read, 32));
        assert_eq!(chosen(LARGE, &[50, 100]).0, Io::Map);
        assert_eq!(chosen(LARGE, &[100, 95]).0, Io::Map, "about equal");
        // An interruption during one of eight rows.
        assert_eq!(
            chosen(LARGE, &[50, 100, 50, 100, 9999, 100, 50, 100]).0,
            Io::Map
        );
        assert_eq!(
            chosen(8 << 30, &[100, 50]),
            (Io::Map, 0),
            "a small one is not tried"
        );
    }
}
