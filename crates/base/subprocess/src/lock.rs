//! Files that are locked while something is done. Others may write to their directory, which hosts
//! share: what is no file of a lock is neither opened, waited for nor emptied.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens the file of a lock, which the caller takes; makes it if it is not there.
///
/// # Errors
/// If it cannot be opened, is a link, no regular file, or has another name.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags.bits().cast_signed());
    let file = options
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::LOOP.raw_os_error() => {
                unfit("it is a link, not the file of a lock: remove it")
            }
            // A pipe without a reader.
            Some(code) if code == Errno::NXIO.raw_os_error() => {
                unfit("it is no regular file: remove it")
            }
            _ => error,
        })?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(unfit("it is no regular file: remove it"));
    }
    if found.nlink() > 1 {
        return Err(unfit("it has another name, too, a hard link: remove it"));
    }
    Ok(file)
}

/// Opens the file of a lock and waits for the lock.
///
/// # Errors
/// If it cannot be opened, or its file system has no locks.
pub fn wait_for_lock(path: &Path) -> io::Result<File> {
    let file = lock_file(path)?;
    file.lock().map_err(explain_lock)?;
    Ok(file)
}

/// Returns why a lock could not be had, for the user if the file system has none.
fn explain_lock(error: io::Error) -> io::Error {
    let none = [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS].map(Errno::raw_os_error);
    match error.raw_os_error() {
        Some(code) if none.contains(&code) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this file system has no locks, as some NFS: name a folder on a local disk with --home",
        ),
        _ => error,
    }
}

fn unfit(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    #[test]
    fn file_system_without_locks_is_named() {
        let explain = |code| super::explain_lock(std::io::Error::from_raw_os_error(code));
        assert!(explain(37).to_string().contains("has no locks"));
        assert_eq!(explain(5).raw_os_error(), Some(5));
    }

    use std::fs;

    use super::lock_file;

    #[test]
    fn lock_that_is_another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [lock, target] = ["lock", "target"].map(|name| folder.path().join(name));
        let refused = |reason: &str| {
            let error = lock_file(&lock).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert_eq!(fs::read_to_string(&target).unwrap(), "precious\n");
            fs::remove_file(&lock).unwrap();
        };
        fs::write(&target, "precious\n").unwrap();
        std::os::unix::fs::symlink(&target, &lock).unwrap();
        refused("it is a link");
        fs::hard_link(&target, &lock).unwrap();
        refused("a hard link");
        // Without a reader, opening it would wait.
        let made = std::process::Command::new("mkfifo")
            .arg(&lock)
            .status()
            .unwrap();
        assert!(made.success());
        refused("no regular file");
        // What it has is kept.
        fs::write(&lock, "1\n").unwrap();
        lock_file(&lock).unwrap().lock().unwrap();
        assert_eq!(fs::read_to_string(&lock).unwrap(), "1\n");
    }
}
