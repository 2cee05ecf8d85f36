//! Folders for work that may be interrupted: each is locked while somebody works in it, and swept when nobody does.
//!
//! Locks are those of flock(2), which end with the process however it ends.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::KernelError;

const LOCK: &str = "lock";

/// A folder that goes when it is dropped, or else is swept by the next who needs one.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    /// The folder itself, held open and locked.
    _lock: File,
}

/// Waits for the right to be the only one to change what lies beside `within`'s lock.
pub(crate) fn lock(within: &Path) -> Result<File, KernelError> {
    let path = within.join(LOCK);
    File::create(&path).and_then(|file| file.lock().map(|()| file)).map_err(KernelError::at(&path))
}

impl Scratch {
    /// Sweeps what others left behind and makes a new folder.
    pub(crate) fn new(within: &Path) -> Result<Self, KernelError> {
        // Held until the new folder is locked too, or it could be swept in between.
        let _all = lock(within)?;
        sweep(within)?;
        let mut number = 0_u32;
        loop {
            let path = within.join(number.to_string());
            match fs::create_dir(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                made => {
                    return made
                        .and_then(|()| File::open(&path))
                        .and_then(|folder| folder.lock().map(|()| folder))
                        .map(|folder| Self { path: path.clone(), _lock: folder })
                        .map_err(KernelError::at(&path));
                }
            }
        }
    }

    /// Returns where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the folders that nobody works in.
fn sweep(within: &Path) -> Result<(), KernelError> {
    for entry in fs::read_dir(within).map_err(KernelError::at(within))? {
        let path = entry.map_err(KernelError::at(within))?.path();
        if !path.is_dir() {
            continue;
        }
        let folder = File::open(&path).map_err(KernelError::at(&path))?;
        match folder.try_lock() {
            Ok(()) => fs::remove_dir_all(&path).map_err(KernelError::at(&path))?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(KernelError::at(&path)(error)),
        }
    }
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is swept later.
        drop(fs::remove_dir_all(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn only_unlocked_work_directories_are_swept() {
        let home = tempfile::tempdir().unwrap();
        let stale = home.path().join("7");
        std::fs::create_dir(&stale).unwrap();
        std::fs::write(stale.join("half.deb"), "x").unwrap();
        let first = Scratch::new(home.path()).unwrap();
        let second = Scratch::new(home.path()).unwrap();
        assert!(!stale.exists());
        assert!(first.path().exists() && second.path().exists());
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}
