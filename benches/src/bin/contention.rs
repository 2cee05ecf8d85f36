//! Prints what the contention suite takes on the exact machine with two processors: one kernel, one seed, from a snapshot.

use std::path::PathBuf;
use std::sync::Arc;

use figures::cpu;
use figures::figure::{Against, Figure, Figures};
use lab::{Dumps, Lab, LabSettings, Plan, Reuse, Sampled};
use machine::{Smp, Wanted};
use model::{Build, CONTENTION, Outcome, Workload};

const KERNEL: &str = "deb:6.12";
const GOAL_S: f64 = 90.0;

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    let home = tempfile::tempdir()?;
    let qemu = std::env::var_os("MARVIN_QEMU").map(PathBuf::from);
    let lab =
        Lab::open(home.path(), LabSettings { qemu, wanted: Wanted::ExactSmp(Smp::new(2)), ..LabSettings::default() })?;
    let build = lab.build(&KERNEL.parse()?, &|_| {})?;
    // Boots, and asks the kernel for its symbols.
    measure(&lab, &build, &CONTENTION.workloads[..1])?;
    let before = cpu::children_s()?;
    measure(&lab, &build, &CONTENTION.workloads)?;
    let value = cpu::children_s()? - before;
    let name = format!("contention, {} workloads, one seed, processor time", CONTENTION.workloads.len());
    figures.print(&Figure { name, value, unit: "s", against: Against::Goal(GOAL_S) })?;
    Ok(())
}

fn measure(lab: &Lab, build: &Build, workloads: &[Arc<Workload>]) -> anyhow::Result<()> {
    let plan = Plan {
        sides: vec![build],
        suite: &CONTENTION,
        workloads: workloads.to_vec(),
        replicates: vec![1],
        machines: 1,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let runs = lab.execute(&plan, &|_| {})?;
    for result in runs.iter().flatten().flat_map(|run| &run.results) {
        anyhow::ensure!(result.outcome == Outcome::Completed, "{}: {:?}", result.workload, result.outcome);
    }
    Ok(())
}
