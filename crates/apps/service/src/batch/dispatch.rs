//! The dispatcher: sends free jobs of the queue to the batch system, and follows what becomes of
//! them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

use model::{Ending, JobState, MarvinConfig, QueuedJob, Refusal, UnixTime, quarantine_of};
use store::{Listed, Notice, QueueError, Store};

use super::decide::{Step, View, decide, next_name};
use super::{BatchError, BatchJob, BatchState, BatchSystem, Submission};
use crate::notify::raise_notice;
use crate::work::{Checks, fit_machines, notice_of_failed, try_machine};
use crate::{ServiceError, Until, WorkEvent, Worked};

/// Interval between two looks at the batch system.
const LOOK: Duration = Duration::from_secs(5);
/// Interval between two looks at the queue, which knows first that a job has ended.
const GLANCE: Duration = Duration::from_millis(500);
/// A batch system that is silent for so long is reported (s).
const SILENT_S: u64 = 600;
/// What a batch job may take beyond its job's time: its start, and the queue's answers (min).
const GRACE_MIN: u64 = 5;

/// An event of a dispatcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchEvent {
    /// A job was sent, and has this number in the batch system.
    Sent(QueuedJob, String),
    /// The batch system holds a job, for this reason.
    Held(QueuedJob, String),
    /// The batch system does not answer; at each try.
    Silent(String),
    /// The batch system answers again.
    Answers,
    /// What workers report, too: a job was requeued or has ended, or no job is free.
    Work(WorkEvent),
}

/// Sends jobs to a batch system.
pub struct Dispatcher<'a> {
    /// The queue, which the system's hosts reach too.
    pub store: &'a Store,
    pub system: &'a dyn BatchSystem,
    /// The machines whose jobs it sends.
    pub machines: &'a [String],
    /// The command of a batch job, without the job's number.
    pub command: &'a [OsString],
    /// The most jobs in the batch system at once.
    pub jobs_max: usize,
    /// The channels for notices.
    pub settings: &'a MarvinConfig,
    /// Returns the current time.
    pub clock: &'a dyn Fn() -> UnixTime,
    pub notify: &'a dyn Fn(DispatchEvent),
}

impl std::fmt::Debug for Dispatcher<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("system", &self.system)
            .finish_non_exhaustive()
    }
}

/// What a dispatcher remembers; all of it may be forgotten.
#[derive(Default)]
struct Followed {
    /// Jobs in the batch system.
    sent: BTreeSet<u64>,
    /// Batch jobs that were reported as held.
    held: BTreeSet<String>,
    /// Since when the batch system is silent.
    silent_unix: Option<UnixTime>,
    /// Whether it did not answer since the last look.
    is_silent_now: bool,
    worked: Worked,
}

impl Followed {
    fn is_silent_for_long(&self, now_unix: UnixTime) -> bool {
        self.silent_unix
            .is_some_and(|since| now_unix >= since.plus_seconds(SILENT_S))
    }
}

/// Returns the open job with a number; a step may speak of one that has ended since.
fn find_job(open: &[QueuedJob], number: u64) -> Option<&QueuedJob> {
    open.iter().find(|job| job.number == number)
}

impl Dispatcher<'_> {
    /// Dispatches.
    ///
    /// # Errors
    /// If the store fails, or a batch system is silent for ten minutes and the dispatcher is to end
    /// when no job is free. The next dispatcher continues from what queue and batch system
    /// know.
    pub fn dispatch(&self, until: Until) -> Result<Worked, ServiceError> {
        let mut followed = Followed::default();
        let mut is_idle = false;
        let mut checks = Checks::default();
        loop {
            let taken_back = self.store.take_back_jobs(None, (self.clock)())?;
            taken_back
                .into_iter()
                .for_each(|job| (self.notify)(DispatchEvent::Work(WorkEvent::Requeued(job))));
            followed.is_silent_now = false;
            match self.system.list() {
                Err(error) => {
                    self.silent(&error, &mut followed)?;
                    if until == Until::Drained && followed.is_silent_for_long((self.clock)()) {
                        return Err(error.into());
                    }
                }
                Ok(batch) => {
                    checks.queue(
                        self.store,
                        &self.settings.servers,
                        self.machines,
                        (self.clock)(),
                    )?;
                    let busy = self.look(&batch, &mut followed)?;
                    // It may list its jobs and take none.
                    if !followed.is_silent_now && followed.silent_unix.take().is_some() {
                        (self.notify)(DispatchEvent::Answers);
                    }
                    if !busy && !std::mem::replace(&mut is_idle, true) {
                        (self.notify)(DispatchEvent::Work(WorkEvent::Idle(
                            self.store.queued_jobs(Listed::Open)?.len(),
                        )));
                    }
                    is_idle = !busy;
                    if is_idle && until == Until::Drained {
                        return Ok(followed.worked);
                    }
                }
            }
            self.rest(&followed)?;
        }
    }

    /// Waits until the next look, or until a job has ended that is in the batch system.
    fn rest(&self, followed: &Followed) -> Result<(), ServiceError> {
        for _ in 0..LOOK.as_millis() / GLANCE.as_millis() {
            std::thread::sleep(GLANCE);
            for number in &followed.sent {
                if self.store.queued_job(*number)?.state.is_over() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Does what there is to do now; returns whether a job is in the batch system.
    fn look(&self, batch: &[BatchJob], followed: &mut Followed) -> Result<bool, ServiceError> {
        let open = self.store.queued_jobs(Listed::Open)?;
        let now = (self.clock)();
        self.cancel_unwanted(batch, &open)?;
        let machines = fit_machines(self.store, self.machines, now)?;
        let health = self.store.health()?;
        let trying: Vec<String> = machines
            .iter()
            .filter(|name| quarantine_of(name, &health).is_some())
            .cloned()
            .collect();
        let jobs_max = self.jobs_max;
        let view = View {
            open: &open,
            batch,
            machines: &machines,
            trying: &trying,
            jobs_max,
            now_unix: now,
        };
        let mut is_busy = false;
        for job in &open {
            if batch
                .iter()
                .any(|one| one.state != BatchState::Ended && one.is_for(job))
            {
                is_busy = true;
                followed.sent.insert(job.number);
            }
            // The batch system may have forgotten it already, or list it late: the queue knows.
            is_busy |= followed.sent.contains(&job.number)
                && matches!(job.state, JobState::Running { .. });
        }
        for step in decide(view) {
            is_busy |= self.take_step(step, &open, followed)?;
        }
        self.report_ended(&open, followed)?;
        Ok(is_busy)
    }

    /// Does one step; returns whether a job was sent.
    fn take_step(
        &self,
        step: Step,
        open: &[QueuedJob],
        followed: &mut Followed,
    ) -> Result<bool, ServiceError> {
        match step {
            Step::Submit(number) => {
                let Some(job) = find_job(open, number) else {
                    return Ok(false);
                };
                try_machine(self.store, job, (self.clock)())?;
                match self.submit(job) {
                    Ok(id) => {
                        followed.sent.insert(number);
                        (self.notify)(DispatchEvent::Sent(job.clone(), id));
                        return Ok(true);
                    }
                    Err(error @ BatchError::Refused { .. }) => {
                        self.fail(job, &error.to_string(), followed)?;
                    }
                    Err(silent) => self.silent(&silent, followed)?,
                }
            }
            Step::Fail(number, why) => {
                if let Some(job) = find_job(open, number) {
                    self.fail(job, &why, followed)?;
                }
            }
            Step::Report(number, held) => {
                if let Some(job) = find_job(open, number)
                    && followed.held.insert(held.name.clone())
                {
                    self.report_held(job, &held)?;
                }
            }
        }
        Ok(false)
    }

    fn submit(&self, job: &QueuedJob) -> Result<String, BatchError> {
        let command: Vec<OsString> = self
            .command
            .iter()
            .cloned()
            .chain([job.number.to_string().into()])
            .collect();
        self.system.submit(&Submission {
            name: &next_name(job),
            about: &job.new.work.to_string(),
            machine: &job.new.work.machine,
            minutes: job.new.deadline_s.div_ceil(60) + GRACE_MIN,
            command: &command,
        })
    }

    /// Counts an attempt as failed that never began, unless a worker has taken the job meanwhile.
    fn fail(
        &self,
        job: &QueuedJob,
        why: &str,
        followed: &mut Followed,
    ) -> Result<(), ServiceError> {
        let fence = job.fence;
        let now = (self.clock)();
        let ended = self.store.change_job(job.number, |job| {
            if job.fence != fence {
                return Err(Refusal::Fenced(job.number));
            }
            job.claim(self.system.name(), now)?;
            job.end(job.fence, Ending::Lab(why.to_owned()), now)
        });
        match ended {
            Ok(job) => {
                if job.state == JobState::Failed {
                    raise_notice(
                        self.store,
                        &self.settings.channels,
                        &notice_of_failed(&job, now),
                    )?;
                }
                followed.sent.insert(job.number);
                Ok(())
            }
            Err(QueueError::Refused(_) | QueueError::NoJob(_) | QueueError::Removed(_)) => Ok(()),
            Err(QueueError::Store(error)) => Err(error.into()),
        }
    }

    /// Cancels batch jobs whose jobs a user has cancelled.
    fn cancel_unwanted(&self, batch: &[BatchJob], open: &[QueuedJob]) -> Result<(), ServiceError> {
        for one in batch.iter().filter(|one| one.state != BatchState::Ended) {
            if open.iter().any(|job| one.is_for(job)) {
                continue;
            }
            let Some(number) = one
                .name
                .split('-')
                .nth(1)
                .and_then(|word| word.parse().ok())
            else {
                continue;
            };
            match self.store.queued_job(number) {
                Ok(job) if !one.is_for(&job) => {}
                // One that is done ends by itself.
                Ok(job) if matches!(job.state, JobState::Cancelled | JobState::Replaced) => {
                    // The next look tries again.
                    drop(self.system.cancel(&one.id));
                }
                Ok(_)
                | Err(QueueError::NoJob(_) | QueueError::Removed(_) | QueueError::Refused(_)) => {}
                Err(QueueError::Store(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reports jobs that were in the batch system and are no longer open, or wait for another
    /// attempt.
    fn report_ended(
        &self,
        open: &[QueuedJob],
        followed: &mut Followed,
    ) -> Result<(), ServiceError> {
        let now = (self.clock)();
        for number in followed.sent.clone() {
            let job = self.store.queued_job(number)?;
            let waits = matches!(job.state, JobState::Waiting { .. }) && !job.is_free(now);
            if open.iter().any(|one| one.number == number) && !waits && !job.state.is_over() {
                continue;
            }
            followed.sent.remove(&number);
            let worked = &mut followed.worked;
            match job.state {
                JobState::Done => {
                    worked.done += 1;
                    worked.kernels_failed += usize::from(!job.reason.is_empty());
                }
                JobState::Failed => worked.failed += 1,
                _ => {}
            }
            (self.notify)(DispatchEvent::Work(WorkEvent::Ended(job)));
        }
        Ok(())
    }

    fn report_held(&self, job: &QueuedJob, held: &BatchJob) -> Result<(), ServiceError> {
        (self.notify)(DispatchEvent::Held(job.clone(), held.about.clone()));
        let number = job.number;
        let system = self.system.name();
        let body = format!(
            "{}\n{system} holds its batch job {} until it is released: {}\n",
            job.new.work, held.id, held.about
        );
        self.raise(
            format!("held:{}", held.name),
            format!("job {number} is held by {system}"),
            body,
        )
    }

    fn silent(&self, error: &BatchError, followed: &mut Followed) -> Result<(), ServiceError> {
        let now = (self.clock)();
        followed.is_silent_now = true;
        (self.notify)(DispatchEvent::Silent(error.to_string()));
        let Some(since) = followed.silent_unix else {
            followed.silent_unix = Some(now);
            return Ok(());
        };
        if !followed.is_silent_for_long(now) {
            return Ok(());
        }
        let system = self.system.name();
        let body = format!("{error}\n\nJobs wait; those that run there go on.\n");
        self.raise(
            format!("silent:{system}:{}", since.seconds()),
            format!("{system} does not answer"),
            body,
        )
    }

    fn raise(&self, subject: String, headline: String, body: String) -> Result<(), ServiceError> {
        let notice = Notice {
            subject,
            headline,
            body,
            raised_unix: (self.clock)(),
        };
        raise_notice(self.store, &self.settings.channels, &notice)
    }
}

#[cfg(test)]
mod tests;
