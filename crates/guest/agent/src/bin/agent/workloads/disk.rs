//! Files on a disk: what a file system and the block layer cost, in a guest that has the disk for
//! itself: a scratch disk, or a disk in memory, which guests of any machine can have.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::disk_mount::{InMemory, Mount};
use super::ebizzy::next_random;
use super::{Made, Workload, scratch};

/// A block, and a small file.
const BLOCK: usize = 4096;
/// What is read from the beginning on, a piece at a time.
const PIECE: usize = 64 * 1024;
/// The file that is read, and the one of a disk in memory.
const FILE_BYTES: usize = 32 * 1024 * 1024;
const RAM_FILE_BYTES: usize = 8 * 1024 * 1024;

/// Drops what the kernel keeps in memory of files, after it has written what it still has to.
fn drop_caches() -> io::Result<()> {
    sync();
    fs::write("/proc/sys/vm/drop_caches", "3")
}

pub(super) fn sync() {
    // SAFETY: sync takes nothing and returns nothing.
    unsafe { libc::sync() };
}

/// Returns the paths of so many files.
fn paths(mount: &Mount, count: u64) -> Vec<PathBuf> {
    (0..count)
        .map(|number| mount.path(&format!("file-{number:06}")))
        .collect()
}

pub(super) fn make(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(&[1; BLOCK])?;
    Ok(file)
}

struct Fsync {
    files: Vec<PathBuf>,
    mount: Mount,
}

impl Workload for Fsync {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.files = paths(&self.mount, operations);
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
        mount: Mount::of_disk(file_system)?,
        files: Vec::new(),
    }))
}

/// …-ram-fsync: the same on a disk in memory.
pub(super) fn fsync_in_memory(file_system: InMemory) -> Made {
    Ok(Box::new(Fsync {
        mount: Mount::in_memory(file_system)?,
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

/// …-ram-create: make a small file and remove it.
pub(super) fn create_in_memory(file_system: InMemory) -> Made {
    let mount = Mount::in_memory(file_system)?;
    Ok(Box::new(Create {
        path: mount.path("file"),
        _mount: mount,
    }))
}

struct Unlink {
    files: Vec<PathBuf>,
    mount: Mount,
}

impl Workload for Unlink {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.files = paths(&self.mount, operations);
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
        mount: Mount::of_disk(file_system)?,
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
    let path = mount.path("file");
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
    reading(Mount::of_disk(file_system)?, FILE_BYTES, PIECE, None)
}

/// …-ram-read: the same on a disk in memory.
pub(super) fn read_in_memory(file_system: InMemory) -> Made {
    reading(Mount::in_memory(file_system)?, RAM_FILE_BYTES, PIECE, None)
}

/// …-randread: read a file that is not in memory at random places.
pub(super) fn random_read(file_system: &str) -> Made {
    reading(Mount::of_disk(file_system)?, FILE_BYTES, BLOCK, Some(1))
}
