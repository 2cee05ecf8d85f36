//! Free pages on lists of two processors: pages of kind `listed`, and of kind `taken`, which is
//! just being removed from a list, so that the rest of the list is not trusted.

use super::vmlinux::Btf;
use super::{
    DIRECT, Group, IMAGE, Image, MEM_SECTION, PAGE, RECORD, RESERVED_BIT, Synthetic, VMEMMAP,
};

const PROCESSORS: usize = 2;
/// Orders 0 to 3 in three kinds each, then two lists of huge pages, as in Linux 6.12.
const LISTS: usize = 14;
const KINDS: usize = 3;
const LISTS_AT: u64 = 16;
const HUGE: u32 = 9;
/// Address of the per-processor variable.
const VARIABLE: u64 = 0x1000;

/// The page of the kernel's data, by its distance from the image's start, and the offsets in it.
const DATA: u64 = 0x100_3000;
const ZONE_COUNT: u64 = 0x200;
const ZONE: u64 = 0x100;
const SETS: u64 = 0x10;
const DISTANCES: u64 = 0x300;
const PROCESSORS_AT: u64 = 0x320;
const SYMBOL_COUNT: u64 = 0x400;
const NAMES: u64 = 0x404;
const TOKENS: u64 = 0x480;
const INDEX: u64 = 0x600;
const OFFSETS: u64 = 0x800;
const BASE: u64 = 0x840;

/// Links the pages into lists and writes all structures that lead to them.
pub(super) fn put(image: &mut Image<'_>, records: u64, groups: &[Group]) {
    let data = (image.wish.own + 1002) * PAGE;
    image.map(IMAGE + DATA, data, 12);
    image.put(data + ZONE_COUNT, &1_u32.to_le_bytes());
    image.put(data + SETS, &VARIABLE.to_le_bytes());
    image.put(data + PROCESSORS_AT, &(PROCESSORS as u32).to_le_bytes());
    for n in 0..PROCESSORS {
        let set = (image.wish.own + 1003 + n as u64) * PAGE;
        image.map(DIRECT + set, set, 12);
        image.put(
            data + DISTANCES + n as u64 * 8,
            &(DIRECT + set).wrapping_sub(VARIABLE).to_le_bytes(),
        );
        for list in 0..LISTS {
            link(
                image,
                records,
                &blocks(groups, n, list),
                set + LISTS_AT + list as u64 * 16,
            );
        }
    }
    symbols(image, data);
}

/// Returns the blocks on a list: adjacent ones belong to different processors and kinds.
fn blocks(groups: &[Group], processor: usize, list: usize) -> Vec<u64> {
    let ours = groups
        .iter()
        .filter(|group| matches!(group.kind.as_str(), "listed" | "taken"));
    let of = |group: &Group, n: usize| {
        let kind = n / PROCESSORS % KINDS;
        let place = if group.order == HUGE {
            4 * KINDS + kind % 2
        } else {
            group.order as usize * KINDS + kind
        };
        n % PROCESSORS == processor && place == list
    };
    let blocks = ours.flat_map(|group| {
        let starts = group.pages.clone().step_by(1 << group.order).enumerate();
        starts
            .filter(|(n, _)| of(group, *n))
            .map(|(_, page)| page)
            .collect::<Vec<_>>()
    });
    blocks.collect()
}

/// Links blocks to a list's head, which has a physical address.
fn link(image: &mut Image<'_>, records: u64, blocks: &[u64], head: u64) {
    let mut ring = vec![(head, DIRECT + head)];
    ring.extend(
        blocks
            .iter()
            .map(|page| (image.record(records, *page) + 8, VMEMMAP + page * 64 + 8)),
    );
    for (n, (at, _)) in ring.iter().enumerate() {
        let next = ring[(n + 1) % ring.len()].1;
        let last = ring[(n + ring.len() - 1) % ring.len()].1;
        image.put(*at, &next.to_le_bytes());
        image.put(*at + 8, &last.to_le_bytes());
    }
}

/// Writes the kernel's symbol table; each letter is a token.
fn symbols(image: &mut Image<'_>, data: u64) {
    let all = [
        ("T_stext", IMAGE + 0x100_0000),
        ("Dcontig_page_data", IMAGE + DATA),
        ("d__per_cpu_offset", IMAGE + DATA + DISTANCES),
        ("dnr_cpu_ids", IMAGE + DATA + PROCESSORS_AT),
    ];
    let mut names = Vec::new();
    let mut at = 0;
    for (n, (name, address)) in (0..).zip(all) {
        names.push(name.len() as u8);
        names.extend(name.bytes());
        let offset = -((address - IMAGE) as i32) - 1;
        image.put(data + OFFSETS + n * 4, &offset.to_le_bytes());
        at += 1;
    }
    image.put(data + SYMBOL_COUNT, &u32::to_le_bytes(at));
    image.put(data + NAMES, &names);
    for letter in 0..128_u8 {
        image.put(data + TOKENS + u64::from(letter) * 2, &[letter, 0]);
        image.put(
            data + INDEX + u64::from(letter) * 2,
            &(u16::from(letter) * 2).to_le_bytes(),
        );
    }
    image.put(data + BASE, &IMAGE.to_le_bytes());
}

/// Returns the lines of the note about the lists.
pub(super) fn note() -> String {
    let symbols: [(&str, u64); 6] = [
        ("kallsyms_num_syms", SYMBOL_COUNT),
        ("kallsyms_names", NAMES),
        ("kallsyms_token_table", TOKENS),
        ("kallsyms_token_index", INDEX),
        ("kallsyms_offsets", OFFSETS),
        ("kallsyms_relative_base", BASE),
    ];
    let mut lines: Vec<String> = symbols
        .map(|(name, at)| format!("SYMBOL({name})={:x}", IMAGE + DATA + at))
        .into();
    lines.push(format!(
        "OFFSET(pglist_data.node_zones)=0\nOFFSET(pglist_data.nr_zones)={ZONE_COUNT}\nSIZE(zone)={ZONE}"
    ));
    lines.join("\n")
}

/// Returns BTF of what the lists need, and of the records of pages if these are wanted.
pub(super) fn btf(wish: &Synthetic) -> Vec<u8> {
    let mut btf = Btf::default();
    let kernel = &wish.kernel;
    let mut flags = vec![("PG_reserved", RESERVED_BIT)];
    if wish.page_types {
        flags.extend(FLAGS);
        flags.extend(kernel.slab.map(|bit| ("PG_slab", bit)));
        flags.extend(kernel.huge_flag.map(|bit| ("PG_hugetlb", bit)));
    }
    btf.enumeration("pageflags", &flags);
    btf.enumeration("migratetype", &[("MIGRATE_PCPTYPES", KINDS as u32)]);
    let long = btf.int("long", 8);
    let lists = btf.array(long, LISTS as u32);
    let areas = btf.array(long, (wish.section_bits - 11).min(11));
    let sets = ("per_cpu_pageset", long, SETS as u32);
    btf.record("zone", ZONE as u32, &[sets, ("free_area", areas, 0x40)]);
    btf.record("per_cpu_pages", 256, &[("lists", lists, LISTS_AT as u32)]);
    if !wish.page_types {
        return btf.bytes();
    }
    let fields = [
        ("flags", long, 0),
        (kernel.head, long, 8),
        ("lru", long, 8),
        ("mapping", long, 24),
        ("private", long, 40),
        ("_mapcount", long, 48),
        ("_refcount", long, 52),
    ];
    btf.record("page", RECORD as u32, &fields);
    let map = ("section_mem_map", long, 0);
    btf.record("mem_section", MEM_SECTION as u32, &[map]);
    let top = |n: usize| kernel.types[n].unwrap_or_default() >> 24;
    // Since 6.12; before, the compiler sees only numbers.
    if kernel.types[0].is_some_and(|value| value & 0x00ff_ffff == 0) {
        let types = [
            ("PGTY_buddy", top(0)),
            ("PGTY_offline", top(1)),
            ("PGTY_slab", top(2)),
            ("PGTY_hugetlb", top(3)),
            ("PGTY_unaccepted", top(4)),
        ];
        btf.enumeration("pagetype", &types);
    }
    btf.bytes()
}

/// The flags of records.
const FLAGS: [(&str, u32); 6] = [
    ("PG_lru", 5),
    ("PG_head", 6),
    ("PG_swapcache", 10),
    ("PG_private", 14),
    ("PG_swapbacked", 17),
    ("PG_hwpoison", 20),
];
