//! The memory map: where the kernel keeps the `struct page` of each page, by sections (sparsemem).

use std::ops::Range;

use crate::bits;
use crate::bytes::u64_at;
use crate::description::Description;
use crate::dump::Dump;
use crate::error::{DumpError, MemoryError};
use crate::note::Info;
use crate::paging::{Architecture, Walker, architecture};
use crate::reader::Reader;
use crate::zones::DeviceZone;

/// Flags of `section_mem_map` (`include/linux/mmzone.h`).
const PRESENT: u64 = 1;
const HAS_MEM_MAP: u64 = 2;
/// Since Linux kernel commit 2d070eab2e82 ("mm: consider zone which is not fully populated to have
/// holes") (in v4.13).
const IS_ONLINE: u64 = 4;
/// The section has memory of a device (`SECTION_TAINT_ZONE_DEVICE`), whose sections are never
/// online. In kernels without CONFIG_ZONE_DEVICE another flag of sections from boot has this bit.
const HAS_DEVICE: u64 = 16;
/// Bits for flags, more than any kernel uses: the map of a section begins at a page.
const FLAGS: u64 = 0xfff;

/// The memory map of a dump.
#[derive(Debug)]
pub struct MemoryMap {
    architecture: Box<dyn Architecture>,
    /// Bytes of a `struct page`.
    record: u64,
    /// Pages of a section, as a power of two.
    section_bits: u32,
    /// Number of each section with a map, and the address that the map of page 0 would have; by
    /// number.
    sections: Vec<(u64, u64)>,
    /// Numbers of the sections that were taken offline, or never online.
    offline: Vec<u64>,
    /// Numbers of those that are memory of a device.
    devices: Vec<u64>,
    /// Physical addresses of the tables that contain them.
    tables: Vec<u64>,
}

/// The layout of the section tables.
struct Sections {
    /// Bytes of a `struct mem_section`.
    size: usize,
    /// Offset of its map's address.
    offset: usize,
    /// Sections in one table.
    per_root: u64,
    roots: u64,
}

/// Smallest section, as a power of two of bytes: the size that one entry of the page tables maps.
const SECTION_BITS_MIN: u32 = 21;
/// Most tables of pages to search.
const TABLES_MAX: usize = 1 << 16;
/// Most sections with memory: four times those of 128 TiB.
const SECTIONS_MAX: usize = 1 << 22;

impl MemoryMap {
    /// Finds the memory map with the note's data, and with the kernel's types where the note lacks
    /// something.
    ///
    /// # Errors
    /// If the dump does not describe it, or the kernel's tables cannot be read.
    pub fn find(reader: &mut Reader<'_>) -> Result<Self, DumpError> {
        let info = reader.dump().info().clone();
        match Self::find_with(reader, &info) {
            Err(DumpError::NoteLacks(_)) => {
                let description = Description::find(reader)?;
                Self::find_with(reader, &description.info)
            }
            found => found,
        }
    }

    /// Finds the memory map with a note's data.
    pub(crate) fn find_with(reader: &mut Reader<'_>, info: &Info) -> Result<Self, DumpError> {
        let dump = reader.dump();
        if dump.are_notes_damaged() {
            return Err(DumpError::NotesDamaged);
        }
        if info.is_empty() {
            return Err(DumpError::NoNote);
        }
        let architecture = architecture(dump.machine(), info)?;
        let record = info.need_size("SIZE", "page")?;
        if !(32..=256).contains(&record) || record % 8 != 0 {
            return Err(info.lies("SIZE(page)".to_owned(), "no struct page has that size"));
        }
        let bits = info.need_number("SECTION_SIZE_BITS")?;
        let page_bits = dump.page_size().trailing_zeros();
        let section_bits = u32::try_from(bits)
            .ok()
            .filter(|bits| (SECTION_BITS_MIN..=36).contains(bits));
        let section_bits = section_bits.ok_or_else(|| {
            info.lies(
                "NUMBER(SECTION_SIZE_BITS)".to_owned(),
                "no section is that large",
            )
        })?;
        let mut map = Self {
            architecture,
            record: record as u64,
            section_bits: section_bits - page_bits,
            sections: Vec::new(),
            offline: Vec::new(),
            devices: Vec::new(),
            tables: Vec::new(),
        };
        let symbol = info.need_symbol("mem_section")?;
        let found = map.read_sections(reader, &Sections::new(info, dump)?, symbol)?;
        // A kernel that ran has memory online: without any, it does not have the flag.
        if found.offline.len() < found.sections.len() {
            map.offline = found.offline;
        }
        map.sections = found.sections;
        map.tables = found.tables;
        Ok(map)
    }

    /// Reads the table of sections, which `SYMBOL(mem_section)` names: by its address or, in
    /// kernels of some years, by the address of the pointer to it (Linux kernel commit
    /// a0b128034e0a ("kdump: write correct address of mem_section into vmcoreinfo") (in
    /// v4.15)). The one that contains maps is right.
    fn read_sections(
        &self,
        reader: &mut Reader<'_>,
        shape: &Sections,
        symbol: u64,
    ) -> Result<SectionTables, DumpError> {
        let found = self.sections_at(reader, shape, symbol)?;
        if !found.sections.is_empty() {
            return Ok(found);
        }
        let pointer = self.walk(reader, symbol).and_then(|at| reader.u64(at));
        let found = match pointer {
            Ok(table) => self.sections_at(reader, shape, table)?,
            Err(_) => SectionTables::default(),
        };
        if found.sections.is_empty() {
            let cause = self
                .walk(reader, symbol)
                .err()
                .unwrap_or(MemoryError::Unmapped(symbol));
            return Err(DumpError::Structure {
                what: "the table of memory sections",
                address: symbol,
                cause,
            });
        }
        Ok(found)
    }

    fn walk(&self, reader: &mut Reader<'_>, address: u64) -> Result<u64, MemoryError> {
        Walker::new(&*self.architecture)
            .walk(reader, address)
            .map(|mapping| mapping.physical)
    }

    /// Reads the sections with memory, from the table at `table`.
    fn sections_at(
        &self,
        reader: &mut Reader<'_>,
        shape: &Sections,
        table: u64,
    ) -> Result<SectionTables, DumpError> {
        let mut walker = Walker::new(&*self.architecture);
        let mut found = SectionTables::default();
        // Other readers want the pointers to all tables, also where there is no memory.
        let page = reader.dump().page_size();
        let start = table - table % page;
        for at in (start..table.saturating_add(shape.roots * 8))
            .step_by(usize::try_from(page).unwrap_or(usize::MAX))
        {
            found
                .tables
                .extend(walker.walk(reader, at).map(|mapping| mapping.physical));
        }
        // Sections without memory in the dump are passed over: the table of a machine of 64 TiB has
        // half a million.
        for extent in reader.dump().extents() {
            let numbers =
                extent.start >> self.section_bits..((extent.end - 1) >> self.section_bits) + 1;
            let from = found
                .sections
                .last()
                .map_or(0, |last| last.0 + 1)
                .max(numbers.start);
            let mut number = from;
            while number < numbers.end {
                let root = number / shape.per_root;
                if root >= shape.roots {
                    return Ok(found);
                }
                let last = ((root + 1) * shape.per_root).min(numbers.end);
                let pointer = table.wrapping_add(root * 8);
                if let Ok((at, maps)) = read_root(reader, &mut walker, shape, pointer) {
                    found.tables.push(at);
                    for number in number..last {
                        let at = usize::try_from(number % shape.per_root).unwrap_or_default()
                            * shape.size
                            + shape.offset;
                        let map = u64_at(&maps, at).unwrap_or_default();
                        if map & PRESENT != 0 && map & HAS_MEM_MAP != 0 {
                            if found.sections.len() == SECTIONS_MAX {
                                let key = "NUMBER(SECTION_SIZE_BITS)".to_owned();
                                return Err(reader
                                    .dump()
                                    .info()
                                    .lies(key, "that makes more sections than any machine has"));
                            }
                            found.sections.push((number, map & !FLAGS));
                            if map & (IS_ONLINE | HAS_DEVICE) == 0 {
                                found.offline.push(number);
                            }
                        }
                    }
                }
                number = last;
            }
        }
        Ok(found)
    }

    /// Returns the size of a `struct page` in bytes.
    #[must_use]
    pub fn record(&self) -> usize {
        // At most 256.
        self.record as usize
    }

    /// Returns the number of pages of a section.
    #[must_use]
    pub fn section_pages(&self) -> u64 {
        1 << self.section_bits
    }

    /// Returns the number of sections with a map.
    #[must_use]
    pub fn sections(&self) -> usize {
        self.sections.len()
    }

    /// Returns whether a section is offline: the kernel uses none of its memory.
    pub(crate) fn is_offline(&self, number: u64) -> bool {
        self.offline.binary_search(&number).is_ok()
    }

    /// Takes sections that are memory of a device out of those that are offline: the flags of
    /// sections do not tell them apart.
    pub(crate) fn find_devices(&mut self, reader: &mut Reader<'_>, zone: DeviceZone) {
        let offline = std::mem::take(&mut self.offline);
        let mut walker = Walker::new(&*self.architecture);
        let (devices, offline) = offline.into_iter().partition(|number| {
            let first = self.pages(*number).start;
            zone.has_section(self.section_pages(), |page| {
                let address = self.address(*number, first + page)?;
                walker.read(reader, address, self.record()).ok()
            })
        });
        drop(walker);
        self.devices = devices;
        self.offline = offline;
    }

    /// Returns whether a section is memory of a device.
    pub(crate) fn is_device(&self, number: u64) -> bool {
        self.devices.binary_search(&number).is_ok()
    }

    /// Returns the pages that hold the records of sections that are not online.
    pub(crate) fn offline_records(&self, reader: &mut Reader<'_>) -> Vec<Range<u64>> {
        let page = reader.dump().page_size();
        let mut walker = Walker::new(&*self.architecture);
        let mut found = Vec::new();
        for number in self.offline.iter().chain(&self.devices) {
            let pages = self.pages(*number);
            let Some(start) = self.address(*number, pages.start) else {
                continue;
            };
            let last = start.saturating_add(self.section_pages() * self.record - 1);
            walker.range(reader, start..=last, |_, physical, length| {
                found.push(physical / page..(physical + length).div_ceil(page));
            });
        }
        bits::merge(found)
    }

    /// Returns the architecture's page tables.
    pub(crate) fn architecture(&self) -> &dyn Architecture {
        &*self.architecture
    }

    /// Returns the virtual address of the record of page `page` in section `number`.
    pub(crate) fn address(&self, number: u64, page: u64) -> Option<u64> {
        let n = self
            .sections
            .binary_search_by_key(&number, |section| section.0)
            .ok()?;
        Some(
            self.sections[n]
                .1
                .wrapping_add(page.wrapping_mul(self.record)),
        )
    }

    /// Returns the page whose record is at a virtual address, near page `near` of section `number`.
    pub(crate) fn page_of(&self, number: u64, address: u64) -> Option<u64> {
        let n = self
            .sections
            .binary_search_by_key(&number, |section| section.0)
            .ok()?;
        let distance = address.wrapping_sub(self.sections[n].1);
        distance
            .is_multiple_of(self.record)
            .then_some(distance / self.record)
    }

    /// Returns the page whose record is at a virtual address, for maps that are one array
    /// (vmemmap).
    pub(crate) fn page_at(&self, address: u64) -> Option<u64> {
        let (first, _) = *self.sections.first()?;
        let page = self.page_of(first, address)?;
        (self.address(page >> self.section_bits, page) == Some(address)).then_some(page)
    }

    /// Returns the pages needed to find all others: tables of pages and of sections.
    pub(crate) fn tables(&self, reader: &mut Reader<'_>) -> Vec<u64> {
        let page = reader.dump().page_size();
        let walker = Walker::new(&*self.architecture);
        let all = self
            .tables
            .iter()
            .copied()
            .chain(walker.tables(reader, TABLES_MAX));
        all.map(|address| address / page).collect()
    }

    /// Returns the pages of section `number`.
    pub(crate) fn pages(&self, number: u64) -> Range<u64> {
        number << self.section_bits..(number + 1) << self.section_bits
    }
}

/// The sections with a map, as in [`MemoryMap`], and the physical addresses of the tables with them.
#[derive(Default)]
struct SectionTables {
    sections: Vec<(u64, u64)>,
    offline: Vec<u64>,
    tables: Vec<u64>,
}

/// Reads a table of sections, through the pointer at virtual address `pointer`, and returns its
/// location.
fn read_root(
    reader: &mut Reader<'_>,
    walker: &mut Walker<'_>,
    shape: &Sections,
    pointer: u64,
) -> Result<(u64, Vec<u8>), MemoryError> {
    let at = walker.walk(reader, pointer)?.physical;
    let root = reader.u64(at)?;
    if root == 0 {
        return Err(MemoryError::Unmapped(root));
    }
    // At most a page.
    let bytes = walker.read(reader, root, shape.per_root as usize * shape.size)?;
    Ok((walker.walk(reader, root)?.physical, bytes))
}

impl Sections {
    fn new(info: &Info, dump: &Dump) -> Result<Self, DumpError> {
        let size = info.need_size("SIZE", "mem_section")?;
        let offset = info.need_size("OFFSET", "mem_section.section_mem_map")?;
        let roots = info.need_size("LENGTH", "mem_section")?;
        if !(8..=256).contains(&size) || offset + 8 > size {
            return Err(info.lies(
                "SIZE(mem_section)".to_owned(),
                "it does not hold its own section_mem_map",
            ));
        }
        // SPARSEMEM_EXTREME: a table is a page (`SECTIONS_PER_ROOT`).
        let per_root = dump.page_size() / size as u64;
        Ok(Self {
            size,
            offset,
            per_root,
            roots: roots as u64,
        })
    }
}
