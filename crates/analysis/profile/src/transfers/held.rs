//! How long two kernels hold locks that several processors take.

use std::collections::BTreeMap;

use model::{Held, LockKind, Sharing};

use super::PerOperation;

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
    /// As in [`model::Held`].
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
        for Held {
            kind,
            lock,
            is_global,
            times,
            ns,
            ..
        } in runs.iter().flat_map(|run| &run.held).filter(shared)
        {
            let sum = sums.entry((*kind, lock)).or_default();
            sum.is_global |= is_global;
            sum.times[side] += times;
            sum.ns[side] += ns;
        }
    }
    let mut locks = Vec::new();
    for ((kind, lock), sums) in sums {
        let per_operation =
            |sums: [u64; 2]| [0, 1].map(|side| sums[side] as f64 / operations[side]);
        locks.push(HeldLock {
            kind,
            lock: lock.to_owned(),
            is_global: sums.is_global,
            times: per_operation(sums.times),
            ns: per_operation(sums.ns),
        });
    }
    locks.sort_by(|one, other| {
        let size = |lock: &HeldLock| (lock.difference().abs(), lock.ns[0] + lock.ns[1]);
        let one = size(one);
        let other = size(other);
        other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    locks
}

/// Says of the global lock whose time differs most that it does; nothing if none does by much.
pub(super) fn sentence(locks: &[HeldLock]) -> Option<String> {
    let exclusive = locks
        .iter()
        .filter(|lock| lock.kind.is_exclusive() && lock.is_global);
    let most = exclusive.max_by(|one, other| {
        let size = |lock: &HeldLock| lock.difference().abs();
        size(one).total_cmp(&size(other))
    })?;
    let [base, new] = most.ns;
    let difference = most.difference();
    if difference.abs() < NS_NAMED.max(SHARE_NAMED * base.max(new)) {
        return None;
    }
    let word = if difference > 0.0 {
        "longer"
    } else {
        "shorter"
    };
    Some(format!(
        "{} is held {:.0} ns {word} an operation ({base:.0} before, {new:.0} now).",
        most.lock,
        difference.abs()
    ))
}

#[cfg(test)]
mod tests {
    use model::{Held, LockKind, Sharing};

    use super::{HeldLock, held_locks, sentence};

    fn held(kind: LockKind, lock: &str, times: u64, ns: u64, processors: u32) -> Held {
        Held {
            kind,
            lock: lock.to_owned(),
            is_global: true,
            times,
            ns,
            processors,
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
        let equal = locks(vec![list(4000)], vec![list(3900)]);
        assert_eq!(sentence(&equal), None, "2.5 % of it");
    }
}
