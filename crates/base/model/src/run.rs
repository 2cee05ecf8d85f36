//! A run: one boot of one build on one machine for one suite and one seed. Written once, never
//! changed.

use std::fmt;

use crate::{BuildId, Declared, MachineId, Region, RunId, UnixTime};

/// How far a machine got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// From power-on to the agent's first word.
    Boot,
    /// From the first word to the point of the snapshot.
    Settle,
    /// Resuming from the snapshot.
    Restore,
    /// While the workload ran.
    Workload,
    /// From the end of the workload to power-off.
    Results,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boot => "boot",
            Self::Settle => "settle",
            Self::Restore => "restore",
            Self::Workload => "workload",
            Self::Results => "results",
        })
    }
}

/// Why a kernel failed its run. All of these are results about the kernel, not failures of the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureReason {
    /// It stopped before the agent sent a word.
    DidNotBoot,
    /// It lacks a feature that the agent needs; the text names it.
    Lacks(String),
    /// The kernel panicked.
    Panicked,
    /// It reported an oops or a bug.
    Oopsed,
    /// It missed its deadline.
    Hung,
    /// It ran out of memory.
    OutOfMemory,
    /// The agent was killed or ended early; the text gives the reason.
    AgentDied(String),
    /// The workload met an unexpected error; the text names it.
    WorkloadFailed(String),
    /// It printed more than the console limit.
    TooMuchOutput,
    /// The result stream was cut, garbled or foreign; the text gives details.
    BadStream(String),
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DidNotBoot => f.write_str("did not boot"),
            Self::Lacks(what) => write!(f, "lacks {what}"),
            Self::Panicked => f.write_str("panicked"),
            Self::Oopsed => f.write_str("oopsed"),
            Self::Hung => f.write_str("hung"),
            Self::OutOfMemory => f.write_str("ran out of memory"),
            Self::AgentDied(how) => write!(f, "agent died: {how}"),
            Self::WorkloadFailed(what) => write!(f, "workload failed: {what}"),
            Self::TooMuchOutput => f.write_str("printed more than the console may hold"),
            Self::BadStream(how) => write!(f, "result stream damaged: {how}"),
        }
    }
}

/// A failure of the kernel under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectFailure {
    /// How far it got.
    pub stage: Stage,
    /// What ended it.
    pub reason: FailureReason,
    /// The last lines of the console, made printable.
    pub console_tail: String,
}

/// How a workload ended on a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end.
    Completed,
    /// The kernel lacks a feature that the workload needs; the text names it.
    Unsupported(String),
    /// The kernel or the workload failed: how.
    Failed(SubjectFailure),
}

/// The result of one workload in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadResult {
    /// The workload's name in its suite.
    pub workload: String,
    /// Requested operations per iteration.
    pub operations: u64,
    /// The metric's declaration at the time of the run; `None` if an earlier Marvin stored it
    /// without one.
    pub declared: Option<Declared>,
    /// Whether it completed, and why not.
    pub outcome: Outcome,
    /// One value per iteration, in the unit of the machine's kind, per operation; empty unless
    /// completed.
    pub samples: Vec<f64>,
    /// Instructions of each iteration by who executed them, for all its operations; empty if not
    /// counted.
    pub counted: Vec<Region>,
}

/// The environment of a run, as name and value pairs in a fixed order (kernel release, command
/// line, …).
pub type Environment = Vec<(String, String)>;

/// The results of one boot.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The id that it is stored under.
    pub id: RunId,
    /// The id of the build that booted.
    pub build: BuildId,
    /// The id of the machine that it booted on.
    pub machine: MachineId,
    /// The suite that its workloads belong to.
    pub suite: String,
    /// The seed that perturbed it.
    pub seed: u64,
    /// When it began; [`Run::NO_START`] if not known.
    pub started_unix: UnixTime,
    /// The guest's report about itself; empty if it did not get that far.
    pub environment: Environment,
    /// One result per workload, in the suite's order.
    pub results: Vec<WorkloadResult>,
}

/// Prefix of the names in an environment of workloads that the host disturbed each time; the rest
/// is the workload.
const DISTURBED: &str = "disturbed ";

/// Returns the environment's pair for a workload that other work on the host disturbed each time.
#[must_use]
pub fn disturbed_pair(workload: &str, text: String) -> (String, String) {
    (format!("{DISTURBED}{workload}"), text)
}

/// Returns the workload of such a pair; `None` for other names.
#[must_use]
pub fn disturbed_workload(name: &str) -> Option<&str> {
    name.strip_prefix(DISTURBED)
}

/// Name in an environment of what the lab itself took of a processor while it measured.
pub const LAB_COST: &str = "lab cost";

/// Returns whether a pair of an environment says how one run went, and not in what surroundings
/// kernels were measured.
#[must_use]
pub fn is_of_one_run(name: &str) -> bool {
    name == LAB_COST || disturbed_workload(name).is_some()
}

impl Run {
    /// The start of an imported run whose suite stored none.
    pub const NO_START: UnixTime = UnixTime::new(0);

    /// Returns a stored start; `None` if it is not known.
    #[must_use]
    pub fn known_start(started_unix: UnixTime) -> Option<UnixTime> {
        (started_unix != Self::NO_START).then_some(started_unix)
    }
}
