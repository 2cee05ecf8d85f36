//! How far a long piece of work is. Its threads add to a counter; another thread looks at it now and then and says so, so
//! that nobody who works waits for whoever reads what is said.

use std::sync::atomic::{AtomicU64, Ordering};

/// How far something is, in bytes.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Says how much there is to do.
    pub fn expect(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// Adds what is done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns how much is done.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns how much there is to do; 0 where that is not known yet.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}
