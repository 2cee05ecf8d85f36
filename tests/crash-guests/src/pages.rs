//! Walks a kernel's page tables in a vmcore, to find its direct map.
#![expect(
    clippy::unwrap_used,
    reason = "for tests and benches: one that cannot go on has failed"
)]

use crate::elf::Elf;

/// The mapping of the kernel's image (Documentation/arch/x86/x86_64/mm.rst).
pub const IMAGE: u64 = 0xffff_ffff_8000_0000;
/// The address bits of an entry.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;

/// The kernel's configuration at build and boot, from its note.
pub fn has_five_levels(vmcore: &Elf) -> bool {
    vmcore
        .vmcoreinfo
        .get("NUMBER(pgtable_l5_enabled)")
        .is_some_and(|value| value == "1")
}

/// Returns the physical address of an address in the kernel's image, by the note's offset.
pub fn image_to_physical(vmcore: &Elf, address: u64) -> u64 {
    let base: i64 = vmcore.vmcoreinfo["NUMBER(phys_base)"].parse().unwrap();
    (address - IMAGE).wrapping_add_signed(base)
}

/// Returns the lowest address of the direct map: the one of physical address 0.
pub fn direct_map(vmcore: &Elf) -> u64 {
    let (levels, lowest) = match has_five_levels(vmcore) {
        true => (5, 0xff11_0000_0000_0000),
        false => (4, 0xffff_8880_0000_0000),
    };
    let root = image_to_physical(vmcore, vmcore.symbol("init_top_pgt"));
    let (address, physical) = first(vmcore, root, 0, levels, lowest).unwrap();
    address - physical
}

/// Returns the first address from `lowest` on that a table maps, and its target.
fn first(vmcore: &Elf, table: u64, start: u64, level: u32, lowest: u64) -> Option<(u64, u64)> {
    let shift = 12 + 9 * (level - 1);
    let mut bytes = [0; 4096];
    vmcore.read(table, &mut bytes);
    for (number, entry) in bytes.chunks_exact(8).enumerate() {
        let entry = u64::from_le_bytes(entry.try_into().unwrap());
        let mut address = start | (number as u64) << shift;
        if start == 0 && number >= 256 {
            // The upper half of the address space is sign-extended.
            address |= u64::MAX << (shift + 9);
        }
        if address.saturating_add((1 << shift) - 1) < lowest || entry & PRESENT == 0 {
            continue;
        }
        let physical = entry & ADDRESS;
        if level == 1 || (level <= 3 && entry & LARGE != 0) {
            return Some((address, physical & (u64::MAX << shift)));
        }
        if let Some(found) = first(vmcore, physical, address, level - 1, lowest) {
            return Some(found);
        }
    }
    None
}
