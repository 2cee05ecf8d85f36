//! The whole micro suite on one kernel, like `marvin run deb:6.12`: with a new snapshot, and with
//! an existing one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lab::{Dumps, Event, Lab, LabOptions, Plan, Reuse, Sampled};
use model::{Build, MICRO, Outcome, Run, Workload};

use figures::cpu;
use figures::figure::{Against, Figure, Figures};
use figures::memory::peak_during;

const KERNEL: &str = "deb:6.12";
/// QEMU's process name, cut after 15 characters.
const QEMU: &str = "qemu-system-x86";
const SEED: u64 = 1;
const MACHINES: usize = 2;

const CACHED_GOAL_S: f64 = 30.0;
const BOOT_GOAL_S: f64 = 8.0;
const MEMORY_GOAL_MB: f64 = 400.0;

/// A load above this has other causes than the bench, which keeps one processor busy for a short
/// time.
const BUSY: f64 = 1.0;

/// A lab in a separate data directory.
pub(crate) struct Bench {
    lab: Lab,
}

/// The same with a kernel to boot.
pub(crate) struct Ready {
    lab: Lab,
    build: Build,
}

/// The result of executing a plan.
pub(crate) struct Done {
    pub(crate) run: Run,
    took: Duration,
    /// Processor seconds of its child processes.
    pub(crate) cpu_s: f64,
    /// The part of the time from the start of a boot to its snapshot.
    boot: Duration,
    /// The caveat, if any.
    doubts: Vec<String>,
}

impl Bench {
    /// Opens a lab; fails without a usable QEMU.
    pub(crate) fn open(home: &Path) -> anyhow::Result<Self> {
        let qemu = std::env::var_os("MARVIN_QEMU").map(PathBuf::from);
        Ok(Self {
            lab: Lab::open(
                home,
                LabOptions {
                    qemu,
                    ..LabOptions::default()
                },
            )?,
        })
    }

    pub(crate) fn with_kernel(self) -> anyhow::Result<Ready> {
        let build = self.lab.build(&KERNEL.parse()?, &|_| {})?;
        Ok(Ready {
            lab: self.lab,
            build,
        })
    }
}

impl Ready {
    /// Returns the lab and the kernel.
    pub(crate) fn parts(&self) -> (&Lab, &Build) {
        (&self.lab, &self.build)
    }

    pub(crate) fn measure(
        &mut self,
        workloads: Vec<Arc<Workload>>,
        machines: usize,
    ) -> anyhow::Result<Done> {
        let events = Mutex::new(Vec::new());
        // A thread that panicked has ended the plan as well.
        let notify = |event| {
            events
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((Instant::now(), event));
        };
        let plan = Plan {
            sides: vec![&self.build],
            suite: &MICRO,
            workloads,
            replicates: vec![SEED],
            machines,
            reuse: Reuse::Nothing,
            dumps: Dumps::Drop,
            sampled: Sampled::No,
        };
        let start = Instant::now();
        let before_s = cpu::children_s()?;
        let runs = self.lab.execute(&plan, &notify)?;
        let took = start.elapsed();
        let cpu_s = cpu::children_s()? - before_s;
        let run = runs
            .into_iter()
            .flatten()
            .next()
            .ok_or_else(|| anyhow::anyhow!("the lab made no run"))?;
        let events = events.into_inner().unwrap_or_else(PoisonError::into_inner);
        let incomplete = run
            .results
            .iter()
            .filter(|result| result.outcome != Outcome::Completed);
        let mut doubts: Vec<String> = incomplete
            .map(|result| format!("{} did not complete", result.workload))
            .collect();
        doubts.extend(events.iter().filter_map(|(_, event)| doubt(event)));
        let boot = boot(&events).unwrap_or_default();
        Ok(Done {
            run,
            took,
            cpu_s,
            boot,
            doubts,
        })
    }
}

/// From the beginning of the boot to the first possible job.
fn boot(events: &[(Instant, Event)]) -> Option<Duration> {
    let booting = events
        .iter()
        .find(|(_, event)| matches!(event, Event::Booting { .. }))?;
    let ready = events
        .iter()
        .find(|(_, event)| matches!(event, Event::Ready { .. }))?;
    Some(ready.0.duration_since(booting.0))
}

/// Returns the caveat in an event.
fn doubt(event: &Event) -> Option<String> {
    match event {
        Event::Ready {
            remark: Some(remark),
            ..
        } => Some(remark.clone()),
        Event::Retrying { error } => Some(format!("the lab had to try again: {error}")),
        _ => None,
    }
}

/// Prints the figures of the whole suite.
pub(crate) fn whole(bench: &mut Ready, figures: &mut Figures) -> anyhow::Result<()> {
    let load = cpu::load()?;
    if load > BUSY {
        figures.doubt(&format!(
            "others keep the host busy (load {load}): times on the wall are longer than they need be"
        ))?;
    }
    let ((without, with), peak) = peak_during(QEMU, || {
        (
            bench.measure(MICRO.workloads.clone(), MACHINES),
            bench.measure(MICRO.workloads.clone(), MACHINES),
        )
    });
    let without = without?;
    let with = with?;
    for doubt in without.doubts.iter().chain(&with.doubts) {
        figures.doubt(doubt)?;
    }
    let seconds = |name: &str, value: Duration, goal| Figure {
        name: name.to_owned(),
        value: value.as_secs_f64(),
        unit: "s",
        against: Against::Goal(goal),
    };
    figures.print(&seconds("suite, snapshot cached", with.took, CACHED_GOAL_S))?;
    let cpu = Figure {
        name: "suite, snapshot cached: processor time".into(),
        value: with.cpu_s,
        unit: "s",
        against: Against::Nothing,
    };
    figures.print(&cpu)?;
    figures.print(&seconds(
        "suite, snapshot made",
        without.took,
        CACHED_GOAL_S + BOOT_GOAL_S,
    ))?;
    figures.print(&seconds("boot for a snapshot", without.boot, BOOT_GOAL_S))?;
    let Some(peak) = peak else {
        figures.doubt("no QEMU was seen: is there no /proc/PID/task/TID/children?")?;
        return Ok(());
    };
    figures.print(&Figure {
        name: "peak host memory of an exact machine (RSS)".into(),
        value: peak as f64 / 1e6,
        unit: "MB",
        against: Against::Goal(MEMORY_GOAL_MB),
    })?;
    Ok(())
}
