//! Repeats measured workloads to follow their calls or to simulate a processor, on as many machines
//! as the measurement used. Stores nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lab::{Lab, Measurement};
use model::{Availability, Build, CallTree, CostModel, Modelled, Profile, Run, Workload};
use profile::calls::CallDifference;
use profile::ledger::Ledger;
use profile::modelled::ModelDifference;
use subprocess::Shared;

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
#[derive(Clone, Copy)]
struct Item<'a> {
    workload: usize,
    side: usize,
    run: &'a Run,
}

/// The result of each run by workload, side and seed, or why there is none.
type Done<T> = BTreeMap<(usize, usize), BTreeMap<u64, Result<T, String>>>;

/// The action on one run of a workload.
type Action<'a, T> =
    dyn Fn(Measurement<'_>, &Profile) -> Result<Availability<T>, lab::LabError> + Sync + 'a;

/// Follows the calls of all workloads in all runs of both sides.
pub(crate) fn follow_calls(jobs: RepeatedJobs<'_>) -> anyhow::Result<FollowedCalls> {
    let lab = jobs.lab;
    let mut done = jobs.run("following the calls of", &|measurement, profile| {
        lab.follow_calls(measurement, profile)
    })?;
    let mut followed = FollowedCalls::default();
    for (index, workload) in jobs.workloads.iter().enumerate() {
        match sides(&mut done, index, jobs.runs.len() == 1) {
            Ok([base, new]) => {
                if let (Some(base), Some(new)) = (expanded(&base), expanded(&new)) {
                    followed
                        .expanded
                        .extend(Ledger::new(&workload.name, &base, &new));
                }
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

/// Returns the profiles with inlined functions apart; `None` without debug information.
fn expanded(side: &[lab::Followed]) -> Option<Vec<Profile>> {
    side.iter()
        .map(|followed| followed.expanded.clone())
        .collect()
}

fn trees(side: Vec<lab::Followed>) -> Vec<CallTree> {
    side.into_iter().map(|followed| followed.tree).collect()
}

/// Simulates a processor for all workloads in all runs of both sides.
pub(crate) fn simulate_processor(
    jobs: RepeatedJobs<'_>,
    model: &CostModel,
) -> anyhow::Result<Simulated> {
    let lab = jobs.lab;
    let mut done: Done<Modelled> = jobs
        .run("simulating a processor for", &|measurement, profile| {
            lab.simulate(measurement, profile, model)
        })?;
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
    let base = take_side(done, workload, 0)?;
    let new = if is_one {
        base.clone()
    } else {
        take_side(done, workload, 1)?
    };
    Ok([base, new])
}

fn take_side<T>(done: &mut Done<T>, workload: usize, side: usize) -> Result<Vec<T>, String> {
    done.remove(&(workload, side))
        .unwrap_or_default()
        .into_values()
        .collect()
}

impl RepeatedJobs<'_> {
    /// Repeats items until the queue is empty; after an error the other threads finish theirs.
    fn repeat_all<T>(
        &self,
        queue: &Shared<VecDeque<Item<'_>>>,
        done: &Shared<Done<T>>,
        action: &Action<'_, T>,
    ) -> anyhow::Result<()> {
        loop {
            let next = queue.lock().pop_front();
            let Some(item) = next else { return Ok(()) };
            if let Err(error) = self.repeat(item, done, action) {
                queue.lock().clear();
                return Err(error);
            }
        }
    }

    fn repeat<T>(
        &self,
        item: Item<'_>,
        done: &Shared<Done<T>>,
        action: &Action<'_, T>,
    ) -> anyhow::Result<()> {
        let Item {
            workload: index,
            side,
            run,
        } = item;
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
            .entry((index, side))
            .or_default()
            .insert(run.seed, result.into_result());
        self.progress.one_more(&format!(
            "{} seed {} {}",
            self.builds[side].version, run.seed, workload.name
        ));
        Ok(())
    }

    /// Repeats every workload of every run; `what` names the purpose.
    fn run<T: Send>(&self, what: &str, action: &Action<'_, T>) -> anyhow::Result<Done<T>> {
        let mut items = VecDeque::new();
        for workload in 0..self.workloads.len() {
            for (side, runs) in self.runs.iter().enumerate() {
                items.extend(runs.iter().map(|run| Item {
                    workload,
                    side,
                    run,
                }));
            }
        }
        let queue = Shared::new(items);
        self.progress.again(what, queue.lock().len());
        let done: Shared<Done<T>> = Shared::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.machines.max(1))
                .map(|_| scope.spawn(|| self.repeat_all(&queue, &done, action)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|bug| std::panic::resume_unwind(bug))
            })
        })?;
        Ok(done.into_inner())
    }
}
