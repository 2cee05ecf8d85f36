//! Gets kernels and guest images, and plans their measurement.

use std::sync::Arc;

use anyhow::Context;
use lab::{Dumps, Lab, Plan, Reuse, Sampled};
use model::{Build, KernelName, Suite, Workload};

use crate::options::MeasureOptions;
use crate::session::Progress;

/// Finds builds. Checks all names before it fetches or builds the first kernel.
pub(crate) fn find_builds(
    lab: &Lab,
    names: &[KernelName],
    progress: &Progress,
) -> anyhow::Result<Vec<Build>> {
    for name in names {
        lab.check(name)
            .with_context(|| format!("cannot get the kernel {name}"))?;
    }
    names
        .iter()
        .map(|name| find_build(lab, name, progress))
        .collect()
}

pub(crate) fn find_build(
    lab: &Lab,
    name: &KernelName,
    progress: &Progress,
) -> anyhow::Result<Build> {
    let shown = name.to_string();
    lab.build(name, &|step| progress.step(&shown, &step))
        .with_context(|| format!("cannot get the kernel {name}"))
}

/// Makes the tools' guest images.
pub(crate) fn prepare_tools(
    lab: &Lab,
    workloads: &[Arc<Workload>],
    progress: &Progress,
) -> anyhow::Result<()> {
    lab.prepare(workloads, &|step| progress.step("tools", &step))
        .context("cannot make the guest image of a tool")
}

/// Returns the plan for these builds, workloads and seeds.
pub(crate) fn plan_runs<'a>(
    measure: &MeasureOptions,
    builds: &'a [Build],
    suite: &'a Suite,
    workloads: &[Arc<Workload>],
    seeds: &[u64],
) -> Plan<'a> {
    Plan {
        sides: builds.iter().collect(),
        suite,
        workloads: workloads.to_vec(),
        replicates: seeds.to_vec(),
        machines: parallel_machines(measure.jobs),
        reuse: reuse_unless(measure.force),
        dumps: if measure.keep_dump {
            Dumps::Keep
        } else {
            Dumps::Drop
        },
        sampled: Sampled::No,
    }
}

/// Returns how many machines run at the same time: `jobs`, or a default for this host.
pub(crate) fn parallel_machines(jobs: Option<u16>) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    jobs.map_or(processors.min(2), usize::from)
}

/// Returns whether to use earlier results: not with `--force`.
pub(crate) fn reuse_unless(force: bool) -> Reuse {
    if force { Reuse::Nothing } else { Reuse::Stored }
}
