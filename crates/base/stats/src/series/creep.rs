//! A level that moves a little with every point: no step is clear, and yet the last points lie far
//! from the first.

use super::level::{MEMORY_MAX, Scale, Scatter, WINDOW, WINDOW_NARROW, running_medians};
use super::{Criteria, fit};
use crate::distribution::student_two_sided;

/// Fewest points that show a way.
const POINTS_MIN: usize = 10;
/// Share of the largest p of a change: a line fits noise with memory more readily than a step does.
const SHARE: f64 = 0.1;

/// A level that creeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Creep {
    /// Where it was, in the points' unit: the first point of the line.
    pub before: f64,
    /// Where it is now: the last point of the line.
    pub after: f64,
    /// Chance of a slope so steep without one, two-sided, memory taken into account.
    pub p: f64,
}

/// Returns how points without a change creep: the least-squares line through them, if it moves by
/// `magnitude_min` or more and has a p of at most a tenth of `p_max`.
///
/// Student's t of the slope in `(n - 2) (1 - r²) / (1 + r²)` degrees, its variance times `(1 + r) /
/// (1 - r)`, with the autocorrelation `r` around the line. None for fewer than ten points, and for
/// what is not finite.
#[must_use]
pub fn creep(points: &[f64], criteria: &Criteria) -> Option<Creep> {
    if points.len() < POINTS_MIN || !fit(points) {
        return None;
    }
    let scale = Scale::measure(points, &running_medians(points, 0, WINDOW))?;
    let running = running_medians(points, 0, WINDOW_NARROW);
    let tame: Vec<f64> = points
        .iter()
        .zip(&running)
        .map(|(point, running)| scale.tame(*point, *running))
        .collect();
    let count = tame.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = tame.iter().sum::<f64>() / count;
    let places = || {
        tame.iter()
            .enumerate()
            .map(|(n, point)| (n as f64 - middle, point - mean))
    };
    let way: f64 = places().map(|(place, _)| place * place).sum();
    let slope = places().map(|(place, point)| place * point).sum::<f64>() / way;
    let left: Vec<f64> = places()
        .map(|(place, point)| point - slope * place)
        .collect();
    let scatter = Scatter::around(&left, &[]);
    // Two numbers more were fitted than `around` knows of.
    let memory = scatter.memory + (1.0 + 3.0 * scatter.memory) * 2.0 / count;
    if memory >= MEMORY_MAX {
        return None;
    }
    let variance =
        scatter.variance * (count - 1.0) / (count - 2.0) * (1.0 + memory) / (1.0 - memory);
    let degrees = ((count - 2.0) * (1.0 - memory * memory) / (1.0 + memory * memory)).max(1.0);
    let p = student_two_sided(slope / (variance / way).sqrt(), degrees);
    let found = Creep {
        before: scale.point(mean - slope * middle),
        after: scale.point(mean + slope * middle),
        p,
    };
    let is_news = (found.after - found.before).abs() >= criteria.magnitude_min;
    (is_news && p <= SHARE * criteria.p_max).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::creep;
    use crate::Criteria;
    use crate::synthetic::{Chance, Noise};

    /// Returns the share of 500 series of 30 points that creep by some deviations.
    fn share(noise: Noise, way: f64) -> f64 {
        let mut chance = Chance::new(4);
        let mut hits = 0;
        for _ in 0..500 {
            let mut points = noise.values(30, &mut chance);
            points
                .iter_mut()
                .enumerate()
                .for_each(|(n, point)| *point += way * n as f64 / 29.0);
            let found = creep(&points, &Criteria::default());
            hits += i32::from(found.is_some_and(|found| (found.after - found.before) * way >= 0.0));
        }
        f64::from(hits) / 500.0
    }

    #[test]
    fn slow_drift_is_found_and_noise_is_not() {
        for noise in [Noise::Normal, Noise::Outliers, Noise::Bimodal] {
            assert!(share(noise, 0.0) <= 0.002, "{noise:?}");
        }
        assert!(share(Noise::Autocorrelated, 0.0) <= 0.02);
        assert!(share(Noise::Normal, 7.6) > 0.98);
        assert!(share(Noise::Normal, -7.6) > 0.98);
    }

    #[test]
    fn few_or_still_points_are_no_creep() {
        let line: Vec<f64> = (0..30).map(f64::from).collect();
        let found = creep(&line, &Criteria::default()).unwrap();
        assert!(
            (found.before - 0.0).abs() < 1e-6 && (found.after - 29.0).abs() < 1e-6,
            "{found:?}"
        );
        assert_eq!(creep(&line[..9], &Criteria::default()), None);
        assert_eq!(
            creep(
                &line,
                &Criteria {
                    magnitude_min: 30.0,
                    ..Criteria::default()
                }
            ),
            None
        );
        assert_eq!(creep(&[1.0; 30], &Criteria::default()), None);
        assert_eq!(creep(&[f64::NAN; 30], &Criteria::default()), None);
    }
}
