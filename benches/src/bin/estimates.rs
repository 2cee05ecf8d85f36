//! Prints how well Marvin says how long a run still takes, over real runs on this host beside load
//! that comes and goes: each estimate against the time that was left then.
//!
//! `estimates 5` does fewer runs than 50. A run without an estimate is honest, and counted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use figures::figure::{Against, Figure, Figures};
use lab::{Dumps, Event, Lab, LabOptions, Plan, Reuse, Sampled, Wanted};
use machine::this_boot;
use model::{Build, KernelName, MICRO};
use stats::synthetic::Chance;

const SEED: u64 = 20_261_128;
/// Default number of runs.
const RUNS: usize = 50;
const RUNS_MAX: usize = 1000;
/// Each run measures one of so many workloads: half a minute, and 50 runs within half an hour.
const EVERY: usize = 3;
/// Mean length of a stretch with load, and of one without.
const STRETCH_S: f64 = 10.0;
/// Between two looks of the load at the clock.
const STEP: Duration = Duration::from_millis(1);
/// An estimate holds if the true rest is within this factor of it.
const FACTOR: f64 = 2.0;

/// What one run said, and when.
#[derive(Debug, Default)]
struct Said {
    estimates: Vec<(Instant, f64)>,
}

fn main() -> anyhow::Result<()> {
    let runs = runs()?;
    let home = tempfile::tempdir()?;
    let lab = Lab::open(
        home.path(),
        LabOptions {
            wanted: Wanted::Local,
            ..LabOptions::default()
        },
    )?;
    let build = lab.build(&KernelName::Running, &|_| {})?;
    let mut figures = Figures;
    let mut ratios: Vec<f64> = Vec::new();
    let mut silent = 0;
    for run in 0..runs {
        let of_run = beside_load(SEED + run as u64, || measure(&lab, &build))?;
        silent += usize::from(of_run.is_empty());
        ratios.extend(of_run);
    }
    let held = ratios
        .iter()
        .filter(|ratio| (1.0 / FACTOR..=FACTOR).contains(*ratio))
        .count();
    print(
        &mut figures,
        "remaining time: runs",
        runs as f64,
        Against::Nothing,
    )?;
    print(
        &mut figures,
        "remaining time: runs without an estimate",
        silent as f64,
        Against::Nothing,
    )?;
    print(
        &mut figures,
        "remaining time: estimates",
        ratios.len() as f64,
        Against::Nothing,
    )?;
    let beyond = (ratios.len() - held) as f64;
    print(
        &mut figures,
        "remaining time: estimates beyond a factor of two",
        beyond,
        Against::Nothing,
    )
}

fn runs() -> anyhow::Result<usize> {
    let Some(asked) = std::env::args().nth(1) else {
        return Ok(RUNS);
    };
    let number = asked
        .parse()
        .ok()
        .filter(|number| (1..=RUNS_MAX).contains(number));
    number.with_context(|| format!("`{asked}` is no number of runs from 1 to {RUNS_MAX}"))
}

fn print(figures: &mut Figures, name: &str, value: f64, against: Against) -> anyhow::Result<()> {
    let name = name.to_owned();
    let unit = "";
    Ok(figures.print(&Figure {
        name,
        value,
        unit,
        against,
    })?)
}

/// Measures once, and returns the ratio of each estimate and the time that was left.
fn measure(lab: &Lab, build: &Build) -> anyhow::Result<Vec<f64>> {
    let plan = Plan {
        sides: vec![build],
        suite: &MICRO,
        workloads: MICRO.workloads.iter().step_by(EVERY).cloned().collect(),
        replicates: vec![this_boot()],
        machines: 1,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let said = Mutex::new(Said::default());
    lab.execute(&plan, &|event| {
        if let Event::RemainingTime {
            seconds: Some(seconds),
        } = event
        {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.estimates.push((Instant::now(), seconds));
        }
    })?;
    let end = Instant::now();
    let said = said.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ratio = |(at, seconds): (Instant, f64)| seconds / end.duration_since(at).as_secs_f64();
    Ok(said.estimates.into_iter().map(ratio).collect())
}

/// Does something beside threads that take every processor now and then.
fn beside_load<T>(seed: u64, action: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    let is_loaded = AtomicBool::new(false);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let spun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| switch(seed, &is_loaded, &is_over));
        for _ in 0..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    if is_loaded.load(Ordering::Relaxed) {
                        spun.fetch_add(1, Ordering::Relaxed);
                    } else {
                        std::thread::sleep(STEP);
                    }
                }
            });
        }
        let done = action();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// Switches the load on and off, each time for a stretch of random length.
fn switch(seed: u64, is_loaded: &AtomicBool, is_over: &AtomicBool) {
    let mut chance = Chance::new(seed);
    let mut until = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        if Instant::now() >= until {
            is_loaded.fetch_xor(true, Ordering::Relaxed);
            let stretch_s = -STRETCH_S * chance.uniform().max(1e-6).ln();
            until = Instant::now() + Duration::from_secs_f64(stretch_s);
        }
        std::thread::sleep(STEP);
    }
}
