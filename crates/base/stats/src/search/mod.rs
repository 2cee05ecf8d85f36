//! Where along a line of places a level changes: what to measure next, and when it is known.
//!
//! Places are numbered from 0 to the last; a step at place k means that k is the first place of the
//! new level. Each search is asked what is next and told what came out. [`NoisySearch`] is for noisy
//! values and one step: a gate that refuses ends which do not differ, then the place and the number
//! of runs that tell most for their cost. [`ExactSearch`] is for any number of steps: neighbours that
//! differ are divided until nothing is between them; whether two differ is for a judge to
//! say, [`LevelEstimates`] where values are noisy. [`MultiStepSearch`] is for noisy values and any number of steps,
//! and of these made. Places that cannot be measured keep their probability: what lies between two
//! measured places is then one answer.

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

/// What measuring costs, in seconds or any other unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Of making each place ready, if it is measured for the first time; places beyond the end
    /// cost nothing.
    pub place: Vec<f64>,
    /// Of one run.
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

/// Makes weights into probabilities: what is no weight is none, and no weight at all means equal
/// ones.
fn shares(weights: &[f64]) -> Vec<f64> {
    let sane = |weight: &f64| {
        if weight.is_finite() && *weight > 0.0 {
            *weight
        } else {
            0.0
        }
    };
    let most = weights.iter().map(sane).fold(0.0, f64::max);
    if most <= 0.0 {
        return vec![1.0 / weights.len().max(1) as f64; weights.len()];
    }
    let scaled: Vec<f64> = weights.iter().map(|weight| sane(weight) / most).collect();
    let sum: f64 = scaled.iter().sum();
    scaled.into_iter().map(|weight| weight / sum).collect()
}
