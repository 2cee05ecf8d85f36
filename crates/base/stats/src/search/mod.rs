//! Searches for the places along a line where a level changes: they choose the next measurement,
//! and end when the places are known.
//!
//! Places are numbered from 0; a step at place k means that k is the first place of the new level.
//! The caller loops: `next`, measure, `record`.
//!
//! - [`ExactSearch`]: any number of steps. It halves the space between neighbours that differ. A
//!   judge decides whether two places differ: the caller, or [`LevelEstimates`] for noisy values.
//! - [`NoisySearch`]: one step in noisy values. It first tests that the ends differ, as a search
//!   between equal ends would end at a random place. Then it chooses the place and the number of
//!   runs with the most information for their cost.
//! - [`MultiStepSearch`]: any number of steps in noisy values, with both of these.
//!
//! Places that cannot be measured keep their probability: a step before such a place and a step at
//! it look the same, so the answer is a range.

mod endpoint_test;
mod exact;
mod information;
mod levels;
mod multi_step;
mod noisy;
mod posterior;
mod tally;

pub use exact::{Ahead, ExactSearch, Pair, Step, Wanted};
pub use levels::{LevelEstimates, Tolerance};
pub use multi_step::{MultiStepMeasurement, MultiStepSearch};
pub use noisy::{Criteria, NextMeasurement, NoisySearch, NoisyStep, Refusal};

/// Costs of measuring, in seconds or any other unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Cost to prepare each place for its first run (compiling, starting); places beyond the end
    /// of the list cost 0.
    pub place: Vec<f64>,
    /// Cost of one run.
    pub run: f64,
}

impl Cost {
    fn of_place(&self, place: usize) -> f64 {
        self.place
            .get(place)
            .copied()
            .filter(|cost| cost.is_finite() && *cost > 0.0)
            .unwrap_or(0.0)
    }

    /// Never zero, as results are divided by it.
    fn of_run(&self) -> f64 {
        if self.run.is_finite() && self.run > 0.0 {
            self.run
        } else {
            1e-9
        }
    }
}

/// Returns weights as probabilities. Weights that are negative or not finite count as 0; if all
/// are 0, all places are equally probable, as a search without a prior must still be able to end.
fn shares(weights: &[f64]) -> Vec<f64> {
    let weights: Vec<f64> = weights.iter().map(|weight| sane(*weight)).collect();
    let most = weights.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return vec![1.0 / weights.len().max(1) as f64; weights.len()];
    }
    // Scaled before they are summed: a sum of large weights would overflow.
    let scaled: Vec<f64> = weights.iter().map(|weight| weight / most).collect();
    let sum: f64 = scaled.iter().sum();
    scaled.into_iter().map(|weight| weight / sum).collect()
}

fn sane(weight: f64) -> f64 {
    if weight.is_finite() && weight > 0.0 {
        weight
    } else {
        0.0
    }
}
