//! The order in which pages are written, for a dump whose writing is interrupted: what readers need to find anything, what they ask
//! for most, the rest of the kernel's memory, and the memory map, of which they read little.

use std::ops::Range;

use crate::bits;
use crate::bytes::{u32_at, u64_at};
use crate::error::DumpError;
use crate::filter::Filter;
use crate::layout::Layout;
use crate::paging::Walker;
use crate::plan::{Plan, without};
use crate::reader::Reader;
use crate::thin;

/// Most records that are read for finding slabs: a tenth of a second.
const RECORDS_MAX: usize = 1 << 20;

/// Returns the groups of pages to write before the others, which are those of the memory map: tables of pages and sections; the
/// kernel's data; slabs, which hold tasks; the rest of its image; all else.
pub(crate) fn groups(
    reader: &mut Reader<'_>,
    filter: &Filter,
    plan: &Plan<'_>,
) -> Result<[Vec<Range<u64>>; 5], DumpError> {
    let [tables, image] = filter.first(reader);
    let data = data(reader, filter, &image);
    let slabs = slabs(reader, filter, plan)?;
    let page = reader.dump().page_size();
    let records = thin::extents(reader, filter, plan).into_iter();
    let records = bits::merge(records.map(|(range, _)| range.start / page..range.end.div_ceil(page)).collect());
    Ok([tables, data, slabs, image, without(0..reader.dump().pages(), &records)])
}

/// Returns the part of the image from its writable data on; all of it if the symbol table does not tell where that begins.
fn data(reader: &mut Reader<'_>, filter: &Filter, image: &[Range<u64>]) -> Vec<Range<u64>> {
    let page = reader.dump().page_size();
    let mut walker = Walker::new(filter.map().architecture());
    let first =
        filter.data().and_then(|start| Some(walker.walk(reader, start).ok()?.physical / page)).unwrap_or_default();
    image.iter().filter(|range| range.end > first).map(|range| range.start.max(first)..range.end).collect()
}

/// Finds slabs among the kept pages.
fn slabs(reader: &mut Reader<'_>, filter: &Filter, plan: &Plan<'_>) -> Result<Vec<Range<u64>>, DumpError> {
    let (map, layout) = (filter.map(), filter.layout());
    let size = map.record();
    let mut walker = Walker::new(map.architecture());
    let (mut words, mut found, mut left) = (vec![0; plan.words()], Vec::<Range<u64>>::new(), RECORDS_MAX);
    for n in 0..plan.blocks() {
        let first = plan.pages(n).start;
        let Some(start) = map.address(first / map.section_pages(), first).filter(|_| !plan.is_empty(n)) else {
            continue;
        };
        plan.read(n, &mut words)?;
        for run in bits::runs(&words) {
            let address = start.wrapping_add((run.start * size) as u64);
            // Pages without readable records are written with the others.
            let Ok(records) = walker.read(reader, address, run.len() * size) else { continue };
            let mut is_slab = false;
            for (at, record) in records.chunks_exact(size).enumerate() {
                let tail = layout.head_pointer.and_then(|at| u64_at(record, at)).is_some_and(|head| head & 1 == 1);
                is_slab = if tail { is_slab } else { has_slab(layout, record) };
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
