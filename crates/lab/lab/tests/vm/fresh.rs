//! Directories and files of one test: new at its start, deleted after it passed, left in place if
//! it failed. Files that tests keep from one time to the next are not made here. The program's
//! tests use this file too.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A directory or file that one test owns and creates.
pub(crate) struct Fresh(PathBuf);

/// Returns the path of this name, and deletes what is there.
pub(crate) fn fresh(name: &str) -> Fresh {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    remove(&folder);
    Fresh(folder)
}

pub(crate) fn remove(place: &Path) {
    drop(std::fs::remove_file(place).or_else(|_| std::fs::remove_dir_all(place)));
}

impl Deref for Fresh {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl<T: ?Sized> AsRef<T> for Fresh
where
    Path: AsRef<T>,
{
    fn as_ref(&self) -> &T {
        self.0.as_path().as_ref()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // All data directories of all tests together would need several times the disk space of the
        // largest.
        if !std::thread::panicking() {
            remove(&self.0);
        }
    }
}
