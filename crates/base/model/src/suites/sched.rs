//! The sched suite: many processes and threads, after hackbench, SDET and kernel builds.

use std::sync::{Arc, LazyLock};

use super::{Functions, Texts, workload};
use crate::{Suite, Workload};

const HACKBENCH: &str = "hackbench. Kept: groups in which each sender writes 100 bytes to each receiver, round after \
    round. Differs: 2 groups of 5 and 5 tasks instead of 10 groups of 20 and 20, to fit the guest; 200 rounds instead of 100, so \
    that the first ones weigh little; the tasks are there before the time is taken; cost per round instead of seconds";

fn hackbench(name: &'static str, stresses: &'static str, exercises: Functions) -> Workload {
    let operation = "a round: 10 senders write to 5 receivers each, 50 messages of 100 bytes";
    workload(
        name,
        Texts {
            stresses,
            operation,
            source: HACKBENCH,
        },
        200,
        exercises,
    )
    .on_all_processors()
}

const SDET: &str = "SDET (SPEC SDM 057.sdet, 1 to 64 concurrent scripts). Kept: scripts of small commands, each a \
    process, so many scripts at a time. Differs: the commands are the agent's own: run a program, copy, list, make and \
    remove files, two commands with a pipe between; cost per script instead of scripts per hour";

fn sdet(name: &'static str, stresses: &'static str) -> Workload {
    let operation = "a script of 8 commands";
    workload(
        name,
        Texts {
            stresses,
            operation,
            source: SDET,
        },
        16,
        &[&["kernel_clone"], &["begin_new_exec"]],
    )
    .on_all_processors()
}

const BUILD: &str = "kernbench and multibuild (builds of a kernel, so many jobs at a time). No kernbench: there is no \
    compiler. Kept: what the kernel does for each compilation: fork, exec, search and read headers, allocate, write \
    an object. Differs: the compiler's own computing, the same on every kernel, is left out; everything is in memory";

fn build(name: &'static str, stresses: &'static str) -> Workload {
    let operation =
        "a compilation: 3 processes, 32 headers found and read, 1 MiB touched, 32 KiB written";
    let functions: Functions = &[
        &["kernel_clone"],
        &["begin_new_exec"],
        &["filemap_read", "shmem_file_read_iter"],
    ];
    workload(
        name,
        Texts {
            stresses,
            operation,
            source: BUILD,
        },
        12,
        functions,
    )
    .on_all_processors()
}

const PIPES: Functions = &[&["pipe_write"], &["pipe_read"]];
const SOCKETS: Functions = &[&["unix_stream_sendmsg"], &["unix_stream_recvmsg"]];

/// The scheduler under the loads of published benchmarks.
pub static SCHED: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    Suite::new(
        "sched",
        "many processes and threads, after hackbench, SDET and kernel builds",
        [
            hackbench(
                "hackbench-pipe",
                "waking processes, many of them, by pipes",
                PIPES,
            ),
            hackbench(
                "hackbench-sock",
                "waking processes, many of them, by unix sockets",
                SOCKETS,
            ),
            hackbench(
                "hackbench-thr-pipe",
                "waking threads, many of them, by pipes",
                PIPES,
            ),
            hackbench(
                "hackbench-thr-sock",
                "waking threads, many of them, by unix sockets",
                SOCKETS,
            ),
            sdet("sdet-like-1", "small commands, one script at a time"),
            sdet("sdet-like-4", "small commands, four scripts at a time"),
            sdet("sdet-like-16", "small commands, 16 scripts at a time"),
            build(
                "build-like-1",
                "what a compiler asks of the kernel, one job at a time",
            ),
            build(
                "build-like-2",
                "what a compiler asks of the kernel, two jobs at a time",
            ),
            build(
                "build-like-12",
                "what a compiler asks of the kernel, 12 jobs at a time",
            ),
        ],
    )
});
