//! Samples kernels on machines that measure time, and finds stored counts of the same kernels.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lab::{Event, Reuse, Sampled, Wanted};
use model::{
    Availability, Build, KernelName, MachineId, Outcome, Run, RunId, SampledProfile, Workload,
};
use profile::ledger::Ledger;
use store::{RunSummary, Store};
use subprocess::Shared;

use super::{as_sides, find_builds, open_lab_on, plan_runs, read_ledger_with, replicates};
use crate::exit::WrongInput;
use crate::options::MeasureOptions;
use crate::select::{find_suite, select_workloads};
use crate::session::Session;

/// The profiles of a workload: of the base's boots and of the new kernel's, or why there are none.
pub(crate) type SampledSides = Result<[Vec<SampledProfile>; 2], String>;

/// What both sides are, and the profiles of each workload.
pub(crate) struct SampledKernels {
    pub(crate) builds: Vec<Build>,
    pub(crate) machine: String,
    pub(crate) found: Vec<(String, SampledSides)>,
    pub(crate) runs: Vec<Vec<Run>>,
}

/// Boots one kernel or two, and measures and samples the workloads in each boot. One kernel is both
/// sides.
pub(crate) fn sample_kernels(
    session: &Session,
    measure: &MeasureOptions,
    boots: u64,
    names: &[KernelName],
    wanted: &Wanted,
) -> anyhow::Result<SampledKernels> {
    measure.program.refuse("a sampled profile")?;
    let suite = find_suite(measure.suite())?;
    let workloads = select_workloads(suite, &measure.workload)?;
    let lab = open_lab_on(wanted.clone(), session, measure, session.tools(&[])?)?;
    if !lab.machine().capabilities().sampling {
        return Err(WrongInput(format!("{} cannot sample", lab.machine().summary)).into());
    }
    let progress = session.progress();
    let builds = find_builds(&lab, names, &progress)?;
    let boots = replicates(lab.machine(), 1, boots);
    let mut plan = plan_runs(measure, &builds, suite, &workloads, &boots);
    plan.sampled = Sampled::Yes;
    if matches!(builds.as_slice(), [base, new] if base.id == new.id) {
        // Stored runs would be those of both sides.
        plan.reuse = Reuse::Nothing;
    }
    let refused: Shared<BTreeMap<String, String>> = Shared::default();
    let runs = as_sides(lab.execute(&plan, &|event| {
        if let Event::NoProfile {
            workload: Some(workload),
            why,
            ..
        } = &event
        {
            refused.lock().insert(workload.clone(), why.clone());
        }
        progress.event(&event);
    })?);
    let builds = as_sides(builds);
    progress.end();
    let refused = refused.into_inner();
    let found = profiles(&workloads, &runs, &refused, &|run, workload| {
        Ok(lab.sampled(run, workload)?)
    })?;
    Ok(SampledKernels {
        builds,
        machine: lab.machine().summary.clone(),
        found,
        runs,
    })
}

/// Collects the profiles of each workload that one of the runs measured.
pub(crate) fn profiles(
    workloads: &[Arc<Workload>],
    runs: &[Vec<Run>],
    refused: &BTreeMap<String, String>,
    read: &dyn Fn(&RunId, &Workload) -> anyhow::Result<Option<SampledProfile>>,
) -> anyhow::Result<Vec<(String, SampledSides)>> {
    let mut all = Vec::new();
    for workload in workloads {
        let mut sides = [Vec::new(), Vec::new()];
        let mut why = refused.get(workload.job_name()).cloned();
        let mut is_measured = false;
        for (side, run) in runs
            .iter()
            .enumerate()
            .flat_map(|(side, runs)| runs.iter().map(move |run| (side, run)))
        {
            let Some(result) = run
                .results
                .iter()
                .find(|result| result.workload == workload.name)
            else {
                continue;
            };
            is_measured = true;
            match &result.outcome {
                Outcome::Completed => sides[side.min(1)].extend(read(&run.id, workload)?),
                Outcome::Unsupported(reason) => {
                    why = why.or(Some(format!("unsupported: {reason}")));
                }
                Outcome::Failed(failure) => why = why.or(Some(failure.reason.to_string())),
            }
        }
        if is_measured {
            let are_there = sides.iter().all(|side| !side.is_empty());
            let found = if are_there {
                Ok(sides)
            } else {
                let unsampled = "one of the kernels was measured without samples";
                Err(why.unwrap_or_else(|| unsampled.to_owned()))
            };
            all.push((workload.name.to_string(), found));
        }
    }
    Ok(all)
}

/// Finds the ledger of a workload on both kernels, with its runs, if it is stored: of the newest
/// machine that counted both.
pub(crate) fn stored_ledger(
    store: &Store,
    builds: &[Build],
    workload: &str,
) -> anyhow::Result<Option<(Ledger, Vec<Vec<Run>>)>> {
    let all = builds
        .iter()
        .map(|build| store.runs_of_build(&build.id))
        .collect::<Result<Vec<_>, _>>()?;
    let mut seen: Vec<&MachineId> = Vec::new();
    for machine in all.iter().flatten().map(|run| &run.machine) {
        if seen.contains(&machine) {
            continue;
        }
        seen.push(machine);
        if !store.machine(machine)?.capabilities().deterministic {
            continue;
        }
        let of_side = |side: &Vec<RunSummary>| -> anyhow::Result<Vec<Run>> {
            let ids = side
                .iter()
                .filter(|run| run.machine == *machine)
                .map(|run| &run.id);
            let runs = ids.map(|id| store.run(id)).collect::<Result<Vec<_>, _>>()?;
            let mut replicates = BTreeSet::new();
            let mut has_it = |run: &Run| {
                run.results.iter().any(|result| result.workload == workload)
                    && replicates.insert(run.seed)
            };
            Ok(runs.into_iter().filter(|run| has_it(run)).collect())
        };
        let runs = all
            .iter()
            .map(of_side)
            .collect::<anyhow::Result<Vec<_>>>()?;
        let read = |run: &RunId| Ok(lab::counted_profile(store, run, workload)?);
        if let Availability::Available(ledger) = read_ledger_with(&read, &runs, workload)? {
            return Ok(Some((ledger, runs)));
        }
    }
    Ok(None)
}
