//! Bisection: from two commits that differ to the commit, or the commits, that made the difference.
//!
//! What is measured next is `stats`' to choose ([`stats::Steps`]), which commits there are between two is `kernel`'s to say, and
//! whether two differ is [`report::verdict`]'s. Here they meet: the ends are measured first, commits that cannot matter are
//! left out, the trunk is searched, then what a guilty merge brought, each side commit merged onto the trunk as it was before;
//! what was left out beside a culprit is looked at after all if its parent is not what it should be. In the end each culprit is
//! taken back on top of BAD. Where values scatter (`noisy`), it is a posterior that says where the steps are ([`stats::Several`]).

mod line;
mod log;
mod noisy;
mod prober;
mod revert;
mod search;
mod touches;

use std::ops::RangeInclusive;

use kernel::History;
use model::Metric;
use report::Scale;

pub use log::{BisectionLog, Entry, Stands};
pub use prober::{LabProber, values_of};
pub use search::bisect;
pub use touches::Touches;

use crate::LabError;

/// What is asked.
#[derive(Debug, Clone)]
pub struct BisectionQuestion {
    /// What is measured, and which way is good.
    pub metric: Metric,
    /// How far seeds of one build lie apart, in percent: the ends must differ by more, or in five seeds. None if not known.
    pub floor_percent: Option<f64>,
    /// A step up to this many percent is none; a quarter of the whole difference, but at most the metric's margin, unless said.
    pub margin_percent: Option<f64>,
    /// Intervals into which the range is cut at first: 1, or more to see steps that cancel each other.
    pub intervals: usize,
    /// How values of a commit differ from each other.
    pub noise: Noise,
    /// With how many of the seeds places between are looked at: as many as are measured at the same time take no longer than one.
    pub seeds_first: usize,
    /// Whether culprits are taken back on top of BAD in the end.
    pub confirm: Confirm,
}

/// How values of a commit differ from each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// By seed, as in every other commit: the same seeds are held against each other, and all must agree.
    Seeds(u64),
    /// By chance: each seed is a run, and as many are taken as it needs to be sure.
    Runs {
        /// Variance of a build, the same in all its runs, in variances of a run.
        bias: f64,
        /// Most runs in all.
        runs_max: usize,
    },
}

/// Whether culprits are taken back on top of BAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm {
    /// Where that applies.
    Revert,
    /// Not.
    Nothing,
}

/// What came of measuring a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// It was measured.
    Measured {
        /// The build: equal ones are equal images.
        build: String,
        /// One value for each seed from the first, in the metric's unit.
        values: Vec<f64>,
        /// What they are made of.
        scale: Scale,
    },
    /// It does not build, boot or bear the workload; the text says what.
    Failed(String),
}

/// Who measures commits and knows their sources: the lab, or a test's make-believe.
pub trait Prober {
    /// Measures a commit with some seeds.
    ///
    /// # Errors
    /// When the lab fails; what is the commit's own fault is a [`Probe::Failed`].
    fn probe(&mut self, commit: &str, seeds: RangeInclusive<u64>) -> Result<Probe, LabError>;

    /// Returns a commit that is two merged; nothing where they conflict.
    ///
    /// # Errors
    /// When the lab fails.
    fn merge(&mut self, ours: &str, theirs: &str) -> Result<Option<String>, LabError>;

    /// Returns a commit that is `tip` without what `commit` did; nothing where others have built on that.
    ///
    /// # Errors
    /// When the lab fails.
    fn revert(&mut self, tip: &str, commit: &str) -> Result<Option<String>, LabError>;

    /// Returns what building each commit of a history takes, if anything; called when both ends were measured.
    ///
    /// # Errors
    /// When the lab fails.
    fn touches(&mut self, history: &History) -> Result<Touches, LabError>;
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
    /// This culprit is taken back on top of BAD.
    Reverting(&'a str),
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
        /// Why the seeds, which agree, are too few; none where they do not.
        reason: Option<String>,
    },
    /// Runs scatter by more than the ends differ.
    NotSeen {
        /// From GOOD to BAD, in percent, positive for better.
        percent: f64,
        /// Standard error of that.
        error_percent: f64,
        /// Runs that were taken.
        runs: usize,
    },
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// From GOOD to BAD.
    pub total: Change,
    /// Those who did it, oldest first; none where no single step is above the margin.
    pub culprits: Vec<Culprit>,
    /// What the values are made of.
    pub scale: Scale,
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
    /// How sure it is where values scatter; nothing where they do not.
    pub certainty: Option<Certainty>,
    /// What came of taking it back on top of BAD; nothing where that was not tried.
    pub reverted: Option<Reverted>,
}

/// How sure a culprit is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certainty {
    /// Chance that it is this commit, or one of these.
    pub chance: f64,
    /// Standard error of its effect in percent.
    pub error_percent: f64,
}

/// What came of taking a culprit back on top of BAD.
#[derive(Debug, Clone, PartialEq)]
pub enum Reverted {
    /// BAD without it does not have its effect.
    Undone(Change),
    /// BAD without it is no better, or not by half of what it did.
    NotUndone(Change),
    /// Later commits have built on it.
    Conflicts,
    /// What came of it cannot be measured.
    Failed(String),
}
