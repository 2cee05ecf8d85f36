//! The cost model: which instructions and data a processor of given sizes would have found in its
//! caches and translation buffers, and which branches it would have predicted. It is told each
//! block of instructions and each access; it has no prefetcher, no speculation and no time, so it
//! is a model and no measurement. It sees the guest from the end of its first warm-up on, so that
//! the measured iterations find what they would find.

mod branch;
mod cache;

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::OnceLock;

use crate::api::{self, Instruction};
use crate::count::is_kernel;
use branch::{End, Predictor};
use cache::{Cache, Geometry};

/// Bits of a cache line's size, and of a page's.
const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
/// A line's number within its page.
const LINE_MASK: u64 = (1 << (PAGE_BITS - LINE_BITS)) - 1;
/// Bits of a large page's size.
const LARGE_BITS: u32 = 21;
/// Most blocks that are known; others are not seen.
const BLOCKS_MAX: usize = 1 << 20;
/// Translations that are remembered, so that QEMU need not be asked again.
const TRANSLATIONS: usize = 4096;
/// Where the kernel's text and data are mapped to physical address 0, without KASLR
/// (Documentation/arch/x86/x86_64/mm.rst).
const TEXT: std::ops::Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_c000_0000;
/// What else the kernel maps by large pages: the direct map and the map of pages, with four and
/// with five levels of page tables (the same document).
const LARGE: [std::ops::Range<u64>; 4] = [
    0xffff_8880_0000_0000..0xffff_c880_0000_0000,
    0xffff_ea00_0000_0000..0xffff_eb00_0000_0000,
    0xff11_0000_0000_0000..0xff91_0000_0000_0000,
    0xffd4_0000_0000_0000..0xffd6_0000_0000_0000,
];

/// What a processor does that costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A line of code that the first cache of instructions did not have.
    L1i,
    /// A line that the first cache of data did not have.
    L1d,
    /// One of these that the second cache did not have.
    L2,
    /// One of these that the last cache did not have.
    Last,
    /// A page of code that its first translation buffer did not have.
    Itlb,
    /// A page of data that its first translation buffer did not have.
    Dtlb,
    /// One of these that the second translation buffer did not have.
    Walk,
    /// A branch that went where it was not predicted to.
    Branch,
}

impl Event {
    /// All of them, in the order of their numbers.
    const ALL: [Self; 8] = [
        Self::L1i,
        Self::L1d,
        Self::L2,
        Self::Last,
        Self::Itlb,
        Self::Dtlb,
        Self::Walk,
        Self::Branch,
    ];

    /// Returns its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::L1i => "l1i",
            Self::L1d => "l1d",
            Self::L2 => "l2",
            Self::Last => "last",
            Self::Itlb => "itlb",
            Self::Dtlb => "dtlb",
            Self::Walk => "walk",
            Self::Branch => "branch",
        }
    }
}

/// Sizes of what is modelled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sizes {
    caches: [Option<Geometry>; 7],
    predictor_bits: Option<u32>,
    seed: u64,
}

/// Words of the caches, in the order of [`Sizes`].
const CACHES: [&str; 7] = ["l1i", "l1d", "l2", "last", "itlb", "dtlb", "stlb"];

impl Sizes {
    /// Takes one size; tells whether there is such a word and the size makes sense.
    pub(crate) fn set(&mut self, word: &str, value: &str) -> bool {
        if word == "predictor" {
            self.predictor_bits = value.parse().ok().filter(|bits| (1..=20).contains(bits));
            return self.predictor_bits.is_some();
        }
        if word == "seed" {
            return value.parse().map(|seed| self.seed = seed).is_ok();
        }
        let Some(place) = CACHES.iter().position(|known| *known == word) else {
            return false;
        };
        self.caches[place] = Geometry::parse(value);
        self.caches[place].is_some()
    }
}

/// Index of an instruction that something may happen at; all of user code is one.
type Site = u32;

/// Code of a block within one cache line.
#[derive(Clone, Copy)]
struct LineCode {
    /// Number of the line in physical memory, and of its page.
    physical: u64,
    page: u64,
    /// Its first instruction there.
    site: Site,
}

/// A block of instructions. As small as a line of the host's caches: one is read for each block
/// that the guest executes.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block {
    start: u64,
    end: Ended,
    /// Its lines' place among all lines, and how many there are.
    lines: (u32, u8),
    /// The first one's number in physical memory.
    first: u64,
    /// What begins there, if no branch led to it.
    entry: Option<Entry>,
}

/// What begins with a block that no branch led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// An interrupt: the block before it has ended.
    Interrupt,
    /// An exception or a system call, which may come from within a block.
    Other,
}

/// How a block ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Ended {
    end: End,
    /// Where its last instruction is, and how many bytes it has.
    at: u64,
    size: u8,
    site: Site,
}

#[derive(Clone, Copy, Default)]
struct Translation {
    /// Number of the small page; translations of 0 are never remembered.
    number: u64,
    frame: u64,
    /// The page that it belongs to, as [`page`] numbers it.
    page: u64,
    /// The flush after which it was asked for.
    epoch: u64,
}

/// What a modelled processor has in its memories.
pub(crate) struct Cost {
    blocks: Vec<Block>,
    lines: Vec<LineCode>,
    known: HashMap<(u64, u64, Ended), usize>,
    l1i: Cache,
    l1d: Cache,
    l2: Cache,
    last: Cache,
    itlb: Cache,
    dtlb: Cache,
    stlb: Cache,
    predictor: Predictor,
    translations: Vec<Translation>,
    epoch: u64,
    /// The block before, the line and the page that code was fetched from, and those that data was
    /// read from.
    before: Ended,
    block: usize,
    line: u64,
    page: u64,
    data_line: u64,
    data_page: u64,
    /// Addresses of sites, what happened at each, and which of these numbers are not 0.
    sites: Vec<u64>,
    site_of: HashMap<u64, Site>,
    happened: Vec<[u64; Event::ALL.len()]>,
    dirty: Vec<(Site, Event)>,
    is_active: bool,
    /// Where QEMU has the guest's physical address 0.
    memory: Option<u64>,
}

impl Cost {
    /// Makes one with empty caches; nothing if a size is missing.
    pub(crate) fn new(sizes: &Sizes) -> Option<Self> {
        let [l1i, l1d, l2, last, itlb, dtlb, stlb] =
            sizes.caches.map(|geometry| geometry.map(Cache::new));
        Some(Self {
            blocks: Vec::new(),
            lines: Vec::new(),
            known: HashMap::new(),
            l1i: l1i?,
            l1d: l1d?,
            l2: l2?,
            last: last?,
            itlb: itlb?,
            dtlb: dtlb?,
            stlb: stlb?,
            predictor: Predictor::new(sizes.predictor_bits?, sizes.seed),
            translations: vec![Translation::default(); TRANSLATIONS],
            epoch: 1,
            before: Ended {
                end: End::Plain,
                at: 0,
                size: 0,
                site: 0,
            },
            block: usize::MAX,
            line: 0,
            page: 0,
            data_line: 0,
            data_page: 0,
            // Site 0 is user code.
            sites: vec![0],
            site_of: HashMap::from([(0, 0)]),
            happened: vec![Default::default()],
            dirty: Vec::new(),
            is_active: false,
            memory: None,
        })
    }

    /// Begins to see what the guest does.
    pub(crate) fn activate(&mut self) {
        self.is_active = true;
    }

    /// Takes note of a block that is being translated and returns its number.
    pub(crate) fn translate(
        &mut self,
        code: &[(Instruction, usize)],
        last: &[u8],
        entry: Option<Entry>,
    ) -> Option<usize> {
        let (first, _) = code.first()?;
        let (start, host) = (first.address(), first.host()?);
        if self.memory.is_none() && TEXT.contains(&start) {
            self.memory = Some(host.wrapping_sub(start - TEXT.start));
        }
        let memory = self.memory?;
        let (end, size) = code
            .last()
            .map(|(instruction, size)| (instruction.address(), *size as u64))?;
        let physical = host.wrapping_sub(memory);
        // With all of the end: code may be changed in place.
        let ended = Ended {
            end: End::of(last, end + size),
            at: end,
            size: size as u8,
            site: self.site(end) as Site,
        };
        if let Some(known) = self.known.get(&(start, physical, ended)) {
            return Some(*known);
        }
        if self.blocks.len() == BLOCKS_MAX {
            return None;
        }
        let before = self.lines.len();
        for (instruction, size) in code {
            let (address, host) = (instruction.address(), instruction.host()?);
            let from = host.wrapping_sub(memory);
            let to = from + (*size as u64).max(1) - 1;
            // What lies on the next page may be anywhere.
            let to = if to >> PAGE_BITS == from >> PAGE_BITS {
                to
            } else {
                from
            };
            for physical in [from >> LINE_BITS, to >> LINE_BITS] {
                if self.lines[before..]
                    .last()
                    .is_none_or(|line| line.physical != physical)
                {
                    let site = self.site(address) as Site;
                    self.lines.push(LineCode {
                        physical,
                        page: page(address),
                        site,
                    });
                }
            }
        }
        let lines = (
            u32::try_from(before).ok()?,
            u8::try_from(self.lines.len() - before).ok()?,
        );
        let first = self.lines[before].physical;
        self.known
            .insert((start, physical, ended), self.blocks.len());
        self.blocks.push(Block {
            start,
            end: ended,
            lines,
            first,
            entry,
        });
        Some(self.blocks.len() - 1)
    }

    /// Returns the index of an instruction.
    pub(crate) fn site(&mut self, address: u64) -> usize {
        let address = if is_kernel(address) { address } else { 0 };
        let next = self.sites.len() as Site;
        let site = *self.site_of.entry(address).or_insert(next);
        if site == next {
            self.sites.push(address);
            self.happened.push(Default::default());
        }
        site as usize
    }

    /// Takes what happened since the last time: what, at which address (0 is user code), and how
    /// often.
    pub(crate) fn take(&mut self) -> Vec<(Event, u64, u64)> {
        let Self {
            happened,
            sites,
            dirty,
            ..
        } = self;
        let take = |(site, event): (Site, Event)| {
            let count = std::mem::take(&mut happened[site as usize][event as usize]);
            (event, sites[site as usize], count)
        };
        dirty.drain(..).map(take).collect()
    }

    fn happen(&mut self, event: Event, site: Site) {
        let count = &mut self.happened[site as usize][event as usize];
        *count += 1;
        if *count == 1 {
            self.dirty.push((site, event));
        }
    }

    /// A block begins to execute.
    #[inline]
    fn fetch(&mut self, block: usize) {
        // Iterations of a repeated string instruction are blocks.
        if block == self.block && self.before.end == End::Plain {
            return;
        }
        let begun = self.blocks.get(self.block).map_or(0, |before| before.start);
        self.block = block;
        let Block {
            start,
            end,
            lines,
            first,
            entry,
        } = self.blocks[block];
        let Ended {
            end,
            at,
            size,
            site,
        } = std::mem::replace(&mut self.before, end);
        if end != End::Plain {
            let next = at + u64::from(size);
            // QEMU goes on within a block that it had to leave, as where a device was written to.
            let goes_on = begun < start && start <= at && end != End::Conditional(start);
            match entry {
                _ if goes_on => {}
                Some(Entry::Interrupt) => self.predictor.interrupt(end, next),
                Some(Entry::Other) => {}
                None if self.predictor.follow((end, at, next), start) => {}
                None => self.happen(Event::Branch, site),
            }
        }
        if lines.1 > 1 || first != self.line {
            self.fetch_lines(lines);
        }
    }

    fn fetch_lines(&mut self, (first, count): (u32, u8)) {
        for index in first as usize..first as usize + usize::from(count) {
            let LineCode {
                physical,
                page,
                site,
            } = self.lines[index];
            if physical == self.line {
                continue;
            }
            self.line = physical;
            if page != self.page {
                self.page = page;
                if !self.itlb.touch(page) {
                    self.happen(Event::Itlb, site);
                    self.walk(page, site);
                }
            }
            if !self.l1i.touch(physical) {
                self.happen(Event::L1i, site);
                self.below(physical, site);
            }
        }
    }

    /// An instruction reads or writes memory.
    #[inline]
    fn access(&mut self, site: Site, access: u32, address: u64) {
        let number = address >> PAGE_BITS;
        let mut known = self.translations[(number as usize) % TRANSLATIONS];
        if known.number != number || known.epoch != self.epoch {
            // Devices are not cached.
            let Some(found) = self.find(access, address) else {
                return;
            };
            known = found;
        }
        if known.page != self.data_page {
            self.data_page = known.page;
            if !self.dtlb.touch(known.page) {
                self.miss_page(known.page, site);
            }
        }
        let line = known.frame << (PAGE_BITS - LINE_BITS) | (address >> LINE_BITS) & LINE_MASK;
        if line != self.data_line {
            self.data_line = line;
            if !self.l1d.touch(line) {
                self.miss_line(line, site);
            }
        }
    }

    #[inline(never)]
    fn miss_page(&mut self, page: u64, site: Site) {
        self.happen(Event::Dtlb, site);
        self.walk(page, site);
    }

    #[inline(never)]
    fn miss_line(&mut self, line: u64, site: Site) {
        self.happen(Event::L1d, site);
        self.below(line, site);
    }

    /// Asks QEMU where a page is, and remembers it.
    #[inline(never)]
    fn find(&mut self, access: u32, address: u64) -> Option<Translation> {
        let number = address >> PAGE_BITS;
        let frame = api::physical(access, address)? >> PAGE_BITS;
        let page = page(address);
        let known = &mut self.translations[(number as usize) % TRANSLATIONS];
        let before = std::mem::replace(
            known,
            Translation {
                number,
                frame,
                page,
                epoch: self.epoch,
            },
        );
        if before.number == number && before.frame != frame {
            // Something else is mapped there now: the page was flushed, as the kernel must.
            for buffer in [&mut self.itlb, &mut self.dtlb, &mut self.stlb] {
                buffer.forget(|held| held == page);
            }
            (self.page, self.data_page) = (0, 0);
        }
        Some(*known)
    }

    /// Looks a page up that a first translation buffer did not have.
    fn walk(&mut self, page: u64, site: Site) {
        if !self.stlb.touch(page) {
            self.happen(Event::Walk, site);
        }
    }

    /// Looks a line up that a first cache did not have.
    fn below(&mut self, line: u64, site: Site) {
        if !self.l2.touch(line) {
            self.happen(Event::L2, site);
            if !self.last.touch(line) {
                self.happen(Event::Last, site);
            }
        }
    }

    /// Translations are flushed: those of user code, or all.
    fn flush(&mut self, flush: Flush) {
        self.epoch += 1;
        if flush == Flush::Page {
            return;
        }
        let gone = |page: u64| flush == Flush::All || page >> (63 - PAGE_BITS) == 0;
        self.itlb.forget(gone);
        self.dtlb.forget(gone);
        self.stlb.forget(gone);
        (self.page, self.data_page) = (0, 0);
    }
}

/// What an instruction flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// One page (INVLPG); which one is not known.
    Page,
    /// Pages that are not global, which are those of user code (a write of CR3).
    User,
    /// All (a write of CR4, INVPCID).
    All,
}

impl Flush {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [Self; 3] = [Self::Page, Self::User, Self::All];

    /// Returns what an instruction flushes, if anything (Intel SDM, volume 3, 4.10.4.1).
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let prefixes = bytes
            .iter()
            .take_while(|byte| matches!(byte, 0x40..=0x4f))
            .count();
        match bytes[prefixes..] {
            [0x0f, 0x22, register, ..] if register >> 3 & 7 == 3 => Some(Self::User),
            [0x0f, 0x22, register, ..] if register >> 3 & 7 == 4 => Some(Self::All),
            [0x0f, 0x01, operand, ..] if operand >> 3 & 7 == 7 && operand < 0xc0 => {
                Some(Self::Page)
            }
            [0x66, 0x0f, 0x38, 0x82, ..] => Some(Self::All),
            _ => None,
        }
    }
}

/// Returns the number of the page that an address is in; large pages have one bit more than any
/// small one.
#[inline]
fn page(address: u64) -> u64 {
    let is_large = address >> 63 != 0
        && (TEXT.contains(&address) || LARGE.iter().any(|range| range.contains(&address)));
    if is_large {
        address >> LARGE_BITS | 1 << 63
    } else {
        address >> PAGE_BITS
    }
}

/// The model of this QEMU.
struct Only(UnsafeCell<Cost>);

// SAFETY: QEMU has one processor (thread=single) and calls back on its thread only; see `with`.
unsafe impl Send for Only {}
// SAFETY: as above.
unsafe impl Sync for Only {}

static COST: OnceLock<Only> = OnceLock::new();

/// Makes this the model.
pub(crate) fn install(cost: Cost) {
    drop(COST.set(Only(UnsafeCell::new(cost))));
}

/// Changes the model, if there is one.
pub(crate) fn with<R>(change: impl FnOnce(&mut Cost) -> R) -> Option<R> {
    // SAFETY: callbacks come from one thread, one after the other, and none of those given here
    // calls this again: there is one reference at a time.
    COST.get().map(|only| change(unsafe { &mut *only.0.get() }))
}

/// A block begins to execute.
pub(crate) fn fetch(block: usize) {
    with(|cost| {
        if cost.is_active {
            cost.fetch(block);
        }
    });
}

/// An instruction reads or writes memory: its site, what kind of access, and where.
pub(crate) fn access(site: usize, access: u32, address: u64) {
    with(|cost| {
        if cost.is_active {
            cost.access(site as Site, access, address);
        }
    });
}

/// An instruction flushes translations.
pub(crate) fn flush(what: Flush) {
    with(|cost| cost.flush(what));
}

#[cfg(test)]
mod tests {
    use super::{Flush, Sizes, page};

    #[test]
    fn flushes_are_recognised() {
        assert_eq!(
            Flush::of(&[0x0f, 0x22, 0xd8]),
            Some(Flush::User),
            "mov %rax,%cr3"
        );
        assert_eq!(
            Flush::of(&[0x41, 0x0f, 0x22, 0xdc]),
            Some(Flush::User),
            "mov %r12,%cr3"
        );
        assert_eq!(
            Flush::of(&[0x0f, 0x22, 0xe0]),
            Some(Flush::All),
            "mov %rax,%cr4"
        );
        assert_eq!(
            Flush::of(&[0x0f, 0x01, 0x38]),
            Some(Flush::Page),
            "invlpg (%rax)"
        );
        assert_eq!(Flush::of(&[0x0f, 0x01, 0xf8]), None, "swapgs");
        assert_eq!(Flush::of(&[0x0f, 0x22, 0xc0]), None, "mov %rax,%cr0");
        assert_eq!(
            Flush::of(&[0x66, 0x0f, 0x38, 0x82, 0x04, 0x24]),
            Some(Flush::All),
            "invpcid"
        );
    }

    #[test]
    fn the_kernel_has_large_pages_where_it_maps_memory() {
        let same = |a, b| page(a) == page(b);
        assert!(same(0xffff_ffff_8100_0000, 0xffff_ffff_811f_ffff), "text");
        assert!(
            same(0xff11_0000_0100_0000, 0xff11_0000_011f_ffff),
            "direct map"
        );
        assert!(
            !same(0xffff_c900_0000_0000, 0xffff_c900_0000_1000),
            "vmalloc"
        );
        assert!(!same(0x40_0000, 0x40_1000), "user code");
    }

    #[test]
    fn sizes_have_known_words() {
        let mut sizes = Sizes::default();
        assert!(sizes.set("l1i", "64/8") && sizes.set("predictor", "14"));
        assert!(
            !sizes.set("l1i", "64") && !sizes.set("l4", "64/8") && !sizes.set("predictor", "40")
        );
    }
}
