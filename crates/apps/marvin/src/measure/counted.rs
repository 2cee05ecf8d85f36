//! Counts instructions of one kernel or two on the exact machine, and attributes them to functions.

use std::sync::Arc;

use document::label::typed_revision;
use lab::Lab;
use model::{Availability, Build, CostModel, KernelName, Outcome, Run, RunId, Workload};
use profile::ledger::Ledger;

use super::{
    FollowedCalls, RepeatedJobs, Simulated, find_builds, follow_calls, open_exact_lab_with,
    parallel_machines, plan_runs, prepare_tools, simulate_processor,
};
use crate::options::MeasureOptions;
use crate::select::{ChosenWorkloads, choose_workloads};
use crate::session::{Progress, Session};

/// What to count beside instructions.
pub(crate) struct CountOptions<'a> {
    /// Seeds whose counts are added up.
    pub(crate) seeds: u64,
    /// Whether to follow calls.
    pub(crate) calls: bool,
    /// The processor to simulate.
    pub(crate) model: Option<&'a CostModel>,
}

/// Two kernels, counted on the exact machine.
pub(crate) struct CountedKernels {
    pub(crate) lab: Lab,
    pub(crate) builds: Vec<Build>,
    pub(crate) runs: Vec<Vec<Run>>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) ledgers: Vec<Ledger>,
    /// Workloads with a ledger.
    pub(crate) workloads: Vec<Arc<Workload>>,
    /// Workloads without one, with the reason.
    pub(crate) missing: Vec<(String, String)>,
    pub(crate) followed: FollowedCalls,
    pub(crate) simulated: Simulated,
}

/// Returns the summary of the machine: that of the workloads' guests if they share one.
pub(crate) fn machine_summary(lab: &Lab, workloads: &[Arc<Workload>]) -> anyhow::Result<String> {
    Ok(match lab.machines(workloads)?.as_slice() {
        [machine] => machine.summary.clone(),
        _ => lab.machine().summary.clone(),
    })
}

/// Returns one kernel as both sides, and two as they are.
pub(crate) fn as_sides<T: Clone>(mut kernels: Vec<T>) -> Vec<T> {
    if let [one] = kernels.as_slice() {
        kernels.push(one.clone());
    }
    kernels
}

/// Measures what is missing, and takes everything apart. One kernel is executed once, and is both
/// sides.
pub(crate) fn count_kernels(
    session: &Session,
    measure: &MeasureOptions,
    names: &[KernelName],
    wanting: &CountOptions<'_>,
    progress: &Progress,
) -> anyhow::Result<CountedKernels> {
    let ChosenWorkloads {
        suite,
        workloads: selected,
        tools,
    } = choose_workloads(session, measure, names)?;
    let lab = open_exact_lab_with(session, measure, tools)?;
    prepare_tools(&lab, &selected, progress)?;
    let builds = find_builds(&lab, names, progress)?;
    let seeds: Vec<u64> = (1..=wanting.seeds).collect();
    let plan = plan_runs(measure, &builds, &suite, &selected, &seeds);
    let runs = lab.execute(&plan, &|event| progress.event(&event))?;
    let mut ledgers = Vec::new();
    let mut missing = Vec::new();
    let mut workloads = Vec::new();
    let both = as_sides(runs.clone());
    let [first, last] = [&builds[0], &builds[builds.len() - 1]];
    for workload in selected {
        match read_ledger(&lab, [first, last], &both, &workload.name)? {
            Availability::Available(ledger) => {
                ledgers.push(ledger);
                workloads.push(workload);
            }
            Availability::Unavailable(why) => missing.push((workload.name.to_string(), why)),
        }
    }
    let measured = RepeatedJobs {
        lab: &lab,
        machines: parallel_machines(measure.jobs),
        builds: &builds,
        runs: &runs,
        workloads: &workloads,
        progress,
    };
    let followed = if wanting.calls {
        follow_calls(measured)?
    } else {
        FollowedCalls::default()
    };
    let simulated = wanting
        .model
        .map(|model| simulate_processor(measured, model))
        .transpose()?
        .unwrap_or_default();
    let builds = as_sides(builds);
    Ok(CountedKernels {
        lab,
        builds,
        runs: both,
        seeds,
        ledgers,
        workloads,
        missing,
        followed,
        simulated,
    })
}

/// Returns the titles and origins of both kernels.
pub(crate) fn kernel_titles(builds: &[Build]) -> [(String, String); 2] {
    let is_told_by_version = builds[0].version != builds[1].version;
    [&builds[0], &builds[1]].map(|build| {
        let name = build.name.to_string();
        let short = name.rsplit('/').next().unwrap_or_default();
        let title = match typed_revision(&build.name) {
            Some(revision) if is_told_by_version => format!("{revision} ({})", build.version),
            None if is_told_by_version => build.version.clone(),
            _ => short.to_owned(),
        };
        (title, build.origin.to_string())
    })
}

/// Returns the ledger of a workload over the runs of a baseline and a new kernel, with the callers
/// of what only one of them executes; or why there is none.
pub(crate) fn read_ledger(
    lab: &Lab,
    builds: [&Build; 2],
    runs: &[Vec<Run>],
    workload: &str,
) -> anyhow::Result<Availability<Ledger>> {
    let ledger = read_ledger_with(&|run| Ok(lab.profile(run, workload)?), runs, workload)?;
    Ok(ledger.map(|mut ledger| {
        lab.add_callers(&mut ledger, builds);
        ledger
    }))
}

/// The same, with a function that reads the workload's profile in a run.
pub(crate) fn read_ledger_with(
    read: &dyn Fn(&RunId) -> anyhow::Result<Option<model::Profile>>,
    runs: &[Vec<Run>],
    workload: &str,
) -> anyhow::Result<Availability<Ledger>> {
    let lost = "its profile was not recorded; --force measures again";
    let sides = read_of_both(read, runs, workload, lost)?;
    Ok(sides.and_then(|[base, new]| {
        Ledger::new(workload, &base, &new)
            .ok_or_else(|| "it was not measured on both kernels".into())
    }))
}

/// Reads something that runs have of a workload, of both kernels, or says why there is none; `lost`
/// is why a run that completed has none.
pub(crate) fn read_of_both<T>(
    read: &dyn Fn(&RunId) -> anyhow::Result<Option<T>>,
    runs: &[Vec<Run>],
    workload: &str,
    lost: &str,
) -> anyhow::Result<Availability<[Vec<T>; 2]>> {
    let mut sides = [Vec::new(), Vec::new()];
    for (side, runs) in sides.iter_mut().zip(runs) {
        for run in runs {
            let Some(result) = run
                .results
                .iter()
                .find(|result| result.workload == workload)
            else {
                continue;
            };
            match &result.outcome {
                Outcome::Completed => {}
                Outcome::Unsupported(why) => {
                    return Ok(Availability::Unavailable(format!("unsupported: {why}")));
                }
                Outcome::Failed(failure) => {
                    return Ok(Availability::Unavailable(failure.reason.to_string()));
                }
            }
            match read(&run.id)? {
                Some(found) => side.push(found),
                None => return Ok(Availability::Unavailable(lost.to_owned())),
            }
        }
    }
    Ok(Availability::Available(sides))
}
