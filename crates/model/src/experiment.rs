//! Which experiment a workload is a row of: what the tables of the older suites are blocks of.

use std::sync::Arc;

use crate::selection::group_of_name;
use crate::{MICRO, SUITES, Suite};

/// Groups of workloads and the test that they were made after, as its own documents call it.
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
    (&["memcachetest", "io", "swaptotal", "swapin", "minorfaults", "majorfaults"], "parallelio"),
    (&["mbuild"], "multibuild"),
    (&["kbuild"], "kernbench"),
    (&["reclaim"], "reclaim on purpose"),
];

/// Returns the experiment that a declared workload is a row of: the test of the source documents that it was made after.
/// `None` for workloads of the micro suite, which are made after none, and for names that nobody declared.
#[must_use]
pub fn experiment_of(name: &str) -> Option<&'static str> {
    let declared = |suite: &&Arc<Suite>| suite.workloads.iter().any(|workload| workload.name == name);
    // A workload of the micro suite may be in others that choose from it.
    if SUITES.iter().find(declared)?.name == MICRO.name {
        return None;
    }
    let group = group_of_name(name);
    EXPERIMENTS.iter().find(|(groups, _)| groups.contains(&group)).map(|(_, title)| *title)
}

#[cfg(test)]
mod tests {
    use super::{EXPERIMENTS, experiment_of};
    use crate::{MICRO, group_of, workloads};

    #[test]
    fn workloads_made_after_tests_have_experiments() {
        for workload in workloads() {
            let micro = MICRO.workloads.iter().any(|micro| micro.name == workload.name);
            assert_eq!(experiment_of(&workload.name).is_none(), micro, "{}", workload.name);
        }
        assert_eq!([experiment_of("video-decode"), experiment_of("io-uring-nop")], [None; 2]);
    }

    #[test]
    fn no_group_is_listed_that_is_not_there() {
        let groups: Vec<&str> = workloads().into_iter().map(|workload| group_of(workload)).collect();
        for (listed, title) in EXPERIMENTS {
            for group in *listed {
                assert!(groups.contains(group), "{title}: {group}");
            }
        }
    }
}
