//! A worker and the health of machines: failures of the lab in a row quarantine a server, whose
//! jobs lose no attempt by that.

use model::{
    Ending, Health, QueuedJob, ServerSettings, USUAL_MACHINE, UnixTime, check_job, quarantine_of,
    reservation_of,
};
use store::{Listed, QueueError, Queued, Store};

use super::{Attempt, Worker};
use crate::ServiceError;

/// Time between two looks for servers that were not measured on for long (s): each reads the whole
/// queue.
const CHECK_LOOK_S: u64 = 60;

/// Returns which of these machines may be given a job now.
pub(crate) fn fit_machines(
    store: &Store,
    machines: &[String],
    now_unix: UnixTime,
) -> Result<Vec<String>, ServiceError> {
    let ill: Vec<Health> = store
        .health()?
        .into_iter()
        .filter(|health| !health.takes_jobs(now_unix))
        .collect();
    Ok(machines
        .iter()
        .filter(|name| ill.iter().all(|health| health.machine != **name))
        .cloned()
        .collect())
}

/// Has a quarantined machine try this job only.
pub(crate) fn try_machine(
    store: &Store,
    job: &QueuedJob,
    now_unix: UnixTime,
) -> Result<(), ServiceError> {
    let name = &job.new.work.machine;
    if quarantine_of(name, &store.health()?).is_some() {
        store.change_health(name, |health| health.try_one(now_unix))?;
    }
    Ok(())
}

/// Looks for servers that had no completed job for long.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// When it looked last.
    looked_unix: Option<UnixTime>,
}

impl Checks {
    /// Queues a job for each of these servers that is free and was not measured on for its
    /// `check_every`; returns whether there is one now. `machines` are those whose jobs are
    /// taken here.
    pub(crate) fn queue(
        &mut self,
        store: &Store,
        servers: &[ServerSettings],
        machines: &[String],
        now_unix: UnixTime,
    ) -> Result<bool, ServiceError> {
        let mut servers = servers
            .iter()
            .filter(|server| machines.contains(&server.name));
        let is_early = self
            .looked_unix
            .is_some_and(|last| now_unix < last.plus_seconds(CHECK_LOOK_S));
        if is_early || !servers.clone().any(|server| server.check_every_s.is_some()) {
            return Ok(false);
        }
        self.looked_unix = Some(now_unix);
        let jobs = store.queued_jobs(Listed::All)?;
        let reserved = store.reservations(now_unix)?;
        servers.try_fold(false, |is_queued, server| {
            let Some(every_s) = server.check_every_s else {
                return Ok(is_queued);
            };
            let is_free = reservation_of(&server.name, &reserved, now_unix).is_none();
            let Some(new) = check_job(&server.name, every_s, &jobs, now_unix).filter(|_| is_free)
            else {
                return Ok(is_queued);
            };
            if let Queued::Known(known) = store.queue_job(&new, now_unix)? {
                // The check before. Another worker may have queued it meanwhile.
                return match store.change_job(known.number, |job| job.again(new.clone(), now_unix))
                {
                    Ok(_) | Err(QueueError::Refused(_)) => Ok(true),
                    Err(error) => Err(error.into()),
                };
            }
            Ok(true)
        })
    }
}

impl Worker<'_> {
    /// Records what an attempt says about its machine, and returns how the attempt counts for the
    /// job: the failures of a quarantined machine are not the job's.
    pub(super) fn judge_machine(
        &self,
        job: &QueuedJob,
        attempt: &Attempt,
    ) -> Result<Ending, ServiceError> {
        let name = &job.new.work.machine;
        let now = (self.clock)();
        let ending = &attempt.ending;
        match ending {
            _ if name == USUAL_MACHINE => {}
            Ending::Lab(reason) if attempt.machine_failed => {
                let (before, after) = self
                    .store
                    .change_health(name, |health| health.fail(reason, now))?;
                if after.quarantined_unix.is_some() {
                    if before.quarantined_unix.is_none() {
                        self.notify_quarantined(&after)?;
                    }
                    return Ok(Ending::Busy(format!("{name} is quarantined: {reason}")));
                }
            }
            Ending::Done(_) => self.recover(job)?,
            _ => {}
        }
        Ok(ending.clone())
    }

    fn recover(&self, job: &QueuedJob) -> Result<(), ServiceError> {
        let name = &job.new.work.machine;
        let now = (self.clock)();
        if self
            .store
            .health()?
            .iter()
            .all(|health| health.machine != *name || health.failures == 0)
        {
            return Ok(());
        }
        let (before, _) = self.store.change_health(name, Health::recover)?;
        if before.quarantined_unix.is_some() {
            self.store.settle(&subject(name), now)?;
            let headline = format!("{name} works again");
            let body = format!("Job {} ended well.\n", job.number);
            self.notify_all(
                format!("{}:{}", subject(name), now.seconds()),
                headline,
                body,
            )?;
        }
        Ok(())
    }

    fn notify_quarantined(&self, ill: &Health) -> Result<(), ServiceError> {
        let Health {
            machine,
            failures,
            reason,
            ..
        } = ill;
        let body = format!(
            "{reason}\n\nIt failed {failures} times in a row. Jobs for {machine} wait; it tries one again every ten minutes, \
             and goes on when that ends well.\n"
        );
        self.notify_all(subject(machine), format!("{machine} is quarantined"), body)
    }
}

/// Returns the subject of the notice of a quarantined machine.
fn subject(machine: &str) -> String {
    format!("machine:{machine}")
}
