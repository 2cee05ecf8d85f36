//! The lock of a data directory, which allows one measuring process, and its holder.
//!
//! Only commands that measure take it; readers need no lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::home::Home;

/// Enough for any process id.
const PID_LIMIT: u64 = 32;

/// The right to measure in a data directory. Ends when it is dropped or its process ends in any way.
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
        let home = Home::at(home);
        take(&home, home.lock(), |pid| StoreError::Locked { home: home.root().to_owned(), pid })
            .map(|file| Self { file })
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // Only a courtesy: the next holder overwrites a stale number. Closing the file unlocks it.
        self.file.set_len(0).ok();
    }
}

/// The right to take jobs from the queue of a data directory on this machine. Each job also needs the [`HomeLock`].
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
        let home = Home::at(home);
        take(&home, home.worker(), |pid| StoreError::Working { home: home.root().to_owned(), pid })
            .map(|file| Self { file })
    }
}

/// Returns whether a worker takes jobs from the queue of a data directory: whether the process that last took the lock
/// lives.
///
/// Trying the lock instead could turn away a worker that starts at the same moment.
#[must_use]
pub fn has_worker(home: &Path) -> bool {
    let home = Home::at(home);
    let file = home.check_file(&home.worker()).ok().and_then(|()| File::open(home.worker()).ok());
    let pid = file.and_then(|mut file| read_pid(&mut file));
    pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
}

impl Drop for WorkerLock {
    fn drop(&mut self) {
        // See above.
        self.file.set_len(0).ok();
    }
}

/// Takes a lock, or returns its holder.
fn take(home: &Home, path: PathBuf, taken: impl FnOnce(Option<u32>) -> StoreError) -> Result<File, StoreError> {
    fs::create_dir_all(home.root()).map_err(|error| home.io(home.root(), error))?;
    home.check_file(&path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(|error| home.io(&path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(taken(read_pid(&mut file))),
        Err(TryLockError::Error(error)) => return Err(home.io(&path, error)),
    }
    write_pid(&mut file).map_err(|error| home.io(&path, error))?;
    Ok(file)
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
    use model::Guilt;

    #[test]
    fn second_taker_learns_the_lock_holder() {
        let home = tempfile::tempdir().unwrap();
        let lock = HomeLock::acquire(home.path()).unwrap();
        let error = HomeLock::acquire(home.path()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "another marvin (pid {}) is measuring in {}: wait for it, or name another directory with --home",
                std::process::id(),
                home.path().display()
            )
        );
        assert_eq!(error.guilt(), Guilt::Infra);
        drop(lock);
        HomeLock::acquire(home.path()).unwrap();
    }

    #[test]
    fn lock_holder_without_name_is_anonymous() {
        let home = tempfile::tempdir().unwrap();
        let _lock = HomeLock::acquire(home.path()).unwrap();
        fs::write(home.path().join("lock"), "").unwrap();
        let error = HomeLock::acquire(home.path()).unwrap_err().to_string();
        assert!(error.starts_with("another marvin is measuring in "), "{error}");
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
        let told = error.to_string().replace(&home.path().display().to_string(), "HOME");
        insta::assert_snapshot!(told.replace(&std::process::id().to_string(), "PID"), @"another worker (pid PID) already runs the jobs of HOME, and one per host is allowed: `marvin queue list` shows its job");
        assert_eq!(error.guilt(), Guilt::Infra);
        HomeLock::acquire(home.path()).unwrap();
        drop(lock);
        assert!(!has_worker(home.path()));
        fs::write(home.path().join("worker"), "4194304999\n").unwrap();
        assert!(!has_worker(home.path()), "it was killed");
        WorkerLock::acquire(home.path()).unwrap();
    }

    #[test]
    fn a_home_below_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = HomeLock::acquire(&folder.path().join("file/home")).unwrap_err();
        assert_eq!(error.guilt(), Guilt::User);
    }
}
