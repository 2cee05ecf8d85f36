//! What the time that locks are held makes of verdicts by transfers: with many processors the lock
//! that is held longest bounds what they do together. How long it was held comes with the lines that
//! processors share.

use model::{Direction, Sharing, Uncertainty, Verdict};

use crate::comparison::Comparison;
use crate::difference::difference_percent;
use crate::verdict::is_contradicted;

/// Locks that are held for less (ns an operation) bound nothing that has a system call.
const NS_LEAST: f64 = 100.0;
/// What the time of a lock differs by between interleavings of one kernel, and some more.
const MARGIN_PERCENT: f64 = 10.0;

/// Which lock is held longest for a row, on the base, and how long on both sides: a pair for each
/// seed.
#[derive(Debug, Clone, PartialEq)]
pub struct LongestHeld {
    lock: String,
    seeds: Vec<[f64; 2]>,
}

impl LongestHeld {
    /// Reads it from the lines of both sides, seed by seed; `None` if a seed of either side has no
    /// lock that is held for long.
    #[must_use]
    pub fn of_seeds(base: &[Sharing], new: &[Sharing]) -> Option<Self> {
        if base.len() != new.len() {
            return None;
        }
        let mut lock = None;
        let mut seeds = Vec::new();
        for (old, new) in base.iter().zip(new) {
            let (name, before) = old.longest_held()?;
            let (_, now) = new.longest_held()?;
            if before.max(now) < NS_LEAST {
                return None;
            }
            lock.get_or_insert_with(|| name.to_owned());
            seeds.push([before, now]);
        }
        Some(Self { lock: lock?, seeds })
    }
}

impl Comparison {
    /// Makes a row mixed in a column if its lock contradicts the transfers: the middle of the seeds
    /// says the opposite of better or worse, or all say more than the margin of what is the same.
    pub fn weigh_locks(&mut self, workload: &str, column: usize, held: &LongestHeld) {
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
    use model::{Held, LockKind, Sharing};

    use super::LongestHeld;
    use crate::compare::compare;
    use crate::comparison::{Comparison, Conclusion};
    use crate::fixtures::{Ending, Subject, build, question};

    fn seed(locks: &[(LockKind, &str, u64)]) -> Sharing {
        let held = locks.iter().map(|(kind, lock, ns)| Held {
            kind: *kind,
            lock: (*lock).to_owned(),
            is_global: !lock.contains(['.', ' ']),
            times: 20,
            ns: 10 * ns,
            processors: 2,
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
        let held = LongestHeld::of_seeds(&[base], &[new]).unwrap();
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
            @"mixed: +0.00% by transfers, +25.4 to +25.4% by the lock that is held longest (pidmap_lock): 3280 -> 2447 ns an operation"
        );
    }

    #[test]
    fn locks_that_agree_leave_the_verdict() {
        let held = |old, new| {
            let lock = |ns| seed(&[(LockKind::Spin, "pidmap_lock", ns)]);
            LongestHeld::of_seeds(&[lock(old), lock(1000)], &[lock(new), lock(800)]).unwrap()
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
        assert_eq!(LongestHeld::of_seeds(&[lock(50)], &[lock(20)]), None);
        assert_eq!(LongestHeld::of_seeds(&[lock(500)], &[seed(&[])]), None);
        assert_eq!(LongestHeld::of_seeds(&[lock(500)], &[]), None);
    }
}
