//! The turn to measure in a data directory: a process takes it when something is missing, to build,
//! boot or store it, and keeps it until its lab closes. What is stored needs no turn.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::{HomeLock, InUse, StoreError};
use subprocess::Shared;

/// Between two tries to take the lock. A worker leaves the data directory for longer than that
/// between two jobs: it starts a process for each.
const POLL: Duration = Duration::from_millis(20);

/// How long to wait for another process that measures in the data directory.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The longest wait; zero for none.
    pub limit: Duration,
    /// Says once for whom Marvin waits.
    pub say: fn(&str),
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            limit: Duration::ZERO,
            say: |_| {},
        }
    }
}

/// Takes the lock of a data directory, and waits for its holder as long as allowed.
///
/// # Errors
/// If another process still has it then, or the data directory cannot be used.
pub fn lock_home(home: &Path, patience: Patience) -> Result<HomeLock, StoreError> {
    let begun = Instant::now();
    let mut has_said = false;
    loop {
        match HomeLock::acquire(home) {
            Err(StoreError::InUse(InUse::Locked { pid, .. }))
                if begun.elapsed() < patience.limit =>
            {
                if !std::mem::replace(&mut has_said, true) {
                    let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                    (patience.say)(&format!(
                        "waiting for another marvin{pid} that measures in {}, at most {} s",
                        home.display(),
                        patience.limit.as_secs()
                    ));
                }
                std::thread::sleep(POLL);
            }
            taken => return taken,
        }
    }
}

/// The turn of one lab.
#[derive(Debug)]
pub(crate) struct Turn {
    home: PathBuf,
    patience: Patience,
    lock: Shared<Option<HomeLock>>,
}

impl Turn {
    pub(crate) fn new(home: &Path, patience: Patience) -> Self {
        Self {
            home: home.to_owned(),
            patience,
            lock: Shared::default(),
        }
    }

    /// Takes the turn, unless this lab has it. Returns whether it is new: what was missing before
    /// may be there now.
    ///
    /// # Errors
    /// If another process keeps it, or the data directory cannot be written.
    pub(crate) fn take(&self) -> Result<bool, StoreError> {
        let mut lock = self.lock.lock();
        if lock.is_some() {
            return Ok(false);
        }
        *lock = Some(lock_home(&self.home, self.patience)?);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use store::HomeLock;

    use super::{Patience, Turn, lock_home};

    #[test]
    fn turn_is_taken_once_and_kept() {
        let home = tempfile::tempdir().unwrap();
        let turn = Turn::new(home.path(), Patience::default());
        // Not before it is needed.
        drop(HomeLock::acquire(home.path()).unwrap());
        assert!(turn.take().unwrap() && !turn.take().unwrap());
        HomeLock::acquire(home.path()).unwrap_err();
        drop(turn);
        HomeLock::acquire(home.path()).unwrap();
    }

    #[test]
    fn waiting_ends_with_the_holder_or_limit() {
        let home = tempfile::tempdir().unwrap();
        let held = HomeLock::acquire(home.path()).unwrap();
        let patience = |milliseconds| Patience {
            limit: Duration::from_millis(milliseconds),
            ..Patience::default()
        };
        let begun = Instant::now();
        let error = lock_home(home.path(), patience(100)).unwrap_err();
        assert!(error.to_string().contains("is measuring in"), "{error}");
        assert!(begun.elapsed() >= Duration::from_millis(100));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock_home(home.path(), patience(60_000)));
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
    }
}
