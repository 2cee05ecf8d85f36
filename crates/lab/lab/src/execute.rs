//! Executes a plan: threads take jobs from a queue and store each run after its last job.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use machine::{Backend, Boot, Booted, DeadMemory, MachineError};
use model::{
    Build, BuildId, Clock, Declared, ExtraFiles, KernelName, MachineId, Outcome, Run, Stage,
    Workload, WorkloadResult, disturbed_pair,
};
use store::{Artefact, RunSummary, Store};

use crate::calibration::{Calibration, Trial};
use crate::disturbed::{self, Disturbed, LOAD};
use crate::dump::{artefact, died, dump, is_death};
use crate::estimate::{BOOT, TIMES, Times, to_text};
use crate::forecast::Forecast;
use crate::interrupt::{self, PAUSE, Unstored, is_interrupted};
use crate::job::{Measured, Subject, environment, with_retries, workload};
use crate::lab::SHARING;
use crate::machine_pool::{MachinePool, Placement, guest_configs};
use crate::plan::{Dumps, Item, Plan, Reuse, Sampled, Turns, interleave};
use crate::run_in_progress::RunInProgress;
use crate::sampling::{sample, sampled_artefact};
use crate::symbols::{Known, Named, SymbolCache};
use crate::tool_job;
use crate::tools::Tools;
use crate::{Estimate, Event, LabError, Replicate, host};

/// Name of a guest's modules in the environment.
const MODULES: &str = "modules sha256";
/// Name of the artifact with what a build printed until jobs could start, or until it failed.
const BOOT_CONSOLE: &str = "boot.console";

/// The lab's parts that an execution uses.
pub(crate) struct Bench<'a> {
    pub(crate) machine_pool: &'a MachinePool,
    pub(crate) store: &'a Mutex<Store>,
    pub(crate) symbols: &'a SymbolCache,
    pub(crate) calibration: &'a Calibration,
    pub(crate) tools: &'a Tools,
    pub(crate) notify: &'a (dyn Fn(Event) + Sync),
}

/// What the threads share.
struct Shared<'a> {
    bench: &'a Bench<'a>,
    suite: &'a str,
    dumps: Dumps,
    sampled: Sampled,
    forecast: Forecast,
    runs_in_progress: Vec<RunInProgress<'a>>,
    queue: Mutex<VecDeque<Item>>,
    unbootable: Mutex<BTreeSet<(BuildId, MachineId)>>,
    made: Mutex<Vec<(usize, Run)>>,
    /// Whether the user ends Marvin and all is stored.
    is_closed: Mutex<bool>,
}

/// Executes a plan and returns the runs of each side: reused and new ones.
pub(crate) fn execute(plan: &Plan<'_>, bench: &Bench<'_>) -> Result<Vec<Vec<Run>>, LabError> {
    check(plan, bench.machine_pool.plain())?;
    let placements = placements(plan, bench.machine_pool)?;
    let mut runs = load_runs(plan, &placements, bench)?;
    let reused = runs.iter().flatten().map(|run| run.results.len()).sum();
    let runs_in_progress = missing(plan, &placements, &runs);
    let jobs: Vec<usize> = runs_in_progress.iter().map(RunInProgress::jobs).collect();
    (bench.notify)(Event::Planned {
        jobs: jobs.iter().sum(),
        reused,
    });
    let forecast = forecast(&runs_in_progress, bench, plan.machines)?;
    let at_once = bench
        .machine_pool
        .plain()
        .capabilities()
        .boots_at_once
        .max(1);
    let workers = plan.machines.clamp(1, at_once);
    // A worker that moves to the next replicate may find the previous one's sides still booted by
    // others.
    let turns = if at_once >= plan.sides.len() + workers {
        Turns::Jobs
    } else {
        Turns::Boots
    };
    let shared = Shared {
        bench,
        suite: plan.suite.name,
        dumps: plan.dumps,
        sampled: plan.sampled,
        forecast,
        queue: Mutex::new(interleave(&jobs, plan.sides.len(), turns).into()),
        runs_in_progress,
        unbootable: Mutex::new(known_unbootable(&runs)),
        made: Mutex::default(),
        is_closed: Mutex::new(false),
    };
    let is_over = AtomicBool::new(false);
    let worked = std::thread::scope(|scope| {
        scope.spawn(|| shared.store_when_interrupted(&is_over));
        let workers: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| shared.work()))
            .collect();
        let ends: Vec<_> = workers
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        is_over.store(true, Ordering::SeqCst);
        // A panic in a thread is a bug in Marvin: pass it on.
        ends.into_iter()
            .try_for_each(|end| end.unwrap_or_else(|bug| std::panic::resume_unwind(bug)))
    });
    if worked.is_err() {
        // Store what was measured before the lab failed, so that the next attempt reuses it.
        shared
            .runs_in_progress
            .iter()
            .filter(|run| run.has_unstored_results())
            .try_for_each(|run| shared.keep(run))?;
    }
    let released = shared
        .runs_in_progress
        .iter()
        .try_for_each(RunInProgress::release);
    worked?;
    released?;
    for (side, run) in shared
        .made
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        runs[side].push(run);
    }
    Ok(runs)
}

/// Returns sides and replicates of a plan that have no complete stored results.
pub(crate) fn missing_of(
    plan: &Plan<'_>,
    bench: &Bench<'_>,
) -> Result<Vec<(usize, u64)>, LabError> {
    check(plan, bench.machine_pool.plain())?;
    let placements = placements(plan, bench.machine_pool)?;
    let runs = load_runs(plan, &placements, bench)?;
    let missing = missing(plan, &placements, &runs);
    let mut places: Vec<(usize, u64)> = missing
        .iter()
        .filter(|run| run.jobs() > 0)
        .map(|run| (run.side, run.replicate))
        .collect();
    places.dedup();
    Ok(places)
}

/// Checks that a machine can measure a kernel: it boots builds, or it measures the kernel that it
/// runs.
pub(crate) fn check_kernel(name: &KernelName, machine: &dyn Backend) -> Result<(), LabError> {
    let boots = machine.capabilities().boots;
    if boots == (*name == KernelName::Running) {
        let (machine, kernel) = (machine.identity().kind, name.to_string());
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
        let (machine, workload) = (machine.identity().kind, workload.name.to_string());
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
    let of_side = |build| {
        guest_configs
            .iter()
            .map(|guest_config| machine_pool.placement(build, guest_config))
            .collect()
    };
    plan.sides.iter().map(|build| of_side(build)).collect()
}

/// Loads runs of earlier plans, reduced to what this plan asks for.
fn load_runs(
    plan: &Plan<'_>,
    placements: &[Vec<Placement>],
    bench: &Bench<'_>,
) -> Result<Vec<Vec<Run>>, LabError> {
    let store = bench.store.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sides = Vec::new();
    for (build, placements) in plan.sides.iter().zip(placements) {
        store.save_build(build)?;
        let mut found = Vec::new();
        for placement in placements {
            store.save_machine(placement.machine.identity())?;
            if plan.reuse == Reuse::Stored {
                found.extend(load_runs_on(plan, build, placement, &store, bench)?);
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
    bench: &Bench<'_>,
) -> Result<Vec<Run>, LabError> {
    let (machine, clock) = (
        &placement.machine.identity().id,
        placement.machine.capabilities().clock,
    );
    let mut runs: Vec<Run> = store
        .runs_of(&build.id, machine, plan.suite.name)?
        .into_iter()
        .rev()
        .collect();
    let modules = placement.modules_hash();
    runs.retain(|run| plan.replicates.contains(&run.seed) && same_modules(run, modules.as_deref()));
    let wanted = |result: &WorkloadResult| {
        plan.workloads
            .iter()
            .filter(|workload| workload.guest_config == placement.guest_config)
            .any(|workload| {
                answers(
                    result,
                    workload,
                    clock,
                    rounds(bench, &*placement.machine, workload),
                )
            })
    };
    let samples = plan.sampled == Sampled::Yes && placement.machine.capabilities().sampling;
    let mut seen = BTreeSet::new();
    for run in &mut runs {
        let replicate = run.seed;
        let kept = if plan.dumps == Dumps::Keep || samples {
            store.artefact_names(&run.id)?
        } else {
            Vec::new()
        };
        let has_dump = |name: &str| [name, "boot"].iter().any(|of| kept.contains(&artefact(of)));
        let is_sampled = |name: &str| {
            let workload = plan.workloads.iter().find(|workload| workload.name == name);
            workload.is_some_and(|workload| kept.contains(&sampled_artefact(workload.job_name())))
        };
        run.results.retain(|result| {
            wanted(result)
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
fn rounds(bench: &Bench<'_>, machine: &dyn Backend, workload: &Workload) -> Option<u32> {
    let is_fixed = match machine.capabilities().clock {
        Clock::Instructions | Clock::Transfers => true,
        // A tool decides by itself how long it runs.
        Clock::Seconds => bench.tools.workload(workload.job_name()).is_some(),
    };
    if is_fixed {
        Some(1)
    } else {
        bench.calibration.rounds(&machine.identity().id, workload)
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
    let is_asked = Some(result.operations) == operations
        || !is_completed && result.operations == workload.operations;
    let iterations = usize::try_from(workload.iterations).unwrap_or(usize::MAX);
    result.workload == workload.name
        && is_asked
        && result.declared.as_ref().is_none_or(|then| then.agrees(&Declared::of(&workload.metric, clock)))
        // A run of a tool may give several samples.
        && (!is_completed
            || result.samples.len() == iterations
            || matches!(workload.guest_config.files, ExtraFiles::Image(_)))
}

/// Returns builds that failed to boot in earlier runs: the plan skips their other replicates, as
/// the earlier plan did.
fn known_unbootable(runs: &[Vec<Run>]) -> BTreeSet<(BuildId, MachineId)> {
    let never_ran = |run: &&Run| {
        let early = |stage| matches!(stage, Stage::Boot | Stage::Settle);
        run.results
            .iter()
            .any(|r| matches!(&r.outcome, Outcome::Failed(failure) if early(failure.stage)))
    };
    runs.iter()
        .flatten()
        .filter(never_ran)
        .map(|run| (run.build.clone(), run.machine.clone()))
        .collect()
}

/// Limit on runs read for their durations.
const RUNS_ASKED: usize = 30;

/// Estimates the duration from earlier runs on these machines and the load of the host.
fn forecast(
    runs_in_progress: &[RunInProgress<'_>],
    bench: &Bench<'_>,
    machines: usize,
) -> Result<Forecast, LabError> {
    let store = bench.store.lock().unwrap_or_else(PoisonError::into_inner);
    let here: BTreeSet<&MachineId> = runs_in_progress
        .iter()
        .map(|run| &run.placement.machine.identity().id)
        .collect();
    let times = times(&store, &|run| here.contains(&run.machine))?;
    let measured: Vec<&RunInProgress<'_>> = runs_in_progress
        .iter()
        .filter(|run| run.jobs() > 0)
        .collect();
    if measured.is_empty() {
        return Ok(Forecast::new(times, 0.0));
    }
    let work = times.work(measured.iter().flat_map(|run| parts(run)));
    (bench.notify)(Event::Estimated(
        work.at(host::rate(work.machines(machines))),
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
    for run in store.runs(RUNS_ASKED)?.iter().filter(|run| counts(run)) {
        if store
            .artefact_names(&run.id)?
            .iter()
            .any(|name| name == TIMES)
        {
            times.add(&String::from_utf8_lossy(&store.artefact(&run.id, TIMES)?));
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
    Ok(work.at(host::rate(work.machines(machines))))
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
                let there = |name: &str| {
                    runs[side].iter().any(|run| {
                        run.seed == replicate && run.results.iter().any(|r| r.workload == name)
                    })
                };
                let here = plan
                    .workloads
                    .iter()
                    .filter(|w| w.guest_config == placement.guest_config);
                let workloads = here.filter(|w| !there(&w.name)).cloned().collect();
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

impl Shared<'_> {
    fn work(&self) -> Result<(), LabError> {
        loop {
            let item = self
                .queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            let Some(item) = item else { return Ok(()) };
            if let Err(error) = self.one(item) {
                // The other threads finish their jobs and store complete runs.
                self.queue
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clear();
                return Err(error);
            }
        }
    }

    fn one(&self, item: Item) -> Result<(), LabError> {
        let run = &self.runs_in_progress[item.run];
        let notify = self.bench.notify;
        let unbootable = || {
            self.unbootable
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let bootable = || !unbootable().contains(&run.booted_as());
        if !run.begin(bootable) {
            self.skip(run, item.job);
            notify(Event::LeftOut);
            return Ok(());
        }
        let boot = run.boot(|| self.boot(run))?;
        match &*boot {
            Ok(Boot::Ready(start)) => {
                if item.job == 0 && !start.boot_console().is_empty() {
                    run.progress()
                        .consoles
                        .push((BOOT_CONSOLE.into(), start.boot_console().to_vec()));
                }
                let part = self.forecast.begin();
                self.measure(run, item.job, &**start)?;
                run.progress()
                    .times
                    .push(self.forecast.end(run.job_name(item.job), &part));
            }
            Err(why) => {
                self.skip(run, item.job);
                let results = run
                    .brought(item.job)
                    .map(|(n, workload)| (n, run.unsupported(workload, why)));
                run.progress().results.extend(results);
            }
            Ok(Boot::Failed(failure, console)) => {
                self.forecast.skip(run.job_name(item.job));
                unbootable().insert(run.booted_as());
                let dump = (item.job == 0 && is_death(&failure.reason)).then(|| {
                    self.dump(run, "boot", || {
                        run.placement.boot_to_death(run.build, run.replicate)
                    })
                });
                let mut progress = run.progress();
                progress.consoles.extend(dump.flatten());
                if item.job == 0 {
                    progress
                        .consoles
                        .push((BOOT_CONSOLE.into(), console.clone()));
                }
                let results = run
                    .brought(item.job)
                    .map(|(n, workload)| (n, run.not_booted(workload, failure)));
                progress.results.extend(results);
            }
        }
        drop(boot);
        if is_interrupted() {
            // What is printed from here on might not be stored.
            interrupt::wait_for_the_end();
        }
        let workload = run.job_name(item.job).to_owned();
        let (build, version, value) = (
            run.build.id.clone(),
            run.build.version.clone(),
            run.value(item.job),
        );
        notify(Event::Left {
            seconds: self.forecast.left_s(),
        });
        notify(Event::Done {
            build,
            version,
            replicate: self.called(run),
            workload,
            value,
        });
        if run.finish_one() {
            self.keep(run)?;
            run.release()?;
        }
        Ok(())
    }

    /// Returns a run's replicate for messages.
    fn called(&self, run: &RunInProgress<'_>) -> Replicate {
        Replicate {
            noun: self.bench.machine_pool.plain().capabilities().replicate(),
            number: run.replicate,
        }
    }

    /// Removes a job from the forecast; the first job also removes the boot.
    fn skip(&self, run: &RunInProgress<'_>, job: usize) {
        self.forecast.skip(run.job_name(job));
        if job == 0 {
            self.forecast.skip(BOOT);
        }
    }

    /// Boots the build of a run; the inner error says why its workloads cannot run.
    fn boot(&self, run: &RunInProgress<'_>) -> Result<Result<Boot, String>, LabError> {
        if let Some(hash) = run.placement.modules_hash() {
            run.progress().environment.push((MODULES.into(), hash));
        }
        if let Err(why) = run.placement.guest(run.build) {
            return Ok(Err(why));
        }
        let (version, replicate) = (run.build.version.clone(), self.called(run));
        (self.bench.notify)(Event::Booting {
            version: version.clone(),
            replicate,
        });
        let part = self.forecast.begin();
        let boot = with_retries(&|error| self.retrying(error), || {
            run.placement.boot(run.build, run.replicate)
        })?;
        run.progress().times.push(self.forecast.end(BOOT, &part));
        (self.bench.notify)(match &boot {
            Err(_) => return Ok(boot),
            Ok(Boot::Failed(failure, _)) => Event::BootFailed {
                version,
                replicate,
                failure: failure.clone(),
            },
            Ok(Boot::Ready(booted)) => Event::Ready {
                version,
                replicate,
                remark: booted.remark().map(str::to_owned),
            },
        });
        Ok(boot)
    }

    fn measure(
        &self,
        run: &RunInProgress<'_>,
        job: usize,
        booted: &dyn Booted,
    ) -> Result<(), LabError> {
        let on = run.placement.subject(run.build, run.replicate, booted);
        let notify = self.bench.notify;
        let declared = run.declared(job);
        let retrying = |error: &MachineError| self.retrying(error);
        match declared {
            None => {
                let fetched = with_retries(&retrying, || environment(on))?;
                let mut progress = run.progress();
                // Known facts come last, as do those of files beside the image.
                let known = std::mem::replace(&mut progress.environment, fetched.value);
                progress.environment.extend(known);
                if let Some(config) = &run.build.config {
                    progress
                        .environment
                        .push(("config sha256".into(), config.sha256.clone()));
                }
                progress
                    .consoles
                    .push(("environment.console".into(), fetched.console));
            }
            Some(declared) if let Some(tool) = self.bench.tools.workload(&declared.name) => {
                let attempt = || with_retries(&retrying, || tool_job::run(on, tool.0, tool.1));
                let printed = self.undisturbed(run, &declared.name, attempt)?;
                let results: Vec<_> = run
                    .brought(job)
                    .map(|(n, row)| (n, printed.result_of(row)))
                    .collect();
                let mut progress = run.progress();
                progress.results.extend(results);
                let is_new = |pair: &(String, String)| !progress.environment.contains(pair);
                let programs: Vec<_> = printed.programs.into_iter().filter(is_new).collect();
                progress.environment.extend(programs);
                progress
                    .consoles
                    .push((format!("{}.console", declared.name), printed.console));
                progress
                    .consoles
                    .push((format!("{}.output", declared.name), printed.output));
            }
            Some(declared) => {
                let known = self.symbols(on)?;
                let named = known.as_ref().as_ref().ok();
                let attempt = || self.calibrated(on, &declared, named);
                let fetched = self.undisturbed(run, &declared.name, attempt)?;
                let dump = died(&fetched.value.outcome).then(|| {
                    self.dump(run, &declared.name, || {
                        booted.run_to_death(&on.job_of(&declared))
                    })
                });
                let sampled = self.sample(on, &declared, &fetched.value)?;
                let mut progress = run.progress();
                progress
                    .consoles
                    .extend(dump.flatten().into_iter().chain(sampled));
                progress.results.extend(
                    run.brought(job)
                        .map(|(n, brought)| (n, fetched.result_of(brought))),
                );
                progress
                    .consoles
                    .push((format!("{}.console", declared.name), fetched.console));
                for (text, kind) in [(fetched.profile, "profile"), (fetched.sharing, SHARING)] {
                    let Some(text) = text else { continue };
                    match text {
                        Ok(text) => progress
                            .consoles
                            .push((format!("{}.{kind}", declared.name), text.into_bytes())),
                        Err(why) => {
                            let (version, workload) =
                                (run.build.version.clone(), declared.name.to_string());
                            notify(Event::NoProfile {
                                version,
                                workload: Some(workload),
                                why,
                            });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs a workload with as many rounds as its machine needs, and finds those out first if they
    /// are not known.
    fn calibrated(
        &self,
        on: Subject<'_>,
        declared: &Workload,
        named: Option<&Named>,
    ) -> Result<Measured, LabError> {
        let (bench, machine) = (self.bench, &on.machine.identity().id);
        let measure = |rounds| {
            with_retries(&|error| self.retrying(error), || {
                workload(on, declared, rounds, named)
            })
        };
        let rounds = match rounds(bench, on.machine, declared) {
            Some(rounds) => rounds,
            None => {
                let begun = Instant::now();
                let once = measure(1)?;
                let Some(iteration_ns) = once.iteration_ns() else {
                    return Ok(once);
                };
                let rounds = Trial {
                    iteration_ns,
                    job_s: begun.elapsed().as_secs_f64(),
                }
                .rounds();
                bench.calibration.keep(machine, declared, rounds);
                if rounds == 1 {
                    return Ok(once);
                }
                rounds
            }
        };
        measure(rounds)
    }

    /// Executes a job, and repeats it while other work on the host disturbs it; of a job that was
    /// disturbed each time, the run keeps the last result and says so.
    fn undisturbed<T: Disturbed>(
        &self,
        run: &RunInProgress<'_>,
        job: &str,
        attempt: impl Fn() -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        for repeated in 0.. {
            let end = attempt()?;
            run.progress().own_cost += end.own_cost().unwrap_or_default();
            let Some(disturbance) = end.disturbance() else {
                return Ok(end);
            };
            let text = disturbed::describe(&disturbance);
            let mut progress = run.progress();
            progress.load += &disturbed::line(job, &disturbance);
            if !disturbance.is_beyond() {
                return Ok(end);
            }
            if repeated == disturbed::REPEATS {
                progress.environment.push(disturbed_pair(job, text));
                return Ok(end);
            }
            drop(progress);
            let (version, replicate, workload) =
                (run.build.version.clone(), self.called(run), job.to_owned());
            (self.bench.notify)(Event::Disturbed {
                version,
                replicate,
                workload,
                text,
            });
        }
        unreachable!("the loop returns at the last repetition")
    }

    /// Returns the sampled profile of a measured workload, as an artifact; without one there is a
    /// result all the same.
    fn sample(
        &self,
        on: Subject<'_>,
        workload: &Workload,
        measured: &WorkloadResult,
    ) -> Result<Option<(String, Vec<u8>)>, LabError> {
        let is_wanted = self.sampled == Sampled::Yes && on.machine.capabilities().sampling;
        if !is_wanted || measured.outcome != Outcome::Completed {
            return Ok(None);
        }
        match with_retries(&|error| self.retrying(error), || {
            sample(on, workload, measured)
        })? {
            Ok(profile) => Ok(Some((
                sampled_artefact(&workload.name),
                ingest::sampled_to_text(&profile).into_bytes(),
            ))),
            Err(why) => {
                let (version, workload) =
                    (on.build.version.clone(), Some(workload.name.to_string()));
                (self.bench.notify)(Event::NoProfile {
                    version,
                    workload,
                    why,
                });
                Ok(None)
            }
        }
    }

    /// Returns the memory of a kernel that died, as an artifact; `None` leaves the result as it is.
    fn dump(
        &self,
        run: &RunInProgress<'_>,
        of: &str,
        capture: impl Fn() -> Result<Option<DeadMemory>, MachineError>,
    ) -> Option<(String, Vec<u8>)> {
        if self.dumps == Dumps::Drop {
            return None;
        }
        let memory =
            with_retries(&|error| self.retrying(error), capture).map_err(|error| error.to_string());
        let dumped = memory.and_then(|memory| dump(&memory.ok_or("it did not die when repeated")?));
        let version = run.build.version.clone();
        let bytes = dumped
            .as_ref()
            .map(|dumped| dumped.bytes.len())
            .map_err(Clone::clone);
        let unfiltered = dumped
            .as_ref()
            .ok()
            .and_then(|dumped| dumped.unfiltered.clone());
        (self.bench.notify)(Event::Dumped {
            version,
            of: of.to_owned(),
            bytes,
            unfiltered,
        });
        dumped.ok().map(|dumped| (artefact(of), dumped.bytes))
    }

    /// Returns the functions of the kernel; without them there are results but no profile.
    fn symbols(&self, on: Subject<'_>) -> Result<Known, LabError> {
        let bench = self.bench;
        let ask = || bench.symbols.of(on);
        let (known, is_new) = with_retries(&|error| self.retrying(error), ask)?;
        // A kind of machine that never counts has nothing to report.
        if let (Err(why), true, true) = (
            known.as_ref(),
            is_new,
            on.machine.identity().capabilities().counts,
        ) {
            let version = on.build.version.clone();
            (bench.notify)(Event::NoProfile {
                version,
                workload: None,
                why: why.clone(),
            });
        }
        Ok(known)
    }

    fn retrying(&self, error: &MachineError) {
        (self.bench.notify)(Event::Retrying {
            error: error.to_string(),
        });
    }

    /// Stores what was measured if the user ends Marvin, so that no result is lost that was
    /// printed.
    fn store_when_interrupted(&self, is_over: &AtomicBool) {
        let unstored = Unstored::begin();
        while !is_over.load(Ordering::SeqCst) {
            if is_interrupted() {
                let mut is_closed = self
                    .is_closed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                for run in self
                    .runs_in_progress
                    .iter()
                    .filter(|run| run.has_unstored_results())
                {
                    // The process ends, and the next attempt measures again what could not be
                    // stored.
                    drop(self.store(run));
                }
                *is_closed = true;
                break;
            }
            std::thread::sleep(PAUSE);
        }
        drop(unstored);
    }

    /// Stores a run, unless the user ends Marvin.
    fn keep(&self, measured: &RunInProgress<'_>) -> Result<(), LabError> {
        let is_closed = self
            .is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            Ok(())
        } else {
            self.store(measured)
        }
    }

    fn store(&self, measured: &RunInProgress<'_>) -> Result<(), LabError> {
        let (times, load) = {
            let progress = measured.progress();
            (to_text(&progress.times), progress.load.clone())
        };
        let Some((run, mut consoles)) = measured.run(self.suite) else {
            return Ok(());
        };
        consoles.push((TIMES.to_owned(), times.into_bytes()));
        if !load.is_empty() {
            consoles.push((LOAD.to_owned(), load.into_bytes()));
        }
        let artefacts: Vec<Artefact<'_>> = consoles
            .iter()
            .map(|(name, bytes)| Artefact { name, bytes })
            .collect();
        self.bench
            .store
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .save_run(&run, &artefacts)?;
        (self.bench.notify)(Event::Stored(run.id.clone()));
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((measured.side, run));
        Ok(())
    }
}
