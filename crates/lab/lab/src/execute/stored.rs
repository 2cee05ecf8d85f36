//! Results of earlier runs that answer a plan, so that Marvin need not measure them again.

use std::collections::BTreeSet;

use machine::Backend;
use model::{
    Build, BuildId, Clock, Declared, ExtraFiles, MachineId, Outcome, Run, Stage, Workload,
    WorkloadResult,
};
use store::Store;

use super::{ExecutionContext, MODULES};
use crate::LabError;
use crate::dump::{artifact, died};
use crate::machine_pool::Placement;
use crate::plan::{Dumps, Plan, Reuse, Sampled};
use crate::sampling::sampled_artifact;
use crate::tool_job::is_row_of;

/// Loads runs of earlier plans, reduced to what this plan asks for.
pub(super) fn load_runs(
    plan: &Plan<'_>,
    placements: &[Vec<Placement>],
    context: &ExecutionContext<'_>,
) -> Result<Vec<Vec<Run>>, LabError> {
    let store = context.store.lock();
    let mut sides = Vec::new();
    for (build, placements) in plan.sides.iter().zip(placements) {
        // The store refuses runs whose build or machine it does not know, and the new runs come
        // later.
        if !store.is_read_only() {
            store.save_build(build)?;
        }
        let mut found = Vec::new();
        for placement in placements {
            if !store.is_read_only() {
                store.save_machine(placement.machine.identity())?;
            }
            if plan.reuse == Reuse::Stored {
                found.extend(load_runs_on(plan, build, placement, &store, context)?);
            }
        }
        sides.push(found);
    }
    Ok(sides)
}

/// Loads the runs of a build on one machine.
fn load_runs_on(
    plan: &Plan<'_>,
    build: &Build,
    placement: &Placement,
    store: &Store,
    context: &ExecutionContext<'_>,
) -> Result<Vec<Run>, LabError> {
    let machine = &placement.machine.identity().id;
    let clock = placement.machine.capabilities().clock;
    // The newest first: of two results for one replicate the later one counts, as `seen` keeps the
    // first it meets.
    let mut runs: Vec<Run> = store
        .runs_of(&build.id, machine, plan.suite.name)?
        .into_iter()
        .rev()
        .collect();
    let modules = placement.modules_hash();
    runs.retain(|run| plan.replicates.contains(&run.seed) && same_modules(run, modules));
    let wanted = |result: &WorkloadResult| {
        plan.workloads
            .iter()
            .filter(|workload| workload.guest_config == placement.guest_config)
            .any(|workload| {
                answers(
                    result,
                    workload,
                    clock,
                    rounds(context, &*placement.machine, workload),
                )
            })
    };
    let samples = plan.sampled == Sampled::Yes && placement.machine.capabilities().sampling;
    let mut seen = BTreeSet::new();
    for run in &mut runs {
        let replicate = run.seed;
        // One query per run, which plans without dumps and samples are spared.
        let stored = if plan.dumps == Dumps::Keep || samples {
            store.artifact_names(&run.id)?
        } else {
            Vec::new()
        };
        let has_dump = |name: &str| {
            // A kernel that died at boot has one dump for all jobs.
            [name, "boot"]
                .iter()
                .any(|of| stored.contains(&artifact(of)))
        };
        let is_sampled = |name: &str| {
            // The rows of a workload share its job, and so its samples.
            let workload = plan.workloads.iter().find(|workload| workload.name == name);
            workload.is_some_and(|workload| stored.contains(&sampled_artifact(workload.job_name())))
        };
        // The numbers that a workload printed were measured with it.
        let answered: Vec<String> = run
            .results
            .iter()
            .filter(|result| wanted(result))
            .map(|result| result.workload.clone())
            .collect();
        let is_printed = |name: &str| {
            answered
                .iter()
                .any(|workload| context.tools.prints_rows(workload) && is_row_of(name, workload))
        };
        run.results.retain(|result| {
            (wanted(result) || is_printed(&result.workload))
                && (plan.dumps == Dumps::Drop
                    || !died(&result.outcome)
                    || has_dump(&result.workload))
                && (!samples
                    || result.outcome != Outcome::Completed
                    || is_sampled(&result.workload))
                && seen.insert((replicate, result.workload.clone()))
        });
    }
    runs.retain(|run| !run.results.is_empty());
    Ok(runs)
}

/// Returns whether a run had these modules: the build's id does not cover them.
fn same_modules(run: &Run, modules: Option<&str>) -> bool {
    let recorded = run
        .environment
        .iter()
        .find(|(name, _)| name == MODULES)
        .map(|(_, hash)| hash.as_str());
    recorded == modules
}

/// Returns the rounds of a workload on a machine; `None` if the machine must find them out.
pub(super) fn rounds(
    context: &ExecutionContext<'_>,
    machine: &dyn Backend,
    workload: &Workload,
) -> Option<u32> {
    let is_fixed = match machine.capabilities().clock {
        Clock::Instructions | Clock::Transfers => true,
        // A tool decides by itself how long it runs.
        Clock::Seconds => context.tools.workload(workload.job_name()).is_some(),
    };
    if is_fixed {
        Some(1)
    } else {
        context.calibration.rounds(&machine.identity().id, workload)
    }
}

/// Returns whether a stored result is what measuring the workload now would give, with so many
/// rounds.
fn answers(
    result: &WorkloadResult,
    workload: &Workload,
    clock: Clock,
    rounds: Option<u32>,
) -> bool {
    let is_completed = result.outcome == Outcome::Completed;
    let operations = rounds.map(|rounds| workload.operations * u64::from(rounds));
    // A workload that failed may have done so in the trial of the calibration, which has one round.
    let is_asked = Some(result.operations) == operations
        || !is_completed && result.operations == workload.operations;
    let iterations = usize::try_from(workload.iterations).unwrap_or(usize::MAX);
    let now = Declared::from_metric(&workload.metric, clock);
    result.workload == workload.name
        && is_asked
        && result.declared.as_ref().is_none_or(|then| then.agrees(&now))
        // A run of a tool may give several samples.
        && (!is_completed
            || result.samples.len() == iterations
            || matches!(workload.guest_config.files, ExtraFiles::Image(_)))
}

/// Returns builds that failed to boot in earlier runs: the plan skips their other replicates, as
/// the earlier plan did.
pub(super) fn known_unbootable(runs: &[Vec<Run>]) -> BTreeSet<(BuildId, MachineId)> {
    runs.iter()
        .flatten()
        .filter(|run: &&Run| {
            run.results.iter().any(|result| match &result.outcome {
                Outcome::Failed(failure) => {
                    matches!(failure.stage, Stage::Boot | Stage::Settle)
                }
                Outcome::Completed | Outcome::Unsupported(_) => false,
            })
        })
        .map(|run| (run.build.clone(), run.machine.clone()))
        .collect()
}
