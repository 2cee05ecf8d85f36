//! Sets of results on their way: from other suites into the store, from the store into a history,
//! and into tables for other programs.
//!
//! The store keeps single runs, `history` judges series; this crate reads and writes whole sets.

pub mod export;
pub mod import;
pub mod published;
mod stored_history;
mod summary;
mod summary_check;
#[cfg(test)]
mod summary_tests;

pub use stored_history::{HistoryReadError, HistoryReader, HistorySnapshot};
pub use summary_check::check_summary;
