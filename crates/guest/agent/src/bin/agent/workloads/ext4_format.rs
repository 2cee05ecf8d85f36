//! An empty ext4 file system, with a journal or without, for a disk in memory: guests have no mkfs. Layout:
//! Documentation/filesystems/ext4 and fs/ext4/ext4.h, fs/jbd2 in the kernel.
//!
//! It has several block groups, as every real disk has, so that tasks allocate from groups of their
//! own: sixteen, from which on the kernel searches groups by size and keeps a goal for each
//! processor (`MB_DEFAULT_LINEAR_SCAN_THRESHOLD`, `s_mb_nr_global_goals`). The first of four groups
//! has the bitmaps and inodes of all four. Only what a mount and ordinary work need: no checksums,
//! no reserved blocks, no resizing.

use std::io;
use std::os::unix::fs::FileExt;

pub(super) const BLOCK: usize = 4096;
/// Blocks of the file system: 64 MiB.
pub(super) const BLOCKS: u32 = GROUPS * GROUP_BLOCKS;
const GROUPS: u32 = 16;
const GROUP_BLOCKS: u32 = 1024;
/// Groups that have their bitmaps and inodes in the first of them: 2 to that power.
const FLEX_POWER: u32 = 2;
const FLEX: u32 = 1 << FLEX_POWER;
/// Inodes of a group.
const GROUP_INODES: u32 = 512;
const INODES: u32 = GROUPS * GROUP_INODES;
const INODE_BYTES: usize = 256;
const TABLE_BLOCKS: u32 = GROUP_INODES * INODE_BYTES as u32 / BLOCK as u32;
/// Blocks of the superblock and the descriptors, or of a copy of them.
const SUPER_BLOCKS: u32 = 2;
/// Blocks of the bitmaps and inodes of the groups of one flexible group.
const FLEX_BLOCKS: u32 = FLEX * (2 + TABLE_BLOCKS);
const ROOT_BLOCK: u32 = SUPER_BLOCKS + FLEX_BLOCKS;
const LOST_BLOCK: u32 = ROOT_BLOCK + 1;
/// The journal has a group of its own, in the middle: one without a copy of the superblock.
const JOURNAL_GROUP: u32 = 6;
const JOURNAL_BLOCK: u32 = JOURNAL_GROUP * GROUP_BLOCKS;
/// Blocks of the journal: the fewest that the kernel takes (`JBD2_MIN_JOURNAL_BLOCKS`).
const JOURNAL: u32 = GROUP_BLOCKS;

const ROOT_INODE: u32 = 2;
const JOURNAL_INODE: u32 = 8;
const LOST_INODE: u32 = 11;

/// `EXT4_EXTENTS_FL`, and the magic of an extent's header.
const EXTENTS: u32 = 0x8_0000;
const EXTENT_MAGIC: u16 = 0xf30a;
/// A moment, for all times: 2026-01-01.
const TIME: u32 = 1_767_225_600;

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Says whether a group begins with the superblock or a copy: the first ones, and powers of 3, 5
/// and 7 (`ext4_bg_has_super`).
fn has_superblock(group: u32) -> bool {
    matches!(group, 0 | 1 | 3 | 5 | 7 | 9)
}

/// Returns how many blocks at the beginning of a group are taken.
fn used_blocks(group: u32, has_journal: bool) -> u32 {
    if group == 0 {
        return LOST_BLOCK + 1;
    }
    if group == JOURNAL_GROUP && has_journal {
        return JOURNAL;
    }
    let copy = if has_superblock(group) {
        SUPER_BLOCKS
    } else {
        0
    };
    let tables = if group.is_multiple_of(FLEX) {
        FLEX_BLOCKS
    } else {
        0
    };
    copy + tables
}

fn used_inodes(group: u32) -> u32 {
    if group == 0 { LOST_INODE } else { 0 }
}

/// Returns where a group's bitmaps of blocks and of inodes, and its inodes begin.
fn places(group: u32) -> [u32; 3] {
    let first = group - group % FLEX;
    let begin = first * GROUP_BLOCKS + if first == 0 { SUPER_BLOCKS } else { 0 };
    let within = group % FLEX;
    let tables = begin + 2 * FLEX;
    [
        begin + within,
        begin + FLEX + within,
        tables + within * TABLE_BLOCKS,
    ]
}

/// `struct ext4_super_block`, of a group.
fn superblock(group: u32, has_journal: bool) -> Vec<u8> {
    let used: u32 = (0..GROUPS)
        .map(|group| used_blocks(group, has_journal))
        .sum();
    let mut bytes = vec![0; 1024];
    put32(&mut bytes, 0x00, INODES);
    put32(&mut bytes, 0x04, BLOCKS);
    put32(&mut bytes, 0x0c, BLOCKS - used);
    put32(&mut bytes, 0x10, INODES - LOST_INODE);
    // Blocks of 2^(10 + 2) bytes; clusters are blocks.
    put32(&mut bytes, 0x18, 2);
    put32(&mut bytes, 0x1c, 2);
    put32(&mut bytes, 0x20, GROUP_BLOCKS);
    put32(&mut bytes, 0x24, GROUP_BLOCKS);
    put32(&mut bytes, 0x28, GROUP_INODES);
    put32(&mut bytes, 0x30, TIME);
    // Mounts until a check: never.
    put16(&mut bytes, 0x36, u16::MAX);
    put16(&mut bytes, 0x38, 0xef53);
    // Clean; go on after errors.
    put16(&mut bytes, 0x3a, 1);
    put16(&mut bytes, 0x3c, 1);
    put32(&mut bytes, 0x40, TIME);
    // Inodes of a size of their own, the first that is free for use.
    put32(&mut bytes, 0x4c, 1);
    put32(&mut bytes, 0x54, LOST_INODE);
    put16(&mut bytes, 0x58, INODE_BYTES as u16);
    put16(&mut bytes, 0x5a, group as u16);
    // File types in directories, extents and flexible groups; few copies of the superblock, large
    // files, and extra times.
    put32(&mut bytes, 0x60, 0x2 | 0x40 | 0x200);
    put32(&mut bytes, 0x64, 0x1 | 0x2 | 0x40);
    bytes[0x174] = FLEX_POWER as u8;
    bytes[0x68..0x78].copy_from_slice(b"marvin-ext4-disk");
    if has_journal {
        put32(&mut bytes, 0x5c, 0x4);
        put32(&mut bytes, 0xe0, JOURNAL_INODE);
    }
    put32(&mut bytes, 0x108, TIME);
    put16(&mut bytes, 0x15c, 32);
    put16(&mut bytes, 0x15e, 32);
    bytes
}

/// `struct ext4_group_desc` of each group, of 32 bytes.
fn descriptors(has_journal: bool) -> Vec<u8> {
    let mut all = Vec::new();
    for group in 0..GROUPS {
        let mut bytes = vec![0; 32];
        for (place, at) in places(group).into_iter().zip([0x00, 0x04, 0x08]) {
            put32(&mut bytes, at, place);
        }
        let free = GROUP_BLOCKS - used_blocks(group, has_journal);
        put16(&mut bytes, 0x0c, free as u16);
        put16(&mut bytes, 0x0e, (GROUP_INODES - used_inodes(group)) as u16);
        // The root and lost+found.
        put16(&mut bytes, 0x10, if group == 0 { 2 } else { 0 });
        all.extend(bytes);
    }
    all
}

/// A bitmap in which the first bits are taken, and those that stand for nothing.
fn bitmap(taken: u32, there: u32) -> Vec<u8> {
    let mut bytes = vec![0u8; BLOCK];
    for bit in (0..taken).chain(there..BLOCK as u32 * 8) {
        bytes[bit as usize / 8] |= 1 << (bit % 8);
    }
    bytes
}

/// `struct ext4_inode` with one extent.
fn inode(mode: u16, links: u16, first: u32, blocks: u32) -> Vec<u8> {
    let mut bytes = vec![0; INODE_BYTES];
    put16(&mut bytes, 0x00, mode);
    put32(&mut bytes, 0x04, blocks * BLOCK as u32);
    for time in [0x08, 0x0c, 0x10, 0x90] {
        put32(&mut bytes, time, TIME);
    }
    put16(&mut bytes, 0x1a, links);
    // In sectors of 512 bytes.
    put32(&mut bytes, 0x1c, blocks * (BLOCK as u32 / 512));
    put32(&mut bytes, 0x20, EXTENTS);
    // The extents' header, and the extent.
    put16(&mut bytes, 0x28, EXTENT_MAGIC);
    put16(&mut bytes, 0x2a, 1);
    put16(&mut bytes, 0x2c, 4);
    put16(&mut bytes, 0x38, blocks as u16);
    put32(&mut bytes, 0x3c, first);
    put16(&mut bytes, 0x80, 32);
    bytes
}

/// Entries of a directory, the last up to the end of the block.
fn directory(entries: &[(u32, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, (number, name)) in entries.iter().enumerate() {
        let start = bytes.len();
        let length = (8 + name.len()).next_multiple_of(4);
        let length = match at + 1 == entries.len() {
            true => BLOCK - start,
            false => length,
        };
        bytes.extend(number.to_le_bytes());
        bytes.extend((length as u16).to_le_bytes());
        // A directory: 2.
        bytes.extend([name.len() as u8, 2]);
        bytes.extend(name.bytes());
        bytes.resize(start + length, 0);
    }
    bytes
}

/// `struct journal_superblock_s`, all numbers the other way round.
fn journal() -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    let words = [0xc03b_3998, 4, 0, BLOCK as u32, JOURNAL, 1, 1, 0];
    for (word, at) in words.iter().zip((0..).step_by(4)) {
        bytes[at..at + 4].copy_from_slice(&u32::to_be_bytes(*word));
    }
    // The journal's users: one, with the file system's name.
    bytes[0x40..0x44].copy_from_slice(&1u32.to_be_bytes());
    bytes
}

/// The inodes of a group.
fn inode_table(group: u32, has_journal: bool) -> Vec<u8> {
    let mut table = vec![0; TABLE_BLOCKS as usize * BLOCK];
    if group > 0 {
        return table;
    }
    let inodes = [
        (ROOT_INODE, inode(0o040_755, 3, ROOT_BLOCK, 1)),
        (JOURNAL_INODE, inode(0o100_600, 1, JOURNAL_BLOCK, JOURNAL)),
        (LOST_INODE, inode(0o040_700, 2, LOST_BLOCK, 1)),
    ];
    let has_inode = |number: u32| has_journal || number != JOURNAL_INODE;
    for (number, bytes) in inodes.into_iter().filter(|(number, _)| has_inode(*number)) {
        let at = (number as usize - 1) * INODE_BYTES;
        table[at..at + INODE_BYTES].copy_from_slice(&bytes);
    }
    table
}

/// Writes the file system.
pub(super) fn format(disk: &impl FileExt, has_journal: bool) -> io::Result<()> {
    let write =
        |block: u32, bytes: &[u8]| disk.write_all_at(bytes, u64::from(block) * BLOCK as u64);
    for group in 0..GROUPS {
        let begin = group * GROUP_BLOCKS;
        let superblock = superblock(group, has_journal);
        if group == 0 {
            disk.write_all_at(&superblock, 1024)?;
        } else if has_superblock(group) {
            write(begin, &superblock)?;
        }
        if has_superblock(group) {
            write(begin + 1, &descriptors(has_journal))?;
        }
        let [blocks, inodes, table] = places(group);
        let used = used_blocks(group, has_journal);
        write(blocks, &bitmap(used, GROUP_BLOCKS))?;
        write(inodes, &bitmap(used_inodes(group), GROUP_INODES))?;
        write(table, &inode_table(group, has_journal))?;
    }
    let root = [
        (ROOT_INODE, "."),
        (ROOT_INODE, ".."),
        (LOST_INODE, "lost+found"),
    ];
    write(ROOT_BLOCK, &directory(&root))?;
    write(
        LOST_BLOCK,
        &directory(&[(LOST_INODE, "."), (ROOT_INODE, "..")]),
    )?;
    if has_journal {
        write(JOURNAL_BLOCK, &journal())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::process::Command;

    use super::{BLOCK, BLOCKS, format};

    /// The program of the file system's own authors finds nothing to mend.
    #[test]
    fn e2fsck_finds_the_file_systems_clean() {
        for has_journal in [true, false] {
            check_clean(has_journal);
        }
    }

    #[expect(clippy::print_stdout, reason = "a skipped check says why")]
    fn check_clean(has_journal: bool) {
        let path = std::env::temp_dir().join(format!("marvin-ext4-{}", std::process::id()));
        let disk = File::create(&path).unwrap();
        disk.set_len(u64::from(BLOCKS) * BLOCK as u64).unwrap();
        format(&disk, has_journal).unwrap();
        let program = ["/sbin/e2fsck", "/usr/sbin/e2fsck"]
            .into_iter()
            .find(|program| fs::exists(program).unwrap_or(false));
        let Some(program) = program else {
            println!("not checked: this host has no e2fsck");
            fs::remove_file(&path).unwrap();
            return;
        };
        let checked = Command::new(program)
            .args(["-f", "-n"])
            .arg(&path)
            .output()
            .unwrap();
        fs::remove_file(&path).unwrap();
        let text = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success(), "{text}");
    }
}
