//! Samples of several kernels side by side, with the statistics of MMTests.
//!
//! Formulas: `bin/lib/MMTests/Stat.pm`. These make no verdict: `verdict` does, from seeds and
//! margins.

use model::Direction;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use stats::percent_change;

/// One operation on several kernels.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SampleRow {
    /// The operation.
    pub name: String,
    /// The good direction.
    #[serde(serialize_with = "in_words")]
    #[schemars(with = "String")]
    pub direction: Direction,
    /// The samples of each kernel, base first.
    pub samples: Vec<Vec<f64>>,
}

/// Operations of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SampleTable {
    /// The workload.
    pub title: String,
    /// Its operations.
    pub rows: Vec<SampleRow>,
}

fn in_words<S: Serializer>(direction: &Direction, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(direction)
}

/// Returns the improvement over the base, in percent of it; `None` if there is no such percentage.
#[must_use]
pub fn difference_percent(direction: Direction, base: f64, new: f64) -> Option<f64> {
    let change = percent_change(base, new)?;
    // Equal values give 0.0, not -0.0.
    Some(match direction {
        Direction::LowerIsBetter => 0.0 - change,
        Direction::HigherIsBetter => change,
    })
}

/// Returns the samples, best first: the order in which MMTests takes the best 95 of 100.
fn best_first(samples: &[f64], direction: Direction) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    if direction == Direction::HigherIsBetter {
        sorted.reverse();
    }
    sorted
}

/// Returns the arithmetic mean.
pub(crate) fn amean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// Returns the harmonic mean, of samples above zero.
pub(crate) fn hmean(samples: &[f64]) -> Option<f64> {
    let fine = !samples.is_empty() && samples.iter().all(|sample| *sample > 0.0);
    fine.then(|| samples.len() as f64 / samples.iter().map(|sample| 1.0 / sample).sum::<f64>())
}

/// Returns the standard deviation of two or more samples.
pub(crate) fn stddev(samples: &[f64]) -> Option<f64> {
    let mean = amean(samples).filter(|_| samples.len() > 1)?;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    Some((squares / (samples.len() - 1) as f64).sqrt())
}

/// Returns what MMTests calls the standard deviation about the harmonic mean, of two or more
/// samples above zero.
pub(crate) fn hstddev(samples: &[f64]) -> Option<f64> {
    let mean = hmean(samples).filter(|_| samples.len() > 1)?;
    let squares: f64 = samples
        .iter()
        .map(|sample| (1.0 / sample - 1.0 / mean).powi(2))
        .sum();
    Some((squares * mean.powi(4) / samples.len() as f64).sqrt())
}

/// A kernel's mean relative to the base's, and the spread of its samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relative {
    /// The mean in percent of the base's, as throughput: 100 for the base, more is better.
    pub percent: f64,
    /// The standard deviation in percent of the kernel's own mean.
    pub deviation_percent: f64,
}

impl SampleRow {
    /// Returns each kernel in percent of the base, the form for results of SDET; `None` for a
    /// kernel without two samples.
    #[must_use]
    pub fn relative(&self) -> Vec<Option<Relative>> {
        let base = self
            .samples
            .first()
            .and_then(|samples| amean(samples))
            .filter(|mean| *mean > 0.0);
        let mut relative = Vec::new();
        for samples in &self.samples {
            let mean = amean(samples).filter(|mean| *mean > 0.0);
            relative.push(mean.zip(base).and_then(|(mean, base)| {
                let ratio = match self.direction {
                    Direction::HigherIsBetter => mean / base,
                    // For costs, the inverse is the throughput.
                    Direction::LowerIsBetter => base / mean,
                };
                Some(Relative {
                    percent: 100.0 * ratio,
                    deviation_percent: 100.0 * stddev(samples)? / mean,
                })
            }));
        }
        relative
    }

    /// Returns whether no kernel has more than one sample.
    pub(crate) fn is_single(&self) -> bool {
        self.samples.iter().all(|samples| samples.len() <= 1)
    }

    /// Returns the mean for the direction: rates are averaged by their inverse.
    pub(crate) fn mean(&self, samples: &[f64]) -> Option<f64> {
        match self.direction {
            Direction::LowerIsBetter => amean(samples),
            Direction::HigherIsBetter => hmean(samples),
        }
    }

    /// Returns the standard deviation about that mean.
    pub(crate) fn deviation(&self, samples: &[f64]) -> Option<f64> {
        match self.direction {
            Direction::LowerIsBetter => stddev(samples),
            Direction::HigherIsBetter => hstddev(samples),
        }
    }

    /// Returns the mean of the best 95 of 100 samples; of at least one.
    pub(crate) fn best_mean(&self, samples: &[f64]) -> Option<f64> {
        let sorted = best_first(samples, self.direction);
        let best = (sorted.len() * 95 / 100).max(1);
        self.mean(sorted.get(..best)?)
    }
}
