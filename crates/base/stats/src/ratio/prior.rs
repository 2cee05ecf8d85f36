//! What a history says of the scatter of further groups: a typical variance, how much it varies
//! from set to set, and how well that fits two sides.
//!
//! The variance of a set of `d` degrees is `s0²` times Fisher's F of `d` and `d0` degrees (Smyth
//! 2004): `d0` is large where all sets scatter alike. Both are found so that one wild group of one
//! set, or a few loud sets, do not move them: `d0` by the quartiles, `s0²` by the likelihood with
//! the highest variances pulled in.

use super::history::Set;

/// Least and most degrees of freedom: what comes now must be able to speak against a history.
const DEGREES_MIN: f64 = 2.0;
const DEGREES_MAX: f64 = 30.0;
/// Distance of a normal distribution's quartiles, in deviations.
const QUARTILES: f64 = 1.349;
/// A variance further up, in deviations of [`deviations`], is pulled in to there.
const REACH: f64 = 2.0;
/// Halvings of an interval; steps of an iteration that halves its error at least.
const HALVINGS: usize = 7;
const STEPS: usize = 6;
/// Variance of logarithms below which scores count as equal: what rounding leaves of equal values.
pub(super) const VARIANCE_MIN: f64 = 1e-24;

/// What counts against a history for two degrees of both sides together, as odds; what is added
/// for each further one; and the degrees from which on it is no more. Many groups tell by
/// themselves how they scatter, and gain little by a history. Calibrated
/// (`tests/calibration.rs`): with these, a side that is twice as noisy raises 10 % of false alarms
/// with two groups, 8 % with three, and less with more.
const DOUBT: f64 = 0.19;
const DOUBT_PER_DEGREE: f64 = 0.14;
const DOUBT_DEGREES_MAX: f64 = 8.0;
/// How many times as much both sides may scatter instead, or one of them: powers of two, in
/// variance.
const BOTH_OTHERWISE: [f64; 8] = [0.0625, 0.125, 0.25, 0.5, 2.0, 4.0, 8.0, 16.0];
const ONE_OTHERWISE: [f64; 4] = [2.0, 4.0, 8.0, 16.0];

/// The variance that a history expects, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Prior {
    /// In squares of logarithms.
    pub(super) variance: f64,
    /// Degrees of freedom.
    pub(super) degrees: f64,
}

/// The scatter of one side, as far as it has any: variance and degrees of freedom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) variance: f64,
    pub(super) degrees: f64,
}

impl Prior {
    pub(super) fn fit(sets: &[Set]) -> Option<Self> {
        let total: f64 = sets.iter().map(|set| set.degrees).sum();
        if total < 1.0 {
            return None;
        }
        // Sets of equal degrees then stay in order, and sorting what is made of them costs nothing.
        let mut sets = sets.to_vec();
        sets.sort_unstable_by(|one, other| one.variance.total_cmp(&other.variance));
        let sets = &sets;
        let roots: Vec<f64> = sets.iter().map(|set| set.variance.cbrt()).collect();
        let mut sorted = Vec::with_capacity(sets.len());
        let middle = typical(sets, DEGREES_MAX, &mut sorted);
        let pooled = sets
            .iter()
            .map(|set| set.variance * set.degrees)
            .sum::<f64>()
            / total;
        if middle < VARIANCE_MIN {
            // Most sets stand still, as with a coarse clock: the mean is what is left.
            return Some(Self::of(pooled, DEGREES_MAX, total));
        }
        let mut few = DEGREES_MIN.ln();
        let mut many = DEGREES_MAX.ln();
        // Quartiles of few sets are uncertain: by about so much, one deviation.
        let limit = 1.0 + (sets.len() as f64).sqrt().recip();
        if spread(sets, &roots, DEGREES_MAX, &mut sorted) <= limit {
            few = many;
        }
        for _ in 0..HALVINGS {
            let between = f64::midpoint(few, many);
            if spread(sets, &roots, between.exp(), &mut sorted) > limit {
                many = between;
            } else {
                few = between;
            }
        }
        let degrees = many.exp();
        let start = typical(sets, degrees, &mut sorted);
        Some(Self::of(likeliest(sets, degrees, start), degrees, total))
    }

    /// The expected variance is itself known with as many degrees as the history has.
    fn of(variance: f64, degrees: f64, total: f64) -> Self {
        Self {
            variance,
            degrees: (1.0 / degrees + 1.0 / total).recip(),
        }
    }

    /// Returns the chance that the sides scatter as the history says, and not both otherwise or one
    /// of them (Bayes, with equal odds of all other ways).
    pub(super) fn chance(&self, sides: &[Seen]) -> f64 {
        let degrees: f64 = sides.iter().map(|side| side.degrees).sum();
        if degrees < 1.0 {
            return 1.0;
        }
        if self.variance < VARIANCE_MIN {
            let is_still = sides.iter().all(|side| side.variance < VARIANCE_MIN);
            return f64::from(u8::from(is_still));
        }
        let right: f64 = sides.iter().map(|side| self.likelihood(*side, 1.0)).sum();
        let odds = |log: f64| (log - right).exp();
        let mut both = 0.0;
        for times in BOTH_OTHERWISE {
            both += odds(sides.iter().map(|side| self.likelihood(*side, times)).sum());
        }
        let mut one = 0.0;
        for side in sides {
            let as_expected = self.likelihood(*side, 1.0);
            for times in ONE_OTHERWISE {
                one += odds(right - as_expected + self.likelihood(*side, times));
            }
        }
        let other =
            both / BOTH_OTHERWISE.len() as f64 + one / (ONE_OTHERWISE.len() * sides.len()) as f64;
        let doubt = DOUBT + DOUBT_PER_DEGREE * (degrees.clamp(2.0, DOUBT_DEGREES_MAX) - 2.0);
        1.0 / (1.0 + doubt * other)
    }

    /// Returns the logarithm of Fisher's density of a side that scatters so many times as much, up
    /// to what does not depend on the factor.
    fn likelihood(&self, side: Seen, times: f64) -> f64 {
        if side.degrees < 1.0 {
            return 0.0;
        }
        let ratio = side.variance / (self.variance * times);
        -side.degrees / 2.0 * times.ln()
            - (side.degrees + self.degrees) / 2.0 * (side.degrees * ratio / self.degrees).ln_1p()
    }
}

/// Returns how many deviations of a normal number a variance lies above the middle, by the cube
/// root of its part of the expected one (Paulson 1942, after Wilson and Hilferty).
fn deviations(root: f64, set: f64, prior: f64) -> f64 {
    let one = 2.0 / (9.0 * set);
    let other = 2.0 / (9.0 * prior);
    ((1.0 - other) * root - (1.0 - one)) / (other * root * root + one).sqrt()
}

/// Returns the expected variance that makes the median set a middle one.
fn typical(sets: &[Set], prior: f64, sorted: &mut Vec<f64>) -> f64 {
    sorted.clear();
    for set in sets {
        let root = (1.0 - 2.0 / (9.0 * prior)) / (1.0 - 2.0 / (9.0 * set.degrees));
        sorted.push(set.variance * root.powi(3));
    }
    sorted.sort_unstable_by(f64::total_cmp);
    quantile(sorted, 0.5)
}

/// Returns how far the quartiles of the sets lie apart, as a part of what the degrees say. `roots`
/// are the cube roots of their variances.
fn spread(sets: &[Set], roots: &[f64], prior: f64, sorted: &mut Vec<f64>) -> f64 {
    let unit = typical(sets, prior, sorted).cbrt();
    sorted.clear();
    for (set, root) in sets.iter().zip(roots) {
        sorted.push(deviations(root / unit, set.degrees, prior));
    }
    sorted.sort_unstable_by(f64::total_cmp);
    (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / QUARTILES
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let below = place.floor() as usize;
    let low = sorted.get(below).copied().unwrap_or_default();
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (place - below as f64) * (high - low)
}

/// Returns the likeliest expected variance, with what lies too high pulled in.
///
/// The likelihood's slope is `sum d d0 (r - 1) / (d0 + d r)`, with `r` the part of the expected
/// one: a mean with weights `d / (d0 + d r)`.
fn likeliest(sets: &[Set], prior: f64, start: f64) -> f64 {
    let mut variance = start;
    for _ in 0..STEPS {
        let mut parts = 0.0;
        let mut weights = 0.0;
        for set in sets {
            let part = (set.variance / variance).min(most(set.degrees, prior));
            let weight = set.degrees / (prior + set.degrees * part);
            parts += weight * part;
            weights += weight;
        }
        variance *= parts / weights;
    }
    variance
}

/// Returns the part that lies [`REACH`] deviations up: the root of `deviations = REACH`, which is
/// a quadratic equation in the cube root.
fn most(set: f64, prior: f64) -> f64 {
    let one = 2.0 / (9.0 * set);
    let other = 2.0 / (9.0 * prior);
    let square = (1.0 - other).powi(2) - REACH * REACH * other;
    let linear = (1.0 - one) * (1.0 - other);
    let rest = (1.0 - one).powi(2) - REACH * REACH * one;
    if square <= 0.0 {
        return f64::INFINITY;
    }
    let root = (linear + (linear * linear - square * rest).max(0.0).sqrt()) / square;
    root.powi(3)
}

#[cfg(test)]
mod tests {
    use super::{Prior, REACH, Seen, Set, deviations, most};
    use crate::synthetic::Chance;

    /// Returns sets of four groups, whose deviations vary by so much (in logarithms).
    fn sets(count: usize, vary: f64, chance: &mut Chance) -> Vec<Set> {
        let mut sets = Vec::with_capacity(count);
        for _ in 0..count {
            let deviation = (vary * chance.normal()).exp();
            let squares: f64 = (0..3).map(|_| chance.normal().powi(2)).sum();
            sets.push(Set {
                variance: deviation * deviation * squares / 3.0,
                degrees: 3.0,
            });
        }
        sets
    }

    #[test]
    fn alike_and_unlike_sets_are_told_apart() {
        let mut chance = Chance::new(5);
        let alike = Prior::fit(&sets(4000, 0.0, &mut chance)).unwrap();
        assert!((alike.variance - 1.0).abs() < 0.12, "{alike:?}");
        assert!(alike.degrees > 12.0, "{alike:?}");
        let unlike = Prior::fit(&sets(4000, 0.8, &mut chance)).unwrap();
        assert!(unlike.degrees < 5.0, "{unlike:?}");
    }

    #[test]
    fn one_wild_group_of_a_history_moves_little() {
        let mut chance = Chance::new(6);
        for _ in 0..50 {
            let mut sets = sets(30, 0.0, &mut chance);
            let before = Prior::fit(&sets).unwrap();
            sets[4].variance = 1e6;
            let then = Prior::fit(&sets).unwrap();
            assert!(then.variance < 1.5 * before.variance, "{before:?} {then:?}");
        }
    }

    #[test]
    fn reach_is_where_it_is_said_to_be() {
        for (set, prior) in [(1.0, 30.0), (2.0, 12.0), (9.0, 30.0)] {
            assert!((deviations(most(set, prior).cbrt(), set, prior) - REACH).abs() < 1e-9);
        }
    }

    #[test]
    fn sides_unlike_their_history_are_doubted() {
        let prior = Prior {
            variance: 1.0,
            degrees: 15.0,
        };
        let chance = |one: f64, other: f64, degrees: f64| {
            prior.chance(&[one, other].map(|variance| Seen { variance, degrees }))
        };
        assert!(chance(1.0, 1.0, 2.0) > 0.7);
        assert!(chance(6.0, 6.0, 2.0) < 0.1);
        assert!(chance(1.0, 9.0, 4.0) < 0.2);
        assert!(chance(0.1, 0.1, 9.0) < 0.1);
        assert!((prior.chance(&[]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn sets_that_stand_still_give_an_answer() {
        let still = Set {
            variance: 0.0,
            degrees: 1.0,
        };
        assert_eq!(Prior::fit(&[]), None);
        let prior = Prior::fit(&[still; 9]).unwrap();
        assert!(prior.variance < 1e-24 && prior.degrees.is_finite());
        let moving = Set {
            variance: 4.0,
            degrees: 1.0,
        };
        let prior = Prior::fit(&[still, still, still, moving]).unwrap();
        assert!((prior.variance - 1.0).abs() < 1e-12, "{prior:?}");
    }
}
