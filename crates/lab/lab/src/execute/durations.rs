//! How long a plan takes, from the durations that earlier runs recorded.

use std::collections::BTreeSet;

use model::{MachineId, Workload};
use store::{RunSummary, Store};

use super::ExecutionContext;
use crate::estimate::{BOOT, TIMES, Times};
use crate::forecast::Forecast;
use crate::run_in_progress::RunInProgress;
use crate::{Estimate, Event, LabError, host};

/// Limit on runs read for their durations.
const RUNS_READ: usize = 30;

/// Estimates the duration from earlier runs on these machines and the load of the host.
pub(super) fn forecast(
    runs_in_progress: &[RunInProgress<'_>],
    context: &ExecutionContext<'_>,
    machines: usize,
) -> Result<Forecast, LabError> {
    let store = context.store.lock();
    let here: BTreeSet<&MachineId> = runs_in_progress
        .iter()
        .map(|run| &run.placement.machine.identity().id)
        .collect();
    // Durations on other machines would say nothing about these.
    let times = times(&store, &|run| here.contains(&run.machine))?;
    let measured: Vec<&RunInProgress<'_>> = runs_in_progress
        .iter()
        .filter(|run| run.jobs() > 0)
        .collect();
    // Stored results answer the whole plan: there is no duration to announce.
    if measured.is_empty() {
        return Ok(Forecast::new(times, 0.0));
    }
    let work = times.work(measured.iter().flat_map(|run| parts(run)));
    (context.notify)(Event::Estimated(
        work.estimate_at(host::rate(work.machines(machines))),
    ));
    Ok(Forecast::new(times, work.processor_s))
}

/// The parts of a run that take time: the boot and the jobs.
fn parts<'a>(run: &'a RunInProgress<'_>) -> impl Iterator<Item = &'a str> {
    [BOOT]
        .into_iter()
        .chain((0..run.jobs()).map(|job| run.job_name(job)))
}

fn times(store: &Store, counts: &dyn Fn(&RunSummary) -> bool) -> Result<Times, LabError> {
    let mut times = Times::default();
    for run in store.runs(RUNS_READ)?.iter().filter(|run| counts(run)) {
        if store
            .artifact_names(&run.id)?
            .iter()
            .any(|name| name == TIMES)
        {
            times.add(&String::from_utf8_lossy(&store.artifact(&run.id, TIMES)?));
        }
    }
    Ok(times)
}

/// Estimates how long one kernel takes that boots for each replicate, from runs on any machine;
/// without a store, from defaults.
///
/// # Errors
/// If the store cannot be read.
pub fn estimate_measurement(
    store: Option<&Store>,
    workload: &Workload,
    replicates: u64,
    machines: usize,
) -> Result<Estimate, LabError> {
    let times = store
        .map(|store| times(store, &|_| true))
        .transpose()?
        .unwrap_or_default();
    let work = times.work((0..replicates).flat_map(|_| [BOOT, &*workload.name]));
    Ok(work.estimate_at(host::rate(work.machines(machines))))
}
