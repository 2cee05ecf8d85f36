//! The answer: rows with verdicts, and everything that a reader may want to hold against them.
//!
//! Only the shape and what is counted from it; `compare.rs` fills it, `render` shows it.

use std::sync::Arc;

use model::{Build, Environment, FailureReason, Machine, RunId, Stage, Unit, Verdict, Workload, experiment_of};
use stats::Spread;

use crate::environment::{Difference, Differing};
use crate::monitors::Monitored;
use crate::pairing::SideComparison;
use crate::value::Scale;

/// A base kernel against one or more others.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The suite's name.
    pub suite: String,
    /// The command that reproduces it.
    pub command: String,
    /// When it was asked, in seconds since 1970-01-01 UTC.
    pub created_unix: Option<i64>,
    /// The seeds that were compared.
    pub seeds: Vec<u64>,
    /// What must be known before any number is read.
    pub warnings: Vec<Warning>,
    /// What the others are compared with.
    pub base: Kernel,
    /// The others.
    pub others: Vec<Against>,
    /// One row per workload, in the suite's order.
    pub rows: Vec<Row>,
    /// Failures of kernels, those of the same kind on the same kernel put together.
    pub failures: Vec<Failure>,
    /// What differed between the environments.
    pub environment: Differing,
    /// Which functions the differences come from, a sentence per workload, where that was asked for.
    pub origins: Vec<String>,
    /// What the kernels counted meanwhile, workload by workload, where that was asked for.
    pub monitors: Vec<Monitored>,
}

/// A reason to doubt all numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The kernels ran on different machines, as the user allowed; what differs between these is given.
    MixedMachines(Vec<Difference>),
    /// Two runs of one kernel, workload and seed do not give the same values on a machine where they must.
    NotRepeated {
        /// The kernel's title.
        kernel: String,
        /// The workload.
        workload: String,
        /// The seed.
        seed: u64,
    },
    /// Seeds that a kernel and the base were not both measured with: rows are of the others.
    SeedsLeftOut {
        /// The kernel's title.
        kernel: String,
        /// The seeds.
        seeds: Vec<u64>,
    },
    /// Workloads that stand in no row, for nobody knows which way their metrics are good.
    NotRated {
        /// Their names.
        workloads: Vec<String>,
    },
    /// The guest's clock comes to another verdict than the counted instructions.
    ClockDisagrees {
        /// The kernel's title.
        kernel: String,
        /// The workload.
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
    /// What it is called here: the version, and more where that is not unique.
    pub title: String,
    /// What stands over its column, in two lines of at most 21 characters.
    pub head: [String; 2],
    /// What was booted.
    pub build: Build,
    /// Where.
    pub machine: Machine,
    /// The same with other equipment, where workloads asked for it.
    pub also: Vec<Machine>,
    /// The runs that were used.
    pub runs: Vec<RunMark>,
    /// What the first run that got that far said of itself.
    pub environment: Environment,
}

/// Which run it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunMark {
    /// Its id.
    pub id: RunId,
    /// Its seed.
    pub seed: u64,
    /// When it began, in seconds since 1970-01-01 UTC.
    pub started_unix: i64,
}

/// A kernel that is compared with the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    /// The kernel.
    pub kernel: Kernel,
    /// Whether it is another image than the base at all.
    pub images: Images,
    /// How many rows have which verdict.
    pub counts: Counts,
    /// The geometric mean of the ratios of the rows that all kernels have; `None` when there is no such row.
    pub geometric_mean: Option<GeometricMean>,
}

/// How the images of two kernels stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Images {
    /// Different images.
    Different,
    /// The same image, measured twice: whatever differs is the lab's doing.
    Equal,
    /// The same image on the same machine, and no run of it: none is needed.
    EqualWithoutRuns,
}

/// A geometric mean with what it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeometricMean {
    /// The mean; above one is better.
    pub ratio: f64,
    /// The rows that it is of.
    pub rows: usize,
    /// Where runs scatter: the interval that holds the true mean with a chance of 95 %, worked out from the means of each run.
    pub ends: Option<Spread>,
}

/// How many rows have which verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that are better.
    pub better: usize,
    /// Rows that are worse.
    pub worse: usize,
    /// Rows that are the same.
    pub same: usize,
    /// Rows of which nothing can be said.
    pub unclear: usize,
}

impl Counts {
    /// Counts one more.
    pub(crate) fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Better => self.better += 1,
            Verdict::Worse => self.worse += 1,
            Verdict::Same => self.same += 1,
            Verdict::Unclear(_) => self.unclear += 1,
        }
    }
}

/// One workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The workload, with its metric.
    pub workload: Arc<Workload>,
    /// The unit of its values.
    pub unit: Unit,
    /// The margin that held.
    pub margin_percent: f64,
    /// The base kernel's values.
    pub base: Measured,
    /// One cell for each of the others.
    pub cells: Vec<Cell>,
}

/// The values of one workload on one kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// One for each seed, in the comparison's order.
    pub seeds: Vec<SeedValue>,
    /// The median over the seeds that have a value.
    pub median: Option<f64>,
    /// Where runs scatter, what kind of noise they have, from six runs on.
    pub noise: Option<stats::NoiseProfile>,
}

/// What one seed gave.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedValue {
    /// The seed.
    pub seed: u64,
    /// The value, or why there is none.
    pub value: Result<Sampled, Absent>,
}

/// A run's value of a workload, with what it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The value, see [`run_value`](crate::run_value): the median over the iterations without the first where nothing scatters.
    pub median: f64,
    /// What it is made of.
    pub scale: Scale,
    /// All iterations, the first included.
    pub samples: Vec<f64>,
    /// How many of the first ones the median leaves out.
    pub left_out: usize,
    /// Operations in one iteration.
    pub operations: u64,
    /// What the value is made of, where it was counted.
    pub counted: Option<Counted>,
}

/// A value that was counted, taken apart: medians over the iterations without the first, per operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Instructions of the kernel for the workload's processes.
    pub kernel: f64,
    /// Instructions of their user code.
    pub user: f64,
    /// Instructions of interrupts and other tasks, which are not in the value.
    pub elsewhere: f64,
    /// Guest time by the guest's own clock, in instructions: all of it.
    pub time: f64,
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// There is no run of that seed.
    NoRun,
    /// The run has no result of that workload.
    NoResult,
    /// The kernel does not offer what the workload needs; the text says what.
    Unsupported(String),
    /// The kernel failed: which of [`Comparison::failures`].
    Failed(usize),
    /// So few iterations that none is left without the first.
    TooFewSamples(usize),
    /// An iteration's value is negative or not a number.
    NotANumber,
    /// Its instructions were not counted, or not in all iterations, and the row is of counted instructions.
    NotCounted(String),
}

/// One workload on one of the other kernels, against the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its values.
    pub measured: Measured,
    /// What it comes to against the base.
    pub compared: SideComparison,
    /// The median of the differences in guest time, where the values were counted: a cross-check.
    pub time_percent: Option<f64>,
    /// Where runs scatter: how sure it is.
    pub rated: Option<Rated>,
}

/// How sure a cell of runs that scatter is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rated {
    /// The rating.
    pub rating: stats::Rating,
    /// The share of false finds at which it is found among all cells of the comparison.
    pub q: f64,
    /// What the ranks of the runs say to it, from five runs on each side.
    pub ranks: Option<stats::CrossCheck>,
}

/// The difference for one seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeedDifference {
    /// The seed.
    pub seed: u64,
    /// In percent; positive is better.
    pub percent: f64,
    /// How many times better; `None` when a value is zero.
    pub ratio: Option<f64>,
}

/// Failures of one kernel that are of the same kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kernel, by position with the base at 0.
    pub kernel: usize,
    /// How far it got.
    pub stage: Stage,
    /// Why.
    pub reason: FailureReason,
    /// The last lines of the console, of the first occurrence.
    pub console_tail: String,
    /// Where it happened.
    pub occurrences: Vec<Occurrence>,
}

/// One workload and seed for which a kernel failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The workload.
    pub workload: String,
    /// The seed.
    pub seed: u64,
}

/// What a whole comparison comes to, from the best to the worst. Exit codes are made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conclusion {
    /// Every row is better or the same.
    Fine,
    /// No row is worse, but of some nothing can be said.
    Unclear,
    /// At least one row is worse.
    Worse,
    /// A kernel did not boot, or one of the others failed in a workload.
    Failed,
}

impl Conclusion {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Unclear => "unclear",
            Self::Worse => "worse",
            Self::Failed => "failed",
        }
    }
}

impl Kernel {
    /// Returns all machines that it ran on.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &Machine> {
        std::iter::once(&self.machine).chain(&self.also)
    }
}

impl Comparison {
    /// Returns whether other suites measured what is compared.
    pub(crate) fn is_imported(&self) -> bool {
        self.kernels().any(|kernel| kernel.machine.capabilities().foreign)
    }

    /// Returns the name of the block that a row stands in: its experiment's, or the suite's where it is of none.
    pub(crate) fn block(&self, row: &Row) -> &str {
        let declared = if self.is_imported() { None } else { experiment_of(&row.workload.name) };
        declared.unwrap_or(&self.suite)
    }

    /// Returns what it comes to.
    ///
    /// A workload that fails on the base alone says nothing against the others: that is unclear, not failed.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let failed = |f: &Failure| f.kernel > 0 || f.stage < Stage::Workload;
        let any = |of: fn(&Counts) -> usize| self.others.iter().any(|o| of(&o.counts) > 0);
        if self.failures.iter().any(failed) {
            Conclusion::Failed
        } else if any(|c| c.worse) {
            Conclusion::Worse
        } else if any(|c| c.unclear) {
            Conclusion::Unclear
        } else {
            Conclusion::Fine
        }
    }

    /// Returns the workloads that became better or worse on one of the others.
    #[must_use]
    pub fn changed(&self, other: usize) -> Vec<String> {
        let has_changed = |row: &&Row| matches!(row.cells[other].compared.verdict, Verdict::Better | Verdict::Worse);
        self.rows.iter().filter(has_changed).map(|row| row.workload.name.to_string()).collect()
    }

    /// Returns all kernels, the base first.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        std::iter::once(&self.base).chain(self.others.iter().map(|o| &o.kernel))
    }
}
