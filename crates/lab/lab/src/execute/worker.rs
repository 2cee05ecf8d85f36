//! One thread of an execution: it takes jobs, boots builds, and stores each run after its last job.

use machine::{BootOutcome, MachineError};

use super::{Execution, MODULES};
use crate::dump::is_death;
use crate::estimate::BOOT;
use crate::interrupt::{self, is_interrupted};
use crate::job::with_retries;
use crate::plan::Item;
use crate::run_in_progress::RunInProgress;
use crate::{Event, LabError, Replicate};

/// Name of the artifact with what a build printed until jobs could start, or until it failed.
const BOOT_CONSOLE: &str = "boot.console";

impl Execution<'_> {
    pub(super) fn work(&self) -> Result<(), LabError> {
        loop {
            let item = self.queue.lock().pop_front();
            let Some(item) = item else { return Ok(()) };
            if let Err(error) = self.run_job(item) {
                // The other threads finish their jobs and store complete runs.
                self.queue.lock().clear();
                return Err(error);
            }
        }
    }

    /// Runs one job of the queue: boots its build unless another thread has, measures, and stores
    /// the run after its last job.
    fn run_job(&self, item: Item) -> Result<(), LabError> {
        let run = &self.runs_in_progress[item.run];
        let notify = self.context.notify;
        if !run.begin(|| !self.unbootable.lock().contains(&run.booted_as())) {
            self.skip(run, item.job);
            notify(Event::JobSkipped);
            return Ok(());
        }
        // The first thread boots, the others wait for it: a run is one boot, whichever thread
        // measures which of its jobs.
        let boot = run.boot(|| self.boot(run))?;
        match &*boot {
            BootOutcome::Ready(start) => {
                // All jobs of the run share the boot, so its console is stored with the first one.
                if item.job == 0 && !start.boot_console().is_empty() {
                    run.progress()
                        .consoles
                        .push((BOOT_CONSOLE.into(), start.boot_console().to_vec()));
                }
                // The boot, which other threads waited for, is a part of its own.
                let part = self.forecast.begin();
                self.measure(run, item.job, &**start)?;
                run.progress()
                    .times
                    .push(self.forecast.end(run.job_name(item.job), &part));
            }
            BootOutcome::Unsupported(why) => {
                self.skip(run, item.job);
                let results = run
                    .brought(item.job)
                    .map(|(n, workload)| (n, run.unsupported(workload, why)));
                run.progress().results.extend(results);
            }
            BootOutcome::KernelFailed { failure, console } => {
                // Each job of this run gets the failure as its result; other replicates are
                // skipped, as `known_unbootable` does for those of earlier runs.
                self.forecast.skip(run.job_name(item.job));
                self.unbootable.lock().insert(run.booted_as());
                let dump = (item.job == 0 && is_death(&failure.reason)).then(|| {
                    self.dump(run, "boot", || {
                        run.placement.boot_to_death(run.build, run.replicate)
                    })
                });
                let mut progress = run.progress();
                progress.consoles.extend(dump.flatten());
                if item.job == 0 {
                    progress
                        .consoles
                        .push((BOOT_CONSOLE.into(), console.clone()));
                }
                let results = run
                    .brought(item.job)
                    .map(|(n, workload)| (n, run.not_booted(workload, failure)));
                progress.results.extend(results);
            }
        }
        // Before the job counts as done: the last one releases the machine, which works only while
        // no other thread holds the boot.
        drop(boot);
        if is_interrupted() {
            // What is printed from here on might not be stored.
            interrupt::wait_for_the_end();
        }
        let workload = run.job_name(item.job).to_owned();
        let build = run.build.id.clone();
        let version = run.build.version.clone();
        let value = run.value(item.job);
        notify(Event::RemainingTime {
            seconds: self.forecast.left_s(),
        });
        notify(Event::Done {
            build,
            version,
            replicate: self.replicate_of(run),
            workload,
            value,
        });
        if run.finish_one() {
            // Stored first: a machine that cannot be released must not cost the results.
            self.store_run(run)?;
            run.release()?;
        }
        Ok(())
    }

    /// Returns a run's replicate for messages.
    pub(super) fn replicate_of(&self, run: &RunInProgress<'_>) -> Replicate {
        Replicate {
            noun: self.context.machine_pool.plain().capabilities().replicate(),
            number: run.replicate,
        }
    }

    /// Removes a job from the forecast; the first job also removes the boot.
    fn skip(&self, run: &RunInProgress<'_>, job: usize) {
        self.forecast.skip(run.job_name(job));
        if job == 0 {
            self.forecast.skip(BOOT);
        }
    }

    /// Boots the build of a run.
    fn boot(&self, run: &RunInProgress<'_>) -> Result<BootOutcome, LabError> {
        // Before the boot, as a run that failed to boot has to say its modules too: with others the
        // build may boot.
        if let Some(hash) = run.placement.modules_hash() {
            run.progress()
                .environment
                .push((MODULES.into(), hash.to_owned()));
        }
        // Without the events of a boot: nothing is booted.
        if let Err(why) = run.placement.guest(run.build) {
            return Ok(BootOutcome::Unsupported(why));
        }
        let version = run.build.version.clone();
        let replicate = self.replicate_of(run);
        (self.context.notify)(Event::Booting {
            version: version.clone(),
            replicate,
        });
        let part = self.forecast.begin();
        let boot = with_retries(&|error| self.notify_retry(error), || {
            run.placement.boot(run.build, run.replicate)
        })?;
        run.progress().times.push(self.forecast.end(BOOT, &part));
        (self.context.notify)(match &boot {
            BootOutcome::Unsupported(_) => return Ok(boot),
            BootOutcome::KernelFailed { failure, .. } => Event::BootFailed {
                version,
                replicate,
                failure: failure.clone(),
            },
            BootOutcome::Ready(booted) => Event::Ready {
                version,
                replicate,
                remark: booted.remark().map(str::to_owned),
            },
        });
        Ok(boot)
    }

    pub(super) fn notify_retry(&self, error: &MachineError) {
        (self.context.notify)(Event::Retrying {
            error: error.to_string(),
        });
    }
}
