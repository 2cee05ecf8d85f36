//! Two sides compared by the order of their values alone: how likely that order is without a
//! difference, and how far one side is shifted. Few values are counted out exactly, ties included.

use crate::average::{finite, median};
use crate::distribution::{normal_two_sided, normal_upper_quantile};

/// Most values of both sides together that are counted out; more take the normal approximation.
const EXACT_MAX: usize = 40;
/// Share outside the interval of the shift on each side: 95 % are inside.
const TAIL: f64 = 0.025;

/// What ranks say of two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// Chance of ranks at least so uneven without a difference, two-sided.
    ///
    /// Mann and Whitney 1947; exact up to 40 values: of all ways to deal out the mid-ranks, the
    /// share whose rank sum lies at least so far from its mean (ties by the shift algorithm of
    /// Streitberg and Röhmel 1986). Beyond: the normal approximation, corrected for ties and
    /// continuity.
    pub p: f64,
    /// How often a value of the second side is the larger one, less how often it is the smaller
    /// one: -1 to 1 (Cliff 1993, `2 U / (n m) - 1`).
    pub dominance: f64,
    /// Median of all differences, second less first side, in the values' unit (Hodges and Lehmann
    /// 1963).
    pub shift: f64,
    /// Ends of the shift's interval of at least 95 %, by order statistics of the differences
    /// (Moses 1965). None where so few values allow no such interval.
    pub interval: Option<(f64, f64)>,
}

/// Compares two sides by ranks.
///
/// `None` when a side has no values or one that is not finite.
#[must_use]
pub fn rank_test(first: &[f64], second: &[f64]) -> Option<RankTest> {
    let first = finite(first)?;
    let second = finite(second)?;
    let sums = rank_sum(first, second);
    let pairs = first.len() as f64 * second.len() as f64;
    let differences = differences(first, second);
    Some(RankTest {
        p: sums.p(),
        dominance: 2.0 * sums.u / pairs - 1.0,
        shift: median(&differences)?,
        interval: interval(&differences, [first.len(), second.len()], TAIL),
    })
}

/// Returns the ends of the shift's interval that leaves out at most `tail` on each side; the
/// smallest and the largest difference where so few values allow no such interval, so that a
/// smaller tail never gives a narrower one. The sides are finite.
pub(crate) fn shift_interval(first: &[f64], second: &[f64], tail: f64) -> Option<(f64, f64)> {
    let differences = differences(first, second);
    let interval = interval(&differences, [first.len(), second.len()], tail);
    interval.or_else(|| Some((*differences.first()?, *differences.last()?)))
}

/// Returns all differences, second less first side, in order.
fn differences(first: &[f64], second: &[f64]) -> Vec<f64> {
    let mut differences: Vec<f64> = second
        .iter()
        .flat_map(|b| first.iter().map(move |a| b - a))
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    differences
}

/// Ranks of two sides: mid-ranks where values are equal.
#[derive(Debug, Clone)]
pub(crate) struct RankSum {
    /// Pairs in which the second side's value is the larger, ties counted half.
    u: f64,
    /// What is expected of it without a difference.
    expected: f64,
    /// Its deviation then, ties taken into account.
    deviation: f64,
    /// Twice the mid-ranks, in order; whole numbers.
    doubled: Vec<usize>,
    /// Values of the second side.
    second: usize,
}

/// Ranks two sides, whose values are finite.
pub(crate) fn rank_sum(first: &[f64], second: &[f64]) -> RankSum {
    let mut all: Vec<(f64, bool)> = first
        .iter()
        .map(|v| (*v, false))
        .chain(second.iter().map(|v| (*v, true)))
        .collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut doubled = Vec::with_capacity(all.len());
    let mut sum = 0;
    let mut ties = 0.0;
    let mut at = 0;
    while at < all.len() {
        // Not equality: of sorted values none is smaller.
        let same = all[at..].iter().take_while(|v| v.0 <= all[at].0).count();
        let rank = 2 * at + same + 1;
        sum += rank * all[at..at + same].iter().filter(|v| v.1).count();
        doubled.extend(std::iter::repeat_n(rank, same));
        ties += (same as f64).powi(3) - same as f64;
        at += same;
    }
    let n = first.len() as f64;
    let m = second.len() as f64;
    let total = all.len() as f64;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)).max(1.0));
    RankSum {
        u: sum as f64 / 2.0 - m * (m + 1.0) / 2.0,
        expected: n * m / 2.0,
        deviation: variance.max(0.0).sqrt(),
        doubled,
        second: second.len(),
    }
}

impl RankSum {
    /// Returns how far the ranks lie from those of equal sides, in deviations; 0 where all values
    /// are equal.
    pub(crate) fn deviations(&self) -> f64 {
        if self.deviation > 0.0 {
            (self.u - self.expected).abs() / self.deviation
        } else {
            0.0
        }
    }

    /// Returns the chance of ranks at least so uneven without a difference, two-sided: exact for
    /// few values.
    pub(crate) fn p(&self) -> f64 {
        if self.doubled.len() <= EXACT_MAX {
            self.exact_p()
        } else {
            self.approximate_p()
        }
    }

    fn approximate_p(&self) -> f64 {
        let off = ((self.u - self.expected).abs() - 0.5).max(0.0);
        if self.deviation > 0.0 {
            normal_two_sided(off / self.deviation)
        } else {
            1.0
        }
    }

    fn exact_p(&self) -> f64 {
        let ways = ways(&self.doubled, self.second);
        let off = (self.u - self.expected).abs();
        // The mean of the doubled rank sum is m (N + 1).
        let mean = self.second as f64 * (self.doubled.len() + 1) as f64;
        // Doubled rank sums are whole numbers: half a step keeps rounding out.
        let least = 2.0 * off - 0.5;
        let mut uneven = 0.0;
        let mut all = 0.0;
        for (sum, ways) in ways.iter().enumerate() {
            all += ways;
            if (sum as f64 - mean).abs() >= least {
                uneven += *ways;
            }
        }
        (uneven / all).min(1.0)
    }
}

/// Returns, for each sum, the number of ways to choose so many of some whole numbers with that sum.
fn ways(numbers: &[usize], chosen: usize) -> Vec<f64> {
    let most: usize = numbers.iter().sum();
    // Row k: with k numbers chosen. Counts of up to 40 numbers are far below 2^53.
    let mut rows = vec![vec![0.0; most + 1]; chosen + 1];
    rows[0][0] = 1.0;
    for (n, number) in numbers.iter().enumerate() {
        for k in (1..=chosen.min(n + 1)).rev() {
            let (less, this) = rows.split_at_mut(k);
            let pairs = this[0][*number..].iter_mut().zip(&less[k - 1]);
            pairs.for_each(|(to, from)| *to += *from);
        }
    }
    rows.swap_remove(chosen)
}

/// Returns the ends of the interval of sorted differences between sides of some sizes.
fn interval(differences: &[f64], [n, m]: [usize; 2], tail: f64) -> Option<(f64, f64)> {
    let outside = if n + m <= EXACT_MAX {
        let plain: Vec<usize> = (1..=n + m).collect();
        let ways = ways(&plain, m);
        let all: f64 = ways.iter().sum();
        let least = m * (m + 1) / 2;
        let mut passed = 0.0;
        let mut outside = 0;
        for ways in &ways[least..] {
            passed += ways / all;
            if passed > tail {
                break;
            }
            outside += 1;
        }
        outside
    } else {
        let n = n as f64;
        let m = m as f64;
        let half = normal_upper_quantile(tail)? * (n * m * (n + m + 1.0) / 12.0).sqrt();
        (n * m / 2.0 - half).floor().max(0.0) as usize
    };
    let low = outside.checked_sub(1)?;
    differences
        .get(low)
        .copied()
        .zip(differences.get(differences.len() - 1 - low).copied())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::{rank_sum, rank_test};

    #[test]
    fn sides_wholly_apart_have_least_p() {
        let [three, four, five] = [3, 4, 5].map(|n| {
            let low: Vec<f64> = (0..n).map(f64::from).collect();
            let high: Vec<f64> = (0..n).map(|v| f64::from(v) + 100.0).collect();
            rank_test(&low, &high).unwrap()
        });
        assert!((three.p - 0.1).abs() < 1e-12 && three.interval.is_none());
        assert!((four.p - 2.0 / 70.0).abs() < 1e-12 && four.interval.is_some());
        assert!((five.p - 2.0 / 252.0).abs() < 1e-12);
        assert!((five.dominance - 1.0).abs() < 1e-12 && (five.shift - 100.0).abs() < 1e-12);
    }

    #[test]
    fn equal_values_say_nothing() {
        let test = rank_test(&[2.0; 6], &[2.0; 5]).unwrap();
        assert!(
            (test.p - 1.0).abs() < 1e-12
                && test.dominance.abs() < 1e-12
                && test.shift.abs() < 1e-12
        );
        let many = rank_test(&[2.0; 60], &[2.0; 50]).unwrap();
        assert!((many.p - 1.0).abs() < 1e-12);
        assert!(rank_sum(&[], &[]).deviations().abs() < 1e-12);
    }

    #[test]
    fn what_is_not_finite_gets_no_answer() {
        assert_eq!(rank_test(&[], &[1.0]), None);
        assert_eq!(rank_test(&[1.0], &[f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn swapped_sides_say_the_opposite(
            first in prop::collection::vec(0..9_i32, 1..30),
            second in prop::collection::vec(0..9_i32, 1..30),
        ) {
            let [first, second] = [first, second]
                .map(|values| values.into_iter().map(f64::from).collect::<Vec<_>>());
            let one = rank_test(&first, &second).unwrap();
            let other = rank_test(&second, &first).unwrap();
            prop_assert!((one.p - other.p).abs() < 1e-9);
            prop_assert!((one.dominance + other.dominance).abs() < 1e-9);
            prop_assert!((one.shift + other.shift).abs() < 1e-9);
            prop_assert!(one.p > 0.0 && one.p <= 1.0);
            if let (Some(one), Some(other)) = (one.interval, other.interval) {
                prop_assert!(
                    (one.0 + other.1).abs() < 1e-9
                        && (one.1 + other.0).abs() < 1e-9
                        && one.0 <= one.1
                );
            }
        }
    }
}
