//! Workloads of the suite fs: what single operations cost on ext4, xfs and btrfs, on a disk in
//! memory, on tmpfs, and on NFS from the guest itself. Each mounts a fresh file system. What an
//! operation leaves to the flusher is no part of its cost.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use super::disk::{create_in_memory, fsync_in_memory, make, read_in_memory, sync};
use super::disk_mount::InMemory::{self, Btrfs, Ext4, Ext4WithoutJournal, Nfs, Tmpfs, Xfs};
use super::disk_mount::{Mount, Within};
use super::fault::of_file;
use super::file::read_folder;
use super::repeat::{repeat, whole};
use super::{Create, Made, Workload};
use crate::sys::{c, check};

const BLOCK: usize = 4096;
/// What is written and cut off, reserved and freed, copied at a time.
const PIECE: usize = 64 * 1024;
/// Bytes of the file that is written over, and of the one that is copied.
const FILE_BYTES: usize = 1024 * 1024;
const PIECES: usize = FILE_BYTES / PIECE;
/// What is written behind a gap: it ends within a block.
const GAP_PIECE: usize = 1000;
/// Names in the folder that is read, and extents of the file that is asked for them.
const MANY: usize = 64;

/// The workloads by their names.
pub(super) const FILE_SYSTEMS: &[(&str, Create)] = &[
    ("ext4-ram-nojournal", || {
        create_in_memory(Ext4WithoutJournal)
    }),
    ("ext4-ram-write", || append(Ext4)),
    ("ext4-ram-sync", || write_through(Ext4)),
    ("ext4-ram-fault", || fault(Ext4)),
    ("ext4-ram-gap", || append_behind_gaps(Ext4)),
    ("ext4-ram-statfs", || statistics(Ext4)),
    ("ext4-ram-trunc", || truncate(Ext4)),
    ("ext4-ram-falloc", || reserve(Ext4)),
    ("ext4-ram-copy", || copy(Ext4)),
    ("ext4-ram-fiemap", || extents(Ext4)),
    ("ext4-ram-link", || link(Ext4)),
    ("ext4-ram-rename", || rename(Ext4)),
    ("ext4-ram-mkdir", || folder(Ext4)),
    ("ext4-ram-chmod", || permissions(Ext4)),
    ("ext4-ram-readdir", || names(Ext4)),
    ("xfs-ram-create", || create_in_memory(Xfs)),
    ("xfs-ram-fsync", || fsync_in_memory(Xfs)),
    ("xfs-ram-read", || read_in_memory(Xfs)),
    ("xfs-ram-write", || append(Xfs)),
    ("xfs-ram-sync", || write_through(Xfs)),
    ("xfs-ram-fault", || fault(Xfs)),
    ("xfs-ram-gap", || append_behind_gaps(Xfs)),
    ("xfs-ram-statfs", || statistics(Xfs)),
    ("xfs-ram-trunc", || truncate(Xfs)),
    ("xfs-ram-falloc", || reserve(Xfs)),
    ("xfs-ram-copy", || copy(Xfs)),
    ("xfs-ram-fiemap", || extents(Xfs)),
    ("xfs-ram-link", || link(Xfs)),
    ("xfs-ram-rename", || rename(Xfs)),
    ("xfs-ram-mkdir", || folder(Xfs)),
    ("xfs-ram-chmod", || permissions(Xfs)),
    ("xfs-ram-readdir", || names(Xfs)),
    ("btrfs-ram-create", || create_in_memory(Btrfs)),
    ("btrfs-ram-fsync", || fsync_in_memory(Btrfs)),
    ("btrfs-ram-read", || read_in_memory(Btrfs)),
    ("btrfs-ram-write", || append(Btrfs)),
    ("btrfs-ram-fault", || fault(Btrfs)),
    ("btrfs-ram-statfs", || statistics(Btrfs)),
    ("btrfs-ram-trunc", || truncate(Btrfs)),
    ("btrfs-ram-falloc", || reserve(Btrfs)),
    ("btrfs-ram-copy", || copy(Btrfs)),
    ("btrfs-ram-fiemap", || extents(Btrfs)),
    ("btrfs-ram-link", || link(Btrfs)),
    ("btrfs-ram-rename", || rename(Btrfs)),
    ("btrfs-ram-mkdir", || folder(Btrfs)),
    ("btrfs-ram-chmod", || permissions(Btrfs)),
    ("btrfs-ram-readdir", || names(Btrfs)),
    ("tmpfs-write", || append(Tmpfs)),
    ("tmpfs-trunc", || truncate(Tmpfs)),
    ("tmpfs-falloc", || reserve(Tmpfs)),
    ("tmpfs-link", || link(Tmpfs)),
    ("tmpfs-rename", || rename(Tmpfs)),
    ("tmpfs-mkdir", || folder(Tmpfs)),
    ("tmpfs-chmod", || permissions(Tmpfs)),
    ("nfs-ram-create", || create_in_memory(Nfs)),
    ("nfs-ram-fsync", || fsync_in_memory(Nfs)),
    ("nfs-ram-read", || read_in_memory(Nfs)),
    ("nfs-ram-write", || append(Nfs)),
    ("nfs-ram-sync", || write_through(Nfs)),
    ("nfs-ram-trunc", || truncate(Nfs)),
    ("nfs-ram-rename", || rename(Nfs)),
    ("nfs-ram-mkdir", || folder(Nfs)),
    ("nfs-ram-chmod", || permissions(Nfs)),
    ("nfs-ram-readdir", || names(Nfs)),
];

fn within(mount: Mount, operation: impl FnMut(usize) -> io::Result<()> + 'static) -> Made {
    Ok(Box::new(Within {
        work: repeat(operation)?,
        _mount: mount,
    }))
}

fn open(mount: &Mount, name: &str) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(mount.path(name))
}

/// Opens a file of so many bytes that the file system has written.
fn filled(mount: &Mount, name: &str, bytes: usize) -> io::Result<File> {
    let mut file = open(mount, name)?;
    for _ in 0..bytes / BLOCK {
        file.write_all(&[1; BLOCK])?;
    }
    file.sync_all()?;
    Ok(file)
}

/// A file that an iteration makes longer.
struct Append {
    file: File,
    /// What is written at a time.
    piece: &'static [u8],
    /// From the beginning of one piece to that of the next.
    step: usize,
    _mount: Mount,
}

impl Workload for Append {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        (0..operations).try_for_each(|number| {
            self.file
                .write_all_at(self.piece, number * self.step as u64)
        })
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.file.set_len(0)
    }
}

/// …-write: a block is written behind the end of a file.
fn append(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    Ok(Box::new(Append {
        file: open(&mount, "file")?,
        piece: &[1; BLOCK],
        step: BLOCK,
        _mount: mount,
    }))
}

/// …-gap: less than a block is written behind the end of a file and a gap.
fn append_behind_gaps(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    Ok(Box::new(Append {
        file: open(&mount, "file")?,
        piece: &[1; GAP_PIECE],
        step: PIECE,
        _mount: mount,
    }))
}

/// …-statfs: a file is made and removed, and the file system says how full it is.
fn statistics(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let path = mount.path("file");
    let root = c(&mount.path("").to_string_lossy())?;
    within(mount, move |_| {
        make(&path)?;
        fs::remove_file(&path)?;
        // SAFETY: a struct of zeroes is a valid value of the C struct.
        let mut about: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the path is a valid string and the struct is valid for the call.
        check(unsafe { libc::statfs(root.as_ptr(), &raw mut about) }).map(drop)
    })
}

/// …-sync: a block is written over and is on the disk.
fn write_through(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let file = filled(&mount, "file", FILE_BYTES)?;
    within(mount, move |number| {
        let at = number * BLOCK % FILE_BYTES;
        file.write_all_at(&[2; BLOCK], at as u64)?;
        file.sync_data()
    })
}

/// …-fault: the first write to a page of a shared mapping of a file that is in memory.
fn fault(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let file = open(&mount, "file")?;
    Ok(Box::new(Within {
        work: of_file(file, libc::MAP_SHARED, None),
        _mount: mount,
    }))
}

/// …-trunc: blocks are written to an empty file, and it is made empty again.
fn truncate(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let file = open(&mount, "file")?;
    let bytes = vec![1; PIECE];
    within(mount, move |_| {
        file.write_all_at(&bytes, 0)?;
        file.set_len(0)
    })
}

/// …-falloc: blocks are reserved for a file and given back by a hole.
fn reserve(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let file = open(&mount, "file")?;
    let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    within(mount, move |_| {
        for mode in [0, hole] {
            // SAFETY: takes no memory of ours.
            check(unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, PIECE as libc::off_t) })?;
        }
        Ok(())
    })
}

/// …-copy: a piece of a file is copied over another by the kernel, which may share its blocks.
fn copy(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let from = filled(&mount, "from", FILE_BYTES)?;
    let to = filled(&mount, "to", FILE_BYTES)?;
    within(mount, move |number| {
        // Each time round from another place: the same blocks would not be shared again.
        let mut at = ((number + number / PIECES) * PIECE % FILE_BYTES) as i64;
        let mut there = (number * PIECE % FILE_BYTES) as i64;
        // SAFETY: both places are valid for the call.
        let copied = check(unsafe {
            libc::syscall(
                libc::SYS_copy_file_range,
                from.as_raw_fd(),
                &raw mut at,
                to.as_raw_fd(),
                &raw mut there,
                PIECE,
                0,
            )
        })?;
        whole(copied, PIECE)
    })
}

/// `struct fiemap` with room for the extents, and `struct fiemap_extent`: fiemap.h of the kernel's
/// user interface.
#[repr(C)]
struct Extents {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [[u64; 7]; MANY],
}

/// `FS_IOC_FIEMAP` of include/uapi/linux/fs.h: `_IOWR('f', 11, struct fiemap)`.
const FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;

/// …-fiemap: a file says where its extents are.
fn extents(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let file = open(&mount, "file")?;
    // A hole behind each block, so that none is joined to the next.
    for number in 0..MANY {
        file.write_all_at(&[1; BLOCK], (number * 2 * BLOCK) as u64)?;
    }
    file.sync_all()?;
    within(mount, move |_| {
        let mut asked = Extents {
            start: 0,
            length: u64::MAX,
            flags: 0,
            mapped: 0,
            room: MANY as u32,
            reserved: 0,
            extents: [[0; 7]; MANY],
        };
        // SAFETY: the struct has the layout of the C struct, with as much room as it says.
        check(unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP, &raw mut asked) })?;
        whole(i64::from(asked.mapped), MANY)
    })
}

/// …-link: a file gets a second name and loses it.
fn link(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let file = mount.path("file");
    let second = mount.path("name");
    make(&file)?;
    within(mount, move |_| {
        fs::hard_link(&file, &second)?;
        fs::remove_file(&second)
    })
}

/// …-rename: a file gets another name, and its first one again.
fn rename(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let file = mount.path("file");
    let other = mount.path("name");
    make(&file)?;
    within(mount, move |_| {
        fs::rename(&file, &other)?;
        fs::rename(&other, &file)
    })
}

/// …-mkdir: a folder is made and removed.
fn folder(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let folder = mount.path("folder");
    within(mount, move |_| {
        fs::create_dir(&folder)?;
        fs::remove_dir(&folder)
    })
}

fn set_mode(file: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(file, Permissions::from_mode(mode))
}

/// …-chmod: a file's permissions change, and change back.
fn permissions(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let file = mount.path("file");
    make(&file)?;
    within(mount, move |_| {
        set_mode(&file, 0o600)?;
        set_mode(&file, 0o644)
    })
}

/// …-readdir: a folder is read from its beginning to its end.
fn names(kind: InMemory) -> Made {
    let mount = Mount::in_memory(kind)?;
    let folder = mount.path("folder");
    fs::create_dir(&folder)?;
    for number in 0..MANY {
        File::create(folder.join(format!("name-{number:02}")))?;
    }
    sync();
    Ok(Box::new(Within {
        work: read_folder(&folder, None)?,
        _mount: mount,
    }))
}
