//! Files on a disk: what a file system and the block layer cost, in a guest that has the disk for
//! itself: a scratch disk, or for ext4 a disk in memory, which guests of any machine can have.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::ebizzy::next_random;
use super::ext4_format;
use super::{Failure, Made, Workload, in_guest, scratch};
use crate::sys::{c, check};

/// The first virtio disk, and the first disk in memory (`drivers/block/brd.c`).
const DISK: &str = "/dev/vda";
const RAM_DISK: &str = "/dev/ram0";
const TARGET: &str = "/tmp/disk";
/// A block, and a small file.
const BLOCK: usize = 4096;
/// What is read from the beginning on, a piece at a time.
const PIECE: usize = 64 * 1024;
/// The file that is read, and the one of a disk in memory.
const FILE_BYTES: usize = 32 * 1024 * 1024;
const RAM_FILE_BYTES: usize = 8 * 1024 * 1024;

/// The mounted disk; unmounted when dropped.
struct Mount;

impl Mount {
    fn new(file_system: &str) -> Result<Self, Failure> {
        if !in_guest() || !Path::new(DISK).exists() {
            return Err(Failure::Unsupported(format!(
                "needs a guest with a scratch disk ({DISK})"
            )));
        }
        Self::of(DISK, file_system)
    }

    /// Makes an ext4 file system on a disk in memory and mounts it.
    fn in_memory() -> Result<Self, Failure> {
        if !in_guest() || !Path::new(RAM_DISK).exists() {
            return Err(Failure::Unsupported(format!(
                "needs a guest whose kernel has disks in memory ({RAM_DISK}, CONFIG_BLK_DEV_RAM)"
            )));
        }
        let mut disk = OpenOptions::new().read(true).write(true).open(RAM_DISK)?;
        let needed = u64::from(ext4_format::BLOCKS) * ext4_format::BLOCK as u64;
        let size = disk.seek(SeekFrom::End(0))?;
        if size < needed {
            return Err(Failure::Unsupported(format!(
                "{RAM_DISK} has {size} bytes and needs {needed} (rd_size, CONFIG_BLK_DEV_RAM_SIZE)"
            )));
        }
        ext4_format::format(&disk)?;
        drop(disk);
        Self::of(RAM_DISK, "ext4")
    }

    fn of(disk: &str, file_system: &str) -> Result<Self, Failure> {
        fs::create_dir_all(TARGET)?;
        let (disk, target, kind) = (c(disk)?, c(TARGET)?, c(file_system)?);
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
            Ok(_) => Ok(Self),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Err(Failure::Unsupported(
                format!("the kernel has no {file_system}"),
            )),
            Err(error) => Err(Failure::Error(io::Error::new(
                error.kind(),
                format!("mount {file_system}: {error}"),
            ))),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Ok(target) = c(TARGET) {
            // SAFETY: the path is a valid string that outlives the call. What is open keeps the
            // file system alive.
            unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

/// Drops what the kernel keeps in memory of files, after it has written what it still has to.
fn drop_caches() -> io::Result<()> {
    sync();
    fs::write("/proc/sys/vm/drop_caches", "3")
}

fn sync() {
    // SAFETY: sync takes nothing and returns nothing.
    unsafe { libc::sync() };
}

/// Returns the paths of so many files.
fn paths(count: u64) -> Vec<PathBuf> {
    (0..count)
        .map(|number| Path::new(TARGET).join(format!("file-{number:06}")))
        .collect()
}

fn make(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(&[1; BLOCK])?;
    Ok(file)
}

struct Fsync {
    files: Vec<PathBuf>,
    _mount: Mount,
}

impl Workload for Fsync {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.files = paths(operations);
        sync();
        Ok(())
    }

    fn run(&mut self, _operations: u64) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|path| make(path)?.sync_all())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.files.iter().try_for_each(fs::remove_file)
    }
}

/// …-fsync: make a small file and have it written to the disk.
pub(super) fn fsync(file_system: &str) -> Made {
    Ok(Box::new(Fsync {
        _mount: Mount::new(file_system)?,
        files: Vec::new(),
    }))
}

/// ext4-ram-fsync: the same on a disk in memory.
pub(super) fn fsync_in_memory() -> Made {
    Ok(Box::new(Fsync {
        _mount: Mount::in_memory()?,
        files: Vec::new(),
    }))
}

struct Create {
    path: PathBuf,
    _mount: Mount,
}

impl Workload for Create {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            make(&self.path)?;
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }
}

/// ext4-ram-create: make a small file and remove it.
pub(super) fn create_in_memory() -> Made {
    Ok(Box::new(Create {
        _mount: Mount::in_memory()?,
        path: Path::new(TARGET).join("file"),
    }))
}

struct Unlink {
    files: Vec<PathBuf>,
    _mount: Mount,
}

impl Workload for Unlink {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.files = paths(operations);
        self.files
            .iter()
            .try_for_each(|path| make(path).map(drop))?;
        sync();
        Ok(())
    }

    fn run(&mut self, _operations: u64) -> io::Result<()> {
        self.files.iter().try_for_each(fs::remove_file)
    }
}

/// …-unlink: remove small files that are on the disk.
pub(super) fn unlink(file_system: &str) -> Made {
    Ok(Box::new(Unlink {
        _mount: Mount::new(file_system)?,
        files: Vec::new(),
    }))
}

struct Read {
    file: File,
    path: PathBuf,
    bytes: usize,
    buffer: Vec<u8>,
    /// The state of the numbers by which the next block is chosen; none if blocks are read one
    /// after the other.
    random: Option<u64>,
    _mount: Mount,
}

impl Workload for Read {
    fn prepare(&mut self, _operations: u64) -> io::Result<()> {
        drop_caches()
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let size = self.buffer.len();
        let blocks = self.bytes / size;
        for operation in 0..operations as usize {
            let block = match &mut self.random {
                Some(state) => next_random(state) % blocks,
                None => operation % blocks,
            };
            self.file
                .read_exact_at(&mut self.buffer, (block * size) as u64)?;
        }
        Ok(())
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        // The disk ends with the guest.
        fs::remove_file(&self.path).ok();
    }
}

fn reading(mount: Mount, bytes: usize, size: usize, random: Option<u64>) -> Made {
    let path = Path::new(TARGET).join("file");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    scratch::fill(&mut file, bytes)?;
    file.sync_all()?;
    Ok(Box::new(Read {
        file,
        path,
        bytes,
        buffer: vec![0; size],
        random,
        _mount: mount,
    }))
}

/// …-read: read a file that is not in memory from its beginning to its end.
pub(super) fn read(file_system: &str) -> Made {
    reading(Mount::new(file_system)?, FILE_BYTES, PIECE, None)
}

/// ext4-ram-read: the same on a disk in memory.
pub(super) fn read_in_memory() -> Made {
    reading(Mount::in_memory()?, RAM_FILE_BYTES, PIECE, None)
}

/// …-randread: read a file that is not in memory at random places.
pub(super) fn random_read(file_system: &str) -> Made {
    reading(Mount::new(file_system)?, FILE_BYTES, BLOCK, Some(1))
}
