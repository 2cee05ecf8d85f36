//! A run in progress: the part of one run that is still to be measured, from its boot to the stored
//! record.

use std::sync::{Arc, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use machine::{BootOutcome, MachineError};
use model::{
    Build, BuildId, Declared, Environment, LAB_COST, MachineId, Outcome, Run, RunId,
    SubjectFailure, Workload, WorkloadResult,
};
use sha2::{Digest, Sha256};
use subprocess::Shared;

use crate::forecast::Took;
use crate::machine_pool::Placement;
use crate::own_cost::OwnCost;
use crate::perturb::shuffle;

/// Consoles by the name of their artifact.
pub(crate) type Consoles = Vec<(String, Vec<u8>)>;

/// A run in progress.
pub(crate) struct RunInProgress<'a> {
    /// Index of its side.
    pub(crate) side: usize,
    pub(crate) build: &'a Build,
    pub(crate) replicate: u64,
    pub(crate) placement: Placement,
    pub(crate) workloads: Vec<Arc<Workload>>,
    /// Indices of the workloads that each job measures: a workload, and its requested rows. Job 0
    /// is the environment, job n + 1 is the n-th group.
    groups: Vec<Vec<usize>>,
    boot: Shared<Option<Arc<BootOutcome>>>,
    progress: Shared<Progress>,
}

/// The state of a run in progress; the variants say what holds and what ends them. One lock guards
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No job has started, nothing is booted. The thread that takes the first job changes the
    /// state.
    #[default]
    Waiting,
    /// The build boots or is booted, since `since`, and `done` jobs are done. The last job changes
    /// the state; if the lab fails it stays, and Marvin stores the results so far as an
    /// incomplete run.
    Measuring { since: SystemTime, done: usize },
    /// All jobs are done: the run is stored and the machine released. Final.
    Measured { since: SystemTime },
    /// The build did not boot with another replicate: all jobs are skipped. Final.
    Skipped,
}

/// The results so far.
#[derive(Default)]
pub(crate) struct Progress {
    state: State,
    pub(crate) environment: Environment,
    pub(crate) results: Vec<(usize, WorkloadResult)>,
    pub(crate) consoles: Consoles,
    pub(crate) times: Vec<Took>,
    /// What disturbed jobs on the host, a line each.
    pub(crate) load: String,
    /// What the lab itself took of a processor in its jobs.
    pub(crate) own_cost: OwnCost,
}

impl Progress {
    fn begun(&self) -> Option<SystemTime> {
        match self.state {
            State::Measuring { since, .. } | State::Measured { since } => Some(since),
            State::Waiting | State::Skipped => None,
        }
    }
}

impl<'a> RunInProgress<'a> {
    pub(crate) fn new(
        side: usize,
        build: &'a Build,
        replicate: u64,
        placement: Placement,
        workloads: Vec<Arc<Workload>>,
    ) -> Self {
        let mut groups = groups(&workloads);
        if !placement.machine.capabilities().deterministic {
            // What comes before a workload is in its time; over the replicates each workload comes
            // after all others. All sides of a replicate have the same order.
            shuffle(&mut groups, replicate);
        }
        Self {
            side,
            build,
            replicate,
            placement,
            workloads,
            groups,
            boot: Shared::default(),
            progress: Shared::default(),
        }
    }

    /// Number of jobs: the environment and the workloads.
    pub(crate) fn jobs(&self) -> usize {
        if self.workloads.is_empty() {
            0
        } else {
            self.groups.len() + 1
        }
    }

    /// Returns the workload that a job runs; `None` for the environment's job.
    pub(crate) fn declared(&self, job: usize) -> Option<Workload> {
        self.first(job).map(Workload::job)
    }

    /// Returns the first workload that a job measures.
    fn first(&self, job: usize) -> Option<&Workload> {
        Some(&self.workloads[*self.groups.get(job.checked_sub(1)?)?.first()?])
    }

    /// Returns a job's name for people.
    pub(crate) fn job_name(&self, job: usize) -> &str {
        self.first(job).map_or("environment", Workload::job_name)
    }

    /// Returns the value of a job that measures one workload.
    pub(crate) fn value(&self, job: usize) -> Option<f64> {
        let mut brought = self.brought(job);
        let (place, _) = brought.next().filter(|_| brought.next().is_none())?;
        let progress = self.progress();
        let result = progress
            .results
            .iter()
            .find(|(at, _)| *at == place)
            .map(|(_, result)| result)?;
        compare::run_value(result, self.placement.machine.capabilities())
            .ok()
            .map(|of| of.value)
    }

    /// Returns the workloads that a job measures, with their indices.
    pub(crate) fn brought(&self, job: usize) -> impl Iterator<Item = (usize, &Workload)> {
        let group = job
            .checked_sub(1)
            .and_then(|n| self.groups.get(n))
            .into_iter()
            .flatten();
        group.map(|&n| (n, &*self.workloads[n]))
    }

    /// Returns the boot, and boots if needed; other threads wait meanwhile.
    pub(crate) fn boot<E>(
        &self,
        boot: impl FnOnce() -> Result<BootOutcome, E>,
    ) -> Result<Arc<BootOutcome>, E> {
        // Locked while the build boots: a second thread has to wait for the same boot and must not
        // begin another.
        let mut slot = self.boot.lock();
        if let Some(boot) = &*slot {
            return Ok(Arc::clone(boot));
        }
        Ok(Arc::clone(slot.insert(Arc::new(boot()?))))
    }

    /// Begins the run unless it has begun or `is_worth_it` says no; returns whether it is being
    /// measured.
    pub(crate) fn begin(&self, is_worth_it: impl FnOnce() -> bool) -> bool {
        let mut progress = self.progress();
        if progress.state == State::Waiting {
            // Under the lock, so that two threads with the first jobs of one run decide alike.
            progress.state = if is_worth_it() {
                State::Measuring {
                    since: SystemTime::now(),
                    done: 0,
                }
            } else {
                State::Skipped
            };
        }
        matches!(progress.state, State::Measuring { .. })
    }

    /// Returns the build and machine of its boot.
    pub(crate) fn booted_as(&self) -> (BuildId, MachineId) {
        (
            self.build.id.clone(),
            self.placement.machine.identity().id.clone(),
        )
    }

    /// Returns whether something was measured since it was stored.
    pub(crate) fn has_unstored_results(&self) -> bool {
        !self.progress().results.is_empty()
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }

    /// Counts a job as done and returns whether it was the last.
    pub(crate) fn finish_one(&self) -> bool {
        let mut progress = self.progress();
        if let State::Measuring { since, done } = progress.state {
            let done = done + 1;
            let is_last = done == self.jobs();
            progress.state = if is_last {
                State::Measured { since }
            } else {
                State::Measuring { since, done }
            };
        }
        matches!(progress.state, State::Measured { .. })
    }

    /// Releases the machine after the last job, or when no job will run.
    pub(crate) fn release(&self) -> Result<(), MachineError> {
        let boot = self.boot.lock().take();
        // A boot that a thread still uses is not released here; none does after the last job, and
        // all have ended after a failure.
        match boot.and_then(Arc::into_inner) {
            Some(BootOutcome::Ready(booted)) => booted.release(),
            _ => Ok(()),
        }
    }

    fn identity(&self) -> String {
        let machine = &self.placement.machine.identity().id;
        let begun = self.progress().begun();
        let since = begun.and_then(|begun| begun.duration_since(UNIX_EPOCH).ok());
        let names: Vec<&str> = self
            .workloads
            .iter()
            .map(|workload| &*workload.name)
            .collect();
        let build = &self.build.id;
        let replicate = self.replicate;
        let side = self.side;
        format!(
            "{build}\n{machine}\n{replicate}\n{side}\n{}\n{}",
            names.join(","),
            // The time makes two runs of one build, seed and machine different runs.
            since.unwrap_or_default().as_nanos()
        )
    }

    /// Returns the run and its consoles.
    pub(crate) fn run(&self, suite: &str) -> Option<(Run, Consoles)> {
        let digest = model::hexadecimal(&Sha256::digest(self.identity()));
        let mut progress = self.progress();
        let started = progress.begun()?;
        let own_cost = progress
            .own_cost
            .describe()
            .map(|text| (LAB_COST.to_owned(), text));
        progress.environment.extend(own_cost);
        let mut results = std::mem::take(&mut progress.results);
        results.sort_by_key(|(index, _)| *index);
        let run = Run {
            id: RunId::from_hex(&digest).ok()?,
            build: self.build.id.clone(),
            machine: self.placement.machine.identity().id.clone(),
            suite: suite.to_owned(),
            seed: self.replicate,
            started_unix: started.into(),
            environment: std::mem::take(&mut progress.environment),
            results: results.into_iter().map(|(_, result)| result).collect(),
        };
        Some((run, std::mem::take(&mut progress.consoles)))
    }

    /// Returns the result of a workload for which the build lacks something.
    pub(crate) fn unsupported(&self, workload: &Workload, why: &str) -> WorkloadResult {
        self.without_samples(workload, Outcome::Unsupported(why.to_owned()))
    }

    /// Returns the result of a workload after a failed boot.
    pub(crate) fn not_booted(
        &self,
        workload: &Workload,
        failure: &SubjectFailure,
    ) -> WorkloadResult {
        self.without_samples(workload, machine::outcome_of(failure.clone()))
    }

    fn without_samples(&self, workload: &Workload, outcome: Outcome) -> WorkloadResult {
        let clock = self.placement.machine.capabilities().clock;
        WorkloadResult {
            workload: workload.name.to_string(),
            operations: workload.operations,
            declared: Some(Declared::from_metric(&workload.metric, clock)),
            outcome,
            samples: Vec::new(),
            counted: Vec::new(),
        }
    }
}

/// Groups workloads that one job measures, in order of appearance.
fn groups(workloads: &[Arc<Workload>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (n, workload) in workloads.iter().enumerate() {
        let job = workload.job_name();
        match groups.iter_mut().find(|(known, _)| *known == job) {
            Some((_, group)) => group.push(n),
            None => groups.push((job, vec![n])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Returns the id of a job, which binds the agent's stream to this build, machine, replicate and
/// workload. It does not depend on the time, as the guest reads it: the same job must cost the
/// same.
pub(crate) fn job_id(build: &BuildId, machine: &MachineId, replicate: u64, job: &str) -> u64 {
    let digest = Sha256::digest(format!("{build}\n{machine}\n{replicate}\n{job}"));
    // Job 0 marks frames that the agent sends outside any job.
    digest
        .iter()
        .take(8)
        .fold(0, |id, byte| id << 8 | u64::from(*byte))
        .max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::groups;

    #[test]
    fn rows_are_grouped_by_their_job() {
        let of = |names: &[&str]| {
            let all = model::workloads();
            let chosen: Vec<_> = names
                .iter()
                .map(|name| Arc::clone(all.iter().find(|w| w.name == *name).unwrap()))
                .collect();
            groups(&chosen)
        };
        assert_eq!(of(&["getppid", "signal"]), [[0], [1]]);
        assert_eq!(
            of(&["swapin-0", "swapin-50", "memcachetest-0"]),
            [vec![0, 2], vec![1]]
        );
    }
}
