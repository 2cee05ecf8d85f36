//! Differences and ratios that respect the direction: positive, or above one, is always better.
//!
//! The formulas and the rules for zero are those of MMTests (`bin/lib/MMTests/Stat.pm`, `pdiff` and
//! `pndiff`), so that numbers can be compared with its tables.

use model::Direction;

/// The output of MMTests if a cost of zero became positive: there is no percentage, but it is
/// worse.
const NO_LONGER_FREE_PERCENT: f64 = -99.0;
/// The output of MMTests if a rate of zero became positive: there is no percentage, but it is
/// better.
const NO_LONGER_NOTHING_PERCENT: f64 = 100.0;

/// Returns the difference in percent: `100 - 100 * new / base` if lower is better, `100 * new /
/// base - 100` if higher is. `None` if a value is negative or not finite.
#[must_use]
pub fn difference_percent(direction: Direction, base: f64, new: f64) -> Option<f64> {
    let born = base.abs() <= 0.0 && new.is_finite() && new > 0.0;
    match direction {
        Direction::LowerIsBetter if born => Some(NO_LONGER_FREE_PERCENT),
        Direction::HigherIsBetter if born => Some(NO_LONGER_NOTHING_PERCENT),
        // Subtracted from zero rather than negated: no difference is 0.0, not -0.0.
        Direction::LowerIsBetter => stats::percent_change(base, new).map(|change| 0.0 - change),
        Direction::HigherIsBetter => stats::percent_change(base, new),
    }
}

/// Returns the improvement as a factor: `base / new` if lower is better, `new / base` if higher is.
/// `None` if a value is not above zero.
pub(crate) fn ratio(direction: Direction, base: f64, new: f64) -> Option<f64> {
    if !(base > 0.0 && new > 0.0) {
        return None;
    }
    let ratio = match direction {
        Direction::LowerIsBetter => base / new,
        Direction::HigherIsBetter => new / base,
    };
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// Returns the ratio for a difference in percent, such as the ends of a margin.
pub(crate) fn ratio_of_percent(direction: Direction, percent: f64) -> f64 {
    match direction {
        Direction::LowerIsBetter => 1.0 / (1.0 - percent / 100.0),
        Direction::HigherIsBetter => 1.0 + percent / 100.0,
    }
}

/// Returns a ratio, above 1 is better, as a difference of the metric in percent of the base, above
/// 0 is better.
pub(crate) fn percent_of_ratio(direction: Direction, ratio: f64) -> f64 {
    match direction {
        Direction::LowerIsBetter => (1.0 - 1.0 / ratio) * 100.0,
        Direction::HigherIsBetter => (ratio - 1.0) * 100.0,
    }
}

#[cfg(test)]
mod tests {
    use model::Direction::{HigherIsBetter, LowerIsBetter};
    use proptest::prelude::{prop_assert, proptest};

    use super::{difference_percent, ratio, ratio_of_percent};

    #[test]
    fn positive_is_better_in_both_directions() {
        assert_eq!(difference_percent(LowerIsBetter, 200.0, 150.0), Some(25.0));
        assert_eq!(difference_percent(LowerIsBetter, 200.0, 250.0), Some(-25.0));
        assert_eq!(difference_percent(HigherIsBetter, 200.0, 250.0), Some(25.0));
        assert_eq!(
            difference_percent(HigherIsBetter, 200.0, 150.0),
            Some(-25.0)
        );
    }

    #[test]
    fn zero_is_treated_as_mmtests_does() {
        assert_eq!(difference_percent(LowerIsBetter, 0.0, 3.0), Some(-99.0));
        assert_eq!(difference_percent(HigherIsBetter, 0.0, 3.0), Some(100.0));
        assert_eq!(difference_percent(LowerIsBetter, 3.0, 0.0), Some(100.0));
        assert_eq!(difference_percent(HigherIsBetter, 3.0, 0.0), Some(-100.0));
        assert_eq!(difference_percent(LowerIsBetter, 0.0, 0.0), Some(0.0));
        assert_eq!(ratio(LowerIsBetter, 0.0, 3.0), None);
        assert_eq!(ratio(LowerIsBetter, 3.0, 0.0), None);
    }

    #[test]
    fn no_difference_has_no_sign() {
        let nothing = difference_percent(LowerIsBetter, 3.0, 3.0).unwrap();
        assert!(nothing.is_sign_positive());
    }

    #[test]
    fn negative_and_endless_values_have_no_difference() {
        assert_eq!(difference_percent(LowerIsBetter, -1.0, 3.0), None);
        assert_eq!(difference_percent(LowerIsBetter, 0.0, f64::INFINITY), None);
        assert_eq!(ratio(LowerIsBetter, -1.0, -3.0), None);
        assert_eq!(ratio(LowerIsBetter, f64::MAX, f64::MIN_POSITIVE), None);
    }

    proptest! {
        #[test]
        fn difference_and_ratio_tell_the_same(base in 1.0..1e9, new in 1.0..1e9) {
            for direction in [LowerIsBetter, HigherIsBetter] {
                let percent = difference_percent(direction, base, new).unwrap();
                let ratio = ratio(direction, base, new).unwrap();
                prop_assert!((ratio_of_percent(direction, percent) / ratio - 1.0).abs() < 1e-6);
            }
        }
    }
}
