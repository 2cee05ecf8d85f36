//! An empty ext4 file system, with a journal or without, for a disk in memory: guests have no mkfs. Layout:
//! Documentation/filesystems/ext4 and fs/ext4/ext4.h, fs/jbd2 in the kernel; one block group.
//!
//! Only what a mount and ordinary work need: no checksums, no reserved blocks, no resizing.

use std::io;
use std::os::unix::fs::FileExt;

pub(super) const BLOCK: usize = 4096;
/// Blocks of the file system: 32 MiB.
pub(super) const BLOCKS: u32 = 8192;
const INODES: u32 = 2048;
const INODE_BYTES: usize = 256;
/// Blocks of the journal: the fewest that the kernel takes (`JBD2_MIN_JOURNAL_BLOCKS`).
const JOURNAL: u32 = 1024;

// Where things are, in blocks: superblock, descriptors, both bitmaps, the inodes, the root
// directory, lost+found, the journal.
const BLOCK_BITMAP: u32 = 2;
const INODE_BITMAP: u32 = 3;
const INODE_TABLE: u32 = 4;
const INODE_TABLE_BLOCKS: u32 = INODES * INODE_BYTES as u32 / BLOCK as u32;
const ROOT_BLOCK: u32 = INODE_TABLE + INODE_TABLE_BLOCKS;
const LOST_BLOCK: u32 = ROOT_BLOCK + 1;
const JOURNAL_BLOCK: u32 = LOST_BLOCK + 1;
const USED_BLOCKS: u32 = JOURNAL_BLOCK + JOURNAL;

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

/// Returns how many blocks are taken.
fn used_blocks(has_journal: bool) -> u32 {
    if has_journal {
        USED_BLOCKS
    } else {
        JOURNAL_BLOCK
    }
}

/// `struct ext4_super_block`.
fn superblock(has_journal: bool) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    put32(&mut bytes, 0x00, INODES);
    put32(&mut bytes, 0x04, BLOCKS);
    put32(&mut bytes, 0x0c, BLOCKS - used_blocks(has_journal));
    put32(&mut bytes, 0x10, INODES - LOST_INODE);
    // Blocks of 2^(10 + 2) bytes; clusters are blocks.
    put32(&mut bytes, 0x18, 2);
    put32(&mut bytes, 0x1c, 2);
    // A group has as many blocks as a bitmap of one block has bits.
    put32(&mut bytes, 0x20, BLOCK as u32 * 8);
    put32(&mut bytes, 0x24, BLOCK as u32 * 8);
    put32(&mut bytes, 0x28, INODES);
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
    // File types in directories and extents; large files, and extra times.
    put32(&mut bytes, 0x60, 0x2 | 0x40);
    put32(&mut bytes, 0x64, 0x2 | 0x40);
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

/// `struct ext4_group_desc`, of 32 bytes.
fn descriptors(has_journal: bool) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    put32(&mut bytes, 0x00, BLOCK_BITMAP);
    put32(&mut bytes, 0x04, INODE_BITMAP);
    put32(&mut bytes, 0x08, INODE_TABLE);
    put16(&mut bytes, 0x0c, (BLOCKS - used_blocks(has_journal)) as u16);
    put16(&mut bytes, 0x0e, (INODES - LOST_INODE) as u16);
    // The root and lost+found.
    put16(&mut bytes, 0x10, 2);
    bytes
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

/// Writes the file system.
pub(super) fn format(disk: &impl FileExt, has_journal: bool) -> io::Result<()> {
    let write =
        |block: u32, bytes: &[u8]| disk.write_all_at(bytes, u64::from(block) * BLOCK as u64);
    disk.write_all_at(&superblock(has_journal), 1024)?;
    write(1, &descriptors(has_journal))?;
    write(BLOCK_BITMAP, &bitmap(used_blocks(has_journal), BLOCKS))?;
    write(INODE_BITMAP, &bitmap(LOST_INODE, INODES))?;
    let mut table = vec![0; (INODE_TABLE_BLOCKS as usize) * BLOCK];
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
    write(INODE_TABLE, &table)?;
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
