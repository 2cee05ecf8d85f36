//! The counter dictionary: the names of each concept in different kernels, and whether two kernels
//! count the same thing.
//!
//! One line for each concept of /proc/vmstat, with the source of each renaming. The keys that are
//! there decide, never a version: vendors backport counters. `docs/counters.md` is generated from
//! this table.

#[cfg(test)]
mod tests;

use Term::{IfThere, Key, Less, Zones};
use model::Counters;

/// Zones with counters of their own (`zone_names` in mm/page_alloc.c, in lower case as mm/vmstat.c
/// prints them). `pgscan_direct_throttle` is no zone; a prefix match would include it.
pub const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// A part of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// A key that must be there.
    Key(&'static str),
    /// The keys `prefix_ZONE` of all zones; at least one.
    Zones(&'static str),
    /// A key that counts if it is there.
    IfThere(&'static str),
    /// A key that must be there and is subtracted.
    Less(&'static str),
}

/// One form in which kernels export a concept: its class (forms of one class count the same) and
/// the terms of the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formula(pub &'static str, pub &'static [Term]);

/// A concept: what is counted, independent of the counter's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterMeaning {
    /// Its name: the name of the row in reports, and the name in MMTests if it has one.
    pub name: &'static str,
    /// What is counted: pages, events.
    pub unit: &'static str,
    /// Its forms; the first one whose keys are all there is used.
    pub forms: &'static [Formula],
    /// Keys that split off a part of it in newer kernels; older kernels count that part within it.
    pub apart: &'static [&'static str],
    /// What to compare if this cannot be compared.
    pub coarser: Option<&'static str>,
    /// Where the kernel source says so.
    pub source: &'static str,
}

/// Whether a concept can be compared between two kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparability {
    /// Both count the same.
    Same,
    /// At least one kernel does not count it.
    Lacking,
    /// They count different things; names the concept to compare instead, if any.
    Differs {
        /// The key that only one of the kernels has.
        apart: Option<&'static str>,
        /// The meaning that can be compared instead, if any.
        instead: Option<&'static str>,
    },
}

impl CounterMeaning {
    /// Returns the value, and the class of the form that gave it.
    #[must_use]
    pub fn read(&self, counters: &Counters) -> Option<(u64, &'static str)> {
        self.forms
            .iter()
            .find_map(|Formula(class, terms)| Some((sum(terms, counters)?, *class)))
    }

    /// Returns the value; `None` if the kernel does not count it.
    #[must_use]
    pub fn value(&self, counters: &Counters) -> Option<u64> {
        self.read(counters).map(|(value, _)| value)
    }

    /// Returns how the counts of two kernels compare.
    #[must_use]
    pub fn comparability(&self, base: &Counters, new: &Counters) -> Comparability {
        let (Some((_, class)), Some((_, other))) = (self.read(base), self.read(new)) else {
            return Comparability::Lacking;
        };
        let is_apart = |key: &&&str| base.get(key).is_some() != new.get(key).is_some();
        match self.apart.iter().find(is_apart) {
            Some(key) => Comparability::Differs {
                apart: Some(key),
                instead: self.coarser,
            },
            None if class != other => Comparability::Differs {
                apart: None,
                instead: self.coarser,
            },
            None => Comparability::Same,
        }
    }
}

/// Returns the concept with this name.
#[must_use]
pub fn find_meaning(name: &str) -> Option<&'static CounterMeaning> {
    DICTIONARY.iter().find(|concept| concept.name == name)
}

fn sum(terms: &[Term], counters: &Counters) -> Option<u64> {
    terms.iter().try_fold(0_u64, |sum, term| match term {
        Key(key) => Some(sum.saturating_add(counters.get(key)?)),
        Zones(prefix) => Some(sum.saturating_add(zones(prefix, counters)?)),
        IfThere(key) => Some(sum.saturating_add(counters.get(key).unwrap_or(0))),
        Less(key) => sum.checked_sub(counters.get(key)?),
    })
}

fn zones(prefix: &str, counters: &Counters) -> Option<u64> {
    let values = ZONES
        .iter()
        .filter_map(|zone| counters.get(&format!("{prefix}_{zone}")));
    values.reduce(u64::saturating_add)
}

const fn line(
    name: &'static str,
    unit: &'static str,
    forms: &'static [Formula],
    source: &'static str,
) -> CounterMeaning {
    CounterMeaning {
        name,
        unit,
        forms,
        apart: &[],
        coarser: None,
        source,
    }
}

/// Like `line`, for concepts that newer kernels split.
const fn split(
    name: &'static str,
    unit: &'static str,
    forms: &'static [Formula],
    apart: &'static [&'static str],
    coarser: &'static str,
    source: &'static str,
) -> CounterMeaning {
    CounterMeaning {
        name,
        unit,
        forms,
        apart,
        coarser: Some(coarser),
        source,
    }
}

/// The forms of a scan or a reclaim: per zone up to 4.7, per node since.
const EVENT: &str = "include/linux/vm_event_item.h";
const NODE: &str = "per node since 599d0c954f91 (\"mm, vmscan: move LRU lists to node\")";
const SPLIT: &str = "khugepaged apart since 57e9cc50f4dd (\"mm: vmscan: split khugepaged stats from direct reclaim stats\"), \
                     proactive since e452872b40e3 (\"mm: vmscan: split proactive reclaim statistics from direct reclaim statistics\")";
const STEAL: &str = "\"mm: fix up the vmscan stat in vmstat\" (Ying Han, 2012) split pgsteal_ZONE by who reclaims; \
                     kswapd_steal before; per node since 599d0c954f91";
const STALLS: &str = "per zone since \"mm: vmstat: account per-zone stalls and pages skipped during reclaim\" (Mel Gorman, 2016)";
const MIGRATE: &str = "5647bc293ab1 (\"mm: compaction: Move migration fail/success stats to migrate.c\"); before, compaction's only";
const COMPACT: &str =
    "397487db696c (\"mm: compaction: Add scanned and isolated counters for compaction\")";
const WORKING: &str = "170b04b7ae49 (\"mm/workingset: prepare the workingset detection infrastructure for anon LRU\"): \
                       files only before, both apart since";
const TYPES: &str =
    "497a6c1b0990 (\"mm: keep separate anon and file statistics on page reclaim activity\")";
const THP_SPLIT: &str = "\"mm, vmstats: new THP splitting event\" (Kirill Shutemov, 2015): before, splitting a page split its mappings too";
const ZERO: &str = "mm/page_io.c: swap_writepage() counts pages of zeros in swpout_zero and compressed ones in zswpout, \
                    where the kernel has these, not in pswpout; nr_vmscan_write counts all";
const GONE: &str = "in no kernel of today; include/linux/vm_event_item.h or vmstat.h of its time";
const STATES: &str = "include/linux/mmzone.h; mm/vmstat.c";

/// All concepts, in the order of reports.
pub const DICTIONARY: &[CounterMeaning] = &[
    line(
        "Minor Faults",
        "faults",
        &[Formula("", &[Key("pgfault"), Less("pgmajfault")])],
        EVENT,
    ),
    line(
        "Major Faults",
        "faults",
        &[Formula("", &[Key("pgmajfault")])],
        EVENT,
    ),
    split(
        "Swap Ins",
        "pages",
        &[Formula("", &[Key("pswpin")])],
        &["swpin_zero"],
        "Swap ins with zero pages",
        ZERO,
    ),
    split(
        "Swap Outs",
        "pages",
        &[Formula("", &[Key("pswpout")])],
        &["swpout_zero"],
        "Swap outs with zero pages",
        ZERO,
    ),
    line(
        "Swap ins with zero pages",
        "pages",
        &[Formula("", &[Key("pswpin"), IfThere("swpin_zero")])],
        ZERO,
    ),
    line(
        "Swap outs with zero pages",
        "pages",
        &[Formula("", &[Key("pswpout"), IfThere("swpout_zero")])],
        ZERO,
    ),
    split(
        "Direct pages scanned",
        "pages",
        &[
            Formula("", &[Key("pgscan_direct")]),
            Formula("", &[Zones("pgscan_direct")]),
        ],
        &["pgscan_khugepaged", "pgscan_proactive"],
        "Pages scanned outside kswapd",
        SPLIT,
    ),
    line(
        "Kswapd pages scanned",
        "pages",
        &[
            Formula("", &[Key("pgscan_kswapd")]),
            Formula("", &[Zones("pgscan_kswapd")]),
        ],
        NODE,
    ),
    line(
        "Kswapd pages reclaimed",
        "pages",
        &[
            Formula("", &[Key("pgsteal_kswapd")]),
            Formula("", &[Zones("pgsteal_kswapd")]),
            Formula("", &[Key("kswapd_steal")]),
        ],
        STEAL,
    ),
    split(
        "Direct pages reclaimed",
        "pages",
        &[
            Formula("", &[Key("pgsteal_direct")]),
            Formula("", &[Zones("pgsteal_direct")]),
            Formula("", &[Zones("pgsteal"), Less("kswapd_steal")]),
            Formula("", &[Key("pgsteal"), Less("kswapd_steal")]),
        ],
        &["pgsteal_khugepaged", "pgsteal_proactive"],
        "Pages reclaimed outside kswapd",
        STEAL,
    ),
    line(
        "Pages scanned outside kswapd",
        "pages",
        &[
            Formula(
                "",
                &[
                    Key("pgscan_direct"),
                    IfThere("pgscan_khugepaged"),
                    IfThere("pgscan_proactive"),
                ],
            ),
            Formula("", &[Zones("pgscan_direct")]),
        ],
        SPLIT,
    ),
    line(
        "Pages reclaimed outside kswapd",
        "pages",
        &[
            Formula(
                "",
                &[
                    Key("pgsteal_direct"),
                    IfThere("pgsteal_khugepaged"),
                    IfThere("pgsteal_proactive"),
                ],
            ),
            Formula("", &[Zones("pgsteal_direct")]),
            Formula("", &[Zones("pgsteal"), Less("kswapd_steal")]),
            Formula("", &[Key("pgsteal"), Less("kswapd_steal")]),
        ],
        SPLIT,
    ),
    line(
        "Khugepaged pages scanned",
        "pages",
        &[Formula("", &[Key("pgscan_khugepaged")])],
        SPLIT,
    ),
    line(
        "Khugepaged pages reclaimed",
        "pages",
        &[Formula("", &[Key("pgsteal_khugepaged")])],
        SPLIT,
    ),
    line(
        "Proactive pages scanned",
        "pages",
        &[Formula("", &[Key("pgscan_proactive")])],
        SPLIT,
    ),
    line(
        "Proactive pages reclaimed",
        "pages",
        &[Formula("", &[Key("pgsteal_proactive")])],
        SPLIT,
    ),
    line(
        "Anon pages scanned",
        "pages",
        &[Formula("", &[Key("pgscan_anon")])],
        TYPES,
    ),
    line(
        "File pages scanned",
        "pages",
        &[Formula("", &[Key("pgscan_file")])],
        TYPES,
    ),
    line(
        "Anon pages reclaimed",
        "pages",
        &[Formula("", &[Key("pgsteal_anon")])],
        TYPES,
    ),
    line(
        "File pages reclaimed",
        "pages",
        &[Formula("", &[Key("pgsteal_file")])],
        TYPES,
    ),
    line(
        "Page writes by reclaim",
        "pages",
        &[Formula("", &[Key("nr_vmscan_write")])],
        STATES,
    ),
    line(
        "Page writes anon",
        "pages",
        &[Formula(
            "",
            &[Key("pswpout"), IfThere("swpout_zero"), IfThere("zswpout")],
        )],
        ZERO,
    ),
    line(
        "Page reclaim immediate",
        "pages",
        &[Formula("", &[Key("nr_vmscan_immediate_reclaim")])],
        STATES,
    ),
    line(
        "Sector Reads",
        "KiB",
        &[Formula("", &[Key("pgpgin")])],
        "KiB whatever MMTests calls it: mm/vmstat.c halves sectors",
    ),
    line(
        "Sector Writes",
        "KiB",
        &[Formula("", &[Key("pgpgout")])],
        "KiB whatever MMTests calls it: mm/vmstat.c halves sectors",
    ),
    line(
        "Page rescued immediate",
        "pages",
        &[Formula("", &[Key("pgrescued")])],
        GONE,
    ),
    line(
        "Slabs scanned",
        "objects",
        &[Formula("", &[Key("slabs_scanned")])],
        EVENT,
    ),
    line(
        "Direct inode steals",
        "pages",
        &[Formula("", &[Key("pginodesteal")])],
        "fs/inode.c",
    ),
    line(
        "Kswapd inode steals",
        "pages",
        &[Formula("", &[Key("kswapd_inodesteal")])],
        "fs/inode.c",
    ),
    line(
        "Kswapd skipped wait",
        "waits",
        &[Formula("", &[Key("kswapd_skip_congestion_wait")])],
        GONE,
    ),
    line(
        "Allocation stalls",
        "stalls",
        &[
            Formula("", &[Zones("allocstall")]),
            Formula("", &[Key("allocstall")]),
        ],
        STALLS,
    ),
    line(
        "Direct reclaim throttled",
        "waits",
        &[Formula("", &[Key("pgscan_direct_throttle")])],
        EVENT,
    ),
    line(
        "Pages skipped",
        "pages",
        &[Formula("", &[Zones("pgskip")])],
        STALLS,
    ),
    line(
        "Pages deactivated by scan",
        "pages",
        &[
            Formula("", &[Key("pgrefill")]),
            Formula("", &[Zones("pgrefill")]),
        ],
        NODE,
    ),
    line(
        "File refaults",
        "pages",
        &[
            Formula("", &[Key("workingset_refault_file")]),
            Formula("", &[Key("workingset_refault")]),
        ],
        WORKING,
    ),
    line(
        "Anon refaults",
        "pages",
        &[Formula("", &[Key("workingset_refault_anon")])],
        WORKING,
    ),
    line(
        "File activations by refault",
        "pages",
        &[
            Formula("", &[Key("workingset_activate_file")]),
            Formula("", &[Key("workingset_activate")]),
        ],
        WORKING,
    ),
    line(
        "File refaults of the working set",
        "pages",
        &[
            Formula("", &[Key("workingset_restore_file")]),
            Formula("", &[Key("workingset_restore")]),
        ],
        WORKING,
    ),
    line(
        "Shadow nodes reclaimed",
        "nodes",
        &[Formula("", &[Key("workingset_nodereclaim")])],
        STATES,
    ),
    line(
        "THP fault alloc",
        "pages",
        &[Formula("", &[Key("thp_fault_alloc")])],
        EVENT,
    ),
    line(
        "THP fault fallback",
        "pages",
        &[Formula("", &[Key("thp_fault_fallback")])],
        EVENT,
    ),
    line(
        "THP collapse alloc",
        "pages",
        &[Formula("", &[Key("thp_collapse_alloc")])],
        EVENT,
    ),
    line(
        "THP collapse fail",
        "pages",
        &[Formula("", &[Key("thp_collapse_alloc_failed")])],
        EVENT,
    ),
    line(
        "THP split",
        "pages",
        &[
            Formula("pages", &[Key("thp_split_page")]),
            Formula("pages with their mappings", &[Key("thp_split")]),
        ],
        THP_SPLIT,
    ),
    line(
        "THP split failed",
        "pages",
        &[Formula("", &[Key("thp_split_page_failed")])],
        THP_SPLIT,
    ),
    line(
        "Compaction stalls",
        "stalls",
        &[Formula("", &[Key("compact_stall")])],
        EVENT,
    ),
    line(
        "Compaction success",
        "stalls",
        &[Formula("", &[Key("compact_success")])],
        EVENT,
    ),
    line(
        "Compaction failures",
        "stalls",
        &[Formula("", &[Key("compact_fail")])],
        EVENT,
    ),
    line(
        "Page migrate success",
        "pages",
        &[
            Formula("all", &[Key("pgmigrate_success")]),
            Formula("compaction's", &[Key("compact_pages_moved")]),
        ],
        MIGRATE,
    ),
    line(
        "Page migrate failure",
        "pages",
        &[
            Formula("all", &[Key("pgmigrate_fail")]),
            Formula("compaction's", &[Key("compact_pagemigrate_failed")]),
        ],
        MIGRATE,
    ),
    line(
        "Compaction pages isolated",
        "pages",
        &[Formula("", &[Key("compact_isolated")])],
        COMPACT,
    ),
    line(
        "Compaction migrate scanned",
        "pages",
        &[Formula("", &[Key("compact_migrate_scanned")])],
        COMPACT,
    ),
    line(
        "Compaction free scanned",
        "pages",
        &[Formula("", &[Key("compact_free_scanned")])],
        COMPACT,
    ),
    line(
        "Kcompactd wake",
        "times",
        &[Formula("", &[Key("compact_daemon_wake")])],
        EVENT,
    ),
    line(
        "Kcompactd migrate scanned",
        "pages",
        &[Formula("", &[Key("compact_daemon_migrate_scanned")])],
        EVENT,
    ),
    line(
        "Kcompactd free scanned",
        "pages",
        &[Formula("", &[Key("compact_daemon_free_scanned")])],
        EVENT,
    ),
    line(
        "NUMA alloc hit",
        "pages",
        &[Formula("", &[Key("numa_hit")])],
        STATES,
    ),
    line(
        "NUMA alloc miss",
        "pages",
        &[Formula("", &[Key("numa_miss")])],
        STATES,
    ),
    line(
        "NUMA alloc local",
        "pages",
        &[Formula("", &[Key("numa_local")])],
        STATES,
    ),
    line(
        "NUMA base-page range updates",
        "PTEs",
        &[Formula("", &[Key("numa_pte_updates")])],
        EVENT,
    ),
    line(
        "NUMA PMD updates",
        "PMDs",
        &[Formula("", &[Key("numa_huge_pte_updates")])],
        EVENT,
    ),
    line(
        "NUMA hint faults",
        "faults",
        &[Formula("", &[Key("numa_hint_faults")])],
        EVENT,
    ),
    line(
        "NUMA hint local faults",
        "faults",
        &[Formula("", &[Key("numa_hint_faults_local")])],
        EVENT,
    ),
    line(
        "NUMA pages migrated",
        "pages",
        &[Formula("", &[Key("numa_pages_migrated")])],
        EVENT,
    ),
    line(
        "OOM kills",
        "processes",
        &[Formula("", &[Key("oom_kill")])],
        EVENT,
    ),
];
