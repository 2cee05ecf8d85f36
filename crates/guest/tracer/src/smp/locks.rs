//! How long locks are held: from the end of the function that takes one to the write that gives it
//! back.
//!
//! A lock is known by the word that a locked instruction changes within a function that takes locks
//! of a kind (`takes KIND START END` in the marks). The last access to memory that the processor
//! makes in that function, which is its return, is when it has the lock; so what it waits for is
//! not in the time. The first write to the word by that processor from elsewhere gives it back. Not
//! seen are locks that are taken inline, such as bit locks, and those whose holder has moved to
//! another processor. What locks are called is left to others.

use std::collections::BTreeMap;

use crate::marks::LOCK_KINDS;

fn class(kind: u8) -> Option<u8> {
    LOCK_KINDS.get(usize::from(kind)).map(|(_, class)| *class)
}

/// Locks that may be held at a time: more are of attempts that failed.
const HELD_MAX: usize = 64;

/// A lock that a processor has, or tried to take.
#[derive(Debug, Clone, Copy)]
struct Held {
    processor: usize,
    /// Where it is in physical memory.
    lock: u64,
    kind: u8,
    /// When the processor had it.
    since: i64,
}

/// How often a lock was given back, and how long it was held by then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) times: u64,
    pub(super) ns: u64,
    /// The processors that had it: a bit for each.
    pub(super) processors: u8,
}

/// An access to memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) processor: usize,
    pub(super) physical: u64,
    /// The kind of locks that the function takes, if it takes any.
    pub(super) takes: Option<u8>,
    /// Whether the instruction changes the word in one step.
    pub(super) is_locked: bool,
    pub(super) is_write: bool,
    /// The processor's time (ns).
    pub(super) now: i64,
}

/// All locks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: Vec<Held>,
    totals: BTreeMap<(u8, u64), Total>,
}

impl Locks {
    /// Tells whether an access may be one of a lock: most are not, and need no time.
    pub(super) fn concerns(&self, physical: u64, takes: Option<u8>, is_write: bool) -> bool {
        takes.is_some() || is_write && self.held.iter().any(|held| held.lock == physical)
    }

    /// A processor uses memory. Returns whether it gave back a lock that is new among those that
    /// were counted.
    pub(super) fn access(&mut self, by: Use, is_counted: bool) -> bool {
        if by.is_write
            && let Some(index) = self.given_back(by)
        {
            let held = self.held.remove(index);
            if !is_counted {
                return false;
            }
            let known = self.totals.len();
            let total = self.totals.entry((held.kind, held.lock)).or_default();
            total.times += 1;
            total.ns += u64::try_from(by.now - held.since).unwrap_or(0);
            total.processors |= 1 << held.processor;
            return self.totals.len() > known;
        }
        if let Some(kind) = by.takes {
            self.take(by, kind);
        }
        false
    }

    /// Returns the lock that a write to its word gives back. Those that take it change the word as
    /// well.
    fn given_back(&self, by: Use) -> Option<usize> {
        self.held.iter().position(|held| {
            held.lock == by.physical
                && held.processor == by.processor
                && by.takes.and_then(class) != class(held.kind)
        })
    }

    fn take(&mut self, by: Use, kind: u8) {
        let of_processor = |held: &&mut Held| held.processor == by.processor;
        if by.is_locked {
            let mut own = self.held.iter_mut().filter(of_processor);
            match own.find(|held| held.lock == by.physical) {
                Some(held) => (held.kind, held.since) = (kind, by.now),
                None => {
                    if self.held.len() == HELD_MAX {
                        self.held.remove(0);
                    }
                    self.held.push(Held {
                        processor: by.processor,
                        lock: by.physical,
                        kind,
                        since: by.now,
                    });
                }
            }
            return;
        }
        // Still in the function: what it took last is not had before its end.
        let mut own = self.held.iter_mut().rev().filter(of_processor);
        if let Some(held) = own.next().filter(|held| held.kind == kind) {
            held.since = by.now;
        }
    }

    /// Returns what was held, by kind and place.
    pub(super) fn totals(&self) -> &BTreeMap<(u8, u64), Total> {
        &self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::{Locks, Total, Use};

    const SPIN: u8 = 0;
    const MUTEX: u8 = 3;
    const READ: u8 = 4;
    const WRITE: u8 = 5;
    const LOCK: u64 = 0x1040;
    const STACK: u64 = 0x9000;

    /// Locks that are all counted.
    #[derive(Default)]
    struct Story(Locks);

    impl Story {
        fn locked(&mut self, processor: usize, takes: Option<u8>, physical: u64, now: i64) {
            self.uses(processor, takes, physical, now, [true, true]);
        }

        fn stores(&mut self, processor: usize, takes: Option<u8>, physical: u64, now: i64) {
            self.uses(processor, takes, physical, now, [false, true]);
        }

        fn loads(&mut self, processor: usize, takes: Option<u8>, physical: u64, now: i64) {
            self.uses(processor, takes, physical, now, [false, false]);
        }

        fn uses(
            &mut self,
            processor: usize,
            takes: Option<u8>,
            physical: u64,
            now: i64,
            [is_locked, is_write]: [bool; 2],
        ) {
            let by = Use {
                processor,
                physical,
                takes,
                is_locked,
                is_write,
                now,
            };
            assert!(self.0.concerns(physical, takes, is_write) || takes.is_none());
            self.0.access(by, true);
        }

        fn total(&self, kind: u8) -> Option<Total> {
            self.0.totals().get(&(kind, LOCK)).copied()
        }
    }

    const fn total(times: u64, ns: u64, processors: u8) -> Option<Total> {
        Some(Total {
            times,
            ns,
            processors,
        })
    }

    #[test]
    fn lock_is_held_from_return_to_store() {
        let mut story = Story::default();
        story.locked(0, Some(SPIN), LOCK, 100);
        story.loads(0, Some(SPIN), STACK, 103);
        story.loads(0, None, LOCK, 110);
        story.stores(0, None, STACK, 120);
        story.stores(0, None, LOCK, 143);
        assert_eq!(story.total(SPIN), total(1, 40, 1));
        story.stores(0, None, LOCK, 150);
        assert_eq!(story.total(SPIN), total(1, 40, 1), "it is free");
    }

    #[test]
    fn waiting_for_a_lock_is_not_holding_it() {
        let mut story = Story::default();
        story.locked(0, Some(SPIN), LOCK, 100);
        story.locked(1, Some(SPIN), LOCK, 105);
        story.loads(1, Some(SPIN), LOCK, 190);
        story.stores(0, None, LOCK, 200);
        story.loads(1, Some(SPIN), LOCK, 310);
        // The slow path takes it by a store, and returns.
        story.stores(1, Some(SPIN), LOCK, 311);
        story.loads(1, Some(SPIN), STACK, 315);
        story.stores(1, None, LOCK, 325);
        assert_eq!(story.total(SPIN), total(2, 110, 3));
    }

    #[test]
    fn lock_within_a_lock_function_is_its_own() {
        let mut story = Story::default();
        let (inner, mutex) = (0x2000, Some(MUTEX));
        story.locked(0, mutex, LOCK, 10);
        story.locked(0, Some(SPIN), inner, 20);
        story.loads(0, Some(SPIN), STACK, 21);
        story.stores(0, mutex, inner, 31);
        story.loads(0, mutex, STACK, 40);
        story.locked(0, None, LOCK, 90);
        assert_eq!(story.total(MUTEX), total(1, 50, 1));
        let of_inner = story.0.totals().get(&(SPIN, inner)).copied();
        assert_eq!(of_inner, total(1, 10, 1));
    }

    #[test]
    fn attempts_that_fail_leave_no_time() {
        let mut story = Story::default();
        for number in 0..200 {
            story.locked(1, Some(SPIN), 0x10_000 + number * 64, 1);
        }
        assert!(story.0.totals().is_empty());
        assert!(story.0.held.len() <= super::HELD_MAX);
    }

    #[test]
    fn waiting_reader_does_not_end_a_writer() {
        let mut story = Story::default();
        story.locked(0, Some(WRITE), LOCK, 100);
        story.locked(1, Some(READ), LOCK, 150);
        story.locked(0, None, LOCK, 400);
        // The writer wakes the reader by changing the word again.
        story.locked(0, None, LOCK, 410);
        story.loads(1, Some(READ), STACK, 500);
        story.locked(1, None, LOCK, 520);
        assert_eq!(story.total(WRITE), total(1, 300, 1));
        assert_eq!(story.total(READ), total(1, 20, 2));
    }
}
