//! The experiment on reverse mappings: its parameters and results.

use std::fmt;
use std::str::FromStr;

/// What is mapped, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RmapCase {
    /// Each process maps each page of a file by itself.
    File,
    /// The same with shared anonymous memory.
    Shared,
    /// Shared anonymous memory, each mapping of all of it with one page in use.
    Sparse,
    /// Shared anonymous memory whose pages are put into another order one by one.
    Remapped,
    /// Private anonymous memory of a process that all others are forked from.
    Inherited,
    /// The same, but each process forked from the one before.
    Chain,
}

impl RmapCase {
    /// All cases, in the order of a report.
    pub const ALL: [Self; 6] = [
        Self::File,
        Self::Shared,
        Self::Sparse,
        Self::Remapped,
        Self::Inherited,
        Self::Chain,
    ];

    /// Returns its name on command lines and in jobs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Shared => "shared",
            Self::Sparse => "sparse",
            Self::Remapped => "remapped",
            Self::Inherited => "inherited",
            Self::Chain => "chain",
        }
    }

    /// Returns what it is, in one line.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::File => "n processes map each of m pages of a file (ramfs) by itself",
            Self::Shared => "n processes map each of m pages of shared anonymous memory by itself",
            Self::Sparse => {
                "n processes map shared anonymous memory of 2 MiB m times and use a page of each"
            }
            Self::Remapped => {
                "n processes map m pages of shared anonymous memory, then remap_file_pages(2) of each"
            }
            Self::Inherited => {
                "n processes forked from one that had m mappings of a private page each"
            }
            Self::Chain => {
                "n processes, each forked from the one before; the first one's had m private pages"
            }
        }
    }

    /// Returns whether the mapped memory belongs to an object, such as a file, from which pages can
    /// be removed.
    #[must_use]
    pub fn has_object(self) -> bool {
        !matches!(self, Self::Inherited | Self::Chain)
    }
}

impl fmt::Display for RmapCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text that is no case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no case `{0}`: there are file, shared, sparse, remapped, inherited, chain")]
pub struct RmapCaseError(pub String);

impl FromStr for RmapCase {
    type Err = RmapCaseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|case| case.name() == text)
            .ok_or_else(|| RmapCaseError(text.to_owned()))
    }
}

/// What is measured in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RmapOperation {
    /// All processes come to their mappings and have each page in use: mmap(2) and a write, or
    /// fork(2).
    Map,
    /// Each process forks another that ends at once, and waits for it.
    Fork,
    /// All pages are reclaimed, through the cgroup that only they are charged to, and written to
    /// swap on zram.
    Reclaim,
    /// One page is removed from the object that all processes map.
    DropOne,
    /// All mapped pages are dropped.
    DropAll,
    /// One page is reclaimed that one process uses and all processes map.
    PageoutOne,
    /// All processes unmap all.
    Unmap,
}

impl RmapOperation {
    /// All operations, in the order of execution.
    pub const ALL: [Self; 7] = [
        Self::Map,
        Self::Fork,
        Self::Reclaim,
        Self::DropOne,
        Self::DropAll,
        Self::PageoutOne,
        Self::Unmap,
    ];

    /// Returns its name in the agent.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Fork => "fork",
            Self::Reclaim => "reclaim",
            Self::DropOne => "drop-one",
            Self::DropAll => "drop-all",
            Self::PageoutOne => "pageout-one",
            Self::Unmap => "unmap",
        }
    }

    /// Returns what it is, in one line.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Map => "map and write to each page, or inherit it by fork(2)",
            Self::Fork => "fork(2), exit at once, wait4(2), of each process",
            Self::Reclaim => "reclaim all pages by memory.reclaim, to swap on zram",
            Self::DropOne => "take one page out of the file: fallocate(2) or ftruncate(2)",
            Self::DropAll => "take all pages out of the file: ftruncate(2)",
            Self::PageoutOne => {
                "madvise(MADV_PAGEOUT) of a page that one process uses and all have mapped"
            }
            Self::Unmap => "munmap(2) of everything, process by process",
        }
    }

    /// Returns the divisor of its cost: page-table entries of all processes, or pages of the
    /// object.
    #[must_use]
    pub fn per(self) -> &'static str {
        match self {
            Self::Map | Self::Fork | Self::Unmap => "entry",
            Self::Reclaim | Self::DropOne | Self::DropAll | Self::PageoutOne => "page",
        }
    }

    /// Returns whether a case has this operation.
    #[must_use]
    pub fn is_of(self, case: RmapCase) -> bool {
        case.has_object() || !matches!(self, Self::DropOne | Self::DropAll)
    }
}

impl fmt::Display for RmapOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One cell of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RmapCell {
    /// What is mapped, and how.
    pub case: RmapCase,
    /// Processes that map the pages.
    pub processes: u32,
    /// Mappings in each process.
    pub mappings: u32,
}

/// The cost of an operation: clock ticks, which are guest nanoseconds on the exact machine, and the
/// count to divide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RmapCost {
    /// Clock ticks of all operations together.
    pub ticks: u64,
    /// Entries or pages, as [`RmapOperation::per`] says.
    pub count: u64,
}

impl RmapCost {
    /// Returns the cost of one; `None` if the count is zero.
    #[must_use]
    pub fn each(self) -> Option<f64> {
        (self.count > 0).then(|| self.ticks as f64 / self.count as f64)
    }
}

/// Memory of a slab cache for the mappings of all processes: with them, minus without them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RmapSlab {
    /// Its name in /proc/slabinfo.
    pub name: String,
    /// Additional objects in use; may be negative.
    pub objects: i64,
    /// Size of an object in bytes.
    pub object_bytes: u64,
}

impl RmapSlab {
    /// Returns the bytes of the objects.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.objects
            .saturating_mul(i64::try_from(self.object_bytes).unwrap_or(i64::MAX))
    }
}

/// Memory that the mappings of all processes take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RmapSpace {
    /// Slab caches that grew, the largest first.
    pub slabs: Vec<RmapSlab>,
    /// Page tables in KiB, minus those that existed before; `None` if the kernel does not report
    /// them.
    pub tables_kib: u64,
    /// Page-table entries in use.
    pub entries: u64,
}

/// Entries of a page table on x86-64.
pub const ENTRIES_PER_TABLE: u64 = 512;
/// Size of a page table in KiB.
const TABLE_KIB: u64 = 4;

impl RmapSpace {
    /// Returns the entries in use per page table; `None` without page tables.
    #[must_use]
    pub fn entries_per_table(&self) -> Option<f64> {
        let tables = self.tables_kib / TABLE_KIB;
        (tables > 0).then(|| self.entries as f64 / tables as f64)
    }

    /// Returns the used share of page-table entries, in percent.
    #[must_use]
    pub fn utilisation_percent(&self) -> Option<f64> {
        self.entries_per_table()
            .map(|entries| 100.0 * entries / ENTRIES_PER_TABLE as f64)
    }
}

/// What was measured in a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RmapMeasured {
    /// The cost of each operation, or why there is none.
    pub costs: Vec<(RmapOperation, Result<RmapCost, String>)>,
    /// The memory of the mappings.
    pub space: RmapSpace,
}

/// The result of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RmapOutcome {
    /// The costs and the space that were measured.
    Measured(RmapMeasured),
    /// The guest has too little memory.
    DoesNotFit {
        /// The needed memory in KiB, extrapolated from the processes that fitted.
        needed_kib: u64,
        /// The available memory in KiB.
        available_kib: u64,
    },
    /// The kernel lacks a needed feature; the text names it.
    Unsupported(String),
    /// The kernel failed; the text says how.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::{RmapCase, RmapCaseError, RmapCost, RmapOperation, RmapSpace};

    #[test]
    fn cases_are_known_by_their_words() {
        for case in RmapCase::ALL {
            assert_eq!(case.name().parse(), Ok(case));
            assert!(case.about().len() <= 90 && RmapOperation::Unmap.is_of(case));
        }
        assert_eq!(
            "files".parse::<RmapCase>(),
            Err(RmapCaseError("files".into()))
        );
        let names = RmapCase::ALL.map(RmapCase::name).join(", ");
        assert!(RmapCaseError(String::new()).to_string().ends_with(&names));
    }

    #[test]
    fn utilisation_is_of_all_entries() {
        let space = |entries, tables_kib| RmapSpace {
            entries,
            tables_kib,
            ..RmapSpace::default()
        };
        assert_eq!(space(1024, 8).utilisation_percent(), Some(100.0));
        assert_eq!(space(2, 8).entries_per_table(), Some(1.0));
        assert_eq!(space(1, 0).utilisation_percent(), None);
        assert_eq!(
            RmapCost {
                ticks: 10,
                count: 0
            }
            .each(),
            None
        );
    }
}
