//! What the lab itself takes of a processor while it measures time: the agent, and Marvin's thread
//! that waits for it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use figures::figure::{Against, Figure, Figures};
use lab::Wanted;
use lab::{Dumps, Lab, LabOptions, Plan, Reuse, Sampled};
use machine::VmShape;
use model::{Build, KernelName, LAB_COST, MICRO, Workload};

/// Workloads of different kinds; each job takes some seconds.
const WORKLOADS: [&str; 4] = ["getppid", "pipe-pingpong", "fork-exec", "fault-anon"];
/// Largest share of a processor, in percent.
const GOAL_PERCENT: f64 = 0.1;
const SHAPE: VmShape = VmShape {
    cpus: 2,
    memory_mib: 1024,
};

/// Prints the figure for this host and for a virtual machine that boots a build.
pub(crate) fn own_cost(home: &Path, build: &Build, figures: &mut Figures) -> anyhow::Result<()> {
    let file = KernelName::Path(build.boot_file().path.clone());
    for (name, wanted, kernel) in [
        ("local", Wanted::Local, KernelName::Running),
        ("vm", Wanted::Vm(SHAPE), file),
    ] {
        let lab = Lab::open(
            &home.join(name),
            LabOptions {
                wanted,
                ..LabOptions::default()
            },
        )?;
        let build = lab.build(&kernel, &|_| {})?;
        let figure = Figure {
            name: format!("agent and lab while {name} measures, of a processor"),
            value: measure(&lab, &build)?,
            unit: "%",
            against: Against::Goal(GOAL_PERCENT),
        };
        figures.print(&figure)?;
    }
    Ok(())
}

/// Returns what the run's environment says, in percent.
fn measure(lab: &Lab, build: &Build) -> anyhow::Result<f64> {
    let chosen = |workload: &&Arc<Workload>| WORKLOADS.contains(&&*workload.name);
    let plan = Plan {
        sides: vec![build],
        suite: &MICRO,
        workloads: MICRO.workloads.iter().filter(chosen).cloned().collect(),
        replicates: vec![1],
        machines: 1,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let runs = lab.execute(&plan, &|_| {})?;
    let environment = runs.iter().flatten().flat_map(|run| &run.environment);
    let cost = environment
        .filter(|(name, _)| name == LAB_COST)
        .map(|(_, cost)| cost)
        .next_back();
    let percent = cost
        .and_then(|cost| cost.split_once('%'))
        .context("the run does not say what the lab took")?;
    Ok(percent.0.parse()?)
}
