//! Files about processors and threads: stat, schedstat, interrupts, softirqs, /proc/TID/stat and
//! schedstat.

use model::Reading;

use super::{Taken, numbers};

/// Times of a processor, in ticks of 10 ms (Documentation/filesystems/proc.rst, 1.7).
const TIMES: [&str; 10] = [
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
];
/// A processor's line of /proc/schedstat, the same in versions 15 to 17
/// (Documentation/scheduler/sched-stats.rst). `ttwu_count` includes the local ones.
const RUN_QUEUE: [&str; 9] = [
    "yields",
    "legacy",
    "schedules",
    "schedules_to_idle",
    "ttwu_count",
    "ttwu_local",
    "run_ns",
    "wait_ns",
    "slices",
];
const SLICES: [&str; 3] = ["run_ns", "wait_ns", "slices"];
/// The fields after the state in /proc/TID/stat, from field 4 on
/// (Documentation/filesystems/proc.rst, table 1-4).
const THREAD: [&str; 49] = [
    "ppid",
    "pgrp",
    "session",
    "tty_nr",
    "tty_pgrp",
    "flags",
    "min_flt",
    "cmin_flt",
    "maj_flt",
    "cmaj_flt",
    "utime",
    "stime",
    "cutime",
    "cstime",
    "priority",
    "nice",
    "num_threads",
    "it_real_value",
    "start_time",
    "vsize",
    "rss",
    "rsslim",
    "start_code",
    "end_code",
    "start_stack",
    "esp",
    "eip",
    "pending",
    "blocked",
    "sigign",
    "sigcatch",
    "wchan",
    "nswap",
    "cnswap",
    "exit_signal",
    "task_cpu",
    "rt_priority",
    "policy",
    "blkio_ticks",
    "gtime",
    "cgtime",
    "start_data",
    "end_data",
    "start_brk",
    "arg_start",
    "arg_end",
    "env_start",
    "env_end",
    "exit_code",
];

/// Parses /proc/stat: a group for each processor, and the first number of each other line.
pub(super) fn stat(text: &str, taken: &mut Taken) {
    for line in text.lines() {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        if key.starts_with("cpu") {
            match numbers(rest.split_whitespace()) {
                Some(times) if !times.is_empty() => taken.put_row(key, &TIMES, &times),
                _ => taken.unread(),
            }
        } else {
            match rest
                .split_whitespace()
                .next()
                .and_then(|word| word.parse().ok())
            {
                Some(value) => taken.put(Reading::WHOLE, key, value),
                None => taken.unread(),
            }
        }
    }
}

/// Parses /proc/schedstat: a group for each processor and each of its domains. The file states its
/// version.
pub(super) fn schedstat(text: &str, taken: &mut Taken) {
    let mut version = 0_u64;
    let mut processor = "";
    for line in text.lines() {
        let mut fields = line.split_whitespace();
        let key = fields.next().unwrap_or_default();
        if key.starts_with("domain") {
            // Version 17 has the domain's name before its processors.
            let skipped = if version >= 17 { 2 } else { 1 };
            match numbers(fields.skip(skipped)) {
                Some(counts) if !processor.is_empty() => {
                    taken.put_row(&format!("{processor} {key}"), &[], &counts);
                }
                _ => taken.unread(),
            }
            continue;
        }
        match numbers(fields) {
            Some(counts) if key.starts_with("cpu") => {
                processor = key;
                taken.put_row(key, &RUN_QUEUE, &counts);
            }
            Some(counts) if counts.len() == 1 => {
                version = if key == "version" { counts[0] } else { version };
                taken.put(Reading::WHOLE, key, counts[0]);
            }
            _ => taken.unread(),
        }
    }
}

/// Parses /proc/interrupts and softirqs: a group for each line, with the description in its name; a
/// counter for each processor.
pub(super) fn interrupts(text: &str, taken: &mut Taken) {
    let mut lines = text.lines();
    let head: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    if !head.iter().all(|word| word.starts_with("CPU")) {
        taken.unread();
        return;
    }
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else {
            taken.unread();
            continue;
        };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // Numbers after the last processor belong to the description: in `IR-IO-APIC 2`, but not in
        // `2-edge`.
        let counts: Vec<u64> = fields
            .iter()
            .take(head.len())
            .map_while(|word| word.parse().ok())
            .collect();
        if counts.is_empty() {
            taken.unread();
            continue;
        }
        let mut group = name.trim().to_owned();
        for word in &fields[counts.len()..] {
            group.push(' ');
            group.push_str(word);
        }
        // `ERR` and `MIS` have one number for the whole machine.
        let whole = counts.len() == 1 && head.len() > 1;
        let names: &[&str] = if whole { &[Reading::WHOLE] } else { &head };
        taken.put_row(&group, names, &counts);
    }
}

/// Parses /proc/TID/stat: one group, `kswapd0/45`. A name can contain spaces and brackets: the last
/// bracket ends it.
pub(super) fn thread(text: &str, taken: &mut Taken) {
    let line = text.lines().next().unwrap_or_default();
    let parts = line
        .split_once(" (")
        .and_then(|(id, rest)| Some((id, rest.rsplit_once(") ")?)));
    let Some((id, (name, rest))) = parts.filter(|(id, _)| id.bytes().all(|b| b.is_ascii_digit()))
    else {
        return taken.unread();
    };
    let group = format!("{name}/{id}");
    for (place, word) in rest.split_whitespace().skip(1).enumerate() {
        // Some are signed, such as the priority; none of these is a count.
        if let Ok(value) = word.parse() {
            match THREAD.get(place) {
                Some(key) => taken.put(&group, key, value),
                None => taken.put(&group, &format!("field{}", place + 4), value),
            }
        }
    }
}

/// Parses /proc/TID/schedstat: one group, named like the thread.
pub(super) fn thread_schedstat(text: &str, thread: &str, taken: &mut Taken) {
    let line = text.lines().next().unwrap_or_default();
    match numbers(line.split_whitespace()) {
        Some(counts) if !counts.is_empty() => taken.put_row(thread, &SLICES, &counts),
        _ => taken.unread(),
    }
}
