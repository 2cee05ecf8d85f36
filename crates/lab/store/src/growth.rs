//! Reading new runs: runs are only ever added, so a reader that keeps the number of the last one
//! reads no run twice.

use model::{Run, RunId, UnixTime};

use crate::columns::Id;
use crate::runs::{complete, head};
use crate::{Store, StoreError, columns};

impl Store {
    /// Returns at most `limit` runs that were saved after the run with this number, in order, each
    /// with its number; 0 for all.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn runs_after(&self, number: i64, limit: usize) -> Result<Vec<(i64, Run)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let select = "SELECT number, id, build, machine, suite, seed, started_unix FROM runs
                      WHERE number > ?1 ORDER BY number LIMIT ?2";
        self.with(|database| {
            let _whole = database.read()?;
            let heads = database.rows(select, &[&number, &limit], head)?;
            heads
                .into_iter()
                .map(|(number, run)| Ok((number, complete(database, number, run)?)))
                .collect()
        })
    }

    /// Returns the numbers and ids of all runs, in order.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn run_numbers(&self) -> Result<Vec<(i64, RunId)>, StoreError> {
        let select = "SELECT number, id FROM runs ORDER BY number";
        self.with(|database| {
            database.rows(select, &[], |row| {
                Ok((row.get(0)?, row.get::<Id<RunId>>(1)?.0))
            })
        })
    }

    /// Returns when the newest run began, of those that were measured here; `None` without runs.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn newest_start(&self) -> Result<Option<UnixTime>, StoreError> {
        let select = "SELECT max(started_unix) FROM runs";
        let newest =
            self.with(|database| database.row(select, &[], |row| columns::optional_time(row, 0)))?;
        Ok(newest.flatten().and_then(Run::known_start))
    }

    /// Returns the run that was saved with this number; `None` if it is there no more.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn run_at(&self, number: i64) -> Result<Option<RunId>, StoreError> {
        let select = "SELECT number, id, build, machine, suite, seed, started_unix FROM runs WHERE number = ?1";
        self.with(|database| database.row(select, &[&number], |row| Ok(head(row)?.1.id)))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{New, contract, run, saved};

    contract!(every_run_is_read_once,);

    fn every_run_is_read_once(new: New<'_>) {
        let (_home, store) = new();
        let runs = ["01", "02", "03"].map(|id| run("aa", id, 1));
        assert_eq!(store.newest_start().unwrap(), None);
        saved(&store, &runs[0]);
        saved(&store, &runs[1]);
        assert_eq!(store.newest_start().unwrap(), Some(runs[0].started_unix));
        let first = store.runs_after(0, 1).unwrap();
        assert_eq!(first[0].1, runs[0]);
        let rest = store.runs_after(first[0].0, 10).unwrap();
        assert_eq!(rest[0].1, runs[1]);
        let last = rest[0].0;
        assert!(store.runs_after(last, 10).unwrap().is_empty());
        let numbers = [first[0].0, last].into_iter();
        let ids = [&runs[0].id, &runs[1].id].map(Clone::clone);
        assert!(numbers.zip(ids).eq(store.run_numbers().unwrap()));
        saved(&store, &runs[2]);
        assert_eq!(store.runs_after(last, 10).unwrap()[0].1, runs[2]);
    }
}
