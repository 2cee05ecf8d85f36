//! The lock of a data directory, which allows one measuring process, and its holder.
//!
//! Only commands that measure take it; readers need no lock. Who may write to the data directory
//! may put a link to any file in the place of a lock: only a regular file with the number of a
//! process is opened, read and emptied.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::home::Home;
use crate::{InUse, StoreError};

/// Enough for any process id.
const PID_LIMIT: u64 = 32;

/// The right to measure in a data directory. Ends when it is dropped or its process ends in any
/// way.
#[derive(Debug)]
pub struct HomeLock {
    file: File,
}

impl HomeLock {
    /// Takes the lock of a data directory, and makes the directory if necessary.
    ///
    /// # Errors
    /// If another process has it, or the data directory cannot be used.
    pub fn acquire(home: &Path) -> Result<Self, StoreError> {
        let home = Home::new(home);
        take(&home, home.lock(), |pid| {
            StoreError::InUse(InUse::Locked {
                home: home.root().to_owned(),
                pid,
            })
        })
        .map(|file| Self { file })
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // Only a courtesy: the next holder overwrites a stale number. Closing the file unlocks it.
        self.file.set_len(0).ok();
    }
}

/// The right to take jobs from the queue of a data directory on this machine. Each job also needs
/// the [`HomeLock`].
#[derive(Debug)]
pub struct WorkerLock {
    file: File,
}

impl WorkerLock {
    /// Takes the lock of a data directory, and makes the directory if necessary.
    ///
    /// # Errors
    /// If another process has it, or the data directory cannot be used.
    pub fn acquire(home: &Path) -> Result<Self, StoreError> {
        let home = Home::new(home);
        take(&home, home.worker(), |pid| {
            StoreError::InUse(InUse::Working {
                home: home.root().to_owned(),
                pid,
            })
        })
        .map(|file| Self { file })
    }
}

/// Returns whether a worker takes jobs from the queue of a data directory: whether the process that
/// last took the lock lives.
///
/// Trying the lock instead could turn away a worker that starts at the same moment.
#[must_use]
pub fn has_worker(home: &Path) -> bool {
    let home = Home::new(home);
    let file = open(&home, &home.worker(), OpenOptions::new().read(true));
    let pid = file.ok().and_then(|mut file| read_pid(&mut file));
    pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
}

impl Drop for WorkerLock {
    fn drop(&mut self) {
        // See above.
        self.file.set_len(0).ok();
    }
}

/// Takes a lock, or returns its holder.
fn take(
    home: &Home,
    path: PathBuf,
    taken: impl FnOnce(Option<u32>) -> StoreError,
) -> Result<File, StoreError> {
    fs::create_dir_all(home.root()).map_err(|error| home.io(home.root(), error))?;
    let mut file = open(
        home,
        &path,
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false),
    )?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(taken(read_pid(&mut file))),
        Err(TryLockError::Error(error)) if is_without_locks(&error) => {
            return Err(without_locks(&path));
        }
        Err(TryLockError::Error(error)) => return Err(home.io(&path, error)),
    }
    write_pid(&mut file).map_err(|error| home.io(&path, error))?;
    Ok(file)
}

/// Returns whether a lock cannot be had because the file system has none.
fn is_without_locks(error: &io::Error) -> bool {
    let codes = [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

fn without_locks(path: &Path) -> StoreError {
    StoreError::Unusable {
        path: path.to_owned(),
        detail: "its file system has no locks, as some NFS".to_owned(),
    }
}

/// Returns the error for a database that SQLite calls locked: SQLite says so of a file system
/// without locks, too (`sqliteErrorFromPosixError` in its os_unix.c).
pub(crate) fn explain_busy(database: PathBuf) -> StoreError {
    let locked = File::open(&database).map(|file| file.try_lock_shared());
    match locked {
        Ok(Err(TryLockError::Error(error))) if is_without_locks(&error) => without_locks(&database),
        _ => StoreError::InUse(InUse::Busy { file: database }),
    }
}

/// Opens the file of a lock. A pipe is not waited for, and a link is not followed.
fn open(home: &Home, path: &Path, options: &mut OpenOptions) -> Result<File, StoreError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let unusable = |detail: &str| StoreError::Unusable {
        path: path.to_owned(),
        detail: detail.to_owned(),
    };
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(unusable("it is a link, not a file"));
    }
    home.check_file(path)?;
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let mut file = opened.map_err(|error| match error.raw_os_error() {
        // It became a link after it was looked at.
        Some(code) if code == Errno::LOOP.raw_os_error() => unusable("it is a link, not a file"),
        _ => home.io(path, error),
    })?;
    let found = file.metadata().map_err(|error| home.io(path, error))?;
    if !found.is_file() {
        return Err(unusable("it is no regular file"));
    }
    if found.nlink() > 1 {
        return Err(unusable("it has another name, too: a hard link"));
    }
    let has_number = found.len() == 0 || found.len() <= PID_LIMIT && read_pid(&mut file).is_some();
    file.rewind().map_err(|error| home.io(path, error))?;
    if has_number {
        Ok(file)
    } else {
        Err(unusable(
            "it is no lock of Marvin: it has other content than a number",
        ))
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// Returns the holder's process id; `None` if it has not written it yet.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_LIMIT).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{HomeLock, WorkerLock, has_worker};
    use model::Fault;

    #[test]
    fn second_taker_learns_the_lock_holder() {
        let home = tempfile::tempdir().unwrap();
        let lock = HomeLock::acquire(home.path()).unwrap();
        let error = HomeLock::acquire(home.path()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "another marvin (pid {}) is measuring in {}: wait for it with --wait, or name another directory with --home",
                std::process::id(),
                home.path().display()
            )
        );
        assert_eq!(error.fault(), Fault::Lab);
        drop(lock);
        HomeLock::acquire(home.path()).unwrap();
    }

    #[test]
    fn lock_holder_without_name_is_anonymous() {
        let home = tempfile::tempdir().unwrap();
        let _lock = HomeLock::acquire(home.path()).unwrap();
        fs::write(home.path().join("lock"), "").unwrap();
        let error = HomeLock::acquire(home.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("another marvin is measuring in "),
            "{error}"
        );
    }

    #[test]
    fn stale_pid_of_killed_process_locks_nothing() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("lock"), "4194304999\n").unwrap();
        HomeLock::acquire(home.path()).unwrap();
    }

    #[test]
    fn second_worker_is_refused_but_measuring_is_allowed() {
        let home = tempfile::tempdir().unwrap();
        assert!(!has_worker(home.path()));
        let lock = WorkerLock::acquire(home.path()).unwrap();
        assert!(has_worker(home.path()));
        let error = WorkerLock::acquire(home.path()).unwrap_err();
        let message = error
            .to_string()
            .replace(&home.path().display().to_string(), "HOME");
        insta::assert_snapshot!(message.replace(&std::process::id().to_string(), "PID"), @"another worker (pid PID) already runs the jobs of HOME, and one per host is allowed: `marvin queue list` shows its job");
        assert_eq!(error.fault(), Fault::Lab);
        HomeLock::acquire(home.path()).unwrap();
        drop(lock);
        assert!(!has_worker(home.path()));
        fs::write(home.path().join("worker"), "4194304999\n").unwrap();
        assert!(!has_worker(home.path()), "it was killed");
        WorkerLock::acquire(home.path()).unwrap();
    }

    #[test]
    fn lock_that_is_another_file_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let lock = home.path().join("lock");
        let worker = home.path().join("worker");
        let target = home.path().join("target");
        let is_kept = |reason: &str| {
            let errors = [
                HomeLock::acquire(home.path()).unwrap_err(),
                WorkerLock::acquire(home.path()).unwrap_err(),
            ];
            for error in errors {
                assert!(error.to_string().contains(reason), "{error}");
                assert_eq!(error.fault(), Fault::User);
            }
            assert!(!has_worker(home.path()));
            assert_eq!(fs::read_to_string(&target).unwrap(), "precious\n");
        };
        fs::write(&target, "precious\n").unwrap();
        for path in [&lock, &worker] {
            std::os::unix::fs::symlink(&target, path).unwrap();
        }
        is_kept("it is a link, not a file");
        for path in [&lock, &worker] {
            fs::remove_file(path).unwrap();
        }
        for path in [&lock, &worker] {
            fs::hard_link(&target, path).unwrap();
        }
        is_kept("a hard link");
        for path in [&lock, &worker] {
            fs::remove_file(path).unwrap();
        }
        for path in [&lock, &worker] {
            fs::copy(&target, path).unwrap();
        }
        is_kept("it is no lock of Marvin");
        assert_eq!(fs::read_to_string(&lock).unwrap(), "precious\n");
        for path in [&lock, &worker] {
            fs::remove_file(path).unwrap();
        }
        // A link to a file that is not there makes none.
        fs::remove_file(&target).unwrap();
        std::os::unix::fs::symlink(&target, &lock).unwrap();
        assert!(HomeLock::acquire(home.path()).is_err() && !target.exists());
    }

    #[test]
    fn a_home_below_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = HomeLock::acquire(&folder.path().join("file/home")).unwrap_err();
        assert_eq!(error.fault(), Fault::User);
    }
}
