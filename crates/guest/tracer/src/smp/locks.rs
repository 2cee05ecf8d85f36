//! How long locks are held: from the end of the function that takes one to the write that gives it
//! back.
//!
//! A lock is known by the word that a locked instruction changes within a function that takes locks
//! of a kind (`takes KIND START END` in the marks). The last access to memory that the processor
//! makes in that function, which is its return, is when it has the lock; so what it waits for is
//! not in the time, and other functions that run before, as while it sleeps, are not its holder's.
//! The first write to the word by that processor from elsewhere gives it back. Not
//! seen are locks that are taken inline, such as bit locks, and those whose holder has moved to
//! another processor.
//!
//! The function that takes a lock is known by the first access to memory after that return, which
//! may be in a thunk. What locks are called is left to others.

use std::collections::BTreeMap;

use crate::marks::LOCK_KINDS;

fn class(kind: u8) -> Option<u8> {
    LOCK_KINDS.get(usize::from(kind)).map(|(_, class)| *class)
}

/// Tells whether one processor at a time has a lock of a kind.
fn is_exclusive(kind: u8) -> bool {
    let kind = LOCK_KINDS.get(usize::from(kind));
    kind.is_some_and(|(name, _)| !name.ends_with("read"))
}

/// Locks that may be held at a time: more are of attempts that failed.
const HELD_MAX: usize = 64;

/// Instructions that are kept apart as takers of one lock.
const TAKERS_MAX: usize = 32;

/// A lock that a processor has, or tried to take.
#[derive(Debug, Clone, Copy)]
struct Held {
    processor: usize,
    /// Where it is in physical memory.
    lock: u64,
    kind: u8,
    /// When the processor had it.
    since: i64,
    /// An instruction of the function that took it; 0 in the function of the lock.
    taker: u64,
    /// Whether the last access to memory was in the function of the lock, and whether it returned.
    is_inside: bool,
    is_returned: bool,
}

/// How often a lock was given back, and how long it was held by then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) times: u64,
    pub(super) ns: u64,
    /// The processors that had it: a bit for each.
    pub(super) processors: u8,
    /// How often another processor gave it back than the time before.
    pub(super) passed: u64,
    last: usize,
    /// Instructions of the functions that took it, and how often each did.
    pub(super) takers: Vec<(u64, u64)>,
}

impl Total {
    fn add(&mut self, held: Held, ns: u64) {
        self.passed += u64::from(self.times > 0 && self.last != held.processor);
        self.last = held.processor;
        self.times += 1;
        self.ns += ns;
        self.processors |= 1 << held.processor;
        if let Some(taker) = self.takers.iter_mut().find(|taker| taker.0 == held.taker) {
            taker.1 += 1;
        } else if self.takers.len() < TAKERS_MAX {
            self.takers.push((held.taker, 1));
        }
    }
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

/// Where a processor is when it uses memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) processor: usize,
    /// The address of the instruction.
    pub(super) site: u64,
    /// As in [`Use`].
    pub(super) takes: Option<u8>,
    /// Whether the instruction returns from a function.
    pub(super) is_return: bool,
}

/// All locks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: Vec<Held>,
    /// Processors that are in functions of locks: a bit for each.
    taking: u8,
    totals: BTreeMap<(u8, u64), Total>,
}

impl Locks {
    /// Tells whether an access may be one of a lock: most are not, and need no time. So are those in
    /// a function of locks before it takes one.
    pub(super) fn concerns(
        &self,
        processor: usize,
        physical: u64,
        takes: Option<u8>,
        [is_locked, is_write]: [bool; 2],
    ) -> bool {
        takes.is_some() && (is_locked || self.is_taking(processor))
            || is_write && self.held.iter().any(|held| held.lock == physical)
    }

    /// Tells whether a processor may be in functions of locks that it takes.
    pub(super) fn is_taking(&self, processor: usize) -> bool {
        self.taking >> processor & 1 == 1
    }

    /// A processor uses memory by an instruction, in a function that takes locks of a kind or none:
    /// sees whether it has returned to what took the lock.
    pub(super) fn follow(&mut self, at: At) {
        let class = at.takes.and_then(class);
        let mut is_taking = false;
        for held in &mut self.held {
            if held.processor != at.processor || held.taker != 0 {
                continue;
            }
            if class == self::class(held.kind) {
                (held.is_inside, held.is_returned) = (true, at.is_return);
            } else if held.is_returned {
                held.taker = at.site;
                continue;
            } else {
                held.is_returned = at.is_return && held.is_inside;
                held.is_inside = false;
            }
            is_taking = true;
        }
        if !is_taking {
            self.taking &= !(1 << at.processor);
        }
    }

    /// A processor uses memory. Returns whether it gave back a lock that is new among those that
    /// were counted.
    pub(super) fn access(&mut self, by: Use, is_counted: bool) -> bool {
        if by.is_write
            && let Some(index) = self.given_back(by)
        {
            let held = self.held.remove(index);
            self.others_had_not(&held, by.now);
            if !is_counted {
                return false;
            }
            let known = self.totals.len();
            let ns = u64::try_from(by.now - held.since).unwrap_or(0);
            let total = self.totals.entry((held.kind, held.lock)).or_default();
            total.add(held, ns);
            return self.totals.len() > known;
        }
        if let Some(kind) = by.takes {
            self.take(by, kind);
        }
        false
    }

    /// As long as a lock was held, no other processor had it that waited for it or had tried to
    /// take it.
    fn others_had_not(&mut self, given: &Held, now: i64) {
        let is_alone = is_exclusive(given.kind);
        for held in self.held.iter_mut().filter(|held| held.lock == given.lock) {
            if is_alone || is_exclusive(held.kind) {
                held.since = held.since.max(now);
            }
        }
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
        let taken = Held {
            processor: by.processor,
            lock: by.physical,
            kind,
            since: by.now,
            taker: 0,
            is_inside: true,
            is_returned: false,
        };
        let mut own = self
            .held
            .iter_mut()
            .filter(|held| held.processor == by.processor);
        if by.is_locked {
            match own.find(|held| held.lock == by.physical) {
                Some(held) => *held = taken,
                None => {
                    if self.held.len() == HELD_MAX {
                        self.held.remove(0);
                    }
                    self.held.push(taken);
                }
            }
            self.taking |= 1 << by.processor;
            return;
        }
        for held in own.filter(|held| held.kind == kind) {
            if held.taker == 0 {
                // Still in the function: it is not had before its end.
                held.since = by.now;
            } else if by.is_write && held.lock == by.physical {
                // What waited takes it by a store.
                *held = taken;
                self.taking |= 1 << by.processor;
            }
        }
    }

    /// Returns what was held, by kind and place.
    pub(super) fn totals(&self) -> &BTreeMap<(u8, u64), Total> {
        &self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::{At, Locks, Use};

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
        /// Returns from the function of a lock to `site`, which uses its stack.
        fn returns(&mut self, processor: usize, takes: Option<u8>, site: u64, now: i64) {
            self.loads(processor, takes, STACK, now);
            self.follow(processor, takes, 1, true);
            self.follow(processor, None, site, false);
        }

        fn follow(&mut self, processor: usize, takes: Option<u8>, site: u64, is_return: bool) {
            if self.0.is_taking(processor) {
                self.0.follow(At {
                    processor,
                    site,
                    takes,
                    is_return,
                });
            }
        }

        fn takers(&self, kind: u8) -> Vec<(u64, u64)> {
            let total = self.0.totals().get(&(kind, LOCK));
            total.map(|total| total.takers.clone()).unwrap_or_default()
        }

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
            self.follow(processor, takes, 1, false);
            let how = [is_locked, is_write];
            if self.0.concerns(processor, physical, takes, how) {
                self.0.access(by, true);
            }
        }

        fn total(&self, kind: u8) -> Option<(u64, u64, u8)> {
            let total = self.0.totals().get(&(kind, LOCK))?;
            Some((total.times, total.ns, total.processors))
        }
    }

    const fn total(times: u64, ns: u64, processors: u8) -> Option<(u64, u64, u8)> {
        Some((times, ns, processors))
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
        let of_inner = story.0.totals().get(&(SPIN, inner));
        assert_eq!(of_inner.map(|total| total.ns), Some(10));
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

    #[test]
    fn taker_is_what_runs_after_the_return() {
        let mut story = Story::default();
        for (processor, site, now) in [(0, 0x77, 100), (1, 0x88, 200), (0, 0x77, 300)] {
            story.locked(processor, Some(SPIN), LOCK, now);
            // An interrupt before the return.
            story.follow(processor, None, 0x66, false);
            story.returns(processor, Some(SPIN), site, now + 5);
            story.stores(processor, None, LOCK, now + 15);
        }
        assert_eq!(story.takers(SPIN), [(0x77, 2), (0x88, 1)]);
        let passed = story.0.totals().get(&(SPIN, LOCK)).unwrap().passed;
        assert_eq!(passed, 2);
    }

    #[test]
    fn return_may_be_in_a_thunk() {
        let mut story = Story::default();
        story.locked(0, Some(SPIN), LOCK, 100);
        story.follow(0, None, 0x55, true);
        story.follow(0, None, 0x77, false);
        story.stores(0, None, LOCK, 110);
        assert_eq!(story.takers(SPIN), [(0x77, 1)]);
    }

    #[test]
    fn inner_lock_does_not_shorten_the_outer() {
        let mut story = Story::default();
        let inner = 0x2000;
        story.locked(0, Some(SPIN), LOCK, 10);
        story.returns(0, Some(SPIN), 0x77, 12);
        story.loads(0, Some(SPIN), STACK, 50);
        story.locked(0, Some(SPIN), inner, 51);
        story.returns(0, Some(SPIN), 0x78, 53);
        story.stores(0, None, inner, 60);
        story.stores(0, None, LOCK, 112);
        assert_eq!(story.total(SPIN), total(1, 100, 1));
        assert_eq!(story.takers(SPIN), [(0x77, 1)]);
    }

    #[test]
    fn sleep_of_a_mutex_is_not_its_holder() {
        let mut story = Story::default();
        story.locked(0, Some(MUTEX), LOCK, 10);
        story.returns(0, Some(MUTEX), 0x71, 11);
        story.locked(1, Some(MUTEX), LOCK, 12);
        story.follow(1, None, 0x99, false);
        story.locked(0, None, LOCK, 500);
        story.locked(1, Some(MUTEX), LOCK, 700);
        story.returns(1, Some(MUTEX), 0x72, 710);
        story.locked(1, None, LOCK, 730);
        assert_eq!(story.total(MUTEX), total(2, 509, 3));
        assert_eq!(story.takers(MUTEX), [(0x71, 1), (0x72, 1)]);
    }

    #[test]
    fn attempt_that_failed_begins_after_the_holder() {
        let mut story = Story::default();
        story.locked(0, Some(MUTEX), LOCK, 10);
        story.locked(1, Some(MUTEX), LOCK, 20);
        story.locked(0, None, LOCK, 500);
        // It has the lock by way of another processor.
        story.locked(1, None, LOCK, 510);
        assert_eq!(story.total(MUTEX), total(2, 500, 3));
    }
}
