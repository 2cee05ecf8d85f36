//! Tails and quantiles of the normal, Student's and Fisher's distribution, by `statrs`; exact
//! enough far out in the tails.
//!
//! `tests/golden.rs` holds them against SciPy.

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};
use statrs::function::beta::checked_beta_reg;
use statrs::function::erf::{erfc, erfc_inv};

/// Returns the chance of a normal number at least so many deviations from the mean, either way.
pub(crate) fn normal_two_sided(z: f64) -> f64 {
    erfc(z.abs() / std::f64::consts::SQRT_2)
}

/// Returns the number that a normal one exceeds with a chance; none for what is no chance between 0
/// and 1.
pub(crate) fn normal_upper_quantile(chance: f64) -> Option<f64> {
    (chance > 0.0 && chance < 1.0).then(|| std::f64::consts::SQRT_2 * erfc_inv(2.0 * chance))
}

/// Returns the chance of Student's t at least so far from 0, either way, with `degrees` of freedom
/// above zero.
pub(crate) fn student_two_sided(t: f64, degrees: f64) -> f64 {
    // The regularised beta function keeps its digits where 1 - CDF has none left (Abramowitz and
    // Stegun 26.7.1).
    checked_beta_reg(degrees / 2.0, 0.5, degrees / (degrees + t * t)).unwrap_or(f64::NAN)
}

/// Returns the number that Student's t exceeds with a chance; none for what is no chance above 0
/// and at most a half.
pub(crate) fn student_upper_quantile(chance: f64, degrees: f64) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
    if !(chance > 0.0 && chance <= 0.5) {
        return None;
    }
    let mut t = -student.inverse_cdf(chance);
    // Far out, statrs gives six digits. Newton's steps on logarithms of both, where the tail is
    // nearly a line.
    for _ in 0..2 {
        let tail = student_two_sided(t, degrees) / 2.0;
        let step = (tail / chance).ln() * tail / (t * student.pdf(t));
        t *= if step.is_finite() { step.exp() } else { 1.0 };
    }
    Some(t)
}

/// Returns the chance of Fisher's F at least so large, with two degrees of freedom above zero.
pub(crate) fn fisher_upper(f: f64, above: f64, below: f64) -> f64 {
    // Abramowitz and Stegun 26.6.2.
    checked_beta_reg(below / 2.0, above / 2.0, below / (below + above * f)).unwrap_or(f64::NAN)
}
