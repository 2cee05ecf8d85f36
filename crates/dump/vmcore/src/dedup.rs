//! Deduplication: a table of bounded size, from a page's content to its stored data.
//!
//! Equal keys do not prove equal pages: the caller compares both.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bytes::u64_at;
use crate::kdump::Place;
use crate::plan::lock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) page: u64,
    pub(crate) place: Place,
}

/// Number of the table's locks: threads seldom meet.
const SHARDS: usize = 64;

/// Keys and pages of one part of the table.
type Shard = Vec<Option<(u64, Stored)>>;

/// Pages of one thread that other threads cannot refer to yet, by key; of two with one place the
/// newer is found.
#[derive(Debug)]
pub(crate) struct Pending {
    all: Vec<(u64, Stored)>,
    /// Positions in `all`, by the last bits of a key; any number if there is none.
    places: [u16; Self::PLACES],
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            places: [0; Self::PLACES],
        }
    }
}

impl Pending {
    const PLACES: usize = 1024;

    pub(crate) fn find(&self, key: u64) -> Option<Stored> {
        let place = self.places[(key % Self::PLACES as u64) as usize];
        self.all
            .get(usize::from(place))
            .filter(|(own, _)| *own == key)
            .map(|(_, stored)| *stored)
    }

    pub(crate) fn push(&mut self, key: u64, stored: Stored) {
        // Pages beyond the numbers of a place are not found, and stored again.
        self.places[(key % Self::PLACES as u64) as usize] = self.all.len() as u16;
        self.all.push((key, stored));
    }

    pub(crate) fn take(&mut self) -> std::vec::Drain<'_, (u64, Stored)> {
        self.all.drain(..)
    }
}

/// Words of the sketch: they fit a processor's second cache.
const SKETCH: usize = 1 << 15;

#[derive(Debug)]
pub(crate) struct Twins {
    shards: Vec<Mutex<Shard>>,
    slots: usize,
    /// A bit for each key that was noted: most pages have no twin, and need no look into the
    /// table.
    sketch: Vec<AtomicU64>,
}

impl Twins {
    /// Makes a table of at most `size` bytes.
    pub(crate) fn new(size: u64) -> Self {
        let entry = size_of::<Option<(u64, Stored)>>() as u64;
        let slots = usize::try_from(size.min(64 << 20) / entry / SHARDS as u64)
            .unwrap_or(1)
            .max(1);
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(vec![None; slots])).collect(),
            slots,
            sketch: (0..SKETCH).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Notes a key, and returns whether a page with it can have been seen before.
    pub(crate) fn note(&self, key: u64) -> bool {
        let bit = 1 << (key >> 58);
        let word = &self.sketch[(key >> 32) as usize % SKETCH];
        let before = word.load(Ordering::Relaxed);
        // Of two threads one may lose its bit, and with it a twin.
        word.store(before | bit, Ordering::Relaxed);
        before & bit != 0
    }

    /// Returns a key of a page's content: of one word of each cache line, each at another place in
    /// its line.
    pub(crate) fn key(page: &[u8]) -> u64 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        const LINE: usize = 64;
        // Four lanes, as each multiplication of one would wait for the last.
        let mut lanes = [1_u64, 2, 3, 4];
        for (number, lines) in page.chunks_exact(lanes.len() * LINE).enumerate() {
            for (n, lane) in lanes.iter_mut().enumerate() {
                // A cache line is loaded as a whole for any of its words.
                let word = u64_at(lines, n * LINE + (number * 4 + n) % 8 * 8).unwrap_or_default();
                *lane = (*lane ^ word).wrapping_mul(FACTOR).rotate_left(29);
            }
        }
        lanes.iter().fold(0, |key, lane| {
            (key ^ lane).wrapping_mul(FACTOR).rotate_left(31)
        })
    }

    /// Returns a page with this key.
    pub(crate) fn find(&self, key: u64) -> Option<Stored> {
        let (shard, slot) = self.slot_of(key);
        lock(&self.shards[shard])[slot]
            .filter(|(own, _)| *own == key)
            .map(|(_, stored)| stored)
    }

    /// Inserts a page, and replaces an existing one.
    pub(crate) fn insert(&self, key: u64, stored: Stored) {
        let (shard, slot) = self.slot_of(key);
        lock(&self.shards[shard])[slot] = Some((key, stored));
    }

    /// Returns the shard of a key, and its only slot there: a full table forgets older pages
    /// instead of searching for room.
    fn slot_of(&self, key: u64) -> (usize, usize) {
        // Small numbers after the remainder.
        (
            (key % SHARDS as u64) as usize,
            (key / SHARDS as u64 % self.slots as u64) as usize,
        )
    }
}
