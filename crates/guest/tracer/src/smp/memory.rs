//! What guest memory is: asks the kernel's own records of pages, slab caches and processors, at the
//! offsets that the marks name (`crates/lab/lab/src/memory.rs` takes them from the kernel's types
//! and symbols). Symbols and fields are left to others.

use std::collections::{BTreeMap, HashMap};

/// Where the kernel's image and its modules begin (Documentation/arch/x86/x86_64/mm.rst).
const IMAGE: u64 = 0xffff_ffff_8000_0000;
/// Where all memory is mapped, and where its records are, if no variable says so (as above; four
/// levels, no KASLR).
const DIRECT: u64 = 0xffff_8880_0000_0000;
const RECORDS: u64 = 0xffff_ea00_0000_0000;
/// Sizes of these regions at most (as above).
const DIRECT_SIZE: u64 = 64 << 40;
const RECORDS_SIZE: u64 = 1 << 40;
const PAGE_BITS: u32 = 12;
/// Most caches of the kernel's list, and the longest name of one.
const CACHES_MAX: usize = 4000;
const NAME_MAX: usize = 64;
const PROCESSORS: u64 = 8;

/// Reads guest memory at a virtual address of the processor that executes.
pub(super) type Read<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// A cache of the kernel's allocator.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cache {
    name: String,
    size: u64,
    /// Bytes before an object, with debugging.
    pad: u64,
}

/// What is known of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: BTreeMap<String, u64>,
    caches: HashMap<u64, Cache>,
    /// The first of the kernel's list when that was read: a new cache is put in front
    /// (`create_cache` in mm/slab_common.c).
    newest: Option<u64>,
    bases: Option<Bases>,
}

/// Where the kernel has its memory.
#[derive(Debug, Clone)]
struct Bases {
    /// The records of pages, and the size of one.
    records: u64,
    record: u64,
    /// Where all memory is mapped.
    direct: u64,
    /// By how much each processor's memory is away from its symbols.
    offsets: Vec<u64>,
}

impl Memory {
    pub(crate) fn new(known: BTreeMap<String, u64>) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    fn value(&self, read: Read<'_>, variable: &str) -> Option<u64> {
        number(read, *self.known.get(variable)?)
    }

    fn bases(&mut self, read: Read<'_>) -> Bases {
        if let Some(bases) = &self.bases {
            return bases.clone();
        }
        let table = self.known.get("__per_cpu_offset");
        let offset = |index| number(read, table?.checked_add(8 * index)?);
        let offsets = (0..PROCESSORS).map_while(offset).collect();
        let records = self.value(read, "vmemmap_base").unwrap_or(RECORDS);
        let direct = self.value(read, "page_offset_base").unwrap_or(DIRECT);
        let record = self.known.get("page").copied().unwrap_or(64).max(1);
        let bases = Bases {
            records,
            record,
            direct,
            offsets,
        };
        self.bases.insert(bases).clone()
    }

    /// Returns what a word is, by its virtual and physical address: `symbol:ADDRESS` in the
    /// kernel's image, `cpu:ADDRESS` for the symbol of one processor's memory,
    /// `allocated:OFFSET` behind its symbols, `page:OFFSET` in the record of a page, `node:OFFSET`
    /// in that of a node, `cache:OFFSET:NAME` in an object of a slab
    /// cache, `user:ADDRESS`; `anon` and `file` for pages of such memory, `other` for other pages,
    /// `mapped` for what is mapped elsewhere, such as stacks.
    pub(crate) fn place(&mut self, read: Read<'_>, address: u64, physical: u64) -> String {
        if address >> 63 == 0 {
            return format!("user:{address:x}");
        }
        if address >= IMAGE {
            return format!("symbol:{address:x}");
        }
        let bases = self.bases(read);
        let Bases {
            records,
            record,
            direct,
            ..
        } = bases;
        let (start, end) = (
            self.known.get("__per_cpu_start"),
            self.known.get("__per_cpu_end"),
        );
        if let (Some(start), Some(end)) = (start, end) {
            // The rest of the first chunk is for allocations: later chunks are mapped elsewhere
            // (mm/percpu.c).
            let unit = self
                .value(read, "pcpu_unit_size")
                .map_or(0, |size| size & 0xffff_ffff);
            let symbol = |offset: &u64| {
                Some(address.wrapping_sub(*offset))
                    .filter(|at| (*start..(start + unit).max(*end)).contains(at))
            };
            if let Some(symbol) = bases.offsets.iter().find_map(symbol) {
                return if symbol < *end {
                    format!("cpu:{symbol:x}")
                } else {
                    format!("allocated:{:x}", symbol - end)
                };
            }
        }
        if (records..records + RECORDS_SIZE).contains(&address) {
            return format!("page:{:x}", (address - records) % record);
        }
        if let Some(offset) = self.of_node(read, address) {
            return format!("node:{offset:x}");
        }
        if !(direct..direct + DIRECT_SIZE).contains(&address) {
            return "mapped".to_owned();
        }
        let page = records + (physical >> PAGE_BITS) * record;
        self.of_page(read, page, &bases, address)
            .unwrap_or_else(|| "other".to_owned())
    }

    /// Returns how far into the record of the first node with memory an address is, if it is there.
    fn of_node(&self, read: Read<'_>, address: u64) -> Option<u64> {
        let node = self.value(read, "node_data")?;
        let size = *self.known.get("pglist_data")?;
        address.checked_sub(node).filter(|offset| *offset < size)
    }

    /// Returns what a word is by the record of its page.
    fn of_page(
        &mut self,
        read: Read<'_>,
        page: u64,
        bases: &Bases,
        address: u64,
    ) -> Option<String> {
        let compound = number(read, page + self.known.get("page.compound_head")?)?;
        let head = if compound & 1 == 1 {
            compound - 1
        } else {
            page
        };
        let cache = number(read, head + self.known.get("slab.slab_cache")?)?;
        if let Some(cache) = self.cache(read, cache) {
            let first =
                bases.direct + ((head.checked_sub(bases.records)? / bases.record) << PAGE_BITS);
            let offset = address.checked_sub(first)? % cache.size.max(1);
            return Some(format!(
                "cache:{:x}:{}",
                offset.saturating_sub(cache.pad),
                cache.name
            ));
        }
        let mapping = number(read, head + self.known.get("page.mapping")?)?;
        // PAGE_MAPPING_ANON (include/linux/page-flags.h).
        let kind = match (mapping & 1, mapping >> 63) {
            (1, _) => "anon",
            (_, 1) => "file",
            _ => "other",
        };
        Some(kind.to_owned())
    }

    /// Returns the cache at an address, if there is one.
    fn cache(&mut self, read: Read<'_>, address: u64) -> Option<Cache> {
        if address >> 63 == 0 {
            return None;
        }
        if !self.caches.contains_key(&address) {
            // It may be new.
            let newest = self
                .known
                .get("slab_caches")
                .and_then(|head| number(read, *head));
            if newest != self.newest {
                self.caches = self.list(read).unwrap_or_default();
                self.newest = newest;
            }
        }
        self.caches.get(&address).cloned()
    }

    /// Returns all caches, by address.
    fn list(&self, read: Read<'_>) -> Option<HashMap<u64, Cache>> {
        let field = |name: &str| self.known.get(name).copied();
        let head = field("slab_caches")?;
        let (link, name, size) = (
            field("kmem_cache.list")?,
            field("kmem_cache.name")?,
            field("kmem_cache.size")?,
        );
        let (mut caches, mut next) = (HashMap::new(), number(read, head)?);
        while next != head && caches.len() < CACHES_MAX {
            let cache = next.wrapping_sub(link);
            let mut bytes = [0; 4];
            let pad = match field("kmem_cache.red_left_pad") {
                Some(pad) if read(cache + pad, &mut bytes) => u64::from(u32::from_le_bytes(bytes)),
                _ => 0,
            };
            if !read(cache.wrapping_add(size), &mut bytes) {
                break;
            }
            let name = text(read, number(read, cache.wrapping_add(name))?);
            let known = Cache {
                name,
                size: u64::from(u32::from_le_bytes(bytes)),
                pad,
            };
            if caches.insert(cache, known).is_some() {
                break;
            }
            next = number(read, next)?;
        }
        Some(caches)
    }
}

fn number(read: Read<'_>, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    read(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
}

/// Returns a name, without what would end a word of the tracer's text.
fn text(read: Read<'_>, address: u64) -> String {
    let byte = |index| {
        let mut bytes = [0];
        read(address + index, &mut bytes)
            .then_some(bytes[0])
            .filter(|byte| *byte != 0)
    };
    let name = (0..NAME_MAX as u64).map_while(byte);
    name.map(|byte| {
        if byte.is_ascii_graphic() {
            char::from(byte)
        } else {
            '_'
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use super::{DIRECT, Memory, RECORDS};

    const LIST: u64 = 0xffff_ffff_8200_0000;
    const CACHE: u64 = DIRECT + 0x1000;
    const NAME: u64 = DIRECT + 0x1800;

    fn memory() -> Memory {
        let known = [
            ("page", 64),
            ("pglist_data", 0x500),
            ("node_data", LIST + 0x300),
            ("page.compound_head", 8),
            ("page.mapping", 24),
            ("slab.slab_cache", 8),
            ("slab_caches", LIST),
            ("kmem_cache.list", 104),
            ("kmem_cache.name", 96),
            ("kmem_cache.size", 24),
            ("__per_cpu_offset", LIST + 0x100),
            ("__per_cpu_start", 0),
            ("__per_cpu_end", 0x3_0000),
            ("pcpu_unit_size", LIST + 0x200),
        ];
        Memory::new(known.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Guest memory with one cache, `mm_struct`, in the pages 16 and 17, whose head is 16; page 20
    /// is anonymous.
    fn guest() -> BTreeMap<u64, Vec<u8>> {
        let number = |value: u64| value.to_le_bytes().to_vec();
        let record = |page: u64| RECORDS + 64 * page;
        BTreeMap::from([
            (LIST, number(CACHE + 104)),
            (CACHE + 104, number(LIST)),
            (CACHE + 96, number(NAME)),
            (CACHE + 24, 1024_u32.to_le_bytes().to_vec()),
            (NAME, b"mm struct\0".to_vec()),
            (LIST + 0x100, number(DIRECT + 0x10_0000)),
            (LIST + 0x300, number(DIRECT + 0x50_0000)),
            (LIST + 0x200, number(0x8_0000)),
            (LIST + 0x108, number(DIRECT + 0x20_0000)),
            (record(16) + 8, number(CACHE)),
            (record(16) + 24, number(0)),
            (record(17) + 8, number(record(16) + 1)),
            (record(20) + 8, number(0xdead_0000_0000_0000)),
            (record(20) + 24, number(DIRECT + 0x9001)),
        ])
    }

    fn place(address: u64, physical: u64) -> String {
        let (guest, reads) = (guest(), Cell::new(0));
        let read = |address: u64, to: &mut [u8]| {
            reads.set(reads.get() + 1);
            let Some((start, bytes)) = guest.range(..=address).next_back() else {
                return false;
            };
            let found = usize::try_from(address - start)
                .ok()
                .and_then(|at| bytes.get(at..at + to.len()));
            found.is_some_and(|found| {
                to.copy_from_slice(found);
                true
            })
        };
        let place = memory().place(&read, address, physical);
        assert!(reads.get() < 100, "{} reads", reads.get());
        place
    }

    #[test]
    fn objects_of_a_cache_are_found_in_any_page() {
        assert_eq!(place(DIRECT + 0x1_0040, 0x1_0040), "cache:40:mm_struct");
        assert_eq!(
            place(DIRECT + 0x1_1848, 0x1_1848),
            "cache:48:mm_struct",
            "the second page, the third object"
        );
    }

    #[test]
    fn other_memory_is_recognised_by_address() {
        assert_eq!(place(0x7f00_1040, 0x1_0040), "user:7f001040");
        assert_eq!(place(LIST + 8, 0x1_0040), "symbol:ffffffff82000008");
        assert_eq!(
            place(DIRECT + 0x20_0020, 0x20_0020),
            "cpu:20",
            "of the second processor"
        );
        assert_eq!(
            place(DIRECT + 0x23_0010, 0x23_0010),
            "allocated:10",
            "behind its symbols"
        );
        assert_eq!(place(RECORDS + 64 * 20 + 52, 0), "page:34");
        assert_eq!(place(DIRECT + 0x50_0080, 0x50_0080), "node:80");
        assert_eq!(place(DIRECT + 0x1_4000, 0x1_4000), "anon");
        assert_eq!(
            place(DIRECT + 0x40_0000, 0x40_0000),
            "other",
            "its record cannot be read"
        );
        assert_eq!(place(0xffff_c900_0000_1000, 0x40_0000), "mapped");
    }
}
