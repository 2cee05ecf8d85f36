//! Files about memory in groups: zoneinfo, buddyinfo, slabinfo.

use super::{Taken, numbers};

const CACHE: [&str; 5] = [
    "active_objs",
    "num_objs",
    "objsize",
    "objperslab",
    "pagesperslab",
];
/// The indentation of a processor list's counters (`zoneinfo_show_print` in mm/vmstat.c).
const WITHIN_LIST: &str = "            ";
const SLABS: [&str; 3] = ["active_slabs", "num_slabs", "sharedavail"];

/// Parses /proc/zoneinfo: a group for each zone (`node 0 zone DMA`) and, if the kernel has counters
/// of nodes, for each node (`node 0`). Counters of per-processor lists have the processor in their
/// name: `cpu0 count`.
pub(super) fn zoneinfo(text: &str, taken: &mut Taken) {
    let mut zone = String::new();
    let mut group = String::new();
    let mut list = String::new();
    for line in text.lines() {
        if let Some(name) = zone_of(line) {
            (group, zone) = (name.clone(), name);
            list.clear();
            continue;
        }
        let pair = line.trim();
        let (key, rest) = pair
            .split_once(':')
            .or_else(|| pair.split_once(' '))
            .unwrap_or((pair, ""));
        let rest = rest.trim_start();
        if !line.starts_with(WITHIN_LIST) {
            list.clear();
        }
        match (key, rest) {
            _ if zone.is_empty() => taken.unread(),
            ("per-node", _) => group = zone.split(" zone ").next().unwrap_or(&zone).to_owned(),
            // The first key of a zone is `pages free`.
            ("pages", _) => {
                group.clone_from(&zone);
                number(
                    &group,
                    rest.split_whitespace().next().unwrap_or_default(),
                    rest,
                    taken,
                );
            }
            ("cpu", id) => list = format!("cpu{id} "),
            // It belongs to the processor above, though it is not indented further.
            ("vm stats threshold", _) => {}
            ("pagesets" | "protection" | "", _) => {}
            _ => number(&group, &format!("{list}{key}"), rest, taken),
        }
    }
}

/// Returns `node 0 zone DMA` of `Node 0, zone      DMA`.
fn zone_of(line: &str) -> Option<String> {
    let (node, zone) = line.strip_prefix("Node ")?.split_once(", zone ")?;
    let zone = zone.split_whitespace().next()?;
    Some(format!("node {} zone {zone}", node.trim()))
}

/// Returns the last word of a line; a line with more than one number has an unknown format, which
/// is no error.
fn number(group: &str, key: &str, rest: &str, taken: &mut Taken) {
    match rest
        .split_whitespace()
        .last()
        .and_then(|word| word.parse().ok())
    {
        Some(value) => taken.put(group, key, value),
        None => taken.unread(),
    }
}

/// Parses /proc/buddyinfo: a group for each zone, with its free blocks by order.
pub(super) fn buddyinfo(text: &str, taken: &mut Taken) {
    for line in text.lines() {
        let blocks = line
            .split_once(", zone ")
            .map(|(_, rest)| numbers(rest.split_whitespace().skip(1)));
        match (zone_of(line), blocks) {
            (Some(zone), Some(Some(blocks))) if !blocks.is_empty() => {
                for (order, count) in blocks.iter().enumerate() {
                    taken.put(&zone, &format!("order{order}"), *count);
                }
            }
            _ => taken.unread(),
        }
    }
}

/// Parses /proc/slabinfo, versions 1.1 to 2.1: a group for each cache. A cache's name can contain
/// spaces and brackets (`size-131072(DMA)`); its numbers begin behind it.
pub(super) fn slabinfo(text: &str, taken: &mut Taken) {
    for line in text
        .lines()
        .filter(|line| !line.starts_with("slabinfo") && !line.starts_with('#'))
    {
        let (objects, slabs) = line.split_once(" : slabdata").unwrap_or((line, ""));
        let objects = objects.split(" : ").next().unwrap_or_default();
        let fields: Vec<&str> = objects.split_whitespace().collect();
        let name = fields.len().saturating_sub(CACHE.len());
        let counts = fields
            .get(name..)
            .and_then(|fields| numbers(fields.iter().copied()));
        match (name, counts, numbers(slabs.split_whitespace())) {
            (1.., Some(counts), Some(slabs)) => {
                let name = fields[..name].join(" ");
                taken.put_row(&name, &CACHE, &counts);
                taken.put_row(&name, &SLABS, &slabs);
            }
            _ => taken.unread(),
        }
    }
}
