//! Expiry of what a lab has done with: jobs that are over, and notices that everyone has. Results
//! never expire.
//!
//! Jobs of the plans of watched trees stay, so that `watch` queues none again; so do notices that
//! stand, so that none is sent twice.

use model::{CHECK_PLAN, UnixTime};
use rusqlite::types::ToSql;

use crate::columns::{self, Time, Unsigned};
use crate::database::{Locked, Values};
use crate::{Store, StoreError};

/// Rows that are deleted in one transaction: workers wait no longer than that takes.
const ROWS_AT_ONCE: i64 = 500;
/// How much older than its clock a lab's last record may be before ages are counted from that
/// record: a clock that is years ahead then makes nothing older than it is.
const IDLE_S: u64 = 7 * 86_400;

/// What expires: what ended before these times; `None` for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expiry<'a> {
    pub jobs_before_unix: Option<UnixTime>,
    /// The trees of marvin.toml.
    pub trees: &'a [String],
    pub notices_before_unix: Option<UnixTime>,
}

/// How many have expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expired {
    pub jobs: u64,
    pub notices: u64,
}

impl Expiry<'_> {
    /// Returns the condition for jobs, whose parameters are [`Expiry::values`]: over, and of no plan
    /// of a tree that is watched. The others are how `watch` knows that it queued a kernel.
    fn jobs(&self) -> String {
        let trees: Vec<String> = (3..)
            .zip(self.trees)
            .map(|(n, _)| format!("?{n}"))
            .collect();
        let is_planned = match trees.as_slice() {
            [] => "FALSE".to_owned(),
            trees => format!("plan NOT IN ('', ?2) AND tree IN ({})", trees.join(", ")),
        };
        format!(
            "state NOT IN ('waiting', 'running') AND ended_unix < ?1
             AND (state = 'replaced' OR ?2 = plan OR NOT ({is_planned}))"
        )
    }

    fn values<'a>(&'a self, before: &'a Time, check: &'a &'static str) -> Vec<&'a dyn ToSql> {
        let trees = self.trees.iter().map(|tree| -> &dyn ToSql { tree });
        let first: [&dyn ToSql; 2] = [before, check];
        first.into_iter().chain(trees).collect()
    }
}

/// Notices that stand no more, and that no channel still waits for.
const NOTICES: &str = "settled_unix < ?1 AND NOT EXISTS
    (SELECT 1 FROM deliveries WHERE notice = notices.number AND delivered_unix IS NULL)";

impl Store {
    /// Returns the time from which ages are counted: now, unless the lab's last record is much
    /// older.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn age_reference(&self, now_unix: UnixTime) -> Result<UnixTime, StoreError> {
        let mut newest = self.newest_start()?;
        for select in [
            "SELECT max(queued_unix) FROM queue",
            "SELECT max(ended_unix) FROM queue",
            "SELECT max(raised_unix) FROM notices",
        ] {
            let last = self
                .with(|database| database.row(select, &[], |row| columns::optional_time(row, 0)))?;
            newest = newest.max(last.flatten());
        }
        Ok(newest.map_or(now_unix, |newest| now_unix.min(newest.plus_seconds(IDLE_S))))
    }

    /// Counts what has expired.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn count_expired(&self, expiry: &Expiry<'_>) -> Result<Expired, StoreError> {
        let count = |table: &str, condition: &str, values: Values<'_>| {
            let select = format!("SELECT count(*) FROM {table} WHERE {condition}");
            let count =
                self.with(|database| database.row(&select, values, |row| row.get::<Unsigned>(0)));
            Ok::<_, StoreError>(count?.map_or(0, |count| count.0))
        };
        let mut expired = Expired::default();
        if let Some(before) = expiry.jobs_before_unix {
            let before = Time(before);
            let values = expiry.values(&before, &CHECK_PLAN);
            expired.jobs = count("queue", &expiry.jobs(), &values)?;
        }
        if let Some(before) = expiry.notices_before_unix {
            expired.notices = count("notices", NOTICES, &[&Time(before)])?;
        }
        Ok(expired)
    }

    /// Deletes what has expired, in steps that are whole whenever this is killed; returns how many.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn remove_expired(&self, expiry: &Expiry<'_>) -> Result<Expired, StoreError> {
        let mut expired = Expired::default();
        if let Some(before) = expiry.jobs_before_unix {
            let before = Time(before);
            let values = expiry.values(&before, &CHECK_PLAN);
            let deletes = ["DELETE FROM queue WHERE number = ?1"];
            expired.jobs = self.remove_rows("queue", &expiry.jobs(), &values, &deletes)?;
        }
        if let Some(before) = expiry.notices_before_unix {
            let deletes = [
                "DELETE FROM deliveries WHERE notice = ?1",
                "DELETE FROM notices WHERE number = ?1",
            ];
            expired.notices = self.remove_rows("notices", NOTICES, &[&Time(before)], &deletes)?;
        }
        Ok(expired)
    }

    /// Deletes the rows of a condition, some at a time, each by these statements.
    fn remove_rows(
        &self,
        table: &str,
        condition: &str,
        values: Values<'_>,
        deletes: &[&str],
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        loop {
            let removed = self.with(|database| {
                let transaction = database.change()?;
                // Another gc may be at it.
                let lock = database.lock(Locked::Skip);
                let select = format!(
                    "SELECT number FROM {table} WHERE {condition} ORDER BY number LIMIT {ROWS_AT_ONCE}{lock}"
                );
                let numbers = database.rows(&select, values, |row| row.get::<i64>(0))?;
                for number in &numbers {
                    for delete in deletes {
                        database.execute(delete, &[number])?;
                    }
                }
                transaction.commit()?;
                Ok(numbers.len())
            })?;
            if removed == 0 {
                return Ok(count);
            }
            count += removed as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{CHECK_PLAN, Ending, JobState, QueuedJob, UnixTime};

    use super::{Expired, Expiry};
    use crate::queue::{Listed, Queued};
    use crate::testing::{New, again, contract, new_job, run, saved};
    use crate::{Notice, QueueError, Store};

    contract!(
        jobs_that_watch_asks_for_never_expire,
        standing_and_undelivered_notices_never_expire,
        clock_ahead_of_the_lab_expires_nothing,
        two_collections_at_once_delete_once,
    );

    const AT: UnixTime = UnixTime::new(1000);

    /// Queues a job of a plan and tree, and ends it at a time.
    fn ended(store: &Store, kernel: &str, of: (&str, &str), at: i64) -> u64 {
        let mut new = new_job(kernel);
        (new.plan, new.work.tree) = (of.0.to_owned(), of.1.to_owned());
        let Queued::New(number) = store.queue_job(&new, AT).unwrap() else {
            panic!("{kernel} is queued twice");
        };
        let at = UnixTime::new(at);
        store
            .change_job(number, |job: &mut QueuedJob| {
                job.claim("w", AT)?;
                job.end(job.fence, Ending::Done(String::new()), at)
            })
            .unwrap();
        number
    }

    fn jobs_that_watch_asks_for_never_expire(make: New<'_>) {
        let (_home, store) = make();
        let users = ended(&store, "deb:6.1", ("", ""), 2000);
        let checked = ended(&store, "deb:6.2", (CHECK_PLAN, ""), 2000);
        let planned = ended(&store, "git:v6.3", ("releases", "linux"), 2000);
        let of_old_tree = ended(&store, "git:v6.4", ("releases", "gone"), 2000);
        let young = ended(&store, "deb:6.5", ("", ""), 9000);
        let Queued::New(waiting) = store.queue_job(&new_job("deb:6.6"), AT).unwrap() else {
            panic!("a new job");
        };
        let trees = ["linux".to_owned()];
        let expiry = Expiry {
            jobs_before_unix: Some(UnixTime::new(3000)),
            trees: &trees,
            notices_before_unix: None,
        };
        let expected = Expired {
            jobs: 3,
            notices: 0,
        };
        assert_eq!(store.count_expired(&expiry).unwrap(), expected);
        assert_eq!(store.remove_expired(&expiry).unwrap(), expected);
        let mut left: Vec<u64> = Vec::new();
        for job in store.queued_jobs(Listed::All).unwrap() {
            left.push(job.number);
        }
        left.sort_unstable();
        assert_eq!(left, [planned, young, waiting]);
        for gone in [users, checked, of_old_tree] {
            let error = store.queued_job(gone).unwrap_err();
            assert!(
                matches!(error, QueueError::Removed(number) if number == gone),
                "{error}"
            );
        }
        let never = store.queued_job(waiting + 1).unwrap_err();
        assert!(matches!(never, QueueError::NoJob(_)), "{never}");
        assert!(matches!(
            store.queued_job(waiting).unwrap().state,
            JobState::Waiting { .. }
        ));
    }

    fn standing_and_undelivered_notices_never_expire(make: New<'_>) {
        let (_home, store) = make();
        let raise = |subject: &str, channels: &[&str]| {
            let notice = Notice {
                subject: subject.to_owned(),
                headline: "h".to_owned(),
                body: "b".to_owned(),
                raised_unix: AT,
            };
            store.raise(&notice, channels).unwrap()
        };
        for subject in ["regression:a 6.1..6.2", "tree:sent", "tree:pending"] {
            let channels: &[&str] = if subject == "tree:sent" {
                &[]
            } else {
                &["mail"]
            };
            assert!(raise(subject, channels));
        }
        for subject in ["tree:sent", "tree:pending"] {
            assert!(store.settle(subject, AT).unwrap());
        }
        let expiry = Expiry {
            notices_before_unix: Some(UnixTime::new(3000)),
            ..Expiry::default()
        };
        assert_eq!(store.remove_expired(&expiry).unwrap().notices, 1);
        assert_eq!(store.list_undelivered().unwrap().len(), 2);
        assert!(
            !raise("regression:a 6.1..6.2", &["mail"]),
            "it is not sent again"
        );
    }

    fn clock_ahead_of_the_lab_expires_nothing(make: New<'_>) {
        let (_home, store) = make();
        assert_eq!(store.age_reference(AT).unwrap(), AT, "an empty store");
        let one = run("aa", "01", 1);
        saved(&store, &one);
        ended(&store, "deb:6.1", ("", ""), one.started_unix.seconds() + 60);
        let last = one.started_unix.plus_seconds(60);
        let day = last.plus_seconds(86_400);
        assert_eq!(store.age_reference(day).unwrap(), day);
        let later = last.plus_seconds(10 * 366 * 86_400);
        let reference = store.age_reference(later).unwrap();
        assert_eq!(reference, last.plus_seconds(super::IDLE_S));
        let expiry = Expiry {
            jobs_before_unix: Some(reference.minus_seconds(90 * 86_400)),
            ..Expiry::default()
        };
        assert_eq!(store.count_expired(&expiry).unwrap().jobs, 0);
    }

    fn two_collections_at_once_delete_once(make: New<'_>) {
        let (_home, store) = make();
        for number in 0..30 {
            ended(&store, &format!("deb:6.{number}"), ("", ""), 2000);
        }
        let removed: u64 = std::thread::scope(|scope| {
            let both = [again(&store), again(&store)].map(|store| {
                scope.spawn(move || {
                    let expiry = Expiry {
                        jobs_before_unix: Some(UnixTime::new(3000)),
                        ..Expiry::default()
                    };
                    store.remove_expired(&expiry).unwrap().jobs
                })
            });
            both.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(removed, 30);
        assert!(store.queued_jobs(Listed::All).unwrap().is_empty());
    }
}
