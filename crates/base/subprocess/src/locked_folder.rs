//! Directories for interruptible work: locked while in use, deleted by a later process otherwise.
//!
//! The locks are flock(2), which end with the process in any case.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::wait_for_lock;

/// The file within the parent directory that is locked while its directories change.
const LOCK: &str = "lock";

/// A directory that is deleted when dropped, or else by the next process that makes one.
#[derive(Debug)]
pub struct LockedFolder {
    path: PathBuf,
    /// The directory itself, held open and locked.
    _lock: File,
}

/// A directory that cannot be made, or left-overs beside it that cannot be deleted.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}", path = .path.display())]
pub struct FolderError {
    /// The file or directory.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl FolderError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self { path, source }
    }
}

impl LockedFolder {
    /// Deletes unused directories and makes a new one.
    ///
    /// # Errors
    /// If the parent directory cannot be written.
    pub fn new(within: &Path) -> Result<Self, FolderError> {
        // Held until the new directory is locked too, or another process could delete it in
        // between.
        let lock = within.join(LOCK);
        let _all = wait_for_lock(&lock).map_err(FolderError::at(&lock))?;
        sweep(within)?;
        let mut number = 0_u32;
        loop {
            let path = within.join(number.to_string());
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => {
                    return made
                        .and_then(|()| File::open(&path))
                        .and_then(|folder| folder.lock().map(|()| folder))
                        .map(|folder| Self {
                            path: path.clone(),
                            _lock: folder,
                        })
                        .map_err(FolderError::at(&path));
                }
            }
        }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Deletes the directories that no process has locked.
fn sweep(within: &Path) -> Result<(), FolderError> {
    for entry in fs::read_dir(within).map_err(FolderError::at(within))? {
        let path = entry.map_err(FolderError::at(within))?.path();
        if !path.is_dir() {
            continue;
        }
        let folder = File::open(&path).map_err(FolderError::at(&path))?;
        match folder.try_lock() {
            Ok(()) => fs::remove_dir_all(&path).map_err(FolderError::at(&path))?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(FolderError::at(&path)(error)),
        }
    }
    Ok(())
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        // A later process deletes the rest.
        drop(fs::remove_dir_all(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::{LOCK, LockedFolder};

    #[test]
    fn only_unlocked_work_directories_are_swept() {
        let home = tempfile::tempdir().unwrap();
        let stale = home.path().join("7");
        std::fs::create_dir(&stale).unwrap();
        std::fs::write(stale.join("half.deb"), "x").unwrap();
        let first = LockedFolder::new(home.path()).unwrap();
        let second = LockedFolder::new(home.path()).unwrap();
        assert!(!stale.exists());
        assert!(first.path().exists() && second.path().exists());
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn link_for_the_lock_empties_no_file() {
        let home = tempfile::tempdir().unwrap();
        let within = home.path().join("incoming");
        let target = home.path().join("target");
        std::fs::create_dir(&within).unwrap();
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, within.join(LOCK)).unwrap();
        let error = LockedFolder::new(&within).unwrap_err().to_string();
        assert!(error.contains("lock: it is a link"), "{error}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}
