//! Comparing many rows of many kernels: from the store to a table.

use std::sync::Arc;
use std::time::Instant;

use compare::{Machines, Question, Side};
use document::{Styles, View};
use model::{
    Build, BuildFile, BuildId, MICRO, Machine, MachineId, MachineKind, Metric, Outcome, Run, RunId,
    UnixTime, Workload, WorkloadResult,
};
use store::Store;

use figures::figure::{Against, Figure, Figures};

const ROWS: u64 = 1_000;
const KERNELS: u64 = 10;
const SAMPLES: u32 = 30;
const ROUNDS: usize = 5;

const SIZE: &str = "1,000 rows × 10 kernels × 30 samples";
const GOAL_MS: f64 = 100.0;

/// The steps, in order.
const PARTS: [&str; 5] = ["load", "compare", "text", "HTML", "JSON"];
/// The total for a user: the steps of one command.
const WAYS: [(&str, &[usize]); 4] = [
    ("as text", &[0, 1, 2]),
    ("as HTML", &[0, 1, 3]),
    ("as JSON", &[0, 1, 4]),
    ("as all three", &[0, 1, 2, 3, 4]),
];

/// Prints the times of loading, comparing and rendering, and their sum.
pub(crate) fn from_store(figures: &mut Figures) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let machine = machine()?;
    let builds = (0..KERNELS)
        .map(build)
        .collect::<anyhow::Result<Vec<_>>>()?;
    fill(home.path(), &machine, &builds)?;
    let workloads = workloads();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(round(home.path(), &machine, &builds, &workloads)?);
    }
    for (part, name) in PARTS.iter().enumerate() {
        print(
            figures,
            name,
            Against::Nothing,
            rounds.iter().map(|round| round[part]).collect(),
        )?;
    }
    for (name, parts) in WAYS {
        let all = rounds
            .iter()
            .map(|round| parts.iter().map(|part| round[*part]).sum())
            .collect();
        print(figures, name, Against::Goal(GOAL_MS), all)?;
    }
    Ok(())
}

fn print(
    figures: &mut Figures,
    name: &str,
    against: Against,
    mut times_ms: Vec<f64>,
) -> std::io::Result<()> {
    times_ms.sort_by(f64::total_cmp);
    let value = times_ms[times_ms.len() / 2];
    figures.print(&Figure {
        name: format!("{SIZE}: {name}"),
        value,
        unit: "ms",
        against,
    })
}

/// Runs all steps once and returns the milliseconds of each.
fn round(
    home: &std::path::Path,
    machine: &Machine,
    builds: &[Build],
    workloads: &[Arc<Workload>],
) -> anyhow::Result<[f64; PARTS.len()]> {
    let mut times_ms = [0.0; PARTS.len()];
    let mut part = 0;
    let mut start = Instant::now();
    let mut lap = || {
        times_ms[part] = start.elapsed().as_secs_f64() * 1e3;
        (part, start) = (part + 1, Instant::now());
    };
    let store = Store::open_read_only(home)?;
    let runs = builds
        .iter()
        .map(|build| store.runs_of(&build.id, &machine.id, MICRO.name))
        .collect::<Result<Vec<_>, _>>()?;
    lap();
    let sides: Vec<Side<'_>> = builds
        .iter()
        .zip(&runs)
        .map(|(build, runs)| Side {
            build,
            machine,
            also: vec![],
            runs: runs.iter().collect(),
        })
        .collect();
    let comparison = compare::compare(&sides[0], &sides[1..], &question(workloads))?;
    lap();
    let text = compare::render::comparison(&comparison, &View::default()).text(&Styles::plain());
    lap();
    let html = compare::render::comparison(&comparison, &View::default()).html()?;
    lap();
    let json = compare::render::json(&comparison)?;
    lap();
    // Without this row the result would be meaningless.
    for (name, rendered) in [("text", &text), ("HTML", &html), ("JSON", &json)] {
        let last = workloads.last().map_or("", |workload| &*workload.name);
        anyhow::ensure!(rendered.contains(last), "{name} lacks the row {last}");
    }
    Ok(times_ms)
}

fn question(workloads: &[Arc<Workload>]) -> Question {
    Question {
        scatters: std::collections::BTreeMap::new(),
        looks_max: None,
        suite: MICRO.name.to_owned(),
        workloads: workloads.to_vec(),
        seeds: vec![1],
        margin_percent: None,
        machines: Machines::Equal,
        command: "marvin report".to_owned(),
        created_unix: Some(UnixTime::new(1_760_000_000)),
    }
}

fn workload_name(number: u64) -> String {
    format!("row-{number}")
}

/// Declarations of the rows.
fn workloads() -> Vec<Arc<Workload>> {
    let declare = |number| Workload {
        name: workload_name(number).into(),
        stresses: "nothing".into(),
        operation: "nothing at all".into(),
        operations: 20_000,
        iterations: SAMPLES,
        warm_up: 2,
        exercises: &[],
        guest_config: model::GuestConfig::PLAIN,
        steadiness: model::Steadiness::Steady,
        tasks: None,
        processors: model::Processors::One,
        row_of: None,
        metric: Metric::COST,
        source: "".into(),
    };
    (0..ROWS).map(|number| Arc::new(declare(number))).collect()
}

fn fill(home: &std::path::Path, machine: &Machine, builds: &[Build]) -> anyhow::Result<()> {
    let store = Store::open(home)?;
    store.save_machine(machine)?;
    for (number, build) in (0..).zip(builds) {
        store.save_build(build)?;
        store.save_run(&run(build, machine, number)?, &[])?;
    }
    Ok(())
}

fn machine() -> anyhow::Result<Machine> {
    Ok(Machine {
        id: MachineId::from_hex("ee")?,
        kind: MachineKind::Exact,
        summary: "made up".into(),
        fingerprint: Vec::new(),
    })
}

fn build(number: u64) -> anyhow::Result<Build> {
    Ok(Build {
        id: BuildId::from_hex(&format!("{number:064x}"))?,
        name: format!("deb:6.{number}").parse()?,
        version: format!("6.{number}"),
        origin: model::Origin::Described("made up".into()),
        image: BuildFile {
            path: "vmlinuz".into(),
            sha256: format!("{number:064x}"),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    })
}

fn run(build: &Build, machine: &Machine, kernel: u64) -> anyhow::Result<Run> {
    // Values of all sizes; up to six percent apart between kernels, so that all verdicts occur.
    let value = |row: u64, sample: u32| {
        let base = 100.0 * (row + 1) as f64;
        base * (1.0 + 0.01 * ((row * 7 + kernel * 3) % 7) as f64) + f64::from(sample % 5)
    };
    let result = |row: u64| WorkloadResult {
        workload: workload_name(row),
        operations: 20_000,
        declared: None,
        outcome: Outcome::Completed,
        samples: (0..SAMPLES).map(|sample| value(row, sample)).collect(),
        counted: vec![],
    };
    Ok(Run {
        id: RunId::from_hex(build.id.hex())?,
        build: build.id.clone(),
        machine: machine.id.clone(),
        suite: MICRO.name.to_owned(),
        seed: 1,
        started_unix: UnixTime::new(1_760_000_000),
        environment: vec![("release".into(), build.version.clone()); 20],
        results: (0..ROWS).map(result).collect(),
    })
}
