//! One number, or two, that stand for many: median, geometric mean, smallest and largest.

/// The smallest and the largest of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

/// Returns the values if there are any and all are finite: the one gate that NaN and infinities do
/// not pass.
pub(crate) fn finite(values: &[f64]) -> Option<&[f64]> {
    (!values.is_empty() && values.iter().all(|v| v.is_finite())).then_some(values)
}

/// Returns the median: the middle one of the sorted values, or the mean of the two middle ones.
///
/// With `x(1) <= ... <= x(n)`: `x((n+1)/2)` for odd `n`, `(x(n/2) + x(n/2+1)) / 2` for even `n`
/// (Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages", definition 7 at p = 1/2; R's
/// and SciPy's default).
///
/// `None` for no values and for values that are not finite.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = finite(values)?.to_vec();
    let middle = sorted.len() / 2;
    let even = sorted.len().is_multiple_of(2);
    let (below, &mut upper, _) = sorted.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    // Not (lower + upper) / 2: that overflows for values near the end of the range.
    Some(lower.midpoint(upper))
}

/// Returns the median of all values but the first, which still pays for what the others find warm.
///
/// `None` for fewer than two values and for values that are not finite, the first included: a first
/// value that is no number is a damaged series, not a warm-up.
#[must_use]
pub fn median_without_first(values: &[f64]) -> Option<f64> {
    let (_, rest) = finite(values)?.split_first()?;
    median(rest)
}

/// Returns the geometric mean, `exp((ln x(1) + ... + ln x(n)) / n)`: the only mean of ratios that
/// does not depend on which side is the base (Fleming and Wallace 1986, "How not to lie with
/// statistics").
///
/// `None` for no values, for values that are not finite and for values that are not above zero.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let values = finite(values)?;
    if values.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let count = values.len() as f64; // exact up to 2^53 values
    Some((values.iter().map(|v| v.ln()).sum::<f64>() / count).exp())
}

/// Returns the smallest and the largest value.
///
/// `None` for no values and for values that are not finite.
#[must_use]
pub fn spread(values: &[f64]) -> Option<Spread> {
    let values = finite(values)?;
    Some(Spread {
        min: values.iter().copied().min_by(f64::total_cmp)?,
        max: values.iter().copied().max_by(f64::total_cmp)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

    use super::{Spread, geometric_mean, median, median_without_first, spread};

    #[test]
    fn medians_of_few_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 2.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn first_value_must_be_a_number() {
        assert_eq!(median_without_first(&[]), None);
        assert_eq!(median_without_first(&[900.0]), None);
        assert_eq!(median_without_first(&[900.0, 5.0]), Some(5.0));
        assert_eq!(median_without_first(&[900.0, 5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median_without_first(&[f64::NAN, 5.0]), None);
    }

    #[test]
    fn ratio_and_inverse_cancel_in_geometric_mean() {
        let mean = geometric_mean(&[2.0, 0.5]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
        let mean = geometric_mean(&[1.0, 10.0, 100.0]).unwrap();
        assert!((mean - 10.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, -2.0]), None);
    }

    #[test]
    fn a_spread_of_one_value_has_no_width() {
        assert_eq!(spread(&[2.5]), Some(Spread { min: 2.5, max: 2.5 }));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn nothing_that_is_not_finite_comes_in() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let values = [1.0, bad, 2.0];
            assert_eq!(median(&values), None);
            assert_eq!(median_without_first(&values), None);
            assert_eq!(geometric_mean(&values), None);
            assert_eq!(spread(&values), None);
        }
    }

    fn some_values() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-1e12..1e12, 1..60)
    }

    proptest! {
        #[test]
        fn median_parts_values_in_halves(values in some_values()) {
            let middle = median(&values).unwrap();
            let below = values.iter().filter(|v| **v < middle).count();
            let above = values.iter().filter(|v| **v > middle).count();
            prop_assert!(below * 2 <= values.len());
            prop_assert!(above * 2 <= values.len());
        }

        #[test]
        fn the_order_of_values_is_no_matter(values in some_values()) {
            let mut reversed = values.clone();
            reversed.reverse();
            prop_assert_eq!(median(&values), median(&reversed));
            prop_assert_eq!(spread(&values), spread(&reversed));
        }

        #[test]
        fn a_median_lies_within_the_spread(values in some_values()) {
            let middle = median(&values).unwrap();
            let ends = spread(&values).unwrap();
            prop_assert!(ends.min <= middle && middle <= ends.max);
        }

        #[test]
        fn one_wild_value_leaves_median_within_rest(
            values in prop::collection::vec(0.0..100.0, 3..60),
            wild in 1e6..1e12,
        ) {
            let mut with = values.clone();
            with.push(wild);
            prop_assert!(median(&with).unwrap() <= spread(&values).unwrap().max);
        }

        #[test]
        fn the_first_value_can_be_anything(first in -1e12..1e12, values in some_values()) {
            let mut series = vec![first];
            series.extend(&values);
            prop_assert_eq!(median_without_first(&series), median(&values));
        }

        #[test]
        fn the_geometric_mean_of_inverses_is_the_inverse(
            values in prop::collection::vec(1e-3..1e3, 1..60),
        ) {
            let inverses: Vec<f64> = values.iter().map(|v| 1.0 / v).collect();
            let product = geometric_mean(&values).unwrap() * geometric_mean(&inverses).unwrap();
            prop_assert!((product - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_geometric_mean_lies_within_the_spread(
            values in prop::collection::vec(1e-3..1e3, 1..60),
        ) {
            let mean = geometric_mean(&values).unwrap();
            let ends = spread(&values).unwrap();
            prop_assert!(ends.min * (1.0 - 1e-9) <= mean && mean <= ends.max * (1.0 + 1e-9));
        }
    }
}
