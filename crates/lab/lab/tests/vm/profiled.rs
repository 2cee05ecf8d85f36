//! Profiles of real kernels: complete, repeatable, and in agreement with the guest's clock.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Build, CostEvent, CostModel, MICRO, Modelled, Profile, Region, Workload};

use crate::{build, declared, first, full, is_left_to_full, kernels, lab, measured_run, samples};

/// Allowed relative distance between counted instructions and the guest's time. A page fault counts
/// the interrupted instruction twice, the clock once; the time includes reading the clock, the
/// region does not.
const APART: f64 = 0.001;

/// Measures workloads on one kernel and returns the profile of each.
fn profiles(build: &Build, workloads: &[Arc<Workload>]) -> Vec<Profile> {
    let run = measured_run(lab(), build, workloads, &|_| {}).unwrap();
    let results = run.results.iter().map(|result| {
        let profile = lab().profile(&run.id, &result.workload).unwrap().unwrap();
        assert_eq!(result.counted, profile.regions, "{}", result.workload);
        let regions: u64 = profile.regions.iter().map(Region::total).sum();
        assert_eq!(profile.total(), regions, "{}", result.workload);
        let time: f64 = samples(result)
            .iter()
            .map(|ticks| ticks * result.operations as f64)
            .sum();
        let apart = (regions as f64 - time).abs() / time;
        assert!(
            apart < APART,
            "{}: {regions} instructions in {time} ns",
            result.workload
        );
        profile
    });
    results.collect()
}

#[test]
fn every_profile_adds_up_and_repeats() {
    // Every sixth workload in every gate, all of them in `make test-full`.
    let workloads: Vec<_> = MICRO
        .workloads
        .iter()
        .step_by(if full() { 1 } else { 6 })
        .cloned()
        .collect();
    for kernel in kernels() {
        let build = build(kernel);
        let first = profiles(&build, &workloads);
        let second = profiles(&build, &workloads);
        let runs = first.iter().zip(&second).zip(&workloads);
        let all: String = runs
            .map(|((first, second), workload)| differences(&workload.name, first, second))
            .collect();
        assert!(all.is_empty(), "{kernel}: two runs, two profiles:\n{all}");
    }
}

/// The addresses of modules are those of a set of modules: a row of btrfs was once named by xfs's.
#[test]
fn modules_of_another_guest_name_nothing() {
    if is_left_to_full("two guests with file systems take two minutes") {
        return;
    }
    let build = build("deb:6.12");
    for (row, own, foreign) in [
        ("xfs-ram-link", "[xfs]", "[btrfs]"),
        ("btrfs-ram-link", "[btrfs]", "[xfs]"),
    ] {
        let [profile] = &profiles(&build, &[Arc::clone(declared(row))])[..] else {
            panic!("{row} has another number of profiles");
        };
        let has = |module: &str| {
            let mut lines = profile.lines.iter();
            lines.any(|line| line.symbol.ends_with(module))
        };
        assert!(has(own) && !has(foreign), "{row}");
    }
}

/// Returns the differences between two profiles, one per line.
fn differences(workload: &str, first: &Profile, second: &Profile) -> String {
    if first == second {
        return String::new();
    }
    let regions = first
        .regions
        .iter()
        .zip(&second.regions)
        .enumerate()
        .filter(|(_, (first, second))| first != second);
    let regions = regions.map(|(index, (first, second))| {
        format!("{workload} region {index}: {first:?} {second:?}\n")
    });
    let lines = |profile: &Profile| {
        profile
            .lines
            .iter()
            .map(|line| format!("{workload} {line:?}\n"))
            .collect()
    };
    let (before, after): (BTreeSet<String>, BTreeSet<String>) = (lines(first), lines(second));
    regions
        .chain(before.symmetric_difference(&after).cloned())
        .collect()
}

#[test]
fn profile_names_the_stressed_functions() {
    let build = build("deb:6.12");
    let run = measured_run(
        lab(),
        &build,
        std::slice::from_ref(declared("getppid")),
        &|_| {},
    )
    .unwrap();
    let profile = lab().profile(&run.id, "getppid").unwrap().unwrap();
    let line = profile
        .lines
        .iter()
        .find(|line| line.symbol == "__x64_sys_getppid")
        .unwrap();
    assert_eq!(line.calls, profile.operations);
    // The workload executes only the system call: iterations are equal to the instruction.
    let first = profile.regions[0];
    println!("{:#?}", profile.regions);
    assert!(
        profile
            .regions
            .iter()
            .all(|region| region.user == first.user)
    );
}

#[test]
fn call_tree_has_the_counted_instructions() {
    let build = build("deb:6.12");
    for name in ["getppid", "fault-anon", "fork-exec", "pipe-pingpong"] {
        let workload = declared(name);
        let run = measured_run(lab(), &build, std::slice::from_ref(workload), &|_| {}).unwrap();
        let profile = lab().profile(&run.id, name).unwrap().unwrap();
        // The lab refuses it unless it repeats the counted instructions.
        let tree = lab()
            .follow_calls(first(&build, workload), &profile)
            .unwrap()
            .into_result()
            .unwrap()
            .tree;
        assert_eq!(tree.total(), profile.total());
        if std::env::var_os("MARVIN_SHOW").is_some() {
            for path in &tree.paths {
                println!(
                    "{name} {} {} {} {}",
                    path.share.name(),
                    path.instructions,
                    path.calls,
                    path.functions.join(";")
                );
            }
        }
    }
}

/// Returns the number of these events in the model.
fn sum(modelled: &Modelled, event: CostEvent) -> u64 {
    modelled
        .lines
        .iter()
        .map(|line| line.events[event as usize])
        .sum()
}

#[test]
fn simulated_processor_repeats_and_disturbs_nothing() {
    let build = build("deb:6.12");
    let workload = declared("pipe-pingpong");
    let run = measured_run(lab(), &build, std::slice::from_ref(workload), &|_| {}).unwrap();
    let profile = lab().profile(&run.id, &workload.name).unwrap().unwrap();
    // The lab refuses it unless the guest repeats the measurement.
    let simulate = |model: &str| {
        let model = CostModel::parse(model).unwrap();
        lab()
            .simulate(first(&build, workload), &profile, &model)
            .unwrap()
            .into_result()
            .unwrap()
    };
    let first = simulate(CostModel::NAME);
    assert_eq!(first, simulate(CostModel::NAME));
    assert_eq!(
        first
            .lines
            .iter()
            .map(|line| line.instructions)
            .sum::<u64>(),
        profile.total()
    );
    let l1i = sum(&first, CostEvent::L1i);
    let l2 = sum(&first, CostEvent::L2);
    // A system call's code exceeds what a first-level cache has free, and stays in the second-level
    // cache.
    assert!(
        l1i > 100 * profile.operations && l2 < profile.operations,
        "{l1i} {l2}"
    );
    // Each task switch flushes the translations of user code: two on each side, code and data.
    assert!(sum(&first, CostEvent::Walk) > 4 * profile.operations);
    let large = simulate("skylake-sp,l1i=8M/16");
    assert!(sum(&large, CostEvent::L1i) * 100 < l1i, "everything fits");
    assert_eq!(
        sum(&large, CostEvent::Branch),
        sum(&first, CostEvent::Branch),
        "one part does not change another"
    );
}
