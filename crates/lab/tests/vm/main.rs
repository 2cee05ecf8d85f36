//! Stories with real kernels in a real QEMU. Nothing is faked here but what would need a broken disk or host.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "figures for whoever runs the tests with --nocapture")]

mod equipment;
mod failing;
mod fresh;
mod independent;
mod monitors;
mod probes;
mod profiled;
mod qemu;
mod reclaim;
mod rmap;
mod suites;
mod tools;
mod truthful;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lab::{Dumps, Event, Lab, LabError, LabSettings, Measurement, Plan, Reuse};
use model::{Build, KernelName, MICRO, Outcome, Run, Workload, WorkloadResult};

/// Where the tests keep kernels and snapshots from one time to the next. Results are never taken from there.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Whether nothing is to be left out, as in `make test-full`.
fn full() -> bool {
    std::env::var_os("MARVIN_FULL").is_some()
}

/// The kernels of stories that are told of several: the newer one in every gate, both where nothing is to be left out.
fn kernels() -> &'static [&'static str] {
    if full() { &["deb:6.1", "deb:6.12"] } else { &["deb:6.12"] }
}

/// Each second of the workloads, for stories that are told of each: all of them where nothing is to be left out.
fn each_second(workloads: &[Arc<Workload>]) -> Vec<Arc<Workload>> {
    workloads.iter().step_by(if full() { 1 } else { 2 }).cloned().collect()
}

/// The lab that most stories share.
fn lab() -> &'static Lab {
    static LAB: OnceLock<Lab> = OnceLock::new();
    // Another QEMU than that of the distribution can be put through the same.
    let qemu = std::env::var_os("MARVIN_QEMU").map(PathBuf::from);
    LAB.get_or_init(|| {
        Lab::open(&folder("vm-home"), LabSettings { qemu, tools: tools::TOOLS.clone(), ..LabSettings::default() })
            .unwrap()
    })
}

fn build(name: &str) -> Build {
    lab().build(&name.parse().unwrap(), &|_| {}).unwrap()
}

/// The same build in another home, without fetching it again.
fn same_build(other: &Lab, build: &Build) -> Build {
    other.build(&KernelName::Path(build.boot_file().path.clone()), &|_| {}).unwrap()
}

fn declared(name: &str) -> &'static Arc<Workload> {
    model::workloads().into_iter().find(|workload| workload.name == name).unwrap()
}

/// A workload of a build with the first replicate.
fn first<'a>(build: &'a Build, workload: &'a Workload) -> Measurement<'a> {
    Measurement { build, workload, replicate: 1 }
}

/// Measures workloads with one seed and returns the run.
fn measured_run(
    lab: &Lab,
    build: &Build,
    workloads: &[Arc<Workload>],
    notify: &(dyn Fn(Event) + Sync),
) -> Result<Run, LabError> {
    let plan = Plan {
        sides: vec![build],
        suite: &MICRO,
        workloads: workloads.to_vec(),
        replicates: vec![1],
        machines: 2,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
    };
    let mut runs = lab.carry_out(&plan, notify)?.remove(0);
    assert_eq!(runs.len(), 1);
    Ok(runs.remove(0))
}

/// Measures workloads with one seed and returns their results in the order asked for.
fn measure(lab: &Lab, build: &Build, workloads: &[Arc<Workload>]) -> Vec<WorkloadResult> {
    measured_run(lab, build, workloads, &|_| {}).unwrap().results
}

/// The samples of a result that must have completed.
fn samples(result: &WorkloadResult) -> &[f64] {
    assert_eq!(result.outcome, Outcome::Completed, "{}", result.workload);
    &result.samples
}
