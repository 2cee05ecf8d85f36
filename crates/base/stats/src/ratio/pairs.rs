//! Differences of pairs: each group of one side has a partner on the other that shares what
//! disturbs both, so that only the difference of the two counts.
//!
//! Few pairs say little of how much differences scatter, so what is known of it beforehand counts
//! as further degrees of freedom. Which groups are partners, and what was known, is the caller's.

use super::estimate::{Q_MAX, Unclear, Verdict};
use super::forecast::{self, Seen};
use super::precision::{beyond, student_upper};
use crate::distribution::student_upper_quantile;

/// How much numbers are known to scatter before they are seen: differences of pairs, or points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownScatter {
    /// Variance of one number.
    pub variance: f64,
    /// Degrees of freedom that it is known with.
    pub degrees: f64,
}

/// What the differences of pairs say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairEstimate {
    /// Mean difference: above 0 is better.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub degrees: f64,
    /// Chance of a mean at least so large if the true one is within the margin.
    pub p_margin: f64,
    count: usize,
    margin: f64,
    /// Standard error that *same* is decided by.
    widest: f64,
}

/// Estimates the difference of two sides from differences of pairs, in logarithms.
///
/// The variance of a difference is moderated: `(d0 s0² + (n - 1) s²) / (d0 + n - 1)` with the known
/// `s0²` in `d0` degrees (Smyth 2004). Better and worse test a mean beyond the margin (McCarthy and
/// Smyth 2009, TREAT); same is two one-sided tests (Schuirmann 1987), by `s²` where that is the
/// larger. With `d0` of at most 4, one more difference never turns better, worse or same into
/// another of the three: alone it moves Student's t of the rest by less than the test asks for.
///
/// `None` without differences, for those that are not finite, where neither they nor what is known
/// tell of scatter, and for a margin that is negative or not finite.
#[must_use]
pub fn estimate_pairs(
    differences: &[f64],
    known: KnownScatter,
    margin: f64,
) -> Option<PairEstimate> {
    let count = differences.len();
    let own = (count as f64 - 1.0).max(0.0);
    let degrees = known.degrees + own;
    let is_usable = count > 0 && degrees > 0.0 && margin >= 0.0 && margin.is_finite();
    if !is_usable || !differences.iter().all(|difference| difference.is_finite()) {
        return None;
    }
    let mean = differences.iter().sum::<f64>() / count as f64;
    let squares: f64 = differences
        .iter()
        .map(|difference| (difference - mean).powi(2))
        .sum();
    let variance = (known.degrees * known.variance + squares) / degrees;
    let error = (variance / count as f64).sqrt();
    let widest = variance.max(if own > 0.0 { squares / own } else { 0.0 });
    let p_margin = if error > 0.0 {
        beyond(mean, margin, |difference| {
            student_upper(difference / error, degrees)
        })
    } else {
        f64::from(u8::from(mean.abs() <= margin))
    };
    let found = PairEstimate {
        mean,
        error,
        degrees,
        p_margin,
        count,
        margin,
        widest: (widest / count as f64).sqrt(),
    };
    (p_margin.is_finite() && found.widest.is_finite()).then_some(found)
}

impl PairEstimate {
    /// Returns what it comes to, at 5 %.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if let Some(clear) = self.clear() {
            return clear;
        }
        let seen = Seen {
            effect: self.mean,
            variance: self.error * self.error * self.count as f64,
            groups: self.count as f64,
            degrees: self.degrees,
            degrees_per_group: 1.0,
            margin: self.margin,
        };
        Verdict::Unclear(
            forecast::pairs_more(&seen, self.count).map_or(Unclear::TooNoisy, Unclear::MoreGroups),
        )
    }

    /// Returns a clear verdict.
    pub(crate) fn clear(&self) -> Option<Verdict> {
        let size = self.mean.abs();
        if size > self.margin {
            let side = if self.mean > 0.0 {
                Verdict::Better
            } else {
                Verdict::Worse
            };
            return (self.p_margin <= Q_MAX).then_some(side);
        }
        let reach = if self.widest > 0.0 {
            student_upper_quantile(Q_MAX, self.degrees)? * self.widest
        } else {
            0.0
        };
        (size + reach <= self.margin).then_some(Verdict::Same)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::{KnownScatter, estimate_pairs};
    use crate::{Unclear, Verdict};

    fn known(deviation: f64) -> KnownScatter {
        KnownScatter {
            variance: 2.0 * deviation * deviation,
            degrees: 4.0,
        }
    }

    fn verdict(differences: &[f64], deviation: f64, margin: f64) -> Verdict {
        let found = estimate_pairs(differences, known(deviation), margin);
        found.unwrap().verdict()
    }

    #[test]
    fn one_pair_is_judged_by_known_scatter() {
        // Student's t of 4 degrees is 2.78 at 2.5 %.
        assert_eq!(verdict(&[0.55], 0.1, 0.15), Verdict::Better);
        assert_eq!(verdict(&[-0.55], 0.1, 0.15), Verdict::Worse);
        assert!(matches!(verdict(&[0.2], 0.1, 0.0), Verdict::Unclear(_)));
        assert_eq!(verdict(&[0.0], 0.1, 0.31), Verdict::Same);
        assert!(matches!(verdict(&[0.0], 0.1, 0.29), Verdict::Unclear(_)));
    }

    #[test]
    fn what_does_not_scatter_is_decided_by_margin() {
        assert_eq!(verdict(&[0.02], 0.0, 0.01), Verdict::Better);
        assert_eq!(verdict(&[0.01], 0.0, 0.01), Verdict::Same);
        assert_eq!(verdict(&[0.01; 3], 0.0, 0.0), Verdict::Better);
    }

    #[test]
    fn unclear_pairs_say_how_many_more_decide() {
        let Verdict::Unclear(Unclear::MoreGroups(more)) = verdict(&[0.1, 0.12], 0.05, 0.02) else {
            panic!("{:?}", verdict(&[0.1, 0.12], 0.05, 0.02));
        };
        assert!((1..48).contains(&more), "{more}");
        assert_eq!(
            verdict(&[0.0, 0.01], 0.5, 0.02),
            Verdict::Unclear(Unclear::TooNoisy)
        );
    }

    #[test]
    fn what_is_no_number_has_no_estimate() {
        for (differences, margin) in [
            (&[][..], 0.1),
            (&[f64::NAN][..], 0.1),
            (&[0.1, f64::INFINITY][..], 0.1),
            (&[0.1][..], f64::NAN),
            (&[0.1][..], -0.1),
        ] {
            assert_eq!(estimate_pairs(differences, known(0.1), margin), None);
        }
        let nothing = KnownScatter {
            variance: 0.0,
            degrees: 0.0,
        };
        assert_eq!(estimate_pairs(&[0.1], nothing, 0.1), None);
    }

    proptest! {
        #[test]
        fn one_more_pair_never_reverses_a_verdict(
            differences in prop::collection::vec(-1.0..1.0, 1..9),
            another in -100.0..100.0,
            margin in 0.0..0.5,
            deviation in 0.0..0.5,
        ) {
            let before = verdict(&differences, deviation, margin);
            let mut more = differences;
            more.push(another);
            let after = verdict(&more, deviation, margin);
            let is_decided = !matches!(before, Verdict::Unclear(_));
            prop_assert!(!is_decided || after == before || matches!(after, Verdict::Unclear(_)));
        }

        #[test]
        fn swapped_sides_give_opposite_estimates(
            differences in prop::collection::vec(-1.0..1.0, 1..9),
            margin in 0.0..0.5,
            deviation in 0.0..0.5,
        ) {
            let negated: Vec<f64> = differences.iter().map(|one| -one).collect();
            let one = estimate_pairs(&differences, known(deviation), margin).unwrap();
            let other = estimate_pairs(&negated, known(deviation), margin).unwrap();
            prop_assert!((one.p_margin - other.p_margin).abs() < 1e-12);
            prop_assert!((one.mean + other.mean).abs() < 1e-12);
        }
    }
}
