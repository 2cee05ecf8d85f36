//! How long two kernels hold locks that several processors take.

use std::collections::BTreeMap;

use model::{Held, LockKind, Sharing, Within};

use super::PerOperation;

/// How much the number of takes of one lock differs at most between two kernels.
const TIMES_SAME: f64 = 0.05;
/// A difference that a sentence names: by at least this share of the longer time.
const SHARE_NAMED: f64 = 0.05;
/// And by at least so many nanoseconds an operation.
const NS_NAMED: f64 = 5.0;

/// A lock that several processors took, on both kernels, per operation.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldLock {
    /// How it was taken.
    pub kind: LockKind,
    /// The word that it is in: a field, or a symbol.
    pub lock: String,
    /// Whether it bounds what all processors do together, on one of the kernels
    /// ([`model::Held::bounding_ns`]).
    pub is_bounding: bool,
    /// Whether it is a variable of the kernel.
    pub is_global: bool,
    /// How often it was held.
    pub times: PerOperation,
    /// How long it was held (ns), modelled as in [`model::Held`].
    pub ns: PerOperation,
}

impl HeldLock {
    fn difference(&self) -> f64 {
        self.ns[1] - self.ns[0]
    }
}

/// Sums of both kernels over all their runs.
#[derive(Default)]
struct Sums {
    is_bounding: bool,
    is_global: bool,
    times: [u64; 2],
    ns: [u64; 2],
}

/// Returns the locks that more than one processor took, the largest difference
/// of time first, and then the longest.
pub(super) fn held_locks(sides: [&[Sharing]; 2], operations: [f64; 2]) -> Vec<HeldLock> {
    let mut sums: BTreeMap<(LockKind, &str), Sums> = BTreeMap::new();
    let shared = |held: &&Held| held.processors > 1;
    for (side, runs) in sides.into_iter().enumerate() {
        for run in runs {
            let processors = run.processors();
            for held in run.held.iter().filter(shared) {
                let sum = sums.entry((held.kind, &held.lock)).or_default();
                sum.is_global |= held.within == Within::Kernel;
                sum.is_bounding |= held.bounding_ns(run.operations, processors).is_some();
                sum.times[side] += held.times;
                sum.ns[side] += held.ns;
            }
        }
    }
    let mut locks: Vec<HeldLock> = Vec::new();
    for ((kind, lock), sums) in sums {
        let per_operation =
            |sums: [u64; 2]| [0, 1].map(|side| sums[side] as f64 / operations[side]);
        locks.push(HeldLock {
            kind,
            lock: lock.to_owned(),
            is_bounding: sums.is_bounding,
            is_global: sums.is_global,
            times: per_operation(sums.times),
            ns: per_operation(sums.ns),
        });
    }
    join_renamed(&mut locks);
    locks.sort_by(|one, other| {
        let size = |lock: &HeldLock| (lock.difference().abs(), lock.ns[0] + lock.ns[1]);
        let one = size(one);
        let other = size(other);
        other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    locks
}

/// Takes two locks for one that are known by the functions that take them, each on one kernel
/// alone, if they bound and are held as often: the function has another name, or is inlined.
fn join_renamed(locks: &mut Vec<HeldLock>) {
    let is_alone = |lock: &HeldLock, side: usize| {
        lock.is_bounding && lock.times[1 - side] == 0.0 && lock.lock.starts_with(model::TAKEN_IN)
    };
    let is_as_often = |one: f64, other: f64| (one - other).abs() <= TIMES_SAME * one.max(other);
    let mut index = 0;
    while index < locks.len() {
        let base = &locks[index];
        let found = is_alone(base, 0).then(|| {
            locks.iter().position(|new| {
                is_alone(new, 1)
                    && new.kind == base.kind
                    && is_as_often(base.times[0], new.times[1])
            })
        });
        if let Some(place) = found.flatten() {
            let new = locks.remove(place);
            index -= usize::from(place < index);
            let base = &mut locks[index];
            let function = new.lock.trim_start_matches(model::TAKEN_IN);
            base.lock = format!("{}, now {function}", base.lock);
            base.times[1] = new.times[1];
            base.ns[1] = new.ns[1];
        }
        index += 1;
    }
}

/// Says of the bounding lock whose time differs most that it does; nothing if none does by much.
/// Variables of the kernel come first, as in verdicts.
pub(super) fn sentence(locks: &[HeldLock]) -> Option<String> {
    let differs = |lock: &&HeldLock| {
        let [base, new] = lock.ns;
        lock.is_bounding && lock.difference().abs() >= NS_NAMED.max(SHARE_NAMED * base.max(new))
    };
    let most = locks.iter().filter(differs).max_by(|one, other| {
        let size = |lock: &HeldLock| (lock.is_global, lock.difference().abs());
        let (one, other) = (size(one), size(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    })?;
    let [base, new] = most.ns;
    let difference = most.difference();
    let word = if difference > 0.0 {
        "longer"
    } else {
        "shorter"
    };
    let mut sentence = format!(
        "{} is held {:.0} ns {word} an operation ({base:.0} before, {new:.0} now).",
        model::lock_in_sentence(most.kind, &most.lock),
        difference.abs()
    );
    if sentence.starts_with("the ") {
        sentence.replace_range(..1, "T");
    }
    Some(sentence)
}

#[cfg(test)]
mod tests {
    use model::{Held, HeldWord, LockKind, Sharing, Within};

    use super::{HeldLock, held_locks, sentence};

    fn held(kind: LockKind, lock: &str, times: u64, ns: u64, processors: u32) -> Held {
        Held {
            kind,
            lock: lock.to_owned(),
            within: Within::Kernel,
            times,
            ns,
            processors,
            longest: HeldWord::default(),
        }
    }

    fn locks(base: Vec<Held>, new: Vec<Held>) -> Vec<HeldLock> {
        let run = |held| Sharing {
            operations: 10,
            held,
            ..Sharing::default()
        };
        held_locks([&[run(base)], &[run(new)]], [10.0, 10.0])
    }

    #[test]
    fn locks_of_one_processor_are_left_out() {
        let list = held(LockKind::Spin, "tasklist_lock", 20, 4000, 2);
        let own = held(LockKind::Spin, "per-CPU runqueues.__lock", 20, 9000, 1);
        let found = locks(vec![list, own], Vec::new());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].times, found[0].ns), ([2.0, 0.0], [400.0, 0.0]));
    }

    #[test]
    fn sentence_names_the_lock_that_differs_most() {
        let list = |ns| held(LockKind::Write, "tasklist_lock", 20, ns, 2);
        let map = |ns| held(LockKind::Spin, "pidmap_lock", 20, ns, 2);
        let reads = |ns| held(LockKind::DownRead, "mm_struct.mmap_lock.count", 90, ns, 2);
        let found = locks(
            vec![list(4000), map(900), reads(9000)],
            vec![list(2500), map(910), reads(100)],
        );
        assert_eq!(
            sentence(&found).unwrap(),
            "tasklist_lock is held 150 ns shorter an operation (400 before, 250 now)."
        );
        let object = |longest: u64| Held {
            within: Within::Object,
            longest: HeldWord {
                ns: longest,
                times: 20,
                processors: 2,
                passed: 9,
            },
            ..held(LockKind::Spin, "taken in ext4_mb_new_blocks", 20, 9000, 2)
        };
        let removed = locks(vec![object(9000), list(900)], vec![list(900)]);
        assert_eq!(
            sentence(&removed).unwrap(),
            "The spin lock taken in ext4_mb_new_blocks is held 900 ns shorter an operation \
             (900 before, 0 now)."
        );
        assert_eq!(
            sentence(&locks(vec![object(4000)], Vec::new())),
            None,
            "one of many"
        );
        let renamed = |lock: &str, times, ns| Held {
            lock: lock.to_owned(),
            times,
            ns,
            ..object(ns)
        };
        let inlined = locks(
            vec![renamed("taken in evict", 20, 9000)],
            vec![renamed("taken in iput", 20, 6000)],
        );
        assert_eq!(
            sentence(&inlined).unwrap(),
            "The spin lock taken in evict, now iput is held 300 ns shorter an operation \
             (900 before, 600 now)."
        );
        let equal = locks(vec![list(4000)], vec![list(3900)]);
        assert_eq!(sentence(&equal), None, "2.5 % of it");
    }
}
