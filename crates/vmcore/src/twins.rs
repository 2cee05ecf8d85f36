//! Deduplication: a table of bounded size, from a page's content to its stored data.
//!
//! Equal keys do not prove equal pages: the caller compares both.

use std::sync::Mutex;

use crate::bytes::u64_at;
use crate::compress::Codec;
use crate::plan::lock;

/// A stored page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Its number.
    pub(crate) page: u64,
    /// Its data's offset.
    pub(crate) offset: u64,
    /// Its data's size.
    pub(crate) size: u32,
    /// Its data's compression.
    pub(crate) codec: Codec,
}

/// Number of the table's locks: threads seldom meet.
const SHARDS: usize = 64;

/// Keys and pages of one part of the table.
type Shard = Vec<Option<(u64, Stored)>>;

/// The table.
#[derive(Debug)]
pub(crate) struct Twins {
    shards: Vec<Mutex<Shard>>,
    slots: usize,
}

impl Twins {
    /// Makes a table of at most `size` bytes.
    pub(crate) fn new(size: u64) -> Self {
        let entry = size_of::<Option<(u64, Stored)>>() as u64;
        let slots = usize::try_from(size.min(64 << 20) / entry / SHARDS as u64).unwrap_or(1).max(1);
        Self { shards: (0..SHARDS).map(|_| Mutex::new(vec![None; slots])).collect(), slots }
    }

    /// Returns a key of a page's content.
    pub(crate) fn key(page: &[u8]) -> u64 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut lanes = [1_u64, 2, 3, 4];
        for chunk in page.chunks_exact(32) {
            for (n, lane) in lanes.iter_mut().enumerate() {
                let word = u64_at(chunk, n * 8).unwrap_or_default();
                *lane = (*lane ^ word).wrapping_mul(FACTOR).rotate_left(29);
            }
        }
        lanes.iter().fold(0, |key, lane| (key ^ lane).wrapping_mul(FACTOR).rotate_left(31))
    }

    /// Returns a page with this key.
    pub(crate) fn find(&self, key: u64) -> Option<Stored> {
        let (shard, slot) = self.place(key);
        lock(&self.shards[shard])[slot].filter(|(own, _)| *own == key).map(|(_, stored)| stored)
    }

    /// Inserts a page, and replaces an existing one.
    pub(crate) fn insert(&self, key: u64, stored: Stored) {
        let (shard, slot) = self.place(key);
        lock(&self.shards[shard])[slot] = Some((key, stored));
    }

    fn place(&self, key: u64) -> (usize, usize) {
        // Small numbers after the remainder.
        ((key % SHARDS as u64) as usize, (key / SHARDS as u64 % self.slots as u64) as usize)
    }
}
