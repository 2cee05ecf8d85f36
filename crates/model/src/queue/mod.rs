//! What waits to be measured: a queued job, what it asks for, its states, and every step from one to the next.
//!
//! Pure: the time is an argument, in seconds since 1970-01-01 UTC. Keeping jobs is the store's work, doing them the lab's.

mod forecast;
mod order;
mod step;
#[cfg(test)]
mod tests;

pub use forecast::{Forecast, forecast};
pub use order::{Why, next_job, why};
pub use step::{Ending, RETRY_S, Refusal, retry_after_s};

use std::fmt;

use crate::KernelName;

/// What a queued job asks for: one kernel through workloads of a suite. Two jobs with equal work are the same job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The kernel.
    pub kernel: KernelName,
    /// The tree of marvin.toml that the kernel's name belongs to; empty where the name says all.
    pub tree: String,
    /// How it is configured where it is built: micro, small, a file.
    pub config: String,
    /// The suite.
    pub suite: String,
    /// Names of the workloads, in the suite's order; `tool:` before those of external tools.
    pub workloads: Vec<String>,
    /// Seeds, from 1 on; one run each.
    pub seeds: u64,
}

/// A job that is to be queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// What it asks for.
    pub work: Work,
    /// The plan of marvin.toml that asked; empty where a person did.
    pub plan: String,
    /// Jobs of higher priority are done first.
    pub priority: i64,
    /// Among jobs of one priority, those of lower rank are done first.
    pub rank: u64,
    /// How often it is tried.
    pub attempts_max: u32,
    /// How long it may take, in seconds.
    pub deadline_s: u64,
}

/// A job in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedJob {
    /// Its number, by which people name it. Never used twice.
    pub number: u64,
    /// What was asked for.
    pub new: NewJob,
    /// How it stands.
    pub state: JobState,
    /// Who claims it counts this up; what an earlier holder says of the job is refused by it.
    pub fence: u64,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it is where it is, in words; may be empty.
    pub reason: String,
    /// When it was queued.
    pub queued_unix: i64,
    /// When it was begun last.
    pub started_unix: Option<i64>,
    /// When it came to its end.
    pub ended_unix: Option<i64>,
}

/// How a queued job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It waits. A worker's claim moves it on.
    Waiting {
        /// Not to be tried before this time.
        from_unix: i64,
    },
    /// A worker has it, until a time. Its end, a cancellation, or the end of the lease moves it on.
    Running {
        /// Who.
        worker: String,
        /// The lease: from then on others may take it.
        until_unix: i64,
    },
    /// It is done: its results are stored, a kernel's failure included.
    Done,
    /// It could not be done, and is not tried again unless somebody says so.
    Failed,
    /// Somebody said that it is not to be done.
    Cancelled,
    /// The plan that asked for it asks for something else now.
    Replaced,
}

impl JobState {
    /// Returns whether nothing more will happen to it by itself.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self, Self::Waiting { .. } | Self::Running { .. })
    }

    /// Returns its word.
    #[must_use]
    pub fn word(&self) -> &'static str {
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
    /// Returns a job as it is queued.
    #[must_use]
    pub fn queued(number: u64, new: NewJob, now_unix: i64) -> Self {
        Self {
            number,
            new,
            state: JobState::Waiting { from_unix: now_unix },
            fence: 0,
            attempts: 0,
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
        let counted = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let workloads = counted(self.workloads.len() as u64, "workload");
        write!(f, ", {}: {workloads}, {}", self.suite, counted(self.seeds, "seed"))
    }
}
