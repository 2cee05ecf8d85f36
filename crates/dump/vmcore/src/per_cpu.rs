//! Free pages on per-processor lists (`struct per_cpu_pages`, `include/linux/mmzone.h`).
//!
//! Their records look like unowned pages, such as those of drivers: no flag, no type, no reference.
//! Only the lists show that they are free, so these are walked, and trusted as long as each link
//! leads back. Other filters ignore them, but after large frees they hold an eighth of all memory.

use std::ops::Range;

use crate::btf::Types;
use crate::bytes::{u32_at, u64_at};
use crate::memmap::MemoryMap;
use crate::note::Info;
use crate::paging::Walker;
use crate::reader::Reader;
use crate::symbols::{Symbols, number};

/// Most list heads: those of the largest machines.
const SETS_MAX: usize = 1 << 20;
const ZONES_MAX: u32 = 8;
const LISTS_MAX: usize = 64;
/// Bytes of a list's head: two pointers.
const HEAD: usize = 16;
/// Lists are by order and mobility: orders 0 to 3 (`PAGE_ALLOC_COSTLY_ORDER`), then huge pages.
const LOW_ORDERS: usize = 4;

/// The locations of the lists.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The virtual address of each `struct per_cpu_pages`.
    sets: Vec<u64>,
    /// The offset of the list heads in it.
    heads: Range<usize>,
    kinds: usize,
    lru: usize,
    references: usize,
}

/// The layout of the involved structures.
struct Shape {
    node_zones: usize,
    zone_count: usize,
    zone_size: usize,
    /// The offset of a zone's sets.
    sets: usize,
    lists: Lists,
}

impl Shape {
    fn new(info: &Info, types: &Types) -> Option<Self> {
        let zone = types.structure("zone")?;
        let pages = types.structure("per_cpu_pages")?;
        // Since Linux kernel commit 28f836b6777b ("mm/page_alloc: split per cpu page lists and zone
        // stats") (in v5.14) the zone has the set itself; before, the set was the first
        // field of another structure.
        let (sets, first) = match types.member(zone, "per_cpu_pageset") {
            Some(sets) => (sets, 0),
            None => (
                types.member(zone, "pageset")?,
                types
                    .member(types.structure("per_cpu_pageset")?, "pcp")?
                    .offset,
            ),
        };
        let lists = types.member(pages, "lists")?;
        let count = types
            .length(lists.kind)
            .filter(|count| *count <= LISTS_MAX)?;
        let start = first
            .checked_add(lists.offset)
            .filter(|start| *start < 4096)?;
        let kinds = usize::try_from(types.enumerator("MIGRATE_PCPTYPES")?)
            .ok()
            .filter(|kinds| (1..=8).contains(kinds))?;
        Some(Self {
            node_zones: info.size("OFFSET", "pglist_data.node_zones")?,
            zone_count: info.size("OFFSET", "pglist_data.nr_zones")?,
            zone_size: info.size("SIZE", "zone")?,
            sets: sets.offset,
            lists: Lists {
                sets: Vec::new(),
                heads: start..start + count * HEAD,
                kinds,
                lru: info.size("OFFSET", "page.lru")?,
                references: info
                    .size("OFFSET", "page._refcount")
                    .or_else(|| info.size("OFFSET", "page._count"))?,
            },
        })
    }
}

/// One list of blocks of an order: the addresses of its head and of its first element.
#[derive(Debug, Clone, Copy)]
struct List {
    head: u64,
    first: u64,
    order: u32,
}

impl Lists {
    /// Finds the lists of all processors, or says why it cannot.
    pub(crate) fn find(
        reader: &mut Reader<'_>,
        info: &Info,
        map: &MemoryMap,
        types: &Types,
        symbols: &Symbols,
    ) -> Result<Self, &'static str> {
        let mut walker = Walker::new(map.architecture());
        let walker = &mut walker;
        let shape =
            Shape::new(info, types).ok_or("the kernel's types (BTF) do not describe them")?;
        let distances = symbols.distances(reader, walker).ok_or(
            "the kernel's symbol table (kallsyms) cannot be read, or lacks __per_cpu_offset",
        )?;
        let mut sets = Vec::new();
        for node in symbols.nodes(reader, walker) {
            // Bounded: a number from a damaged dump does not decide how long this takes.
            let count = number(reader, walker, node.wrapping_add(shape.zone_count as u64))
                .unwrap_or_default()
                .min(ZONES_MAX);
            for zone in 0..u64::from(count) {
                let zone =
                    node.wrapping_add(shape.node_zones as u64 + zone * shape.zone_size as u64);
                let Ok(set) = walker.u64(reader, zone.wrapping_add(shape.sets as u64)) else {
                    continue;
                };
                sets.extend(distances.iter().map(|distance| set.wrapping_add(*distance)));
                if sets.len() > SETS_MAX {
                    return Err("there are more of them than any machine has");
                }
            }
        }
        // Repeated entries count once.
        sets.sort_unstable();
        sets.dedup();
        if sets.is_empty() {
            return Err("no zone of the kernel leads to them");
        }
        Ok(Self {
            sets,
            ..shape.lists
        })
    }

    /// Calls `each` with every page of the blocks on the lists, and its record.
    pub(crate) fn walk(
        &self,
        reader: &mut Reader<'_>,
        map: &MemoryMap,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        let mut walker = Walker::new(map.architecture());
        let page_bits = reader.dump().page_size().trailing_zeros();
        for set in &self.sets {
            let first = set.wrapping_add(self.heads.start as u64);
            let Ok(heads) = walker.read(reader, first, self.heads.len()) else {
                continue;
            };
            for (n, head) in heads.chunks_exact(HEAD).enumerate() {
                let order = match n / self.kinds {
                    order if order < LOW_ORDERS => order as u32,
                    // Huge pages: as large as one table of page tables maps.
                    _ => page_bits - 3,
                };
                let list = first.wrapping_add((n * HEAD) as u64);
                let next = u64_at(head, 0).unwrap_or(list);
                self.follow(
                    List {
                        head: list,
                        first: next,
                        order,
                    },
                    reader,
                    &mut walker,
                    map,
                    each,
                );
            }
        }
    }

    /// Follows one list while each record leads back to the one before.
    fn follow(
        &self,
        list: List,
        reader: &mut Reader<'_>,
        walker: &mut Walker<'_>,
        map: &MemoryMap,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        let List { head, first, order } = list;
        // This ends: a list whose links all lead back meets no element twice.
        let mut last = head;
        let mut at = first;
        while at != head {
            let address = at.wrapping_sub(self.lru as u64);
            // Blocks are aligned to their size, like all blocks of the buddy allocator.
            let Some(page) = map.page_at(address).filter(|page| page % (1 << order) == 0) else {
                return;
            };
            let mut next = None;
            for n in 0..1 << order {
                let Ok(place) = walker.walk(reader, address.wrapping_add(n * map.record() as u64))
                else {
                    return;
                };
                let Ok(record) = reader.bytes(place.physical, map.record()) else {
                    return;
                };
                // A block with references was taken, or is just being added.
                let unused = u32_at(record, self.references) == Some(0);
                if n == 0 {
                    // The link back shows that the block is in this list now, and not only the
                    // rest of an older one.
                    if !unused || u64_at(record, self.lru + 8) != Some(last) {
                        return;
                    }
                    next = u64_at(record, self.lru);
                }
                if unused {
                    each(page + n, record);
                }
            }
            let Some(next) = next else { return };
            (last, at) = (at, next);
        }
    }
}
