//! Storing what an execution measured: each run after its last job, and all of them when the user
//! ends Marvin or the lab fails.

use std::sync::atomic::{AtomicBool, Ordering};

use store::Artifact;

use super::Execution;
use crate::disturbed::LOAD;
use crate::estimate::{TIMES, to_text};
use crate::interrupt::{PAUSE, Unstored, is_interrupted};
use crate::run_in_progress::RunInProgress;
use crate::{Event, LabError};

impl Execution<'_> {
    /// Stores what was measured if the user ends Marvin, so that no result is lost that was
    /// printed.
    pub(super) fn store_when_interrupted(&self, is_over: &AtomicBool) {
        let unstored = Unstored::begin();
        while !is_over.load(Ordering::SeqCst) {
            if is_interrupted() {
                // Held until all is stored: a worker that ends its last job meanwhile would store
                // the same run under another id.
                let mut is_closed = self.is_closed.lock();
                for run in self
                    .runs_in_progress
                    .iter()
                    .filter(|run| run.has_unstored_results())
                {
                    // The process ends, and the next attempt measures again what could not be
                    // stored.
                    drop(self.save(run));
                }
                *is_closed = true;
                break;
            }
            std::thread::sleep(PAUSE);
        }
        // From here on, `interrupt` lets the process end.
        drop(unstored);
    }

    /// Stores a run, unless the user ends Marvin.
    pub(super) fn store_run(&self, measured: &RunInProgress<'_>) -> Result<(), LabError> {
        // Locked until the run is stored: the thread that waits for an interruption would store it
        // a second time.
        let is_closed = self.is_closed.lock();
        if *is_closed {
            Ok(())
        } else {
            self.save(measured)
        }
    }

    fn save(&self, measured: &RunInProgress<'_>) -> Result<(), LabError> {
        // A block, as `run` below locks the progress again.
        let (times, load) = {
            let progress = measured.progress();
            (to_text(&progress.times), progress.load.clone())
        };
        let Some((run, mut consoles)) = measured.run(self.suite) else {
            return Ok(());
        };
        consoles.push((TIMES.to_owned(), times.into_bytes()));
        if !load.is_empty() {
            consoles.push((LOAD.to_owned(), load.into_bytes()));
        }
        let artifacts: Vec<Artifact<'_>> = consoles
            .iter()
            .map(|(name, bytes)| Artifact { name, bytes })
            .collect();
        self.context.store.lock().save_run(&run, &artifacts)?;
        (self.context.notify)(Event::Stored(run.id.clone()));
        self.finished.lock().push((measured.side, run));
        Ok(())
    }
}
