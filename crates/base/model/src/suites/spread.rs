//! The measured spread between seeds of chaotic workloads, which limits what their rows can show.
//!
//! Standard deviation of the values of five seeds in percent of their mean, rounded up, of Debian's
//! 6.1.192 or 6.12.117, whichever was larger. A test of `make test-full` measures it again
//! (`crates/lab/lab/tests/vm/reclaim.rs`).

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
    ("ext4-ram-fsync", 26),
];

/// Returns the spread between seeds of a chaotic workload, in percent; `None` for steady ones.
#[must_use]
pub fn spread_percent(name: &str) -> Option<u16> {
    SPREADS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, percent)| *percent)
}

/// The floors of steady workloads: from the smallest to the largest value of five seeds of one
/// build, in percent of their median, rounded up to hundredths. Counted instructions of Debian's
/// 6.12.117, those whose seeds vary their mappings of 6.12.118 or 6.16.12, whichever was larger;
/// `crates/lab/lab/tests/vm/suites.rs` measures them again. Most rows of the suite fs have that of
/// two or three seeds, those of ext4 of five.
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
    ("mem-brk", 2.4),
    ("mem-dontneed", 0.02),
    ("mem-mmap", 3.3),
    ("mem-mprotect", 0.95),
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
    ("tio-like-rndrd-1", 0.02),
    ("tio-like-rndrd-4", 0.1),
    ("tio-like-rndwr-1", 0.02),
    ("tio-like-rndwr-4", 0.14),
    ("tio-like-seqrd-1", 0.02),
    ("tio-like-seqrd-4", 0.12),
    ("tio-like-seqwr-1", 0.02),
    ("tio-like-seqwr-4", 0.14),
    ("aim9-brk", 0.13),
    ("aim9-exec", 0.06),
    ("aim9-fork", 0.05),
    ("aim9-page", 0.07),
    ("ebizzy", 0.04),
    ("pagealloc-0-16", 0.01),
    ("pagealloc-0-256", 0.01),
    ("pagealloc-0-64", 0.01),
    ("pagealloc-2-1", 0.1),
    ("pagealloc-2-16", 0.6),
    ("pagealloc-3-1", 0.03),
    ("pagealloc-3-16", 0.75),
    ("pagealloc-4-1", 1.46),
    ("pagealloc-4-16", 0.13),
    ("pft-proc-1", 0.01),
    ("pft-proc-4", 0.04),
    ("pft-thr-4", 0.04),
    ("stream-2-17", 0.01),
    ("stream-2-19", 0.01),
    ("stream-2-21", 0.01),
    ("stream-2-23", 0.01),
    ("stream-2-25", 0.01),
    ("tbench-like-1", 0.01),
    ("tbench-like-4", 0.33),
    ("tcp-stream-1024", 0.05),
    ("tcp-stream-128", 0.02),
    ("tcp-stream-16384", 0.02),
    ("tcp-stream-2048", 0.05),
    ("tcp-stream-256", 0.08),
    ("tcp-stream-3312", 0.05),
    ("tcp-stream-4096", 0.05),
    ("tcp-stream-64", 0.06),
    ("tcp-stream-8192", 0.07),
    ("udp-recv-1024", 0.05),
    ("udp-recv-128", 0.02),
    ("udp-recv-16384", 0.08),
    ("udp-recv-2048", 0.08),
    ("udp-recv-256", 0.02),
    ("udp-recv-3312", 0.07),
    ("udp-recv-4096", 0.07),
    ("udp-recv-64", 0.02),
    ("udp-recv-8192", 0.03),
    ("udp-send-1024", 0.02),
    ("udp-send-128", 0.02),
    ("udp-send-16384", 0.05),
    ("udp-send-2048", 0.02),
    ("udp-send-256", 0.01),
    ("udp-send-3312", 0.02),
    ("udp-send-4096", 0.02),
    ("udp-send-64", 0.01),
    ("udp-send-8192", 0.03),
    ("rmap-anon-fork", 0.87),
    ("rmap-chain-fork", 0.04),
    ("rmap-file-fork", 0.08),
    ("rmap-file-map", 0.05),
    ("rmap-shm-map", 0.02),
    ("rmap-sparse-map", 0.04),
    ("fault-proc-1", 0.01),
    ("fault-thr-1", 0.01),
    ("futex-own-1", 0.02),
    ("futex-shared-1", 0.02),
    ("mmap-proc-1", 3.2),
    ("mmap-thr-1", 3.3),
    ("open-own-1", 0.01),
    ("open-shared-1", 0.01),
    ("pipe-own-1", 0.02),
    ("switch-pair-1", 0.07),
    ("unix-own-1", 0.08),
    ("unlink-own-1", 0.12),
    ("unlink-shared-1", 0.12),
    ("build-like-1", 0.03),
    ("build-like-12", 0.28),
    ("build-like-2", 0.02),
    ("hackbench-pipe", 0.15),
    ("hackbench-sock", 1.45),
    ("hackbench-thr-pipe", 0.22),
    ("hackbench-thr-sock", 1.04),
    ("sdet-like-1", 0.12),
    ("sdet-like-16", 0.17),
    ("sdet-like-4", 0.21),
    ("bpf-load", 0.01),
    ("bpf-map", 0.01),
    ("bpf-run", 0.01),
    ("ext4-ram-create", 0.08),
    ("ext4-ram-read", 0.02),
    ("key-update", 0.26),
    ("landlock-open", 0.05),
    ("memcg-fault", 0.01),
    ("memcg-kmem", 0.06),
    ("netfilter-ct", 0.04),
    ("netfilter-rules", 0.04),
    ("uring-nop", 0.01),
    ("uring-read", 0.01),
    ("uring-sock", 0.01),
    ("btrfs-ram-chmod", 0.01),
    ("btrfs-ram-copy", 0.01),
    ("btrfs-ram-create", 0.06),
    ("btrfs-ram-falloc", 0.01),
    ("btrfs-ram-fault", 0.03),
    ("btrfs-ram-fiemap", 0.01),
    ("btrfs-ram-fsync", 0.01),
    ("btrfs-ram-link", 0.01),
    ("btrfs-ram-mkdir", 0.12),
    ("btrfs-ram-read", 0.04),
    ("btrfs-ram-readdir", 0.01),
    ("btrfs-ram-rename", 0.01),
    ("btrfs-ram-statfs", 0.07),
    ("btrfs-ram-trunc", 0.01),
    ("btrfs-ram-write", 0.01),
    ("ext4-ram-chmod", 0.05),
    ("ext4-ram-copy", 0.01),
    ("ext4-ram-falloc", 0.09),
    ("ext4-ram-fault", 0.02),
    ("ext4-ram-fiemap", 0.01),
    ("ext4-ram-gap", 0.13),
    ("ext4-ram-link", 0.03),
    ("ext4-ram-mkdir", 0.25),
    ("ext4-ram-nojournal", 0.12),
    ("ext4-ram-readdir", 0.01),
    ("ext4-ram-rename", 0.08),
    ("ext4-ram-statfs", 0.06),
    ("ext4-ram-sync", 0.01),
    ("ext4-ram-trunc", 0.01),
    ("ext4-ram-write", 0.08),
    ("nfs-ram-chmod", 0.34),
    ("nfs-ram-create", 0.29),
    ("nfs-ram-fsync", 0.06),
    ("nfs-ram-mkdir", 0.11),
    ("nfs-ram-read", 0.80),
    ("nfs-ram-readdir", 0.02),
    ("nfs-ram-rename", 0.31),
    ("nfs-ram-sync", 0.28),
    ("nfs-ram-trunc", 0.35),
    ("nfs-ram-write", 3.18),
    ("tmpfs-chmod", 0.01),
    ("tmpfs-falloc", 0.01),
    ("tmpfs-link", 0.03),
    ("tmpfs-mkdir", 0.37),
    ("tmpfs-rename", 0.04),
    ("tmpfs-trunc", 0.01),
    ("tmpfs-write", 0.03),
    ("xfs-ram-chmod", 0.09),
    ("xfs-ram-copy", 0.04),
    ("xfs-ram-create", 4.29),
    ("xfs-ram-falloc", 0.04),
    ("xfs-ram-fault", 0.02),
    ("xfs-ram-fiemap", 0.01),
    ("xfs-ram-fsync", 0.22),
    ("xfs-ram-gap", 1.96),
    ("xfs-ram-link", 0.01),
    ("xfs-ram-mkdir", 11.59),
    ("xfs-ram-read", 0.02),
    ("xfs-ram-readdir", 0.03),
    ("xfs-ram-rename", 0.01),
    ("xfs-ram-statfs", 0.71),
    ("xfs-ram-sync", 0.01),
    ("xfs-ram-trunc", 0.85),
    ("xfs-ram-write", 0.02),
    ("aio-read", 0.01),
    ("call-clock", 0.01),
    ("call-dup", 0.01),
    ("call-fcntl", 0.01),
    ("call-fstat", 0.01),
    ("call-getrandom", 0.01),
    ("call-lseek", 0.01),
    ("call-seccomp", 0.02),
    ("call-sendfile", 0.01),
    ("call-statx", 0.07),
    ("call-writeseek", 0.01),
    ("map-file-private", 0.07),
    ("map-file-shared", 0.08),
    ("map-hugetlb", 0.03),
    ("map-large", 0.09),
    ("map-many", 0.59),
    ("map-many-fork", 0.02),
    ("map-mlock", 0.02),
    ("map-mremap", 0.07),
    ("map-shmget", 0.09),
    ("map-split", 0.01),
    ("map-zero", 0.19),
    ("memcg-deep", 0.01),
    ("memcg-stat", 0.02),
    ("memcg-stat-few", 0.01),
    ("memcg-tcp", 0.06),
    ("mqueue-posix", 0.01),
    ("mqueue-sysv", 0.01),
    ("sock-connect", 0.36),
    ("sock-dgram", 0.07),
    ("sock-fd", 0.02),
    ("sock-ports", 0.35),
    ("sock-raw", 0.03),
    ("sock-sctp", 0.37),
    ("alg-hash", 0.01),
    ("loop-file", 0.18),
    ("uring-worker", 0.59),
    ("timer-signal", 0.01),
    ("timer-sleep", 0.01),
    ("uring-poll", 0.01),
];

/// How far values of seeds of one build lie apart: what layout and timing alone do to a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Floor {
    /// From the smallest to the largest value of five seeds of a steady workload, in percent of the
    /// median.
    Range(f64),
    /// The standard deviation of the values of a chaotic workload, in percent of the mean.
    Deviation(f64),
}

impl Floor {
    /// Returns the floor as it is shown (percent).
    #[must_use]
    pub fn percent(self) -> f64 {
        match self {
            Self::Range(percent) | Self::Deviation(percent) => percent,
        }
    }
}

/// Returns the floor of a workload. `None` for undeclared workloads.
#[must_use]
pub fn floor(name: &str) -> Option<Floor> {
    let range = FLOORS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, percent)| Floor::Range(*percent));
    range
        .or_else(|| spread_percent(name).map(|percent| Floor::Deviation(f64::from(percent))))
        .or_else(|| super::contention::floor(name))
}

/// Returns the floor of a workload as it is shown (percent). `None` for undeclared workloads.
#[must_use]
pub fn floor_percent(name: &str) -> Option<f64> {
    floor(name).map(Floor::percent)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{FLOORS, SPREADS, floor_percent, spread_percent};
    use crate::{CONTENTION, Steadiness, Workload, workloads};

    #[test]
    fn the_spread_of_every_chaotic_workload_was_measured() {
        let all = workloads();
        // Those of the suite contention have the spread that their margin was chosen for.
        let of_one = |workload: &&&Arc<Workload>| CONTENTION.find(&workload.name).is_none();
        for workload in all.iter().filter(of_one) {
            let chaotic = workload.steadiness == Steadiness::Chaotic;
            assert_eq!(
                spread_percent(&workload.name).is_some(),
                chaotic,
                "{}",
                workload.name
            );
        }
        for (name, floor) in FLOORS {
            assert!(all.iter().any(
                |workload| workload.name == *name && workload.steadiness == Steadiness::Steady
            ));
            assert!(*floor > 0.0, "{name}");
        }
        let bare: Vec<_> = all
            .iter()
            .filter(|workload| {
                floor_percent(&workload.name).is_none() && workload.guest_config.disk.is_none()
            })
            .map(|w| &w.name)
            .collect();
        assert!(bare.is_empty(), "{bare:?}");
        assert_eq!(floor_percent("sysbench-cpu"), None);
        let chaotic = all
            .iter()
            .filter(of_one)
            .filter(|workload| workload.steadiness == Steadiness::Chaotic);
        assert_eq!(SPREADS.len(), chaotic.count());
    }
}
