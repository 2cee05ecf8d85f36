//! Which job is next, and why another is not.

use std::cmp::Reverse;

use super::{JobState, QueuedJob};

/// Why a job is where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is over, for the reason that it has.
    Over,
    /// A worker has it.
    Running,
    /// It failed before and is tried again from a time on.
    Later {
        /// When.
        from_unix: i64,
    },
    /// Others come first.
    Behind {
        /// How many of them wait.
        waiting: usize,
        /// How many run.
        running: usize,
    },
    /// It is the next one that a worker takes.
    Next,
}

/// What decides the order: priority, rank, number.
pub(super) fn place(job: &QueuedJob) -> (Reverse<i64>, u64, u64) {
    (Reverse(job.new.priority), job.new.rank, job.number)
}

/// Returns the job that a worker takes next, if one is free.
#[must_use]
pub fn next_job(jobs: &[QueuedJob], now_unix: i64) -> Option<&QueuedJob> {
    jobs.iter().filter(|job| job.is_free(now_unix)).min_by_key(|job| place(job))
}

/// Says why a job is where it is; `jobs` are all that are not over.
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
