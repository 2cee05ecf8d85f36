//! Blocks about processors: elapsed time, use of processor time, and stalls.

use std::collections::{BTreeMap, BTreeSet};

use model::{Counters, MonitorFile, Observation};

use super::block::{Block, BlockRow, Form, MonitorValue};

/// Ticks of /proc/stat per second: USER_HZ of include/uapi/asm-generic/param.h, independent of the
/// kernel's HZ.
const TICKS: f64 = 100.0;

fn grew(observation: &Observation) -> Option<Counters> {
    observation.growth(MonitorFile::Stat, "cpu")
}

fn ticks(grew: &Counters, keys: &[&str]) -> f64 {
    keys.iter().filter_map(|key| grew.get(key)).sum::<u64>() as f64
}

/// Returns the elapsed time by /proc/stat, which exists for workloads of any kind.
pub(super) fn duration(seen: &[&Observation]) -> Block {
    let spent = |keys: &[&str]| {
        let values = seen.iter().map(|observation| {
            grew(observation).map_or(MonitorValue::Absent, |grew| {
                MonitorValue::Number(ticks(&grew, keys) / TICKS)
            })
        });
        values.collect()
    };
    let elapsed = seen.iter().map(|observation| {
        let seconds = observation
            .seconds(MonitorFile::Stat)
            .or_else(|| observation.seconds(MonitorFile::Vmstat));
        seconds.map_or(MonitorValue::Absent, MonitorValue::Number)
    });
    let rows = vec![
        BlockRow::new("User", Form::Seconds, spent(&["user", "nice"])),
        BlockRow::new(
            "System",
            Form::Seconds,
            spent(&["system", "irq", "softirq"]),
        ),
        BlockRow::new("Elapsed", Form::Seconds, elapsed.collect()),
    ];
    Block::new(
        "Duration",
        "Duration",
        rows.into_iter().filter(BlockRow::is_counted).collect(),
    )
}

/// Returns the use of all processors' time, in percent, like mpstat.
pub(super) fn processors(seen: &[&Observation]) -> Block {
    const ALL: [&str; 8] = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ];
    // user and nice already include the time of guests (kernel/sched/cputime.c,
    // account_guest_time).
    const PARTS: [(&str, &[&str], &[&str]); 9] = [
        ("usr", &["user"], &["guest"]),
        ("nice", &["nice"], &["guest_nice"]),
        ("sys", &["system"], &[]),
        ("iowait", &["iowait"], &[]),
        ("irq", &["irq"], &[]),
        ("soft", &["softirq"], &[]),
        ("steal", &["steal"], &[]),
        ("guest", &["guest", "guest_nice"], &[]),
        ("idle", &["idle"], &[]),
    ];
    let mut rows = Vec::new();
    for (name, plus, minus) in PARTS {
        let values = seen.iter().map(|observation| {
            let grew = grew(observation);
            let part = grew
                .as_ref()
                .map(|grew| ticks(grew, plus) - ticks(grew, minus));
            MonitorValue::quotient(100.0, part, grew.map(|grew| ticks(&grew, &ALL)))
        });
        rows.push(BlockRow::new(name, Form::Share, values.collect()));
    }
    rows.retain(BlockRow::is_counted);
    Block::new("Processors", "CPU", rows)
}

/// Returns the share of the time with stalls: from the growth of the totals, not the kernel's
/// averages.
pub(super) fn pressure(seen: &[&Observation]) -> Block {
    const FILES: [(MonitorFile, &str); 4] = [
        (MonitorFile::PressureCpu, "cpu"),
        (MonitorFile::PressureIo, "io"),
        (MonitorFile::PressureMemory, "memory"),
        (MonitorFile::PressureIrq, "irq"),
    ];
    let mut rows = Vec::new();
    for (file, name) in FILES {
        for kind in ["some", "full"] {
            let values = seen.iter().map(|observation| {
                let stalled = observation
                    .growth(file, kind)
                    .and_then(|grew| grew.get("total_us"));
                MonitorValue::quotient(
                    100.0,
                    stalled.map(|us| us as f64 / 1e6),
                    observation.seconds(file),
                )
            });
            rows.push(BlockRow::new(
                format!("{name} {kind}"),
                Form::Share,
                values.collect(),
            ));
        }
    }
    rows.retain(BlockRow::is_counted);
    Block::new("Pressure", "Stall", rows)
}

/// Most threads of a block; those with the most processor time.
const THREADS_MAX: usize = 6;

/// Seconds of all threads with one name.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    running: f64,
    waiting: Option<f64>,
}

/// Returns running and waiting time of threads, summed by name: `kswapd0`, and the workload's.
/// Waiting time needs CONFIG_SCHED_INFO (/proc/TID/schedstat).
pub(super) fn threads(seen: &[&Observation]) -> Block {
    let spent: Vec<BTreeMap<String, Spent>> = seen
        .iter()
        .map(|observation| sum_threads(observation))
        .collect();
    let mut longest: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, of) in spent.iter().flatten() {
        let most = longest.entry(name).or_default();
        *most = most.max(of.running);
    }
    let mut names: Vec<(&str, f64)> = longest
        .into_iter()
        .filter(|(_, running)| *running > 0.0)
        .collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let row = |name: &str, word: &str, of: fn(&Spent) -> Option<f64>| {
        let values = spent.iter().map(|all| {
            all.get(name)
                .and_then(of)
                .map_or(MonitorValue::Absent, MonitorValue::Number)
        });
        BlockRow::new(format!("{name} {word}"), Form::Seconds, values.collect())
    };
    let rows = names.into_iter().take(THREADS_MAX).flat_map(|(name, _)| {
        [
            row(name, "running", |spent| Some(spent.running)),
            row(name, "waiting", |spent| spent.waiting),
        ]
    });
    Block::new("Threads", "", rows.filter(BlockRow::is_counted).collect())
}

/// Returns the seconds of threads by name.
fn sum_threads(observation: &Observation) -> BTreeMap<String, Spent> {
    let mut all: BTreeMap<String, Spent> = BTreeMap::new();
    let groups: BTreeSet<&str> = observation
        .copies_of(MonitorFile::ThreadStat)
        .flat_map(|timed| timed.reading.groups().map(|(group, _)| group))
        .collect();
    for group in groups {
        let Some((name, thread)) = group.rsplit_once('/') else {
            continue;
        };
        let Some(grew) = observation.growth(MonitorFile::ThreadStat, group) else {
            continue;
        };
        let spent = all.entry(name.to_owned()).or_default();
        spent.running += ticks(&grew, &["utime", "stime"]) / TICKS;
        let ns = observation
            .growth(MonitorFile::ThreadSchedstat, thread)
            .and_then(|grew| grew.get("wait_ns"));
        if let Some(ns) = ns {
            spent.waiting = Some(spent.waiting.unwrap_or(0.0) + ns as f64 / 1e9);
        }
    }
    all
}
