//! Unit and direction of the metrics of other suites, whose results can be imported.
//!
//! Results are stored under the names that their suite uses, with what was known of their unit and
//! direction. Marvin completes that on each use, so that a later version knows more about stored
//! results. It guesses nothing: a metric that is not listed has no direction, and is rated only if
//! the user gives one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Direction::{self, HigherIsBetter, LowerIsBetter};
use crate::{Declared, MICRO, Run, Workload, WorkloadResult};

/// The suite of results imported from MMTests. Workloads are called `TEST/ROW`, as
/// `kernbench/Elapsed-4`.
pub const MMTESTS: &str = "mmtests";

/// The suite of results imported from LKP-tests. Workloads are called `TEST/PARAMETERS/STAT`.
pub const LKP: &str = "lkp";

/// The suite of results imported from files of other programs. Workloads are called `FORMAT/ROW`.
pub const FILES: &str = "files";

/// All suites of imported results.
pub const IMPORTED_SUITES: [&str; 3] = [MMTESTS, LKP, FILES];

/// Default margin of imported results, in percent: the usual difference between boots of one kernel
/// on real machines.
pub const IMPORTED_MARGIN_PERCENT: f64 = 2.0;

const UNKNOWN: Declared = Declared {
    unit: Cow::Borrowed(""),
    direction: None,
    margin_percent: IMPORTED_MARGIN_PERCENT,
};

/// What rows of a test measure.
struct Rule {
    /// The test's name, or how it begins.
    test: &'static str,
    /// How the row's name begins and ends.
    start: &'static str,
    end: &'static str,
    unit: &'static str,
    direction: Option<Direction>,
}

const fn rule(
    test: &'static str,
    start: &'static str,
    end: &'static str,
    unit: &'static str,
    direction: Option<Direction>,
) -> Rule {
    Rule {
        test,
        start,
        end,
        unit,
        direction,
    }
}

const LOWER: Option<Direction> = Some(LowerIsBetter);
const HIGHER: Option<Direction> = Some(HigherIsBetter);

/// The known tests of MMTests, from its `bin/lib/MMTests/Extract*.pm` and
/// `shellpack_src/src/*/parse-results`. The first matching rule applies.
const OF_MMTESTS: &[Rule] = &[
    // The duration of a whole test, which is meaningless for tests of a fixed duration.
    rule("", "duration-", "", "s", None),
    rule("kernbench", "", "", "s", LOWER),
    rule("hackbench", "time-", "", "s", LOWER),
    rule("pft", "faults/cpu-", "", "faults/s", HIGHER),
    rule("pft", "faults/sec-", "", "faults/s", HIGHER),
    rule("aim9", "", "_test", "ops/s", HIGHER),
    rule("aim9", "disk_", "", "KB/s", HIGHER),
    rule("stream", "", "", "MB/s", HIGHER),
    rule("vmr-stream", "", "", "MB/s", HIGHER),
    rule("netperf", "tcprr-", "", "transactions/s", HIGHER),
    rule("netperf", "udprr-", "", "transactions/s", HIGHER),
    rule("netperf", "", "", "Mbit/s", HIGHER),
    rule("tbench", "throughput-", "", "MB/s", HIGHER),
    rule("dbench", "throughput-", "", "MB/s", HIGHER),
    rule("tbench", "loadfile-", "", "ms", LOWER),
    rule("dbench", "loadfile-", "", "ms", LOWER),
    rule("tbench", "op-", "", "ms", LOWER),
    rule("dbench", "op-", "", "ms", LOWER),
    // sysbench 1.0 prints latencies in ms; ExtractSysbenchthread.pm calls them microseconds.
    rule("sysbench-thread", "percentile95-", "", "ms", LOWER),
    rule("sysbenchthread", "percentile95-", "", "ms", LOWER),
    rule("ltp", "", "", "failures", LOWER),
    rule("pgbench", "txn-", "", "transactions/s", HIGHER),
    rule("rtmigration", "task-", "", "us", LOWER),
    rule("saladfork", "local_v_total", "", "", None),
    rule("saladfork", "", "", "us", LOWER),
    rule("schbench", "RPS-", "", "requests/s", HIGHER),
    rule("schbench", "", "", "us", LOWER),
    rule("stutterp", "mmap-", "", "us", LOWER),
    rule("sysjitter", "int_n-", "", "interrupts", LOWER),
    rule("sysjitter", "int_n_per_sec", "", "interrupts/s", LOWER),
    rule("sysjitter", "int_total_%", "", "%", LOWER),
    rule("sysjitter", "int_", "", "ns", LOWER),
    rule("unixbenchd", "", "", "ops", HIGHER),
    rule("xfstests", "", "", "failures", LOWER),
];

/// Stats of LKP-tests: the entries of its `etc/index-perf-all.yaml` and
/// `etc/index-latency-all.yaml` whose name or program confirms the direction. The Phoronix entries
/// are left out: some contradict themselves (`milliseconds: 1`); the unit at the end of a Phoronix
/// row says its direction.
const OF_LKP: &[Rule] = &[
    rule("aim7", "jobs-per-min", "", "jobs/min", HIGHER),
    rule("aim9", "", ".ops_per_sec", "ops/s", HIGHER),
    rule(
        "apachebench",
        "requests_per_second",
        "",
        "requests/s",
        HIGHER,
    ),
    rule("autonuma-benchmark", "", ".seconds", "s", LOWER),
    rule("blogbench", "", "_score", "score", HIGHER),
    rule("coremark", "iterations_per_sec", "", "iterations/s", HIGHER),
    rule("dbench", "throughput", "", "MB/s", HIGHER),
    rule("dbench", "max_latency", "", "ms", LOWER),
    rule("fio", "", "_bw_MBps", "MB/s", HIGHER),
    rule("fio", "", "_iops", "IO/s", HIGHER),
    rule("fsmark", "files_per_sec", "", "files/s", HIGHER),
    rule("fsmark", "app_overhead", "", "us", LOWER),
    rule("hackbench", "throughput", "", "messages/s", HIGHER),
    rule("iperf", "", ".bps", "bit/s", HIGHER),
    rule("kbuild", "", "_per_iteration", "s", LOWER),
    rule("kernbench", "elapsed_time", "", "s", LOWER),
    rule("netperf", "Throughput", "_Mbps", "Mbit/s", HIGHER),
    rule("netperf", "Throughput_tps", "", "transactions/s", HIGHER),
    rule("perf-bench-futex", "ops/s", "", "ops/s", HIGHER),
    rule("perf-bench-sched-pipe", "ops_per_sec", "", "ops/s", HIGHER),
    rule("pft", "faults_per_sec_per_cpu", "", "faults/s", HIGHER),
    rule("pgbench", "tps", "", "transactions/s", HIGHER),
    rule("pgbench", "latency_ms", "", "ms", LOWER),
    rule("reaim", "jobs_per_min", "", "jobs/min", HIGHER),
    rule("redis", "", "_throughput_rps", "requests/s", HIGHER),
    rule("schbench", "", "_us", "us", LOWER),
    rule("stream", "", "_bandwidth_MBps", "MB/s", HIGHER),
    rule("stress-ng", "", "_per_sec", "ops/s", HIGHER),
    rule("sysbench-fileio", "", "_operations/s", "ops/s", HIGHER),
    rule("tbench", "throughput_MB/s", "", "MB/s", HIGHER),
    rule("tbench", "max_latency", "", "ms", LOWER),
    // Rows are called after the program and the unit.
    rule("phoronix-test-suite", "", "/s", "", HIGHER),
    rule("phoronix-test-suite", "", "_per_second", "", HIGHER),
    rule("phoronix-test-suite", "", ".mips", "MIPS", HIGHER),
    rule("phoronix-test-suite", "", ".mflops", "Mflops", HIGHER),
    rule("phoronix-test-suite", "", ".seconds", "s", LOWER),
    rule("phoronix-test-suite", "", ".milliseconds", "ms", LOWER),
    rule("phoronix-test-suite", "", ".ms", "ms", LOWER),
    rule("phoronix-test-suite", "", ".microseconds", "us", LOWER),
    rule("unixbench", "score", "", "score", HIGHER),
    rule("unixbench", "throughput", "", "ops/s", HIGHER),
    rule("vm-scalability", "median", "", "KB/s", HIGHER),
    rule("vm-scalability", "throughput", "", "KB/s", HIGHER),
    rule("will-it-scale", "", "_ops", "ops", HIGHER),
    rule("will-it-scale", "scalability", "", "", HIGHER),
];

/// Returns the declaration of an imported workload.
#[must_use]
pub fn imported_metric(suite: &str, workload: &str) -> Declared {
    let rules = match suite {
        MMTESTS => OF_MMTESTS,
        LKP => OF_LKP,
        _ => return UNKNOWN,
    };
    let Some((test, rest)) = workload.split_once('/') else {
        return UNKNOWN;
    };
    // Parameters of LKP contain no slash, but its stats do: `ops/s`. Rows of MMTests have no
    // parameters.
    let row = if suite == LKP {
        rest.split_once('/').map_or(rest, |(_, stat)| stat)
    } else {
        rest
    };
    rules
        .iter()
        .find(|rule| {
            is_test(test, rule.test) && row.starts_with(rule.start) && row.ends_with(rule.end)
        })
        .map_or(UNKNOWN, |rule| Declared {
            unit: Cow::Borrowed(rule.unit),
            direction: rule.direction,
            margin_percent: IMPORTED_MARGIN_PERCENT,
        })
}

/// Returns the declaration that is stored with an imported result, completed by what is known of
/// its name now.
#[must_use]
pub fn imported_declaration(suite: &str, result: &WorkloadResult) -> Declared {
    let known = imported_metric(suite, &result.workload);
    match &result.declared {
        Some(then) => then.clone().or(known),
        None => known,
    }
}

/// Returns the declarations of all rows of imported runs by name; what one run leaves open, another
/// one completes.
#[must_use]
pub fn imported_declarations<'a>(
    runs: impl Iterator<Item = &'a Run>,
) -> BTreeMap<&'a str, Declared> {
    let mut found: BTreeMap<&str, Declared> = BTreeMap::new();
    for run in runs {
        for result in &run.results {
            let declared = imported_declaration(&run.suite, result);
            let known = match found.remove(result.workload.as_str()) {
                Some(known) => known.or(declared),
                None => declared,
            };
            found.insert(&result.workload, known);
        }
    }
    found
}

/// Returns a row of another suite as a workload; `None` if its direction is unknown.
#[must_use]
pub fn imported_workload(name: &str, declared: &Declared) -> Option<Arc<Workload>> {
    Some(Arc::new(Workload {
        name: Cow::Owned(name.to_owned()),
        stresses: Cow::Borrowed("as its suite says"),
        operation: Cow::Borrowed("a value of its suite"),
        exercises: &[],
        metric: declared.metric()?,
        source: Cow::Borrowed(""),
        ..(*MICRO.workloads[0]).clone()
    }))
}

/// Returns whether a test is `of` or a variant of it, such as `hackbench-process-pipes` or
/// `tbench4`.
fn is_test(test: &str, of: &str) -> bool {
    let variant = |c: char| c == '-' || c.is_ascii_digit();
    test.strip_prefix(of)
        .is_some_and(|rest| of.is_empty() || rest.is_empty() || rest.starts_with(variant))
}

#[cfg(test)]
mod tests {
    use super::{Declared, IMPORTED_MARGIN_PERCENT, LKP, MMTESTS, UNKNOWN, imported_metric};
    use crate::Direction::{HigherIsBetter, LowerIsBetter};

    #[test]
    fn names_tell_unit_and_direction() {
        for (suite, workload, unit, direction) in [
            (MMTESTS, "kernbench/Elapsed-4", "s", Some(LowerIsBetter)),
            (
                MMTESTS,
                "hackbench-process-pipes/time-4",
                "s",
                Some(LowerIsBetter),
            ),
            (
                MMTESTS,
                "tbench4/throughput-8",
                "MB/s",
                Some(HigherIsBetter),
            ),
            (
                MMTESTS,
                "netperf-ipv4-udp/udpstream-recv-64",
                "Mbit/s",
                Some(HigherIsBetter),
            ),
            (
                MMTESTS,
                "netperf-ipv4-tcp-rr/tcprr-send-1",
                "transactions/s",
                Some(HigherIsBetter),
            ),
            (MMTESTS, "kernbench/duration-elapsed", "s", None),
            (
                LKP,
                "will-it-scale/performance-process-100%-brk2/per_process_ops",
                "ops",
                Some(HigherIsBetter),
            ),
            (
                LKP,
                "perf-bench-futex/300s-hash/ops/s",
                "ops/s",
                Some(HigherIsBetter),
            ),
        ] {
            let expected = Declared {
                unit: unit.into(),
                direction,
                margin_percent: IMPORTED_MARGIN_PERCENT,
            };
            assert_eq!(imported_metric(suite, workload), expected, "{workload}");
        }
    }

    #[test]
    fn unlisted_subsystem_is_not_guessed() {
        for (suite, workload) in [
            (MMTESTS, "usemem/elapsed-4"),
            (MMTESTS, "streamer/copy"),
            (LKP, "ftq/x/max"),
            ("micro", "stream/copy"),
            (LKP, ""),
        ] {
            assert_eq!(imported_metric(suite, workload), UNKNOWN, "{workload}");
        }
    }
}
