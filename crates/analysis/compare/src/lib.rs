//! Comparisons and verdicts, with their renderings: text, markdown, JSON, HTML, mail.
//!
//! Pure: runs, builds and machines come in as values, a [`Comparison`] or a text goes out. No
//! clock, no files, no random numbers, no terminal: the caller passes dates, colours are a
//! [`Styles`](document::Styles) value, and the caller prints. [`verdict()`] alone decides verdicts.

#![warn(missing_docs)]

pub mod chain;
mod checks;
mod compare;
mod comparison;
mod comparison_builder;
mod cycles;
mod deferred;
mod difference;
mod environment;
mod error;
mod failures;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod index;
mod locks;
mod metrics;
mod missing;
mod neighbours;
mod noisy;
mod pairing;
mod question;
pub mod render;
pub mod rmap;
mod samples;
pub mod scaling;
pub mod side_by_side;
mod twins;
mod value;
mod verdict;

pub use compare::compare;
pub use comparison::{
    Absent, Against, Comparison, ComparisonCell, ComparisonRow, Conclusion, Counted, Counts,
    Failure, GeometricMean, Images, Kernel, Measured, Occurrence, RunMark, Sampled, SeedDifference,
    SeedValue, Warning,
};
pub use difference::difference_percent;
pub use environment::{Difference, Differing};
pub use error::CompareError;
pub use locks::{LockBeside, LongestHeld};
pub use noisy::{Q_MAX, centre, scores, test_of, within_verdict};
pub use pairing::{Given, Replicate, Rule, Seeds, SideComparison, compare_sides};
pub use question::{Machines, Question, Side};
pub use samples::sample_tables;
pub use side_by_side::{
    Agreement, Explanation, MachineColumn, MatchedRow, SideBySide, SideBySideError, side_by_side,
};
/// The noise between runs of one kernel, over several kernels.
pub use stats::History as Scatter;
pub use twins::{Effect, contradiction};
pub use value::{
    Estimator, NOT_COUNTED, NoValue, RunValue, Scale, count_work, deferred_work, per_operation,
    run_value, samples, value_unit,
};
pub use verdict::{SEEDS_BELOW_FLOOR, noisy_verdict, verdict};
