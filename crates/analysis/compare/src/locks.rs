//! What the time that locks are held makes of verdicts by transfers: with many processors the lock
//! that is held longest bounds what they do together. How long it was held comes with the lines
//! that processors share.

use model::{Direction, Held, LockKind, Sharing, Uncertainty, Verdict, Within};

use crate::comparison::Comparison;
use crate::difference::difference_percent;
use crate::verdict::is_contradicted;

/// Locks that are held for less (ns an operation) bound nothing that has a system call.
const NS_LEAST: f64 = 100.0;
/// What the time of a lock differs by between interleavings of one kernel, and some more.
const MARGIN_PERCENT: f64 = 10.0;

/// A lock in an object bounds on one side only if the other has less than this share of its time,
/// in locks of its name that bound nothing.
const SHARE_ELSEWHERE: f64 = 0.5;

/// Seeds that a verdict by locks in objects needs: the time of some moves by a third between two
/// interleavings of one kernel.
const SEEDS_OF_OBJECTS: usize = 5;

/// Which lock is held longest for a row, on the side where that is longer, and how long on both
/// sides: a pair for each seed.
#[derive(Debug, Clone, PartialEq)]
pub struct LongestHeld {
    lock: String,
    seeds: Vec<[f64; 2]>,
}

impl LongestHeld {
    /// Reads it from the lines of both sides, seed by seed: of variables of the kernel, and of
    /// locks in objects. Each is left out if a seed of either side has no such lock that is held
    /// for long, and those in objects if seeds are few or the sides overlap.
    #[must_use]
    pub fn of_seeds(base: &[Sharing], new: &[Sharing]) -> Vec<Self> {
        [Within::Kernel, Within::Object]
            .into_iter()
            .filter_map(|within| Self::of_locks(within, base, new))
            .collect()
    }

    fn of_locks(within: Within, base: &[Sharing], new: &[Sharing]) -> Option<Self> {
        if base.len() != new.len() {
            return None;
        }
        let mut lock = None;
        let mut seeds = Vec::new();
        for (old, new) in base.iter().zip(new) {
            let (longest, before) = old.longest_held(within)?;
            let (longest_now, now) = new.longest_held(within)?;
            if before.max(now) < NS_LEAST
                || is_elsewhere(longest, before, new)
                || is_elsewhere(longest_now, now, old)
            {
                return None;
            }
            let longer = if now > before { longest_now } else { longest };
            lock.get_or_insert_with(|| model::lock_in_sentence(longer.kind, &longer.lock));
            seeds.push([before, now]);
        }
        if within == Within::Object && !are_apart(&seeds) {
            return None;
        }
        Some(Self { lock: lock?, seeds })
    }
}

/// Tells whether there are enough seeds, and all times of one side are longer than all of the
/// other.
fn are_apart(seeds: &[[f64; 2]]) -> bool {
    let side =
        |side: usize| stats::spread(&seeds.iter().map(|seed| seed[side]).collect::<Vec<_>>());
    let (Some(old), Some(new)) = (side(0), side(1)) else {
        return false;
    };
    seeds.len() >= SEEDS_OF_OBJECTS && (old.max < new.min || new.max < old.min)
}

/// Tells whether a side has much of a lock's time in locks of its name that bound nothing there.
fn is_elsewhere(longest: &Held, ns: f64, side: &Sharing) -> bool {
    let processors = side.processors();
    let mut named = side
        .held
        .iter()
        .filter(|held| held.kind == longest.kind && held.lock == longest.lock);
    named.any(|held| {
        let on_side = held.ns as f64 / side.operations.max(1) as f64;
        held.bounding_ns(side.operations, processors).is_none() && on_side > SHARE_ELSEWHERE * ns
    })
}

/// A lock that all seeds hold for longer or shorter, beside a longer one or as the longest. By
/// itself it is no verdict: which lock is the longest, another program may answer otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct LockBeside {
    /// What it is called in a sentence.
    pub lock: String,
    /// The function that takes it. `None` for a variable of the kernel that operations take on one
    /// side alone: no layout and no interleaving does that.
    pub function: Option<String>,
    /// How long it is held and handed over on both sides (ns an operation), in the middle of the
    /// seeds.
    pub ns: [f64; 2],
    /// Whether the difference is beyond the margin of the row's longest lock in each seed.
    pub is_large: bool,
}

/// A variable of the kernel is taken on one side alone: by at least this share of the operations
/// there, and by less than that here.
const TAKEN_LEAST: f64 = 0.5;
const TAKEN_MOST: f64 = 0.05;

impl LockBeside {
    /// Returns those in objects whose difference is large, and variables of the kernel that
    /// one side alone takes; the largest difference first.
    #[must_use]
    pub fn of_seeds(base: &[Sharing], new: &[Sharing]) -> Vec<Self> {
        let (Some(first), Some(first_new)) = (base.first(), new.first()) else {
            return Vec::new();
        };
        let all = first.held.iter().chain(&first_new.held);
        let mut named: Vec<(LockKind, &str, Within)> = all
            .map(|held| (held.kind, &*held.lock, held.within))
            .collect();
        named.sort_unstable();
        named.dedup();
        let mut found: Vec<Self> = named
            .into_iter()
            .filter_map(|(kind, lock, within)| match within {
                Within::Kernel => Self::of_one_side(kind, lock, base, new),
                Within::Processor => None,
                Within::Object => {
                    let function = lock.strip_prefix(model::TAKEN_IN)?.to_owned();
                    let found = Self::of_lock(kind, lock, Some(function), base, new)?;
                    found.is_large.then_some(found)
                }
            })
            .collect();
        let size = |lock: &Self| (lock.ns[1] - lock.ns[0]).abs();
        found.sort_by(|one, other| size(other).total_cmp(&size(one)));
        found
    }

    fn of_one_side(kind: LockKind, lock: &str, base: &[Sharing], new: &[Sharing]) -> Option<Self> {
        let is_taken = |side: &Sharing| taken(kind, lock, side) >= TAKEN_LEAST;
        let is_untaken = |side: &Sharing| taken(kind, lock, side) < TAKEN_MOST;
        let is_removed = base.iter().all(is_taken) && new.iter().all(is_untaken);
        let is_new = base.iter().all(is_untaken) && new.iter().all(is_taken);
        let of_one_side = is_removed || is_new;
        of_one_side.then(|| Self::of_lock(kind, lock, None, base, new))?
    }

    fn of_lock(
        kind: LockKind,
        lock: &str,
        function: Option<String>,
        base: &[Sharing],
        new: &[Sharing],
    ) -> Option<Self> {
        if base.len() != new.len() {
            return None;
        }
        let mut seeds = Vec::new();
        let mut is_large = true;
        for (old, new) in base.iter().zip(new) {
            let times = [bounding(kind, lock, old), bounding(kind, lock, new)];
            let most = times.iter().flatten().copied().fold(0.0, f64::max);
            let pair = [old, new].map(|side| on_side(kind, lock, side, most));
            let [old_ns, new_ns] = [pair[0]?, pair[1]?];
            let longest = longest_of_all(old).max(longest_of_all(new));
            let least = NS_LEAST.max(longest * MARGIN_PERCENT / 100.0);
            is_large &= (new_ns - old_ns).abs() >= least;
            seeds.push([old_ns, new_ns]);
        }
        let median = |side: usize| {
            let times: Vec<f64> = seeds.iter().map(|seed| seed[side]).collect();
            stats::median(&times).unwrap_or_default()
        };
        are_apart(&seeds).then(|| Self {
            lock: model::lock_in_sentence(kind, lock),
            function,
            ns: [median(0), median(1)],
            is_large,
        })
    }
}

/// Returns how often several processors take a lock in an operation.
fn taken(kind: LockKind, lock: &str, side: &Sharing) -> f64 {
    let named = side
        .held
        .iter()
        .filter(|held| held.kind == kind && held.lock == lock && held.processors > 1);
    let times: u64 = named.map(|held| held.times).sum();
    times as f64 / side.operations.max(1) as f64
}

/// Returns how long a lock that bounds is held and handed over (ns an operation).
fn bounding(kind: LockKind, lock: &str, side: &Sharing) -> Option<f64> {
    let processors = side.processors();
    let mut named = side
        .held
        .iter()
        .filter(|held| held.kind == kind && held.lock == lock);
    let ns = named.find_map(|held| held.bounding_ns(side.operations, processors))?;
    Some(ns as f64 / side.operations.max(1) as f64)
}

/// Returns the same of a side on which it may bound nothing: none if it is not there; `None` if
/// locks of its name have much of what it has on the other side.
fn on_side(kind: LockKind, lock: &str, side: &Sharing, most: f64) -> Option<f64> {
    if let Some(ns) = bounding(kind, lock, side) {
        return Some(ns);
    }
    let named = side
        .held
        .iter()
        .filter(|held| held.kind == kind && held.lock == lock);
    let ns = named.map(|held| held.ns).sum::<u64>() as f64 / side.operations.max(1) as f64;
    (ns <= SHARE_ELSEWHERE * most).then_some(0.0)
}

fn longest_of_all(side: &Sharing) -> f64 {
    let within = Within::ALL.into_iter();
    within
        .filter_map(|within| Some(side.longest_held(within)?.1))
        .fold(0.0, f64::max)
}

impl Comparison {
    /// Makes a row mixed in a column if one of its locks contradicts the transfers: the middle of
    /// the seeds says the opposite of better or worse, or all say more than the margin of what is
    /// the same.
    pub fn weigh_locks(&mut self, workload: &str, column: usize, longest: &[LongestHeld]) {
        for held in longest {
            self.weigh_lock(workload, column, held);
        }
    }

    fn weigh_lock(&mut self, workload: &str, column: usize, held: &LongestHeld) {
        let Some(row) = self
            .rows
            .iter_mut()
            .find(|row| &*row.workload.name == workload)
        else {
            return;
        };
        let Some(cell) = row.cells.get_mut(column) else {
            return;
        };
        let verdict = &cell.compared.verdict;
        let percents: Option<Vec<f64>> = held
            .seeds
            .iter()
            .map(|[old, new]| difference_percent(Direction::LowerIsBetter, *old, *new))
            .collect();
        let (Some(counted_percent), Some(ends)) = (
            cell.compared.difference_percent,
            percents.and_then(|percents| stats::spread(&percents)),
        ) else {
            return;
        };
        if !is_contradicted(verdict, ends, MARGIN_PERCENT) {
            return;
        }
        let counts = &mut self.others[column].counts;
        match verdict {
            Verdict::Better => counts.better -= 1,
            Verdict::Worse => counts.worse -= 1,
            Verdict::Same => counts.same -= 1,
            Verdict::Unclear(_) => return,
        }
        counts.unclear += 1;
        let median = |side: usize| {
            let times: Vec<f64> = held.seeds.iter().map(|seed| seed[side]).collect();
            stats::median(&times).unwrap_or_default()
        };
        let is_alone = *verdict == Verdict::Same;
        cell.compared.verdict = Verdict::Unclear(Uncertainty::Held {
            counted_percent,
            lock: held.lock.clone(),
            ns: [median(0), median(1)],
            held_percent: [ends.min, ends.max],
            is_alone,
        });
    }
}

#[cfg(test)]
mod tests {
    use model::{Held, HeldWord, LockKind, Sharing, Within};

    use super::{LockBeside, LongestHeld};
    use crate::compare::compare;
    use crate::comparison::{Comparison, Conclusion};
    use crate::fixtures::{Ending, Subject, build, question};

    fn seed(locks: &[(LockKind, &str, u64)]) -> Sharing {
        let held = locks.iter().map(|(kind, lock, ns)| Held {
            kind: *kind,
            lock: (*lock).to_owned(),
            within: if lock.contains(['.', ' ']) {
                Within::Object
            } else {
                Within::Kernel
            },
            times: 20,
            ns: 10 * ns,
            processors: 2,
            longest: HeldWord {
                ns: 10 * ns,
                times: 20,
                processors: 2,
                passed: 10,
            },
        });
        Sharing {
            operations: 10,
            held: held.collect(),
            ..Sharing::default()
        }
    }

    fn compared(base: f64, new: f64) -> Comparison {
        let subject = |version: &str, cost| {
            let rows = [("fault-anon", Ending::Cost(cost, 0.0))];
            Subject::new(build(&format!("deb:{version}"), version), &[1], &rows)
        };
        let [base, new] = [subject("6.1", base), subject("6.12", new)];
        let mut question = question(&[1]);
        question.workloads.retain(|row| &*row.name == "fault-anon");
        compare(&base.side(), &[new.side()], &question).unwrap()
    }

    fn letter(comparison: &Comparison) -> char {
        comparison.rows[0].cells[0].compared.verdict.letter()
    }

    #[test]
    fn lock_held_shorter_makes_the_same_mixed() {
        let base = seed(&[
            (LockKind::Spin, "pidmap_lock", 3280),
            (LockKind::Write, "tasklist_lock", 2520),
            (LockKind::DownRead, "mm_struct.mmap_lock.count", 9000),
            (LockKind::Spin, "other pages", 40_000),
        ]);
        let new = seed(&[
            (LockKind::Spin, "pidmap_lock", 1830),
            (LockKind::Write, "tasklist_lock", 2447),
        ]);
        let held = LongestHeld::of_seeds(&[base], &[new]);
        let mut comparison = compared(1000.0, 1000.0);
        comparison.weigh_locks("fault-anon", 0, &held);
        assert_eq!(letter(&comparison), 'M');
        assert_eq!(comparison.conclusion(), Conclusion::Unclear);
        let reason = comparison.rows[0].cells[0].compared.verdict.clone();
        let model::Verdict::Unclear(why) = reason else {
            panic!("{reason:?}")
        };
        insta::assert_snapshot!(
            why.to_string(),
            @"mixed: +0.00% by transfers, +23.9 to +23.9% by the lock that is held longest (pidmap_lock): 3480 -> 2647 ns an operation with handing it over"
        );
    }

    #[test]
    fn locks_that_agree_leave_the_verdict() {
        let held = |old, new| {
            let lock = |ns| seed(&[(LockKind::Spin, "pidmap_lock", ns)]);
            LongestHeld::of_seeds(&[lock(old), lock(1000)], &[lock(new), lock(800)])
        };
        let mut comparison = compared(1000.0, 900.0);
        comparison.weigh_locks("fault-anon", 0, &held(1000, 500));
        assert_eq!(letter(&comparison), 'B');
        let mut comparison = compared(1000.0, 1000.0);
        comparison.weigh_locks("fault-anon", 0, &held(1000, 995));
        assert_eq!(letter(&comparison), '=', "one seed is within the margin");
        let mut comparison = compared(900.0, 1000.0);
        comparison.weigh_locks("fault-anon", 0, &held(2000, 1000));
        assert_eq!(letter(&comparison), 'M', "the other direction");
    }

    #[test]
    fn short_locks_and_missing_seeds_say_nothing() {
        let lock = |ns| seed(&[(LockKind::Spin, "pidmap_lock", ns)]);
        let rarely = |ns| {
            let mut run = lock(ns);
            run.held[0].times = 2;
            run
        };
        assert_eq!(LongestHeld::of_seeds(&[rarely(50)], &[rarely(20)]), []);
        assert_eq!(LongestHeld::of_seeds(&[lock(500)], &[seed(&[])]), []);
        assert_eq!(LongestHeld::of_seeds(&[lock(500)], &[]), []);
    }

    /// A lock in objects: its time, and that of the longest of them.
    fn object(lock: &str, ns: u64, longest: HeldWord) -> Held {
        Held {
            kind: LockKind::Spin,
            lock: lock.to_owned(),
            within: Within::Object,
            times: 20,
            ns: 10 * ns,
            processors: 2,
            longest,
        }
    }

    fn word(ns: u64, passed: u64) -> HeldWord {
        HeldWord {
            ns: 10 * ns,
            times: 20,
            processors: 2,
            passed,
        }
    }

    #[test]
    fn removed_lock_of_an_object_shows() {
        let name = "taken in ext4_mb_new_blocks";
        let mut base = seed(&[(LockKind::Spin, "pidmap_lock", 500)]);
        let mut new = base.clone();
        let other = object("taken in ext4_orphan_add", 300, word(300, 9));
        base.held
            .extend([object(name, 900, word(800, 9)), other.clone()]);
        new.held.push(other);
        let of_seeds =
            |seeds| LongestHeld::of_seeds(&vec![base.clone(); seeds], &vec![new.clone(); seeds]);
        let held = of_seeds(5);
        assert_eq!(held.len(), 2, "{held:?}");
        assert_eq!(held[1].lock, "the spin lock taken in ext4_mb_new_blocks");
        assert_eq!(held[1].seeds, [[1000.0, 500.0]; 5]);
        assert_eq!(of_seeds(4).len(), 1, "the kernel's own need fewer");
        let mut sides = [vec![base.clone(); 5], vec![new.clone(); 5]];
        (sides[0][0], sides[1][0]) = (new, base);
        assert_eq!(
            LongestHeld::of_seeds(&sides[0], &sides[1]).len(),
            1,
            "overlap"
        );
    }

    /// Runs of five seeds with locks in objects: function, and nanoseconds an operation.
    fn seeds_of(locks: &[(&str, u64)]) -> Vec<Sharing> {
        let mut run = seed(&[(LockKind::Spin, "inode_hash_lock", 200)]);
        for (function, ns) in locks {
            let name = model::taken_in(function);
            run.held.push(object(&name, *ns, word(*ns, 9)));
        }
        vec![run; 5]
    }

    #[test]
    fn lock_beside_a_longer_one_is_found() {
        let base = seeds_of(&[("orphan_add", 2500), ("find_group", 300)]);
        let new = seeds_of(&[("orphan_add", 2500)]);
        let found = LockBeside::of_seeds(&base, &new);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].function.as_deref(), Some("find_group"));
        // Twice in an operation, each time handed over.
        assert_eq!((found[0].ns, found[0].is_large), ([500.0, 0.0], true));
        let long = |ns| seeds_of(&[("orphan_add", 9000), ("find_group", ns)]);
        assert_eq!(LockBeside::of_seeds(&long(700), &long(100)), [], "a tenth");
        assert_eq!(LockBeside::of_seeds(&base[..4], &new[..4]), []);
    }

    #[test]
    fn kernel_lock_of_one_side_is_found() {
        let lock = |ns| seed(&[(LockKind::Spin, "unix_gc_lock", ns)]);
        let [with, without] = [vec![lock(12); 5], vec![seed(&[]); 5]];
        let found = LockBeside::of_seeds(&without, &with);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].ns, found[0].is_large), ([0.0, 212.0], true));
        assert_eq!(found[0].function, None);
        assert_eq!(LockBeside::of_seeds(&with, &vec![lock(900); 5]), []);
    }

    #[test]
    fn objects_of_pairs_and_used_again_bound_nothing() {
        let list = |longest| {
            let mut run = seed(&[]);
            run.held.push(object("taken in pipe_read", 900, longest));
            vec![run; 5]
        };
        let of_seeds = |base, new| LongestHeld::of_seeds(&list(base), &list(new));
        assert_eq!(of_seeds(word(450, 9), word(400, 9)), [], "two pipes");
        assert_eq!(
            of_seeds(word(900, 0), word(800, 0)),
            [],
            "freed and used again"
        );
        let of_one = HeldWord {
            processors: 1,
            ..word(900, 9)
        };
        assert_eq!(of_seeds(of_one, of_one), []);
        assert_eq!(
            of_seeds(word(900, 9), word(450, 9)),
            [],
            "bounds on one side"
        );
        assert_eq!(of_seeds(word(900, 9), word(700, 9)).len(), 1);
    }
}
