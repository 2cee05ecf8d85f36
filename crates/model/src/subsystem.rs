//! Subsystems of the kernel, which group the rows of large tables.

use crate::selection::group_of_name;
use crate::{DISKS, IO, MM, NET, RECLAIM, RMAP, SCHED, Suite};

/// Returns the subsystem that a workload stresses most: that of its suite, or in the micro and the scale suite that of its
/// group. For undeclared names, the first word.
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
    ];
    let declares = |suite: &Suite| suite.workloads.iter().any(|workload| workload.name == name);
    if let Some((_, subsystem)) = suites.into_iter().find(|(suite, _)| declares(suite)) {
        return subsystem;
    }
    match group_of_name(name) {
        "fault" | "mem" | "mmap" => "mm",
        "switch" | "pipe" | "futex" | "sem" | "mutex" => "sched",
        "file" | "open" | "unlink" => "io",
        "unix" | "tcp" | "udp" => "net",
        "getppid" | "signal" | "event" | "fork" | "thread" => "process",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::subsystem_of;
    use crate::workloads;

    #[test]
    fn declared_workloads_have_one_of_six_subsystems() {
        let found: BTreeSet<&str> = workloads().into_iter().map(|workload| subsystem_of(&workload.name)).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["io", "mm", "net", "process", "reclaim", "sched"]);
        assert_eq!(subsystem_of("fault-anon"), "mm");
        assert_eq!(subsystem_of("video-decode"), "video");
        assert_eq!(subsystem_of(""), "");
    }
}
