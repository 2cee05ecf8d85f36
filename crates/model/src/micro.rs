//! The micro suite: what each path of the kernel costs, one workload a path.
//!
//! The programs are in the agent (`crates/agent/src/workloads/`), under the same names; a test holds the two together.
//! The functions in `exercises` are checked in a real kernel with kprobes, by a test as well.

use crate::{Metric, Suite, Workload};

const fn workload(
    name: &'static str,
    texts: (&'static str, &'static str),
    operations: u64,
    exercises: &'static [&'static [&'static str]],
) -> Workload {
    Workload {
        name,
        stresses: texts.0,
        operation: texts.1,
        operations,
        iterations: 16,
        warm_up: 2,
        exercises,
        metric: Metric::COST,
    }
}

/// The micro suite.
pub const MICRO: Suite = Suite {
    name: "micro",
    purpose: "what single paths of the kernel cost: system calls, processes, memory, files, sockets, locks",
    workloads: &[
        workload(
            "getppid",
            ("system call entry and exit", "one getppid(2)"),
            20_000,
            &[&["__x64_sys_getppid"]],
        ),
        workload(
            "pipe-pingpong",
            (
                "pipes and waking another process",
                "one byte there and back between two processes",
            ),
            600,
            &[&["pipe_write"], &["pipe_read"]],
        ),
    ],
};
