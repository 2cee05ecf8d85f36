//! Workloads measure what they say: twice the operations take twice the time.

use std::sync::Arc;

use model::{MICRO, SCALE, Workload};

use crate::{build, each_fourth, full, lab, measure, samples};

/// How far the ratio may be from two.
const TOLERANCE: f64 = 0.02;

#[test]
fn doubled_operations_double_the_time() {
    let scaling = SCALE.workloads.iter().filter(|_| full()).cloned();
    double_operations(
        each_fourth(&MICRO.workloads)
            .into_iter()
            .chain(scaling)
            .collect(),
    );
}

/// Measures workloads with their operations and with twice as many.
pub(crate) fn double_operations(once: Vec<Arc<Workload>>) {
    let build = build("deb:6.12");
    let twice: Vec<Arc<Workload>> = once
        .iter()
        .map(|w| {
            Arc::new(Workload {
                operations: w.operations * 2,
                ..(**w).clone()
            })
        })
        .collect();
    let once = measure(lab(), &build, &once);
    let twice = measure(lab(), &build, &twice);
    let mut wrong = Vec::new();
    for (once, twice) in once.iter().zip(&twice) {
        let cost = |result| stats::median_without_first(samples(result)).unwrap();
        // Costs are per operation, so equal costs mean that the time doubled.
        let ratio = 2.0 * cost(twice) / cost(once);
        println!("{:<20} {ratio:.4}", once.workload);
        if (ratio / 2.0 - 1.0).abs() > TOLERANCE {
            wrong.push(format!("{} takes {ratio:.4} times as long", once.workload));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
