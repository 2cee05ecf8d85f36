//! What kind of noise values have that were taken one after the other: wild ones, two modes, a
//! drift, a memory.
//!
//! It says what to look at; no verdict depends on it.

use crate::average::{finite, median};
use crate::distribution::student_two_sided;

/// Fewest values that have a profile.
const COUNT_MIN: usize = 6;
/// Distance from the median, in deviations by the median absolute deviation, beyond which a value
/// is wild (Iglewicz and Hoaglin 1993, "How to detect and handle outliers").
const WILD: f64 = 3.5;
/// The deviation of a normal distribution as a multiple of its median absolute deviation.
pub(crate) const OF_MEDIAN: f64 = 1.4826;
/// Separation of two modes: the distance of their means over the root of their mean variance
/// (Ashman, Bird and Zepf 1994 ask for 2 of fitted mixtures; halves of one normal distribution, cut
/// in the middle, have 2.6, of a uniform one 3.5).
const SEPARATION_MIN: f64 = 4.8;
/// Least share of the values in each of two modes; fewer are wild values.
const MODE_SHARE_MIN: f64 = 0.15;
/// Fewest values that can show two modes.
const MODES_COUNT_MIN: usize = 20;
/// Largest p of a drift.
const DRIFT_P_MAX: f64 = 0.01;
/// Deviations beyond which an autocorrelation is not chance, of 1 / sqrt(n).
const MEMORY_MIN: f64 = 2.576;

/// What kind of noise values have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseProfile {
    /// How many values are wild: further than 3.5 deviations from the median. 0 where there are
    /// two modes.
    pub outliers: usize,
    /// How far the two halves of a best split lie apart, if they are two modes: in deviations
    /// within them. Fewer than 20 values do not tell.
    pub modes_apart: Option<f64>,
    /// Rank correlation of values with their place, -1 to 1 (Spearman 1904).
    pub drift: f64,
    /// Whether that is more than chance, at 1 %.
    pub drifts: bool,
    /// Correlation of each value with the next, -1 to 1.
    pub memory: f64,
    /// Whether that is more than chance, at 1 %.
    pub remembers: bool,
}

/// Returns the profile of values in the order they were taken.
///
/// Equal values have a profile without anything in it. `None` for fewer than six values and for
/// values that are not finite.
#[must_use]
pub fn noise_profile(values: &[f64]) -> Option<NoiseProfile> {
    let values = finite(values).filter(|values| values.len() >= COUNT_MIN)?;
    let modes_apart = modes_apart(values);
    let drift = drift(values);
    let memory = memory(values);
    let count = values.len() as f64;
    // Spearman's coefficient over its error follows Student's t nearly (Kendall and Stuart 31.19).
    let t = drift * ((count - 2.0) / (1.0 - drift * drift).max(1e-12)).sqrt();
    Some(NoiseProfile {
        outliers: if modes_apart.is_some() {
            0
        } else {
            outliers(values)?
        },
        modes_apart,
        drift,
        drifts: student_two_sided(t, count - 2.0) <= DRIFT_P_MAX,
        memory,
        remembers: memory.abs() * count.sqrt() > MEMORY_MIN,
    })
}

fn outliers(values: &[f64]) -> Option<usize> {
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    let deviation = OF_MEDIAN * median(&distances)?;
    Some(
        distances
            .iter()
            .filter(|d| deviation > 0.0 && **d > WILD * deviation)
            .count(),
    )
}

/// Returns how far the halves of the split with the least squares lie apart (Fisher 1958; Otsu
/// 1979), if they are modes.
fn modes_apart(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let unit = (sorted[sorted.len() - 1] / 2.0 - sorted[0] / 2.0).max(f64::MIN_POSITIVE);
    // From -1 to 1: squares of any values can be counted.
    let middle = sorted[0].midpoint(sorted[sorted.len() - 1]);
    sorted.iter_mut().for_each(|v| *v = (*v - middle) / unit);
    let total = sorted.iter().sum::<f64>();
    let squares = sorted.iter().map(|v| v * v).sum::<f64>();
    let mut sum = 0.0;
    let mut square = 0.0;
    let mut best: Option<(f64, usize, f64)> = None;
    for (at, value) in sorted.iter().enumerate().take(sorted.len() - 1) {
        sum += value;
        square += value * value;
        let n = (at + 1) as f64;
        let m = (sorted.len() - at - 1) as f64;
        let low = sum / n;
        let high = (total - sum) / m;
        let within = ((square - n * low * low) + (squares - square - m * high * high)).max(0.0);
        let least = ((square / n - low * low).max(0.0)
            + ((squares - square) / m - high * high).max(0.0))
            / 2.0;
        let apart = (high - low) / least.sqrt().max(1e-9);
        if best.is_none_or(|best| within < best.0) {
            best = Some((within, at + 1, apart));
        }
    }
    let (_, count, apart) = best?;
    let few = count.min(sorted.len() - count);
    let modes =
        sorted.len() >= MODES_COUNT_MIN && few as f64 >= MODE_SHARE_MIN * sorted.len() as f64;
    (modes && apart >= SEPARATION_MIN).then_some(apart)
}

fn drift(values: &[f64]) -> f64 {
    let places: Vec<f64> = (0..values.len()).map(|n| n as f64).collect();
    correlation(&ranks(values), &places)
}

/// Returns Spearman's rank correlation of two columns (Spearman 1904), -1 to 1; 0 where one does
/// not vary. Ties have the mean of their ranks; what one column has more is not looked at.
#[must_use]
pub fn rank_correlation(one: &[f64], other: &[f64]) -> f64 {
    let rows = one.len().min(other.len());
    correlation(&ranks(&one[..rows]), &ranks(&other[..rows]))
}

/// Returns the rank of each value, from 0; equal values have the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut at = 0;
    while at < order.len() {
        let same = order[at..]
            .iter()
            .take_while(|n| values[**n] <= values[order[at]])
            .count();
        order[at..at + same]
            .iter()
            .for_each(|n| ranks[*n] = at as f64 + (same as f64 - 1.0) / 2.0);
        at += same;
    }
    ranks
}

/// Returns Pearson's correlation; 0 where one does not vary.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let a = one.iter().sum::<f64>() / one.len() as f64;
    let b = other.iter().sum::<f64>() / other.len() as f64;
    let products: f64 = one.iter().zip(other).map(|(x, y)| (x - a) * (y - b)).sum();
    let squares = one.iter().map(|x| (x - a).powi(2)).sum::<f64>()
        * other.iter().map(|y| (y - b).powi(2)).sum::<f64>();
    if squares > 0.0 {
        (products / squares.sqrt()).clamp(-1.0, 1.0)
    } else {
        0.0
    }
}

/// Returns the autocorrelation at a distance of one, `sum (x(i) - m)(x(i+1) - m) / sum (x(i) - m)²`
/// (Box and Jenkins), of values that are pulled in to 3.5 deviations first: one wild value would
/// hide the rest.
fn memory(values: &[f64]) -> f64 {
    let Some(middle) = median(values) else {
        return 0.0;
    };
    let distances: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    let widest = distances.iter().copied().fold(0.0, f64::max);
    let reach = median(&distances)
        .map(|d| WILD * OF_MEDIAN * d)
        .filter(|reach| *reach > 0.0)
        .unwrap_or(widest);
    if !(widest > 0.0 && widest.is_finite()) {
        return 0.0;
    }
    let tame: Vec<f64> = values
        .iter()
        .map(|v| ((v - middle) / reach).clamp(-1.0, 1.0))
        .collect();
    let mean = tame.iter().sum::<f64>() / tame.len() as f64;
    let squares: f64 = tame.iter().map(|v| (v - mean).powi(2)).sum();
    let products: f64 = tame
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::{NoiseProfile, noise_profile, rank_correlation};
    use crate::synthetic::{Chance, Noise};

    /// Returns the share of 1000 sets of values whose profile has something.
    fn share(noise: Noise, count: usize, has: fn(&NoiseProfile) -> bool) -> f64 {
        let mut chance = Chance::new(9);
        let found = (0..1000)
            .filter(|_| has(&noise_profile(&noise.values(count, &mut chance)).unwrap()))
            .count();
        found as f64 / 1000.0
    }

    #[test]
    fn rank_correlation_depends_on_order_alone() {
        let rising = [1.0, 10.0, 100.0, 5000.0];
        let near = |other: &[f64], expected: f64| {
            let found = rank_correlation(&rising, other);
            assert!((found - expected).abs() < 1e-12, "{found}");
        };
        near(&[0.1, 0.2, 0.3, 0.4], 1.0);
        near(&[4.0, 3.0, 2.0, 1.0], -1.0);
        near(&[7.0; 4], 0.0);
        // Ties have the mean of their ranks: 0, 1.5, 1.5, 3 beside 0, 1, 2, 3.
        near(&[1.0, 2.0, 2.0, 3.0], 4.5 / (5.0_f64 * 4.5).sqrt());
    }

    #[test]
    fn each_kind_of_noise_has_its_mark() {
        assert!(share(Noise::Bimodal, 50, |p| p.modes_apart.is_some()) > 0.9);
        assert!(share(Noise::Outliers, 50, |p| p.outliers > 0) > 0.9);
        assert!(share(Noise::Autocorrelated, 50, |p| p.remembers) > 0.6);
    }

    #[test]
    fn normal_noise_seldom_has_a_mark() {
        for count in [10, 20, 50, 200] {
            assert!(
                share(Noise::Normal, count, |p| p.modes_apart.is_some()) <= 0.02,
                "{count}"
            );
            assert!(share(Noise::Normal, count, |p| p.drifts) <= 0.02, "{count}");
            assert!(
                share(Noise::Normal, count, |p| p.remembers) <= 0.02,
                "{count}"
            );
        }
    }

    #[test]
    fn a_drift_is_seen_whichever_way_it_goes() {
        let up: Vec<f64> = (0..12).map(f64::from).collect();
        let down: Vec<f64> = up.iter().map(|v| -v).collect();
        let up = noise_profile(&up).unwrap();
        let down = noise_profile(&down).unwrap();
        assert!(
            up.drifts
                && down.drifts
                && (up.drift - 1.0).abs() < 1e-12
                && (down.drift + 1.0).abs() < 1e-12
        );
    }

    #[test]
    fn equal_values_have_nothing() {
        let profile = noise_profile(&[3.0; 20]).unwrap();
        let nothing = NoiseProfile {
            outliers: 0,
            modes_apart: None,
            drift: 0.0,
            drifts: false,
            memory: 0.0,
            remembers: false,
        };
        assert_eq!(profile, nothing);
        assert_eq!(noise_profile(&[1.0; 5]), None);
        assert_eq!(noise_profile(&[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn any_finite_values_have_finite_marks(
            values in prop::collection::vec(prop::num::f64::NORMAL, 6..40),
        ) {
            let profile = noise_profile(&values).unwrap();
            prop_assert!(
                (-1.0..=1.0).contains(&profile.drift) && (-1.0..=1.0).contains(&profile.memory)
            );
            prop_assert!(
                profile.modes_apart.is_none_or(f64::is_finite) && profile.outliers <= values.len()
            );
        }
    }
}
