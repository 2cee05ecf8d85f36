//! Thins the memory map of a new dump: a page of records that are all of dropped pages is replaced
//! by a standard one, and as these are equal, they are stored once.
//!
//! Unlike makedumpfile's `-e` it does not drop them: a reader that walks all records finds one for
//! each page, which looks like an unused page.

use std::ops::Range;

use crate::bytes::{put, u32_at, u64_at};
use crate::error::DumpError;
use crate::filter::Filter;
use crate::layout::TypeTest;
use crate::paging::Walker;
use crate::plan::Plan;
use crate::reader::Reader;

/// The location of the records, and their replacement.
#[derive(Debug)]
pub(crate) struct Thin {
    /// Physical addresses of records, by address, without overlaps; and the page of the first
    /// record.
    extents: Vec<(Range<u64>, u64)>,
    /// Bytes of a record.
    record: usize,
    flags: usize,
    page_type: usize,
    buddy: TypeTest,
    /// The flag bits with node and zone.
    place: u64,
}

/// Most bits of the zone (`ZONES_SHIFT` in include/linux/page-flags-layout.h); they and those of
/// the node are the topmost of the flags.
const ZONE_BITS: u32 = 3;

impl Thin {
    /// Finds the records.
    ///
    /// # Errors
    /// If the layout of records is not supported.
    pub(crate) fn new(
        reader: &mut Reader<'_>,
        filter: &Filter,
        plan: &Plan<'_>,
    ) -> Result<Self, DumpError> {
        let map = filter.map();
        let layout = filter.layout();
        let page = reader.dump().page_size();
        let record = map.record() as u64;
        if !page.is_multiple_of(record * 64) {
            return Err(DumpError::Usage(format!(
                "--exclude-vmemmap: records of {record} bytes do not fill pages of {page} in rows of 64"
            )));
        }
        let nodes = reader
            .dump()
            .info()
            .size("LENGTH", "node_data")
            .unwrap_or(1)
            .clamp(1, 1 << 16);
        let node_bits = nodes.next_power_of_two().trailing_zeros();
        let place = u64::MAX << (64 - node_bits - ZONE_BITS);
        let extents = apart(extents(reader, filter, plan));
        let flags = layout.flags;
        let page_type = layout.page_type;
        let buddy = layout.buddy;
        Ok(Self {
            extents,
            record: record as usize,
            flags,
            page_type,
            buddy,
            place,
        })
    }

    /// Returns the replacement of a page; `None` if it stays.
    pub(crate) fn page(
        &self,
        plan: &Plan<'_>,
        number: u64,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>, DumpError> {
        let dump = plan.dump();
        let address = number * dump.page_size();
        let n = self
            .extents
            .partition_point(|(range, _)| range.end <= address);
        let Some((range, first)) = self
            .extents
            .get(n)
            .filter(|(range, _)| range.start <= address)
        else {
            return Ok(None);
        };
        let first = first + (address - range.start) / self.record as u64;
        let count = bytes.len() / self.record;
        let mut memory = [0];
        for at in (first..first + count as u64).step_by(64) {
            dump.memory(at, &mut memory)?;
            // Records without memory may say why there is none.
            if memory != [u64::MAX] || plan.word(at)? != 0 {
                return Ok(None);
            }
        }
        Ok(Some(
            bytes
                .chunks_exact(self.record)
                .flat_map(|record| self.replace(record))
                .collect(),
        ))
    }

    /// Returns the replacement of a record: free blocks keep theirs, because readers walk their
    /// lists.
    fn replace(&self, record: &[u8]) -> Vec<u8> {
        if u32_at(record, self.page_type).is_some_and(|page_type| self.buddy.holds(page_type)) {
            return record.to_vec();
        }
        let mut blank = vec![0; record.len()];
        // Node and zone stay: readers find a page's zone by them.
        let flags = u64_at(record, self.flags).unwrap_or_default() & self.place;
        put(&mut blank, self.flags, flags.to_le_bytes());
        // No mapping, by the kernel's count, and no type.
        put(&mut blank, self.page_type, u32::MAX.to_le_bytes());
        blank
    }
}

/// Returns the physical addresses of the records of a plan's blocks, in the order of their pages,
/// each with the page of the first record.
pub(crate) fn extents(
    reader: &mut Reader<'_>,
    filter: &Filter,
    plan: &Plan<'_>,
) -> Vec<(Range<u64>, u64)> {
    let map = filter.map();
    let page = reader.dump().page_size();
    let record = map.record() as u64;
    let mut extents = Vec::new();
    let mut walker = Walker::new(map.architecture());
    for n in 0..plan.blocks() {
        let pages = plan.pages(n);
        let Some(start) = map.address(pages.start / map.section_pages(), pages.start) else {
            continue;
        };
        let size = map.section_pages() * record;
        let mut at = 0;
        while at < size {
            // Unmapped records have no physical location.
            match walker.walk(reader, start.wrapping_add(at)) {
                Ok(found) if found.physical % page == 0 => {
                    let length = found.length.min(size - at);
                    extents.push((
                        found.physical..found.physical + length,
                        pages.start + at / record,
                    ));
                    at += length;
                }
                _ => at += page,
            }
        }
    }
    extents
}

/// Removes overlaps: records of large pages that were given back share pages of records (HVO), and
/// a statement about one is not true of all.
fn apart(mut extents: Vec<(Range<u64>, u64)>) -> Vec<(Range<u64>, u64)> {
    extents.sort_by_key(|(range, _)| range.start);
    let mut done: Vec<(Range<u64>, u64)> = Vec::new();
    let mut end = 0;
    for (range, first) in extents {
        if range.start >= end {
            end = range.end;
            done.push((range, first));
            continue;
        }
        // Drop the rest of the one before, and the covered part of this one: that only thins less.
        if let Some((last, _)) = done.last_mut() {
            last.end = last.end.min(range.start);
        }
        end = end.max(range.end);
    }
    done.retain(|(range, _)| !range.is_empty());
    done
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn shared_pages_of_records_are_skipped() {
        assert_eq!(
            apart(vec![(20..30, 7), (0..10, 1)]),
            [(0..10, 1), (20..30, 7)]
        );
        assert_eq!(
            apart(vec![(0..10, 1), (5..7, 2), (6..12, 3), (12..14, 4)]),
            [(0..5, 1), (12..14, 4)]
        );
        assert_eq!(apart(vec![(0..10, 1), (0..10, 2)]), []);
    }
}
