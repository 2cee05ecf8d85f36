//! Addresses of variables and places in the kernel's image that the note does not have, from its
//! symbol table.
//!
//! `per_cpu` and `order` say what is there.

use std::ops::RangeInclusive;

use crate::bytes::{u32_at, u64_at};
use crate::kallsyms;
use crate::paging::Walker;
use crate::reader::Reader;

const PROCESSORS_MAX: u64 = 8192;
const NODES_MAX: u64 = 1024;

/// Virtual addresses, as far as the symbol table tells; not all kernels have all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Symbols {
    pub(crate) types: Option<u64>,
    /// The pointer to the table of memory sections.
    pub(crate) mem_section: Option<u64>,
    /// The text of the kernel's version.
    pub(crate) banner: Option<u64>,
    /// Data that is constant after boot, such as the address of the direct map, and its end.
    pub(crate) settled: Option<u64>,
    pub(crate) settled_end: Option<u64>,
    /// Writable data, which is last in the image.
    pub(crate) data: Option<u64>,
    /// Variables with the first address of the area for memory in single pages (vmalloc), and of
    /// the next area.
    vmalloc: Option<u64>,
    vmalloc_end: Option<u64>,
    /// Where variables of processors begin and end, without the processor's distance.
    pub(crate) per_cpu: Option<u64>,
    pub(crate) per_cpu_end: Option<u64>,
    /// The distance of each processor's variables from there.
    distances: Option<u64>,
    processors: Option<u64>,
    node: Option<u64>,
    nodes: Option<u64>,
    node_count: Option<u64>,
}

impl Symbols {
    /// Reads them; all are empty if the dump lacks the symbol table.
    pub(crate) fn find(reader: &mut Reader<'_>, walker: &mut Walker<'_>) -> Self {
        let mut symbols = Self::default();
        let mut wanted = [
            ("__start_BTF", &mut symbols.types),
            ("mem_section", &mut symbols.mem_section),
            ("linux_banner", &mut symbols.banner),
            ("__start_ro_after_init", &mut symbols.settled),
            ("__end_ro_after_init", &mut symbols.settled_end),
            ("_sdata", &mut symbols.data),
            ("vmalloc_base", &mut symbols.vmalloc),
            ("vmemmap_base", &mut symbols.vmalloc_end),
            ("__per_cpu_start", &mut symbols.per_cpu),
            ("__per_cpu_end", &mut symbols.per_cpu_end),
            ("__per_cpu_offset", &mut symbols.distances),
            ("nr_cpu_ids", &mut symbols.processors),
            ("contig_page_data", &mut symbols.node),
            ("node_data", &mut symbols.nodes),
            ("nr_node_ids", &mut symbols.node_count),
        ];
        let found = kallsyms::addresses(reader, walker, wanted.each_ref().map(|(name, _)| *name));
        wanted
            .iter_mut()
            .zip(found)
            .for_each(|((_, symbol), found)| **symbol = found);
        symbols
    }

    /// Returns the addresses of the area for memory in single pages: stacks, modules on some
    /// architectures, large tables. The note of 64-bit Arm has them.
    pub(crate) fn vmalloc(
        &self,
        reader: &mut Reader<'_>,
        walker: &mut Walker<'_>,
    ) -> Option<RangeInclusive<u64>> {
        let info = reader.dump().info();
        let given = info.number("VMALLOC_START").zip(info.number("VMALLOC_END"));
        let (start, end) = match given {
            Some((start, end)) => (start.cast_unsigned(), end.cast_unsigned()),
            None => (
                walker.u64(reader, self.vmalloc?).ok()?,
                walker.u64(reader, self.vmalloc_end?).ok()?,
            ),
        };
        Some(start..=end.checked_sub(1)?).filter(|range| !range.is_empty())
    }

    /// Returns the address of each node's `pglist_data`.
    pub(crate) fn nodes(&self, reader: &mut Reader<'_>, walker: &mut Walker<'_>) -> Vec<u64> {
        if let Some(node) = self.node {
            return vec![node];
        }
        let Some(table) = self.nodes else {
            return Vec::new();
        };
        let count = self
            .node_count
            .and_then(|at| number(reader, walker, at))
            .map_or(1, u64::from);
        numbers(reader, walker, table, count.min(NODES_MAX))
            .into_iter()
            .filter(|node| *node != 0)
            .collect()
    }

    /// Returns the distance of each processor's variables; `None` if the table does not tell.
    pub(crate) fn distances(
        &self,
        reader: &mut Reader<'_>,
        walker: &mut Walker<'_>,
    ) -> Option<Vec<u64>> {
        let count = number(reader, walker, self.processors?).map_or(0, u64::from);
        Some(numbers(
            reader,
            walker,
            self.distances?,
            count.min(PROCESSORS_MAX),
        ))
    }
}

/// Reads a number of 32 bits.
pub(crate) fn number(
    reader: &mut Reader<'_>,
    walker: &mut Walker<'_>,
    address: u64,
) -> Option<u32> {
    u32_at(&walker.read(reader, address, 4).ok()?, 0)
}

/// Reads a table of addresses; empty if it is unreadable.
fn numbers(reader: &mut Reader<'_>, walker: &mut Walker<'_>, address: u64, count: u64) -> Vec<u64> {
    let bytes = walker
        .read(
            reader,
            address,
            usize::try_from(count * 8).unwrap_or_default(),
        )
        .unwrap_or_default();
    bytes
        .chunks_exact(8)
        .filter_map(|number| u64_at(number, 0))
        .collect()
}
