//! Readers of MMTests' log files, one per test: they turn a file into values of rows.
//!
//! Names of files, lines and columns are those of gormanm/mmtests: `bin/lib/MMTests/Extract*.pm`
//! until it replaced them between 2025-12 and 2026-01, `shellpack_src/src/*/parse-results` since
//! then (read at 638401e07e70, 2026-06-24). Row names are those of its reports: metric and factors,
//! joined by hyphens. `crates/lab/results/golden/mmtests` has trees of both layouts and the values
//! that MMTests extracts from them.

use super::{Rows, lines};

/// A file of a test: its name without directories, its text, and the names of all readable files of
/// the test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Log<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) beside: &'a [&'a str],
    /// numactl's list of nodes, beside the tests; empty if there is none.
    pub(super) numactl: &'a str,
}

/// Adds the values of a file to rows.
pub(super) type Reader = fn(Log<'_>, &mut Rows);

/// Readers by the prefix of a test's name.
const READERS: &[(&str, Reader)] = &[
    ("kernbench", kernbench),
    ("hackbench", hackbench),
    ("pft", pft),
    ("aim9", aim9),
    ("stream", stream),
    ("vmr-stream", vmr_stream),
    ("netperf", netperf),
    ("tbench", dbench),
    ("dbench", dbench),
    ("sysbench-thread", sysbench_thread),
    ("sysbenchthread", sysbench_thread),
];

/// Returns the reader of a test, including `tbench4` and `hackbench-process-pipes`.
pub(super) fn reader(test: &str) -> Option<Reader> {
    READERS
        .iter()
        .chain(super::computed::READERS)
        .find(|(of, _)| {
            test.strip_prefix(of).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            })
        })
        .map(|(_, reader)| *reader)
}

/// Returns the parts between a prefix and a suffix, split at hyphens: `4`, `1` of
/// `kernbench-4-1.time`.
fn parts<'a>(name: &'a str, prefix: &str, suffix: &str) -> Option<Vec<&'a str>> {
    Some(
        name.strip_prefix(prefix)?
            .strip_suffix(suffix)?
            .split('-')
            .collect(),
    )
}

/// Returns these parts if there are exactly N.
fn exactly<'a, const N: usize>(name: &'a str, prefix: &str, suffix: &str) -> Option<[&'a str; N]> {
    parts(name, prefix, suffix)?.try_into().ok()
}

/// `time-JOBS-ITERATION`, and `kernbench-JOBS-ITERATION.time` until 2fb3e128dbe7 (2025-12-22): GNU
/// time, `1.2user 0.3system 0:01.50elapsed` or with spaces between.
fn kernbench(log: Log<'_>, rows: &mut Rows) {
    let run_name =
        exactly(log.name, "time-", "").or_else(|| exactly(log.name, "kernbench-", ".time"));
    let Some([jobs, _]) =
        run_name.filter(|run_name: &[&str; 2]| run_name.iter().all(|part| is_count(part)))
    else {
        return;
    };
    for line in lines(log.text).filter(|line| line.contains("elapsed")) {
        for (word, row) in [
            ("user", "User"),
            ("system", "System"),
            ("elapsed", "Elapsed"),
        ] {
            let Some((before, _)) = line.split_once(word) else {
                continue;
            };
            let value = before.split_whitespace().last().unwrap_or_default();
            match clock(value) {
                Some(seconds) => rows.put_number(&format!("{row}-{jobs}"), seconds),
                None => rows.put(&format!("{row}-{jobs}"), value, log.name),
            }
        }
    }
}

/// Parses elapsed time of GNU time: minutes and seconds, or hours before them.
fn clock(text: &str) -> Option<f64> {
    let (rest, seconds) = text.rsplit_once(':')?;
    let (hours, minutes) = rest.rsplit_once(':').unwrap_or(("0", rest));
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0 + super::number(seconds).ok()?)
}

/// `hackbench-GROUPS` with all iterations, and `hackbench-GROUPS-ITERATION` until e4283aded10d
/// (2026-04-17): `Total time: 0.176 [sec]` of perf bench, `Time: 0.176` of hackbench.
fn hackbench(log: Log<'_>, rows: &mut Rows) {
    let parts = parts(log.name, "hackbench-", "");
    let Some(groups) = parts
        .as_deref()
        .and_then(<[_]>::first)
        .filter(|groups| is_count(groups))
    else {
        return;
    };
    for line in lines(log.text) {
        let line = line.trim();
        if let Some(rest) = line
            .strip_prefix("Total time:")
            .or_else(|| line.strip_prefix("Time:"))
        {
            rows.put(&format!("time-{groups}"), first(rest), log.name);
        }
    }
}

/// `pft-CLIENTS.log`: lines of eight columns, the last two faults/cpu/s and faults/s; times may
/// have the suffix s.
fn pft(log: Log<'_>, rows: &mut Rows) {
    let Some([clients]) = exactly(log.name, "pft-", ".log") else {
        return;
    };
    for line in lines(log.text) {
        let line = line.replace('s', "");
        let columns: Vec<&str> = line.split_whitespace().collect();
        if columns.len() != 8 || columns[..3].iter().any(|column| !is_count(column)) {
            continue;
        }
        rows.put(&format!("faults/cpu-{clients}"), columns[6], log.name);
        rows.put(&format!("faults/sec-{clients}"), columns[7], log.name);
    }
}

/// `aim9-ITERATION`: the test's name, seconds, iterations, iterations/s, operations/s.
fn aim9(log: Log<'_>, rows: &mut Rows) {
    if !log.name.starts_with("aim9-") {
        return;
    }
    for line in lines(log.text) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let Some(at) = fields
            .iter()
            .take(2)
            .position(|word: &&str| word.ends_with("_test") || word.starts_with("disk_"))
        {
            rows.put(
                fields[at],
                fields.get(at + 4).copied().unwrap_or_default(),
                log.name,
            );
        }
    }
}

/// `benchlog-THREADS-_-ITERATION` with rows `Copy-THREADS`, or `Copy` if THREADS is `_`;
/// `stream-ITERATION.log` with rows `copy` until 3e1a4e98906d (2026-01-05). A line for each
/// operation: `Copy:` and its best rate.
fn stream(log: Log<'_>, rows: &mut Rows) {
    let threads = match exactly(log.name, "benchlog-", "") {
        Some(["_", "_", _]) => Some(String::new()),
        Some([threads, "_", _]) if is_count(threads) => Some(format!("-{threads}")),
        _ if log.name.starts_with("stream-") => None,
        _ => return,
    };
    for line in lines(log.text) {
        for (word, old) in [
            ("Copy", "copy"),
            ("Scale", "scale"),
            ("Add", "add"),
            ("Triad", "triad"),
        ] {
            let Some(rest) = line
                .strip_prefix(word)
                .and_then(|rest| rest.strip_prefix(':'))
            else {
                continue;
            };
            match &threads {
                Some(threads) => rows.put(&format!("{word}{threads}"), first(rest), log.name),
                None => rows.put(old, first(rest), log.name),
            }
        }
    }
}

/// `stream-OPERATION.instances`: bytes of the working set, and the rate.
fn vmr_stream(log: Log<'_>, rows: &mut Rows) {
    let Some(operation) = log
        .name
        .strip_prefix("stream-")
        .and_then(|name| name.strip_suffix(".instances"))
    else {
        return;
    };
    for line in lines(log.text) {
        let mut fields = line.split_whitespace();
        if let Some(bytes) = fields.next().filter(|bytes| is_count(bytes)) {
            rows.put(
                &format!("{operation}-{bytes}"),
                fields.next().unwrap_or_default(),
                log.name,
            );
        }
    }
}

/// `UDP_STREAM-64.1`: lines of numbers. The last number is the throughput; for UDP streams a line
/// of six columns is the sender's and one of four the receiver's. MMTests prints the sender's for
/// both since 3f17acba59f5 (2026-01-05), and stops at the first file with more than 10% loss
/// (`shellpack_src/src/netperf/extract-report.pl`).
fn netperf(log: Log<'_>, rows: &mut Rows) {
    let Some((protocol, size, _)) = log.name.split_once('-').and_then(|(protocol, rest)| {
        let (size, iteration) = rest.rsplit_once('.')?;
        Some((protocol, size, iteration))
            .filter(|_| is_count(size) && (iteration == "log" || is_count(iteration)))
    }) else {
        return;
    };
    let pretty = protocol.to_ascii_lowercase().replace('_', "");
    let udp = protocol == "UDP_STREAM";
    let mut sent = None;
    let mut received = None;
    for line in
        lines(log.text).filter(|line| !line.contains(|c: char| c.is_ascii_alphabetic() && c != 'e'))
    {
        let columns: Vec<&str> = line.split_whitespace().collect();
        match (udp, columns.len()) {
            (true, 6) | (false, 5..) => sent = columns.last().copied(),
            (true, 4) => received = columns.last().copied(),
            _ => {}
        }
    }
    for (way, value) in [("send", sent), ("recv", received)] {
        if let Some(value) = value {
            rows.put(&format!("{pretty}-{way}-{size}"), value, log.name);
        }
    }
}

/// dbench's output: the final throughput, or the last running mean; `completed in N ms` for each
/// pass through the load file; the mean latency of each operation.
///
/// `dbench-CLIENTS.log` or `tbench-CLIENTS.log` is the whole of it. `benchlog-PART-CLIENTS` (since
/// a2cf95722bac, 2026-01-01) are parts of it, as are `tbench-PART-CLIENTS.log` (from 9a88cbebb21c,
/// 2025-05-25, until then). Parts count only if there is no whole log.
fn dbench(log: Log<'_>, rows: &mut Rows) {
    let mut parts = log.name.strip_suffix(".log").unwrap_or(log.name).split('-');
    let (clients, part) = match (
        parts
            .next()
            .filter(|start: &&str| ["dbench", "tbench", "benchlog"].contains(start)),
        parts.next(),
        parts.next(),
        parts.next(),
    ) {
        (Some("dbench" | "tbench"), Some(clients), None, None) => (clients, None),
        (Some(_), Some(part @ ("loadfile" | "tput" | "op" | "execute")), Some(clients), None) => {
            (clients, Some(part))
        }
        _ => return,
    };
    if !is_count(clients) {
        return;
    }
    if part.is_some()
        && log.beside.iter().any(|name: &&str| {
            ["dbench", "tbench"]
                .iter()
                .any(|of| **name == format!("{of}-{clients}.log"))
        })
    {
        rows.pass_over();
        return;
    }
    let mut last = None;
    let mut is_table = part == Some("op");
    for line in lines(log.text) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            ["Throughput", rate, "MB/sec", ..] => last = Some(*rate),
            [_, _, rate, "MB/sec", "execute", ..] => last = Some(*rate),
            ["Operation", "Count", "AvgLat", ..] => is_table = true,
            [operation, _, mean, _] if is_table && !operation.starts_with('-') => {
                rows.put(&format!("op-{operation}-{clients}"), mean, log.name);
            }
            _ => {}
        }
        if let Some((_, rest)) = line.split_once("completed in ") {
            let value = first(rest);
            // A clock that wrapped: MMTests skipped these as well, until a2cf95722bac.
            if !value
                .parse::<f64>()
                .is_ok_and(|ms| ms > f64::from(1_u32 << 31))
            {
                rows.put(&format!("loadfile-{clients}"), value, log.name);
            }
        }
    }
    if let Some(rate) = last {
        rows.put(&format!("throughput-{clients}"), rate, log.name);
    }
}

/// `sysbench-raw-THREADS-ITERATION`: `95th percentile: 1.23`.
fn sysbench_thread(log: Log<'_>, rows: &mut Rows) {
    let parts = parts(log.name, "sysbench-raw-", "");
    let Some(threads) = parts
        .as_deref()
        .and_then(<[_]>::first)
        .filter(|threads| is_count(threads))
    else {
        return;
    };
    for line in lines(log.text) {
        if let Some((_, rest)) = line.split_once("95th percentile:") {
            rows.put(
                &format!("percentile95-{threads}"),
                first(rest).trim_end_matches("ms"),
                log.name,
            );
        }
    }
}

fn first(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

fn is_count(text: &str) -> bool {
    !text.is_empty() && text.len() <= 19 && text.bytes().all(|byte| byte.is_ascii_digit())
}
