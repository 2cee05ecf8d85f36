//! Completes a note: what it lacks comes from the kernel's types (BTF), its symbol table, or
//! constants of an architecture.
//!
//! What none of them has makes the filter exclude less, and it says so ([`Shortfall`]): a dump with
//! too many pages is better than none.

use std::fmt;

use crate::btf::Types;
use crate::exclusion::Level;
use crate::machine::Machine;
use crate::note::Info;

/// Pages that the filter keeps at its level because the dump does not say enough about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// The lines of the note that are missing.
    pub lacks: String,
    /// The pages.
    pub kept: &'static str,
    /// The part of the level that is not done.
    pub(crate) level: u8,
}

impl Shortfall {
    /// Returns whether it makes a difference at a level.
    pub(crate) fn concerns(&self, level: Level) -> bool {
        let wanted = level.number();
        // Page cache with private data goes with the other: there is nothing to distinguish.
        let is_moot = self.level == 2 && wanted & 4 != 0;
        self.level == 0 || wanted & self.level != 0 && !is_moot
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lacks, kept, .. } = self;
        write!(
            f,
            "{kept} are kept: neither the VMCOREINFO note nor BTF has {lacks}"
        )
    }
}

/// Structures whose size is needed.
const SIZES: [&str; 4] = ["page", "mem_section", "zone", "pglist_data"];
/// Fields whose offset is needed, with their structures.
const OFFSETS: [(&str, &str); 15] = [
    ("mem_section", "section_mem_map"),
    ("page", "flags"),
    ("page", "mapping"),
    ("page", "private"),
    ("page", "lru"),
    ("page", "_mapcount"),
    ("page", "_refcount"),
    ("page", "compound_head"),
    ("page", "compound_info"),
    ("page", "compound_order"),
    ("page", "compound_dtor"),
    ("folio", "_folio_order"),
    ("folio", "_folio_dtor"),
    ("pglist_data", "node_zones"),
    ("pglist_data", "nr_zones"),
];
/// Enumerators that the note has under their own name.
const NUMBERS: [&str; 9] = [
    "PG_lru",
    "PG_private",
    "PG_swapcache",
    "PG_swapbacked",
    "PG_slab",
    "PG_hwpoison",
    "PG_hugetlb",
    "PG_reserved",
    "HUGETLB_PAGE_DTOR",
];
/// Types of pages: the enumerators are the top byte of the note's value, since Linux kernel commit
/// 4ffca5a96678 ("mm: support only one page_type per page") (in v6.12). Before, only headers
/// define them.
const PAGE_TYPES: [(&str, &str); 5] = [
    ("PAGE_BUDDY_MAPCOUNT_VALUE", "PGTY_buddy"),
    ("PAGE_SLAB_MAPCOUNT_VALUE", "PGTY_slab"),
    ("PAGE_OFFLINE_MAPCOUNT_VALUE", "PGTY_offline"),
    ("PAGE_HUGETLB_MAPCOUNT_VALUE", "PGTY_hugetlb"),
    ("PAGE_UNACCEPTED_MAPCOUNT_VALUE", "PGTY_unaccepted"),
];
/// Bits of the size of a section of x86-64 (`arch/x86/include/asm/sparsemem.h`).
const X86_SECTION_BITS: u32 = 27;
/// Bits of its longest physical address, there.
const X86_ADDRESS_BITS: u32 = 52;

/// Returns the note with the lines that it lacks, as far as they are found. `mem_section` is the
/// address of the pointer to the table of sections.
pub(crate) fn complete(
    info: &Info,
    machine: Machine,
    types: Option<&Types>,
    mem_section: Option<u64>,
) -> Info {
    let mut lines = Vec::new();
    if let Some(types) = types {
        lines.extend(of_types(types));
    }
    lines.extend(mem_section.map(|at| ("SYMBOL(mem_section)".to_owned(), format!("{at:x}"))));
    if machine == Machine::X86_64 {
        let bits = X86_SECTION_BITS.to_string();
        lines.push(("NUMBER(SECTION_SIZE_BITS)".to_owned(), bits));
    }
    let mut complete = info.clone();
    complete.add_missing(lines);
    // The number of tables of sections: at most as many as addresses can need. Only those with
    // memory of the dump are read.
    let section = complete.number("SECTION_SIZE_BITS");
    let size = complete.size("SIZE", "mem_section");
    if let (Some(27), Some(size), Machine::X86_64) = (section, size, machine) {
        let per_table = (4096 / size.max(1)).max(1);
        let tables = (1_usize << (X86_ADDRESS_BITS - X86_SECTION_BITS)) / per_table;
        complete.add_missing(vec![("LENGTH(mem_section)".to_owned(), tables.to_string())]);
    }
    complete
}

/// Returns the lines that types tell.
fn of_types(types: &Types) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for name in SIZES {
        let size = types.structure(name).and_then(|id| types.size(id));
        lines.extend(size.map(|size| (format!("SIZE({name})"), size.to_string())));
    }
    for (structure, field) in OFFSETS {
        let member = types
            .structure(structure)
            .and_then(|id| types.member(id, field));
        lines.extend(member.map(|member| {
            let key = format!("OFFSET({structure}.{field})");
            (key, member.offset.to_string())
        }));
    }
    for name in NUMBERS {
        let value = types.enumerator(name);
        lines.extend(value.map(|value| (format!("NUMBER({name})"), value.to_string())));
    }
    let head = types.enumerator("PG_head").filter(|bit| *bit < 63);
    lines.extend(head.map(|bit| {
        let mask = 1_u64 << bit;
        ("NUMBER(PG_head_mask)".to_owned(), mask.to_string())
    }));
    for (name, enumerator) in PAGE_TYPES {
        let top = types.enumerator(enumerator).filter(|top| *top < 256);
        lines.extend(top.map(|top| {
            let value = (top << 24).cast_signed();
            (format!("NUMBER({name})"), value.to_string())
        }));
    }
    let areas = types
        .structure("zone")
        .and_then(|zone| types.member(zone, "free_area"))
        .and_then(|member| types.length(member.kind));
    lines.extend(areas.map(|count| ("LENGTH(zone.free_area)".to_owned(), count.to_string())));
    lines
}

#[cfg(test)]
mod tests {
    use super::complete;
    use crate::machine::Machine;
    use crate::note::Info;

    #[test]
    fn sections_of_pcs_are_known_constants() {
        let symbol = Some(0xffff_ffff_8240_0000);
        let info = Info::parse(b"SIZE(mem_section)=16\nNUMBER(phys_base)=0\n");
        let found = complete(&info, Machine::X86_64, None, symbol);
        assert_eq!(found.number("SECTION_SIZE_BITS"), Some(27));
        assert_eq!(found.size("LENGTH", "mem_section"), Some(131_072));
        assert_eq!(found.symbol("mem_section"), symbol);
        // The note counts, where it has a line.
        let info = Info::parse(b"SIZE(mem_section)=16\nNUMBER(SECTION_SIZE_BITS)=28\n");
        let found = complete(&info, Machine::X86_64, None, symbol);
        assert_eq!(found.number("SECTION_SIZE_BITS"), Some(28));
        assert_eq!(found.size("LENGTH", "mem_section"), None);
        // Arm has sections of several sizes.
        let found = complete(&Info::default(), Machine::Aarch64, None, symbol);
        assert_eq!(found.number("SECTION_SIZE_BITS"), None);
    }
}
