//! Scratch directories of interruptible work, and the lock of a directory.

use std::fs::File;
use std::path::Path;

use subprocess::LockedFolder;

use crate::KernelError;

const LOCK: &str = "lock";

/// A directory that is deleted when dropped, or else by the next process that makes one.
#[derive(Debug)]
pub struct Scratch(LockedFolder);

/// Waits for the exclusive lock of `within`.
pub(crate) fn lock(within: &Path) -> Result<File, KernelError> {
    let path = within.join(LOCK);
    subprocess::lock_file(&path)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(KernelError::io(&path))
}

/// Takes the exclusive lock of `within`; `None` if another process has it, or it cannot be written.
pub(crate) fn try_lock(within: &Path) -> Option<File> {
    let file = subprocess::lock_file(&within.join(LOCK)).ok()?;
    file.try_lock().ok().map(|()| file)
}

impl Scratch {
    /// Deletes unused directories and makes a new one.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn new(within: &Path) -> Result<Self, KernelError> {
        let made = LockedFolder::new(within);
        made.map(Self)
            .map_err(|error| KernelError::io(&error.path)(error.source))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
