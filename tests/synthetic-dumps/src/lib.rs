//! Writes small synthetic dumps: page tables, sections, records and a note, from one line per group
//! of pages. For tests and benches.
//!
//! The records are those of each kernel, by the table of layouts below. The code shares nothing
//! with the reader, so that a wrong layout is noticed unless both are wrong in the same way.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub mod damage;
pub mod headers;
pub mod large;
mod per_cpu;
pub mod vmlinux;

const PAGE: u64 = 4096;
/// Bytes of a record.
const RECORD: u64 = 64;
/// Bytes of a `struct mem_section`, and how many are in a table.
const MEM_SECTION: u64 = 16;
const PER_ROOT: u64 = PAGE / MEM_SECTION;
/// The addresses of the kernel's image, memory and records.
const IMAGE: u64 = 0xffff_ffff_8000_0000;
const DIRECT: u64 = 0xffff_8880_0000_0000;
const VMEMMAP: u64 = 0xffff_ea00_0000_0000;
/// Pages for the kernel's own structures, without records.
const OWN: u64 = 1024;
/// Bytes of a header and of one program header.
const ELF: u64 = 64;
const PROGRAM_HEADER: u64 = 56;

/// An architecture, by its number in ELF headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    X86_64 = 62,
    Aarch64 = 183,
}

impl Machine {
    /// Its name as `uname -m` prints it.
    fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }
}

/// Returns a note in file format.
fn note(owner: &str, kind: u32, content: &[u8]) -> Vec<u8> {
    let sizes = [owner.len() as u32 + 1, content.len() as u32, kind];
    let mut bytes: Vec<u8> = sizes
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .chain(owner.bytes())
        .collect();
    bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The layout of records in a range of kernels, named by the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    pub release: &'static str,
    /// `_mapcount` of free, offline, slab, hugetlb and unaccepted pages, if the kernel has them.
    types: [Option<u32>; 5],
    /// Offsets of order and destructor of a compound page, from the head's record; `None` if flags
    /// of the tail have them.
    compound: Option<(usize, usize)>,
    /// Names of their offsets in the note.
    names: [&'static str; 2],
    /// Name of the field with a tail's head.
    head: &'static str,
    /// Whether that field is a mask of the tail's address, not a pointer.
    mask: bool,
    /// Number of PG_slab, if it is a flag.
    slab: Option<u32>,
    /// Number of PG_hugetlb in the tail's flags.
    huge_flag: Option<u32>,
}

const PAGE_NAMES: [&str; 2] = ["page.compound_order", "page.compound_dtor"];
const FOLIO_NAMES: [&str; 2] = ["folio._folio_order", "folio._folio_dtor"];

/// Kernels by the first release with a layout.
pub const KERNELS: [Kernel; 8] = [
    Kernel {
        release: "5.10.0",
        types: old(None, None),
        compound: Some((81, 80)),
        names: PAGE_NAMES,
        head: "compound_head",
        mask: false,
        slab: Some(9),
        huge_flag: None,
    },
    Kernel {
        release: "6.4.0",
        types: old(None, None),
        compound: Some((81, 80)),
        names: FOLIO_NAMES,
        head: "compound_head",
        mask: false,
        slab: Some(9),
        huge_flag: None,
    },
    Kernel {
        release: "6.6.0",
        types: old(None, None),
        compound: None,
        names: PAGE_NAMES,
        head: "compound_head",
        mask: false,
        slab: Some(9),
        huge_flag: Some(8),
    },
    Kernel {
        release: "6.9.0",
        types: old(None, Some(0xffff_f7ff)),
        compound: None,
        names: PAGE_NAMES,
        head: "compound_head",
        mask: false,
        slab: Some(9),
        huge_flag: None,
    },
    Kernel {
        release: "6.10.0",
        types: old(Some(0xffff_efff), Some(0xffff_f7ff)),
        compound: None,
        names: PAGE_NAMES,
        head: "compound_head",
        mask: false,
        slab: None,
        huge_flag: None,
    },
    Kernel {
        release: "6.12.0",
        types: NEW_TYPES,
        compound: None,
        names: PAGE_NAMES,
        head: "compound_head",
        mask: false,
        slab: None,
        huge_flag: None,
    },
    Kernel {
        release: "7.1.0",
        types: NEW_TYPES,
        compound: None,
        names: PAGE_NAMES,
        head: "compound_info",
        mask: false,
        slab: None,
        huge_flag: None,
    },
    Kernel {
        release: "7.1.1",
        types: NEW_TYPES,
        compound: None,
        names: PAGE_NAMES,
        head: "compound_info",
        mask: true,
        slab: None,
        huge_flag: None,
    },
];

const NEW_TYPES: [Option<u32>; 5] = [
    Some(0xf000_0000),
    Some(0xf100_0000),
    Some(0xf500_0000),
    Some(0xf400_0000),
    Some(0xf800_0000),
];

const fn old(slab: Option<u32>, huge: Option<u32>) -> [Option<u32>; 5] {
    [Some(0xffff_ff7f), Some(0xffff_feff), slab, huge, None]
}

mod flag {
    pub(super) const REFERENCED: u64 = 1 << 2;
    pub(super) const LRU: u64 = 1 << 5;
    pub(super) const HEAD: u64 = 1 << 6;
    pub(super) const SWAP_CACHE: u64 = 1 << 10;
    pub(super) const RESERVED: u64 = 1 << 12;
    pub(super) const PRIVATE: u64 = 1 << 14;
    pub(super) const SWAP_BACKED: u64 = 1 << 17;
    pub(super) const POISON: u64 = 1 << 20;
}

/// The broken page of a block of the kind `hurt`.
pub const HURT: u64 = 3;

/// Number of PG_reserved, which only BTF has.
const RESERVED_BIT: u32 = 12;

/// The content of a dump.
#[derive(Debug, Clone)]
pub struct Synthetic {
    /// The layout of records.
    pub kernel: Kernel,
    /// The architecture; Arm with pages of 4 KiB.
    pub machine: Machine,
    /// Levels of page tables: 4, or 5 on x86-64.
    pub levels: u8,
    pub memory: Vec<Range<u64>>,
    /// Bits of a section's size in bytes.
    pub section_bits: u32,
    /// Numbers of the sections that are offline.
    pub offline: Vec<u64>,
    /// Groups of pages, one per line: `PAGE[+COUNT] KIND [ORDER]`; other pages are kept kernel
    /// memory.
    pub groups: String,
    /// First page of 1024 or more for the kernel's own structures.
    pub own: u64,
    /// Map records in scattered pages, as after hotplug; else in large pages.
    pub scattered: bool,
    /// Bytes between the ELF header and the program headers.
    pub gap: u64,
    /// Whether the image contains BTF.
    pub btf: bool,
    /// Whether that has `struct page`, flags and types of pages, too.
    pub page_types: bool,
    /// Keys of lines that the note lacks.
    pub lacks: Vec<String>,
    /// More lines of the note.
    pub extra_note: String,
    /// Sections of 128 MiB with separate records; those after them have the same, page for page.
    pub distinct: Option<u64>,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self {
            kernel: KERNELS[5],
            machine: Machine::X86_64,
            levels: 4,
            memory: std::iter::once(0..0x2000).collect(),
            section_bits: 21,
            offline: Vec::new(),
            groups: String::new(),
            own: 0x1000,
            scattered: false,
            gap: 0,
            btf: true,
            page_types: false,
            lacks: Vec::new(),
            extra_note: String::new(),
            distinct: None,
        }
    }
}

/// One group of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub pages: Range<u64>,
    pub kind: String,
    /// Order of each block of them.
    pub order: u32,
}

/// The memory of a dump while it is built.
struct Image<'s> {
    wish: &'s Synthetic,
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
    next: u64,
    root: u64,
}

impl Synthetic {
    /// Returns the groups; `None` if a line is wrong, or two contain the same page.
    #[must_use]
    pub fn groups(&self) -> Option<Vec<Group>> {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let place = words.next()?;
            let kind = words.next()?;
            let order = words.next().unwrap_or("0");
            let (start, count) = place.split_once('+').unwrap_or((place, "1"));
            let number = |text: &str| match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            };
            let start = number(start)?;
            let count = number(count)?;
            let order = order.parse().ok()?;
            Some(Group {
                pages: start..start + (count << order),
                kind: kind.to_owned(),
                order,
            })
        };
        let groups: Vec<Group> = self
            .groups
            .lines()
            .filter(|text| !text.trim().is_empty())
            .map(line)
            .collect::<Option<_>>()?;
        let meet = |one: &Group, other: &Group| {
            one.pages.start < other.pages.end && other.pages.start < one.pages.end
        };
        let apart = groups
            .iter()
            .enumerate()
            .all(|(n, one)| !groups[n + 1..].iter().any(|other| meet(one, other)));
        apart.then_some(groups)
    }

    /// Writes the dump; returns the file offset of the records, if they are contiguous.
    ///
    /// # Errors
    /// If the file cannot be written, or a group is wrong.
    pub fn write(&self, path: &Path) -> io::Result<u64> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
        let mut image = Image {
            wish: self,
            pages: BTreeMap::new(),
            next: self.own,
            root: 0,
        };
        image.root = image.page();
        let (info, records) = image.kernel(&self.groups().ok_or_else(wrong)?);
        let mut notes = note("CORE", 1, &[0; 336]);
        notes.extend(note("VMCOREINFO", 0, info.as_bytes()));
        let places = self.write_elf(path, &image, &notes)?;
        let place = places
            .iter()
            .find(|(range, _)| range.contains(&(records / PAGE)));
        Ok(place.map_or(0, |(range, at)| at + records - range.start * PAGE))
    }

    fn write_elf(
        &self,
        path: &Path,
        image: &Image<'_>,
        notes: &[u8],
    ) -> io::Result<Vec<(Range<u64>, u64)>> {
        let count = self.memory.len() as u64 + 1;
        let table = ELF + self.gap;
        let notes_at = table + count * PROGRAM_HEADER;
        let mut at = (notes_at + notes.len() as u64).next_multiple_of(PAGE);
        let mut head = b"\x7fELF\x02\x01\x01".to_vec();
        head.resize(notes_at as usize, 0);
        head[16..20].copy_from_slice(&[4, 0, self.machine as u8, 0]);
        head[32..40].copy_from_slice(&table.to_le_bytes());
        head[52..58].copy_from_slice(&[64, 0, 56, 0, count as u8, (count >> 8) as u8]);
        let mut header = |n: u64, kind: u32, numbers: [u64; 5]| {
            let start = (table + n * PROGRAM_HEADER) as usize;
            head[start..start + 4].copy_from_slice(&kind.to_le_bytes());
            for (k, number) in numbers.into_iter().enumerate() {
                head[start + 8 + k * 8..start + 16 + k * 8].copy_from_slice(&number.to_le_bytes());
            }
        };
        header(
            0,
            4,
            [notes_at, 0, 0, notes.len() as u64, notes.len() as u64],
        );
        let mut places = Vec::new();
        for (n, range) in self.memory.iter().enumerate() {
            let start = range.start * PAGE;
            let size = (range.end - range.start) * PAGE;
            header(n as u64 + 1, 1, [at, DIRECT + start, start, size, size]);
            places.push((range.clone(), at));
            at += size;
        }
        let file = File::create(path)?;
        file.set_len(at)?;
        file.write_all_at(&head, 0)?;
        file.write_all_at(notes, notes_at)?;
        for (page, bytes) in &image.pages {
            if let Some((range, at)) = places.iter().find(|(range, _)| range.contains(page)) {
                file.write_all_at(&bytes[..], at + (page - range.start) * PAGE)?;
            }
        }
        Ok(places)
    }

    fn section_pages(&self) -> u64 {
        1 << (self.section_bits - 12)
    }
}

impl Image<'_> {
    /// Allocates a page for the kernel.
    fn page(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        for (n, byte) in bytes.iter().enumerate() {
            let at = address + n as u64;
            let page = self
                .pages
                .entry(at / PAGE)
                .or_insert_with(|| Box::new([0; PAGE as usize]));
            page[(at % PAGE) as usize] = *byte;
        }
    }

    fn get(&self, address: u64) -> u64 {
        let page = self.pages.get(&(address / PAGE));
        let at = (address % PAGE) as usize;
        page.and_then(|page| page[at..at + 8].try_into().ok())
            .map_or(0, u64::from_le_bytes)
    }

    /// Maps a page of 1 << `shift` bytes.
    fn map(&mut self, address: u64, physical: u64, shift: u32) {
        let mut table = self.root * PAGE;
        let top = if self.wish.levels == 5 { 48 } else { 39 };
        for level in (shift..=top).rev().step_by(9).collect::<Vec<_>>() {
            let entry = table + (address >> level & 511) * 8;
            if level == shift {
                let bits = match (self.wish.machine, shift > 12) {
                    (Machine::X86_64, false) => 0x63,
                    (Machine::X86_64, true) => 0xe3,
                    (Machine::Aarch64, false) => 0x703,
                    (Machine::Aarch64, true) => 0x701,
                };
                self.put(entry, &(physical | bits).to_le_bytes());
                return;
            }
            if self.get(entry) == 0 {
                let next = self.page() * PAGE;
                let bits = if self.wish.machine == Machine::X86_64 {
                    0x63
                } else {
                    3
                };
                self.put(entry, &(next | bits).to_le_bytes());
            }
            table = self.get(entry) & !(PAGE - 1);
        }
    }

    /// Makes all of the kernel's structures, and returns its note and the location of the records.
    fn kernel(&mut self, groups: &[Group]) -> (String, u64) {
        let base = self.sections();
        self.records(base, groups);
        self.image();
        per_cpu::put(self, base, groups);
        (self.note(), base)
    }

    /// Makes the table of sections; returns the physical address of the first record.
    fn sections(&mut self) -> u64 {
        let wish = self.wish;
        let count = wish
            .memory
            .last()
            .map_or(0, |range| range.end)
            .div_ceil(wish.section_pages());
        let table = self.page() * PAGE;
        self.map(DIRECT + table, table, 12);
        for root in 0..count.div_ceil(PER_ROOT) {
            let page = self.page() * PAGE;
            self.map(DIRECT + page, page, 12);
            self.put(table + root * 8, &(DIRECT + page).to_le_bytes());
            for n in root * PER_ROOT..((root + 1) * PER_ROOT).min(count) {
                let pages = n * wish.section_pages()..(n + 1) * wish.section_pages();
                if wish
                    .memory
                    .iter()
                    .any(|range| range.start < pages.end && pages.start < range.end)
                {
                    // Present, with records, online, from boot.
                    let flags = if wish.offline.contains(&n) {
                        0b1011
                    } else {
                        0b1111
                    };
                    self.put(
                        page + n % PER_ROOT * MEM_SECTION,
                        &(VMEMMAP | flags).to_le_bytes(),
                    );
                }
            }
        }
        let pages = (count * wish.section_pages() * RECORD).div_ceil(PAGE);
        // Before the image if there is space.
        let base = self.next.next_multiple_of(512);
        let fits = wish.distinct.is_none() && base + pages <= wish.own + 1000;
        let base = if fits {
            base
        } else {
            (wish.own + OWN).next_multiple_of(512)
        };
        if wish.scattered {
            for n in 0..pages {
                self.map(VMEMMAP + n * PAGE, (base + pages - 1 - n) * PAGE, 12);
            }
        } else {
            for n in 0..pages.div_ceil(512) {
                let own = wish.distinct.map_or(n, |distinct| n % distinct);
                self.map(VMEMMAP + (n << 21), (base << 12) + (own << 21), 21);
            }
        }
        base * PAGE
    }

    /// Returns the location of a page's record.
    fn record(&self, base: u64, page: u64) -> u64 {
        let at = page * RECORD;
        if !self.wish.scattered {
            return base + at;
        }
        let pages = self
            .wish
            .memory
            .last()
            .map_or(0, |range| range.end)
            .div_ceil(self.wish.section_pages())
            * self.wish.section_pages()
            * RECORD
            / PAGE;
        base + (pages - 1 - at / PAGE) * PAGE + at % PAGE
    }

    fn records(&mut self, base: u64, groups: &[Group]) {
        for group in groups {
            for page in group.pages.clone().step_by(1 << group.order) {
                for n in 0..1_u64 << group.order {
                    let record = self.wish.kernel.record(&group.kind, page, n, group.order);
                    let at = self.record(base, page + n);
                    self.put(at, &record);
                    // A recognisable content.
                    self.put((page + n) * PAGE, &(page + n).to_le_bytes());
                }
            }
        }
    }

    /// The kernel's image: two pages, with BTF in the second, after the text.
    fn image(&mut self) {
        let own = self.wish.own;
        self.map(IMAGE + 0x100_0000, (own + 1000) * PAGE, 12);
        self.map(IMAGE + 0x100_1000, (own + 1001) * PAGE, 12);
        self.map(IMAGE + 0x100_2000, self.root * PAGE, 12);
        self.put((own + 1000) * PAGE, b"\0\0\0\0Linux\0");
        self.put((own + 1000) * PAGE + 4 + 65, b"synthetic\0");
        self.put(
            (own + 1000) * PAGE + 4 + 2 * 65,
            self.wish.kernel.release.as_bytes(),
        );
        self.put(
            (own + 1000) * PAGE + 4 + 4 * 65,
            self.wish.machine.name().as_bytes(),
        );
        if self.wish.btf {
            self.put((own + 1001) * PAGE + 40, &per_cpu::btf(self.wish));
        }
    }

    /// Returns the lines of the note about page tables.
    fn tables(&self) -> String {
        let root = self.root * PAGE;
        match self.wish.machine {
            // The image is mapped so that its third page is the topmost page table.
            Machine::X86_64 => format!(
                "SYMBOL(init_top_pgt)={:x}\nNUMBER(phys_base)={}\nNUMBER(pgtable_l5_enabled)={}",
                IMAGE + 0x100_2000,
                root.wrapping_sub(0x100_2000).cast_signed(),
                u8::from(self.wish.levels == 5)
            ),
            // The image's first two pages have the same distance to their physical addresses as the
            // rest.
            Machine::Aarch64 => {
                let above = IMAGE + 0x100_0000 - (self.wish.own + 1000) * PAGE;
                let table = root.wrapping_add(above);
                format!(
                    "SYMBOL(swapper_pg_dir)={table:x}\nNUMBER(kimage_voffset)={above:#x}\nNUMBER(VA_BITS)=48"
                )
            }
        }
    }

    fn note(&self) -> String {
        let wish = self.wish;
        let kernel = &self.wish.kernel;
        let mut lines = vec![
            format!("OSRELEASE={}", kernel.release),
            format!("PAGESIZE={PAGE}"),
            self.tables(),
            format!("SYMBOL(init_uts_ns)={:x}", IMAGE + 0x100_0000),
            format!("SYMBOL(_stext)={:x}", IMAGE + 0x100_0000),
            // The table is the page after the topmost page table.
            format!("SYMBOL(mem_section)={:x}", DIRECT + (self.root + 1) * PAGE),
            format!("LENGTH(mem_section)={}", 2048),
            format!("SIZE(mem_section)={MEM_SECTION}"),
            "OFFSET(mem_section.section_mem_map)=0".to_owned(),
            format!("NUMBER(SECTION_SIZE_BITS)={}", wish.section_bits),
            format!("SIZE(page)={RECORD}"),
            "OFFSET(page.flags)=0\nOFFSET(page.lru)=8\nOFFSET(page.mapping)=24\nOFFSET(page.private)=40".to_owned(),
            "OFFSET(page._mapcount)=48\nOFFSET(page._refcount)=52".to_owned(),
            per_cpu::note(),
            format!("OFFSET(page.{})=8", kernel.head),
            format!("LENGTH(zone.free_area)={}", (wish.section_bits - 11).min(11)),
            "NUMBER(PG_lru)=5\nNUMBER(PG_private)=14\nNUMBER(PG_swapcache)=10\nNUMBER(PG_swapbacked)=17".to_owned(),
            format!("NUMBER(PG_hwpoison)=20\nNUMBER(PG_head_mask)={}", flag::HEAD),
        ];
        let names = ["BUDDY", "OFFLINE", "SLAB", "HUGETLB", "UNACCEPTED"];
        for (name, value) in names.into_iter().zip(kernel.types) {
            lines.extend(value.map(|value| {
                format!("NUMBER(PAGE_{name}_MAPCOUNT_VALUE)={}", value.cast_signed())
            }));
        }
        lines.extend(kernel.slab.map(|bit| format!("NUMBER(PG_slab)={bit}")));
        lines.extend(
            kernel
                .huge_flag
                .map(|bit| format!("NUMBER(PG_hugetlb)={bit}")),
        );
        if let Some((order, destructor)) = kernel.compound {
            // Page: in the first tail. Folio: from the head.
            let from = if kernel.names == PAGE_NAMES {
                RECORD as usize
            } else {
                0
            };
            lines.push(format!("OFFSET({})={}", kernel.names[0], order - from));
            lines.push(format!(
                "OFFSET({})={}\nNUMBER(HUGETLB_PAGE_DTOR)=2",
                kernel.names[1],
                destructor - from
            ));
        }
        let all = lines.join("\n");
        let own = all.lines().filter(|line| {
            let key = line.split('=').next().unwrap_or_default();
            !wish.lacks.iter().any(|lacks| lacks == key)
        });
        let own: String = own.map(|line| format!("{line}\n")).collect();
        own + &wish.extra_note
    }
}

impl Kernel {
    /// Returns whether it has pages that its host has not provided yet.
    #[must_use]
    pub fn has_unaccepted(&self) -> bool {
        self.types[4].is_some()
    }

    /// Returns the record of the `n`th page of a block that begins at `page`.
    fn record(&self, kind: &str, page: u64, n: u64, order: u32) -> [u8; RECORD as usize] {
        let mut record = [0; RECORD as usize];
        let mut put =
            |at: usize, value: u64| record[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let buddy = self.types[0];
        let offline = self.types[1];
        let unaccepted = self.types[4];
        let cache = flag::LRU | flag::REFERENCED;
        let pointer = DIRECT + 0x1000;
        let listed = matches!(kind, "listed" | "taken");
        let head = if order > 0 && !listed && !matches!(kind, "free" | "hurtfree" | "unaccepted") {
            flag::HEAD
        } else {
            0
        };
        if n > 0 && head == 0 {
            // Inside a free block: leftovers of the last owner; on lists, prepared for reuse.
            if listed {
                put(48, u64::from(u32::MAX));
            }
            return record;
        }
        if n > 0 {
            let head = VMEMMAP + page * RECORD;
            put(
                8,
                if self.mask {
                    u64::MAX << (order + RECORD.trailing_zeros()) | 1
                } else {
                    head + 1
                },
            );
            if matches!(kind, "hurt" | "hurtanon") && n == HURT {
                put(0, flag::POISON);
            }
            if n == 1 {
                self.first_tail(&mut record, kind, order);
            }
            return record;
        }
        let on_list = kind == "listed";
        let (flags, mapping, private, kind) = match kind {
            "free" => (0, 0, u64::from(order), buddy),
            "unaccepted" => (0, 0, 0, unaccepted),
            "anon" => (cache | flag::SWAP_BACKED, pointer | 1, 0, None),
            "ksm" => (cache | flag::SWAP_BACKED, pointer | 3, 0, None),
            "cache" => (cache, pointer, 0, None),
            "private" => (cache | flag::PRIVATE, pointer, pointer, None),
            "swap" => (flag::SWAP_CACHE | flag::SWAP_BACKED, pointer, 5, None),
            "halfswap" => (flag::SWAP_CACHE, pointer, 0, None),
            "slab" => (
                self.slab.map_or(0, |bit| 1 << bit),
                pointer | 1,
                0,
                self.types[2],
            ),
            "huge" => (0, pointer, 0, self.types[3]),
            "poisoned" => (flag::POISON, 0, 0, None),
            // Kept memory of the kernel with a broken page in it.
            "hurt" => (0, 0, 0, None),
            "hurthead" => (flag::POISON, 0, 0, None),
            // Memory of a process with a broken page in it, or with its first page broken.
            "hurtanon" => (cache | flag::SWAP_BACKED, pointer | 1, 0, None),
            "hurtanonhead" => (
                cache | flag::SWAP_BACKED | flag::POISON,
                pointer | 1,
                0,
                None,
            ),
            "hurtfree" => (flag::POISON, 0, u64::from(order), buddy),
            "offline" => (0, 0, 0, offline),
            "reserved" => (flag::RESERVED | cache, pointer, 0, None),
            "garbage" => (cache, 0, 0, None),
            "badorder" => (0, 0, 60, buddy),
            _ => (0, 0, 0, None),
        };
        put(0, flags | head);
        put(24, mapping);
        put(40, private);
        // Not mapped: -1 in the kernel's count.
        put(
            48,
            u64::from(kind.unwrap_or(u32::MAX)) | u64::from(!on_list) << 32,
        );
        record
    }

    fn first_tail(&self, record: &mut [u8; RECORD as usize], kind: &str, order: u32) {
        let huge = kind == "huge";
        let from = RECORD as usize;
        if let Some((order_at, destructor_at)) = self.compound {
            record[order_at - from] = order as u8;
            record[destructor_at - from] = if huge { 2 } else { 1 };
        } else {
            let flags =
                u64::from(order) | self.huge_flag.filter(|_| huge).map_or(0, |bit| 1 << bit);
            record[..8].copy_from_slice(&flags.to_le_bytes());
        }
    }
}
