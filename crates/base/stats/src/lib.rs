//! Statistics without a word of the domain: averages, ratio estimates with intervals, verdicts,
//! change points, and searches that choose the next measurement.
//!
//! Pure and total: a function returns `None` or a fault where there is no answer (no values, a
//! value that is not finite, a logarithm of zero), so that NaN can neither enter nor leave. The
//! meaning of numbers, their grouping and the thresholds are the caller's.

#![warn(missing_docs)]

mod average;
mod change;
mod counts;
mod distribution;
mod eta;
#[cfg(test)]
mod golden;
mod multiple_testing;
mod noise;
mod rank_test;
mod ratio;
mod search;
mod series;
mod share;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;

pub use average::{Spread, geometric_mean, median, median_without_first, spread};
pub use change::percent_change;
pub use counts::{CommonScatter, Exposures, RateDifference};
pub use eta::{Remaining, fair_rate};
pub use multiple_testing::{Family, benjamini_hochberg, families, simes};
pub use noise::{NoiseProfile, noise_profile, rank_correlation};
pub use rank_test::{RankTest, rank_test};
pub use ratio::{
    Basis, Better, CrossCheck, Floor, GroupMean, History, Interval, KnownScatter, Look,
    PairEstimate, Precision, RatioEstimate, Scores, ScoresError, Sequential, Unclear, Verdict,
    WithinEstimate, cross_check, estimate_neighbours, estimate_pairs, estimate_ratio,
    estimate_within,
};
pub use search::{
    Ahead, Cost as SearchCost, Criteria as SearchCriteria, ExactSearch, LevelEstimates,
    MultiStepMeasurement, MultiStepSearch, NextMeasurement, NoisySearch, NoisyStep, Pair, Refusal,
    Step, Tolerance, Wanted,
};
pub use series::{
    Change, Creep, Criteria, FollowUp, Group, Span, changes, changes_beside, creep, follow_up,
    groups,
};
pub use share::share_interval;
