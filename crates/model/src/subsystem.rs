//! Which part of the kernel a workload is about: what the rows of a large table are grouped by.

use crate::{IO, MM, NET, SCHED};

/// Returns the subsystem that a workload of that name stresses most: that of its suite, or for the micro suite that of its
/// group. Of a name that nobody declared, the word that it begins with.
#[must_use]
pub fn subsystem_of(name: &str) -> &str {
    let suites = [MM, SCHED, NET, IO];
    if let Some(suite) = suites.iter().find(|suite| suite.workloads.iter().any(|workload| workload.name == name)) {
        return suite.name;
    }
    let group = name.split('-').next().unwrap_or(name);
    match group {
        "fault" | "mem" => "mm",
        "switch" | "pipe" | "futex" | "sem" | "mutex" => "sched",
        "file" => "io",
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
    fn every_workload_that_is_declared_has_one_of_five() {
        let found: BTreeSet<&str> = workloads().into_iter().map(|workload| subsystem_of(workload.name)).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["io", "mm", "net", "process", "sched"]);
        assert_eq!(subsystem_of("fault-anon"), "mm");
        assert_eq!(subsystem_of("video-decode"), "video");
        assert_eq!(subsystem_of(""), "");
    }
}
