//! How far one number lies from another, in percent of the latter.

/// Returns the change from `base` to `new` in percent of `base`, `100 * new / base - 100`: 0 for
/// equal numbers, 100 for twice as much.
///
/// `None` when a number is not finite or negative, and when `base` is zero and `new` is not: no
/// percentage exists.
#[must_use]
pub fn percent_change(base: f64, new: f64) -> Option<f64> {
    if [base, new].iter().any(|v| !v.is_finite() || *v < 0.0) {
        return None;
    }
    // Exact equality is meant: equal values must give a change of exactly nothing, whatever
    // rounding does.
    if base.total_cmp(&new).is_eq() || (base <= 0.0 && new <= 0.0) {
        return Some(0.0);
    }
    let change = 100.0 * new / base - 100.0;
    (base > 0.0 && change.is_finite()).then_some(change)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::percent_change;

    #[test]
    fn changes_of_known_numbers() {
        assert_eq!(percent_change(200.0, 250.0), Some(25.0));
        assert_eq!(percent_change(200.0, 0.0), Some(-100.0));
        assert_eq!(percent_change(0.0, 0.0), Some(0.0));
        assert_eq!(percent_change(-0.0, 0.0), Some(0.0));
    }

    #[test]
    fn what_has_no_percentage_gets_none() {
        assert_eq!(percent_change(0.0, 1.0), None);
        assert_eq!(percent_change(-1.0, 1.0), None);
        assert_eq!(percent_change(1.0, -1.0), None);
        assert_eq!(percent_change(f64::NAN, 1.0), None);
        assert_eq!(percent_change(1.0, f64::INFINITY), None);
        assert_eq!(percent_change(f64::MIN_POSITIVE, f64::MAX), None);
    }

    proptest! {
        #[test]
        fn equal_numbers_differ_by_exactly_nothing(value in 0.0..1e15) {
            prop_assert_eq!(percent_change(value, value), Some(0.0));
        }

        #[test]
        fn more_is_positive_and_less_is_negative(base in 1e-6..1e12, new in 1e-6..1e12) {
            let change = percent_change(base, new).unwrap();
            let fits = if new >= base {
                change >= 0.0
            } else {
                change <= 0.0
            };
            prop_assert!(fits);
            prop_assert!(change >= -100.0);
        }
    }
}
