//! One job: from a workload's declaration to the agent's task, and from the agent's frames to a
//! result.

use std::collections::BTreeMap;

use machine::{Backend, Booted, Disturbance, MachineError, Observe};
use model::{
    Availability, Build, CallTree, Clock, CostModel, Declared, Environment, FailureReason,
    Modelled, MonitorCopy, Offsets, Outcome, Processors, Profile, Quantity, Stage, SubjectFailure,
    Workload, WorkloadResult,
};
use wire::{Job, Perturbation, Task};

use crate::calibration::{fold, fold_numbers};
use crate::own_cost::{self, OwnCost};
use crate::perturb::perturbation;
use crate::run_in_progress::job_id;
use crate::symbols::Named;
use crate::tool_job;
use crate::tools::Tools;

/// Number of attempts at a job or a boot if the lab fails.
const TRIES: u32 = 3;

const NS_PER_S: f64 = 1e9;

/// A function that every kernel has as C code.
const KNOWN: &str = "vfs_read";

/// A booted build with what its jobs need.
#[derive(Clone, Copy)]
pub(crate) struct BootedBuild<'a> {
    pub(crate) build: &'a Build,
    pub(crate) replicate: u64,
    pub(crate) machine: &'a dyn Backend,
    /// The hash of the modules that the guest carries; `None` without any.
    pub(crate) modules: Option<&'a str>,
    pub(crate) booted: &'a dyn Booted,
    pub(crate) tools: &'a Tools,
}

impl BootedBuild<'_> {
    /// Returns a job of this name. On a machine without noise of its own, the replicate perturbs
    /// the guest.
    pub(crate) fn job(&self, name: &str, task: Task) -> Job {
        let deterministic = self.machine.capabilities().deterministic;
        let state = match &task {
            Task::Workload { name, .. } => model::layout_state(name),
            _ => None,
        };
        let perturbation = if deterministic {
            perturbation(self.replicate, state)
        } else {
            Perturbation::default()
        };
        let id = job_id(
            &self.build.id,
            &self.machine.identity().id,
            self.replicate,
            name,
        );
        Job {
            id,
            clock: self.wire_clock(),
            perturbation,
            task,
        }
    }

    /// Returns a job whose result does not depend on the replicate.
    pub(crate) fn plain_job(&self, task: Task) -> Job {
        // The guest reads the id: one that differed would let equal jobs take different paths.
        Job {
            id: 1,
            clock: self.wire_clock(),
            perturbation: Perturbation::default(),
            task,
        }
    }

    /// Returns the job of a workload.
    pub(crate) fn job_of(&self, workload: &Workload) -> Job {
        match self.tools.workload(workload.job_name()) {
            Some((tool, run)) => self.job(&run.name, tool_job::task(tool, run)),
            None => self.job(&workload.name, task(workload)),
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.machine.capabilities().clock
    }

    fn wire_clock(&self) -> wire::Clock {
        match self.clock() {
            // With instruction counting the TSC is the count of instructions.
            Clock::Instructions | Clock::Transfers => wire::Clock::Tsc,
            Clock::Seconds => wire::Clock::Monotonic,
        }
    }
}

/// The result of a job, with its console.
pub(crate) struct Fetched<T> {
    pub(crate) value: T,
    pub(crate) console: Vec<u8>,
}

/// The result of a workload.
pub(crate) struct Measured {
    pub(crate) value: WorkloadResult,
    /// Its other metrics, by row.
    pub(crate) rows: BTreeMap<String, Vec<u64>>,
    pub(crate) console: Vec<u8>,
    clock: Clock,
    /// What disturbed it on the host, if known.
    pub(crate) disturbance: Option<Disturbance>,
    /// What the lab itself took of a processor, if known.
    pub(crate) own_cost: Option<OwnCost>,
    /// Its profile as stored, or why there is none; `None` if not requested.
    pub(crate) profile: Option<Result<String, String>>,
    /// The tracer's counts that it is made of.
    pub(crate) counts: Vec<u8>,
    /// The lines that moved between processors, likewise.
    pub(crate) sharing: Option<Result<String, String>>,
}

/// Calls `action` and repeats it after a failure of the lab that may be temporary. A failure of the
/// kernel is a result and never repeated: a kernel that fails once in three must not look sound.
pub(crate) fn with_retries<T>(
    notify_retry: &dyn Fn(&MachineError),
    action: impl Fn() -> Result<T, MachineError>,
) -> Result<T, crate::LabError> {
    for tried in 1.. {
        match action() {
            Err(error) if error.is_passing() && tried < TRIES => notify_retry(&error),
            Err(error) if error.is_passing() => {
                return Err(crate::LabError::GaveUp {
                    tries: tried,
                    error,
                });
            }
            result => return Ok(result?),
        }
    }
    unreachable!("the loop returns at the last try")
}

/// Returns the guest's description of itself; empty if the guest fails to send it.
pub(crate) fn environment(on: BootedBuild<'_>) -> Result<Fetched<Environment>, MachineError> {
    let end = on
        .booted
        .run(&on.job("environment", Task::Environment), Observe::Nothing)?;
    let value = end
        .stream
        .map(|stream| ingest::environment(&stream))
        .unwrap_or_default();
    Ok(Fetched {
        value,
        console: end.console,
    })
}

/// Returns the symbols of the functions that are watched beside lines, and of the kernel's records
/// of memory; `None` on a machine that follows no lines, and without symbols.
pub(crate) fn marks_of_lines(on: BootedBuild<'_>, named: Option<&Named>) -> Option<String> {
    named
        .filter(|_| on.machine.capabilities().sharing)
        .map(|named| named.watched.clone() + &named.records().marks(&named.symbols))
}

/// Returns what a machine observes while it measures: `marks` are those of lines.
pub(crate) fn observe_measured<'a>(
    on: BootedBuild<'_>,
    named: Option<&'a Named>,
    marks: Option<&'a str>,
) -> Observe<'a> {
    let can = on.machine.capabilities();
    match (named.filter(|_| can.counts), marks) {
        (Some(named), _) => Observe::Counts(&named.marks),
        (None, Some(marks)) => Observe::Sharing(marks),
        // Lines are the result, with names or without.
        (None, None) if can.sharing => Observe::Sharing(""),
        (None, None) => Observe::Nothing,
    }
}

/// Returns the lines that moved as stored, or why they cannot be read.
pub(crate) fn lines_text(
    shared: Option<Vec<u8>>,
    named: &Named,
    operations: u64,
) -> Result<String, String> {
    let field = |of: ingest::Object<'_>, offset| named.records().field(of, offset);
    ingest::sharing(
        &shared.unwrap_or_default(),
        &named.symbols,
        &field,
        operations,
    )
    .map(|sharing| ingest::sharing_to_text(&sharing))
    .map_err(|error| error.to_string())
}

/// Runs one workload, and counts the instructions of each function if the functions are known. So
/// many rounds of its operations are one iteration.
pub(crate) fn workload(
    on: BootedBuild<'_>,
    workload: &Workload,
    rounds: u32,
    named: Option<&Named>,
) -> Result<Measured, MachineError> {
    let can = on.machine.capabilities();
    let counted = named.filter(|_| can.counts);
    let marks = marks_of_lines(on, named);
    let observe = observe_measured(on, named, marks.as_deref());
    // The guest runs this many iterations for each declared one, and `fold` averages them below:
    // an iteration that is too short drowns in the noise of a clock.
    let repeated = Workload {
        iterations: workload.iterations.saturating_mul(rounds),
        warm_up: workload.warm_up.saturating_mul(rounds),
        ..workload.clone()
    };
    // The profile and the lines come from the measured job itself, so they cannot be those of
    // another path through the kernel.
    let (end, own_cost) = own_cost::run(on, &on.job_of(&repeated), observe)?;
    let rows = end.stream.as_ref().map(ingest::rows).unwrap_or_default();
    let rows = rows
        .into_iter()
        .map(|(name, numbers)| (name, fold_numbers(&numbers, rounds)))
        .collect();
    let (outcome, samples) = match end.stream {
        Err(failure) => (machine::outcome_of(failure), Vec::new()),
        Ok(stream) => ingest::outcome(&stream, repeated.operations, repeated.iterations)
            .unwrap_or_else(|error| (damaged(&error), Vec::new())),
    };
    let outcome = explain_by_console(outcome, &end.console);
    let samples = fold(&samples, rounds);
    // Only of a job that completed: what a failed one moved or counted is cut off anywhere.
    let sharing = named
        .filter(|_| can.sharing && outcome == Outcome::Completed)
        .map(|named| lines_text(end.shared, named, workload.operations));
    let counts = end.counts.unwrap_or_default();
    let profile = counted
        .filter(|_| outcome == Outcome::Completed)
        .map(|named| {
            ingest::profile(&counts, &named.symbols, workload.operations)
                .map_err(|error| error.to_string())
        });
    let regions = profile
        .as_ref()
        .and_then(|profile| Some(profile.as_ref().ok()?.regions.clone()));
    // The plugin records one region per iteration; another number means that they do not match.
    let counted = regions
        .filter(|regions| regions.len() == samples.len())
        .unwrap_or_default();
    let value = WorkloadResult {
        workload: workload.name.to_string(),
        // As measured, and not as declared: a later plan reuses the result only if it would take as
        // many rounds.
        operations: workload.operations * u64::from(rounds),
        declared: Some(Declared::from_metric(&workload.metric, on.clock())),
        outcome,
        samples,
        counted,
    };
    let profile = profile.map(|profile| profile.map(|profile| ingest::profile_to_text(&profile)));
    let disturbance = end.disturbance;
    Ok(Measured {
        value,
        rows,
        console: end.console,
        clock: on.clock(),
        disturbance,
        own_cost,
        profile,
        counts,
        sharing,
    })
}

impl Measured {
    /// Returns how long the fastest iteration took (ns), which says most on a busy host; `None`
    /// unless it completed.
    pub(crate) fn iteration_ns(&self) -> Option<f64> {
        let WorkloadResult {
            outcome,
            samples,
            operations,
            ..
        } = &self.value;
        let operation_ns = samples
            .iter()
            .copied()
            .reduce(f64::min)
            .filter(|_| *outcome == Outcome::Completed)?;
        Some(operation_ns * *operations as f64)
    }

    /// Returns the result of the workload that ran, or of one of its rows.
    pub(crate) fn result_of(&self, workload: &Workload) -> WorkloadResult {
        let declared = Some(Declared::from_metric(&workload.metric, self.clock));
        let whole = WorkloadResult {
            workload: workload.name.to_string(),
            declared,
            ..self.value.clone()
        };
        if whole.outcome != Outcome::Completed {
            return whole;
        }
        let quantity = &workload.metric.quantity;
        if workload.row_of.is_none() {
            let samples = whole
                .samples
                .iter()
                .map(|ticks| of_operation(quantity, *ticks))
                .collect();
            // Only costs are counted; other quantities use the clock.
            let counted = if *quantity == Quantity::Cost {
                whole.counted
            } else {
                Vec::new()
            };
            return WorkloadResult {
                samples,
                counted,
                ..whole
            };
        }
        // A row is one number per iteration from the agent; instructions are counted for the whole
        // job.
        let counted = Vec::new();
        match self
            .rows
            .get(&*workload.name)
            .filter(|row| row.len() == whole.samples.len())
        {
            Some(row) => {
                let samples = row.iter().map(|number| of_row(quantity, *number)).collect();
                WorkloadResult {
                    samples,
                    counted,
                    ..whole
                }
            }
            None => {
                let reason = FailureReason::BadStream(format!("no row {}", workload.name));
                let failure = SubjectFailure {
                    stage: Stage::Results,
                    reason,
                    console_tail: String::new(),
                };
                WorkloadResult {
                    outcome: Outcome::Failed(failure),
                    samples: Vec::new(),
                    counted,
                    ..whole
                }
            }
        }
    }
}

/// Returns the metric's value of an operation that takes `ticks`: nanoseconds, and instructions too
/// if the clock counts them.
fn of_operation(quantity: &Quantity, ticks: f64) -> f64 {
    match quantity {
        // A coarse clock may show no ticks at all: the rate stays a number.
        Quantity::Rate => NS_PER_S / ticks.max(f64::MIN_POSITIVE),
        Quantity::Duration => ticks / NS_PER_S,
        Quantity::Cost | Quantity::Time | Quantity::Count | Quantity::Percent | Quantity::Of(_) => {
            ticks
        }
    }
}

/// Returns the metric's value for a number from the agent: nanoseconds, a count, or thousandths of
/// a percent.
fn of_row(quantity: &Quantity, number: u64) -> f64 {
    match quantity {
        Quantity::Duration => number as f64 / NS_PER_S,
        Quantity::Percent => number as f64 / 1000.0,
        Quantity::Cost | Quantity::Time | Quantity::Rate | Quantity::Count | Quantity::Of(_) => {
            number as f64
        }
    }
}

/// Runs one workload and copies the kernel's counters before and after it, and every `interval_ms`
/// milliseconds if that is not 0.
pub(crate) fn observe(
    on: BootedBuild<'_>,
    workload: &Workload,
    interval_ms: u64,
) -> Result<Availability<Vec<MonitorCopy>>, MachineError> {
    let mut job = on.job_of(workload);
    if let Task::Workload { monitors, .. } = &mut job.task {
        *monitors = Some(interval_ms);
    }
    let end = on.booted.run(&job, Observe::Nothing)?;
    let stream = match end.stream {
        Ok(stream) => stream,
        Err(failure) => return Ok(Availability::Unavailable(failure.reason.to_string())),
    };
    // Copies of a workload that failed are not meaningful.
    let why = match ingest::outcome(&stream, workload.operations, workload.iterations) {
        Ok((Outcome::Completed, _)) => return Ok(Availability::Available(ingest::copies(&stream))),
        Ok((Outcome::Unsupported(why), _)) => format!("not supported: {why}"),
        Ok((Outcome::Failed(failure), _)) => failure.reason.to_string(),
        Err(error) => error.to_string(),
    };
    Ok(Availability::Unavailable(why))
}

/// The result of following calls.
pub(crate) struct Calls {
    /// The same profile as that of the measurement.
    pub(crate) profile: Profile,
    pub(crate) tree: CallTree,
    /// The profile with inlined functions separate, if there is debug information.
    pub(crate) expanded: Option<Profile>,
}

/// Runs one workload and follows its calls; the guest repeats what it did during the measurement.
pub(crate) fn calls(
    on: BootedBuild<'_>,
    workload: &Workload,
    named: &Named,
) -> Result<Availability<Calls>, MachineError> {
    let end = on.booted.run(
        &on.job_of(workload),
        Observe::Calls(&named.symbols.call_marks()),
    )?;
    if let Err(failure) = end.stream {
        return Ok(Availability::Unavailable(failure.reason.to_string()));
    }
    let counts = end.counts.unwrap_or_default();
    let profile = ingest::profile(&counts, &named.symbols, workload.operations);
    Ok(profile
        .map_err(|error| error.to_string())
        .and_then(|profile| {
            let tree = ingest::call_tree(&end.calls.unwrap_or_default(), &named.symbols, &profile);
            let expanded = separate_inlined(&counts, on.build, named, workload.operations);
            tree.map(|tree| Calls {
                profile,
                tree,
                expanded,
            })
            .map_err(|error| error.to_string())
        })
        .into())
}

/// Runs one workload again and returns its profile, which must be the measurement's, with the
/// executions of each instruction.
pub(crate) fn counts(
    on: BootedBuild<'_>,
    workload: &Workload,
    named: &Named,
) -> Result<Availability<(Profile, Offsets)>, MachineError> {
    let observe = Observe::Counts(&named.marks);
    let end = on.booted.run(&on.job_of(workload), observe)?;
    if let Err(failure) = end.stream {
        return Ok(Availability::Unavailable(failure.reason.to_string()));
    }
    let counts = end.counts.unwrap_or_default();
    let profile = ingest::profile(&counts, &named.symbols, workload.operations);
    let both = profile.map(|profile| {
        let offsets = ingest::offsets(&counts, &named.symbols, profile.operations);
        (profile, offsets)
    });
    Ok(both.map_err(|error| error.to_string()).into())
}

/// The result of a simulated processor.
pub(crate) struct Simulated {
    /// The same profile as that of the measurement.
    pub(crate) profile: Profile,
    pub(crate) modelled: Modelled,
}

/// Runs one workload on a simulated processor; the guest repeats what it did during the
/// measurement.
pub(crate) fn simulate(
    on: BootedBuild<'_>,
    workload: &Workload,
    named: &Named,
    model: &CostModel,
) -> Result<Availability<Simulated>, MachineError> {
    let end = on
        .booted
        .run(&on.job_of(workload), Observe::Model(&named.marks, model))?;
    if let Err(failure) = end.stream {
        return Ok(Availability::Unavailable(failure.reason.to_string()));
    }
    let counts = end.counts.unwrap_or_default();
    let profile = ingest::profile(&counts, &named.symbols, workload.operations);
    Ok(profile
        .map_err(|error| error.to_string())
        .and_then(|profile| {
            let modelled = ingest::modelled(&counts, &named.symbols, &profile);
            modelled
                .map(|modelled| Simulated { profile, modelled })
                .ok_or_else(|| "the model's output is invalid".into())
        })
        .into())
}

/// Separates inlined functions, if the booted file has debug information.
fn separate_inlined(
    counts: &[u8],
    build: &Build,
    named: &Named,
    operations: u64,
) -> Option<Profile> {
    let known = named.symbols.address(KNOWN)?;
    let inlines = kernel::Inlines::open(&build.boot_file().path, known)?;
    ingest::profile_by(counts, &named.symbols, operations, &|address| {
        inlines.function(address)
    })
    .ok()
}

fn task(workload: &Workload) -> Task {
    Task::Workload {
        name: workload.name.to_string(),
        operations: workload.operations,
        warm_up: workload.warm_up,
        iterations: workload.iterations,
        tasks: workload.tasks.unwrap_or(1),
        all_processors: workload.processors == Processors::All,
        probes: Vec::new(),
        monitors: None,
        sampling: None,
    }
}

fn damaged(error: &ingest::IngestError) -> Outcome {
    Outcome::Failed(SubjectFailure {
        stage: Stage::Results,
        reason: FailureReason::BadStream(error.to_string()),
        console_tail: String::new(),
    })
}

/// The agent only sees that its worker was killed; the console may have the reason, and takes
/// precedence.
pub(crate) fn explain_by_console(outcome: Outcome, console: &[u8]) -> Outcome {
    match outcome {
        Outcome::Failed(mut failure) if failure.console_tail.is_empty() => {
            // Or a process of the worker was killed.
            if let FailureReason::AgentDied(_) | FailureReason::WorkloadFailed(_) = failure.reason
                && let Some(reason) = machine::reason_in(console)
            {
                failure.reason = reason;
            }
            failure.console_tail = machine::readable_tail(console);
            Outcome::Failed(failure)
        }
        outcome => outcome,
    }
}
