//! Following the calls of workloads that were measured, on as many machines at a time as they were measured on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use lab::Lab;
use model::{Build, CallTree, Run, Workload};
use report::calls::CallDifference;
use report::ledger::Ledger;

use crate::progress::Progress;

/// What came of it.
#[derive(Default)]
pub(crate) struct Followed {
    pub(crate) calls: Vec<CallDifference>,
    /// Ledgers with inlined functions apart, where both kernels have debug information.
    pub(crate) expanded: Vec<Ledger>,
    /// Workloads without, and why.
    pub(crate) without: Vec<(String, String)>,
}

/// A workload in a run of one side.
type Item<'a> = (usize, usize, &'a Run);
/// Call trees by workload and side, or why there are none.
type Trees = BTreeMap<(usize, usize), Vec<Result<lab::Followed, String>>>;

/// Follows the calls of workloads in all runs of both sides.
pub(crate) fn follow(
    (lab, machines): (&Lab, usize),
    (builds, runs): (&[Build], &[Vec<Run>]),
    workloads: &[&'static Workload],
    progress: &Progress,
) -> anyhow::Result<Followed> {
    let items = workloads.iter().enumerate().flat_map(|(index, _)| {
        runs.iter().enumerate().flat_map(move |(side, runs)| runs.iter().map(move |run| (index, side, run)))
    });
    let queue: Mutex<VecDeque<Item<'_>>> = Mutex::new(items.collect());
    progress.following(queue.lock().unwrap_or_else(PoisonError::into_inner).len());
    let trees: Mutex<Trees> = Mutex::default();
    let one = |(index, side, run): Item<'_>| -> anyhow::Result<()> {
        let workload = workloads[index];
        let Some(profile) = lab.profile(&run.id, workload.name)? else { return Ok(()) };
        let tree = lab.follow_calls(&builds[side], (workload, run.seed), &profile)?;
        trees.lock().unwrap_or_else(PoisonError::into_inner).entry((index, side)).or_default().push(tree);
        progress.followed(&format!("{} seed {} {}", builds[side].version, run.seed, workload.name));
        Ok(())
    };
    let work = || -> anyhow::Result<()> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(item) = next else { return Ok(()) };
            if let Err(error) = one(item) {
                // The others finish what they have begun.
                queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
                return Err(error);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..machines.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|bug| std::panic::resume_unwind(bug)))
    })?;
    let mut trees = trees.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut followed = Followed::default();
    for (index, workload) in workloads.iter().enumerate() {
        let mut side =
            |side| trees.remove(&(index, side)).unwrap_or_default().into_iter().collect::<Result<Vec<_>, _>>();
        match side(0).and_then(|base| Ok((base, side(1)?))) {
            Ok((base, new)) => {
                let profiles =
                    |side: &[lab::Followed]| side.iter().map(|f| f.expanded.clone()).collect::<Option<Vec<_>>>();
                if let (Some(base), Some(new)) = (profiles(&base), profiles(&new)) {
                    followed.expanded.extend(Ledger::new(workload.name, &base, &new));
                }
                let trees = |side: Vec<lab::Followed>| side.into_iter().map(|f| f.tree).collect::<Vec<CallTree>>();
                followed.calls.extend(CallDifference::new(workload.name, &trees(base), &trees(new)));
            }
            Err(why) => followed.without.push((workload.name.to_owned(), why)),
        }
    }
    Ok(followed)
}
