//! The history of a store that grows: adds new runs, and reads no run twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use history::{BisectionRecord, History, NotKnown, RunDigest, Triaged, alerts, triage_alerts};
use model::{BuildId, Decision, MachineId, ReleaseLine, RunId, Told};
use store::{Location, Store, StoreError};

use crate::summary::{self, Summary, Writer};

/// Limit on complete runs in memory.
pub(crate) const RUNS_AT_ONCE: usize = 32;
/// Runs that are read before a summary is written again: the file is written whole.
const RUNS_UNSAVED: usize = 64;
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
    told: Vec<Told>,
    /// The data directory whose bisections are read; `None` for no bisections.
    home: Option<PathBuf>,
    found: Vec<BisectionRecord>,
    /// The file of digests; `None` for none.
    summary: Option<PathBuf>,
    /// Runs whose digests are in no file yet, by number; `None` if none is written.
    unsaved: Option<BTreeMap<i64, RunDigest>>,
}

/// All data of the pages at one moment.
#[derive(Debug, Clone)]
pub struct HistorySnapshot {
    pub history: History,
    /// Performance changes with their triage decisions, latest kernels first.
    pub alerts: Vec<Triaged>,
    /// All decisions, oldest first.
    pub decided: Vec<Decision>,
    /// Notices about regressions, a row for each channel, oldest first.
    pub told: Vec<Told>,
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
        Ok(Self {
            store,
            last: None,
            history,
            decisions: Vec::new(),
            told: Vec::new(),
            home: None,
            found: Vec::new(),
            summary: None,
            unsaved: None,
        })
    }

    /// Reads what the summary of a data directory has of runs, instead of these.
    pub fn use_summary_of(&mut self, home: &Path) {
        self.summary = Some(summary::path(home));
    }

    /// Also writes that summary again after many new runs, if it can be written.
    pub fn keep_summary_of(&mut self, home: &Path) {
        self.use_summary_of(home);
        self.unsaved = Some(BTreeMap::new());
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
        self.read_runs()?;
        self.history.recompute();
        let decisions = self.store.decisions()?;
        let told = self.store.list_told()?;
        let found = self.home.as_deref().map(bisections).unwrap_or_default();
        let changed = before != self.last
            || decisions != self.decisions
            || told != self.told
            || found != self.found;
        self.decisions = decisions;
        self.told = told;
        self.found = found;
        Ok(changed)
    }

    /// Returns the series of some workloads: the others are not worked out.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn read_only(
        mut self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<History, HistoryReadError> {
        self.read_runs()?;
        self.history.recompute_of(is_wanted);
        Ok(self.history)
    }

    fn read_runs(&mut self) -> Result<(), HistoryReadError> {
        if let Some((number, id)) = &self.last
            && self.store.run_at(*number)?.as_ref() != Some(id)
        {
            (self.last, self.history) = (None, History::default());
            if let Some(unsaved) = &mut self.unsaved {
                unsaved.clear();
            }
        }
        if self.last.is_none() {
            self.read_summary()?;
        }
        loop {
            let last = self.last.as_ref().map_or(0, |(number, _)| *number);
            let runs = self.store.runs_after(last, RUNS_AT_ONCE)?;
            if runs.is_empty() {
                break;
            }
            self.know(runs.iter().map(|(_, run)| (&run.build, &run.machine)))?;
            let starts = runs.iter().map(|(_, run)| (&run.build, run.started_unix));
            self.history.announce(starts);
            for (number, run) in runs {
                let digest = self.history.digest(&run)?;
                self.history.add_digest(&digest)?;
                self.last = Some((number, run.id));
                if let Some(unsaved) = &mut self.unsaved {
                    unsaved.insert(number, digest);
                }
            }
        }
        self.save_summary()
    }

    /// Takes the builds and machines of runs that follow.
    fn know<'a>(
        &mut self,
        of_runs: impl Iterator<Item = (&'a BuildId, &'a MachineId)>,
    ) -> Result<(), HistoryReadError> {
        let mut builds = Vec::new();
        let mut seen: BTreeSet<&BuildId> = BTreeSet::new();
        for (build, machine) in of_runs {
            if !self.history.knows_build(build) && seen.insert(build) {
                builds.push(self.store.build(build)?);
            }
            if self.history.machine_number(machine).is_none() {
                self.history.know_machine(&self.store.machine(machine)?);
            }
        }
        self.history.add_builds(&builds);
        Ok(())
    }

    /// Adds the runs that the summary has, if these are the first ones of the store.
    fn read_summary(&mut self) -> Result<(), HistoryReadError> {
        let Some(read) = self.summary.as_deref().and_then(Summary::read) else {
            return Ok(());
        };
        let stored: BTreeMap<i64, RunId> = self.store.run_numbers()?.into_iter().collect();
        let is_stored = |(number, run): &(i64, RunDigest)| stored.get(number) == Some(&run.id);
        let mut count = 0;
        let mut last = None;
        let mut starts = Vec::new();
        for (number, run) in read.runs().filter(is_stored) {
            count += 1;
            last = Some((number, run.id));
            starts.push((run.build, run.machine, run.started_unix));
        }
        let first_ones = last
            .as_ref()
            .map_or(0, |(last, _)| stored.range(..=*last).count());
        if count != first_ones {
            return Ok(());
        }
        self.know(starts.iter().map(|(build, machine, _)| (build, machine)))?;
        let announced = starts.iter().map(|(build, _, started)| (build, *started));
        self.history.announce(announced);
        let shapes = self.history.know_shapes(read.shapes.iter().cloned());
        for (_, mut run) in read.runs().filter(is_stored) {
            run.refer_to(&shapes)?;
            self.history.add_digest(&run)?;
        }
        self.last = last;
        Ok(())
    }

    /// Writes the summary if many runs are new, and nothing if it cannot be written: the next
    /// reader takes longer.
    fn save_summary(&mut self) -> Result<(), HistoryReadError> {
        let Some(file) = self.summary.clone() else {
            return Ok(());
        };
        let Some(unsaved) = self.unsaved.take_if(|new| new.len() >= RUNS_UNSAVED) else {
            return Ok(());
        };
        self.unsaved = Some(BTreeMap::new());
        let stored: BTreeMap<i64, RunId> = self.store.run_numbers()?.into_iter().collect();
        let before = Summary::read(&file).unwrap_or_default();
        // Another process may have written it meanwhile, with other numbers of shapes.
        let shapes = self.history.know_shapes(before.shapes.iter().cloned());
        let mut writer = Writer::new(self.history.shapes());
        let first = unsaved.keys().next().copied().unwrap_or_default();
        for (number, mut run) in before.runs().take_while(|(number, _)| *number < first) {
            if stored.get(&number) == Some(&run.id) {
                run.refer_to(&shapes)?;
                writer.add(number, &run);
            }
        }
        for (number, run) in &unsaved {
            writer.add(*number, run);
        }
        // A full disk, or a directory of another user.
        writer.save(&file).ok();
        Ok(())
    }

    /// Returns the current state.
    #[must_use]
    pub fn snapshot(&self, generation: u64) -> HistorySnapshot {
        let decided = self.decisions.clone();
        let alerts = triage_alerts(
            &self.history,
            alerts(&self.history, ReleaseLine::All),
            &decided,
            &self.told,
        );
        HistorySnapshot {
            history: self.history.clone(),
            alerts,
            decided,
            told: self.told.clone(),
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
        if line == ReleaseLine::All {
            return self.alerts.clone();
        }
        let alerts = alerts(&self.history, line);
        triage_alerts(&self.history, alerts, &self.decided, &self.told)
    }
}
