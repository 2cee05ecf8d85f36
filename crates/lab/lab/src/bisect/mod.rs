//! Bisection: from two commits that differ to the commit, or the commits, that made the difference.
//!
//! [`stats::ExactSearch`] chooses the next measurement, `kernel` lists the commits, and
//! [`compare::verdict`] decides whether two commits differ. This module connects them. It measures
//! the ends first, drops commits that cannot matter, searches the trunk, then the commits of a
//! guilty merge, each merged onto the trunk before that merge. It looks at dropped commits if the
//! parent of a culprit differs from the commit measured before. At the end it reverts each
//! culprit on top of BAD. For noisy values (`noisy`), a posterior locates the steps
//! ([`stats::MultiStepSearch`]). Other hosts may measure what it will ask for (`elsewhere`).

mod elsewhere;
mod line;
mod log;
mod messages;
mod noisy;
mod prober;
mod rebuild_cost;
pub mod report;
mod revert;
mod search;

use std::ops::RangeInclusive;

use compare::Scale;
use kernel::CommitGraph;
use model::{Floor, Metric};

pub use elsewhere::{Elsewhere, Nodes, Pace, Rounds};
pub use log::{BisectionLog, Entry, Stands};
pub use prober::{LabProber, values_of};
pub use rebuild_cost::RebuildCost;
pub use search::bisect;

use crate::LabError;

/// The question of a bisection.
#[derive(Debug, Clone)]
pub struct BisectionQuestion {
    /// The measured metric with its direction.
    pub metric: Metric,
    /// How far seeds of one build lie apart: the ends must differ by more, or in five seeds. `None`
    /// if not known.
    pub floor: Option<Floor>,
    /// Smaller steps are ignored (percent). Default: a quarter of the whole difference, at most
    /// the metric's margin.
    pub margin_percent: Option<f64>,
    /// Number of intervals at the start: 1, or more to find steps that cancel each other.
    pub intervals: usize,
    /// How values of one commit vary.
    pub noise: Noise,
    /// Seeds for commits between the ends; measuring as many as run in parallel takes no longer
    /// than one.
    pub seeds_first: usize,
    /// Whether to revert culprits on top of BAD at the end.
    pub confirm: Confirm,
}

/// How values of one commit vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// By seed: values are compared per seed, and all seeds must agree.
    Seeds(u64),
    /// Randomly: each seed is a run, and the search takes as many runs as it needs.
    Runs {
        /// Variance that all runs of a build share, in variances of a run.
        bias: f64,
        /// Limit on runs in total.
        runs_max: usize,
    },
}

/// Whether to revert culprits on top of BAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm {
    /// Revert, if the revert applies.
    Revert,
    Nothing,
}

/// The measurement of a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    Measured {
        /// The build's id; equal builds are equal images.
        build: String,
        /// One value per seed, from the first seed on, in the metric's unit.
        values: Vec<f64>,
        /// Whether the values are counted or timed.
        scale: Scale,
    },
    /// The commit failed to build, boot or complete the workload; the text says which.
    Failed(String),
}

/// Measures commits and knows their sources: the lab, or a fake in tests.
pub trait Prober {
    /// Measures a commit with some seeds.
    ///
    /// # Errors
    /// If the lab fails; a failure of the commit itself is [`Probe::Failed`].
    fn probe(&mut self, commit: &str, seeds: RangeInclusive<u64>) -> Result<Probe, LabError>;

    /// Returns the merge of two commits; `None` if they conflict.
    ///
    /// # Errors
    /// If the lab fails.
    fn merge(&mut self, ours: &str, theirs: &str) -> Result<Option<String>, LabError>;

    /// Returns `tip` with `commit` reverted; `None` if later commits conflict.
    ///
    /// # Errors
    /// If the lab fails.
    fn revert(&mut self, tip: &str, commit: &str) -> Result<Option<String>, LabError>;

    /// Returns what each commit makes the build compile; called once both ends are measured.
    ///
    /// # Errors
    /// If the lab fails.
    fn rebuild_cost(&mut self, history: &CommitGraph) -> Result<RebuildCost, LabError>;

    /// Returns how many commits other hosts measure at once, for a search among so many.
    fn hosts(&self, _commits: usize) -> usize {
        0
    }

    /// Takes which commits may be asked for next, the most probable first: other hosts may measure
    /// these, and no others.
    fn foresee(&mut self, _commits: &[String]) {}
}

/// Progress of a bisection.
#[derive(Debug, Clone, PartialEq)]
pub enum BisectionEvent<'a> {
    /// Size of the search.
    Range {
        /// Positions that can matter.
        places: usize,
        /// Commits between the ends.
        commits: usize,
        /// Expected builds if there is one step.
        builds: usize,
    },
    /// The search measures this commit next.
    Probing(&'a str),
    /// The measurement is complete, or failed.
    Probed(&'a Entry),
    /// The step is in this merge; the search goes into it.
    Into(&'a str),
    /// The search looks at commits that it dropped before this one.
    Unpruned(&'a str),
    /// The search reverts this culprit on top of BAD.
    Reverting(&'a str),
}

/// How a bisection ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Bisected {
    /// The search did not start.
    Refused(Refused),
    Found(Findings),
}

/// Why the search did not start.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// An end cannot be measured.
    End { commit: String, why: String },
    /// The ends do not differ by more than the margin in all seeds.
    NoDifference {
        /// Difference from GOOD to BAD per seed (percent), positive for better.
        differences_percent: Vec<f64>,
        margin_percent: f64,
        /// Why the seeds are too few, if they agree; `None` if they do not.
        reason: Option<String>,
    },
    /// The noise exceeds the difference of the ends.
    NotSeen {
        /// Difference from GOOD to BAD (percent), positive for better.
        percent: f64,
        /// Standard error of the difference.
        error_percent: f64,
        runs: usize,
    },
}

/// The findings of a bisection.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// From GOOD to BAD.
    pub total: Change,
    /// The culprits, oldest first; empty if no single step exceeds the margin.
    pub culprits: Vec<Culprit>,
    /// Whether the values are counted or timed.
    pub scale: Scale,
    /// Steps up to this size were ignored (percent).
    pub margin_percent: f64,
    /// Commits between the ends.
    pub commits: usize,
    /// Commits among them that can change the image.
    pub commits_kept: usize,
}

impl Findings {
    /// Returns the share of the whole difference that the culprits explain (percent).
    #[must_use]
    pub fn explained_percent(&self) -> f64 {
        let sum: f64 = self
            .culprits
            .iter()
            .map(|culprit| culprit.change.after - culprit.change.before)
            .sum();
        let total = self.total.after - self.total.before;
        if total.abs() > 0.0 {
            100.0 * sum / total
        } else {
            0.0
        }
    }
}

/// A difference between two commits.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Median over the seeds before.
    pub before: f64,
    /// Median over the seeds after.
    pub after: f64,
    /// Difference per seed (percent), positive for better.
    pub differences_percent: Vec<f64>,
}

impl Change {
    /// Returns the smallest and the largest difference of a seed (percent); `None` without seeds.
    #[must_use]
    pub fn range_percent(&self) -> Option<(f64, f64)> {
        let least = self.differences_percent.iter().copied().reduce(f64::min)?;
        Some((
            least,
            self.differences_percent.iter().copied().reduce(f64::max)?,
        ))
    }

    /// Returns the median difference of the seeds (percent), positive for better.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        stats::median(&self.differences_percent)
    }
}

/// A commit that made a difference, or a few that the search cannot separate.
#[derive(Debug, Clone, PartialEq)]
pub struct Culprit {
    /// The commit; the last one of several.
    pub commit: String,
    /// All candidates: more than one if commits between them could not be measured.
    pub candidates: Vec<String>,
    /// The commit that it was compared with: its parent, or the trunk with the earlier side
    /// commits merged.
    pub parent: String,
    /// The merge that brought it into the trunk, if any.
    pub merge: Option<String>,
    pub change: Change,
    /// How certain the culprit is, for noisy values; `None` for exact ones.
    pub certainty: Option<Certainty>,
    /// The result of reverting it on top of BAD; `None` if not tried.
    pub reverted: Option<Reverted>,
}

/// How sure a culprit is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certainty {
    /// Probability that it is this commit, or one of these.
    pub chance: f64,
    /// Standard error of its effect (percent).
    pub error_percent: f64,
}

/// The result of reverting a culprit on top of BAD.
#[derive(Debug, Clone, PartialEq)]
pub enum Reverted {
    /// BAD without it does not have its effect.
    Undone(Change),
    /// BAD without it keeps more than half of the effect.
    NotUndone(Change),
    /// The revert conflicts with later commits.
    Conflicts,
    /// BAD without it cannot be measured.
    Failed(String),
}
