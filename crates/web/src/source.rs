//! A store that grows, read run by run: what came since the last look is taken into the history, nothing is read twice.

use std::io::Read;
use std::path::{Path, PathBuf};

use history::{Found, History, NotKnown, Triaged, alerts, triaged};
use model::{Decision, Line};
use store::{Location, Store, StoreError};

/// How many runs are held in memory whole at once.
const RUNS_AT_ONCE: usize = 32;
/// The most bisections that are read, and the most bytes of one.
const FOUND_MAX: usize = 1000;
const FOUND_BYTES_MAX: u64 = 64 << 10;

/// A home that is followed.
#[derive(Debug)]
pub struct Source {
    store: Store,
    last: i64,
    history: History,
    decisions: Vec<Decision>,
    /// The home whose bisections are read; where none is told of, none are.
    home: Option<PathBuf>,
    found: Vec<Found>,
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
    /// What bisections found.
    pub found: Vec<Found>,
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
        let (history, decisions, found) = (History::default(), Vec::new(), Vec::new());
        Ok(Self { store, last: 0, history, decisions, home: None, found })
    }

    /// Has the bisections of a home read as well.
    pub fn look_in(&mut self, home: impl Into<PathBuf>) {
        self.home = Some(home.into());
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
        let found = self.home.as_deref().map(bisections).unwrap_or_default();
        let changed = before != self.last || decisions != self.decisions || found != self.found;
        (self.decisions, self.found) = (decisions, found);
        Ok(changed)
    }

    /// Returns everything as it is now.
    #[must_use]
    pub fn snapshot(&self, generation: u64) -> Snapshot {
        let decided = self.decisions.clone();
        let alerts = triaged(&self.history, alerts(&self.history, Line::All), &decided);
        Snapshot { history: self.history.clone(), alerts, decided, found: self.found.clone(), generation }
    }
}

/// Reads what bisections of a home found. What is none of ours, or cannot be read, is passed over: it is an answer less.
fn bisections(home: &Path) -> Vec<Found> {
    let entries = std::fs::read_dir(home.join("bisections")).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "found"))
        .take(FOUND_MAX)
        .collect();
    files.sort();
    let read = |file: &PathBuf| {
        let mut text = String::new();
        std::fs::File::open(file).ok()?.take(FOUND_BYTES_MAX).read_to_string(&mut text).ok()?;
        Found::read(&text)
    };
    files.iter().filter_map(read).collect()
}

impl Snapshot {
    /// Returns what changed over the kernels of a line, with what was decided about it.
    #[must_use]
    pub fn alerts_of(&self, line: Line) -> Vec<Triaged> {
        triaged(&self.history, alerts(&self.history, line), &self.decided)
    }
}
