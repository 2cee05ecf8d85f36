//! Subsystems of the kernel, which group the rows of large tables.

use crate::selection::group_of_name;
use crate::{DISKS, FS, IO, MM, NET, RECLAIM, RMAP, SCHED};

/// Returns the subsystem that a workload stresses most: that of its suite, or in the micro and the
/// scale suite that of its group. For undeclared names, the first word.
#[must_use]
pub fn subsystem_of(name: &str) -> &str {
    let suites = [
        (&MM, "mm"),
        (&RMAP, "mm"),
        (&RECLAIM, "reclaim"),
        (&SCHED, "sched"),
        (&NET, "net"),
        (&IO, "io"),
        (&DISKS, "io"),
        (&FS, "io"),
    ];
    let declaring = suites
        .into_iter()
        .find(|(suite, _)| suite.workloads.iter().any(|workload| workload.name == name));
    if let Some((_, subsystem)) = declaring {
        return subsystem;
    }
    let group = match name.strip_prefix("share-") {
        None => group_of_name(name),
        // What is shared says more than that it is.
        Some(what) => what.split('-').next().unwrap_or_default(),
    };
    match group {
        "fault" | "mem" | "mmap" | "mprotect" | "brk" | "memcg" | "map" | "tlb" => "mm",
        "switch" | "pipe" | "futex" | "sem" | "mutex" | "condvar" => "sched",
        "file" | "open" | "unlink" | "create" | "rename" | "pread" | "pwrite" | "cache" | "dup"
        | "uring" | "ext4" | "xfs" | "btrfs" | "aio" | "loop" => "io",
        "unix" | "tcp" | "udp" | "accept" | "connect" | "netfilter" | "sock" => "net",
        "getppid" | "signal" | "event" | "eventfd" | "epoll" | "fork" | "thread" | "exec"
        | "poll" | "call" | "timer" | "mqueue" => "process",
        "no" | "counter" | "false" => "process",
        "landlock" | "key" | "alg" => "security",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::subsystem_of;
    use crate::workloads;

    #[test]
    fn declared_workloads_have_known_subsystems() {
        let found: BTreeSet<&str> = workloads()
            .into_iter()
            .map(|workload| subsystem_of(&workload.name))
            .collect();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [
                "bpf", "io", "mm", "net", "process", "reclaim", "sched", "security"
            ]
        );
        assert_eq!(subsystem_of("fault-anon"), "mm");
        assert_eq!(subsystem_of("video-decode"), "video");
        assert_eq!(subsystem_of(""), "");
    }
}
