//! Blocks about memory use: slab caches, page tables.

use std::collections::BTreeMap;

use model::{Counters, MonitorFile, Observation};

use super::block::{Block, BlockRow, Form, MonitorValue};

/// Most caches of a block; the largest ones.
const CACHES_MAX: usize = 6;
/// KiB of a page; and entries of a page-table page, on x86-64 and on arm64 with pages of that size.
const PAGE_KIB: f64 = 4.0;
const ENTRIES: u64 = 512;

/// Returns the largest caches at the end: objects in use, KiB of their slabs, and the used share of
/// the allocated objects. Waste at the end of a slab counts in the KiB but not in the share.
pub(super) fn slabs(seen: &[&Observation]) -> Block {
    let ends: Vec<Option<BTreeMap<&str, &Counters>>> = seen
        .iter()
        .map(|observation| {
            let last = observation.copies_of(MonitorFile::Slabinfo).last()?;
            Some(last.reading.groups().collect())
        })
        .collect();
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, cache) in ends.iter().flatten().flatten() {
        let held = largest.entry(name).or_default();
        *held = held.max(held_kib(cache).unwrap_or(0.0));
    }
    let mut caches: Vec<(&str, f64)> = largest.into_iter().collect();
    caches.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let mut rows = Vec::new();
    for (name, _) in caches.into_iter().take(CACHES_MAX) {
        let values = |of: &dyn Fn(&Counters) -> MonitorValue| {
            let value = |end: &Option<BTreeMap<&str, &Counters>>| {
                end.as_ref()
                    .and_then(|caches| caches.get(name))
                    .map_or(MonitorValue::Absent, |cache| of(cache))
            };
            ends.iter().map(value).collect()
        };
        let key = |cache: &Counters, key| cache.get(key).map(|value| value as f64);
        let used = |cache: &Counters| {
            MonitorValue::quotient(100.0, key(cache, "active_objs"), key(cache, "num_objs"))
        };
        rows.push(BlockRow::new(
            format!("{name} objects"),
            Form::Count,
            values(&|c| MonitorValue::from_count(c.get("active_objs"))),
        ));
        let kib =
            values(&|cache| held_kib(cache).map_or(MonitorValue::Absent, MonitorValue::Number));
        rows.push(BlockRow::new(format!("{name} size"), Form::Kib, kib));
        rows.push(BlockRow::new(
            format!("{name} utilisation"),
            Form::Share,
            values(&used),
        ));
    }
    Block::new("Slabs", "Slab", rows)
}

/// Returns the size of a cache in KiB.
fn held_kib(cache: &Counters) -> Option<f64> {
    Some(cache.get("num_slabs")? as f64 * cache.get("pagesperslab")? as f64 * PAGE_KIB)
}

/// How full the lowest level of page tables is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageTables {
    /// Entries in use per page.
    pub entries_per_page: f64,
    /// The used share of all entries, in percent.
    pub utilisation_percent: f64,
}

/// Computes how full page tables are from entries in use, pages, and entries per page (512 on
/// x86-64; 1024 on i386 without PAE, as in the thread of 2003 with William Lee Irwin's formula).
#[must_use]
pub fn page_tables(entries: u64, pages: u64, room: u64) -> Option<PageTables> {
    let per_page = (pages > 0).then(|| entries as f64 / pages as f64)?;
    (room > 0).then(|| PageTables {
        entries_per_page: per_page,
        utilisation_percent: 100.0 * per_page / room as f64,
    })
}

/// Returns the block of page tables, for the processes in the last copies of status.
pub(super) fn page_table_block(seen: &[&Observation]) -> Block {
    let tables: Vec<Option<(u64, u64)>> = seen
        .iter()
        .map(|observation| count_entries(observation))
        .collect();
    let mut pages = Vec::new();
    let mut per_page = Vec::new();
    let mut used = Vec::new();
    for tables in &tables {
        pages.push(MonitorValue::from_count(tables.map(|(_, pages)| pages)));
        let usage = tables.and_then(|(entries, pages)| page_tables(entries, pages, ENTRIES));
        per_page.push(usage.map_or(MonitorValue::Absent, |u| {
            MonitorValue::Number(u.entries_per_page)
        }));
        used.push(usage.map_or(MonitorValue::Absent, |u| {
            MonitorValue::Number(u.utilisation_percent)
        }));
    }
    let rows = vec![
        BlockRow::new("Page-table pages", Form::Count, pages),
        BlockRow::new("PTEs per page-table page", Form::Mean, per_page),
        BlockRow::new("Page-table utilisation", Form::Share, used),
    ];
    Block::new(
        "Page tables",
        "",
        rows.into_iter().filter(BlockRow::is_counted).collect(),
    )
}

/// Returns entries in use and page-table pages, over all processes in the last copies. Huge pages
/// need no entry, but status includes them, so the result is then too large.
fn count_entries(observation: &Observation) -> Option<(u64, u64)> {
    let phase = observation.copies_of(MonitorFile::Status).last()?.phase;
    let at_last = observation
        .copies_of(MonitorFile::Status)
        .filter(|timed| timed.phase == phase);
    // The last copy of each process.
    let processes: BTreeMap<&str, &Counters> =
        at_last.flat_map(|timed| timed.reading.groups()).collect();
    let sum = |keys: &[&str]| -> u64 {
        processes
            .values()
            .flat_map(|status| keys.iter().filter_map(|key| status.get(key)))
            .sum()
    };
    let page = PAGE_KIB as u64;
    let resident = sum(&["RssAnon", "RssFile", "RssShmem"]);
    let tables = sum(&["VmPTE"]);
    (tables > 0).then_some((resident / page, tables / page))
}
