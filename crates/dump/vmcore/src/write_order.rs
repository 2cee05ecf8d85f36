//! The order in which pages are written, for a dump whose writing is interrupted: what readers need
//! to find anything, what they ask for most, the rest of the kernel's memory, and the memory map,
//! of which they read little.

use std::ops::Range;

use crate::bits;
use crate::bytes::{u32_at, u64_at};
use crate::error::DumpError;
use crate::filter::Filter;
use crate::layout::Layout;
use crate::note;
use crate::paging::Walker;
use crate::plan::{Plan, common, without};
use crate::reader::Reader;
use crate::symbols::Symbols;
use crate::thin_vmemmap;

/// Most records that are read for finding slabs: a tenth of a second.
const RECORDS_MAX: usize = 1 << 20;

/// Memory behind the variables of a processor that the kernel keeps for those of modules, and for
/// what it allocates (`PERCPU_MODULE_RESERVE`, `PERCPU_DYNAMIC_RESERVE`).
const DYNAMIC: u64 = 64 << 10;
/// Most memory of the variables of a processor, or of the description of a node.
const AREA_MAX: u64 = 16 << 20;

/// Returns the groups of pages to write before the others, which are those of the memory map:
/// tables of pages and sections, and the kernel's version and its constants since boot, without
/// which crash refuses a file; data of processors and of the kernel; slabs, which hold tasks, and
/// their stacks; the rest of its image; all else.
///
/// The code is not among the first: on a small machine it is as large as all that comes before it,
/// and readers ask for little of it.
pub(crate) fn groups(
    reader: &mut Reader<'_>,
    filter: &Filter,
    plan: &Plan<'_>,
) -> Result<[Vec<Range<u64>>; 5], DumpError> {
    let [mut tables, image] = filter.first(reader);
    let Symbols {
        banner,
        settled,
        settled_end,
        ..
    } = *filter.symbols();
    // The text may reach into a second page.
    tables.extend(page_of(reader, filter, banner).map(|page| page..page + 2));
    // Within the image: the symbols of a damaged dump may be far apart.
    let constants = page_of(reader, filter, settled)
        .zip(page_of(reader, filter, settled_end))
        .map_or(0..0, |(first, last)| first..last + 1);
    tables.extend(common(&constants, &image));
    let page = reader.dump().page_size();
    // libkdumpfile begins with these instead of the kernel's own.
    tables.extend(
        note::qemu_tables(reader.dump().notes())
            .into_iter()
            .map(|table| table / page..table / page + 1),
    );
    let mut data = data(reader, filter, &image);
    data.extend(processor_and_node_pages(reader, filter));
    let mut slabs = slabs(reader, filter, plan)?;
    slabs.extend(vmalloc_pages(reader, filter));
    let records = thin_vmemmap::extents(reader, filter, plan).into_iter();
    let records = bits::merge(
        records
            .map(|(range, _)| range.start / page..range.end.div_ceil(page))
            .collect(),
    );
    Ok([
        tables,
        data,
        slabs,
        image,
        without(0..reader.dump().pages(), &records),
    ])
}

/// Returns the number of the page at a virtual address.
fn page_of(reader: &mut Reader<'_>, filter: &Filter, address: Option<u64>) -> Option<u64> {
    let mut walker = Walker::new(filter.map().architecture());
    Some(walker.walk(reader, address?).ok()?.physical / reader.dump().page_size())
}

/// Returns the part of the image from its writable data on; all of it if the symbol table does not
/// tell where that begins.
fn data(reader: &mut Reader<'_>, filter: &Filter, image: &[Range<u64>]) -> Vec<Range<u64>> {
    let first = page_of(reader, filter, filter.symbols().data).unwrap_or_default();
    image
        .iter()
        .filter(|range| range.end > first)
        .map(|range| range.start.max(first)..range.end)
        .collect()
}

/// Returns the pages with variables of processors and descriptions of nodes.
fn processor_and_node_pages(reader: &mut Reader<'_>, filter: &Filter) -> Vec<Range<u64>> {
    let symbols = filter.symbols();
    let page = reader.dump().page_size();
    let mut walker = Walker::new(filter.map().architecture());
    let node = reader
        .dump()
        .info()
        .size("SIZE", "pglist_data")
        .unwrap_or_default() as u64;
    let nodes = symbols
        .nodes(reader, &mut walker)
        .into_iter()
        .map(|start| (start, node));
    let variables = symbols
        .per_cpu
        .zip(symbols.per_cpu_end)
        .and_then(|(start, end)| Some((start, end.checked_sub(start)?)));
    let distances = symbols
        .distances(reader, &mut walker)
        .filter(|_| variables.is_some())
        .unwrap_or_default();
    let (start, size) = variables.unwrap_or_default();
    let variables = distances
        .into_iter()
        .map(|distance| (start.wrapping_add(distance), size + DYNAMIC));
    let mut found = Vec::new();
    for (mut at, size) in nodes.chain(variables) {
        let mut left = size.min(AREA_MAX);
        while left > 0
            && let Ok(mapping) = walker.walk(reader, at)
        {
            let length = mapping.length.min(left);
            found.push(mapping.physical / page..(mapping.physical + length).div_ceil(page));
            at = at.wrapping_add(length);
            left -= length;
        }
    }
    found
}

/// Returns the pages that the kernel maps one by one: stacks and tables.
fn vmalloc_pages(reader: &mut Reader<'_>, filter: &Filter) -> Vec<Range<u64>> {
    let mut walker = Walker::new(filter.map().architecture());
    let page = reader.dump().page_size();
    let Some(area) = filter.symbols().vmalloc(reader, &mut walker) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    walker.range(reader, area, |_, physical, length| {
        found.push(physical / page..(physical + length).div_ceil(page));
    });
    found
}

/// Finds slabs among the kept pages.
fn slabs(
    reader: &mut Reader<'_>,
    filter: &Filter,
    plan: &Plan<'_>,
) -> Result<Vec<Range<u64>>, DumpError> {
    let map = filter.map();
    let layout = filter.layout();
    let size = map.record();
    let mut walker = Walker::new(map.architecture());
    let mut words = vec![0; plan.words()];
    let mut found = Vec::<Range<u64>>::new();
    let mut left = RECORDS_MAX;
    for n in 0..plan.blocks() {
        let first = plan.pages(n).start;
        let Some(start) = map
            .address(first / map.section_pages(), first)
            .filter(|_| !plan.is_empty(n))
        else {
            continue;
        };
        plan.read(n, &mut words)?;
        for run in bits::runs(&words) {
            let address = start.wrapping_add((run.start * size) as u64);
            // Pages without readable records are written with the others.
            let Ok(records) = walker.read(reader, address, run.len() * size) else {
                continue;
            };
            let mut is_slab = false;
            for (at, record) in records.chunks_exact(size).enumerate() {
                let tail = layout
                    .head_pointer
                    .and_then(|at| u64_at(record, at))
                    .is_some_and(|head| head & 1 == 1);
                // A tail belongs to the head before it.
                is_slab = if tail {
                    is_slab
                } else {
                    has_slab(layout, record)
                };
                let page = first + (run.start + at) as u64;
                match found.last_mut().filter(|last| is_slab && last.end == page) {
                    Some(last) => last.end += 1,
                    None if is_slab => found.push(page..page + 1),
                    None => {}
                }
            }
            left = left.saturating_sub(run.len());
            if left == 0 {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

fn has_slab(layout: &Layout, record: &[u8]) -> bool {
    let flags = u64_at(record, layout.flags).unwrap_or_default();
    let kind = u32_at(record, layout.page_type).unwrap_or(u32::MAX);
    flags & layout.slab.flag != 0 || layout.slab.kind.holds(kind)
}
