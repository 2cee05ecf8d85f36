//! An overview of the queue: jobs counted, and the few that a page shows. The database counts, so
//! that it does not matter how many jobs there were ever.

use std::collections::BTreeMap;

use model::{QueuedJob, UnixTime};

use super::{StoredState, select};
use crate::columns::{Time, Unsigned, time};
use crate::database::Row;
use crate::{Store, StoreError};

/// An overview of the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueOverview {
    /// All jobs, by machine and state.
    pub counts: Vec<JobCount>,
    /// How long those took that are done, in sum (s).
    pub took_s: u64,
    /// When the first of those was queued that a worker may take now, by machine.
    pub free_since_unix: BTreeMap<String, UnixTime>,
    /// All jobs that run.
    pub running: Vec<QueuedJob>,
    /// The first of those that wait, in their order.
    pub waiting: Vec<QueuedJob>,
    /// The latest that are over, newest first.
    pub over: Vec<QueuedJob>,
}

/// The number of jobs of a machine that are in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCount {
    pub machine: String,
    pub state: &'static str,
    pub jobs: usize,
}

// Each has an index with all that it needs, but the sum, which reads the table once, in its order.
const COUNT: &str =
    "SELECT state, machine, count(*) FROM queue GROUP BY state, machine ORDER BY state, machine";
const TOOK: &str = "SELECT CAST(coalesce(sum(CASE WHEN state = 'done' AND ended_unix > started_unix
    THEN ended_unix - started_unix END), 0) AS BIGINT) FROM queue";
const FREE: &str = "SELECT machine, min(queued_unix) FROM queue
    WHERE state = 'waiting' AND until_unix <= ?1 GROUP BY machine";
const RUNNING: &str = "WHERE state = 'running' ORDER BY priority DESC, rank, number";
const WAITING: &str = "WHERE state = 'waiting' ORDER BY priority DESC, rank, number LIMIT ?1";
const OVER: &str = "WHERE state NOT IN ('waiting', 'running') AND ended_unix IS NOT NULL
    ORDER BY ended_unix DESC, number DESC LIMIT ?1";

impl QueueOverview {
    /// Returns how many jobs of a machine are in a state, by the state's word.
    #[must_use]
    pub fn jobs(&self, machine: &str, state: &str) -> usize {
        let of_it = self
            .counts
            .iter()
            .filter(|count| count.machine == machine && count.state == state);
        of_it.map(|count| count.jobs).sum()
    }
}

impl Store {
    /// Lists the jobs that run.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn running_jobs(&self) -> Result<Vec<QueuedJob>, StoreError> {
        self.with(|database| select(database, RUNNING, &[]))
    }

    /// Reads an overview of the queue: of those that wait and of those that are over at most so
    /// many.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn queue_overview(
        &self,
        now_unix: UnixTime,
        waiting_max: u32,
        over_max: u32,
    ) -> Result<QueueOverview, StoreError> {
        self.with(|database| {
            let _whole = database.read()?;
            Ok(QueueOverview {
                counts: database.rows(COUNT, &[], |row: &Row<'_>| {
                    let jobs = usize::try_from(row.get::<Unsigned>(2)?.0).unwrap_or(usize::MAX);
                    Ok(JobCount {
                        state: row.get::<StoredState>(0)?.name(),
                        machine: row.get(1)?,
                        jobs,
                    })
                })?,
                took_s: database
                    .row(TOOK, &[], |row| Ok(row.get::<Unsigned>(0)?.0))?
                    .unwrap_or(0),
                free_since_unix: database
                    .rows(FREE, &[&Time(now_unix)], |row| {
                        Ok((row.get(0)?, time(row, 1)?))
                    })?
                    .into_iter()
                    .collect(),
                running: select(database, RUNNING, &[])?,
                waiting: select(database, WAITING, &[&waiting_max])?,
                over: select(database, OVER, &[&over_max])?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{Ending, USUAL_MACHINE, UnixTime};

    use super::super::tests::{claim, new, queued};
    use super::QueueOverview;
    use crate::testing::{New, contract};

    contract!(overview_counts_all_and_lists_some,);

    fn numbers(jobs: &[model::QueuedJob]) -> Vec<u64> {
        jobs.iter().map(|job| job.number).collect()
    }

    fn overview_counts_all_and_lists_some(make: New<'_>) {
        let (_home, store) = make();
        assert_eq!(
            store.queue_overview(UnixTime::new(0), 9, 9).unwrap(),
            QueueOverview::default()
        );
        // Queued at 1,000; the first three of the highest priority are done after 10, 20 and 30 s,
        // the next one runs.
        let all: Vec<u64> = (0..8)
            .map(|n| queued(&store, &format!("git:v6.{n}"), -n))
            .collect();
        for took_s in [10, 20, 30] {
            let job = claim(&store, "here", 1_000).unwrap();
            store
                .change_job(job.number, |job| {
                    job.end(
                        job.fence,
                        Ending::Done(String::new()),
                        UnixTime::new(1_000 + took_s),
                    )
                })
                .unwrap();
        }
        claim(&store, "here", 1_000).unwrap();
        store
            .change_job(all[7], |job| job.cancel(UnixTime::new(1_500)))
            .unwrap();
        let mut elsewhere = new("git:v6.1", 0);
        elsewhere.work.machine = "testbox".into();
        store.queue_job(&elsewhere, UnixTime::new(2_000)).unwrap();
        let found = store.queue_overview(UnixTime::new(1_999), 2, 3).unwrap();
        let counts = found
            .counts
            .iter()
            .map(|count| (count.state, &*count.machine, count.jobs))
            .collect::<Vec<_>>();
        let mut expected = vec![
            ("cancelled", 1),
            ("done", 3),
            ("running", 1),
            ("waiting", 3),
        ]
        .into_iter()
        .map(|(state, jobs)| (state, USUAL_MACHINE, jobs))
        .collect::<Vec<_>>();
        expected.push(("waiting", "testbox", 1));
        assert_eq!(counts, expected);
        assert_eq!(
            (found.took_s, found.free_since_unix),
            (
                60,
                [(USUAL_MACHINE.to_owned(), UnixTime::new(1_000))].into()
            )
        );
        assert_eq!(numbers(&found.running), [all[3]]);
        assert_eq!(numbers(&found.waiting).len(), 2);
        assert_eq!(numbers(&found.over), [all[7], all[2], all[1]]);
        assert_eq!(found.running[0], store.queued_job(all[3]).unwrap());
    }
}
