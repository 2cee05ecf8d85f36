//! Counts the system calls that get at a dump's bytes, where they are made.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Counters, shared by all readers of a file.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    mmap: AtomicU64,
    munmap: AtomicU64,
    read: AtomicU64,
}

/// How many calls there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Ranges that were mapped.
    pub mmap: u64,
    /// Of these, those that were unmapped again.
    pub munmap: u64,
    /// Calls that copied bytes.
    pub read: u64,
}

impl Calls {
    pub(crate) fn mapped(&self) {
        self.mmap.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unmapped(&self, count: usize) {
        self.munmap.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) {
        self.read.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns what was counted so far.
    pub(crate) fn counted(&self) -> Counted {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted { mmap: number(&self.mmap), munmap: number(&self.munmap), read: number(&self.read) }
    }
}

impl Counted {
    /// Returns both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { mmap: self.mmap + other.mmap, munmap: self.munmap + other.munmap, read: self.read + other.read }
    }

    /// Returns what was counted since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { mmap: self.mmap - before.mmap, munmap: self.munmap - before.munmap, read: self.read - before.read }
    }

    /// Returns all of them.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.mmap + self.munmap + self.read
    }
}
