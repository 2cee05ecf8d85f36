//! Readers of tests of MMTests whose rows no manifest can describe: values are computed from several
//! lines, or named by other files. Layouts are those of `shellpack_src/src/*` of gormanm/mmtests at
//! 638401e07e70; `golden/mmtests/formats` has a log of each.

use std::collections::BTreeMap;

use super::readers::{Log, Reader};
use super::{Rows, VALUES_MAX, lines};

/// Readers by the prefix of a test's name.
pub(super) const READERS: &[(&str, Reader)] = &[
    ("ltp", ltp),
    ("pgbench", pgbench),
    ("rtmigration", rtmigration),
    ("saladfork", saladfork),
    ("schbench", schbench),
    ("stutterp", stutterp),
    ("sysjitter", sysjitter),
    ("unixbenchd", unixbenchd),
    ("xfstests", xfstests),
];

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// `runltp-COLLECTION`: `tag=NAME … exit=exited stat=0`, a status of 32 is that of a test that does
/// not fit. Where there is none, `benchlog-COLLECTION`: the sum of all counts below `Summary:` but
/// those of passed, skipped and broken tests.
fn ltp(log: Log<'_>, rows: &mut Rows) {
    if let Some(collection) = log.name.strip_prefix("runltp-") {
        for line in lines(log.text).filter(|line| line.starts_with("tag=")) {
            let cells = words(line);
            let (Some(tag), Some(stat)) = (cells.first(), cells.get(4)) else {
                continue;
            };
            let tag = tag.trim_start_matches("tag=");
            let stat = stat.trim_start_matches("stat=");
            let is_unfit = cells[3] == "exit=exited" && stat == "32";
            let row = format!("{collection}-{tag}");
            rows.put(&row, if is_unfit { "0" } else { stat }, log.name);
        }
        return;
    }
    let Some(collection) = log.name.strip_prefix("benchlog-") else {
        return;
    };
    let other = format!("runltp-{collection}");
    if log.beside.contains(&other.as_str()) {
        rows.pass_over();
        return;
    }
    let mut below = lines(log.text).skip_while(|line| !line.starts_with("Summary:"));
    if below.next().is_none() {
        return;
    }
    let is_counted = |line: &&str| {
        !["passed", "skipped", "broken"]
            .iter()
            .any(|of| line.starts_with(of))
    };
    let counts = below.filter(is_counted).filter_map(|line| {
        let count = line.split_whitespace().nth(1)?;
        count.parse::<f64>().ok().filter(|count| *count >= 0.0)
    });
    rows.put_number(collection, counts.sum());
}

/// `pgbench-transactions-CLIENTS.log`: a line a second, its time and number of transactions. The
/// rate of each batch of four lines, from the eighth line and the second batch on.
fn pgbench(log: Log<'_>, rows: &mut Rows) {
    const BATCH: usize = 4;
    let Some(clients) = log
        .name
        .strip_prefix("pgbench-transactions-")
        .and_then(|name| name.strip_suffix(".log"))
    else {
        return;
    };
    let numbers = lines(log.text).filter_map(|line| {
        let cells = words(line);
        let number = |at: usize| cells.get(at)?.parse::<f64>().ok().filter(|n| n.is_finite());
        Some((number(0)?, number(1)?))
    });
    let (mut start, mut sum, mut batches) = (None, 0.0, 0);
    for (at, (time, transactions)) in numbers.enumerate() {
        let begin = *start.get_or_insert(time);
        if at + 1 < 2 * BATCH {
            continue;
        }
        sum += transactions;
        if (at + 2 - 2 * BATCH).is_multiple_of(BATCH) {
            if batches > 0 && time > begin {
                rows.put_number(&format!("txn-{clients}"), sum / (time - begin));
            }
            batches += 1;
            start = Some(time);
            sum = 0.0;
        }
    }
}

/// `rtmigration.log`: a table of iterations and tasks below `Iter:`; priorities of the tasks come
/// behind it.
fn rtmigration(log: Log<'_>, rows: &mut Rows) {
    if log.name != "rtmigration.log" {
        return;
    }
    let mut table: Vec<Vec<&str>> = Vec::new();
    let mut tasks = None;
    let mut priorities: BTreeMap<usize, &str> = BTreeMap::new();
    for line in lines(log.text) {
        let cells = words(line);
        if line.starts_with("Iter:") {
            tasks = Some(cells.len() - 1);
        } else if line.starts_with("Parent pid:") {
            break;
        } else if tasks.is_some() && cells.first().is_some_and(|cell| is_numbered(cell)) {
            table.push(cells[1..].to_vec());
        }
    }
    for line in lines(log.text) {
        let priority = line.strip_prefix(" Task ").and_then(|rest| {
            let (task, rest) = rest.split_once(" (prio ")?;
            Some((task.parse().ok()?, rest.split_once(')')?.0))
        });
        priorities.extend(priority);
    }
    for cells in table {
        for (task, cell) in cells.iter().take(tasks.unwrap_or(0)).enumerate() {
            let priority = priorities.get(&task).copied().unwrap_or_default();
            rows.put(&format!("task-{task}-p{priority}"), cell, log.name);
        }
    }
}

fn is_numbered(cell: &str) -> bool {
    cell.strip_suffix(':')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// `saladfork-0.log`: processor of the parent, processor of the child, latency. numactl's list of
/// the processors of each node says whether the fork was local.
fn saladfork(log: Log<'_>, rows: &mut Rows) {
    if log.name != "saladfork-0.log" {
        return;
    }
    let mut nodes: BTreeMap<u32, &str> = BTreeMap::new();
    for line in lines(log.numactl) {
        let Some((node, cpus)) = line
            .strip_prefix("node ")
            .and_then(|rest| rest.split_once(" cpus: "))
        else {
            continue;
        };
        let cpus = cpus.split_whitespace().filter_map(|cpu| cpu.parse().ok());
        nodes.extend(cpus.map(|cpu| (cpu, node)));
    }
    let (mut local, mut all) = (0.0, 0.0);
    for line in lines(log.text) {
        let cells = words(line);
        let [parent, child, latency] = cells[..] else {
            continue;
        };
        let (Ok(parent), Ok(child)) = (parent.parse::<u32>(), child.parse::<u32>()) else {
            continue;
        };
        let is_local = nodes.get(&parent) == nodes.get(&child);
        all += 1.0;
        local += if is_local { 1.0 } else { 0.0 };
        let row = if is_local { "local" } else { "remote" };
        rows.put(row, latency, log.name);
    }
    if all > 0.0 {
        rows.put_number("local_v_total", local / all);
    }
}

/// `schbench-WORKERS.log`: reports with percentiles of wakeups, requests and requests a second. The
/// last report, which sums up, has no line `current rps` behind it and is left out.
fn schbench(log: Log<'_>, rows: &mut Rows) {
    const PERCENTILES: [&str; 5] = ["20.0th:", "50.0th:", "90.0th:", "99.0th:", "99.9th:"];
    let Some(workers) = log
        .name
        .strip_prefix("schbench-")
        .and_then(|name| name.strip_suffix(".log"))
    else {
        return;
    };
    let mut metric = "";
    let mut report: Vec<(String, &str)> = Vec::new();
    for line in lines(log.text) {
        let cells = words(line);
        if line.contains("percentile") {
            metric = cells.first().copied().unwrap_or_default();
        }
        if line.contains("current rps") {
            for (row, value) in report.drain(..) {
                rows.put(&row, value, log.name);
            }
        }
        let value = match cells[..] {
            ["*", percentile, value, ..] | [percentile, value, ..] => Some((percentile, value)),
            _ => None,
        };
        if let Some((percentile, value)) = value
            && PERCENTILES.contains(&percentile)
        {
            let percentile = percentile.trim_end_matches(':');
            report.push((format!("{metric}-{percentile}-{workers}"), value));
        }
    }
}

/// `mmap-latency-WORKERS.log`: how often, and the latency in thousandths.
fn stutterp(log: Log<'_>, rows: &mut Rows) {
    let Some(workers) = log
        .name
        .strip_prefix("mmap-latency-")
        .and_then(|name| name.strip_suffix(".log"))
    else {
        return;
    };
    let row = format!("mmap-{workers}");
    for line in lines(log.text) {
        if rows.beyond > 0 {
            return;
        }
        let cells = words(line);
        let [count, latency] = cells[..] else {
            continue;
        };
        let (Ok(count), Ok(latency)) = (count.parse::<usize>(), latency.parse::<u32>()) else {
            rows.put_fault(&row, format!("{}: no numbers", log.name));
            continue;
        };
        // More than a row has is counted as beyond the limit, once.
        for _ in 0..count.min(VALUES_MAX + 1) {
            rows.put_number(&row, f64::from(latency / 1000));
        }
    }
}

/// `sysjitter.log`: a column for each processor of the line `core_i:`, a line for each metric.
fn sysjitter(log: Log<'_>, rows: &mut Rows) {
    if log.name != "sysjitter.log" {
        return;
    }
    let mut cores: Vec<&str> = Vec::new();
    for line in lines(log.text) {
        let Some((name, values)) = line.split_once(':') else {
            continue;
        };
        if name == "core_i" {
            cores = words(values);
        }
        if !name.starts_with("int_") {
            continue;
        }
        // `int_total(%)` is `int_total_%age`, `int_min(ns)` is `int_min_ns`.
        let metric = name.replace(')', "").replace('(', "_").replace('%', "%age");
        for (core, value) in cores.iter().zip(words(values)) {
            rows.put(&format!("{metric}-cpu{core}"), value, log.name);
        }
    }
}

/// `unixbenchd.log`: `COUNT|123|…`; the first word of the line with `pgms` of `commands.log` names
/// the row.
fn unixbenchd(log: Log<'_>, rows: &mut Rows) {
    match log.name {
        "commands.log" => {
            let command = lines(log.text).find(|line| line.contains("pgms"));
            let program = command.and_then(|line| line.split_whitespace().next());
            let name = program.and_then(|program| program.rsplit('/').next());
            rows.note = name.unwrap_or_default().to_owned();
            rows.pass_over();
        }
        "unixbenchd.log" if !rows.note.is_empty() => {
            let row = rows.note.clone();
            for line in lines(log.text).filter(|line| line.contains("COUNT")) {
                let count = line.split('|').nth(1).unwrap_or_default();
                rows.put(&row, count, log.name);
            }
        }
        _ => {}
    }
}

/// `xfstests-default.log`: a test and texts in brackets. The second is a failure with a status, of
/// which MMTests takes the last digit; the third says that the test did not run.
fn xfstests(log: Log<'_>, rows: &mut Rows) {
    if log.name != "xfstests-default.log" {
        return;
    }
    for line in lines(log.text) {
        let Some((test, rest)) = line.split_once([' ', '\t']) else {
            continue;
        };
        let is_test = test.split_once('/').is_some_and(|(group, number)| {
            let is_word = |text: &str| {
                !text.is_empty()
                    && text
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            };
            is_word(group) && is_word(number) && group.bytes().all(|b| b.is_ascii_lowercase())
        });
        let texts: Vec<&str> = rest
            .split('[')
            .skip(1)
            .filter_map(|part| Some(part.split_once(']')?.0))
            .collect();
        if !is_test || texts.get(2) == Some(&"not run") {
            continue;
        }
        let failure = texts.get(1).filter(|text| text.contains("failed"));
        let digit = failure.and_then(|text| text.chars().rev().find(char::is_ascii_digit));
        rows.put(
            test,
            digit.unwrap_or('0').encode_utf8(&mut [0; 4]),
            log.name,
        );
    }
}
