//! Files and names: reading and writing the page cache, paths, folders.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::scratch::{self, Folder};
use super::{Between, Failure, Made, Workload};
use crate::sys::{c, check};

/// Size of the file that is read and written from one end to the other, again and again.
const FILE_SIZE: usize = 1024 * 1024;
/// Names in the folder that is read.
const NAMES: usize = 64;

struct Transfer {
    file: File,
    buffer: Vec<u8>,
    action: fn(&File, &mut [u8], u64) -> io::Result<()>,
}

impl Workload for Transfer {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let size = self.buffer.len();
        for operation in 0..operations as usize {
            let at = operation * size % FILE_SIZE;
            (self.action)(&self.file, &mut self.buffer, at as u64)?;
        }
        Ok(())
    }
}

fn transfer(size: usize, action: fn(&File, &mut [u8], u64) -> io::Result<()>) -> Made {
    let mut file = scratch::page_cache_file().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Failure::Unsupported(format!("needs the right to mount a ramfs: {error}"))
        }
        _ => Failure::from(error),
    })?;
    scratch::fill(&mut file, FILE_SIZE)?;
    Ok(Box::new(Transfer {
        file,
        buffer: vec![1; size],
        action,
    }))
}

fn read(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(buffer, at)
}

fn write(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.write_all_at(buffer, at)
}

/// file-read-4k: read one page from the page cache.
pub(super) fn read_4k() -> Made {
    transfer(4 * 1024, read)
}

/// file-read-64k: read 16 pages from the page cache.
pub(super) fn read_64k() -> Made {
    transfer(64 * 1024, read)
}

/// file-write-4k: write over one page in the page cache.
pub(super) fn write_4k() -> Made {
    transfer(4 * 1024, write)
}

/// file-write-64k: write over 16 pages in the page cache.
pub(super) fn write_64k() -> Made {
    transfer(64 * 1024, write)
}

struct OpenClose {
    path: PathBuf,
    _folder: Option<Folder>,
}

impl Workload for OpenClose {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            drop(File::open(&self.path)?);
        }
        Ok(())
    }
}

/// file-open: open a file by its path and close it.
pub(super) fn open_close() -> Made {
    let folder = Folder::new()?;
    folder.file("file")?;
    open_close_at(folder.path("file"), Some(folder))
}

/// The same of a file that is there, in a folder to keep.
pub(super) fn open_close_at(path: PathBuf, folder: Option<Folder>) -> Made {
    Ok(Box::new(OpenClose {
        path,
        _folder: folder,
    }))
}

struct Stat {
    path: CString,
    _folder: Folder,
}

impl Workload for Stat {
    /// Not with std, which tries statx(2) first.
    fn run(&mut self, operations: u64) -> io::Result<()> {
        // SAFETY: a stat of zeroes is a valid value of the C struct.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        for _ in 0..operations {
            // SAFETY: path and struct are valid for the call.
            check(unsafe { libc::stat(self.path.as_ptr(), &raw mut found) })?;
        }
        Ok(())
    }
}

/// file-stat: ask for a file's attributes by its path.
pub(super) fn stat() -> Made {
    let folder = Folder::new()?;
    folder.file("file")?;
    let path = folder.path("file");
    let path = c(path.to_str().unwrap_or_default())?;
    Ok(Box::new(Stat {
        path,
        _folder: folder,
    }))
}

struct CreateUnlink {
    path: PathBuf,
    _folder: Option<Folder>,
}

impl Workload for CreateUnlink {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        for _ in 0..operations {
            drop(options.open(&self.path)?);
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }
}

/// file-create: make an empty file and remove it.
pub(super) fn create_unlink() -> Made {
    let folder = Folder::new()?;
    create_unlink_at(folder.path("file"), Some(folder))
}

/// The same with this path, in a folder to keep.
pub(super) fn create_unlink_at(path: PathBuf, folder: Option<Folder>) -> Made {
    Ok(Box::new(CreateUnlink {
        path,
        _folder: folder,
    }))
}

struct ReadDir {
    list: File,
    _folder: Option<Folder>,
}

impl Workload for ReadDir {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut buffer = [0u64; 1024];
        let descriptor = self.list.as_raw_fd();
        for _ in 0..operations {
            // SAFETY: lseek takes no memory of ours.
            check(unsafe { libc::lseek(descriptor, 0, libc::SEEK_SET) })?;
            // SAFETY: the buffer is as long as said and aligned for the entries.
            while check(unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    descriptor,
                    buffer.as_mut_ptr(),
                    size_of_val(&buffer),
                )
            })? > 0
            {}
        }
        Ok(())
    }
}

/// file-readdir: read a folder of some names from its beginning to its end.
pub(super) fn readdir() -> Made {
    let folder = Folder::new()?;
    for number in 0..NAMES {
        folder.file(&format!("name-{number:02}"))?;
    }
    read_folder(&folder.path(""), Some(folder)).map_err(Failure::from)
}

/// The same of a folder that is there, and one to keep.
pub(super) fn read_folder(path: &Path, folder: Option<Folder>) -> io::Result<Box<dyn Workload>> {
    Ok(Box::new(ReadDir {
        list: File::open(path)?,
        _folder: folder,
    }))
}
