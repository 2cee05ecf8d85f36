//! The suites that follow older tests: exact, and measuring what they declare.

use std::sync::Arc;

use lab::{Dumps, Lab, LabOptions, Plan, Reuse, Sampled};
use model::{MICRO, Steadiness, Workload, floor_percent};
use probes::Probe;

use crate::fresh::fresh;
use crate::{build, declared, full, is_left_to_full, kernels, lab, measure, same_build, samples};

/// One workload of each group, or all of them in the full tests.
fn some() -> Vec<Arc<Workload>> {
    let new = model::workloads().into_iter().filter(|workload| {
        // `reclaim.rs` tests the chaotic ones.
        !workload.source.is_empty() && workload.steadiness == Steadiness::Steady
    });
    if full() {
        return new.cloned().collect();
    }
    let mut groups = std::collections::BTreeSet::new();
    let several = [
        "pft-thr-4",
        "hackbench-thr-sock",
        "sdet-like-16",
        "build-like-12",
        "tbench-like-4",
        "udp-recv-64",
    ];
    new.filter(|workload| {
        groups.insert(model::group_of(workload)) || several.contains(&&*workload.name)
    })
    .cloned()
    .collect()
}

/// A third of them for the most expensive tests, or all of them in the full tests.
fn third() -> Vec<Arc<Workload>> {
    some()
        .into_iter()
        .step_by(if full() { 1 } else { 3 })
        .collect()
}

#[test]
fn two_data_directories_give_equal_samples() {
    if is_left_to_full("equal comparisons give equal JSON in two data directories, too") {
        return;
    }
    for kernel in kernels() {
        let build = build(kernel);
        let workloads = third();
        let first = measure(lab(), &build, &workloads);
        let home = fresh("second-home");
        let other = Lab::open(&home, LabOptions::default()).unwrap();
        let second = measure(&other, &same_build(&other, &build), &workloads);
        let pairs = first.iter().zip(&second);
        let differ = pairs
            .filter(|(first, second)| samples(first) != samples(second))
            .map(|(first, _)| &first.workload);
        assert_eq!(
            differ.collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "{kernel}"
        );
    }
}

/// Allowed factor between the floor and the distance of seeds on another kernel than the one it was
/// measured on.
const FLOOR_TOLERANCE: f64 = 2.0;

#[test]
fn seeds_of_one_build_lie_within_the_floor() {
    if is_left_to_full("five boots") {
        return;
    }
    let build = build("deb:6.12");
    // The exact machine has no disks.
    let workloads: Vec<Arc<Workload>> = model::workloads()
        .into_iter()
        .filter(|workload: &&Arc<Workload>| {
            workload.steadiness == Steadiness::Steady && workload.guest_config.disk.is_none()
        })
        .cloned()
        .collect();
    let plan = Plan {
        sides: vec![&build],
        suite: &MICRO,
        workloads: workloads.clone(),
        replicates: (1..=5).collect(),
        machines: 2,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let runs = lab().execute(&plan, &|_| {}).unwrap().remove(0);
    let capabilities = lab().machine().capabilities();
    let mut wrong = Vec::new();
    for workload in &workloads {
        let results = runs
            .iter()
            .flat_map(|run| &run.results)
            .filter(|result| result.workload == workload.name);
        let values: Vec<f64> = results
            .map(|result| compare::run_value(result, capabilities).unwrap().value)
            .collect();
        assert_eq!(values.len(), 5, "{}", workload.name);
        let ends = stats::spread(&values).unwrap();
        let apart = 100.0 * (ends.max - ends.min) / stats::median(&values).unwrap();
        let floor = floor_percent(&workload.name).unwrap();
        println!(
            "{:<18} {apart:.3} % between seeds, floor {floor} %",
            workload.name
        );
        if apart > FLOOR_TOLERANCE * floor {
            wrong.push(format!("{}: {apart:.3} %", workload.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn doubled_suite_operations_double_the_time() {
    if is_left_to_full("truthful and rmap double operations, too") {
        return;
    }
    crate::truthful::double_operations(third());
}

#[test]
fn suite_workloads_enter_declared_functions() {
    crate::probes::probe_functions(some());
}

/// Workloads, what each stresses, and what others stress: kernel functions that a probe slows down.
const HARDER: &[(&str, &str, &str)] = &[
    ("aim9-page", "handle_mm_fault", "tcp_sendmsg"),
    ("aim9-brk", "__x64_sys_brk", "handle_mm_fault"),
    ("aim9-exec", "begin_new_exec", "pipe_write"),
    ("aim9-fork", "do_exit", "begin_new_exec"),
    ("pft-proc-4", "handle_mm_fault", "__x64_sys_brk"),
    ("pft-thr-4", "handle_mm_fault", "__x64_sys_brk"),
    ("pagealloc-0-64", "pipe_write", "handle_mm_fault"),
    ("pagealloc-3-16", "pipe_resize_ring", "pipe_write"),
    ("ebizzy", "handle_mm_fault", "pipe_resize_ring"),
    ("hackbench-pipe", "pipe_write", "unix_stream_sendmsg"),
    ("hackbench-sock", "unix_stream_sendmsg", "tcp_sendmsg"),
    ("hackbench-thr-pipe", "pipe_write", "unix_stream_sendmsg"),
    ("sdet-like-4", "handle_mm_fault", "tcp_sendmsg"),
    ("build-like-2", "handle_mm_fault", "tcp_sendmsg"),
    ("tcp-stream-1024", "tcp_sendmsg", "udp_sendmsg"),
    ("udp-send-1024", "udp_sendmsg", "udp_recvmsg"),
    ("udp-recv-1024", "udp_recvmsg", "udp_sendmsg"),
    ("tbench-like-4", "tcp_sendmsg", "udp_sendmsg"),
    ("tio-like-seqrd-4", "filemap_read", "generic_perform_write"),
    ("tio-like-rndwr-1", "generic_perform_write", "filemap_read"),
    ("rmap-file-map", "folio_remove_rmap_ptes", "tcp_sendmsg"),
    ("rmap-sparse-map", "pte_alloc_one", "anon_vma_fork"),
    ("rmap-file-fork", "vm_area_dup", "anon_vma_clone"),
    ("rmap-anon-fork", "anon_vma_fork", "tcp_sendmsg"),
    ("rmap-chain-fork", "anon_vma_clone", "tcp_sendmsg"),
];

#[test]
fn every_group_has_a_harder_variant() {
    let groups: Vec<&str> = HARDER
        .iter()
        .map(|(name, ..)| model::group_of(declared(name)))
        .collect();
    for workload in model::workloads() {
        let made_after = model::experiment_of(&workload.name).is_some()
            && workload.steadiness == Steadiness::Steady;
        // STREAM stays in user code: probes do not reach it, and `truthful.rs` tests it.
        let in_kernel = !workload.exercises.is_empty();
        if made_after && in_kernel {
            assert!(
                groups.contains(&model::group_of(workload)),
                "{}",
                workload.name
            );
        }
    }
}

/// Smallest cost of a probe (instructions): saving registers, its handler, returning.
const PROBE: f64 = 50.0;
/// How far an unrelated change may move a cost, as a fraction. A probe takes memory and time of the
/// guest: a cost with many short-lived processes moves by nearly the margin, others by much less.
const TOLERANCE: f64 = 0.02;

#[test]
fn suite_cost_follows_only_stressed_functions() {
    let build = build("deb:6.12");
    let mut wrong = Vec::new();
    // Every fifth in every gate, all of them in `make test-full`.
    for (name, stressed, other) in HARDER.iter().step_by(if full() { 1 } else { 5 }) {
        let cost = |probed: &'static str| {
            let functions: &'static [&'static str] = Vec::leak(vec![probed]);
            let exercises: &'static [&'static [&'static str]] = if probed.is_empty() {
                &[]
            } else {
                Vec::leak(vec![functions])
            };
            let workload = Workload {
                exercises,
                ..(**declared(name)).clone()
            };
            let probed = lab().probe(&build, &workload).unwrap();
            let ticks: Vec<f64> = probed.ticks.iter().map(|ticks| *ticks as f64).collect();
            let median = stats::median_without_first(&ticks).unwrap() / workload.operations as f64;
            let hits: u64 = probed.hits.iter().map(|hits| hits.count).sum();
            (median, hits as f64 / probed.operations as f64)
        };
        let (plain, _) = cost("");
        let (harder, hits) = cost(stressed);
        let (beside, _) = cost(other);
        let least = PROBE * hits;
        println!(
            "{name:<20} {plain:.0}, {stressed} {harder:.0} ({hits:.1} times), {other} {beside:.0}"
        );
        if hits < 0.9 || harder - plain < least {
            wrong.push(format!(
                "{name}: {plain} became {harder} with {stressed} {hits} times dearer"
            ));
        }
        if (beside / plain - 1.0).abs() > TOLERANCE {
            wrong.push(format!(
                "{name}: {plain} became {beside} with {other} dearer"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
