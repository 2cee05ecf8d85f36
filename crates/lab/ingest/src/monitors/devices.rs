//! Files about devices and protocols: diskstats, net/dev, net/snmp, net/netstat.

use super::{Taken, numbers};

/// Documentation/admin-guide/iostats.rst: 11 fields, 15 since 4.18 (discards), 17 since 5.5
/// (flushes). Times in ms, sectors of 512 bytes.
const DISK: [&str; 17] = [
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ms",
    "writes",
    "writes_merged",
    "written_sectors",
    "write_ms",
    "in_flight",
    "busy_ms",
    "queue_ms",
    "discards",
    "discards_merged",
    "discarded_sectors",
    "discard_ms",
    "flushes",
    "flush_ms",
];
/// A partition before 2.6.25, in the same document.
const OLD_PARTITION: [&str; 4] = ["reads", "read_sectors", "writes", "written_sectors"];

/// Parses /proc/diskstats: a group for each disk and partition.
pub(super) fn diskstats(text: &str, taken: &mut Taken) {
    for line in text.lines() {
        let mut fields = line.split_whitespace();
        let device = (fields.next(), fields.next(), fields.next());
        match (device, numbers(fields)) {
            ((Some(major), Some(minor), Some(name)), Some(counts))
                if numbers([major, minor].into_iter()).is_some()
                    && counts.len() >= OLD_PARTITION.len() =>
            {
                let names: &[&str] = if counts.len() == OLD_PARTITION.len() {
                    &OLD_PARTITION
                } else {
                    &DISK
                };
                taken.put_row(name, names, &counts);
            }
            _ => taken.unread(),
        }
    }
}

/// Parses /proc/net/dev: a group for each device, counters named by the header: `receive_bytes`.
pub(super) fn net_dev(text: &str, taken: &mut Taken) {
    let mut lines = text.lines();
    let head = (lines.next(), lines.next());
    let (Some(_), Some(second)) = head else {
        return taken.unread();
    };
    let mut parts = second.split('|').skip(1);
    let receive = parts.next().unwrap_or_default();
    let transmit = parts.next().unwrap_or_default();
    let named = |way: &str, names: &str| {
        names
            .split_whitespace()
            .map(|n| format!("{way}_{n}"))
            .collect::<Vec<_>>()
    };
    let names = [named("receive", receive), named("transmit", transmit)].concat();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for line in lines {
        // A device's name can contain a colon itself (an alias), and old kernels put no space after
        // it.
        match line
            .rsplit_once(':')
            .map(|(name, rest)| (name.trim(), numbers(rest.split_whitespace())))
        {
            Some((name, Some(counts))) => taken.put_row(name, &names, &counts),
            _ => taken.unread(),
        }
    }
}

/// Parses /proc/net/snmp and netstat: pairs of lines, names and values. A negative value means "no
/// limit"; it is no count and is skipped.
pub(super) fn protocols(text: &str, taken: &mut Taken) {
    let mut lines = text.lines();
    while let Some(names) = lines.next() {
        let both = names
            .split_once(':')
            .zip(lines.next().and_then(|values| values.split_once(':')));
        let Some(((group, names), (_, values))) =
            both.filter(|((name, _), (same, _))| name == same)
        else {
            taken.unread();
            continue;
        };
        for (key, value) in names.split_whitespace().zip(values.split_whitespace()) {
            match value.parse() {
                Ok(value) => taken.put(group, key, value),
                Err(_) if value.starts_with('-') => {}
                Err(_) => taken.unread(),
            }
        }
    }
}
