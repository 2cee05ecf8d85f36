//! Experiments: groups of workloads that follow one older test, and the blocks of the tables.

use std::sync::Arc;

use crate::selection::group_of_name;
use crate::{CONTENTION, DISKS, FS, MICRO, REPORTS, SCALE, SUBSYSTEMS, SUITES, Suite};

/// Groups of workloads, and the test that they follow by its usual name.
const EXPERIMENTS: &[(&[&str], &str)] = &[
    (&["aim9"], "AIM9"),
    (&["pft"], "pft"),
    (&["stream"], "STREAM"),
    (&["pagealloc"], "pagealloc"),
    (&["ebizzy"], "ebizzy"),
    (&["sdet"], "SDET"),
    (&["hackbench"], "hackbench"),
    (&["build"], "builds"),
    (&["tcp"], "netperf TCP_STREAM"),
    (&["udp"], "netperf UDP_STREAM"),
    (&["tbench"], "tbench"),
    (&["tio"], "tiobench"),
    (&["rmap"], "reverse mappings"),
    (
        &[
            "memcachetest",
            "io",
            "swaptotal",
            "swapin",
            "minorfaults",
            "majorfaults",
        ],
        "parallelio",
    ),
    (&["mbuild"], "multibuild"),
    (&["kbuild"], "kernbench"),
    (&["reclaim"], "reclaim on purpose"),
];

/// Returns the experiment of a declared workload: the older test that it follows
/// (docs/workloads.md). `None` for the suites that follow none, and for undeclared names.
#[must_use]
pub fn experiment_of(name: &str) -> Option<&'static str> {
    let declared =
        |suite: &&Arc<Suite>| suite.workloads.iter().any(|workload| workload.name == name);
    // Other suites also select workloads of the micro suite.
    let suite = SUITES.iter().find(declared)?;
    if of_no_test().iter().any(|own| own.name == suite.name) {
        return None;
    }
    let group = group_of_name(name);
    EXPERIMENTS
        .iter()
        .find(|(groups, _)| groups.contains(&group))
        .map(|(_, title)| *title)
}

/// Returns the suites that follow no test of others.
fn of_no_test() -> [&'static Suite; 7] {
    [
        &MICRO,
        &SCALE,
        &CONTENTION,
        &DISKS,
        &FS,
        &SUBSYSTEMS,
        &REPORTS,
    ]
}

#[cfg(test)]
mod tests {
    use super::{EXPERIMENTS, experiment_of, of_no_test};
    use crate::{group_of, workloads};

    #[test]
    fn workloads_made_after_tests_have_experiments() {
        for workload in workloads() {
            let own = of_no_test()
                .iter()
                .any(|suite| suite.find(&workload.name).is_some());
            assert_eq!(
                experiment_of(&workload.name).is_none(),
                own,
                "{}",
                workload.name
            );
        }
        assert_eq!(
            [experiment_of("video-decode"), experiment_of("io-uring-nop")],
            [None; 2]
        );
    }

    #[test]
    fn no_group_is_listed_that_is_not_there() {
        let groups: Vec<&str> = workloads()
            .into_iter()
            .map(|workload| group_of(workload))
            .collect();
        for (listed, title) in EXPERIMENTS {
            for group in *listed {
                assert!(groups.contains(group), "{title}: {group}");
            }
        }
    }
}
