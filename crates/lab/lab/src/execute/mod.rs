//! Executes a plan: threads take jobs from a queue and store each run after its last job.
//!
//! `stored` decides which results of earlier runs answer the plan, `durations` how long the rest
//! takes; `worker` is what each thread does, `measure` one job of it, `save` keeps what it brought.

mod durations;
mod measure;
mod save;
mod stored;
mod worker;

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use machine::Backend;
use model::{BuildId, KernelName, MachineId, Run};
use store::Store;
use subprocess::Shared;

pub use self::durations::estimate_measurement;
use self::durations::forecast;
use self::stored::{known_unbootable, load_runs};
use crate::calibration::Calibration;
use crate::forecast::Forecast;
use crate::interrupt::Unstored;
use crate::machine_pool::{MachinePool, Placement, guest_configs};
use crate::offsets::Watched;
use crate::plan::{BootOrder, Dumps, Item, Plan, Sampled, Turns, Waiting, interleave};
use crate::run_in_progress::RunInProgress;
use crate::symbols::SymbolCache;
use crate::tools::Tools;
use crate::turn::Turn;
use crate::{Event, LabError};

/// Name of a guest's modules in the environment.
const MODULES: &str = "modules sha256";

/// The lab's parts that an execution uses.
pub(crate) struct ExecutionContext<'a> {
    pub(crate) machine_pool: &'a MachinePool,
    pub(crate) store: &'a Shared<Store>,
    pub(crate) symbols: &'a SymbolCache,
    pub(crate) calibration: &'a Calibration,
    pub(crate) tools: &'a Tools,
    pub(crate) watched: Watched,
    pub(crate) turn: &'a Turn,
    pub(crate) notify: &'a (dyn Fn(Event) + Sync),
}

/// What the threads share.
struct Execution<'a> {
    context: &'a ExecutionContext<'a>,
    suite: &'a str,
    dumps: Dumps,
    sampled: Sampled,
    forecast: Forecast,
    runs_in_progress: Vec<RunInProgress<'a>>,
    queue: Shared<VecDeque<Item>>,
    unbootable: Shared<BTreeSet<(BuildId, MachineId)>>,
    finished: Shared<Vec<(usize, Run)>>,
    /// Whether the user ends Marvin and all is stored.
    is_closed: Shared<bool>,
}

/// Says that guests of a QEMU of ours run without walls.
fn notify_missing_walls(context: &ExecutionContext<'_>) {
    let can = context.machine_pool.plain().capabilities();
    let starts_qemu = can.boots && !can.foreign && !can.installed_tools;
    if starts_qemu
        && subprocess::wants_walls()
        && let Some(none) = subprocess::no_walls()
    {
        (context.notify)(Event::NoWalls {
            why: none.why.clone(),
        });
    }
}

/// Executes a plan and returns the runs of each side: reused and new ones.
pub(crate) fn execute(
    plan: &Plan<'_>,
    context: &ExecutionContext<'_>,
) -> Result<Vec<Vec<Run>>, LabError> {
    check(plan, context.machine_pool.plain())?;
    // Before stored runs are looked for: they answer only for the machine that would measure now.
    let placements = placements(plan, context.machine_pool)?;
    let mut runs = load_runs(plan, &placements, context)?;
    let mut runs_in_progress = missing(plan, &placements, &runs);
    if runs_in_progress.iter().any(|run| run.jobs() > 0) && context.turn.take()? {
        // While Marvin waited, another process may have measured some of it.
        runs = load_runs(plan, &placements, context)?;
        runs_in_progress = missing(plan, &placements, &runs);
    }
    let reused = runs.iter().flatten().map(|run| run.results.len()).sum();
    let mut waiting: Vec<Waiting> = Vec::with_capacity(runs_in_progress.len());
    for run in &runs_in_progress {
        waiting.push(Waiting {
            replicate: run.replicate,
            jobs: run.jobs(),
        });
    }
    (context.notify)(Event::Planned {
        jobs: waiting.iter().map(|run| run.jobs).sum(),
        reused,
    });
    if !runs_in_progress.is_empty() {
        notify_missing_walls(context);
    }
    let forecast = forecast(&runs_in_progress, context, plan.machines)?;
    let at_once = context
        .machine_pool
        .plain()
        .capabilities()
        .boots_at_once
        .max(1);
    // A further thread would only wait for another one to release its boot.
    let workers = plan.machines.clamp(1, at_once);
    // A worker that moves to the next replicate may find the previous one's sides still booted by
    // others.
    let turns = if at_once >= plan.sides.len() + workers {
        Turns::Jobs
    } else {
        Turns::Boots
    };
    let execution = Execution {
        context,
        suite: plan.suite.name,
        dumps: plan.dumps,
        sampled: plan.sampled,
        forecast,
        queue: Shared::new(interleave(&waiting, plan.sides.len(), turns, boot_order(plan)).into()),
        runs_in_progress,
        unbootable: Shared::new(known_unbootable(&runs)),
        finished: Shared::default(),
        is_closed: Shared::new(false),
    };
    // Tells the thread that waits for an interrupt that no worker runs any more.
    let is_over = AtomicBool::new(false);
    let mut unstored = None;
    let worked = std::thread::scope(|scope| {
        // A thread of its own, as a worker may be in a job for minutes when the user ends Marvin.
        scope.spawn(|| execution.store_when_interrupted(&is_over));
        let workers: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| execution.work()))
            .collect();
        let ends: Vec<_> = workers
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        if ends.iter().any(|end| !matches!(end, Ok(Ok(())))) {
            // Ctrl-C may end a machine before Marvin sees the signal: what is stored below counts.
            unstored = Some(Unstored::begin());
        }
        // Only now: until the last worker has ended, an interruption has results to store.
        is_over.store(true, Ordering::SeqCst);
        // A panic in a thread is a bug in Marvin: pass it on.
        ends.into_iter()
            .try_for_each(|end| end.unwrap_or_else(|bug| std::panic::resume_unwind(bug)))
    });
    if worked.is_err() {
        // Store what was measured before the lab failed, so that the next attempt reuses it.
        execution
            .runs_in_progress
            .iter()
            .filter(|run| run.has_unstored_results())
            .try_for_each(|run| execution.store_run(run))?;
    }
    drop(unstored);
    // After a failure too, or a machine would stay as its last job left it.
    let released = execution
        .runs_in_progress
        .iter()
        .try_for_each(RunInProgress::release);
    worked?;
    released?;
    for (side, run) in execution.finished.into_inner() {
        runs[side].push(run);
    }
    Ok(runs)
}

/// Returns sides and replicates of a plan that have no complete stored results.
pub(crate) fn missing_of(
    plan: &Plan<'_>,
    context: &ExecutionContext<'_>,
) -> Result<Vec<(usize, u64)>, LabError> {
    check(plan, context.machine_pool.plain())?;
    let placements = placements(plan, context.machine_pool)?;
    let runs = load_runs(plan, &placements, context)?;
    let missing = missing(plan, &placements, &runs);
    let mut places = Vec::new();
    // A side that boots several guest configs is missing once.
    for run in missing.iter().filter(|run| run.jobs() > 0) {
        let place = (run.side, run.replicate);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}

/// Checks that a machine can measure a kernel: it boots builds, or it measures the kernel that it
/// runs.
pub(crate) fn check_kernel(name: &KernelName, machine: &dyn Backend) -> Result<(), LabError> {
    let boots = machine.capabilities().boots;
    // A machine that boots needs an image, and one that does not can only measure the kernel that
    // it runs.
    if boots == (*name == KernelName::Running) {
        let machine = machine.identity().kind;
        let kernel = name.to_string();
        return Err(LabError::OtherKernel {
            machine,
            kernel,
            boots,
        });
    }
    Ok(())
}

fn check(plan: &Plan<'_>, machine: &dyn Backend) -> Result<(), LabError> {
    plan.sides
        .iter()
        .try_for_each(|side| check_kernel(&side.name, machine))?;
    let processors = machine.capabilities().processors;
    if let Some((workload, tasks)) = plan
        .workloads
        .iter()
        .find_map(|w| Some((w, w.tasks.filter(|tasks| *tasks > processors)?)))
    {
        let machine = machine.identity().kind;
        let workload = workload.name.to_string();
        return Err(LabError::TooFewProcessors {
            machine,
            workload,
            tasks,
            processors,
        });
    }
    let parts = [
        (plan.sides.is_empty(), "kernel"),
        (plan.replicates.is_empty(), "seed"),
        (plan.workloads.is_empty(), "workload"),
    ];
    parts
        .into_iter()
        .find(|(empty, _)| *empty)
        .map_or(Ok(()), |(_, what)| Err(LabError::Empty(what)))
}

/// Returns where each side runs the plan's workloads: a machine per guest config.
fn placements(
    plan: &Plan<'_>,
    machine_pool: &MachinePool,
) -> Result<Vec<Vec<Placement>>, LabError> {
    let guest_configs = guest_configs(&plan.workloads);
    plan.sides
        .iter()
        .map(|build| {
            guest_configs
                .iter()
                .map(|guest_config| machine_pool.placement(build, guest_config))
                .collect()
        })
        .collect()
}

/// Returns the order of boots, which depends on what is measured alone.
fn boot_order(plan: &Plan<'_>) -> BootOrder {
    let builds = plan.sides.iter().map(|build| build.id.to_string());
    BootOrder::new(builds.chain([plan.suite.name.to_string()]))
}

/// Lists what is still to measure: one run per replicate, guest config and side, in this order.
fn missing<'a>(
    plan: &Plan<'a>,
    placements: &[Vec<Placement>],
    runs: &[Vec<Run>],
) -> Vec<RunInProgress<'a>> {
    let mut runs_in_progress = Vec::new();
    for &replicate in &plan.replicates {
        for guest_config in guest_configs(&plan.workloads) {
            for (side, build) in plan.sides.iter().enumerate() {
                let Some(placement) = placements[side]
                    .iter()
                    .find(|placement| placement.guest_config == guest_config)
                else {
                    continue;
                };
                let here = plan
                    .workloads
                    .iter()
                    .filter(|w| w.guest_config == placement.guest_config);
                // A side with nothing to measure has a run without jobs all the same: `interleave`
                // takes every so many runs for one replicate on all sides.
                let workloads = here
                    .filter(|w| {
                        !runs[side].iter().any(|run| {
                            run.seed == replicate
                                && run.results.iter().any(|r| r.workload == w.name)
                        })
                    })
                    .cloned()
                    .collect();
                runs_in_progress.push(RunInProgress::new(
                    side,
                    build,
                    replicate,
                    placement.clone(),
                    workloads,
                ));
            }
        }
    }
    runs_in_progress
}
