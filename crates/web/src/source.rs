//! A store that grows, read run by run: what came since the last look is taken into the history, nothing is read twice.

use model::{Decision, Line};
use report::history::{History, NotKnown, Triaged, alerts, triaged};
use store::{Location, Store, StoreError};

/// How many runs are held in memory whole at once.
const RUNS_AT_ONCE: usize = 32;

/// A home that is followed.
#[derive(Debug)]
pub struct Source {
    store: Store,
    last: i64,
    history: History,
    decisions: Vec<Decision>,
}

/// Everything that pages are made of, at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// What was measured.
    pub history: History,
    /// What changed, the latest kernels first, with what was decided about it.
    pub alerts: Vec<Triaged>,
    /// All decisions, the oldest first.
    pub decided: Vec<Decision>,
    /// Grows with every change.
    pub generation: u64,
}

/// Why a home cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug of ours.
    #[error(transparent)]
    NotKnown(#[from] NotKnown),
}

impl Source {
    /// Opens a store for reading. Nothing is read yet.
    ///
    /// # Errors
    /// When nothing was ever saved there, or the home cannot be read.
    pub fn open(location: impl Into<Location>) -> Result<Self, SourceError> {
        let store = Store::open_read_only(location)?;
        Ok(Self { store, last: 0, history: History::default(), decisions: Vec::new() })
    }

    /// Reads what came since the last time, and tells whether anything did.
    ///
    /// # Errors
    /// When the home cannot be read.
    pub fn refresh(&mut self) -> Result<bool, SourceError> {
        let before = self.last;
        loop {
            let runs = self.store.runs_after(self.last, RUNS_AT_ONCE)?;
            if runs.is_empty() {
                break;
            }
            for (number, run) in &runs {
                if !self.history.knows_build(&run.build) {
                    self.history.know_build(&self.store.build(&run.build)?);
                }
                if self.history.machine_number(&run.machine).is_none() {
                    self.history.know_machine(&self.store.machine(&run.machine)?);
                }
                self.history.take(run)?;
                self.last = *number;
            }
        }
        self.history.settle();
        let decisions = self.store.decisions()?;
        let changed = before != self.last || decisions != self.decisions;
        self.decisions = decisions;
        Ok(changed)
    }

    /// Returns everything as it is now.
    #[must_use]
    pub fn snapshot(&self, generation: u64) -> Snapshot {
        let decided = self.decisions.clone();
        let alerts = triaged(&self.history, alerts(&self.history, Line::All), &decided);
        Snapshot { history: self.history.clone(), alerts, decided, generation }
    }
}

impl Snapshot {
    /// Returns what changed over the kernels of a line, with what was decided about it.
    #[must_use]
    pub fn alerts_of(&self, line: Line) -> Vec<Triaged> {
        triaged(&self.history, alerts(&self.history, line), &self.decided)
    }
}
