//! Suites that select from the others.

use std::sync::{Arc, LazyLock};

use super::{IO, MM, NET, RECLAIM, RMAP, SCHED, SUBSYSTEMS};
use crate::{MICRO, Suite};

const OF_SMOKE: &[(&LazyLock<Arc<Suite>>, &[&str])] = &[
    (
        &MICRO,
        &["getppid", "pipe-pingpong", "fork-exec", "fault-anon"],
    ),
    (&MM, &["aim9-page", "pft-proc-4"]),
    (&SCHED, &["hackbench-pipe", "build-like-2"]),
    (&NET, &["tcp-stream-4096", "tbench-like-1"]),
    (&IO, &["tio-like-rndrd-4"]),
];

/// A few workloads of each suite, for an answer within two minutes on two processors.
pub static SMOKE: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let mut workloads = Vec::new();
    for (suite, names) in OF_SMOKE {
        for name in *names {
            let mut all = suite.workloads.iter();
            workloads.extend(all.find(|known| known.name == *name).cloned());
        }
    }
    Arc::new(Suite {
        name: "smoke",
        purpose: "a few workloads of each suite, in at most two minutes on two processors",
        workloads,
    })
});

/// The workloads that have a published counterpart (docs/workloads.md): these suites without the
/// four of hackbench.
pub static SEEDS: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let all = [&MM, &SCHED, &NET, &IO, &RMAP, &RECLAIM]
        .into_iter()
        .flat_map(|suite| &suite.workloads);
    Arc::new(Suite {
        name: "seeds",
        purpose: "the workloads that follow published tests, without hackbench",
        workloads: all
            .filter(|workload| !workload.name.starts_with("hackbench-"))
            .cloned()
            .collect(),
    })
});

/// One row for each path: what a series of patches is measured by.
pub static PATHS: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let all = [&MICRO, &SUBSYSTEMS].into_iter();
    Arc::new(Suite {
        name: "paths",
        purpose: "micro and subsystems",
        workloads: all.flat_map(|suite| &suite.workloads).cloned().collect(),
    })
});

#[cfg(test)]
mod tests {
    use super::{OF_SMOKE, SMOKE};

    #[test]
    fn every_workload_that_smoke_chooses_is_there() {
        let chosen = OF_SMOKE.iter().flat_map(|(_, names)| names.iter().copied());
        assert!(
            SMOKE
                .workloads
                .iter()
                .map(|workload| &*workload.name)
                .eq(chosen)
        );
    }
}
