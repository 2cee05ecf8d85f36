//! Counts the system calls that read a dump.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters, shared by all readers of a file.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    mmap: AtomicU64,
    munmap: AtomicU64,
    read: AtomicU64,
}

/// Numbers of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Calls that mapped a range.
    pub mmap: u64,
    /// Calls that unmapped one.
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

    /// Returns the current numbers.
    pub(crate) fn counted(&self) -> Counted {
        Counted {
            mmap: self.mmap.load(Ordering::Relaxed),
            munmap: self.munmap.load(Ordering::Relaxed),
            read: self.read.load(Ordering::Relaxed),
        }
    }
}

impl Counted {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            mmap: self.mmap + other.mmap,
            munmap: self.munmap + other.munmap,
            read: self.read + other.read,
        }
    }

    /// Returns the difference to an earlier count.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            mmap: self.mmap - before.mmap,
            munmap: self.munmap - before.munmap,
            read: self.read - before.read,
        }
    }

    /// Returns the total.
    #[must_use]
    pub fn sum(self) -> u64 {
        self.mmap + self.munmap + self.read
    }
}
