//! Bisection: from two commits that differ to the commit, or the commits, that made the difference.
//!
//! What is measured next is `stats`' to choose ([`stats::Steps`]), which commits there are between two is `kernel`'s to say, and
//! whether two differ is [`report::verdict`]'s. Here they meet: the ends are measured first, commits that cannot matter are
//! left out, the trunk is searched, then what a guilty merge brought, each side commit merged onto the trunk as it was before;
//! what was left out beside a culprit is looked at after all if its parent is not what it should be.

mod line;
mod log;
mod prober;
mod search;

use kernel::History;
use model::Metric;

pub use log::{BisectionLog, Entry};
pub use prober::LabProber;
pub use search::bisect;

use crate::LabError;

/// What is asked.
#[derive(Debug, Clone)]
pub struct BisectionQuestion {
    /// What is measured, and which way is good.
    pub metric: Metric,
    /// A step up to this many percent is none; a quarter of the whole difference, but at most the metric's margin, unless said.
    pub margin_percent: Option<f64>,
    /// Intervals into which the range is cut at first: 1, or more to see steps that cancel each other.
    pub intervals: usize,
}

/// What came of measuring a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// It was measured.
    Measured {
        /// The build: equal ones are equal images.
        build: String,
        /// One value for each seed, in the metric's unit.
        values: Vec<f64>,
    },
    /// It does not build, boot or bear the workload; the text says what.
    Failed(String),
}

/// Who measures commits and knows their sources: the lab, or a test's make-believe.
pub trait Prober {
    /// Measures a commit.
    ///
    /// # Errors
    /// When the lab fails; what is the commit's own fault is a [`Probe::Failed`].
    fn probe(&mut self, commit: &str) -> Result<Probe, LabError>;

    /// Returns a commit that is two merged; nothing where they conflict.
    ///
    /// # Errors
    /// When the lab fails.
    fn merge(&mut self, ours: &str, theirs: &str) -> Result<Option<String>, LabError>;

    /// Returns for each commit of a history whether it can change what is built; called when both ends were measured.
    ///
    /// # Errors
    /// When the lab fails.
    fn matters(&mut self, history: &History) -> Result<Vec<bool>, LabError>;
}

/// What happens, for those who wait.
#[derive(Debug, Clone, PartialEq)]
pub enum BisectionEvent<'a> {
    /// So many commits are looked at, of so many, and it will take about so many builds more.
    Range {
        /// Places of the line that can matter.
        places: usize,
        /// Commits between the ends.
        commits: usize,
        /// Builds, if there is one step.
        builds: usize,
    },
    /// A commit is measured next.
    Probing(&'a str),
    /// It was measured, or failed.
    Probed(&'a Entry),
    /// The step is in this merge: what it brought is searched.
    Into(&'a str),
    /// What was left out beside this commit is looked at after all.
    Unpruned(&'a str),
}

/// How a bisection ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Bisected {
    /// There is nothing to search.
    Refused(Refused),
    /// It was searched.
    Found(Findings),
}

/// Why there is nothing to search.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// An end cannot be measured.
    End {
        /// Its commit.
        commit: String,
        /// Why.
        why: String,
    },
    /// The ends do not differ by more than the margin in all seeds; from GOOD to BAD, in percent, positive for better.
    NoDifference {
        /// For each seed.
        differences_percent: Vec<f64>,
        /// The margin.
        margin_percent: f64,
    },
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// From GOOD to BAD.
    pub total: Change,
    /// Those who did it, oldest first; none where no single step is above the margin.
    pub culprits: Vec<Culprit>,
    /// A step up to this many percent was taken for none.
    pub margin_percent: f64,
    /// Commits between the ends.
    pub commits: usize,
    /// Those of them that can change what is built.
    pub commits_kept: usize,
}

impl Findings {
    /// Returns how much of the whole difference the culprits explain, in percent of it.
    #[must_use]
    pub fn explained_percent(&self) -> f64 {
        let sum: f64 = self.culprits.iter().map(|culprit| culprit.change.after - culprit.change.before).sum();
        let total = self.total.after - self.total.before;
        if total.abs() > 0.0 { 100.0 * sum / total } else { 0.0 }
    }
}

/// A difference between two commits.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Median over the seeds before.
    pub before: f64,
    /// Median over the seeds after.
    pub after: f64,
    /// For each seed, in percent, positive for better.
    pub differences_percent: Vec<f64>,
}

impl Change {
    /// Returns the smallest and the largest difference of a seed in percent; nothing where there is none.
    #[must_use]
    pub fn range_percent(&self) -> Option<(f64, f64)> {
        let least = self.differences_percent.iter().copied().reduce(f64::min)?;
        Some((least, self.differences_percent.iter().copied().reduce(f64::max)?))
    }

    /// Returns the median difference of the seeds in percent, positive for better.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        stats::median(&self.differences_percent)
    }
}

/// A commit that made a difference, or a few that cannot be told apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Culprit {
    /// The commit; of several the last.
    pub commit: String,
    /// All that it may be, when others between could not be measured; only the commit itself otherwise.
    pub candidates: Vec<String>,
    /// What it was compared with: its parent, or the trunk with what came before it merged.
    pub parent: String,
    /// The merge that brought it into the trunk, if one did.
    pub merge: Option<String>,
    /// What it did.
    pub change: Change,
}
