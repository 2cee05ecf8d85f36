//! The order of jobs, and the reasons why a job waits.

use std::cmp::Reverse;

use super::{JobState, QueuedJob};
use crate::UnixTime;

/// The situation of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is over, for its stored reason.
    Over,
    /// A worker runs it.
    Running,
    /// It failed before and waits for its next attempt.
    Later {
        /// The earliest time.
        from_unix: UnixTime,
    },
    /// Other jobs of its machine come first.
    Behind {
        /// How many of them wait.
        waiting: usize,
        /// Jobs that run on the machine.
        running: usize,
    },
    /// It is the next one.
    Next,
}

/// Where a job stands among those of its machine: by priority, rank and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePosition {
    priority: Reverse<i64>,
    rank: u64,
    number: u64,
}

impl QueuePosition {
    pub(super) fn of_job(job: &QueuedJob) -> Self {
        Self {
            priority: Reverse(job.new.priority),
            rank: job.new.rank,
            number: job.number,
        }
    }
}

/// Returns the situation of a job among those of its machine; `jobs` are all jobs that are not
/// over.
#[must_use]
pub fn why(job: &QueuedJob, jobs: &[QueuedJob], now_unix: UnixTime) -> Why {
    match job.state {
        JobState::Running { .. } => Why::Running,
        JobState::Waiting { from_unix } if from_unix > now_unix => Why::Later { from_unix },
        JobState::Waiting { .. } => {
            let mut waiting = 0;
            let mut running = 0;
            for other in jobs {
                if other.number == job.number || other.new.work.machine != job.new.work.machine {
                    continue;
                }
                match other.state {
                    JobState::Running { .. } => running += 1,
                    JobState::Waiting { .. } => {
                        let is_before = QueuePosition::of_job(other) < QueuePosition::of_job(job);
                        waiting += usize::from(other.is_free(now_unix) && is_before);
                    }
                    _ => {}
                }
            }
            if waiting + running == 0 {
                Why::Next
            } else {
                Why::Behind { waiting, running }
            }
        }
        _ => Why::Over,
    }
}
