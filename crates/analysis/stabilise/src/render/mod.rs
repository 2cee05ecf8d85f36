//! The answer of a stabilisation for people and programs: a document, JSON, the letter of the
//! series, the notes of its commits, and the mail about the patches of a queue.
//!
//! Pure: names, labels and costs come in as values beside the [`Outcome`].

mod blocks;
mod check;
mod json;
mod letter;
mod tables;
#[cfg(test)]
mod tests;
mod view;
mod words;

use std::fmt;

use crate::outcome::Outcome;
use crate::world::Failure;

pub use blocks::document;
pub use check::{Check, CheckMail, CheckedPatch, check_mail};
pub use json::{json, schema};
pub use letter::{cover_letter, effect_note};

/// Describes why there is no kernel to measure.
#[must_use]
pub fn describe_failure(failure: &Failure) -> String {
    words::failure_words(failure)
}

/// The answer of a stabilisation, with the names of what it counts.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    /// What the search found.
    pub outcome: &'a Outcome,
    /// The rows, by their number.
    pub rows: Vec<RowName>,
    /// Rows that are not judged.
    pub skipped: Vec<SkippedRow>,
    /// The kernel with the performance to return to.
    pub baseline: End,
    /// The kernel that is worse.
    pub new: End,
    /// Where BASELINE and NEW part, if BASELINE is no ancestor of NEW.
    pub parted_at: Option<End>,
    /// The points of the history: the first one is point 1.
    pub points: Vec<NamedCommit>,
    /// The candidates, by their number.
    pub candidates: Vec<Candidate>,
    /// Where the candidates come from: a range, a mailbox or a directory.
    pub source: String,
    /// Machine, suite and seeds of the measurements.
    pub measuring: Measuring,
    /// What it has cost.
    pub cost: Cost,
    /// The branch with the series, if there is one.
    pub branch: Option<BranchName>,
    /// The command that repeats it.
    pub command: String,
}

/// A row of the suite.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowName {
    /// The workload's name.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// Smaller differences count as same (percent): a debt that is no larger is repaid.
    pub margin_percent: f64,
}

/// A row that is not judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRow {
    /// The revision that the user gave.
    pub name: String,
    /// Why it is not judged.
    pub why: String,
}

/// An end of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its name, as the user gave it.
    pub name: String,
    /// The hash of the commit.
    pub commit: String,
}

/// A commit or a patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedCommit {
    /// Its commit; empty for a patch.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
}

/// A change that may repay debts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidate {
    /// The commit that it is.
    pub named: NamedCommit,
    /// Why it was not considered, if it was not.
    pub dropped: Option<Dropped>,
}

/// Why a candidate was not considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// The kernel config compiles nothing that it changes.
    NotCompiled,
    /// NEW has it already.
    InNew,
    /// The reason, if it is neither of these.
    Other(String),
}

/// What measured the kernels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measuring {
    /// The machine, in a few words.
    pub machine: String,
    /// The name of the kernel config.
    pub config: String,
    /// The suite that was measured.
    pub suite: String,
    /// The seeds of each kernel's runs.
    pub seeds: Vec<u64>,
}

/// What a stabilisation has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Kernels that were built, in this session or an earlier one.
    pub kernels: usize,
    /// Of these, builds in this session.
    pub builds: usize,
    /// Kernel images that were built.
    pub images: usize,
    /// How long the search took (s).
    pub seconds: u64,
}

/// A branch with the series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchName {
    /// The repository to fetch it from.
    pub repository: String,
    /// The name of the branch.
    pub name: String,
    /// The hash of its last commit.
    pub tip: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = words::short(&self.commit);
        if self.commit.is_empty() || self.name.contains(&short) {
            f.write_str(&self.name)
        } else {
            write!(f, "{} ({short})", self.name)
        }
    }
}
