//! Bounds for looks at a growing sum: how far it must have come at each look, so that all looks
//! together are wrong no more often than one would be.

use crate::distribution::normal_two_sided;

/// Distance of the points at which a density is known, in deviations of one increment.
const STEP: f64 = 0.25;
/// Beyond so many deviations a sum never is.
const FAR: f64 = 8.5;
/// No chance that a number can hold lies beyond so many deviations.
const FARTHEST: f64 = 38.0;
/// Bounds are found to this part of themselves, in so many steps.
const CLOSE: f64 = 1e-9;
const STEPS_MAX: usize = 80;

/// Returns the bounds of looks at `first..=last` increments, in deviations of the sum.
///
/// A sum of independent normal increments without drift crosses a bound, either way, at or before
/// the look at `n` increments with the chance `spent(n / last)` (Lan and DeMets 1983, by the
/// recursive integration of Armitage, McPherson and Rowe 1969). `spent` grows from 0 to the chance
/// of all looks together.
pub(crate) fn bounds(first: usize, last: usize, spent: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut bounds = Vec::with_capacity(last.saturating_sub(first) + 1);
    let mut before = 0.0_f64;
    let mut walk = Walk {
        points: vec![(0.0, 1.0)],
        variance: first as f64,
    };
    for count in first..=last {
        let now = spent(count as f64 / last as f64).max(before);
        let deviation = (count as f64).sqrt();
        let bound = walk.bound(now - before, FARTHEST * deviation);
        bounds.push(bound / deviation);
        walk = walk.within(bound.min(FAR * deviation));
        before = now;
    }
    bounds
}

/// Sums that crossed no bound so far, before the next increment is added.
struct Walk {
    /// Sums, and the chance of each.
    points: Vec<(f64, f64)>,
    /// Variance of the next increment.
    variance: f64,
}

impl Walk {
    /// Returns the bound beyond which the next sum lies with a chance, either way.
    fn bound(&self, chance: f64, most: f64) -> f64 {
        let mut low = 0.0;
        let mut high = most;
        let mut at = most / FARTHEST;
        for _ in 0..STEPS_MAX {
            let (tail, density) = self.beyond(at);
            (low, high) = if tail > chance { (at, high) } else { (low, at) };
            // Newton's steps on the logarithm of the tail, which is nearly a parabola.
            let next = at + (tail / chance).ln() * tail / density;
            let next = if next > low && next < high {
                next
            } else {
                f64::midpoint(low, high)
            };
            if (next - at).abs() < CLOSE * next {
                return next;
            }
            at = next;
        }
        at
    }

    /// Returns the chance that the next sum lies beyond a bound, either way, and by how much it
    /// falls as the bound grows.
    fn beyond(&self, bound: f64) -> (f64, f64) {
        let deviation = self.variance.sqrt();
        let mut tails = 0.0;
        let mut densities = 0.0;
        for (sum, chance) in &self.points {
            let z = (bound - sum) / deviation;
            let far = normal_two_sided(z);
            // Sums and their mirror images are alike: one tail counts twice.
            tails += chance * if z > 0.0 { far } else { 2.0 - far };
            densities += chance * (-z * z / 2.0).exp();
        }
        (
            tails,
            densities * 2.0 / (std::f64::consts::TAU * self.variance).sqrt(),
        )
    }

    /// Returns the sums within a bound after the next increment, at points and with weights of
    /// Simpson's rule.
    fn within(&self, bound: f64) -> Self {
        let intervals = 2 * (bound / STEP).ceil().max(1.0) as usize;
        let step = 2.0 * bound / intervals as f64;
        let scale = step / 3.0 / (std::f64::consts::TAU * self.variance).sqrt();
        let reach = FAR * self.variance.sqrt();
        let point = |at: usize| {
            let next = step * at as f64 - bound;
            let weight = match at {
                0 => 1.0,
                at if at % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let first = self.points.partition_point(|(sum, _)| *sum < next - reach);
            let near = self.points[first..]
                .iter()
                .take_while(|(sum, _)| *sum <= next + reach);
            let density = near
                .map(|(sum, chance)| chance * (-(next - sum).powi(2) / (2.0 * self.variance)).exp())
                .sum::<f64>();
            (next, weight * scale * density)
        };
        // The other half mirrors the first.
        let half = intervals / 2;
        let mut points: Vec<(f64, f64)> = (0..=half).map(point).collect();
        points.extend_from_within(..half);
        points[half + 1..].reverse();
        points[half + 1..]
            .iter_mut()
            .for_each(|(sum, _)| *sum = -*sum);
        Self {
            points,
            variance: 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bounds;
    use crate::distribution::{normal_two_sided, normal_upper_quantile};

    fn near(found: &[f64], known: &[f64]) {
        assert_eq!(found.len(), known.len());
        for (found, known) in found.iter().zip(known) {
            assert!((found - known).abs() < 6e-4 * known, "{found} {known}");
        }
    }

    /// Bounds of five equal looks at 5 %, two-sided: as R's ldbounds and gsDesign print them.
    #[test]
    fn published_bounds_are_reproduced() {
        let z = normal_upper_quantile(0.0125).unwrap();
        near(
            &bounds(1, 5, |t| 2.0 * normal_two_sided(z / t.sqrt())),
            &[4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
        );
        near(
            &bounds(1, 5, |t| {
                0.05 * (1.0 + (std::f64::consts::E - 1.0) * t).ln()
            }),
            &[2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
        );
        near(&bounds(3, 3, |_| 0.05), &[1.959_964]);
    }
}
