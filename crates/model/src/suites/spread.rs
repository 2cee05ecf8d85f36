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

/// The floors of steady workloads: from the smallest to the largest value of five seeds of one build, in percent of their median,
/// rounded up to hundredths. Counted instructions of Debian's 6.12.117.
const FLOORS: &[(&str, f64)] = &[
    ("event-epoll", 0.01),
    ("event-fd", 0.01),
    ("event-poll", 0.01),
    ("fault-anon", 0.01),
    ("fault-cow", 0.01),
    ("fault-file-private", 0.01),
    ("fault-file-shared", 0.02),
    ("fault-huge", 0.02),
    ("file-create", 0.11),
    ("file-open", 0.05),
    ("file-read-4k", 0.01),
    ("file-read-64k", 0.01),
    ("file-readdir", 0.01),
    ("file-stat", 0.08),
    ("file-write-4k", 0.02),
    ("file-write-64k", 0.02),
    ("fork-exec", 0.05),
    ("fork-exit", 0.21),
    ("fork-vfork-exec", 0.03),
    ("futex-pingpong", 0.02),
    ("getppid", 0.01),
    ("mem-brk", 0.35),
    ("mem-dontneed", 0.02),
    ("mem-mmap", 0.19),
    ("mem-mprotect", 0.08),
    ("mutex-contended", 0.01),
    ("mutex-uncontended", 0.01),
    ("pipe-pingpong", 0.07),
    ("sem-sysv", 0.01),
    ("signal", 0.01),
    ("switch-yield", 0.01),
    ("tcp-connect", 0.14),
    ("tcp-rr", 0.03),
    ("tcp-stream", 0.02),
    ("thread-create", 0.33),
    ("udp-rr", 0.05),
    ("unix-pingpong", 0.02),
    // Of three seeds.
    ("build-like-1", 0.02),
    ("build-like-12", 0.28),
    ("build-like-2", 0.02),
    ("hackbench-pipe", 0.14),
    ("hackbench-sock", 1.44),
    ("hackbench-thr-pipe", 0.15),
    ("hackbench-thr-sock", 0.81),
    ("sdet-like-1", 0.1),
    ("sdet-like-16", 0.09),
    ("sdet-like-4", 0.18),
];
/// The floor of steady workloads that are not in the list: the largest of the suite micro.
const FLOOR_ELSE: f64 = 0.35;

/// Returns how far seeds of one build of a workload lie apart, in percent: what a difference must exceed before few seeds show
/// it. None for what is no workload of a suite.
#[must_use]
pub fn floor_percent(name: &str) -> Option<f64> {
    let of = |floors: &[(&str, f64)]| floors.iter().find(|(known, _)| *known == name).map(|(_, percent)| *percent);
    let chaotic = || spread_percent(name).map(f64::from);
    of(FLOORS).or_else(chaotic).or_else(|| is_declared(name).then_some(FLOOR_ELSE))
}

fn is_declared(name: &str) -> bool {
    super::SUITES.iter().any(|suite| suite.workloads.iter().any(|workload| workload.name == name))
}

#[cfg(test)]
mod tests {
    use super::{FLOORS, SPREADS, floor_percent, spread_percent};
    use crate::{Steadiness, workloads};

    #[test]
    fn the_spread_of_every_chaotic_workload_was_measured() {
        let all = workloads();
        for workload in &all {
            let chaotic = workload.steadiness == Steadiness::Chaotic;
            assert_eq!(spread_percent(&workload.name).is_some(), chaotic, "{}", workload.name);
        }
        for (name, floor) in FLOORS {
            assert!(all.iter().any(|workload| workload.name == *name && workload.steadiness == Steadiness::Steady));
            assert!(*floor > 0.0, "{name}");
        }
        assert!(all.iter().all(|workload| floor_percent(&workload.name).is_some()));
        assert_eq!(floor_percent("sysbench-cpu"), None);
        assert_eq!(SPREADS.len(), all.iter().filter(|workload| workload.steadiness == Steadiness::Chaotic).count());
    }
}
