//! A mounted file system in a guest that has it for itself: on a scratch disk, on a disk in memory,
//! tmpfs, or NFS from the guest itself.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Failure, Workload, disk_image, ext4_format, in_guest, nfs};
use crate::sys::{c, check};
use guest::mount;

/// The first virtio disk, and the first disk in memory (`drivers/block/brd.c`).
const DISK: &str = "/dev/vda";
const RAM_DISK: &str = "/dev/ram0";
const TARGET: &str = "/tmp/disk";

/// A file system that needs no disk of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InMemory {
    Ext4,
    Ext4WithoutJournal,
    Xfs,
    Btrfs,
    Tmpfs,
    /// Served by the guest to itself.
    Nfs,
}

/// The mounted file system; unmounted when dropped.
pub(super) struct Mount {
    target: &'static str,
    /// What it needs, unmounted after it.
    _below: Option<Box<Mount>>,
}

impl Mount {
    fn at_target() -> Self {
        Self {
            target: TARGET,
            _below: None,
        }
    }

    /// Returns what is mounted there and needs another one.
    pub(super) fn over(target: &'static str, below: Self) -> Self {
        Self {
            target,
            _below: Some(Box::new(below)),
        }
    }

    /// Mounts the scratch disk.
    pub(super) fn of_disk(file_system: &str) -> Result<Self, Failure> {
        if !in_guest() || !Path::new(DISK).exists() {
            return Err(Failure::Unsupported(format!(
                "needs a guest with a scratch disk ({DISK})"
            )));
        }
        Self::of(DISK, file_system)
    }

    /// Makes an empty file system in memory and mounts it.
    pub(super) fn in_memory(kind: InMemory) -> Result<Self, Failure> {
        if !in_guest() {
            return Err(Failure::Unsupported(
                "needs a guest: it mounts a file system".to_owned(),
            ));
        }
        let (name, bytes) = match kind {
            InMemory::Tmpfs => {
                mount("tmpfs", TARGET)?;
                return Ok(Self::at_target());
            }
            InMemory::Nfs => return nfs::mounted(),
            InMemory::Ext4 | InMemory::Ext4WithoutJournal => (
                "ext4",
                u64::from(ext4_format::BLOCKS) * ext4_format::BLOCK as u64,
            ),
            InMemory::Xfs => ("xfs", disk_image::DISK_BYTES),
            InMemory::Btrfs => ("btrfs", disk_image::DISK_BYTES),
        };
        let disk = ram_disk(bytes)?;
        match kind {
            InMemory::Xfs => disk_image::write(disk_image::XFS, &disk)?,
            InMemory::Btrfs => disk_image::write(disk_image::BTRFS, &disk)?,
            kind => ext4_format::format(&disk, kind == InMemory::Ext4)?,
        }
        drop(disk);
        Self::of(RAM_DISK, name)
    }

    fn of(disk: &str, file_system: &str) -> Result<Self, Failure> {
        fs::create_dir_all(TARGET)?;
        let disk = c(disk)?;
        let target = c(TARGET)?;
        let kind = c(file_system)?;
        // SAFETY: the strings are valid and outlive the call; no data is passed.
        let mounted = unsafe {
            libc::mount(
                disk.as_ptr(),
                target.as_ptr(),
                kind.as_ptr(),
                0,
                std::ptr::null(),
            )
        };
        match check(mounted) {
            Ok(_) => Ok(Self::at_target()),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Err(Failure::Unsupported(
                format!("the kernel has no {file_system}"),
            )),
            Err(error) => Err(Failure::Error(io::Error::new(
                error.kind(),
                format!("mount {file_system}: {error}"),
            ))),
        }
    }

    /// Returns the path of a name in its root.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        Path::new(self.target).join(name)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Ok(target) = c(self.target) {
            // SAFETY: the path is a valid string that outlives the call. What is open keeps the
            // file system alive.
            unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

/// Opens the disk in memory, which has at least so many bytes.
fn ram_disk(needed: u64) -> Result<File, Failure> {
    if !Path::new(RAM_DISK).exists() {
        return Err(Failure::Unsupported(format!(
            "needs a guest whose kernel has disks in memory ({RAM_DISK}, CONFIG_BLK_DEV_RAM)"
        )));
    }
    let mut disk = OpenOptions::new().read(true).write(true).open(RAM_DISK)?;
    let size = disk.seek(SeekFrom::End(0))?;
    if size < needed {
        return Err(Failure::Unsupported(format!(
            "{RAM_DISK} has {size} bytes and needs {needed} (rd_size, CONFIG_BLK_DEV_RAM_SIZE)"
        )));
    }
    Ok(disk)
}

/// A workload in a mounted file system, which outlives it.
pub(super) struct Within {
    pub(super) work: Box<dyn Workload>,
    pub(super) _mount: Mount,
}

impl Workload for Within {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.work.prepare(operations)
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.work.run(operations)
    }

    fn between(&self) -> super::Between {
        self.work.between()
    }

    fn clear(&mut self, operations: u64) -> io::Result<()> {
        self.work.clear(operations)
    }
}
