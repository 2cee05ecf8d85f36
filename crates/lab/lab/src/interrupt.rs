//! Interruption by a signal: what was measured is stored before Marvin ends.
//!
//! Signals belong to the process, and so does this. The caller ends the process; machines die with
//! it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Whether the user wants Marvin to end.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// Executions with results that may not be stored.
static UNSTORED: AtomicUsize = AtomicUsize::new(0);
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Has all plans that are being executed store what they have measured, and waits for that, at most
/// so long. The caller then ends the process: the plans do not go on properly.
pub fn interrupt(patience: Duration) {
    IS_ASKED.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    while UNSTORED.load(Ordering::SeqCst) > 0 && begun.elapsed() < patience {
        std::thread::sleep(PAUSE);
    }
}

/// Returns whether plans have to store what they have.
pub(crate) fn is_interrupted() -> bool {
    IS_ASKED.load(Ordering::SeqCst)
}

/// Waits for the process's end, which follows an interruption within its patience.
pub(crate) fn wait_for_the_end() {
    loop {
        std::thread::sleep(PAUSE);
    }
}

/// An execution whose results may not be stored; ends with it.
pub(crate) struct Unstored;

impl Unstored {
    pub(crate) fn begin() -> Self {
        UNSTORED.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Unstored {
    fn drop(&mut self) {
        UNSTORED.fetch_sub(1, Ordering::SeqCst);
    }
}
