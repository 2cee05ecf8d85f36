//! What Marvin knows of single benchmarks beside what the tree says: parameters with which they end
//! soon on one processor, and how long those run that measure in threads.
//!
//! A benchmark that is not listed runs with its defaults.

/// A benchmark that Marvin knows.
pub(super) struct Known {
    /// The module.
    pub(super) module: &'static str,
    /// Module parameters, as for modprobe.
    pub(super) parameters: &'static [&'static str],
    /// How long it is left loaded (s of the guest).
    pub(super) seconds: u32,
}

/// The defaults of these take minutes, or more than one processor.
const KNOWN: [Known; 8] = [
    // lib/test_vmalloc.c: a million loops in as many threads as there are processors.
    Known {
        module: "test_vmalloc",
        parameters: &["nr_threads=1", "test_loop_count=1000"],
        seconds: 0,
    },
    // kernel/rcu/rcuscale.c: waits 10 s of holdoff, then measures until `nr_writers` are done.
    Known {
        module: "rcuscale",
        parameters: &["holdoff=0", "nreaders=1", "nwriters=1"],
        seconds: 5,
    },
    // kernel/rcu/refscale.c: 30 runs of 10000 loops.
    Known {
        module: "refscale",
        parameters: &["holdoff=0", "nreaders=1", "nruns=5", "loops=1000"],
        seconds: 5,
    },
    // kernel/locking/locktorture.c: prints its statistics each `stat_interval` and at the end.
    Known {
        module: "locktorture",
        parameters: &["nwriters_stress=1", "nreaders_stress=0", "stat_interval=2"],
        seconds: 5,
    },
    // kernel/trace/ring_buffer_benchmark.c: ten seconds of writing, then ten of sleep.
    Known {
        module: "ring_buffer_benchmark",
        parameters: &["disable_reader=1"],
        seconds: 5,
    },
    // lib/rbtree_test.c and lib/interval_tree_test.c: 100000 loops.
    Known {
        module: "rbtree_test",
        parameters: &["perf_loops=1000", "check_loops=1"],
        seconds: 0,
    },
    Known {
        module: "interval_tree_test",
        parameters: &["perf_loops=1000", "search_loops=100"],
        seconds: 0,
    },
    // lib/test_rhashtable.c: as many threads as `tcount`, 50000 entries each.
    Known {
        module: "test_rhashtable",
        parameters: &["runs=1", "tcount=0", "parm_entries=10000"],
        seconds: 0,
    },
];

/// Benchmarks that can only be built in and yet do not run at boot, and why Marvin cannot run them.
const STARTED_OTHERWISE: [(&str, &str); 1] = [
    // kernel/trace/trace_benchmark.c: a thread measures while its tracepoint is on.
    (
        "trace_benchmark",
        "can only be built in, and measures while its tracepoint is on: with --config default+TRACEPOINT_BENCHMARK=y, run a \
         script of your own that writes 1 to /sys/kernel/tracing/events/benchmark/enable",
    ),
];

/// Returns why Marvin cannot run a benchmark that can only be built in.
pub(super) fn reason_of_built_in(module: &str) -> &'static str {
    STARTED_OTHERWISE
        .iter()
        .find(|(name, _)| *name == module)
        .map_or("can only be built in: it runs once, at boot", |(_, why)| {
            why
        })
}

/// How long a module runs that measures in threads, if Marvin does not know it (s of the guest).
const THREADS_S: u32 = 5;

/// Returns the parameters of a module, and how long it is left loaded.
pub(super) fn parameters_of(module: &str, has_threads: bool) -> (Vec<String>, u32) {
    match KNOWN.iter().find(|known| known.module == module) {
        Some(known) => (
            known
                .parameters
                .iter()
                .map(|&text| text.to_owned())
                .collect(),
            known.seconds,
        ),
        None => (Vec::new(), if has_threads { THREADS_S } else { 0 }),
    }
}

/// Arguments with which benchmarks of perf end soon in an emulated machine; the defaults are made for
/// processors of silicon: ten million system calls, ten seconds of futexes (tools/perf/bench).
const PERF_ARGUMENTS: [(&str, &str, &str); 12] = [
    ("syscall", "basic", "--loop=200000"),
    ("syscall", "getpgid", "--loop=200000"),
    ("syscall", "fork", "--loop=200"),
    ("syscall", "execve", "--loop=100"),
    ("sched", "pipe", "--loop=20000"),
    ("sched", "seccomp-notify", "--loop=10000"),
    ("sched", "messaging", "--nr_loops=10"),
    ("futex", "hash", "--runtime=1"),
    ("futex", "lock-pi", "--runtime=1"),
    ("epoll", "wait", "--runtime=1"),
    ("epoll", "ctl", "--runtime=1"),
    ("mem", "find_bit", "--inner-iterations=1000"),
];

/// Returns the arguments of a benchmark of perf, behind its name.
pub(super) fn perf_arguments(collection: &str, name: &str) -> Vec<String> {
    PERF_ARGUMENTS
        .iter()
        .filter(|(of, known, _)| *of == collection && *known == name)
        .map(|(_, _, argument)| (*argument).to_owned())
        .collect()
}
