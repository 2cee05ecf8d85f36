//! The queue: queued jobs, their work, their states, and every transition between these.
//!
//! Pure: the time is an argument. The store keeps jobs, the lab
//! executes them.

mod check;
mod forecast;
mod order;
#[cfg(test)]
mod simulation_tests;
mod step;
#[cfg(test)]
mod tests;

pub use check::{CHECK_PLAN, check_job};
pub use forecast::{Forecast, forecast};
pub use order::{Why, why};
pub use step::{Ending, LEASE_S, RETRY_S, Refusal, retry_after_s};

use std::fmt;

use crate::{KernelName, UnixTime};

/// The machine of a job that names none.
pub const USUAL_MACHINE: &str = "exact";

/// The work of a queued job: workloads of a suite on one kernel and machine. Two jobs with equal
/// work are the same job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The kernel to measure.
    pub kernel: KernelName,
    /// The tree of marvin.toml that the kernel's name belongs to; empty if the name is complete.
    pub tree: String,
    /// The kernel config of its build: micro, smp, small, a file.
    pub config: String,
    /// The suite whose workloads run.
    pub suite: String,
    /// Names of the workloads, in the suite's order; `tool:` marks external tools.
    pub workloads: Vec<String>,
    /// Seeds, or boots on a noisy machine, from 1 on; one run each.
    pub seeds: u64,
    /// The machine: [`USUAL_MACHINE`], or a server of marvin.toml.
    pub machine: String,
}

/// A job to queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// What is to be measured.
    pub work: Work,
    /// The plan of marvin.toml that requested it; empty if a user did.
    pub plan: String,
    /// Jobs with higher priority run first.
    pub priority: i64,
    /// Within a priority, jobs with lower rank run first.
    pub rank: u64,
    /// Attempts after which a job of a failing lab fails.
    pub attempts_max: u32,
    /// The time limit, in seconds.
    pub deadline_s: u64,
}

/// A job in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedJob {
    /// Its number, which users see. Never used twice.
    pub number: u64,
    /// The job as it was queued.
    pub new: NewJob,
    /// Where it stands: waiting, running or over.
    pub state: JobState,
    /// Incremented by each claim, so that reports of earlier holders are refused.
    pub fence: u64,
    /// The number of attempts.
    pub attempts: u32,
    /// How many of its workers were killed since an attempt last ended.
    pub kills: u32,
    /// The reason of its state, in words; may be empty.
    pub reason: String,
    /// When it was queued.
    pub queued_unix: UnixTime,
    /// When it was last begun.
    pub started_unix: Option<UnixTime>,
    /// When it ended.
    pub ended_unix: Option<UnixTime>,
}

/// The state of a queued job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Waiting. A worker's claim ends this state.
    Waiting {
        /// The earliest time of the next attempt.
        from_unix: UnixTime,
    },
    /// Claimed by a worker until a time. The end of the job, a cancellation or the end of the lease
    /// ends this state.
    Running {
        /// The name of the worker that claimed it.
        worker: String,
        /// The end of the lease: then other workers may take the job.
        until_unix: UnixTime,
    },
    /// Done: its results are stored, kernel failures included.
    Done,
    /// Failed; not retried unless a user requeues it.
    Failed,
    /// Cancelled by a user.
    Cancelled,
    /// Replaced: its plan now requests something else.
    Replaced,
}

impl JobState {
    /// Returns whether its state is final unless a user acts.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self, Self::Waiting { .. } | Self::Running { .. })
    }

    /// Returns the name in lists and JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Waiting { .. } => "waiting",
            Self::Running { .. } => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Replaced => "replaced",
        }
    }
}

impl QueuedJob {
    /// Returns a new job as it is queued.
    #[must_use]
    pub fn queued(number: u64, new: NewJob, now_unix: UnixTime) -> Self {
        Self {
            number,
            new,
            state: JobState::Waiting {
                from_unix: now_unix,
            },
            fence: 0,
            attempts: 0,
            kills: 0,
            reason: String::new(),
            queued_unix: now_unix,
            started_unix: None,
            ended_unix: None,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kernel)?;
        if !self.tree.is_empty() {
            write!(f, " of {}", self.tree)?;
        }
        let counted =
            |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let workloads = counted(self.workloads.len() as u64, "workload");
        if self.machine == USUAL_MACHINE {
            write!(
                f,
                ", {}: {workloads}, {}",
                self.suite,
                counted(self.seeds, "seed")
            )
        } else {
            write!(
                f,
                ", {}: {workloads}, {} on {}",
                self.suite,
                counted(self.seeds, "boot"),
                self.machine
            )
        }
    }
}
