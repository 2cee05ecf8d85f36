//! Prints how long a store takes to save one run, in a data directory and on a PostgreSQL server: 10,000 samples in 500
//! results, each with a console, until everything is on the disk.

use std::time::Instant;

use figures::figure::{Against, Figure, Figures};
use model::{Build, BuildFile, BuildId, Machine, MachineId, MachineKind, Outcome, Run, RunId, WorkloadResult};
use store::cluster::{Cluster, Durability};
use store::{Artefact, Location, Store};

const WORKLOADS: usize = 500;
const ITERATIONS: usize = 20;
/// Number of saved runs; the median counts, because disks vary in speed.
const RUNS: usize = 21;
/// Time limit of one run.
const GOAL_MS: f64 = 50.0;

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    let home = tempfile::tempdir()?;
    measure_store(&mut figures, "SQLite", &Store::open(home.path())?)?;
    match Cluster::start(Durability::Durable)? {
        Some(cluster) => {
            measure_store(&mut figures, "PostgreSQL", &Store::open(Location::server(&cluster.place()?, None)?)?)
        }
        None => Ok(figures.doubt("PostgreSQL is not installed: not measured")?),
    }
}

fn measure_store(figures: &mut Figures, name: &str, store: &Store) -> anyhow::Result<()> {
    let (build, machine) = (build()?, machine()?);
    store.save_build(&build)?;
    store.save_machine(&machine)?;
    let console = vec![b'x'; 4096];
    let mut times = Vec::new();
    for number in 0..RUNS {
        let run = run(number)?;
        let artefacts = [Artefact { name: "environment.console", bytes: &console }];
        let start = Instant::now();
        store.save_run(&run, &artefacts)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let samples = WORKLOADS * ITERATIONS;
    let mut print = |name: String, value, against| figures.print(&Figure { name, value, unit: "ms", against });
    print(format!("keeping a run of {samples} samples, {name}"), times[RUNS / 2], Against::Goal(GOAL_MS))?;
    print("the same, slowest".to_owned(), times[RUNS - 1], Against::Nothing)?;
    let start = Instant::now();
    let found = store.run(&run(0)?.id)?;
    anyhow::ensure!(found == run(0)?, "another run came back");
    print("reading it".to_owned(), start.elapsed().as_secs_f64() * 1e3, Against::Nothing)?;
    Ok(())
}

fn build() -> anyhow::Result<Build> {
    Ok(Build {
        id: BuildId::from_hex("aa")?,
        name: "deb:6.12".parse()?,
        version: "6.12".into(),
        origin: model::Origin::Described("synthetic".into()),
        image: BuildFile { path: "/nowhere/vmlinuz".into(), sha256: "00".into() },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    })
}

fn machine() -> anyhow::Result<Machine> {
    Ok(Machine {
        id: MachineId::from_hex("ee")?,
        kind: MachineKind::Exact,
        summary: "synthetic".into(),
        fingerprint: Vec::new(),
    })
}

fn run(number: usize) -> anyhow::Result<Run> {
    let result = |workload: usize| WorkloadResult {
        workload: format!("workload-{workload}"),
        operations: 20_000,
        declared: None,
        outcome: Outcome::Completed,
        samples: (0..ITERATIONS).map(|n| (number * workload + n) as f64 * 1.1).collect(),
        counted: vec![model::Region { user: 1, kernel: 2, interrupt: 3, other: 4 }; ITERATIONS],
    };
    Ok(Run {
        id: RunId::from_hex(&format!("{:04x}", number + 1))?,
        build: BuildId::from_hex("aa")?,
        machine: MachineId::from_hex("ee")?,
        suite: "synthetic".into(),
        seed: 1,
        started_unix: 1_790_000_000,
        environment: vec![("release".into(), "6.12".into()); 20],
        results: (0..WORKLOADS).map(result).collect(),
    })
}
