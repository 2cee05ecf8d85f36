//! What the search knows of kernels: which there are, what a trial of one answers, and the evidence
//! about changes.
//!
//! The lab implements [`World`] with git, a compiler and the exact machine; tests implement it with
//! arithmetic.

use std::collections::BTreeMap;

use crate::outcome::Cause;

/// A change to NEW.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Applies a candidate, by its number in the order in which candidates are applied.
    Apply(usize),
    /// Reverts a commit of the history, by its point.
    Revert(usize),
}

/// A kernel that the search can ask for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// The kernel with the performance to return to.
    Baseline,
    /// A point of the history: 0 is where it begins (BASELINE, or the commit where NEW and BASELINE
    /// part), and the last one is NEW. Point `n` has the `n`th commit.
    Point(usize),
    /// NEW with changes: first the reverts, newest commit first, then the candidates in their
    /// order.
    With(Vec<Change>),
}

impl Kernel {
    /// Returns NEW, which is `new` in the history, with changes in the order in which they are
    /// made.
    #[must_use]
    pub fn with(changes: impl IntoIterator<Item = Change>, new: usize) -> Self {
        let mut changes: Vec<Change> = changes.into_iter().collect();
        changes.sort_unstable_by_key(|change| match change {
            Change::Revert(point) => (0, usize::MAX - point),
            Change::Apply(candidate) => (1, *candidate),
        });
        changes.dedup();
        if changes.is_empty() {
            Self::Point(new)
        } else {
            Self::With(changes)
        }
    }
}

/// The answer to a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Trial {
    /// Marvin measured it.
    Measured {
        /// Identifies the image: kernels with equal images have equal values.
        image: String,
        /// The values of each requested row, one per seed, in the unit of the row.
        values: BTreeMap<usize, Vec<f64>>,
    },
    /// There is no such kernel to measure. This is a result.
    Failed(Failure),
}

/// Why a kernel cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A change does not apply. No kernel was built.
    Conflict {
        /// The first change that does not apply.
        change: Change,
        /// The files in conflict.
        files: Vec<String>,
    },
    /// It does not build; the text is the first error.
    DoesNotBuild(String),
    /// It does not boot, or does not complete a workload; the text says which.
    DoesNotRun(String),
}

/// What is known of a change before it is tried.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suspicion {
    /// Whether the kernel config compiles something that it changes. If not, it cannot change the
    /// image.
    pub is_compiled: bool,
    /// For each debt, in the order of the debts: how much speaks for this change, at least 0; 1 if
    /// nothing speaks for or against it.
    pub weights: Vec<f64>,
}

/// What is known of all changes before they are tried.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// For point 1 of the history and those after it: the commits that it brings.
    pub history: Vec<Suspicion>,
    /// What is suspected of each candidate.
    pub candidates: Vec<Suspicion>,
}

/// A part of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// BASELINE and NEW: the debts.
    Ends,
    /// The commits of the history that made rows worse.
    Causes,
    /// All candidates that can be applied together.
    Stack,
    /// The candidates that repay debts.
    Repairs,
    /// Others in place of those that need more, or make a row worse.
    Alternatives,
    /// The series with the fewest patches.
    Series,
}

/// Kernels, and what can be done with them.
pub trait World {
    /// A failure of the lab, which is no result.
    type Error;

    /// Builds a kernel unless it is built, and measures rows unless they are measured.
    ///
    /// # Errors
    /// If the lab fails.
    fn trial(&mut self, kernel: &Kernel, rows: &[usize]) -> Result<Trial, Self::Error>;

    /// Returns what is known of all changes: once when the debts are known, and again when the
    /// causes are.
    ///
    /// # Errors
    /// If the lab fails.
    fn evidence(&mut self, debts: &[usize], causes: &[Cause]) -> Result<Evidence, Self::Error>;

    /// Returns earlier candidates that a candidate needs to apply or to build on NEW, as far as
    /// git's history of the lines or the error shows; empty if it shows none.
    ///
    /// # Errors
    /// If the lab fails.
    fn prerequisites(
        &mut self,
        candidate: usize,
        failure: &Failure,
    ) -> Result<Vec<usize>, Self::Error>;

    /// Returns the change that keeps a kernel from building, as far as the error shows.
    ///
    /// # Errors
    /// If the lab fails.
    fn at_fault(
        &mut self,
        _kernel: &Kernel,
        _failure: &Failure,
    ) -> Result<Option<Change>, Self::Error> {
        Ok(None)
    }

    /// Notes which part of the search begins.
    fn begin(&mut self, _phase: Phase) {}

    /// Returns the expected seconds of a trial: 0 if its answer is known.
    fn cost_s(&mut self, kernel: &Kernel) -> f64;

    /// Returns whether the budget is spent: the search then ends with what it has.
    fn is_spent(&mut self) -> bool;
}
