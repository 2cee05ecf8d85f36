//! The history of a store that grows: adds new runs, and reads no run twice.

use std::io::Read;
use std::path::{Path, PathBuf};

use history::{BisectionRecord, History, NotKnown, Triaged, alerts, triage_alerts};
use model::{Decision, ReleaseLine, RunId};
use store::{Location, Store, StoreError};

/// Limit on complete runs in memory.
const RUNS_AT_ONCE: usize = 32;
/// Limit on bisections to read, and on the size of one (bytes).
const FOUND_MAX: usize = 1000;
const FOUND_BYTES_MAX: u64 = 64 << 10;

/// A store that is followed.
#[derive(Debug)]
pub struct HistoryReader {
    store: Store,
    /// The number of the last run that was read, and its id.
    last: Option<(i64, RunId)>,
    history: History,
    decisions: Vec<Decision>,
    /// The data directory whose bisections are read; `None` for no bisections.
    home: Option<PathBuf>,
    found: Vec<BisectionRecord>,
}

/// All data of the pages at one moment.
#[derive(Debug, Clone)]
pub struct HistorySnapshot {
    pub history: History,
    /// Performance changes with their triage decisions, latest kernels first.
    pub alerts: Vec<Triaged>,
    /// All decisions, oldest first.
    pub decided: Vec<Decision>,
    /// The findings of bisections.
    pub found: Vec<BisectionRecord>,
    /// Grows with every change.
    pub generation: u64,
}

/// Why a store cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum HistoryReadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bug in Marvin.
    #[error(transparent)]
    NotKnown(#[from] NotKnown),
}

impl HistoryReader {
    /// Opens a store without reading it.
    ///
    /// # Errors
    /// If it has no results, or the data directory cannot be read.
    pub fn open(location: impl Into<Location>) -> Result<Self, HistoryReadError> {
        let store = Store::open_read_only(location)?;
        let history = History::default();
        let decisions = Vec::new();
        let found = Vec::new();
        Ok(Self {
            store,
            last: None,
            history,
            decisions,
            home: None,
            found,
        })
    }

    /// Adds the bisections of a data directory.
    pub fn add_bisections_of(&mut self, home: impl Into<PathBuf>) {
        self.home = Some(home.into());
    }

    /// Reads new results, and returns whether there were any. Reads all again if the last one is
    /// there no more: the store was restored from a backup, and its new runs may have the numbers
    /// of lost ones.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn refresh(&mut self) -> Result<bool, HistoryReadError> {
        let before = self.last.clone();
        if let Some((number, id)) = &self.last
            && self.store.run_at(*number)?.as_ref() != Some(id)
        {
            (self.last, self.history) = (None, History::default());
        }
        loop {
            let last = self.last.as_ref().map_or(0, |(number, _)| *number);
            let runs = self.store.runs_after(last, RUNS_AT_ONCE)?;
            if runs.is_empty() {
                break;
            }
            for (number, run) in &runs {
                if !self.history.knows_build(&run.build) {
                    self.history.add_build(&self.store.build(&run.build)?);
                }
                if self.history.machine_number(&run.machine).is_none() {
                    self.history
                        .know_machine(&self.store.machine(&run.machine)?);
                }
                self.history.add_run(run)?;
                self.last = Some((*number, run.id.clone()));
            }
        }
        self.history.recompute();
        let decisions = self.store.decisions()?;
        let found = self.home.as_deref().map(bisections).unwrap_or_default();
        let changed = before != self.last || decisions != self.decisions || found != self.found;
        (self.decisions, self.found) = (decisions, found);
        Ok(changed)
    }

    /// Returns the current state.
    #[must_use]
    pub fn snapshot(&self, generation: u64) -> HistorySnapshot {
        let decided = self.decisions.clone();
        let alerts = triage_alerts(
            &self.history,
            alerts(&self.history, ReleaseLine::All),
            &decided,
        );
        HistorySnapshot {
            history: self.history.clone(),
            alerts,
            decided,
            found: self.found.clone(),
            generation,
        }
    }
}

/// Reads the findings of a data directory's bisections. Skips foreign and unreadable files: one
/// answer less.
fn bisections(home: &Path) -> Vec<BisectionRecord> {
    let entries = std::fs::read_dir(home.join("bisections"))
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "found")
        })
        .take(FOUND_MAX)
        .collect();
    files.sort();
    files
        .iter()
        .filter_map(|file: &PathBuf| {
            let mut text = String::new();
            std::fs::File::open(file)
                .ok()?
                .take(FOUND_BYTES_MAX)
                .read_to_string(&mut text)
                .ok()?;
            BisectionRecord::read(&text)
        })
        .collect()
}

impl HistorySnapshot {
    /// Returns the performance changes over the kernels of a line, with their triage decisions.
    #[must_use]
    pub fn alerts_of(&self, line: ReleaseLine) -> Vec<Triaged> {
        triage_alerts(&self.history, alerts(&self.history, line), &self.decided)
    }
}
