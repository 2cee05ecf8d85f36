//! Writes the text of VMCOREINFO: from a vmlinux, for kernels whose dumps have none, or from a
//! dump.
//!
//! A vmlinux lacks what only the running kernel knows: the location of kernel and memory
//! (KERNELOFFSET, phys_base, mem_section's value), the number of page table levels, and constants
//! of its headers.

use crate::dump::Dump;
use crate::error::DumpError;
use crate::machine::Machine;
use crate::note;
use crate::types::{Shape, Types};
use crate::vmlinux::Vmlinux;

/// The lines, in the order of the kernel's own note (kernel/vmcore_info.c, and
/// `arch_crash_save_vmcoreinfo` of x86). Lines for names that the kernel lacks are left out, as
/// there.
const SYMBOLS: [&str; 16] = [
    "init_uts_ns",
    "_stext",
    "mem_section",
    "prb",
    "printk_rb_static",
    "clear_seq",
    "kallsyms_names",
    "kallsyms_num_syms",
    "kallsyms_token_table",
    "kallsyms_token_index",
    "kallsyms_offsets",
    "kallsyms_relative_base",
    "init_top_pgt",
    "node_data",
    "vmap_area_list",
    "swapper_pg_dir",
];
const SIZES: [&str; 16] = [
    "mem_section",
    "page",
    "pglist_data",
    "zone",
    "free_area",
    "list_head",
    "nodemask_t",
    "printk_ringbuffer",
    "prb_desc_ring",
    "prb_desc",
    "prb_data_blk_lpos",
    "printk_info",
    "dev_printk_info",
    "prb_data_ring",
    "atomic_long_t",
    "latched_seq",
];
const OFFSETS: [&str; 52] = [
    "uts_namespace.name",
    "mem_section.section_mem_map",
    "page.flags",
    "page._refcount",
    "page.mapping",
    "page.lru",
    "page._mapcount",
    "page.private",
    "page.compound_dtor",
    "page.compound_order",
    "page.compound_head",
    "page.compound_info",
    "folio._folio_dtor",
    "folio._folio_order",
    "pglist_data.node_zones",
    "pglist_data.nr_zones",
    "pglist_data.node_start_pfn",
    "pglist_data.node_spanned_pages",
    "pglist_data.node_id",
    "zone.free_area",
    "zone.vm_stat",
    "zone.spanned_pages",
    "free_area.free_list",
    "list_head.next",
    "list_head.prev",
    "vmap_area.va_start",
    "vmap_area.list",
    "printk_ringbuffer.desc_ring",
    "printk_ringbuffer.text_data_ring",
    "printk_ringbuffer.fail",
    "prb_desc_ring.count_bits",
    "prb_desc_ring.descs",
    "prb_desc_ring.infos",
    "prb_desc_ring.head_id",
    "prb_desc_ring.tail_id",
    "prb_desc.state_var",
    "prb_desc.text_blk_lpos",
    "prb_data_blk_lpos.begin",
    "prb_data_blk_lpos.next",
    "printk_info.seq",
    "printk_info.ts_nsec",
    "printk_info.text_len",
    "printk_info.caller_id",
    "printk_info.dev_info",
    "dev_printk_info.subsystem",
    "dev_printk_info.device",
    "prb_data_ring.size_bits",
    "prb_data_ring.data",
    "prb_data_ring.head_lpos",
    "prb_data_ring.tail_lpos",
    "atomic_long_t.counter",
    "latched_seq.val",
];
/// Lengths of member arrays, with their names in the note.
const LENGTHS: [(&str, &str); 4] = [
    ("zone.free_area", "zone.free_area"),
    ("free_area.free_list", "free_area.free_list"),
    ("printk_info_subsystem", "dev_printk_info.subsystem"),
    ("printk_info_device", "dev_printk_info.device"),
];
/// Enumerators, with their enumerations.
const NUMBERS: [(&str, &str); 9] = [
    ("zone_stat_item", "NR_FREE_PAGES"),
    ("pageflags", "PG_lru"),
    ("pageflags", "PG_private"),
    ("pageflags", "PG_swapcache"),
    ("pageflags", "PG_swapbacked"),
    ("pageflags", "PG_slab"),
    ("pageflags", "PG_hwpoison"),
    ("pageflags", "PG_hugetlb"),
    ("compound_dtor_id", "HUGETLB_PAGE_DTOR"),
];
/// Types of pages: their enumerators are the top byte of the note's value, since Linux kernel
/// commit 4ffca5a96678 ("mm: support only one page_type per page") (in v6.12). Before, only headers
/// define them.
const PAGE_TYPES: [(&str, &str); 5] = [
    ("PAGE_SLAB_MAPCOUNT_VALUE", "PGTY_slab"),
    ("PAGE_BUDDY_MAPCOUNT_VALUE", "PGTY_buddy"),
    ("PAGE_HUGETLB_MAPCOUNT_VALUE", "PGTY_hugetlb"),
    ("PAGE_OFFLINE_MAPCOUNT_VALUE", "PGTY_offline"),
    ("PAGE_UNACCEPTED_MAPCOUNT_VALUE", "PGTY_unaccepted"),
];

/// Returns the VMCOREINFO text that the kernel of a vmlinux writes, but for the values that only the
/// running kernel has, such as `phys_base`.
///
/// # Errors
/// If the vmlinux has no BTF.
pub fn of_vmlinux(vmlinux: &Vmlinux) -> Result<String, DumpError> {
    let types = vmlinux.types()?;
    let mut lines = Vec::new();
    lines.extend(
        vmlinux
            .release()
            .map(|release| format!("OSRELEASE={release}")),
    );
    lines.extend(vmlinux.build_id().map(|id| format!("BUILD-ID={id}")));
    if vmlinux.machine() == Machine::X86_64 {
        lines.push("PAGESIZE=4096".to_owned());
    }
    lines.extend(SYMBOLS.into_iter().filter_map(|name| {
        let symbol = vmlinux.symbol(name)?;
        Some(format!("SYMBOL({name})={:x}", symbol.address))
    }));
    if vmlinux.symbol("swapper_pg_dir").is_none() {
        // On x86-64 it is another name for it (`arch/x86/include/asm/pgtable_64.h`).
        let table = vmlinux.symbol("init_top_pgt");
        lines.extend(table.map(|table| format!("SYMBOL(swapper_pg_dir)={:x}", table.address)));
    }
    lines.extend(online(vmlinux, &types));
    lines.extend(SIZES.into_iter().filter_map(|name| {
        let size = types.size(types.named(name)?)?;
        Some(format!("SIZE({name})={size}"))
    }));
    lines.extend(OFFSETS.into_iter().filter_map(|path| {
        let (offset, _) = types.path(path)?;
        Some(format!("OFFSET({path})={offset}"))
    }));
    lines.extend(LENGTHS.into_iter().filter_map(|(name, path)| {
        match types.shape(types.path(path)?.1) {
            Shape::Array(_, count) => Some(format!("LENGTH({name})={count}")),
            _ => None,
        }
    }));
    // An array of pointers, whose length only its symbol has.
    let nodes = vmlinux.symbol("node_data").filter(|nodes| nodes.size >= 8);
    lines.extend(nodes.map(|nodes| format!("LENGTH(node_data)={}", nodes.size / 8)));
    lines.extend(numbers(&types));
    Ok(lines.join("\n") + "\n")
}

/// Returns the line of the set of online nodes, one of an array of sets
/// (`include/linux/nodemask.h`).
fn online(vmlinux: &Vmlinux, types: &Types) -> Option<String> {
    let sets = vmlinux.symbol("node_states")?.address;
    let number = u64::try_from(types.enumerator("node_states", "N_ONLINE")?).ok()?;
    let size = types.size(types.named("nodemask_t")?)?;
    Some(format!(
        "SYMBOL(node_online_map)={:x}",
        sets.checked_add(number * size)?
    ))
}

fn numbers(types: &Types) -> Vec<String> {
    let mut lines = Vec::new();
    for (enumeration, name) in NUMBERS {
        lines.extend(
            types
                .enumerator(enumeration, name)
                .map(|number| format!("NUMBER({name})={number}")),
        );
    }
    let head = types
        .enumerator("pageflags", "PG_head")
        .filter(|bit| (0..63).contains(bit));
    lines.extend(head.map(|bit| format!("NUMBER(PG_head_mask)={}", 1_i64 << bit)));
    for (name, enumerator) in PAGE_TYPES {
        let top = types
            .enumerator("pagetype", enumerator)
            .filter(|top| (1..256).contains(top));
        // A signed number of 32 bits.
        lines.extend(top.map(|top| format!("NUMBER({name})={}", (top as i32) << 24)));
    }
    lines
}

/// Returns the VMCOREINFO text of a dump, as it is in its notes or was given for it.
///
/// # Errors
/// If it has none.
pub fn of_dump(dump: &Dump) -> Result<Vec<u8>, DumpError> {
    match note::vmcoreinfo(dump.notes()) {
        Some(range) => Ok(dump.notes()[range].to_vec()),
        None if dump.info().is_empty() => Err(DumpError::NoNote),
        None => Ok(dump
            .info()
            .lines()
            .flat_map(|(key, value)| format!("{key}={value}\n").into_bytes())
            .collect()),
    }
}
