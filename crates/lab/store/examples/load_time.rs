//! Measures how long loading 1,000 workloads × 10 kernels × 30 samples takes: `cargo run --release
//! -p store --example load_time`. Uses only the public interface.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use model::{
    Build, BuildFile, BuildId, Machine, MachineId, Outcome, Run, RunId, UnixTime, WorkloadResult,
};
use store::Store;

const KERNELS: u32 = 10;
const WORKLOADS: u32 = 1_000;
const SAMPLES: u32 = 30;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let machine = machine()?;
    let builds = (0..KERNELS).map(build).collect::<Result<Vec<_>, _>>()?;
    let mut out = std::io::stdout().lock();

    let saving = Instant::now();
    let store = Store::open(home.path())?;
    store.save_machine(&machine)?;
    for build in &builds {
        store.save_build(build)?;
        store.save_run(&run(build, &machine)?, &[])?;
    }
    writeln!(out, "saved {KERNELS} runs in {:.1?}", saving.elapsed())?;
    drop(store);

    for round in 1..=ROUNDS {
        let opening = Instant::now();
        let store = Store::open_read_only(home.path())?;
        let loading = Instant::now();
        let mut samples = 0;
        for build in &builds {
            let runs = store.runs_of(&build.id, &machine.id, "micro")?;
            let results = runs.iter().flat_map(|run| &run.results);
            samples += results.map(|result| result.samples.len()).sum::<usize>();
        }
        let opened = loading - opening;
        let loaded = loading.elapsed();
        writeln!(
            out,
            "round {round}: opened in {opened:.1?}, loaded {samples} samples in {loaded:.1?}"
        )?;
    }
    Ok(())
}

fn machine() -> Result<Machine, Box<dyn Error>> {
    Ok(Machine {
        id: MachineId::from_hex("ee")?,
        kind: "exact".parse()?,
        summary: "example".into(),
        fingerprint: Vec::new(),
    })
}

fn build(number: u32) -> Result<Build, Box<dyn Error>> {
    Ok(Build {
        id: BuildId::from_hex(&format!("{number:064x}"))?,
        name: "deb:6.12".parse()?,
        version: "6.12".into(),
        origin: model::Origin::Described("example".into()),
        image: BuildFile {
            path: "vmlinuz".into(),
            sha256: "00".into(),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    })
}

fn run(build: &Build, machine: &Machine) -> Result<Run, Box<dyn Error>> {
    Ok(Run {
        id: RunId::from_hex(build.id.hex())?,
        build: build.id.clone(),
        machine: machine.id.clone(),
        suite: "micro".into(),
        seed: 1,
        started_unix: UnixTime::new(1_760_000_000),
        environment: vec![("release".into(), "6.12".into()); 20],
        results: (0..WORKLOADS)
            .map(|number: u32| WorkloadResult {
                workload: format!("workload-{number}"),
                operations: 20_000,
                declared: None,
                outcome: Outcome::Completed,
                samples: (0..SAMPLES).map(|i| f64::from(number * i)).collect(),
                counted: vec![],
            })
            .collect(),
    })
}
