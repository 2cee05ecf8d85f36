//! Repeats measured workloads to follow their calls or to simulate a processor, on as many machines
//! as the measurement used. Stores nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use lab::{Lab, Measurement};
use model::{Build, CallTree, CostModel, Modelled, Profile, Run, Workload};
use profile::calls::CallDifference;
use profile::ledger::Ledger;
use profile::modelled::ModelDifference;

use crate::session::Progress;

/// Measured jobs to repeat.
#[derive(Clone, Copy)]
pub(crate) struct RepeatedJobs<'a> {
    pub(crate) lab: &'a Lab,
    /// Machines that run in parallel.
    pub(crate) machines: usize,
    /// Both sides, or one kernel that is both, and the runs of each.
    pub(crate) builds: &'a [Build],
    pub(crate) runs: &'a [Vec<Run>],
    /// Workloads with a ledger.
    pub(crate) workloads: &'a [Arc<Workload>],
    pub(crate) progress: &'a Progress,
}

/// The results of following calls.
#[derive(Default)]
pub(crate) struct FollowedCalls {
    pub(crate) calls: Vec<CallDifference>,
    /// Ledgers with inlined functions separate, if both kernels have debug information.
    pub(crate) expanded: Vec<Ledger>,
    /// Workloads without a call tree, and why.
    pub(crate) without: Vec<(String, String)>,
}

/// The results of simulating a processor.
#[derive(Default)]
pub(crate) struct Simulated {
    pub(crate) differences: Vec<ModelDifference>,
    /// Workloads without a model, and why.
    pub(crate) without: Vec<(String, String)>,
}

/// A workload in a run of one side.
type Item<'a> = (usize, usize, &'a Run);

/// The result of each run by workload, side and seed, or why there is none.
type Done<T> = BTreeMap<(usize, usize), BTreeMap<u64, Result<T, String>>>;

/// The action on one run of a workload.
type Action<'a, T> =
    dyn Fn(Measurement<'_>, &Profile) -> Result<Result<T, String>, lab::LabError> + Sync + 'a;

/// Follows the calls of all workloads in all runs of both sides.
pub(crate) fn follow_calls(jobs: RepeatedJobs<'_>) -> anyhow::Result<FollowedCalls> {
    let lab = jobs.lab;
    let action =
        |measurement: Measurement<'_>, profile: &Profile| lab.follow_calls(measurement, profile);
    let mut done = jobs.run("following the calls of", &action)?;
    let mut followed = FollowedCalls::default();
    for (index, workload) in jobs.workloads.iter().enumerate() {
        match sides(&mut done, index, jobs.runs.len() == 1) {
            Ok([base, new]) => {
                let profiles = |side: &[lab::Followed]| {
                    side.iter()
                        .map(|f| f.expanded.clone())
                        .collect::<Option<Vec<_>>>()
                };
                if let (Some(base), Some(new)) = (profiles(&base), profiles(&new)) {
                    followed
                        .expanded
                        .extend(Ledger::new(&workload.name, &base, &new));
                }
                let trees = |side: Vec<lab::Followed>| {
                    side.into_iter().map(|f| f.tree).collect::<Vec<CallTree>>()
                };
                followed.calls.extend(CallDifference::new(
                    &workload.name,
                    &trees(base),
                    &trees(new),
                ));
            }
            Err(why) => followed.without.push((workload.name.to_string(), why)),
        }
    }
    Ok(followed)
}

/// Simulates a processor for all workloads in all runs of both sides.
pub(crate) fn simulate_processor(
    jobs: RepeatedJobs<'_>,
    model: &CostModel,
) -> anyhow::Result<Simulated> {
    let lab = jobs.lab;
    let action =
        |measurement: Measurement<'_>, profile: &Profile| lab.simulate(measurement, profile, model);
    let mut done: Done<Modelled> = jobs.run("simulating a processor for", &action)?;
    let mut simulated = Simulated::default();
    for (index, workload) in jobs.workloads.iter().enumerate() {
        match sides(&mut done, index, jobs.runs.len() == 1) {
            Ok([base, new]) => {
                simulated.differences.extend(ModelDifference::new(
                    &workload.name,
                    model,
                    [&base, &new],
                ));
            }
            Err(why) => simulated.without.push((workload.name.to_string(), why)),
        }
    }
    Ok(simulated)
}

/// Takes the results of a workload on both sides, or why one is missing.
fn sides<T: Clone>(
    done: &mut Done<T>,
    workload: usize,
    is_one: bool,
) -> Result<[Vec<T>; 2], String> {
    let mut side = |side| {
        done.remove(&(workload, side))
            .unwrap_or_default()
            .into_values()
            .collect::<Result<Vec<T>, _>>()
    };
    let base = side(0)?;
    let new = if is_one { base.clone() } else { side(1)? };
    Ok([base, new])
}

impl RepeatedJobs<'_> {
    /// Repeats every workload of every run; `what` names the purpose.
    fn run<T: Send>(&self, what: &str, action: &Action<'_, T>) -> anyhow::Result<Done<T>> {
        let items = self.workloads.iter().enumerate().flat_map(|(index, _)| {
            self.runs
                .iter()
                .enumerate()
                .flat_map(move |(side, runs)| runs.iter().map(move |run| (index, side, run)))
        });
        let queue: Mutex<VecDeque<Item<'_>>> = Mutex::new(items.collect());
        self.progress.again(
            what,
            queue.lock().unwrap_or_else(PoisonError::into_inner).len(),
        );
        let done: Mutex<Done<T>> = Mutex::default();
        let one = |(index, side, run): Item<'_>| -> anyhow::Result<()> {
            let workload = &self.workloads[index];
            let Some(profile) = self.lab.profile(&run.id, &workload.name)? else {
                return Ok(());
            };
            let measurement = Measurement {
                build: &self.builds[side],
                workload,
                replicate: run.seed,
            };
            let result = action(measurement, &profile)?;
            done.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry((index, side))
                .or_default()
                .insert(run.seed, result);
            self.progress.one_more(&format!(
                "{} seed {} {}",
                self.builds[side].version, run.seed, workload.name
            ));
            Ok(())
        };
        let work = || -> anyhow::Result<()> {
            loop {
                let next = queue
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front();
                let Some(item) = next else { return Ok(()) };
                if let Err(error) = one(item) {
                    // The other threads finish their items.
                    queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                    return Err(error);
                }
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.machines.max(1))
                .map(|_| scope.spawn(work))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|bug| std::panic::resume_unwind(bug))
            })
        })?;
        Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
