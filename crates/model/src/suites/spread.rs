//! How far apart the seeds of chaotic workloads are, as it was measured: what their rows must be read with.
//!
//! Standard deviation of the values of five seeds in percent of their mean, rounded up, of Debian's 6.1.192 or 6.12.117,
//! whichever was larger. A test of `make test-full` measures it again (`crates/lab/tests/vm/reclaim.rs`).

const SPREADS: &[(&str, u16)] = &[
    ("memcachetest-0", 3),
    ("io-duration-0", 0),
    ("swaptotal-0", 65),
    ("swapin-0", 72),
    ("minorfaults-0", 7),
    ("majorfaults-0", 72),
    ("memcachetest-50", 12),
    ("io-duration-50", 17),
    ("swaptotal-50", 47),
    ("swapin-50", 32),
    ("minorfaults-50", 7),
    ("majorfaults-50", 32),
    ("memcachetest-225", 10),
    ("io-duration-225", 1),
    ("swaptotal-225", 57),
    ("swapin-225", 42),
    ("minorfaults-225", 5),
    ("majorfaults-225", 43),
    ("memcachetest-400", 16),
    ("io-duration-400", 2),
    ("swaptotal-400", 71),
    ("swapin-400", 55),
    ("minorfaults-400", 7),
    ("majorfaults-400", 55),
    ("mbuild-all", 20),
    ("mbuild-user-min", 6),
    ("mbuild-user-mean", 5),
    ("mbuild-user-stddev", 15),
    ("mbuild-user-max", 11),
    ("mbuild-user-range", 21),
    ("mbuild-sys-min", 6),
    ("mbuild-sys-mean", 19),
    ("mbuild-sys-stddev", 12),
    ("mbuild-sys-max", 4),
    ("mbuild-sys-range", 5),
    ("mbuild-wall-min", 6),
    ("mbuild-wall-mean", 20),
    ("mbuild-wall-stddev", 12),
    ("mbuild-wall-max", 2),
    ("mbuild-wall-range", 2),
    ("mbuild-cpu-min", 7),
    ("mbuild-cpu-mean", 3),
    ("mbuild-cpu-stddev", 10),
    ("mbuild-cpu-max", 6),
    ("mbuild-cpu-range", 8),
    ("kbuild-wall-2", 1),
    ("kbuild-user-2", 5),
    ("kbuild-sys-2", 4),
    ("kbuild-cpu-2", 1),
    ("kbuild-wall-16", 1),
    ("kbuild-user-16", 10),
    ("kbuild-sys-16", 7),
    ("kbuild-cpu-16", 1),
    ("reclaim-file", 2),
    ("reclaim-file-gen", 2),
    ("reclaim-file-lru", 3),
    ("reclaim-anon", 4),
    ("reclaim-anon-gen", 3),
    ("reclaim-anon-lru", 7),
    ("reclaim-slow", 5),
    ("reclaim-slow-gen", 9),
    ("reclaim-slow-lru", 20),
];

/// Returns how far seeds of a chaotic workload of that name are apart, in percent; nothing for steady ones.
#[must_use]
pub fn spread_percent(name: &str) -> Option<u16> {
    SPREADS.iter().find(|(known, _)| *known == name).map(|(_, percent)| *percent)
}

#[cfg(test)]
mod tests {
    use super::{SPREADS, spread_percent};
    use crate::{Steadiness, workloads};

    #[test]
    fn the_spread_of_every_chaotic_workload_was_measured() {
        let all = workloads();
        for workload in &all {
            let chaotic = workload.steadiness == Steadiness::Chaotic;
            assert_eq!(spread_percent(workload.name).is_some(), chaotic, "{}", workload.name);
        }
        assert_eq!(SPREADS.len(), all.iter().filter(|workload| workload.steadiness == Steadiness::Chaotic).count());
    }
}
