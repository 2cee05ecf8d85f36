//! The rated ratio: how many times better one side is than another, how sure that is, and what it
//! comes to.
//!
//! A side is made of groups: what was measured between two fresh starts of everything. Values
//! within a group share their start and are not independent, so the group is the unit, and each
//! counts as one score: the 20 % trimmed mean of the logarithms of its values, turned so that more
//! is better. The difference of the sides' mean scores is the logarithm of the ratio. Its error
//! comes from the scatter of scores between groups, moderated by what earlier sets of groups of the
//! same series scattered: with a few groups each, most of what can be known of the scatter is in
//! the history.
//!
//! Which series is which, and which sides are worth comparing, is left to the callers.

mod cross;
mod estimate;
mod floor;
mod forecast;
mod history;
mod neighbours;
mod pairs;
mod precision;
mod prior;
mod resolution;
mod scores;
mod sequential;
mod spending;
mod within;

pub use cross::{CrossCheck, cross_check};
pub use estimate::{
    Basis, Interval, Precision, RatioEstimate, Unclear, Verdict, estimate_neighbours,
    estimate_ratio,
};
pub use floor::Floor;
pub use history::History;
pub use pairs::{KnownScatter, PairEstimate, estimate_pairs};
pub use scores::{Better, Scores, ScoresError};
#[cfg(any(test, feature = "synthetic"))]
pub(crate) use sequential::FIRST;
pub use sequential::{Look, Sequential};
#[cfg(any(test, feature = "synthetic"))]
pub(crate) use spending::bounds;
pub use within::{GroupMean, WithinEstimate, estimate_within};
