//! Prints what the exact machine with two processors takes: the contention suite from a snapshot,
//! following lines beside not following them, and executing two processors beside one that executes
//! as many instructions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use figures::cpu;
use figures::figure::{Against, Figure, Figures};
use lab::Wanted;
use lab::{Dumps, Lab, LabOptions, Plan, Reuse, Sampled};
use machine::Smp;
use model::{Build, CONTENTION, Outcome, Workload};
use probes::Probe;

const KERNEL: &str = "deb:6.12";
const GOAL_S: f64 = 90.0;
const PROCESSORS: u32 = 2;
/// All kernel, shares nothing, and shares a lot.
const ALONE: &str = "share-no-syscall";
const SHARING: &str = "share-fault";
/// Four threads that execute as many instructions on one processor as on two: they read the page
/// cache here and there.
const BOTH: &str = "tio-like-rndrd-4";
/// Factors for operations: the difference is the work alone, without start and end.
const TIMES: [u64; 2] = [1, 9];

fn main() -> anyhow::Result<()> {
    let mut figures = Figures;
    figures.doubt_load(cpu::load()?)?;
    // The processor time of what runs behind them is not seen.
    subprocess::remove_walls();
    let home = tempfile::tempdir()?;
    let smp = Bench::open(home.path(), "smp", Wanted::ExactSmp(Smp::new(PROCESSORS)))?;
    let value = smp.suite_s()?;
    let name = format!(
        "contention, {} workloads, one seed, processor time",
        CONTENTION.workloads.len()
    );
    figures.print(&Figure {
        name,
        value,
        unit: "s",
        against: Against::Goal(GOAL_S),
    })?;
    for workload in [ALONE, SHARING] {
        let name = format!("{workload}, lines followed: processor time");
        let peer = Against::Peer("without", smp.work_s(workload, false)?);
        figures.print(&Figure {
            name,
            value: smp.work_s(workload, true)?,
            unit: "s",
            against: peer,
        })?;
    }
    let alone = Bench::open(home.path(), "exact", Wanted::Exact)?;
    let peer = Against::Peer("one", alone.work_s(BOTH, false)?);
    let name = format!("{BOTH}, two processors, no lines followed: processor time");
    figures.print(&Figure {
        name,
        value: smp.work_s(BOTH, false)?,
        unit: "s",
        against: peer,
    })?;
    Ok(())
}

/// A machine with a kernel that has booted.
struct Bench {
    lab: Lab,
    build: Build,
}

impl Bench {
    fn open(home: &Path, name: &str, wanted: Wanted) -> anyhow::Result<Self> {
        let qemu = std::env::var_os("MARVIN_QEMU").map(PathBuf::from);
        let lab = Lab::open(
            &home.join(name),
            LabOptions {
                qemu,
                wanted,
                ..LabOptions::default()
            },
        )?;
        let build = lab.build(&KERNEL.parse()?, &|_| {})?;
        let bench = Self { lab, build };
        // Boots, and asks the kernel for its symbols.
        if bench.lab.machine().capabilities().sharing {
            bench.measure(&CONTENTION.workloads[..1])?;
        } else {
            bench.work_s(BOTH, false)?;
        }
        Ok(bench)
    }

    /// Returns the processor seconds of the whole suite.
    fn suite_s(&self) -> anyhow::Result<f64> {
        let before = cpu::children_s()?;
        self.measure(&CONTENTION.workloads)?;
        Ok(cpu::children_s()? - before)
    }

    /// Returns the processor seconds of a workload's operations.
    fn work_s(&self, workload: &str, follows: bool) -> anyhow::Result<f64> {
        let declared = model::workloads()
            .into_iter()
            .find(|known| &*known.name == workload);
        let declared = declared.ok_or_else(|| anyhow::anyhow!("{workload} is gone"))?;
        let mut seconds = [0.0; 2];
        for (seconds, times) in seconds.iter_mut().zip(TIMES) {
            let operations = declared.operations * times;
            let workload = Arc::new(Workload {
                operations,
                exercises: &[],
                ..Workload::clone(declared)
            });
            let before = cpu::children_s()?;
            if follows {
                self.measure(&[workload])?;
            } else {
                self.lab.probe(&self.build, &workload)?;
            }
            *seconds = cpu::children_s()? - before;
        }
        Ok(seconds[1] - seconds[0])
    }

    fn measure(&self, workloads: &[Arc<Workload>]) -> anyhow::Result<()> {
        let plan = Plan {
            sides: vec![&self.build],
            suite: &CONTENTION,
            workloads: workloads.to_vec(),
            replicates: vec![1],
            machines: 1,
            reuse: Reuse::Nothing,
            dumps: Dumps::Drop,
            sampled: Sampled::No,
        };
        let runs = self.lab.execute(&plan, &|_| {})?;
        for result in runs.iter().flatten().flat_map(|run| &run.results) {
            anyhow::ensure!(
                result.outcome == Outcome::Completed,
                "{}: {:?}",
                result.workload,
                result.outcome
            );
        }
        Ok(())
    }
}
