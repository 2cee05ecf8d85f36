//! Folders and files of one test: new when it begins, gone when it has passed, left to be looked at when it has failed.
//! What stays from one time to the next is not made here. The tests of the program use this file too.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A folder or a file that one test owns. It is for the test to make it.
pub(crate) struct Fresh(PathBuf);

/// Returns the place of this name, where nothing is.
pub(crate) fn fresh(name: &str) -> Fresh {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    remove(&folder);
    Fresh(folder)
}

fn remove(place: &Path) {
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
        // All homes of all stories together would need several times the disk of the largest.
        if !std::thread::panicking() {
            remove(&self.0);
        }
    }
}
