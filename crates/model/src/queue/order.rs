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
    /// Other jobs come first.
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

/// Returns the next job for a worker, if one is free.
#[must_use]
pub fn next_job(jobs: &[QueuedJob], now_unix: i64) -> Option<&QueuedJob> {
    jobs.iter().filter(|job| job.is_free(now_unix)).min_by_key(|job| place(job))
}

/// Returns the situation of a job; `jobs` are all jobs that are not over.
#[must_use]
pub fn why(job: &QueuedJob, jobs: &[QueuedJob], now_unix: i64) -> Why {
    match job.state {
        JobState::Running { .. } => Why::Running,
        JobState::Waiting { from_unix } if from_unix > now_unix => Why::Later { from_unix },
        JobState::Waiting { .. } => {
            let others = || jobs.iter().filter(|other| other.number != job.number);
            let waits = |other: &&QueuedJob| {
                matches!(other.state, JobState::Waiting { .. }) && other.is_free(now_unix) && place(other) < place(job)
            };
            let waiting = others().filter(waits).count();
            let running = others().filter(|other| matches!(other.state, JobState::Running { .. })).count();
            if waiting + running == 0 { Why::Next } else { Why::Behind { waiting, running } }
        }
        _ => Why::Over,
    }
}
