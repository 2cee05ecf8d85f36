//! The parts of the kernel that budgets are proposed for: their files, and the rows of `paths` that
//! enter them.
//!
//! Files follow the entries of MAINTAINERS in Linux 6.12; it has none for fork and exit. A row is here if its profile on a build
//! of Linux 6.12.117 with the default config has functions of these files (docs/gate.md).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::PATHS;
use crate::{Budget, Limit, Suite, USUAL_LIMIT_PERCENT};

/// A part of the kernel: what files it has and which rows enter it.
#[derive(Debug, Clone, Copy)]
pub struct KernelPart {
    /// Its name.
    pub name: &'static str,
    /// The suite with its rows.
    pub suite: &'static str,
    /// Its files, see [`is_path_within`](crate::is_path_within).
    pub paths: &'static [&'static str],
    rows: &'static [&'static str],
}

/// The parts that budgets are proposed for.
pub static KERNEL_PARTS: [KernelPart; 12] = [
    KernelPart {
        name: "mm",
        suite: "paths-mm",
        paths: &[
            "mm/",
            "arch/x86/mm/",
            "include/linux/gfp*.h",
            "include/linux/mm.h",
            "include/linux/mm_*.h",
            "include/linux/mmzone.h",
            "include/linux/pagemap.h",
            "include/linux/rmap.h",
            "include/linux/slab.h",
            "include/linux/swap*.h",
        ],
        rows: &[
            "fork-exit",
            "fault-anon",
            "fault-file-private",
            "fault-file-shared",
            "fault-cow",
            "fault-huge",
            "mem-mmap",
            "mem-mprotect",
            "mem-brk",
            "mem-dontneed",
            "file-read-4k",
            "memcg-fault",
        ],
    },
    KernelPart {
        name: "sched",
        suite: "paths-sched",
        paths: &[
            "kernel/sched/",
            "kernel/exit.c",
            "kernel/fork.c",
            "kernel/kthread.c",
            "kernel/pid.c",
            "include/linux/preempt.h",
            "include/linux/sched.h",
            "include/linux/sched/",
            "include/linux/wait*.h",
        ],
        rows: &[
            "switch-yield",
            "pipe-pingpong",
            "futex-pingpong",
            "unix-pingpong",
            "fork-exit",
            "thread-create",
            "mutex-contended",
        ],
    },
    KernelPart {
        name: "net",
        suite: "paths-net",
        paths: &[
            "net/",
            "include/net/",
            "include/linux/net*.h",
            "include/linux/skbuff*.h",
            "include/linux/tcp.h",
            "include/linux/udp.h",
        ],
        rows: &[
            "unix-pingpong",
            "tcp-connect",
            "tcp-rr",
            "tcp-stream",
            "udp-rr",
            "uring-sock",
            "netfilter-rules",
            "netfilter-ct",
        ],
    },
    KernelPart {
        name: "fs",
        suite: "paths-fs",
        paths: &[
            "fs/",
            "include/linux/dcache.h",
            "include/linux/fdtable.h",
            "include/linux/file.h",
            "include/linux/fs.h",
            "include/linux/namei.h",
            "include/linux/path.h",
        ],
        rows: &[
            "pipe-pingpong",
            "event-fd",
            "event-epoll",
            "event-poll",
            "file-read-4k",
            "file-write-4k",
            "file-open",
            "file-stat",
            "file-create",
            "file-readdir",
            "ext4-ram-create",
            "ext4-ram-read",
        ],
    },
    KernelPart {
        name: "locking",
        suite: "paths-locking",
        paths: &[
            "kernel/futex/",
            "kernel/locking/",
            "include/linux/futex.h",
            "include/linux/lockdep*.h",
            "include/linux/mutex*.h",
            "include/linux/rwlock*.h",
            "include/linux/rwsem*.h",
            "include/linux/seqlock*.h",
            "include/linux/spinlock*.h",
        ],
        rows: &[
            "futex-pingpong",
            "fork-exit",
            "thread-create",
            "file-create",
            "file-readdir",
            "mutex-contended",
        ],
    },
    KernelPart {
        name: "io_uring",
        suite: "paths-io_uring",
        paths: &[
            "io_uring/",
            "include/linux/io_uring*.h",
            "include/linux/io_uring/",
        ],
        // Only three rows use io_uring; what its header puts into exec and exit is in fork-exec.
        rows: &["fork-exec", "uring-nop", "uring-read", "uring-sock"],
    },
    KernelPart {
        name: "bpf",
        suite: "paths-bpf",
        paths: &[
            "kernel/bpf/",
            "net/bpf/",
            "net/core/filter.c",
            "net/core/bpf_sk_storage.c",
            "arch/x86/net/",
            "include/linux/bpf*.h",
            "include/linux/filter.h",
        ],
        // Only three rows use bpf(2); sockets enter net/core/filter.c.
        rows: &["tcp-connect", "bpf-map", "bpf-load", "bpf-run"],
    },
    KernelPart {
        name: "cgroup",
        suite: "paths-cgroup",
        paths: &[
            "kernel/cgroup/",
            "mm/memcontrol*",
            "mm/page_counter.c",
            "mm/swap_cgroup.c",
            "include/linux/cgroup*.h",
            "include/linux/memcontrol.h",
        ],
        rows: &[
            "fork-exit",
            "thread-create",
            "mem-dontneed",
            "memcg-fault",
            "memcg-kmem",
        ],
    },
    KernelPart {
        name: "crypto",
        suite: "paths-crypto",
        paths: &[
            "crypto/",
            "lib/crypto/",
            "lib/siphash.c",
            "arch/x86/crypto/",
            "include/crypto/",
            "include/linux/crypto.h",
            "include/linux/siphash.h",
        ],
        // Of lib/crypto: no row enters crypto/ itself.
        rows: &[
            "fork-exec",
            "fork-vfork-exec",
            "thread-create",
            "tcp-connect",
            "bpf-load",
            "key-update",
        ],
    },
    KernelPart {
        name: "security",
        suite: "paths-security",
        paths: &[
            "security/",
            "include/keys/",
            "include/linux/key*.h",
            "include/linux/lsm*.h",
            "include/linux/security.h",
        ],
        rows: &[
            "signal",
            "fork-vfork-exec",
            "file-open",
            "landlock-open",
            "key-update",
            "uring-sock",
        ],
    },
    KernelPart {
        name: "timers",
        suite: "paths-timers",
        paths: &[
            "kernel/time/",
            "fs/timerfd.c",
            "include/linux/clocksource.h",
            "include/linux/hrtimer*.h",
            "include/linux/jiffies.h",
            "include/linux/ktime.h",
            "include/linux/timekeep*.h",
            "include/linux/timer*.h",
        ],
        rows: &[
            "thread-create",
            "file-read-4k",
            "tcp-connect",
            "tcp-rr",
            "tcp-stream",
        ],
    },
    KernelPart {
        name: "irq",
        suite: "paths-irq",
        paths: &[
            "kernel/irq/",
            "kernel/entry/",
            "kernel/irq_work.c",
            "kernel/softirq.c",
            "include/linux/entry-common.h",
            "include/linux/interrupt.h",
            "include/linux/irq*.h",
        ],
        rows: &["getppid", "tcp-rr", "udp-rr", "bpf-run", "netfilter-ct"],
    },
];

/// The suites of the parts: rows of `paths`, under its name, so that their results are shared.
static PART_SUITES: LazyLock<Vec<Arc<Suite>>> = LazyLock::new(|| {
    let suite_of = |part: &KernelPart| {
        let rows = PATHS.workloads.iter();
        Arc::new(Suite {
            name: PATHS.name,
            purpose: PATHS.purpose,
            workloads: rows
                .filter(|row| part.rows.contains(&&*row.name))
                .cloned()
                .collect(),
        })
    };
    KERNEL_PARTS.iter().map(suite_of).collect()
});

/// Returns the suite of a part of the kernel, by the suite's name.
pub(crate) fn part_suite(name: &str) -> Option<&'static Arc<Suite>> {
    let place = KERNEL_PARTS.iter().position(|part| part.suite == name)?;
    PART_SUITES.get(place)
}

impl KernelPart {
    /// Returns its budget if a tree has none: no row more than one percent worse.
    #[must_use]
    pub fn budget(&self) -> Budget {
        let suite = part_suite(self.suite).into_iter();
        let rows = suite.flat_map(|suite| &suite.workloads);
        Budget {
            name: self.name.to_owned(),
            paths: self.paths.iter().map(|path| (*path).to_owned()).collect(),
            rows: rows.map(|row| row.name.to_string()).collect(),
            limit: Limit::Percent(USUAL_LIMIT_PERCENT),
            limits: BTreeMap::new(),
            owners: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KERNEL_PARTS, part_suite};
    use crate::{PATHS, Steadiness};

    #[test]
    fn every_part_has_four_steady_rows() {
        for part in &KERNEL_PARTS {
            let suite = part_suite(part.suite).unwrap();
            assert_eq!(suite.workloads.len(), part.rows.len(), "{}", part.name);
            assert!(suite.workloads.len() >= 4, "{}", part.name);
            let steady = |row: &crate::Workload| row.steadiness == Steadiness::Steady;
            assert!(
                suite.workloads.iter().all(|row| steady(row)),
                "{}",
                part.name
            );
            assert_eq!(part.suite, format!("paths-{}", part.name));
            assert_eq!(suite.name, PATHS.name);
            assert_eq!(part.budget().rows.len(), part.rows.len());
        }
        assert!(part_suite("paths").is_none());
    }
}
