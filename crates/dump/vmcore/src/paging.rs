//! Page tables: from the kernel's virtual addresses to physical ones. `Architecture` has the
//! differences between architectures; the walk is the same.

use crate::bytes::u64_at;
use crate::error::{DumpError, MemoryError};
use crate::machine::Machine;
use crate::note::Info;
use crate::reader::Reader;
use crate::window::PIECE_MAX;

/// An entry of a page table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Unmapped.
    Absent,
    /// The physical address of the next table.
    Table(u64),
    /// The physical address of memory.
    Memory(u64),
}

/// The bits of an address at one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    /// Bits below this level's index.
    pub(crate) shift: u32,
    /// Bits of the index.
    pub(crate) bits: u32,
}

/// The format of an architecture's page tables.
pub(crate) trait Architecture: std::fmt::Debug + Send + Sync {
    /// Returns the physical address of the kernel's topmost table.
    fn root(&self) -> u64;
    /// Returns the levels, topmost first.
    fn levels(&self) -> &[Level];
    /// Reads an entry of a table; level 0 is the topmost.
    fn entry(&self, value: u64, level: usize) -> Entry;
    /// Returns the virtual addresses of the kernel's image and modules.
    fn image(&self) -> Vec<Area>;
}

/// A range of virtual addresses of the kernel's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) addresses: std::ops::RangeInclusive<u64>,
    /// The distance of the image's virtual addresses to physical ones, if the range has other
    /// mappings too.
    pub(crate) above: Option<u64>,
}

/// Most bytes that are reserved before they are read: more than a kernel's types.
const RESERVED_MAX: usize = 8 << 20;

/// Returns the page tables of a dump's machine.
pub(crate) fn architecture(
    machine: Machine,
    info: &Info,
) -> Result<Box<dyn Architecture>, DumpError> {
    if info.text("PAGESIZE").is_some()
        && !info
            .page_size()
            .is_some_and(|page| machine.has_pages_of(page))
    {
        return Err(info.lies(
            "PAGESIZE".to_owned(),
            "the machine has no pages of that size",
        ));
    }
    Ok(match machine {
        Machine::X86_64 => Box::new(X86_64::new(info)?),
        Machine::Aarch64 => Box::new(Aarch64::new(info)?),
        Machine::Ppc64le | Machine::Riscv64 => return Err(DumpError::PageTables(machine.name())),
    })
}

/// A resolved virtual address, with the size of the mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) physical: u64,
    /// Bytes to the end of the last entry's mapping.
    pub(crate) length: u64,
}

/// Walks page tables, and caches the last table of each level.
#[derive(Debug)]
pub(crate) struct Walker<'a> {
    architecture: &'a dyn Architecture,
    tables: Vec<Option<(u64, Vec<u8>)>>,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(architecture: &'a dyn Architecture) -> Self {
        Self {
            architecture,
            tables: vec![None; architecture.levels().len()],
        }
    }

    /// Resolves a virtual address. The depth is fixed, so cyclic tables terminate.
    pub(crate) fn walk(
        &mut self,
        reader: &mut Reader<'_>,
        address: u64,
    ) -> Result<Mapping, MemoryError> {
        match self.step(reader, address)? {
            (Entry::Memory(physical), size) => {
                let within = address & (size - 1);
                Ok(Mapping {
                    physical: physical + within,
                    length: size - within,
                })
            }
            _ => Err(MemoryError::Unmapped(address)),
        }
    }

    pub(crate) fn read(
        &mut self,
        reader: &mut Reader<'_>,
        address: u64,
        length: usize,
    ) -> Result<Vec<u8>, MemoryError> {
        // A length from a damaged dump reserves a little only.
        let mut bytes = Vec::with_capacity(length.min(RESERVED_MAX));
        while bytes.len() < length {
            let mapping = self.walk(reader, address.wrapping_add(bytes.len() as u64))?;
            let rest = (length - bytes.len())
                .min(usize::try_from(mapping.length).unwrap_or(length))
                .min(PIECE_MAX);
            bytes.extend_from_slice(reader.bytes(mapping.physical, rest)?);
        }
        Ok(bytes)
    }

    /// Returns the 64-bit number at a virtual address.
    pub(crate) fn u64(
        &mut self,
        reader: &mut Reader<'_>,
        address: u64,
    ) -> Result<u64, MemoryError> {
        let bytes = self.read(reader, address, 8)?;
        u64_at(&bytes, 0).ok_or(MemoryError::Unmapped(address))
    }

    /// Returns the physical addresses of all readable tables, up to a limit.
    pub(crate) fn tables(&self, reader: &mut Reader<'_>, most: usize) -> Vec<u64> {
        let mut tables = vec![self.architecture.root()];
        let mut from = 0;
        for (n, level) in self.architecture.levels().iter().enumerate() {
            let end = tables.len();
            for at in from..end {
                let Ok(bytes) = reader.bytes(tables[at], 8 << level.bits) else {
                    continue;
                };
                let values = bytes.chunks_exact(8).filter_map(|value| u64_at(value, 0));
                let next = values.filter_map(|value| match self.architecture.entry(value, n) {
                    Entry::Table(next) => Some(next),
                    Entry::Absent | Entry::Memory(_) => None,
                });
                tables.extend(next.take(most.saturating_sub(at)));
                tables.truncate(most);
            }
            from = end;
        }
        tables
    }

    /// Walks the tables as far as possible; returns the last entry and the bytes that it maps.
    fn step(&mut self, reader: &mut Reader<'_>, address: u64) -> Result<(Entry, u64), MemoryError> {
        let mut table = self.architecture.root();
        let mut last = (Entry::Absent, 1);
        for (n, level) in self.architecture.levels().iter().enumerate() {
            let index = usize::try_from(address >> level.shift & ((1 << level.bits) - 1))
                .unwrap_or_default();
            let length = 8 << level.bits;
            // Neighbouring addresses share all tables but the last: a scan seldom reads one again.
            if self.tables[n].as_ref().is_none_or(|held| held.0 != table) {
                self.tables[n] = Some((table, reader.bytes(table, length)?.to_vec()));
            }
            let bytes = self.tables[n]
                .as_ref()
                .map(|held| held.1.as_slice())
                .unwrap_or_default();
            let value = u64_at(bytes, index * 8).unwrap_or_default();
            last = (self.architecture.entry(value, n), 1 << level.shift);
            match last.0 {
                Entry::Table(next) => table = next,
                Entry::Absent | Entry::Memory(_) => break,
            }
        }
        Ok(last)
    }

    /// Calls `each` with the mapped pieces of a range: virtual address, physical address and
    /// length. Ends after many steps, which only a broken table needs.
    pub(crate) fn range(
        &mut self,
        reader: &mut Reader<'_>,
        range: std::ops::RangeInclusive<u64>,
        mut each: impl FnMut(u64, u64, u64),
    ) {
        /// Pages of 4 KiB: 16 GiB.
        const STEPS_MAX: usize = 1 << 22;
        let mut at = *range.start();
        for _ in 0..STEPS_MAX {
            // Unreadable tables count as unmapped, since their content is unknown; 2 MiB is what one
            // table of the last level maps.
            let (entry, size) = self.step(reader, at).unwrap_or((Entry::Absent, 1 << 21));
            if let Entry::Memory(physical) = entry {
                each(at, physical + (at & (size - 1)), size - (at & (size - 1)));
            }
            match (at | (size - 1))
                .checked_add(1)
                .filter(|next| range.contains(next))
            {
                Some(next) => at = next,
                None => break,
            }
        }
    }
}

/// The start of the kernel's image mapping (`__START_KERNEL_map`), and the end of the range for
/// image and modules.
const IMAGE: u64 = 0xffff_ffff_8000_0000;
const IMAGE_LAST: u64 = 0xffff_ffff_feff_ffff;

/// x86-64 with four or five levels.
#[derive(Debug)]
pub(crate) struct X86_64 {
    root: u64,
    levels: Vec<Level>,
    /// Address bits of an entry, without the memory encryption bit.
    address: u64,
}

impl X86_64 {
    fn new(info: &Info) -> Result<Self, DumpError> {
        let name = ["init_top_pgt", "init_level4_pgt", "swapper_pg_dir"]
            .into_iter()
            .find(|name| info.symbol(name).is_some())
            .ok_or_else(|| DumpError::NoteLacks("SYMBOL(init_top_pgt)".to_owned()))?;
        let base = info.need_number("phys_base")?;
        let root = info
            .need_symbol(name)?
            .wrapping_sub(IMAGE)
            .wrapping_add_signed(base);
        if root >= 1 << 52 || root % 4096 != 0 {
            return Err(info.lies(
                format!("SYMBOL({name})"),
                "with phys_base that is no physical address of a table",
            ));
        }
        let first = if info.number("pgtable_l5_enabled") == Some(1) {
            48
        } else {
            39
        };
        let levels = (12..=first)
            .rev()
            .step_by(9)
            .map(|shift| Level { shift, bits: 9 })
            .collect();
        let mask = info.number("sme_mask").map_or(0, i64::cast_unsigned);
        Ok(Self {
            root,
            levels,
            address: 0x000f_ffff_ffff_f000 & !mask,
        })
    }
}

impl Architecture for X86_64 {
    fn root(&self) -> u64 {
        self.root
    }

    fn levels(&self) -> &[Level] {
        &self.levels
    }

    fn entry(&self, value: u64, level: usize) -> Entry {
        let shift = self.levels[level].shift;
        let memory = value & self.address & !((1 << shift) - 1);
        match (value & 1 == 1, shift) {
            (false, _) => Entry::Absent,
            (true, 12) => Entry::Memory(memory),
            // The bit PS: a page of 1 GiB or 2 MiB.
            (true, 21 | 30) if value & 0x80 != 0 => Entry::Memory(memory),
            (true, _) => Entry::Table(value & self.address),
        }
    }

    fn image(&self) -> Vec<Area> {
        vec![Area {
            addresses: IMAGE..=IMAGE_LAST,
            above: None,
        }]
    }
}

/// 64-bit Arm, with pages of 4, 16 or 64 KiB.
#[derive(Debug)]
pub(crate) struct Aarch64 {
    root: u64,
    levels: Vec<Level>,
    image: Vec<Area>,
    /// Where entries hold the highest bits of an address.
    high: HighBits,
}

/// Where an entry of 64-bit Arm holds the highest bits of an address (Arm DDI 0487, D8.3).
#[derive(Debug, Clone, Copy)]
enum HighBits {
    /// None above bit 47.
    None,
    /// 51 to 48 in 15 to 12, with pages of 64 KiB.
    Large,
    /// 49 and 48 in place, 51 and 50 in 9 and 8, with smaller pages and FEAT_LPA2. Linux has it on
    /// exactly if virtual addresses have 52 bits (`lpa2_is_enabled`,
    /// `arch/arm64/include/asm/pgtable-prot.h`).
    Lpa2,
}

/// Longest distance of the image from the beginning of its text: several times the size of any
/// image.
const ARM_IMAGE_MAX: u64 = 256 << 20;

impl Aarch64 {
    fn new(info: &Info) -> Result<Self, DumpError> {
        let page = info
            .page_size()
            .ok_or_else(|| DumpError::NoteLacks("PAGESIZE".to_owned()))?;
        // kimage_voffset is the difference between virtual and physical addresses of the image.
        let offset = info.need_number("kimage_voffset")?.cast_unsigned();
        let root = info.need_symbol("swapper_pg_dir")?.wrapping_sub(offset);
        if root >= 1 << 52 {
            return Err(info.lies(
                "SYMBOL(swapper_pg_dir)".to_owned(),
                "that is no physical address of a table",
            ));
        }
        // The size in use, or the configured one.
        let bits = info
            .number("TCR_EL1_T1SZ")
            .map(|unused| 64 - unused)
            .or_else(|| info.number("VA_BITS"));
        let bits = bits
            .and_then(|bits| u32::try_from(bits).ok())
            .filter(|bits| (32..=52).contains(bits));
        let bits = bits.ok_or_else(|| DumpError::NoteLacks("NUMBER(VA_BITS)".to_owned()))?;
        let page_bits = page.trailing_zeros();
        let mut levels = Vec::new();
        let mut shift = page_bits;
        while shift < bits {
            levels.push(Level {
                shift,
                bits: (page_bits - 3).min(bits - shift),
            });
            shift += page_bits - 3;
        }
        levels.reverse();
        let high = match (page_bits, bits) {
            (16, _) => HighBits::Large,
            (_, 49..) => HighBits::Lpa2,
            _ => HighBits::None,
        };
        Ok(Self {
            root,
            levels,
            image: arm_image(info, offset),
            high,
        })
    }
}

/// Returns the ranges of image and modules, as far as the note has them. The image lies among other
/// mappings.
fn arm_image(info: &Info, offset: u64) -> Vec<Area> {
    // The memory before the text is freed, or boot code.
    let text = info.symbol("_stext").map(|text| text & !0xffff);
    let text = text.and_then(|text| {
        Some(Area {
            addresses: text..=text.checked_add(ARM_IMAGE_MAX - 1)?,
            above: Some(offset),
        })
    });
    let modules = info
        .number("MODULES_VADDR")
        .zip(info.number("MODULES_END"))
        .map(|(start, end)| start.cast_unsigned()..end.cast_unsigned())
        .filter(|modules| modules.start < modules.end);
    let modules = modules.map(|modules| Area {
        addresses: modules.start..=modules.end - 1,
        above: None,
    });
    text.into_iter().chain(modules).collect()
}

impl Architecture for Aarch64 {
    fn root(&self) -> u64 {
        self.root
    }

    fn levels(&self) -> &[Level] {
        &self.levels
    }

    fn entry(&self, value: u64, level: usize) -> Entry {
        let page = self.levels.last().map_or(12, |level| level.shift);
        let shift = self.levels[level].shift;
        let high = match self.high {
            HighBits::None => 0,
            HighBits::Large => (value >> 12 & 0xf) << 48,
            HighBits::Lpa2 => value & 0x3 << 48 | (value >> 8 & 0x3) << 50,
        };
        let address = value & 0x0000_ffff_ffff_f000 & !((1 << page) - 1) | high;
        match (value & 3, shift == page) {
            (3, true) => Entry::Memory(address),
            (3, false) => Entry::Table(address),
            (1, false) => Entry::Memory(address & !((1 << shift) - 1)),
            _ => Entry::Absent,
        }
    }

    fn image(&self) -> Vec<Area> {
        self.image.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{Aarch64, Architecture, Entry, Level, X86_64};
    use crate::note::Info;

    fn arm(page: u32, bits: u32) -> Aarch64 {
        let note = format!(
            "PAGESIZE={page}\nNUMBER(VA_BITS)={bits}\nNUMBER(kimage_voffset)=0xffff7fc040000000\n\
            SYMBOL(swapper_pg_dir)=ffff800080010000\n"
        );
        Aarch64::new(&Info::parse(note.as_bytes())).unwrap()
    }

    fn x86(more: &str) -> X86_64 {
        let note =
            format!("SYMBOL(init_top_pgt)=ffffffff82a10000\nNUMBER(phys_base)=-4194304\n{more}");
        X86_64::new(&Info::parse(note.as_bytes())).unwrap()
    }

    fn shifts(levels: &[Level]) -> Vec<(u32, u32)> {
        levels
            .iter()
            .map(|level| (level.shift, level.bits))
            .collect()
    }

    #[test]
    fn levels_of_arm_divide_all_bits() {
        assert_eq!(
            shifts(arm(4096, 48).levels()),
            [(39, 9), (30, 9), (21, 9), (12, 9)]
        );
        assert_eq!(shifts(arm(4096, 39).levels()), [(30, 9), (21, 9), (12, 9)]);
        assert_eq!(
            shifts(arm(16384, 47).levels()),
            [(36, 11), (25, 11), (14, 11)]
        );
        assert_eq!(
            shifts(arm(4096, 52).levels()),
            [(48, 4), (39, 9), (30, 9), (21, 9), (12, 9)]
        );
        assert_eq!(
            shifts(arm(16384, 52).levels()),
            [(47, 5), (36, 11), (25, 11), (14, 11)]
        );
        assert_eq!(
            shifts(arm(65536, 52).levels()),
            [(42, 10), (29, 13), (16, 13)]
        );
        assert_eq!(arm(4096, 48).root(), 0x40_4001_0000);
    }

    #[test]
    fn entries_of_arm_are_tables_blocks_and_pages() {
        let arm = arm(4096, 48);
        assert_eq!(arm.entry(0x8000_1003, 1), Entry::Table(0x8000_1000));
        assert_eq!(
            arm.entry(0x0068_0000_8020_0f11, 2),
            Entry::Memory(0x8020_0000)
        );
        assert_eq!(
            arm.entry(0x0068_0000_8020_1f13, 3),
            Entry::Memory(0x8020_1000)
        );
        assert_eq!(
            arm.entry(0x8020_1001, 3),
            Entry::Absent,
            "no block at the last level"
        );
        assert_eq!(arm.entry(0x8020_1002, 2), Entry::Absent);
        // 64 KiB pages: bits 51 to 48 of the address are bits 15 to 12.
        assert_eq!(
            self::arm(65536, 52).entry(0x8001_5003, 2),
            Entry::Memory(0x5_0000_8001_0000)
        );
        // FEAT_LPA2: bits 51 and 50 are bits 9 and 8, which are the shareability otherwise.
        for page in [4096, 16384] {
            let last = self::arm(page, 52).levels().len() - 1;
            let entry = self::arm(page, 52).entry(0x006a_0000_8020_4203, last);
            assert_eq!(entry, Entry::Memory(0xa_0000_8020_4000), "{page}");
            let entry = self::arm(page, 48).entry(
                0x0068_0000_8020_4f03,
                self::arm(page, 48).levels().len() - 1,
            );
            assert_eq!(entry, Entry::Memory(0x8020_4000), "{page}");
        }
    }

    #[test]
    fn x86_entries_omit_flags_and_encryption_bit() {
        let plain = x86("");
        assert_eq!(shifts(plain.levels()), [(39, 9), (30, 9), (21, 9), (12, 9)]);
        assert_eq!(plain.root(), 0x0261_0000);
        assert_eq!(
            plain.entry(0x8000_0000_1234_5067, 0),
            Entry::Table(0x1234_5000)
        );
        assert_eq!(
            plain.entry(0x8000_0000_1220_00e3, 2),
            Entry::Memory(0x1220_0000)
        );
        assert_eq!(plain.entry(0x1234_5066, 3), Entry::Absent);
        let sealed = x86("NUMBER(pgtable_l5_enabled)=1\nNUMBER(sme_mask)=2251799813685248\n");
        assert_eq!(shifts(sealed.levels())[0], (48, 9));
        assert_eq!(
            sealed.entry(0x0008_0000_1234_5063, 4),
            Entry::Memory(0x1234_5000)
        );
    }
}
