//! The result of a comparison: rows with verdicts, and everything needed to judge them.
//!
//! Only the shape and counts derived from it; `compare.rs` fills it, `render` formats it.

use std::sync::Arc;

use model::{
    Build, Costly, Cycles, Environment, FailureReason, Machine, RunId, Stage, Unit, UnixTime,
    Verdict, Workload, experiment_of,
};
use stats::Spread;

use crate::environment::{Difference, Differing};
use crate::pairing::SideComparison;
use crate::value::Scale;
use monitors::Monitored;

/// Rows of a question that asks about single ones.
const FEW_ROWS: usize = 3;

/// A base kernel against one or more others.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The suite that all runs belong to.
    pub suite: String,
    /// The command that reproduces it.
    pub command: String,
    /// When it was asked.
    pub created_unix: Option<UnixTime>,
    /// The seeds that were compared.
    pub seeds: Vec<u64>,
    /// Warnings that come before any number.
    pub warnings: Vec<Warning>,
    /// The kernel that all others are compared with.
    pub base: Kernel,
    /// The kernels that are compared with the base, in the question's order.
    pub others: Vec<Against>,
    /// One row per workload, in the suite's order.
    pub rows: Vec<ComparisonRow>,
    /// Failures of kernels, grouped by kernel and kind.
    pub failures: Vec<Failure>,
    /// Differences between the environments.
    pub environment: Differing,
    /// The functions that cause the differences, one sentence per workload, if requested.
    pub origins: Vec<String>,
    /// The kernels' counters, workload by workload, if requested.
    pub monitors: Vec<Monitored>,
}

/// A reason to doubt all numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The kernels ran on different machines, which the user allowed; lists the differences.
    MixedMachines(Vec<Difference>),
    /// The numbers come from a QEMU that is none of the known ones; its versions.
    AnotherQemu(Vec<String>),
    /// Code that a kernel changes and that its config does not compile: nothing measures it.
    NotCompiled {
        /// Its title in this comparison.
        kernel: String,
        /// The files, each with what it needs.
        files: Vec<String>,
    },
    /// A kernel was built by another compiler, or with other variables of make, than the base.
    BuiltDifferently {
        /// Its title in this comparison.
        kernel: String,
        /// Its compiler, linker and variables of make.
        compiler: String,
        /// Those of the base.
        base: String,
    },
    /// Two runs of one kernel, workload and seed differ on a machine where they must not.
    NotRepeated {
        /// Its title in this comparison.
        kernel: String,
        /// The workload whose results differ.
        workload: String,
        /// The seed of both runs.
        seed: u64,
    },
    /// Seeds that a kernel or the base lacks: rows use the others.
    SeedsLeftOut {
        /// Its title in this comparison.
        kernel: String,
        /// Seeds that were measured on one side only, ascending.
        seeds: Vec<u64>,
    },
    /// Workloads that other work on the host disturbed in some boots, each time that Marvin
    /// measured them.
    Disturbed {
        /// Its title in this comparison.
        kernel: String,
        /// Workloads that other load overlapped, by name.
        workloads: Vec<String>,
        /// Boots with at least one of these.
        boots: usize,
    },
    /// Imported runs that repeat others: they have the same number, and began earlier.
    Superseded {
        /// Its title in this comparison.
        kernel: String,
        /// Runs that newer ones replace.
        runs: usize,
    },
    /// Workloads without a row because their direction is unknown.
    NotRated {
        /// The names of these workloads.
        workloads: Vec<String>,
    },
    /// The guest's clock gives another verdict than the counted instructions.
    ClockDisagrees {
        /// Its title in this comparison.
        kernel: String,
        /// The workload whose verdicts differ.
        workload: String,
        /// The difference in counted instructions; positive is better.
        counted_percent: f64,
        /// The difference in guest time.
        time_percent: f64,
    },
}

/// One kernel of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// Its name in this comparison: the version, and more if that is not unique.
    pub title: String,
    /// The head of its column, in two lines of at most 21 characters.
    pub head: [String; 2],
    /// The build that was measured.
    pub build: Build,
    /// The machine of its runs; see also `also`.
    pub machine: Machine,
    /// The same machine with other guest configs, if workloads need them.
    pub also: Vec<Machine>,
    /// The runs that values come from.
    pub runs: Vec<RunMark>,
    /// The environment from the first run that has one.
    pub environment: Environment,
}

/// The identity of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunMark {
    /// The stored run's id.
    pub id: RunId,
    /// The seed of its memory layout.
    pub seed: u64,
    /// When it began.
    pub started_unix: UnixTime,
}

/// A kernel that is compared with the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    /// The kernel that is compared with the base.
    pub kernel: Kernel,
    /// Whether its image differs from the base's.
    pub images: Images,
    /// The number of rows with each verdict.
    pub counts: Counts,
    /// The geometric mean of the ratios of the rows that all kernels have; `None` if there is no
    /// such row.
    pub geometric_mean: Option<GeometricMean>,
}

/// How the images of two kernels relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Images {
    /// The images differ, or nothing is known of one.
    Different,
    /// The same image, measured twice: the lab causes any difference.
    Equal,
    /// The same image on the same machine without a run: none is needed.
    EqualWithoutRuns,
}

/// A geometric mean with its rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeometricMean {
    /// The mean; above one is better.
    pub ratio: f64,
    /// The number of its rows.
    pub rows: usize,
    /// For noisy runs: the interval that contains the true mean with a probability of 95 %, from
    /// the means of each run.
    pub ends: Option<Spread>,
}

/// The number of rows with each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that are better.
    pub better: usize,
    /// Rows that are worse.
    pub worse: usize,
    /// Rows that are the same.
    pub same: usize,
    /// Rows without a verdict.
    pub unclear: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Better => self.better += 1,
            Verdict::Worse => self.worse += 1,
            Verdict::Same => self.same += 1,
            Verdict::Unclear(_) => self.unclear += 1,
        }
    }
}

/// One workload on all kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonRow {
    /// The workload, with its metric.
    pub workload: Arc<Workload>,
    /// The unit of its values.
    pub unit: Unit,
    /// Differences within this margin do not matter, in percent.
    pub margin_percent: f64,
    /// The base kernel's values.
    pub base: Measured,
    /// One cell for each of the others.
    pub cells: Vec<ComparisonCell>,
}

/// The values of one workload on one kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// One per seed, in the comparison's order.
    pub seeds: Vec<SeedValue>,
    /// The side's value: the median over the seeds that have one; for noisy runs the centre that
    /// their rating compares (`stats::Scores::centre`).
    pub value: Option<f64>,
    /// For noisy runs, the kind of noise, from six runs on.
    pub noise: Option<stats::NoiseProfile>,
}

/// The value of one seed.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedValue {
    /// The seed of the boot; a boot's number on noisy machines.
    pub seed: u64,
    /// The value, or the reason for its absence.
    pub value: Result<Sampled, Absent>,
}

/// A run's value of a workload, with its basis.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The value, see [`run_value`](crate::run_value): without noise, the median over the
    /// iterations without the first.
    pub value: f64,
    /// What one unit of the value is.
    pub scale: Scale,
    /// All iterations, the first included.
    pub samples: Vec<f64>,
    /// How many first iterations the median leaves out.
    pub left_out: usize,
    /// Operations in one iteration.
    pub operations: u64,
    /// The parts of the value, if it was counted.
    pub counted: Option<Counted>,
}

/// The parts of a counted value: medians over the iterations without the first, per operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Instructions of the kernel for the workload's processes.
    pub kernel: f64,
    /// Instructions of their user code.
    pub user: f64,
    /// Instructions of interrupts and other tasks, which are not in the value: a mean, see
    /// [`deferred_work`](crate::deferred_work).
    pub deferred: f64,
    /// Guest time by the guest's own clock, in instructions: all of it.
    pub time: f64,
    /// Costly instructions by kind, in the order of [`Costly::ALL`].
    pub costly: [f64; Costly::ALL.len()],
    /// The estimate of cycles, if costly instructions were counted.
    pub cycles: Option<Cycles>,
}

/// The reason for a missing value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// There is no run of this seed.
    NoRun,
    /// The run has no result of this workload.
    NoResult,
    /// The kernel lacks a feature that the workload needs; the text names it.
    Unsupported(String),
    /// The kernel failed: the index into [`Comparison::failures`].
    Failed(usize),
    /// No iteration is left without the first.
    TooFewSamples(usize),
    /// An iteration's value is negative or not a number.
    NotANumber,
    /// Its instructions were not counted in all iterations, but the row is of counted instructions.
    NotCounted(String),
}

/// One workload on one of the other kernels, compared with the base.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonCell {
    /// Values of the kernel, seed by seed.
    pub measured: Measured,
    /// The comparison with the base.
    pub compared: SideComparison,
    /// The median of the differences in guest time, if the values were counted: a cross-check.
    pub time_percent: Option<f64>,
    /// For noisy runs, the rating.
    pub rated: Option<Rated>,
}

/// The rating of a cell of noisy runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rated {
    /// The ratio of both kernels, with its confidence interval.
    pub rating: stats::RatioEstimate,
    /// Its false discovery rate among all cells of the comparison.
    pub q: f64,
    /// The rank test of the runs, from five runs on each side.
    pub ranks: Option<stats::CrossCheck>,
}

/// The difference for one seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeedDifference {
    /// The seed that both runs have.
    pub seed: u64,
    /// In percent; positive is better.
    pub percent: f64,
    /// The improvement as a factor; `None` if a value is zero.
    pub ratio: Option<f64>,
}

/// Failures of one kernel and one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kernel, by position with the base at 0.
    pub kernel: usize,
    /// The stage that it reached.
    pub stage: Stage,
    /// What ended it.
    pub reason: FailureReason,
    /// The last lines of the console, of the first occurrence.
    pub console_tail: String,
    /// The affected workloads and seeds.
    pub occurrences: Vec<Occurrence>,
}

/// One workload and seed for which a kernel failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The workload that ran.
    pub workload: String,
    /// The seed of the boot.
    pub seed: u64,
}

/// The outcome of a whole comparison, from best to worst. It determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conclusion {
    /// Every row is better or the same.
    Fine,
    /// No row is worse, but some are unclear.
    Unclear,
    /// At least one row is worse.
    Worse,
    /// A kernel did not boot, or one of the others failed in a workload.
    Failed,
}

impl Conclusion {
    /// Returns the name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Unclear => "unclear",
            Self::Worse => "worse",
            Self::Failed => "failed",
        }
    }
}

impl Kernel {
    /// Returns all its machines.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &Machine> {
        std::iter::once(&self.machine).chain(&self.also)
    }
}

impl Comparison {
    /// Returns whether other suites measured its runs.
    pub(crate) fn is_imported(&self) -> bool {
        self.kernels()
            .any(|kernel| kernel.machine.capabilities().foreign)
    }

    /// Returns whether its runs are noisy: ratings decide its verdicts.
    pub(crate) fn is_noisy(&self) -> bool {
        self.kernels()
            .any(|kernel| !kernel.machine.capabilities().deterministic)
    }

    /// Returns the name of a row's block: its experiment, or else the suite.
    pub(crate) fn block(&self, row: &ComparisonRow) -> &str {
        let declared = if self.is_imported() {
            None
        } else {
            experiment_of(&row.workload.name)
        };
        declared.unwrap_or(&self.suite)
    }

    /// Returns the outcome: the exit code of `marvin compare`.
    ///
    /// A workload that fails on the base only says nothing about the others: that is unclear, not
    /// failed.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let fails = |f: &Failure| f.kernel > 0 || f.stage < Stage::Workload;
        let mut counts = self.others.iter().map(|other| &other.counts);
        if self.failures.iter().any(fails) {
            Conclusion::Failed
        } else if counts.clone().any(|counts| counts.worse > 0) {
            Conclusion::Worse
        } else if counts.any(|counts| counts.unclear > 0) || self.is_not_measured() {
            Conclusion::Unclear
        } else {
            Conclusion::Fine
        }
    }

    /// Returns whether a kernel changes code that its config does not compile.
    #[must_use]
    pub fn is_not_measured(&self) -> bool {
        self.warnings
            .iter()
            .any(|warning| matches!(warning, Warning::NotCompiled { .. }))
    }

    /// Says which code a kernel changes without compiling it; `None` if there is none.
    #[must_use]
    pub fn not_compiled_text(&self) -> Option<String> {
        let mut warnings = self.warnings.iter();
        let found = warnings.find(|warning| matches!(warning, Warning::NotCompiled { .. }));
        found.map(crate::render::words::warning)
    }

    /// Returns the workloads that became better or worse on one of the others.
    #[must_use]
    pub fn changed(&self, other: usize) -> Vec<String> {
        let verdict = |row: &ComparisonRow| row.cells[other].compared.verdict.clone();
        self.rows
            .iter()
            .filter(|row| matches!(verdict(row), Verdict::Better | Verdict::Worse))
            .map(|row| row.workload.name.to_string())
            .collect()
    }

    /// Returns the workloads that differ on one of the others, without being better or worse: unclear
    /// ones and, in a question of few rows, also those within the margin.
    #[must_use]
    pub fn differing(&self, other: usize) -> Vec<String> {
        let few = self.rows.len() <= FEW_ROWS;
        let differs = |row: &&ComparisonRow| {
            let compared = &row.cells[other].compared;
            let is_asked = match compared.verdict {
                Verdict::Better | Verdict::Worse => false,
                Verdict::Unclear(_) => true,
                Verdict::Same => few,
            };
            is_asked && compared.difference_percent.is_some_and(|size| size != 0.0)
        };
        let rows = self.rows.iter().filter(differs);
        rows.map(|row| row.workload.name.to_string()).collect()
    }

    /// Returns all kernels, the base first.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        std::iter::once(&self.base).chain(self.others.iter().map(|o| &o.kernel))
    }
}
