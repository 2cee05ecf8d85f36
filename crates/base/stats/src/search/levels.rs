//! Estimates the levels of noisy places: whether two differ, and how many more runs would decide.

use super::Pair;
use super::tally::{Tally, pooled};

/// A difference beyond this many standard errors is real.
const SURE: f64 = 2.9;
/// A difference is absent if the least effect lies this many standard errors away.
const ABSENT: f64 = 2.3;
/// Share of the least effect that a sure difference must exceed: less may be what remains of steps
/// that nearly cancel.
const SHARE: f64 = 0.25;

/// Limits of a judgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Steps smaller than this, in the values' unit, are not looked for.
    pub effect_min: f64,
    /// Variance of a place, the same in all its runs, in variances of a run; as in
    /// [`Criteria`](super::Criteria).
    pub bias: f64,
    /// Runs of a place at first.
    pub runs: usize,
    /// Most runs of a place.
    pub runs_max: usize,
}

/// The values of each place, as far as they were measured.
#[derive(Debug, Clone)]
pub struct LevelEstimates {
    tallies: Vec<Tally>,
    tolerance: Tolerance,
}

impl LevelEstimates {
    /// Begins with no values of any of so many places.
    #[must_use]
    pub fn new(places: usize, tolerance: Tolerance) -> Self {
        Self {
            tallies: vec![Tally::default(); places],
            tolerance,
        }
    }

    /// Adds values of a place. Ignores values that are not finite, and places outside the line.
    pub fn record(&mut self, place: usize, values: &[f64]) {
        if let Some(tally) = self.tallies.get_mut(place) {
            values
                .iter()
                .filter(|value| value.is_finite())
                .for_each(|value| tally.add(*value));
        }
    }

    /// Returns the level of a place, if it has one.
    #[must_use]
    pub fn level(&self, place: usize) -> Option<f64> {
        self.tallies
            .get(place)
            .filter(|tally| tally.count > 0)
            .map(|tally| tally.mean)
    }

    /// Sets the least step that is looked for.
    pub(super) fn set_effect_min(&mut self, effect_min: f64) {
        self.tolerance.effect_min = effect_min;
    }

    /// Returns what is known of a place.
    pub(super) fn tally(&self, place: usize) -> Tally {
        self.tallies.get(place).copied().unwrap_or_default()
    }

    /// Returns the level of the second place less that of the first, and its standard error;
    /// nothing before both were measured and some place twice.
    #[must_use]
    pub fn difference(&self, a: usize, b: usize) -> Option<(f64, f64)> {
        let first = self.tally(a);
        let second = self.tally(b);
        let (variance, _) =
            pooled(self.tallies.iter()).filter(|_| first.count.min(second.count) > 0)?;
        let bias = self.tolerance.bias;
        let error = (variance * (1.0 / first.weight(bias) + 1.0 / second.weight(bias))).sqrt();
        Some((second.mean - first.mean, error))
    }

    /// Tells whether a step lies between two places, or how many more runs would tell.
    #[must_use]
    pub fn judge(&self, a: usize, b: usize) -> Pair {
        let Tolerance {
            effect_min,
            runs,
            runs_max,
            ..
        } = self.tolerance;
        let first = self.tally(a).count;
        let second = self.tally(b).count;
        let (place, fewer) = if second < first {
            (b, second)
        } else {
            (a, first)
        };
        let Some((difference, error)) = self.difference(a, b) else {
            // Without any scatter known, one run tells nothing.
            return if fewer < runs_max.max(2) {
                Pair::Open {
                    place,
                    runs: runs.max(1),
                }
            } else {
                Pair::Same
            };
        };
        let difference = difference.abs();
        // Surer than its absence: a false difference costs the runs of a whole search inside it.
        if difference > SHARE * effect_min + SURE * error {
            Pair::Differs
        } else if difference + ABSENT * error < effect_min || fewer >= runs_max {
            Pair::Same
        } else {
            Pair::Open {
                place,
                runs: runs.clamp(1, runs_max - fewer),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LevelEstimates, Tolerance};
    use crate::search::Pair;

    const TOLERANCE: Tolerance = Tolerance {
        effect_min: 3.0,
        bias: 0.0,
        runs: 2,
        runs_max: 8,
    };

    #[test]
    fn places_differ_or_not_or_need_more_runs() {
        let mut levels = LevelEstimates::new(3, TOLERANCE);
        assert_eq!(levels.judge(0, 1), Pair::Open { place: 0, runs: 2 });
        levels.record(0, &[1.0, 3.0, 1.0, 3.0]);
        assert_eq!(levels.judge(0, 1), Pair::Open { place: 1, runs: 2 });
        levels.record(1, &[9.0, 11.0]);
        assert_eq!(levels.judge(0, 1), Pair::Differs);
        levels.record(2, &[3.0, 5.0]);
        assert_eq!(levels.judge(0, 2), Pair::Open { place: 2, runs: 2 });
        levels.record(2, &[1.0, 3.0, 1.0, 3.0, 1.0, 3.0]);
        assert!((levels.level(2).unwrap() - 2.5).abs() < 1e-12);
        levels.record(0, &[1.0, 3.0, 1.0, 3.0]);
        assert_eq!(levels.judge(0, 2), Pair::Same);
    }

    #[test]
    fn values_without_scatter_are_judged_and_patience_ends() {
        let mut levels = LevelEstimates::new(2, TOLERANCE);
        levels.record(0, &[1.0, 1.0]);
        levels.record(1, &[5.0, f64::NAN, 5.0]);
        assert_eq!(levels.judge(0, 1), Pair::Differs);
        let wild = [0.0, 9.0].repeat(4);
        let mut levels = LevelEstimates::new(2, TOLERANCE);
        levels.record(0, &wild);
        levels.record(1, &wild);
        assert_eq!(levels.judge(0, 1), Pair::Same);
        assert_eq!(levels.judge(7, 8), Pair::Open { place: 7, runs: 2 });
    }
}
