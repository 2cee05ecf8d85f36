//! A worker and the health of machines: failures of the lab in a row quarantine a server, whose jobs lose no attempt by that.

use model::{Ending, Health, QueuedJob, USUAL_MACHINE};

use super::Worker;
use crate::SiteError;

impl Worker<'_> {
    /// Returns the machines that may be given a job now.
    pub(super) fn fit_machines(&self, now_unix: i64) -> Result<Vec<String>, SiteError> {
        let ill: Vec<Health> = self.store.health()?.into_iter().filter(|health| !health.takes_jobs(now_unix)).collect();
        Ok(self.machines.iter().filter(|name| ill.iter().all(|health| health.machine != **name)).cloned().collect())
    }

    /// Has a quarantined machine try this job only.
    pub(super) fn try_machine(&self, job: &QueuedJob) -> Result<(), SiteError> {
        let (name, now) = (&job.new.work.machine, (self.clock)());
        if self.store.health()?.iter().any(|health| health.machine == *name) {
            self.store.change_health(name, |health| health.try_one(now))?;
        }
        Ok(())
    }

    /// Records what an attempt says about its machine, and returns how the attempt counts for the job: the failures of a
    /// quarantined machine are not the job's.
    pub(super) fn judge_machine(&self, job: &QueuedJob, ending: Ending) -> Result<Ending, SiteError> {
        let (name, now) = (&job.new.work.machine, (self.clock)());
        if name == USUAL_MACHINE {
            return Ok(ending);
        }
        let subject = format!("machine:{name}");
        match ending {
            Ending::Infra(reason) => {
                let (before, after) = self.store.change_health(name, |health| health.fail(&reason, now))?;
                if after.quarantined_unix.is_none() {
                    return Ok(Ending::Infra(reason));
                }
                if before.quarantined_unix.is_none() {
                    let body = format!(
                        "{reason}\n\nThe lab failed {} times in a row. Jobs for {name} wait; it tries one again every ten \
                         minutes, and goes on when that ends well.\n",
                        after.failures
                    );
                    self.notify_all(subject, format!("{name} is quarantined"), body)?;
                }
                Ok(Ending::Busy(format!("{name} is quarantined: {reason}")))
            }
            Ending::Done(_) => {
                if self.store.health()?.iter().any(|health| health.machine == *name && health.failures > 0) {
                    let (before, _) = self.store.change_health(name, Health::recover)?;
                    self.store.settle(&subject, now)?;
                    if before.quarantined_unix.is_some() {
                        let body = format!("Job {} ended well.\n", job.number);
                        self.notify_all(format!("{subject}:{now}"), format!("{name} works again"), body)?;
                    }
                }
                Ok(ending)
            }
            _ => Ok(ending),
        }
    }
}
