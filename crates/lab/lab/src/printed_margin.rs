//! How much of a printed number is its last digit. A program that prints `5 us` may have taken 4.6
//! or 5.4: one more or less is no difference.

/// Most decimal places that a printed number is looked at with.
const PLACES_MAX: i32 = 9;
/// How far a number may be from a round one (relative): binary fractions are none exactly.
const EXACT: f64 = 1e-9;

/// Returns the margin of printed values: what is declared, or one of the last digit that they have,
/// in percent of the smallest.
pub(crate) fn margin_percent(declared_percent: f64, samples: &[f64]) -> f64 {
    if samples.is_empty() {
        return declared_percent;
    }
    let step = (0..=PLACES_MAX)
        .map(|places| 10_f64.powi(-places))
        .find(|step| samples.iter().all(|sample| is_multiple(*sample, *step)));
    let Some(step) = step else {
        return declared_percent;
    };
    let smallest = samples.iter().fold(f64::INFINITY, |least, sample| {
        least.min(sample.abs().max(step))
    });
    declared_percent.max(100.0 * step / smallest)
}

fn is_multiple(sample: f64, step: f64) -> bool {
    let count = sample / step;
    (count - count.round()).abs() <= EXACT * count.abs().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::margin_percent;

    #[test]
    fn one_of_the_last_digit_is_the_margin() {
        for (samples, expected) in [
            (&[5.0, 5.0, 6.0][..], 20.0),
            (&[0.0, 3.0], 100.0),
            (&[2.50, 2.75], 0.4),
            (&[123_456.0, 123_400.0], 0.1),
            (&[1.0 / 3.0], 0.1),
            (&[], 0.1),
        ] {
            let margin = margin_percent(0.1, samples);
            assert!((margin - expected).abs() < 1e-9, "{samples:?}: {margin}");
        }
    }
}
