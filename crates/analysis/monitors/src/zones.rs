//! The block of zones: free pages relative to the low watermark, below which kswapd wakes
//! (/proc/zoneinfo), and the share of free memory in blocks that fit a huge page (/proc/buddyinfo).

use std::collections::BTreeSet;

use model::{Counters, MonitorFile, Observation};

use super::block::{Block, BlockRow, Form, MonitorValue};

/// Most zones of a block: a machine has few, but each node has its own.
const ZONES_MAX: usize = 8;
/// The order of a huge page of 2 MiB (`HPAGE_PMD_ORDER` in include/linux/huge_mm.h, with pages of 4
/// KiB).
const HUGE: u32 = 9;

/// Returns the block: the states at the end.
pub(super) fn zones(seen: &[&Observation]) -> Block {
    let names: BTreeSet<&str> = seen
        .iter()
        .flat_map(|observation| names(observation))
        .collect();
    let several_nodes = names.iter().any(|name| !name.starts_with("node 0 "));
    let mut rows = Vec::new();
    for name in names.into_iter().take(ZONES_MAX) {
        let short = name.split_once(" zone ").map_or(name, |(_, zone)| zone);
        let shown = if several_nodes { name } else { short };
        let row = |word: &str, form, file, of: &dyn Fn(&Counters) -> MonitorValue| {
            let value = |observation: &&Observation| {
                end(observation, file, name).map_or(MonitorValue::Absent, of)
            };
            BlockRow::new(
                format!("{shown} {word}"),
                form,
                seen.iter().map(value).collect(),
            )
        };
        let zoneinfo = MonitorFile::Zoneinfo;
        // Zones without managed pages, such as an empty movable zone, are omitted.
        let managed =
            |zone: &Counters| zone.get("managed").or_else(|| zone.get("present")) != Some(0);
        if !seen
            .iter()
            .any(|observation| end(observation, zoneinfo, name).is_none_or(managed))
        {
            continue;
        }
        let free = |zone: &Counters| {
            MonitorValue::from_count(zone.get("nr_free_pages").or_else(|| zone.get("free")))
        };
        rows.push(row("free pages", Form::Count, zoneinfo, &free));
        rows.push(row("low watermark", Form::Count, zoneinfo, &|zone| {
            MonitorValue::from_count(zone.get("low"))
        }));
        rows.push(row(
            "free in huge blocks",
            Form::Share,
            MonitorFile::Buddyinfo,
            &in_huge_blocks,
        ));
    }
    Block::new(
        "Zones",
        "Zone",
        rows.into_iter().filter(BlockRow::is_counted).collect(),
    )
}

/// Returns the zones of an observation: `node 0 zone Normal`.
fn names(observation: &Observation) -> impl Iterator<Item = &str> {
    let last = |file| observation.copies_of(file).last();
    let timed = [last(MonitorFile::Zoneinfo), last(MonitorFile::Buddyinfo)];
    let groups = timed
        .into_iter()
        .flatten()
        .flat_map(|timed| timed.reading.groups());
    groups
        .map(|(name, _)| name)
        .filter(|name| name.contains(" zone "))
}

fn end<'a>(observation: &'a Observation, file: MonitorFile, name: &str) -> Option<&'a Counters> {
    observation.copies_of(file).last()?.reading.group(name)
}

fn in_huge_blocks(zone: &Counters) -> MonitorValue {
    let pages = |from: u32| {
        // A block of an order beyond 40 would be larger than any memory.
        let blocks =
            (from..40).filter_map(|order| Some((order, zone.get(&format!("order{order}"))?)));
        blocks
            .map(|(order, count)| count as f64 * f64::from(order).exp2())
            .sum::<f64>()
    };
    MonitorValue::quotient(100.0, Some(pages(HUGE)), Some(pages(0)))
}

#[cfg(test)]
mod tests {
    use model::{Counters, MonitorFile, Observation, Phase, Reading, TimedReading};

    use super::super::block::MonitorValue;
    use super::{in_huge_blocks, zones};

    fn copy(file: MonitorFile, group: &str, counters: &[(&str, u64)]) -> TimedReading {
        let mut reading = Reading::default();
        counters
            .iter()
            .for_each(|(key, value)| reading.put(group, key, *value));
        TimedReading {
            file,
            at_ns: 1,
            phase: Phase::End,
            reading,
        }
    }

    #[test]
    fn free_memory_is_counted_in_pages() {
        let counters: Counters = [
            ("order0".to_owned(), 512),
            ("order9".to_owned(), 1),
            ("order10".to_owned(), 1),
        ]
        .into_iter()
        .collect();
        assert_eq!(in_huge_blocks(&counters), MonitorValue::Number(75.0));
        assert_eq!(
            in_huge_blocks(&Counters::default()),
            MonitorValue::OfNothing
        );
    }

    #[test]
    fn empty_zones_are_omitted_and_others_are_named() {
        let zone = |zone: &str, managed| {
            copy(
                MonitorFile::Zoneinfo,
                zone,
                &[("nr_free_pages", 40), ("low", 10), ("managed", managed)],
            )
        };
        let one = Observation {
            readings: vec![zone("node 0 zone DMA32", 100)],
        };
        let rows = |seen: &Observation| {
            zones(&[seen])
                .rows
                .into_iter()
                .map(|row| row.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(rows(&one), ["DMA32 free pages", "DMA32 low watermark"]);
        let empty = Observation {
            readings: vec![zone("node 0 zone Movable", 0)],
        };
        assert!(rows(&empty).is_empty());
        let mut two = zone("node 0 zone Normal", 100);
        two.reading.put("node 1 zone Normal", "nr_free_pages", 5);
        let two = Observation {
            readings: vec![two],
        };
        assert!(rows(&two).contains(&"node 1 zone Normal free pages".to_owned()));
    }
}
