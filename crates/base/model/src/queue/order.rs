//! The order of jobs, and the reasons why a job waits.

use std::cmp::Reverse;

use super::{JobState, QueuedJob};

/// The situation of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is over, for its stored reason.
    Over,
    /// A worker runs it.
    Running,
    /// It failed before and waits for its next attempt.
    Later {
        /// When.
        from_unix: i64,
    },
    /// Other jobs of its machine come first.
    Behind {
        /// How many of them wait.
        waiting: usize,
        /// How many run.
        running: usize,
    },
    /// It is the next one.
    Next,
}

/// The sort key: priority, rank, number.
pub(super) fn place(job: &QueuedJob) -> (Reverse<i64>, u64, u64) {
    (Reverse(job.new.priority), job.new.rank, job.number)
}

/// Returns the situation of a job among those of its machine; `jobs` are all jobs that are not
/// over.
#[must_use]
pub fn why(job: &QueuedJob, jobs: &[QueuedJob], now_unix: i64) -> Why {
    match job.state {
        JobState::Running { .. } => Why::Running,
        JobState::Waiting { from_unix } if from_unix > now_unix => Why::Later { from_unix },
        JobState::Waiting { .. } => {
            let is_other = |other: &&QueuedJob| {
                other.number != job.number && other.new.work.machine == job.new.work.machine
            };
            let others = || jobs.iter().filter(is_other);
            let waits = |other: &&QueuedJob| {
                matches!(other.state, JobState::Waiting { .. })
                    && other.is_free(now_unix)
                    && place(other) < place(job)
            };
            let waiting = others().filter(waits).count();
            let running = others()
                .filter(|other| matches!(other.state, JobState::Running { .. }))
                .count();
            if waiting + running == 0 {
                Why::Next
            } else {
                Why::Behind { waiting, running }
            }
        }
        _ => Why::Over,
    }
}
