//! Loading the modules that the guest needs, in the order of their names.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use guest::sys::check;

/// Loads every file of a folder as a module; no folder is fine, all may be built in.
pub(crate) fn load(folder: &str) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    for path in files {
        insert(&File::open(&path)?)
            .map_err(|error| io::Error::other(format!("module {}: {error}", path.display())))?;
    }
    Ok(())
}

fn insert(file: &File) -> io::Result<()> {
    // SAFETY: the parameters are a valid empty string, and `file` is open for the call.
    let result =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) };
    match check(result) {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => Err(error),
        _ => Ok(()),
    }
}
