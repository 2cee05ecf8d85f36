//! Folders of one test: new when it begins, gone when it has passed, left to be looked at when it has failed.
//! What stays from one time to the next is not made here. The tests of the program use this file too.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A folder that one test owns. It is for the test to make it.
pub(crate) struct Fresh(PathBuf);

/// Returns the folder of this name, which is not there.
pub(crate) fn fresh(name: &str) -> Fresh {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&folder));
    Fresh(folder)
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
        // All homes of all stories together would need several times the disk of the largest.
        if !std::thread::panicking() {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }
}
