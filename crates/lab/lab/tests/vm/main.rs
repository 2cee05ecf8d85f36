//! Tests with real kernels in a real QEMU. Only broken disks and hosts are faked.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "figures for --nocapture")]

mod contention;
mod failing;
mod fresh;
mod guest_config;
mod independent;
mod monitors;
mod noisy;
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

use lab::{Dumps, Event, Lab, LabError, LabOptions, Measurement, Plan, Reuse, Sampled};
use model::{Build, KernelName, MICRO, Outcome, Run, Workload, WorkloadResult};

/// Where the tests keep kernels and snapshots from one time to the next. They reuse no results.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Whether to test everything, as `make test-full` does.
fn full() -> bool {
    std::env::var_os("MARVIN_FULL").is_some()
}

/// Says that a test is left to `make test-full`, unless that runs.
fn is_left_to_full(why: &str) -> bool {
    if !full() {
        println!("skipped: {why}: make test-full runs it");
    }
    !full()
}

/// The kernels of tests that use several: the newer one in every gate, both in the full tests.
fn kernels() -> &'static [&'static str] {
    if full() {
        &["deb:6.1", "deb:6.12"]
    } else {
        &["deb:6.12"]
    }
}

/// Every fourth workload, or all of them in the full tests.
fn each_fourth(workloads: &[Arc<Workload>]) -> Vec<Arc<Workload>> {
    workloads
        .iter()
        .step_by(if full() { 1 } else { 4 })
        .cloned()
        .collect()
}

/// The lab that most tests share.
fn lab() -> &'static Lab {
    static LAB: OnceLock<Lab> = OnceLock::new();
    // `MARVIN_QEMU` tests another QEMU than the distribution's.
    let qemu = std::env::var_os("MARVIN_QEMU").map(PathBuf::from);
    LAB.get_or_init(|| {
        Lab::open(
            &folder("vm-home"),
            LabOptions {
                qemu,
                tools: tools::TOOLS.clone(),
                ..LabOptions::default()
            },
        )
        .unwrap()
    })
}

fn build(name: &str) -> Build {
    lab().build(&name.parse().unwrap(), &|_| {}).unwrap()
}

/// The same build in another data directory, without fetching it again.
fn same_build(other: &Lab, build: &Build) -> Build {
    other
        .build(&KernelName::Path(build.boot_file().path.clone()), &|_| {})
        .unwrap()
}

fn declared(name: &str) -> &'static Arc<Workload> {
    model::workloads()
        .into_iter()
        .find(|workload| workload.name == name)
        .unwrap()
}

/// A workload of a build with the first replicate.
fn first<'a>(build: &'a Build, workload: &'a Workload) -> Measurement<'a> {
    Measurement {
        build,
        workload,
        replicate: 1,
    }
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
        sampled: Sampled::No,
    };
    let mut runs = lab.execute(&plan, notify)?.remove(0);
    assert_eq!(runs.len(), 1);
    Ok(runs.remove(0))
}

/// Measures workloads with one seed and returns their results in the requested order.
fn measure(lab: &Lab, build: &Build, workloads: &[Arc<Workload>]) -> Vec<WorkloadResult> {
    measured_run(lab, build, workloads, &|_| {})
        .unwrap()
        .results
}

/// The samples of a result; fails unless it completed.
fn samples(result: &WorkloadResult) -> &[f64] {
    assert_eq!(result.outcome, Outcome::Completed, "{}", result.workload);
    &result.samples
}
