//! Commits and patches that do not build, and those behind them: these are tried without them.

use history::commit_table::{CommitRow, State};
use kernel::Sources;
use model::Build;

use super::input::{Entry, Input, Made};
use super::{BuiltSeries, built};
use crate::session::Progress;

/// What a series is built of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Applied<'a> {
    pub(super) sources: &'a Sources,
    pub(super) input: &'a Input,
    pub(super) three_way: bool,
    pub(super) progress: &'a Progress,
}

/// An entry that builds without those that do not, with those behind it.
#[derive(Debug)]
pub(super) struct Without {
    pub(super) row: CommitRow,
    pub(super) build: Build,
    entries: Vec<Entry>,
    /// How many do not build.
    failed: usize,
}

impl Applied<'_> {
    /// Tries an entry that does not build on the last commit that does, without the failed ones in
    /// between. `None` if there are none, or if it does not apply or build either: then it may be
    /// that a later one repairs them all.
    pub(super) fn try_without(
        &self,
        entries: &[Entry],
        at: usize,
        series: &BuiltSeries,
        before: &str,
    ) -> anyhow::Result<Option<Without>> {
        let is_failed = |row: &&CommitRow| matches!(row.state, State::Failed(_));
        let failed = series.rows.iter().rev().take_while(is_failed).count();
        let left_out = entries[..at].iter().rev().take(failed);
        if failed == 0 || left_out.clone().any(|entry| entry.is_left_out) {
            return Ok(None);
        }
        let behind =
            self.input
                .entries_without(self.sources, &entries[at..], before, self.three_way)?;
        let Some(behind) = behind else {
            return Ok(None);
        };
        if !matches!(behind[0].made, Made::Commit(_)) {
            return Ok(None);
        }
        let (row, build) = built(self.sources, &behind[0], &series.builds, self.progress)?;
        Ok(build.map(|build| Without {
            row,
            build,
            entries: behind,
            failed,
        }))
    }
}

impl Without {
    /// Leaves the failed entries out, and takes the place of those behind them.
    pub(super) fn settle(
        self,
        entries: &mut Vec<Entry>,
        at: usize,
        rows: &mut [CommitRow],
    ) -> (CommitRow, Build) {
        for entry in &mut entries[at - self.failed..at] {
            entry.is_left_out = true;
        }
        for row in rows.iter_mut().rev().take(self.failed) {
            if let State::Failed(why) = &mut row.state {
                why.push_str("; those behind it are applied without it");
            }
        }
        entries.truncate(at);
        entries.extend(self.entries);
        (self.row, self.build)
    }
}
