//! Numbers in, averages, ratings, verdicts, change points and what to measure next out; knows no
//! word of the domain.
//!
//! Pure and total: a function answers `None`, or says which fault it found, where the question has
//! no answer (no values, a value that is not finite, a logarithm of nothing), so that NaN can
//! neither enter nor leave. What the numbers mean, which of them belong together and how much is
//! news is left to the callers.

mod average;
mod change;
mod counts;
mod distribution;
mod families;
#[cfg(test)]
mod golden;
mod noise;
mod ranks;
mod rated;
mod remaining;
mod search;
mod series;
mod share;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;

pub use average::{Spread, geometric_mean, median, median_without_first, spread};
pub use change::percent_change;
pub use counts::{CommonScatter, Exposures, RateDifference};
pub use families::{Family, benjamini_hochberg, families, simes};
pub use noise::{NoiseProfile, noise_profile};
pub use ranks::{RankTest, rank_test};
pub use rated::{
    Basis, Better, CrossCheck, Fault, Floor, History, Interval, Look, Precision, Rating, Scores,
    Sequential, Unclear, Verdict, cross_check, rate,
};
pub use remaining::{Remaining, fair_rate};
pub use search::{
    Ahead, Cost as SearchCost, Criteria as SearchCriteria, Found, Levels, Next, Pair, Refusal,
    Search, Several, Step, Steps, Tolerance, Turn, Wanted,
};
pub use series::{
    Change, Creep, Criteria, FollowUp, Group, Span, changes, creep, follow_up, groups,
};
pub use share::share_interval;
