//! A unit: the part of one run that is still to be measured, from its boot to the record that is stored.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use machine::{Boot, MachineError};
use model::{
    Build, BuildId, Declared, Environment, MachineId, Outcome, Run, RunId, SubjectFailure, Workload, WorkloadResult,
};
use sha2::{Digest, Sha256};

use crate::fleet::Berth;

/// Consoles by the name of their artefact.
pub(crate) type Consoles = Vec<(String, Vec<u8>)>;

/// One run in the making.
pub(crate) struct Unit<'a> {
    /// Index of the side it belongs to.
    pub(crate) side: usize,
    pub(crate) build: &'a Build,
    pub(crate) replicate: u64,
    /// Where it is measured.
    pub(crate) berth: Berth,
    /// The workloads that are still missing.
    pub(crate) workloads: Vec<Arc<Workload>>,
    /// Indices of the workloads that each job brings: a workload, and those of its rows that are wanted. Job 0 is the
    /// environment, job n + 1 is the n-th here.
    groups: Vec<Vec<usize>>,
    boot: Mutex<Option<Arc<Result<Boot, String>>>>,
    progress: Mutex<Progress>,
}

/// Where a unit stands: what is true of it, and what moves it on. One lock guards it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No job of it is taken, nothing is booted. Whoever takes its first job moves it on.
    #[default]
    Waiting,
    /// Its build boots or is booted, since then, and so many of its jobs are done. The last job moves it on; where the lab fails it
    /// stays, and what has results is kept as a run that is cut short.
    Measuring { since: SystemTime, done: usize },
    /// All jobs are done: its run is kept and the machine given back. Final.
    Measured { since: SystemTime },
    /// Its build did not boot with another replicate: no job of it is done. Final.
    LeftOut,
}

/// What has been measured so far.
#[derive(Default)]
pub(crate) struct Progress {
    state: State,
    pub(crate) environment: Environment,
    pub(crate) results: Vec<(usize, WorkloadResult)>,
    pub(crate) consoles: Consoles,
    /// What took how long, in seconds.
    pub(crate) times: Vec<(String, f64)>,
}

impl Progress {
    fn since_epoch(&self) -> Option<Duration> {
        match self.state {
            State::Measuring { since, .. } | State::Measured { since } => {
                Some(since.duration_since(UNIX_EPOCH).unwrap_or_default())
            }
            State::Waiting | State::LeftOut => None,
        }
    }
}

impl<'a> Unit<'a> {
    pub(crate) fn new(
        side: usize,
        build: &'a Build,
        replicate: u64,
        berth: Berth,
        workloads: Vec<Arc<Workload>>,
    ) -> Self {
        let groups = groups(&workloads);
        Self { side, build, replicate, berth, workloads, groups, boot: Mutex::default(), progress: Mutex::default() }
    }

    /// Number of jobs: the environment and the workloads.
    pub(crate) fn jobs(&self) -> usize {
        if self.workloads.is_empty() { 0 } else { self.groups.len() + 1 }
    }

    /// Returns what is run for a job, the environment's aside.
    pub(crate) fn declared(&self, job: usize) -> Option<Workload> {
        self.first(job).map(Workload::job)
    }

    /// Returns the first of the workloads that a job brings.
    fn first(&self, job: usize) -> Option<&Workload> {
        Some(&self.workloads[*self.groups.get(job.checked_sub(1)?)?.first()?])
    }

    /// Returns what a job is called where people see it.
    pub(crate) fn job_name(&self, job: usize) -> &str {
        self.first(job).map_or("environment", Workload::job_name)
    }

    /// Returns the value that a job gave, where it brings one workload.
    pub(crate) fn value(&self, job: usize) -> Option<f64> {
        let mut brought = self.brought(job);
        let (place, _) = brought.next().filter(|_| brought.next().is_none())?;
        let progress = self.progress();
        let result = progress.results.iter().find(|(at, _)| *at == place).map(|(_, result)| result)?;
        report::run_value(result, self.berth.machine.capabilities()).ok().map(|of| of.value)
    }

    /// Returns the workloads that a job brings, with their places.
    pub(crate) fn brought(&self, job: usize) -> impl Iterator<Item = (usize, &Workload)> {
        let group = job.checked_sub(1).and_then(|n| self.groups.get(n)).into_iter().flatten();
        group.map(|&n| (n, &*self.workloads[n]))
    }

    /// Returns the boot, doing it if nobody has; others wait meanwhile. Inside, why its workloads cannot be run.
    pub(crate) fn boot<E>(
        &self,
        boot: impl FnOnce() -> Result<Result<Boot, String>, E>,
    ) -> Result<Arc<Result<Boot, String>>, E> {
        let mut slot = self.boot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(boot) = &*slot {
            return Ok(Arc::clone(boot));
        }
        Ok(Arc::clone(slot.insert(Arc::new(boot()?))))
    }

    /// Begins it, if nobody has and it is worth it; tells whether it is measured.
    pub(crate) fn begin(&self, is_worth_it: impl FnOnce() -> bool) -> bool {
        let mut progress = self.progress();
        if progress.state == State::Waiting {
            let measuring = || State::Measuring { since: SystemTime::now(), done: 0 };
            progress.state = if is_worth_it() { measuring() } else { State::LeftOut };
        }
        matches!(progress.state, State::Measuring { .. })
    }

    /// Returns which build it boots on which machine.
    pub(crate) fn booted_as(&self) -> (BuildId, MachineId) {
        (self.build.id.clone(), self.berth.machine.identity().id.clone())
    }

    /// Tells whether some of it was measured, and not all.
    pub(crate) fn is_cut_short(&self) -> bool {
        let progress = self.progress();
        !progress.results.is_empty() && matches!(progress.state, State::Measuring { .. })
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a job as done and tells whether it was the last.
    pub(crate) fn finish_one(&self) -> bool {
        let mut progress = self.progress();
        if let State::Measuring { since, done } = progress.state {
            let done = done + 1;
            let is_last = done == self.jobs();
            progress.state = if is_last { State::Measured { since } } else { State::Measuring { since, done } };
        }
        matches!(progress.state, State::Measured { .. })
    }

    /// Gives the machine back when the last job is done, or none will be.
    pub(crate) fn release(&self) -> Result<(), MachineError> {
        let boot = self.boot.lock().unwrap_or_else(PoisonError::into_inner).take();
        match boot.and_then(Arc::into_inner) {
            Some(Ok(Boot::Ready(booted))) => booted.release(),
            _ => Ok(()),
        }
    }

    fn identity(&self) -> String {
        let machine = &self.berth.machine.identity().id;
        let since = self.progress().since_epoch().unwrap_or_default();
        let names: Vec<&str> = self.workloads.iter().map(|workload| &*workload.name).collect();
        let (build, replicate, side) = (&self.build.id, self.replicate, self.side);
        format!("{build}\n{machine}\n{replicate}\n{side}\n{}\n{}", names.join(","), since.as_nanos())
    }

    /// Returns the run and the consoles that belong to it.
    pub(crate) fn run(&self, suite: &str) -> Option<(Run, Consoles)> {
        let digest: String = Sha256::digest(self.identity()).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut progress = self.progress();
        let started = progress.since_epoch()?;
        let mut results = std::mem::take(&mut progress.results);
        results.sort_by_key(|(index, _)| *index);
        let run = Run {
            id: RunId::from_hex(&digest).ok()?,
            build: self.build.id.clone(),
            machine: self.berth.machine.identity().id.clone(),
            suite: suite.to_owned(),
            seed: self.replicate,
            started_unix: i64::try_from(started.as_secs()).unwrap_or(i64::MAX),
            environment: std::mem::take(&mut progress.environment),
            results: results.into_iter().map(|(_, result)| result).collect(),
        };
        Some((run, std::mem::take(&mut progress.consoles)))
    }

    /// Returns the result of a workload that the build lacks something for.
    pub(crate) fn unsupported(&self, workload: &Workload, why: &str) -> WorkloadResult {
        self.without_samples(workload, Outcome::Unsupported(why.to_owned()))
    }

    /// Returns what a boot that failed means for a workload.
    pub(crate) fn not_booted(&self, workload: &Workload, failure: &SubjectFailure) -> WorkloadResult {
        self.without_samples(workload, Outcome::Failed(failure.clone()))
    }

    fn without_samples(&self, workload: &Workload, outcome: Outcome) -> WorkloadResult {
        let clock = self.berth.machine.capabilities().clock;
        WorkloadResult {
            workload: workload.name.to_string(),
            operations: workload.operations,
            declared: Some(Declared::of(&workload.metric, clock)),
            outcome,
            samples: Vec::new(),
            counted: Vec::new(),
        }
    }
}

/// Puts workloads together that one job brings, in the order in which they come.
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

/// Returns the id of a job: binds the agent's stream to this build, machine, replicate and workload. It does not depend on
/// the time, as the guest reads it: the same job must cost the same.
pub(crate) fn job_id(build: &BuildId, machine: &MachineId, replicate: u64, job: &str) -> u64 {
    let digest = Sha256::digest(format!("{build}\n{machine}\n{replicate}\n{job}"));
    // Job 0 is what the agent says outside any job.
    digest.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte)).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::groups;

    #[test]
    fn rows_come_with_the_job_that_brings_them() {
        let of = |names: &[&str]| {
            let all = model::workloads();
            let chosen: Vec<_> =
                names.iter().map(|name| Arc::clone(all.iter().find(|w| w.name == *name).unwrap())).collect();
            groups(&chosen)
        };
        assert_eq!(of(&["getppid", "signal"]), [[0], [1]]);
        assert_eq!(of(&["swapin-0", "swapin-50", "memcachetest-0"]), [vec![0, 2], vec![1]]);
    }
}
