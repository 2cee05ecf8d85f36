//! The filter: scans the memory map section by section and drops pages.
//!
//! Sections are independent, so threads can share them: a free block never crosses its section (the
//! kernel requires MAX_PAGE_ORDER to fit, `include/linux/mmzone.h`), and for a compound page that
//! does, the next section reads its head.

use std::ops::Range;

use crate::bits;
use crate::completion::Shortfall;
use crate::description::Description;
use crate::dump::Dump;
use crate::error::{DumpError, MemoryError};
use crate::exclusion::{Class, Evidence, Level, Record, Rule};
use crate::exclusion_table::Table;
use crate::layout::{Layout, RECORD};
use crate::memmap::MemoryMap;
use crate::paging::Walker;
use crate::per_cpu::Lists;
use crate::plan::blocks;
use crate::reader::Reader;
use crate::symbols::Symbols;
use crate::window::PIECE_MAX;
use crate::zones::DeviceZone;

/// The result of a filter, in pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Dropped pages, by the number of their [`Class`].
    pub dropped: [u64; Class::COUNT],
    /// Free pages on per-processor lists, included in the dropped ones.
    pub listed: u64,
    /// Pages with unreadable records; they are kept.
    pub unknown: u64,
    /// Why the first unreadable record could not be read.
    pub why: Option<MemoryError>,
}

impl Counts {
    /// Returns the number of dropped pages of a class.
    #[must_use]
    pub fn of_class(&self, class: Class) -> u64 {
        self.dropped[class as usize]
    }

    /// Adds another thread's result.
    pub fn add(&mut self, other: &Self) {
        self.dropped
            .iter_mut()
            .zip(other.dropped)
            .for_each(|(own, other)| *own += other);
        self.listed += other.listed;
        self.unknown += other.unknown;
        self.why = self.why.take().or_else(|| other.why.clone());
    }
}

/// The data for filtering a dump; shared by its threads.
#[derive(Debug)]
pub struct Filter {
    map: MemoryMap,
    rule: Rule,
    table: Table,
    image: Vec<Range<u64>>,
    /// Pages of sections that are offline which are kept: the image, and records of such sections.
    kept_offline: Vec<Range<u64>>,
    symbols: Symbols,
    lists: Lists,
    without_lists: Option<&'static str>,
    shortfalls: Vec<Shortfall>,
}

impl Filter {
    /// Prepares a filter: finds the memory map, the layout of `struct page` and the kernel's image.
    ///
    /// # Errors
    /// If the note is incomplete or the kernel's tables cannot be read.
    pub fn new(reader: &mut Reader<'_>, level: Level) -> Result<Self, DumpError> {
        let Description {
            info,
            image,
            symbols,
            types,
        } = Description::find(reader)?;
        let mut map = MemoryMap::find_with(reader, &info)?;
        if let Some(zone) = types
            .as_ref()
            .and_then(|types| DeviceZone::find(&info, types))
        {
            map.find_devices(reader, zone);
        }
        let (layout, shortfalls) = Layout::new(&info, types.is_some())?;
        let shortfalls: Vec<Shortfall> = shortfalls
            .into_iter()
            .filter(|shortfall| shortfall.concerns(level))
            .collect();
        let level = shortfalls
            .iter()
            .fold(level, |level, shortfall| level.without(shortfall.level));
        let rule = Rule::new(layout, level);
        // Without the lists their pages are kept: a larger dump, and no error.
        let found = match types {
            _ if !level.free() => Ok(Lists::default()),
            Some(types) => Lists::find(reader, &info, &map, &types, &symbols),
            None => Err("the kernel has no types (BTF)"),
        };
        let without_lists = found.as_ref().err().copied();
        let table = Table::new(&rule);
        let lists = found.unwrap_or_default();
        // Hot-added memory may hold its own records (memmap_on_memory), which readers walk.
        let mut kept_offline = map.offline_records(reader);
        kept_offline.extend(image.iter().cloned());
        let kept_offline = bits::merge(kept_offline);
        Ok(Self {
            map,
            table,
            rule,
            image,
            kept_offline,
            symbols,
            lists,
            without_lists,
            shortfalls,
        })
    }

    /// Returns the level that it filters at: the wanted one less what the dump does not describe.
    #[must_use]
    pub fn level(&self) -> Level {
        self.rule.level()
    }

    /// Returns which pages of the wanted level it does not exclude, and why.
    #[must_use]
    pub fn shortfalls(&self) -> &[Shortfall] {
        &self.shortfalls
    }

    /// Prepares a filter like [`Filter::new`]; `None` for a dump without usable memory map at a
    /// level that does not need one. Otherwise broken and offline pages are dropped at every
    /// level, because reading them can end a capture.
    ///
    /// # Errors
    /// If the level needs data that cannot be found.
    pub fn for_level(reader: &mut Reader<'_>, level: Level) -> Result<Option<Self>, DumpError> {
        match Self::new(reader, level) {
            Err(_) if !level.filters() => Ok(None),
            made => made.map(Some),
        }
    }

    /// Returns a filter that keeps the free pages on per-processor lists; for experiments.
    pub fn without_lists(self) -> Self {
        Self {
            lists: Lists::default(),
            ..self
        }
    }

    /// Calls `each` with the free pages on per-processor lists, whose records do not show that they
    /// are free.
    pub(crate) fn listed(&self, reader: &mut Reader<'_>, mut each: impl FnMut(u64)) {
        self.lists.walk(reader, &self.map, &mut |page, bytes| {
            if record(bytes, self.map.record()).is_some_and(|record| self.rule.may_be_free(&record))
            {
                each(page);
            }
        });
    }

    /// Returns where the dump has the `struct page` of each page.
    #[must_use]
    pub fn map(&self) -> &MemoryMap {
        &self.map
    }

    /// Returns why free pages on per-processor lists are not recognised, and so kept; `None` if
    /// they are, or the level keeps free pages.
    #[must_use]
    pub fn why_without_lists(&self) -> Option<&'static str> {
        self.without_lists
    }

    /// Returns the layout of records.
    pub(crate) fn layout(&self) -> &Layout {
        self.rule.layout()
    }

    /// Returns whether PG_reserved is known, so that reserved pages are kept.
    #[must_use]
    pub fn knows_reserved(&self) -> bool {
        self.rule.layout().reserved != 0
    }

    /// Returns addresses from the kernel's symbol table.
    pub(crate) fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Returns the pages needed to find all others: page tables and section tables, then the image.
    pub(crate) fn first(&self, reader: &mut Reader<'_>) -> [Vec<Range<u64>>; 2] {
        let tables = self
            .map
            .tables(reader)
            .into_iter()
            .map(|page| page..page + 1);
        [tables.collect(), self.image.clone()]
    }

    /// Returns the numbers of the sections with memory in a dump.
    ///
    /// # Errors
    /// If it has more memory than any machine.
    pub fn blocks(&self, dump: &Dump) -> Result<Vec<u64>, DumpError> {
        blocks(dump, self.map.section_pages())
    }

    /// Makes a scanner for one thread.
    #[must_use]
    pub fn scanner<'f>(&'f self, reader: Reader<'f>) -> Scanner<'f> {
        let records = Records {
            walker: Walker::new(self.map.architecture()),
            size: self.map.record(),
            mapped: reader.maps(),
            reader,
            extents: Vec::new(),
            seam: Vec::new(),
            ahead: AHEAD_MIN,
        };
        Scanner {
            filter: self,
            records,
            section: Section::default(),
            counts: Counts::default(),
        }
    }
}

/// Bytes of records to read first at an unknown position: blocks may make the rest unnecessary.
const AHEAD_MIN: usize = 4096;

/// Filters sections one by one; each thread has its own.
#[derive(Debug)]
pub struct Scanner<'f> {
    filter: &'f Filter,
    records: Records<'f>,
    section: Section,
    counts: Counts,
}

/// Access to the records of a section.
#[derive(Debug)]
struct Records<'f> {
    reader: Reader<'f>,
    walker: Walker<'f>,
    /// Bytes of a record.
    size: usize,
    mapped: bool,
    /// Bytes from the first record on, and their physical address.
    extents: Vec<(Range<usize>, u64)>,
    /// A copy of records that span two pieces.
    seam: Vec<u8>,
    /// How much to read at once.
    ahead: usize,
}

/// A section while it is filtered; its memory is reused for the next one.
#[derive(Debug, Default)]
struct Section {
    pages: Range<u64>,
    /// Pages of memory; empty if the section is plain.
    memory: Vec<u64>,
    /// Pages outside the kernel's image: pages in it need strong evidence to be dropped. Empty if
    /// plain.
    allowed: Vec<u64>,
    /// All of it is memory outside the image.
    plain: bool,
    drop: Vec<u64>,
}

impl Section {
    /// Starts with the pages of a section: those in `memory` are memory and those in `image` the
    /// kernel's image.
    fn begin(&mut self, pages: Range<u64>, memory: &[u64], image: &[Range<u64>]) {
        self.drop.clear();
        self.drop.resize(memory.len(), 0);
        self.plain = memory.iter().fold(u64::MAX, |all, word| all & word) == u64::MAX
            && !image
                .iter()
                .any(|range| range.start < pages.end && pages.start < range.end);
        if !self.plain {
            self.memory.clear();
            self.memory.extend(memory);
            self.allowed.clear();
            self.allowed.resize(memory.len(), 0);
            let skip = image.partition_point(|range| range.end <= pages.start);
            bits::set_ranges(
                &mut self.allowed,
                pages.start,
                image[skip..].iter().cloned(),
            );
            self.allowed
                .iter_mut()
                .zip(memory)
                .for_each(|(word, memory)| *word = memory & !*word);
        }
        self.pages = pages;
    }

    /// Returns whether a page is memory.
    fn is_memory(&self, page: usize) -> bool {
        self.plain || bits::has(&self.memory, page)
    }

    /// Returns the number of pages.
    fn len(&self) -> usize {
        self.drop.len() * 64
    }

    /// Drops pages of a class, and returns how many.
    fn drop(&mut self, range: Range<usize>, class: Class, evidence: Evidence) -> u64 {
        if class == Class::Kept {
            return 0;
        }
        let range = range.start..range.end.min(self.drop.len() * 64);
        if self.plain {
            bits::set(&mut self.drop, range.clone());
            return range.len() as u64;
        }
        let may = match evidence {
            Evidence::Strong => &self.memory,
            Evidence::Weak => &self.allowed,
        };
        // Counted by bit: only memory counts, and in a damaged dump blocks may overlap.
        let mut count = 0;
        let mut at = range.start;
        while at < range.end {
            let word = at / 64;
            let end = range.end.min((word + 1) * 64);
            let may = bits::mask(at % 64, end - at) & may[word];
            count += u64::from((may & !self.drop[word]).count_ones());
            self.drop[word] |= may;
            at = end;
        }
        count
    }
}

impl<'f> Scanner<'f> {
    /// Returns the counts of the sections that were filtered so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Filters a section: clears the bits of dropped pages in `keep`, which has its memory.
    pub fn section(&mut self, number: u64, keep: &mut [u64]) {
        let pages = self.filter.map.pages(number);
        // What a device's memory holds is in no level.
        let map = &self.filter.map;
        if map.address(number, pages.start).is_none() || map.is_device(number) {
            return;
        }
        // Taken out, so that its memory is reused while the other fields change.
        let mut section = std::mem::take(&mut self.section);
        if self.filter.map.is_offline(number) {
            // Its records are not kept up to date (`pfn_to_online_page`,
            // include/linux/memory_hotplug.h), so they are not asked.
            section.begin(pages, keep, &self.filter.kept_offline);
            let all = 0..section.len();
            self.counts.dropped[Class::Offline as usize] +=
                section.drop(all, Class::Offline, Evidence::Weak);
        } else {
            section.begin(pages, keep, &self.filter.image);
            let first = self
                .filter
                .map
                .address(number, section.pages.start)
                .unwrap_or_default();
            self.records.find(first, section.drop.len() * 64);
            let mut page = self.leading(number, &mut section);
            let count = keep.len() * 64;
            while page < count {
                page = self.piece(&mut section, page);
            }
        }
        keep.iter_mut()
            .zip(&section.drop)
            .for_each(|(keep, drop)| *keep &= !drop);
        self.section = section;
    }

    /// Handles a compound page that begins in an earlier section; returns the page after it.
    fn leading(&mut self, number: u64, section: &mut Section) -> usize {
        let map = &self.filter.map;
        let rule = &self.filter.rule;
        let size = map.record();
        let Ok(bytes) = self.records.fetch(0, 2) else {
            return 0;
        };
        let (Some(first), behind) = (
            record(bytes, size),
            bytes.get(size..).and_then(|rest| record(rest, size)),
        ) else {
            return 0;
        };
        // Tails of hugetlb pages whose records were given back (HVO) are mapped to the head's page,
        // and look like heads themselves; the next record shows the real head
        // (`page_fixed_fake_head`, `include/linux/page-flags.h`).
        let Some(address) = map.address(number, section.pages.start) else {
            return 0;
        };
        let next = address.wrapping_add(size as u64);
        let head = rule
            .head_address(&first, address)
            .or_else(|| rule.head_address(&behind?, next));
        let Some(head) = head.and_then(|address| map.page_of(number, address)) else {
            return 0;
        };
        if head >= section.pages.start {
            return 0;
        }
        let Some(address) = map.address(head / map.section_pages(), head) else {
            return 0;
        };
        // By its address and with a walker of its own: the head is in another section, whose tables
        // would replace those that this one needs next.
        let mapping = Walker::new(map.architecture()).walk(&mut self.records.reader, address);
        let Ok(bytes) =
            mapping.and_then(|mapping| self.records.reader.bytes(mapping.physical, 2 * size))
        else {
            return 0;
        };
        let Some(record) = record(bytes, size) else {
            return 0;
        };
        let (class, pages) = rule.block(&record, head, bytes);
        if class == Class::Kept {
            // Its other pages may be broken.
            return 0;
        }
        let evidence = rule.evidence(&record, class);
        let end = head
            .saturating_add(pages)
            .min(section.pages.end)
            .saturating_sub(section.pages.start);
        let end = usize::try_from(end).unwrap_or_default();
        self.counts.dropped[class as usize] += section.drop(0..end, class, evidence);
        end
    }

    /// Filters as many pages from `at` as there are records at once; returns the next page.
    fn piece(&mut self, section: &mut Section, at: usize) -> usize {
        let count = section.len();
        let size = self.filter.map.record();
        let rule = &self.filter.rule;
        let bytes = match self.records.fetch(at, 2) {
            Ok(bytes) if bytes.len() >= size => bytes,
            Ok(_) => {
                return skip_unknown(
                    section,
                    at,
                    MemoryError::Unmapped(at as u64),
                    &mut self.counts,
                );
            }
            Err(error) => return skip_unknown(section, at, error, &mut self.counts),
        };
        // A head needs the next record too, for its order; so the last record waits for the next
        // piece, but at the end of the section.
        let whole = bytes.len() / size;
        let usable = if at + whole < count && whole > 1 {
            whole - 1
        } else {
            whole
        };
        let end = (at + usable).min(count);
        let mut page = at;
        while page < end {
            let rest = &bytes[(page - at) * size..];
            let count = (64 - page % 64).min(end - page);
            let done = batch(
                self.filter,
                size,
                section,
                page,
                &rest[..count * size],
                &mut self.counts,
            );
            page += done;
            if done < count {
                // A page that stands for others.
                let rest = &rest[done * size..];
                let Some(first) = record(rest, size) else {
                    break;
                };
                let (class, pages) = rule.block(&first, section.pages.start + page as u64, rest);
                // Before the block is judged: the class of its first page alone.
                let own = rule.class(&first);
                if own == Class::Poisoned && class != Class::Poisoned {
                    let evidence = rule.evidence(&first, own);
                    self.counts.dropped[own as usize] +=
                        section.drop(page..page + 1, own, evidence);
                }
                // The other pages of a kept block may be broken, which their own records say.
                let pages = if class == Class::Kept { 1 } else { pages };
                let pages = usize::try_from(pages)
                    .unwrap_or(section.len())
                    .min(section.len() - page);
                let evidence = rule.evidence(&first, class);
                let rest = page + usize::from(own == Class::Poisoned && class != own);
                self.counts.dropped[class as usize] +=
                    section.drop(rest..page + pages, class, evidence);
                page += pages;
            }
        }
        self.records.ahead = match page.saturating_sub(end) * size {
            0 => (self.records.ahead * 2).clamp(AHEAD_MIN, PIECE_MAX),
            1..AHEAD_MIN => AHEAD_MIN,
            // Another large block often follows, of which only the head matters.
            _ => 0,
        };
        page
    }
}

/// Filters pages of one word up to the first that stands for others too; returns how many.
fn batch(
    filter: &Filter,
    size: usize,
    section: &mut Section,
    page: usize,
    bytes: &[u8],
    counts: &mut Counts,
) -> usize {
    let rule = &filter.rule;
    let table = &filter.table;
    let batch = if size == RECORD {
        table.scan(bytes.as_chunks().0)
    } else {
        let records: Vec<Record> = bytes
            .chunks_exact(size)
            .filter_map(|bytes| record(bytes, size))
            .collect();
        table.scan(&records)
    };
    let mask = batch.drop << (page % 64);
    // Nearly always: no page of this word is in the image, so the whole word is dropped at once.
    if section.plain || mask & !section.allowed[page / 64] == 0 {
        section.drop[page / 64] |= mask;
        // Class 0 is kept pages.
        for (class, dropped) in counts.dropped.iter_mut().enumerate().skip(1) {
            *dropped += batch.counts >> (class * 8) & 0xff;
        }
        return batch.done;
    }
    // Some of them may not be dropped: handle them one by one.
    let memory = section.memory[page / 64];
    let allowed = section.allowed[page / 64];
    for (n, bytes) in bytes.chunks_exact(size).take(batch.done).enumerate() {
        let Some(record) = record(bytes, size) else {
            continue;
        };
        let class = rule.class(&record);
        let may = match rule.evidence(&record, class) {
            Evidence::Strong => memory,
            Evidence::Weak => allowed,
        };
        if class != Class::Kept && may >> (page % 64 + n) & 1 == 1 {
            counts.dropped[class as usize] += 1;
            section.drop[page / 64] |= 1 << (page % 64 + n);
        }
    }
    batch.done
}

/// Skips unreadable records: their pages are kept.
fn skip_unknown(section: &Section, at: usize, why: MemoryError, counts: &mut Counts) -> usize {
    // The next page of records may be readable.
    let next = (at + 64 - at % 64).min(section.drop.len() * 64);
    let unknown = (at..next).filter(|page| section.is_memory(*page)).count() as u64;
    counts.unknown += unknown;
    if unknown > 0 {
        counts.why.get_or_insert(why);
    }
    next
}

impl Records<'_> {
    /// Locates the records of a section: contiguous if 2 MiB are mapped at once, else page by page.
    fn find(&mut self, start: u64, count: usize) {
        self.extents.clear();
        let size = count * self.size;
        let mut at = 0;
        while at < size {
            let found = self
                .walker
                .walk(&mut self.reader, start.wrapping_add(at as u64));
            let (length, physical) = match found {
                Ok(mapping) => (
                    usize::try_from(mapping.length).unwrap_or(size),
                    Some(mapping.physical),
                ),
                // As little as any machine maps, so that no readable record is passed over.
                Err(_) => (4096 - (start.wrapping_add(at as u64) % 4096) as usize, None),
            };
            let end = at.saturating_add(length).min(size);
            if let Some(physical) = physical {
                match self.extents.last_mut().filter(|(range, from)| {
                    range.end == at && *from + (range.end - range.start) as u64 == physical
                }) {
                    Some((range, _)) => range.end = end,
                    None => self.extents.push((at..end, physical)),
                }
            }
            at = end;
        }
    }

    /// Returns the bytes of records from `at`: as many as possible at once, at least `least` if
    /// they exist.
    fn fetch(&mut self, at: usize, least: usize) -> Result<&[u8], MemoryError> {
        let size = self.size;
        let start = at * size;
        let found = self
            .extents
            .partition_point(|(range, _)| range.end <= start);
        let Some((range, physical)) = self
            .extents
            .get(found)
            .filter(|(range, _)| range.start <= start)
            .cloned()
        else {
            return Err(MemoryError::Unmapped(start as u64));
        };
        let available = range.end - start;
        let from = physical + (start - range.start) as u64;
        // Mapped bytes cost nothing until they are touched; bytes to read are copied at once.
        let wanted = if self.mapped {
            self.reader.piece(from, least * size)
        } else {
            self.ahead
        };
        if available >= least * size {
            let length = available.min(wanted.max(least * size));
            let whole = length - length % size;
            return self.reader.bytes(from, whole);
        }
        // The records span two pieces; the second one may be unmapped.
        self.seam.clear();
        self.seam.extend_from_slice(
            self.reader
                .bytes(physical + (start - range.start) as u64, available)?,
        );
        if let Some((next, physical)) = self
            .extents
            .get(found + 1)
            .filter(|next| next.0.start == range.end)
        {
            let rest = (least * size - available).min(next.len());
            self.seam
                .extend_from_slice(self.reader.bytes(*physical, rest)?);
        }
        Ok(&self.seam)
    }
}

/// Returns the first record in bytes, as far as it is needed.
#[inline]
fn record(bytes: &[u8], size: usize) -> Option<Record> {
    if size >= RECORD {
        return bytes.first_chunk().copied();
    }
    let mut record = [0; RECORD];
    record.get_mut(..size)?.copy_from_slice(bytes.get(..size)?);
    Some(record)
}
