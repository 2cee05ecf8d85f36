//! The transitions of a queued job between states, and the refused ones.

use super::{JobState, QueuedJob};
use crate::UnixTime;

/// Seconds between the first failure and the next attempt; each further wait is four times as long.
pub const RETRY_S: u64 = 60;
const RETRY_S_MAX: u64 = 6 * 3600;
/// After so many killed workers in a row a job lets the others pass.
const KILLS_AT_ONCE: u32 = 2;
/// The longest wait after a killed worker.
const KILLED_S_MAX: u64 = 3600;
/// How long a lease lasts unless its worker renews it (seconds): others take the job of a worker
/// that is silent so long.
pub const LEASE_S: u64 = 120;
/// Seconds until the next attempt if data directory or machine was in use.
const BUSY_S: u64 = 20;

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The results are stored. The text describes the kernel's failure, if any.
    Done(String),
    /// The job itself is wrong: another attempt would end the same.
    Wrong(String),
    /// The lab failed, not the kernel: the reason.
    Lab(String),
    /// It exceeded its time limit, and the worker ended it.
    Overran,
    /// Another process measures in the data directory, another user has the machine, or the host has
    /// no emulator: who or what. Does not count as an attempt.
    Busy(String),
    /// Its worker was asked to stop, and gives the job back with its lease: it waits from now on.
    /// Counts neither as an attempt nor as a killed worker.
    GivenBack,
}

/// Why a transition is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The job's state does not allow it.
    #[error("job {number} is {state}{hint}")]
    State {
        /// The number of the job.
        number: u64,
        /// The word for its state.
        state: &'static str,
        /// A remedy that begins with a colon, or empty.
        hint: &'static str,
    },
    /// Another worker has claimed it since.
    #[error("job {0} is no longer this worker's: its lease ended, or it was cancelled")]
    Fenced(u64),
}

/// Returns the seconds to wait after this many attempts.
#[must_use]
pub fn retry_after_s(attempts: u32) -> u64 {
    4_u64
        .saturating_pow(attempts.saturating_sub(1))
        .saturating_mul(RETRY_S)
        .min(RETRY_S_MAX)
}

impl QueuedJob {
    fn make_refusal(&self, hint: &'static str) -> Refusal {
        Refusal::State {
            number: self.number,
            state: self.state.name(),
            hint,
        }
    }

    /// Returns whether a worker may take it now.
    #[must_use]
    pub fn is_free(&self, now_unix: UnixTime) -> bool {
        matches!(self.state, JobState::Waiting { from_unix } if from_unix <= now_unix)
    }

    /// Returns whether its lease is over: its worker is dead or hangs.
    #[must_use]
    pub fn is_stale(&self, now_unix: UnixTime) -> bool {
        matches!(self.state, JobState::Running { until_unix, .. } if until_unix <= now_unix)
    }

    /// Assigns it to a worker.
    ///
    /// # Errors
    /// If it is not free.
    pub fn claim(&mut self, worker: &str, now_unix: UnixTime) -> Result<(), Refusal> {
        if !self.is_free(now_unix) {
            return Err(self.make_refusal(""));
        }
        self.state = JobState::Running {
            worker: worker.to_owned(),
            until_unix: now_unix.plus_seconds(LEASE_S),
        };
        self.fence += 1;
        self.attempts += 1;
        self.started_unix = Some(now_unix);
        Ok(())
    }

    /// Renews its worker's lease.
    ///
    /// # Errors
    /// If it is no longer this worker's.
    pub fn renew(&mut self, fence: u64, now_unix: UnixTime) -> Result<(), Refusal> {
        match &mut self.state {
            JobState::Running { until_unix, .. } if fence == self.fence => {
                *until_unix = now_unix.plus_seconds(LEASE_S).max(*until_unix);
                Ok(())
            }
            _ => Err(Refusal::Fenced(self.number)),
        }
    }

    /// Requeues the job of a dead worker: its lease is over, or its worker is known to have ended.
    /// The lab failed and not the job, so this does not count as an attempt, and the next
    /// worker starts at once; but a job that kills each of its workers, for example by the
    /// host's memory, waits from the third on. Returns whether it was requeued.
    pub fn take_back(&mut self, now_unix: UnixTime) -> bool {
        if !matches!(self.state, JobState::Running { .. }) {
            return false;
        }
        self.fence += 1;
        self.attempts = self.attempts.saturating_sub(1);
        self.kills = self.kills.saturating_add(1);
        let late = self.kills.saturating_sub(KILLS_AT_ONCE);
        let wait_s = if late == 0 {
            0
        } else {
            retry_after_s(late).min(KILLED_S_MAX)
        };
        self.reason = match self.kills {
            1 => "its worker was killed".to_owned(),
            kills => format!("its workers were killed, {kills} in a row"),
        };
        self.state = JobState::Waiting {
            from_unix: now_unix.plus_seconds(wait_s),
        };
        true
    }

    /// Records the outcome of an attempt.
    ///
    /// # Errors
    /// If another worker has claimed it since.
    pub fn end(&mut self, fence: u64, ending: Ending, now_unix: UnixTime) -> Result<(), Refusal> {
        if fence != self.fence || !matches!(self.state, JobState::Running { .. }) {
            return Err(Refusal::Fenced(self.number));
        }
        if !matches!(ending, Ending::Busy(_) | Ending::GivenBack) {
            self.kills = 0;
        }
        match ending {
            Ending::Done(reason) => self.over(JobState::Done, reason, now_unix),
            Ending::Wrong(reason) => self.over(JobState::Failed, reason, now_unix),
            Ending::Lab(reason) => self.retry_or_fail(&reason, now_unix),
            Ending::Overran => {
                let reason = format!("did not end within {} s", self.new.deadline_s);
                self.retry_or_fail(&reason, now_unix);
            }
            Ending::Busy(who) => {
                self.attempts = self.attempts.saturating_sub(1);
                self.reason = who;
                self.state = JobState::Waiting {
                    from_unix: now_unix.plus_seconds(BUSY_S),
                };
            }
            Ending::GivenBack => {
                self.attempts = self.attempts.saturating_sub(1);
                "its worker was stopped".clone_into(&mut self.reason);
                self.state = JobState::Waiting {
                    from_unix: now_unix,
                };
            }
        }
        Ok(())
    }

    fn over(&mut self, state: JobState, reason: String, now_unix: UnixTime) {
        (self.state, self.reason, self.ended_unix) = (state, reason, Some(now_unix));
    }

    fn retry_or_fail(&mut self, reason: &str, now_unix: UnixTime) {
        if self.attempts >= self.new.attempts_max {
            let reason = format!("{reason} (tried {} times)", self.attempts);
            return self.over(JobState::Failed, reason, now_unix);
        }
        reason.clone_into(&mut self.reason);
        self.state = JobState::Waiting {
            from_unix: now_unix.plus_seconds(retry_after_s(self.attempts)),
        };
    }

    /// Cancels it; its worker learns of that at its next renewal.
    ///
    /// # Errors
    /// If it is over already.
    pub fn cancel(&mut self, now_unix: UnixTime) -> Result<(), Refusal> {
        if self.state.is_over() {
            return Err(self.make_refusal(": there is nothing to cancel"));
        }
        self.fence += 1;
        self.over(JobState::Cancelled, "cancelled by hand".into(), now_unix);
        Ok(())
    }

    /// Marks it as replaced by its plan. Only waiting jobs can be replaced. Returns whether it was.
    pub fn replace(&mut self, now_unix: UnixTime) -> bool {
        let waits = matches!(self.state, JobState::Waiting { .. });
        if waits {
            let reason = format!("the plan {} asks for something else now", self.new.plan);
            self.over(JobState::Replaced, reason, now_unix);
        }
        waits
    }

    /// Requeues it after its end, with the current request.
    ///
    /// # Errors
    /// If it is not over.
    pub fn again(&mut self, new: super::NewJob, now_unix: UnixTime) -> Result<(), Refusal> {
        if !self.state.is_over() {
            return Err(self.make_refusal(": it is in the queue already"));
        }
        let fence = self.fence;
        *self = Self {
            fence,
            ..Self::queued(self.number, new, now_unix)
        };
        Ok(())
    }

    /// Has it wait for no time any more: a user wants it now.
    pub fn hurry(&mut self, now_unix: UnixTime) {
        if let JobState::Waiting { from_unix } = &mut self.state {
            *from_unix = now_unix.min(*from_unix);
        }
    }

    /// Changes its priority.
    ///
    /// # Errors
    /// If it does not wait.
    pub fn reprioritise(&mut self, priority: i64) -> Result<(), Refusal> {
        if !matches!(self.state, JobState::Waiting { .. }) {
            return Err(self.make_refusal(": only what waits can be moved"));
        }
        self.new.priority = priority;
        Ok(())
    }
}
