//! The block of /proc/diskstats, like iostat: mean and largest number of pending requests and wait.
//!
//! Formulas: Documentation/admin-guide/iostats.rst, and iostat(1) of sysstat for the queue. A mean
//! wait is that of all requests, not the mean of intervals with few and with many; MMTests takes
//! `(r_await + w_await) / 2` for new versions of iostat.

use std::collections::BTreeSet;

use model::{Counters, MonitorFile, Observation};

use super::block::{Block, BlockRow, Form, MonitorValue};

/// Most disks of a block; those with the most requests.
const DISKS_MAX: usize = 4;

/// The figures for a disk's growth over some seconds.
type Formula = fn(&Counters, f64) -> MonitorValue;

const FORMULAS: [(&str, Form, Formula); 4] = [
    ("avgqu-sz", Form::Mean, |grew, seconds| {
        let queue = grew.get("queue_ms").map(|ms| ms as f64 / 1e3);
        MonitorValue::quotient(1.0, queue, Some(seconds))
    }),
    ("await", Form::Milliseconds, |grew, _| {
        wait(
            grew,
            &["read_ms", "write_ms", "discard_ms"],
            &["reads", "writes", "discards"],
        )
    }),
    ("r_await", Form::Milliseconds, |grew, _| {
        wait(grew, &["read_ms"], &["reads"])
    }),
    ("w_await", Form::Milliseconds, |grew, _| {
        wait(grew, &["write_ms"], &["writes"])
    }),
];

fn wait(grew: &Counters, times: &[&str], requests: &[&str]) -> MonitorValue {
    MonitorValue::quotient(1.0, sum_of_keys(grew, times), sum_of_keys(grew, requests))
}

/// Returns the sum of those keys that are there; `None` if none is.
fn sum_of_keys(grew: &Counters, keys: &[&str]) -> Option<f64> {
    let values: Vec<u64> = keys.iter().filter_map(|key| grew.get(key)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64)
}

pub(super) fn disks(seen: &[&Observation]) -> Block {
    let disks = busiest(seen);
    let mut rows = Vec::new();
    for (word, take) in [
        (
            "Mean",
            mean as fn(&Observation, &str, Formula) -> MonitorValue,
        ),
        ("Max", largest),
    ] {
        for disk in &disks {
            for (name, form, formula) in FORMULAS {
                let values = seen
                    .iter()
                    .map(|observation| take(observation, disk, formula))
                    .collect();
                rows.push(BlockRow {
                    of_nothing: Some(0.0),
                    ..BlockRow::new(format!("{word} {disk}-{name}"), form, values)
                });
            }
        }
    }
    Block::new(
        "Disks",
        "",
        rows.into_iter().filter(BlockRow::is_counted).collect(),
    )
}

/// Returns the disks with the most requests, by name.
fn busiest(seen: &[&Observation]) -> BTreeSet<String> {
    let mut all: Vec<(u64, String)> = Vec::new();
    for observation in seen {
        let Some((_, last)) = observation.ends(MonitorFile::Diskstats) else {
            continue;
        };
        for (disk, _) in last.reading.groups() {
            let grew = observation
                .growth(MonitorFile::Diskstats, disk)
                .unwrap_or_default();
            let requests = ["reads", "writes", "discards"]
                .iter()
                .filter_map(|key| grew.get(key))
                .sum();
            // A partition's requests are included in its disk's.
            let partition = last.reading.groups().any(|(of, _)| is_partition(disk, of));
            if requests > 0 && !partition && all.iter().all(|(_, known)| known != disk) {
                all.push((requests, disk.to_owned()));
            }
        }
    }
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    all.into_iter()
        .take(DISKS_MAX)
        .map(|(_, disk)| disk)
        .collect()
}

/// Returns whether `name` is a partition of `disk`: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`
/// (block/partitions/core.c puts a `p` behind a digit).
fn is_partition(name: &str, disk: &str) -> bool {
    let rest = name.strip_prefix(disk).unwrap_or_default();
    let rest = if disk.ends_with(|c: char| c.is_ascii_digit()) {
        rest.strip_prefix('p').unwrap_or_default()
    } else {
        rest
    };
    !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())
}

fn mean(observation: &Observation, disk: &str, formula: Formula) -> MonitorValue {
    let grew = observation
        .growth(MonitorFile::Diskstats, disk)
        .zip(observation.seconds(MonitorFile::Diskstats));
    grew.map_or(MonitorValue::Absent, |(grew, seconds)| {
        formula(&grew, seconds)
    })
}

/// Returns the largest value of any interval; with a single interval that would be the mean again.
fn largest(observation: &Observation, disk: &str, formula: Formula) -> MonitorValue {
    let readings: Vec<_> = observation.copies_of(MonitorFile::Diskstats).collect();
    if readings.len() < 3 {
        return MonitorValue::Absent;
    }
    let values = readings.windows(2).filter_map(|pair| {
        let seconds = pair[1]
            .at_ns
            .checked_sub(pair[0].at_ns)
            .filter(|ns| *ns > 0)? as f64
            / 1e9;
        formula(
            &pair[1]
                .reading
                .group(disk)?
                .since(pair[0].reading.group(disk)?),
            seconds,
        )
        .number()
    });
    values
        .max_by(f64::total_cmp)
        .map_or(MonitorValue::Absent, MonitorValue::Number)
}

#[cfg(test)]
mod tests {
    use super::is_partition;

    #[test]
    fn partitions_are_known_by_their_disk() {
        for (name, disk) in [("sda1", "sda"), ("vda12", "vda"), ("nvme0n1p2", "nvme0n1")] {
            assert!(is_partition(name, disk));
        }
        for (name, disk) in [
            ("sda", "sda"),
            ("sdaa", "sda"),
            ("nvme0n12", "nvme0n1"),
            ("dm-10", "dm-1"),
            ("sda1", ""),
        ] {
            assert!(!is_partition(name, disk), "{name} {disk}");
        }
    }
}
