//! The exact machine with several processors: it repeats itself, with one processor it is the exact
//! machine, and lines move where workloads declare it and nowhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lab::Wanted;
use lab::{Dumps, Lab, LabOptions, Plan, Reuse, Sampled};
use machine::Smp;
use model::{
    CONTENTION, LockKind, Outcome, Run, Sharing, Within, Workload, WorkloadResult,
    declared_transfers,
};

use crate::{
    build, declared, folder, full, is_left_to_full, kernels, lab, measure, same_build, samples,
};

/// Pairs of equal kernels.
const PAIRS: usize = 20;

fn smp(home: &str, processors: u32) -> Lab {
    let wanted = Wanted::ExactSmp(Smp::new(processors));
    Lab::open(
        &folder(home),
        LabOptions {
            wanted,
            ..LabOptions::default()
        },
    )
    .unwrap()
}

/// Measures workloads of the contention suite with these seeds.
fn contend(lab: &Lab, kernel: &str, workloads: &[Arc<Workload>], seeds: Vec<u64>) -> Vec<Run> {
    let build = same_build(lab, &build(kernel));
    let plan = Plan {
        sides: vec![&build],
        suite: &CONTENTION,
        workloads: workloads.to_vec(),
        replicates: seeds,
        machines: 2,
        reuse: Reuse::Nothing,
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    lab.execute(&plan, &|_| {}).unwrap().remove(0)
}

/// Controls, lines and the known case in every gate; all of them in the full tests.
fn chosen() -> Vec<Arc<Workload>> {
    let wanted = [
        "share-no-syscall",
        "share-counter",
        "share-false",
        "share-fault",
        "share-mmap",
        "share-thread",
    ];
    CONTENTION
        .workloads
        .iter()
        .filter(|workload: &&Arc<Workload>| full() || wanted.contains(&&*workload.name))
        .cloned()
        .collect()
}

/// Returns the transfers per operation of a result.
fn transfers(result: &WorkloadResult) -> f64 {
    stats::median_without_first(samples(result)).unwrap()
}

#[test]
fn one_processor_equals_the_exact_machine() {
    let alone = smp("one-home", 1);
    let build = build("deb:6.12");
    let workloads = ["fault-anon", "pipe-pingpong"].map(|name| Arc::clone(declared(name)));
    let there = measure(&alone, &same_build(&alone, &build), &workloads);
    for (result, exact) in there.iter().zip(measure(lab(), &build, &workloads)) {
        assert_eq!(samples(result), samples(&exact), "{}", result.workload);
    }
}

#[test]
fn transfers_repeat_and_are_where_declared() {
    let workloads = chosen();
    for kernel in kernels() {
        let labs = ["smp-home", "other-smp-home"].map(|home| smp(home, 2));
        let [here, there] = labs
            .each_ref()
            .map(|lab| contend(lab, kernel, &workloads, vec![1]).remove(0));
        for result in &here.results {
            let value = transfers(result);
            let allowed = declared_transfers(&result.workload).unwrap();
            println!("{kernel} {:<20} {value:.3}", result.workload);
            assert!(
                allowed.contains(&value),
                "{kernel}: {}: {value} is not in {allowed:?}",
                result.workload
            );
            let ledger =
                |lab: &Lab, run: &Run| lab.sharing(&run.id, &result.workload).unwrap().unwrap();
            let lines = ledger(&labs[0], &here);
            assert_eq!(
                lines,
                ledger(&labs[1], &there),
                "{kernel}: {}",
                result.workload
            );
            if &*result.workload == "share-mmap" {
                // Mapping takes the lock of the address space, whatever the kernel.
                assert!(
                    of_word(&lines, "mm_struct.mmap_lock.count") > 1.0,
                    "{kernel}: {lines:?}"
                );
                // Once by mmap(2) and once by munmap(2).
                let held = of_lock(&lines, LockKind::DownWrite, "mm_struct.mmap_lock.count");
                assert!((1.9..2.2).contains(&held), "{kernel}: {:?}", lines.held);
            }
            if &*result.workload == "share-thread" {
                // For threads that begin and end (kernel/fork.c, kernel/exit.c).
                let held = of_lock(&lines, LockKind::Write, "tasklist_lock");
                assert!((2.0..4.0).contains(&held), "{kernel}: {:?}", lines.held);
                assert!(
                    lines
                        .longest_held(Within::Kernel)
                        .is_some_and(|(_, ns)| ns > 500.0)
                );
            }
            if result.workload.starts_with("share-no-") {
                for within in Within::ALL {
                    let longest = lines.longest_held(within);
                    assert!(longest.is_none_or(|(_, ns)| ns < 5.0), "{longest:?}");
                }
            }
        }
        assert_eq!(
            here.results, there.results,
            "two data directories, {kernel}"
        );
    }
}

/// Returns the transfers per operation of a word.
fn of_word(sharing: &Sharing, word: &str) -> f64 {
    let transfers = sharing
        .moves
        .iter()
        .filter(|moved| moved.word == word)
        .map(|moved| moved.transfers);
    transfers.sum::<u64>() as f64 / sharing.operations as f64
}

/// Returns how often an operation held a lock that both processors took.
fn of_lock(sharing: &Sharing, kind: LockKind, lock: &str) -> f64 {
    let held = sharing
        .held
        .iter()
        .filter(|held| held.kind == kind && held.lock == lock && held.processors == 2);
    held.map(|held| held.times).sum::<u64>() as f64 / sharing.operations as f64
}

#[test]
fn equal_kernels_differ_nowhere_under_load() {
    if is_left_to_full("several boots with two processors") {
        return;
    }
    let is_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _ending = Ending(&is_ended);
        for kernel in kernels() {
            let lab = smp("smp-home", 2);
            let ledgers = || {
                let run = contend(&lab, kernel, &CONTENTION.workloads, vec![1]).remove(0);
                let lines = run
                    .results
                    .iter()
                    .map(|result| lab.sharing(&run.id, &result.workload).unwrap().unwrap());
                (lines.collect::<Vec<_>>(), run.results)
            };
            let first = ledgers();
            for pair in 1..=PAIRS {
                assert_eq!(ledgers(), first, "{kernel}, pair {pair}");
                println!("{kernel}: pair {pair} of {PAIRS} equal");
            }
        }
    });
}

/// Ends other load, also when a test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn margins_cover_the_spread_over_seeds() {
    if is_left_to_full("several boots with two processors") {
        return;
    }
    let runs = contend(
        &smp("smp-home", 2),
        "deb:6.12",
        &CONTENTION.workloads,
        (1..=6).collect(),
    );
    let mut wrong = Vec::new();
    for workload in &CONTENTION.workloads {
        let values: Vec<f64> = runs
            .iter()
            .map(|run: &Run| {
                transfers(
                    run.results
                        .iter()
                        .find(|result| result.workload == workload.name)
                        .unwrap(),
                )
            })
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / (values.len() - 1) as f64;
        let percent = 100.0 * variance.sqrt() / mean;
        println!("{:<20} {percent:.1} % of {mean:.3}", workload.name);
        if percent >= workload.metric.margin_percent / 1.5 {
            wrong.push(format!("{}: {values:?}", workload.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn four_processors_repeat_themselves() {
    if is_left_to_full("several boots with two processors") {
        return;
    }
    let lab = smp("four-home", 4);
    let workloads: Vec<Arc<Workload>> = CONTENTION.workloads.iter().step_by(4).cloned().collect();
    let runs = [1, 2].map(|_| {
        contend(&lab, "deb:6.12", &workloads, vec![1])
            .remove(0)
            .results
    });
    assert!(
        runs[0]
            .iter()
            .all(|result| result.outcome == Outcome::Completed),
        "{:?}",
        runs[0]
    );
    assert_eq!(runs[0], runs[1]);
}
