//! Files to work with: a folder in /tmp, which the guest keeps in memory (tmpfs), and a bare page
//! cache (ramfs).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::sys::{c, check};
use guest::mount;

/// A folder that is removed when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes an empty folder. All names have the same length, so that looking one up always costs
    /// the same.
    pub(super) fn new() -> io::Result<Self> {
        let path = PathBuf::from(format!("/tmp/marvin-{:010}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Returns the path of a file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes a file in it.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        create(&self.path(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left-overs in /tmp harm nobody; in the guest they end with it.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Makes a file in a file system that is nothing but page cache: tmpfs reads and writes by ways of
/// its own, ramfs by those that the file systems on disks use. The file system is gone with the
/// file.
pub(super) fn page_cache_file() -> io::Result<File> {
    let folder = Folder::new()?;
    let target = folder
        .0
        .to_str()
        .ok_or_else(|| io::Error::other("path is not text"))?;
    mount("ramfs", target)?;
    let file = folder.file("file");
    let path = c(target)?;
    // SAFETY: the path is a valid string that outlives the call. The open file keeps the file
    // system alive.
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) })?;
    file
}

/// Writes zeroes until a file has a length.
pub(super) fn fill(file: &mut File, bytes: usize) -> io::Result<()> {
    let there = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let zeroes = [0; 4096];
    let mut missing = bytes.saturating_sub(there);
    while missing > 0 {
        let piece = missing.min(zeroes.len());
        file.write_all(&zeroes[..piece])?;
        missing -= piece;
    }
    Ok(())
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
}
