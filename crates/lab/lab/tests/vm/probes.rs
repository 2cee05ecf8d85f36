//! Workloads exercise what they declare: each operation enters the declared kernel functions at
//! least once.

use std::sync::Arc;

use model::{MICRO, SCALE, Workload};
use probes::Probe;

use crate::{build, each_fourth, full, kernels, lab};

#[test]
fn workloads_enter_the_functions_they_declare() {
    probe_functions(each_fourth(&MICRO.workloads));
}

#[test]
fn scaling_workloads_enter_declared_functions() {
    let step = if full() { 1 } else { 4 };
    probe_functions(SCALE.workloads.iter().step_by(step).cloned().collect());
}

/// Probes the functions that workloads declare.
pub(crate) fn probe_functions(workloads: Vec<Arc<Workload>>) {
    let mut wrong = Vec::new();
    for kernel in kernels() {
        let build = build(kernel);
        for declared in workloads
            .iter()
            .filter(|workload| !workload.exercises.is_empty())
        {
            // Probes are slow, and a tenth of the operations shows the same.
            let short = Workload {
                operations: declared.operations.div_ceil(10),
                warm_up: 0,
                iterations: 1,
                ..(**declared).clone()
            };
            let probed = lab().probe(&build, &short).unwrap();
            for names in declared.exercises {
                let hits: u64 = probed
                    .hits
                    .iter()
                    .filter(|hits| names.contains(&&*hits.function))
                    .map(|hits| hits.count)
                    .sum();
                if hits < probed.operations {
                    let name = &declared.name;
                    let operations = probed.operations;
                    wrong.push(format!("{kernel}: {name}: {names:?} entered {hits} times in {operations} operations"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn uncontended_mutex_stays_in_user_space() {
    let build = build("deb:6.12");
    let mutex = crate::declared("mutex-uncontended");
    let probed = lab()
        .probe(
            &build,
            &Workload {
                exercises: &[&["do_futex"]],
                ..(**mutex).clone()
            },
        )
        .unwrap();
    let probe_functions = probed.hits.iter().map(|hits| hits.count).sum::<u64>();
    assert_eq!(probed.hits.len(), 1, "do_futex cannot be probed");
    assert!(
        probe_functions < 100,
        "do_futex was entered {probe_functions} times in {} operations",
        probed.operations
    );
}
