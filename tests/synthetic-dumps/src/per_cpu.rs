//! Free pages on lists of two processors: pages of kind `listed`, and of kind `taken`, which is
//! just being removed from a list, so that the rest of the list is not trusted.

use super::{DIRECT, Group, IMAGE, Image, PAGE, RESERVED_BIT, VMEMMAP};

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

/// Returns minimal BTF: two enumerators and two structures.
pub(super) fn btf() -> Vec<u8> {
    // Strings and where they begin.
    let strings = b"\0PG_reserved\0MIGRATE_PCPTYPES\0zone\0per_cpu_pageset\0per_cpu_pages\0lists\0";
    let zone = 30;
    let sets = 35;
    let pages = 51;
    let lists = 65;
    let types: Vec<u32> = [
        vec![1, 6 << 24 | 1, 4, 1, RESERVED_BIT],
        vec![0, 6 << 24 | 1, 4, 13, KINDS as u32],
        vec![0, 3 << 24, 0, 2, 2, LISTS as u32],
        vec![zone, 4 << 24 | 1, ZONE as u32, sets, 2, SETS as u32 * 8],
        vec![pages, 4 << 24 | 1, 256, lists, 3, LISTS_AT as u32 * 8],
    ]
    .concat();
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    for number in [
        24,
        0,
        types.len() as u32 * 4,
        types.len() as u32 * 4,
        strings.len() as u32,
    ] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(types.iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend(strings);
    bytes
}
