//! The peer of ratings: the t-test that people do on what `perf stat -r` or hyperfine print.

use crate::distribution::student_two_sided;

/// Returns the p-value of equal means (Welch 1947), two-sided; 1 for fewer than two values on a
/// side, and where nothing scatters.
#[must_use]
pub fn welch(base: &[f64], new: &[f64]) -> f64 {
    let (base, a, m) = moments(base);
    let (new, b, n) = moments(new);
    let error = (a + b).sqrt();
    let degrees = (a + b).powi(2) / (a * a / m + b * b / n);
    if error > 0.0 && degrees.is_finite() {
        student_two_sided((new - base) / error, degrees)
    } else {
        1.0
    }
}

/// Returns the mean of values, its squared standard error and its degrees of freedom.
fn moments(values: &[f64]) -> (f64, f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (count - 1.0);
    (mean, variance / count, count - 1.0)
}

#[cfg(test)]
mod tests {
    use super::welch;

    #[test]
    fn example_of_textbook_is_met() {
        // R: t.test(c(1, 2, 3, 4, 5), c(2, 4, 6, 8, 10)): t = -1.8974, df = 5.8824, p = 0.1075.
        let p = welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0]);
        assert!((p - 0.1075).abs() < 1e-4, "{p}");
        assert_eq!(
            (welch(&[1.0], &[2.0, 3.0]), welch(&[1.0, 1.0], &[1.0, 1.0])),
            (1.0, 1.0)
        );
    }
}
