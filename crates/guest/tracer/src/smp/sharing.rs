//! Which lines of memory move between processors: each processor has a cache without limit that is
//! kept coherent as by MESI.
//!
//! A line of 64 bytes is held by one processor that may have modified it, or by several that have
//! not. It *moves* when a processor reads or writes what another one has modified, or writes what
//! others hold as well (they lose it). A move is *false sharing* if the words of 8 bytes that the
//! processor asks for are none that the others used since they got the line. An instruction with
//! LOCK, and XCHG, reads in order to write: it counts as a write (Intel SDM, volume 3, 9.1.2), as
//! does a prefetch in order to write, for which a processor does not wait.
//!
//! Lines are followed, and processors wait for them, from the end of the workload's first warm-up:
//! caches are empty then. What lines and functions are called is left to others.

use std::cell::UnsafeCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::OnceLock;

use super::locks::{At, Locks, Use};
use super::machine::{now, physical, read_memory, registers, translate, wait_for_line};
use super::memory::{Memory, Read};
use super::prefetch::Operand;
use crate::api;
use crate::count::is_kernel;
use crate::marks::LOCK_KINDS;

/// Most processors.
const PROCESSORS: usize = 8;
const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
const LINES_OF_PAGE: usize = 1 << (PAGE_BITS - LINE_BITS);
/// Most regions that are kept.
const REGIONS_MAX: usize = 10_000;
/// Most different moves that are kept apart.
const MOVES_MAX: usize = 1 << 20;
const WORD_BITS: u32 = 3;
/// How places in user memory begin.
const USER: &str = "user";

/// How a line moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Transfer {
    /// Read by one processor, modified by another.
    Load,
    /// Written by one, modified by another.
    Store,
    /// Written by one, held by others that only read it.
    Upgrade,
}

impl Transfer {
    const fn word(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Upgrade => "upgrade",
        }
    }
}

/// A line, and the words of it that each processor used since it got it: a bit for each.
#[derive(Debug, Clone, Copy, Default)]
struct CacheLine {
    holders: u8,
    is_modified: bool,
    read: [u8; PROCESSORS],
    written: [u8; PROCESSORS],
}

impl CacheLine {
    /// A processor uses words of the line. Returns how it moved, if it did, and whether that was
    /// false sharing.
    fn touch(&mut self, processor: usize, words: u8, is_write: bool) -> Option<(Transfer, bool)> {
        let own = 1 << processor;
        let others = self.holders & !own;
        let moved = match (is_write, self.is_modified) {
            _ if others == 0 => None,
            (false, true) => Some(Transfer::Load),
            (true, true) => Some(Transfer::Store),
            (true, false) => Some(Transfer::Upgrade),
            (false, false) => None,
        };
        let moved = moved.map(|kind| {
            let used =
                |index: usize| self.written[index] | if is_write { self.read[index] } else { 0 };
            let others = (0..PROCESSORS).filter(|index| others >> index & 1 == 1);
            (
                kind,
                others.fold(0, |all, index| all | used(index)) & words == 0,
            )
        });
        if self.holders & own == 0 {
            (self.read[processor], self.written[processor]) = (0, 0);
        }
        if is_write {
            self.holders = own;
            self.is_modified = true;
            self.written[processor] |= words;
        } else {
            self.holders |= own;
            self.is_modified &= others == 0;
            self.read[processor] |= words;
        }
        moved
    }
}

/// An instruction that uses memory.
#[derive(Debug, Clone, Copy)]
struct Site {
    /// Its address; 0 stands for user code.
    address: u64,
    /// Whether what it reads counts as written.
    is_write: bool,
    /// The kind of locks that its function takes, if any.
    takes: Option<u8>,
    /// Whether it may take one: it changes memory in one step, and not as a barrier.
    is_locked: bool,
    /// Whether it returns.
    is_return: bool,
}

/// A move: the site, the word's number in physical memory, how, and whether it was false sharing.
type Move = (usize, u64, Transfer, bool);

/// Who uses memory: the processor, the number of its instruction, and the virtual address.
#[derive(Debug, Clone, Copy)]
struct By {
    processor: usize,
    site: usize,
    address: u64,
}

/// What moved within a region, by kind; what of it was false sharing.
#[derive(Debug, Clone, Copy, Default)]
struct Region {
    id: u16,
    moves: [u64; 3],
    of_false: u64,
}

/// What a function did: how often it was entered, its instructions, and its time.
#[derive(Debug, Clone, Copy, Default)]
struct Entered {
    times: u64,
    instructions: u64,
    ns: u64,
    /// When each processor executed it last.
    last: [i64; PROCESSORS],
}

impl Entered {
    /// A processor executes an instruction of it at a time; if it is not the first, it has been in
    /// it since the one before.
    fn execute(&mut self, processor: usize, now: i64, is_first: bool) {
        let last = std::mem::replace(&mut self.last[processor % PROCESSORS], now);
        self.instructions += 1;
        if is_first {
            self.times += 1;
        } else {
            self.ns += u64::try_from(now - last).unwrap_or(0);
        }
    }
}

/// All that is followed.
#[derive(Default)]
struct Sharing {
    /// Whether lines are followed yet.
    is_active: bool,
    pages: Vec<Option<Box<[CacheLine; LINES_OF_PAGE]>>>,
    sites: Vec<Site>,
    known: HashMap<(u64, bool), usize>,
    moves: HashMap<Move, u64>,
    /// What each word is that moved, as seen when it moved first; the kernel's view of it rather
    /// than that of user code.
    places: HashMap<u64, String>,
    memory: Memory,
    /// What each function that is watched did, by its address.
    entered: BTreeMap<u64, Entered>,
    locks: Locks,
    /// The operands of prefetches, with the numbers of their instructions.
    prefetches: Vec<(usize, Operand)>,
    open: Option<Region>,
    regions: Vec<Region>,
    left_out: u64,
}

impl Sharing {
    fn site(&mut self, address: u64, bytes: &[u8], takes: Option<u8>) -> usize {
        let is_write = writes_what_it_reads(bytes);
        let address = if is_kernel(address) { address } else { 0 };
        let next = self.sites.len();
        let site = *self.known.entry((address, is_write)).or_insert(next);
        if site == next {
            self.sites.push(Site {
                address,
                is_write,
                takes: takes.filter(|_| address != 0),
                is_locked: is_write && !is_barrier(bytes),
                is_return: is_return(bytes),
            });
        }
        site
    }

    /// An instruction of the kernel uses memory that may be a lock.
    fn note_lock(&mut self, by: By, physical: u64, is_write: bool, read: Read<'_>) {
        let Some(what) = self.sites.get(by.site).copied() else {
            return;
        };
        let is_write = is_write || what.is_write;
        let processor = by.processor % PROCESSORS;
        if what.address != 0 && self.locks.is_taking(processor) {
            self.locks.follow(At {
                processor,
                site: what.address,
                takes: what.takes,
                is_return: what.is_return,
            });
        }
        let how = [what.is_locked, is_write];
        if what.address == 0 || !self.locks.concerns(processor, physical, what.takes, how) {
            return;
        }
        let lock_use = Use {
            processor,
            physical,
            takes: what.takes,
            is_locked: what.is_locked,
            is_write,
            now: now(),
        };
        let is_counted = self.open.is_some() && !self.regions.is_empty();
        let word = physical >> WORD_BITS;
        if self.locks.access(lock_use, is_counted) && !self.places.contains_key(&word) {
            let place = self.memory.place(read, by.address, physical);
            self.places.insert(word, place);
        }
    }

    fn line(&mut self, physical: u64) -> Option<&mut CacheLine> {
        let page = usize::try_from(physical >> PAGE_BITS).ok()?;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let lines =
            self.pages[page].get_or_insert_with(|| Box::new([CacheLine::default(); LINES_OF_PAGE]));
        Some(&mut lines[(physical >> LINE_BITS) as usize % LINES_OF_PAGE])
    }

    /// An instruction uses memory. Returns whether a line moved.
    fn access(&mut self, by: By, physical: u64, words: u8, is_write: bool, read: Read<'_>) -> bool {
        let Some(what) = self.sites.get(by.site).copied().filter(|_| self.is_active) else {
            return false;
        };
        let is_write = is_write || what.is_write;
        let Some(moved) = self
            .line(physical)
            .map(|line| line.touch(by.processor % PROCESSORS, words, is_write))
        else {
            return false;
        };
        let (Some((kind, is_false)), Some(region)) = (moved, &mut self.open) else {
            return moved.is_some();
        };
        region.moves[kind as usize] += 1;
        region.of_false += u64::from(is_false);
        if self.regions.is_empty() {
            return true;
        }
        let word = physical >> WORD_BITS;
        let key = (by.site, word, kind, is_false);
        if let Some(times) = self.moves.get_mut(&key) {
            *times += 1;
            return true;
        }
        if self.moves.len() == MOVES_MAX {
            self.left_out += 1;
            return true;
        }
        self.moves.insert(key, 1);
        let is_known = self
            .places
            .get(&word)
            .is_some_and(|place| !is_kernel(by.address) || !place.starts_with(USER));
        if !is_known {
            let place = self.memory.place(read, by.address, physical);
            self.places.insert(word, place);
        }
        true
    }

    /// Returns all of it as text: `region ID LOADS STORES UPGRADES FALSE` for each, and
    /// `moved KIND true|false SITE WORD PLACE TIMES` for all regions but the first, which pays for
    /// what is new: the address of the instruction, 0 for user code, the number of the word of
    /// 8 bytes in physical memory, both hexadecimal, and what it is, as in `memory.rs`.
    /// Likewise `entered ADDRESS TIMES INSTRUCTIONS NS` for each function that is watched, and
    /// `held KIND WORD PLACE TIMES NS PROCESSORS PASSED TAKERS` for each lock, with the number of
    /// processors that had it, how often it went from one to another, and `ADDRESS:TIMES` for each
    /// instruction after it was taken, with commas between.
    fn text(&self) -> String {
        let mut text = String::new();
        let mut line =
            |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").unwrap_or_default();
        for Region {
            id,
            moves: [loads, stores, upgrades],
            of_false,
        } in &self.regions
        {
            line(format_args!(
                "region {id} {loads} {stores} {upgrades} {of_false}"
            ));
        }
        let mut moves: BTreeMap<(Transfer, bool, u64, u64), u64> = BTreeMap::new();
        for ((site, word, kind, is_false), times) in &self.moves {
            // Two sites are one if they differ only in what a read counts as.
            *moves
                .entry((*kind, *is_false, self.sites[*site].address, *word))
                .or_default() += times;
        }
        for ((kind, is_false, site, number), times) in moves {
            let (word, place) = (
                kind.word(),
                self.places.get(&number).map_or("other", String::as_str),
            );
            let sharing = if is_false { "false" } else { "true" };
            line(format_args!(
                "moved {word} {sharing} {site:x} {number:x} {place} {times}"
            ));
        }
        for (
            address,
            Entered {
                times,
                instructions,
                ns,
                ..
            },
        ) in &self.entered
        {
            line(format_args!(
                "entered {address:x} {times} {instructions} {ns}"
            ));
        }
        for ((kind, lock), total) in self.locks.totals() {
            let (kind, _) = LOCK_KINDS[usize::from(*kind)];
            let number = lock >> WORD_BITS;
            let place = self.places.get(&number).map_or("other", String::as_str);
            let processors = total.processors.count_ones();
            let takers = total.takers.iter();
            let takers: Vec<String> = takers
                .map(|(at, times)| format!("{at:x}:{times}"))
                .collect();
            line(format_args!(
                "held {kind} {number:x} {place} {} {} {processors} {} {}",
                total.times,
                total.ns,
                total.passed,
                takers.join(",")
            ));
        }
        line(format_args!(
            "end {} {}",
            self.left_out,
            u64::from(self.open.is_some())
        ));
        text
    }
}

/// What is followed in this QEMU.
struct Only(UnsafeCell<Sharing>);

// SAFETY: QEMU executes all processors on one thread, and calls back on that thread only; see
// `with`.
unsafe impl Send for Only {}
// SAFETY: as above.
unsafe impl Sync for Only {}

static SHARING: OnceLock<Only> = OnceLock::new();

/// Has lines followed, and named by what is known of the kernel.
pub(crate) fn install(memory: Memory) {
    drop(SHARING.set(Only(UnsafeCell::new(Sharing {
        memory,
        ..Sharing::default()
    }))));
}

/// Tells whether lines are to be followed.
pub(crate) fn is_watched() -> bool {
    SHARING.get().is_some()
}

fn with<R>(change: impl FnOnce(&mut Sharing) -> R) -> Option<R> {
    // SAFETY: callbacks come from one thread, one after the other, and none of those given here
    // calls this again: there is one reference at a time.
    SHARING
        .get()
        .map(|only| change(unsafe { &mut *only.0.get() }))
}

/// Returns the number of an instruction that uses memory.
pub(crate) fn site(address: u64, bytes: &[u8], takes: Option<u8>) -> usize {
    with(|sharing| sharing.site(address, bytes, takes)).unwrap_or_default()
}

/// A processor reads or writes memory.
pub(crate) extern "C" fn access(
    processor: u32,
    access: u32,
    address: u64,
    site: *mut std::ffi::c_void,
) {
    if with(|sharing| sharing.is_active) != Some(true) {
        return;
    }
    let Some(physical) = physical(access, address) else {
        return;
    };
    let first = physical >> 3 & 7;
    let words = (1_u16 << (1_u16 << api::size_shift(access).saturating_sub(3)).min(8)) - 1;
    let words = (words << first) as u8;
    let by = By {
        processor: processor as usize,
        site: site as usize,
        address,
    };
    let is_write = api::is_write(access);
    let moved = with(|sharing| {
        sharing.note_lock(by, physical, is_write, &read_memory);
        sharing.access(by, physical, words, is_write, &read_memory)
    });
    if moved == Some(true) {
        wait_for_line();
    }
}

/// Returns the number of a prefetch for writing; nothing if an instruction is none.
pub(crate) fn prefetch(address: u64, bytes: &[u8]) -> Option<usize> {
    let operand = Operand::of(address, bytes)?;
    with(|sharing| {
        let site = sharing.site(address, bytes, None);
        sharing.prefetches.push((site, operand));
        sharing.prefetches.len() - 1
    })
}

/// A processor prefetches a line in order to write it. It does not wait for the line.
pub(crate) extern "C" fn prefetched(processor: u32, number: *mut std::ffi::c_void) {
    let known = with(|sharing| {
        let known = sharing.prefetches.get(number as usize).copied();
        known.filter(|_| sharing.is_active)
    });
    let Some((site, operand)) = known.flatten() else {
        return;
    };
    let Some(address) = registers().map(|registers| operand.address(&registers)) else {
        return;
    };
    let Some(physical) = translate(address) else {
        return;
    };
    let by = By {
        processor: processor as usize,
        site,
        address,
    };
    let word = 1 << (physical >> WORD_BITS & 7);
    with(|sharing| sharing.access(by, physical, word, true, &read_memory));
}

/// A region begins.
pub(crate) extern "C" fn open(_processor: u32, id: *mut std::ffi::c_void) {
    with(|sharing| {
        sharing.is_active = true;
        sharing.open = Some(Region {
            id: u16::try_from(id as usize).unwrap_or(u16::MAX),
            ..Region::default()
        });
    });
}

/// The region ends.
pub(crate) extern "C" fn close(_processor: u32, _: *mut std::ffi::c_void) {
    with(|sharing| {
        // Also after a warm-up, which opens nothing.
        sharing.is_active = true;
        if let Some(region) = sharing.open.take() {
            if sharing.regions.len() < REGIONS_MAX {
                sharing.regions.push(region);
            } else {
                sharing.left_out += 1;
            }
        }
    });
}

/// A function that is watched executes its first instruction.
pub(crate) extern "C" fn enter(processor: u32, address: *mut std::ffi::c_void) {
    count(processor, address, true);
}

/// It executes another one.
pub(crate) extern "C" fn execute(processor: u32, address: *mut std::ffi::c_void) {
    count(processor, address, false);
}

fn count(processor: u32, address: *mut std::ffi::c_void, is_first: bool) {
    let now = now();
    with(|sharing| {
        if sharing.open.is_some() && !sharing.regions.is_empty() {
            sharing
                .entered
                .entry(address as usize as u64)
                .or_default()
                .execute(processor as usize, now, is_first);
        }
    });
}

/// Returns what was followed as text.
pub(crate) fn text() -> Option<String> {
    with(|sharing| sharing.text())
}

/// Tells whether an instruction reads in order to write: it has a LOCK prefix, or is XCHG.
fn writes_what_it_reads(bytes: &[u8]) -> bool {
    let is_prefix = |byte: &&u8| {
        matches!(
            byte,
            0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
        )
    };
    let prefixes = bytes.iter().take_while(is_prefix).count();
    bytes[..prefixes].contains(&0xf0) || matches!(bytes.get(prefixes), Some(0x86 | 0x87))
}

/// Tells whether an instruction returns from a function.
fn is_return(bytes: &[u8]) -> bool {
    matches!(bytes, [0xc3, ..] | [0xf3, 0xc3, ..])
}

/// Tells whether an instruction only orders memory: one with a LOCK prefix that changes nothing at
/// the top of the stack (`smp_mb` in arch/x86/include/asm/barrier.h).
fn is_barrier(bytes: &[u8]) -> bool {
    const AT_STACK: u8 = 0x24;
    matches!(bytes, [0xf0, 0x83, mode, AT_STACK, ..] if mode & 7 == 4)
}

#[cfg(test)]
mod tests {
    use super::{CacheLine, Sharing, Transfer, is_barrier, writes_what_it_reads};
    use proptest::prelude::*;

    /// Touches a line in turn: the processor, the word, and whether it writes.
    fn moves(touches: &[(usize, u8, bool)]) -> Vec<Option<(Transfer, bool)>> {
        let mut line = CacheLine::default();
        touches
            .iter()
            .map(|(processor, word, is_write)| line.touch(*processor, 1 << word, *is_write))
            .collect()
    }

    #[test]
    fn shared_counter_moves_at_each_turn() {
        let store = Some((Transfer::Store, false));
        assert_eq!(
            moves(&[(0, 3, true), (1, 3, true), (0, 3, true), (0, 3, true)]),
            [None, store, store, None]
        );
    }

    #[test]
    fn read_after_write_moves_once() {
        let read = moves(&[(0, 0, true), (1, 0, false), (1, 0, false), (0, 0, false)]);
        assert_eq!(read, [None, Some((Transfer::Load, false)), None, None]);
    }

    #[test]
    fn write_to_a_read_line_takes_it_away() {
        let written = moves(&[(0, 0, false), (1, 0, false), (0, 0, true), (1, 0, false)]);
        assert_eq!(
            written,
            [
                None,
                None,
                Some((Transfer::Upgrade, false)),
                Some((Transfer::Load, false))
            ]
        );
    }

    #[test]
    fn other_words_of_a_line_are_false_sharing() {
        let moved = moves(&[(0, 0, true), (1, 7, false), (1, 7, true), (0, 0, true)]);
        assert_eq!(
            moved,
            [
                None,
                Some((Transfer::Load, true)),
                Some((Transfer::Upgrade, true)),
                Some((Transfer::Store, true))
            ]
        );
    }

    #[test]
    fn locked_instructions_and_xchg_write_what_they_read() {
        assert!(
            writes_what_it_reads(&[0xf0, 0x48, 0x0f, 0xc1, 0x07]),
            "lock xadd %rax,(%rdi)"
        );
        assert!(
            writes_what_it_reads(&[0x48, 0x87, 0x07]),
            "xchg %rax,(%rdi)"
        );
        assert!(
            writes_what_it_reads(&[0x65, 0x48, 0x87, 0x05]),
            "xchg %rax,%gs:…"
        );
        assert!(!writes_what_it_reads(&[0x48, 0x0f, 0xc1, 0x07]), "xadd");
        assert!(!writes_what_it_reads(&[0x48, 0x8b, 0x07]) && !writes_what_it_reads(&[]));
    }

    #[test]
    fn barriers_at_the_stack_take_no_lock() {
        assert!(is_barrier(&[0xf0, 0x83, 0x44, 0x24, 0xfc, 0x00]));
        assert!(is_barrier(&[0xf0, 0x83, 0x0c, 0x24, 0x00]));
        assert!(!is_barrier(&[0xf0, 0x83, 0x47, 0x04, 0x01]));
        assert!(!is_barrier(&[0xf0, 0x0f, 0xb1, 0x17]));
    }

    #[test]
    fn functions_take_time_from_their_first_instruction() {
        let mut entered = super::Entered::default();
        for (processor, now, is_first) in [
            (0, 100, true),
            (1, 105, true),
            (0, 101, false),
            (0, 241, false),
            (1, 110, false),
        ] {
            entered.execute(processor, now, is_first);
        }
        assert_eq!(
            (entered.times, entered.instructions, entered.ns),
            (2, 5, 146)
        );
    }

    #[test]
    fn moves_are_counted_within_regions_only() {
        let mut sharing = Sharing {
            is_active: true,
            ..Sharing::default()
        };
        let site = sharing.site(0xffff_ffff_8100_0000, &[], None);
        let address = 0xffff_ffff_8200_1040;
        let by = |processor| super::By {
            processor,
            site,
            address,
        };
        let write = |sharing: &mut Sharing, processor| {
            sharing.access(by(processor), 0x1040, 1, true, &|_, _| false)
        };
        assert!(
            !write(&mut sharing, 0) && write(&mut sharing, 1),
            "not counted"
        );
        sharing.open = Some(super::Region {
            id: 1,
            ..super::Region::default()
        });
        write(&mut sharing, 0);
        sharing.regions.extend(sharing.open.take());
        assert_eq!(
            sharing.text(),
            "region 1 0 1 0 0\nend 0 0\n",
            "the first has no lines"
        );
        sharing.open = Some(super::Region {
            id: 1,
            ..super::Region::default()
        });
        write(&mut sharing, 1);
        write(&mut sharing, 0);
        sharing.regions.extend(sharing.open.take());
        assert_eq!(
            sharing.text(),
            "region 1 0 1 0 0\nregion 1 0 2 0 0\nmoved store true ffffffff81000000 208 symbol:ffffffff82001040 2\nend 0 0\n"
        );
    }

    proptest! {
        /// Against the values themselves: a processor that has the last value may read it, and one that alone has it may
        /// write. Nothing moves if memory has the last value.
        #[test]
        fn line_moves_exactly_when_it_has_to(
            touches in prop::collection::vec((0..4_usize, 0..8_u8, any::<bool>()), 1..60),
        ) {
            let mut line = CacheLine::default();
            let (mut memory, mut caches, mut newest) = (0, [None; 4], 0);
            for (processor, word, is_write) in touches {
                let has_last = caches[processor] == Some(newest);
                let others =
                    (0..4).any(|other| other != processor && caches[other] == Some(newest));
                let needs = if is_write {
                    others
                } else {
                    !has_last && memory != newest
                };
                prop_assert_eq!(line.touch(processor, 1 << word, is_write).is_some(), needs);
                if is_write {
                    newest += 1;
                } else if !has_last {
                    // What another one has modified is written back when it is read.
                    memory = newest;
                }
                caches[processor] = Some(newest);
            }
        }
    }
}
