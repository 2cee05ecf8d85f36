//! Numbers in, medians, means and intervals out; knows no word of the domain.
//!
//! Pure and total: every function answers `None` where the question has no answer (no values, a value that is not
//! finite, a logarithm of nothing), so that NaN can neither enter nor leave. What the numbers mean, which way is good
//! and how much is news is left to the callers.

mod average;
mod change;

pub use average::{Spread, geometric_mean, median, median_without_first, spread};
pub use change::percent_change;
