//! The queue: waiting, running and finished jobs. The model defines each transition; here one process at a time takes
//! it durably.

use model::{Guilt, JobState, KernelName, KernelNameError, NewJob, QueuedJob, Refusal, Work, next_job};
use rusqlite::types::{FromSqlError, Type, Value};
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::columns::{UnknownCode, Unsigned};
use crate::store::write;
use crate::{Store, StoreError};

/// The columns of a job's identity, in the order of [`of_work`] and [`read`].
const WORK: [&str; 6] = ["kernel", "tree", "config", "suite", "workloads", "seeds"];
/// The columns that change: [`that_changes`].
const CHANGES: [&str; 15] = [
    "plan",
    "priority",
    "rank",
    "attempts_max",
    "deadline_s",
    "state",
    "worker",
    "until_unix",
    "fence",
    "attempts",
    "reason",
    "queued_unix",
    "started_unix",
    "ended_unix",
    "kills",
];

/// The result of queueing a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queued {
    /// It is queued, with this number.
    New(u64),
    /// Equal work is queued already.
    Known(Box<QueuedJob>),
}

/// Why a job was not changed.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Its state does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no such job.
    #[error("there is no job {0} in the queue: `marvin queue list --all` lists them")]
    NoJob(u64),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueueError {
    /// Returns who has to act on it.
    #[must_use]
    pub fn guilt(&self) -> Guilt {
        match self {
            Self::Refused(_) | Self::NoJob(_) => Guilt::User,
            Self::Store(error) => error.guilt(),
        }
    }
}

impl Store {
    /// Queues a job, unless equal work was queued before, in any state.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn queue_job(&self, new: &NewJob, now_unix: i64) -> Result<Queued, StoreError> {
        let transaction = self.ask(write)?;
        if let Some(known) = self.ask(|connection| equal(connection, &new.work))? {
            return Ok(Queued::Known(Box::new(known)));
        }
        let number = self.ask(|connection| {
            // The database assigns the number; everything else is set below.
            let job = QueuedJob::queued(0, new.clone(), now_unix);
            insert(connection, &job)
        })?;
        self.ask(|_| transaction.commit())?;
        Ok(Queued::New(number))
    }

    /// Lists jobs in their order of execution; finished ones only on request, newest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn queued_jobs(&self, which: Listed) -> Result<Vec<QueuedJob>, StoreError> {
        self.ask(|connection| {
            let mut jobs = select(
                connection,
                "WHERE state IN ('waiting', 'running') ORDER BY state, priority DESC, rank, number",
            )?;
            if which == Listed::All {
                let over = "WHERE state NOT IN ('waiting', 'running') ORDER BY ended_unix DESC, number DESC";
                jobs.extend(select(connection, over)?);
            }
            Ok(jobs)
        })
    }

    /// Returns a job.
    ///
    /// # Errors
    /// If there is none of that number, or the database cannot be read.
    pub fn queued_job(&self, number: u64) -> Result<QueuedJob, QueueError> {
        self.ask(|connection| of_number(connection, number))?.ok_or(QueueError::NoJob(number))
    }

    /// Claims the next free job for a worker.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn claim_job(&self, worker: &str, now_unix: i64) -> Result<Option<QueuedJob>, StoreError> {
        let transaction = self.ask(write)?;
        let open = self.ask(|connection| select(connection, "WHERE state IN ('waiting', 'running')"))?;
        let Some(mut job) = next_job(&open, now_unix).cloned() else { return Ok(None) };
        if job.claim(worker, now_unix).is_err() {
            return Ok(None);
        }
        self.ask(|connection| update(connection, &job))?;
        self.ask(|_| transaction.commit())?;
        Ok(Some(job))
    }

    /// Requeues and returns the jobs of dead workers: those whose lease is over, and all of a worker that is known to
    /// have ended.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn take_back_jobs(&self, ended_worker: Option<&str>, now_unix: i64) -> Result<Vec<QueuedJob>, StoreError> {
        let transaction = self.ask(write)?;
        let mut taken = self.ask(|connection| select(connection, "WHERE state = 'running' ORDER BY number"))?;
        taken.retain_mut(|job| {
            let of_ended =
                matches!(&job.state, JobState::Running { worker, .. } if Some(worker.as_str()) == ended_worker);
            (of_ended || job.is_stale(now_unix)) && job.take_back(now_unix)
        });
        for job in &taken {
            self.ask(|connection| update(connection, job))?;
        }
        self.ask(|_| transaction.commit())?;
        Ok(taken)
    }

    /// Changes a job's state, and returns the job.
    ///
    /// # Errors
    /// If there is no such job, it does not allow the step, or the database cannot be written.
    pub fn change_job(
        &self,
        number: u64,
        step: impl FnOnce(&mut QueuedJob) -> Result<(), Refusal>,
    ) -> Result<QueuedJob, QueueError> {
        let transaction = self.ask(write)?;
        let mut job = self.ask(|connection| of_number(connection, number))?.ok_or(QueueError::NoJob(number))?;
        step(&mut job)?;
        self.ask(|connection| update(connection, &job))?;
        self.ask(|_| transaction.commit())?;
        Ok(job)
    }
}

/// The jobs to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Waiting and running ones.
    Open,
    /// All.
    All,
}

fn equal(connection: &Connection, work: &Work) -> rusqlite::Result<Option<QueuedJob>> {
    let same = WORK.map(|column| format!("{column} = ?")).join(" AND ");
    connection.prepare_cached(&format_select(&format!("WHERE {same}")))?.query_row(of_work(work), read).optional()
}

fn of_number(connection: &Connection, number: u64) -> rusqlite::Result<Option<QueuedJob>> {
    connection.prepare_cached(&format_select("WHERE number = ?"))?.query_row([Unsigned(number)], read).optional()
}

fn select(connection: &Connection, tail: &str) -> rusqlite::Result<Vec<QueuedJob>> {
    connection.prepare_cached(&format_select(tail))?.query_map([], read)?.collect()
}

fn format_select(tail: &str) -> String {
    format!("SELECT number, {}, {} FROM queue {tail}", WORK.join(", "), CHANGES.join(", "))
}

fn insert(connection: &Connection, job: &QueuedJob) -> rusqlite::Result<u64> {
    let (columns, places) = ([&WORK[..], &CHANGES].concat(), ["?"; WORK.len() + CHANGES.len()]);
    let text = format!("INSERT INTO queue ({}) VALUES ({})", columns.join(", "), places.join(", "));
    let values = of_work(&job.new.work).into_iter().chain(that_changes(job));
    connection.prepare_cached(&text)?.execute(params_from_iter(values))?;
    Ok(connection.last_insert_rowid().cast_unsigned())
}

fn update(connection: &Connection, job: &QueuedJob) -> rusqlite::Result<()> {
    let text =
        format!("UPDATE queue SET {} WHERE number = ?", CHANGES.map(|column| format!("{column} = ?")).join(", "));
    let values = that_changes(job).into_iter().chain([Value::from(job.number.cast_signed())]);
    connection.prepare_cached(&text)?.execute(params_from_iter(values)).map(drop)
}

fn of_work(work: &Work) -> [Value; WORK.len()] {
    let Work { kernel, tree, config, suite, workloads, seeds } = work;
    let texts = [kernel.to_string(), tree.clone(), config.clone(), suite.clone(), workloads.join(",")];
    let [kernel, tree, config, suite, workloads] = texts.map(Value::from);
    [kernel, tree, config, suite, workloads, seeds.cast_signed().into()]
}

fn that_changes(job: &QueuedJob) -> [Value; CHANGES.len()] {
    let NewJob { plan, priority, rank, attempts_max, deadline_s, .. } = &job.new;
    let (worker, until) = holder(&job.state);
    [
        plan.clone().into(),
        (*priority).into(),
        rank.cast_signed().into(),
        (*attempts_max).into(),
        deadline_s.cast_signed().into(),
        job.state.word().to_owned().into(),
        worker.map(str::to_owned).into(),
        until.into(),
        job.fence.cast_signed().into(),
        job.attempts.into(),
        job.reason.clone().into(),
        job.queued_unix.into(),
        job.started_unix.into(),
        job.ended_unix.into(),
        job.kills.into(),
    ]
}

/// Returns the holder of a job, and the time in its state.
fn holder(state: &JobState) -> (Option<&str>, Option<i64>) {
    match state {
        JobState::Waiting { from_unix } => (None, Some(*from_unix)),
        JobState::Running { worker, until_unix } => (Some(worker), Some(*until_unix)),
        _ => (None, None),
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<QueuedJob> {
    let whole = |column: usize| row.get::<_, Unsigned>(column).map(|number| number.0);
    let workloads: String = row.get(5)?;
    let work = Work {
        kernel: kernel(row, 1)?,
        tree: row.get(2)?,
        config: row.get(3)?,
        suite: row.get(4)?,
        workloads: workloads.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        seeds: whole(6)?,
    };
    let new = NewJob {
        work,
        plan: row.get(7)?,
        priority: row.get(8)?,
        rank: whole(9)?,
        attempts_max: row.get(10)?,
        deadline_s: whole(11)?,
    };
    Ok(QueuedJob {
        number: whole(0)?,
        new,
        state: state(row)?,
        fence: whole(15)?,
        attempts: row.get(16)?,
        reason: row.get(17)?,
        queued_unix: row.get(18)?,
        started_unix: row.get(19)?,
        ended_unix: row.get(20)?,
        kills: row.get(21)?,
    })
}

fn conversion(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

fn kernel(row: &Row<'_>, column: usize) -> rusqlite::Result<KernelName> {
    row.get::<_, String>(column)?.parse().map_err(|error: KernelNameError| conversion(column, error))
}

fn state(row: &Row<'_>) -> rusqlite::Result<JobState> {
    Ok(match row.get::<_, String>(12)?.as_str() {
        "waiting" => JobState::Waiting { from_unix: row.get(14)? },
        "running" => JobState::Running { worker: row.get(13)?, until_unix: row.get(14)? },
        "done" => JobState::Done,
        "failed" => JobState::Failed,
        "cancelled" => JobState::Cancelled,
        "replaced" => JobState::Replaced,
        other => {
            return Err(match UnknownCode::error("state of a queued job", other) {
                FromSqlError::Other(error) => rusqlite::Error::FromSqlConversionFailure(12, Type::Text, error),
                error => conversion(12, error),
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use model::{Ending, Guilt, JobState, NewJob, Work};

    use super::{Listed, QueueError, Queued};
    use crate::Store;
    use crate::testing::store;

    fn new(kernel: &str, priority: i64) -> NewJob {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: "stable".into(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into(), "fork".into()],
            seeds: 2,
        };
        NewJob { work, plan: "quick".into(), priority, rank: 7, attempts_max: 3, deadline_s: 100 }
    }

    fn queued(store: &Store, kernel: &str, priority: i64) -> u64 {
        match store.queue_job(&new(kernel, priority), 1_000).unwrap() {
            Queued::New(number) => number,
            Queued::Known(job) => panic!("{job:?}"),
        }
    }

    #[test]
    fn jobs_are_queued_once_and_done_by_priority() {
        let (home, store) = store();
        let low = queued(&store, "git:v6.1", 1);
        let high = queued(&store, "git:v6.12", 2);
        let Queued::Known(known) = store.queue_job(&new("git:v6.1", 5), 2_000).unwrap() else { panic!() };
        assert_eq!((known.number, known.new.priority, known.queued_unix), (low, 1, 1_000));
        let job = store.claim_job("here", 1_000).unwrap().unwrap();
        assert_eq!((job.number, job.attempts), (high, 1));
        assert_eq!(job.state, JobState::Running { worker: "here".into(), until_unix: 1_220 });
        // Another process reads the same.
        let reader = Store::open_read_only(home.path()).unwrap();
        assert_eq!(reader.queued_job(high).unwrap(), job);
        let fence = job.fence;
        let done = store.change_job(high, |job| job.end(fence, Ending::Done("fine".into()), 1_100)).unwrap();
        assert_eq!((done.state, done.reason.as_str(), done.ended_unix), (JobState::Done, "fine", Some(1_100)));
        let order: Vec<u64> = store.queued_jobs(Listed::All).unwrap().iter().map(|job| job.number).collect();
        assert_eq!(order, [low, high]);
        assert_eq!(store.queued_jobs(Listed::Open).unwrap().len(), 1);
        assert_eq!(store.claim_job("here", 1_000).unwrap().unwrap().number, low);
        assert_eq!(store.claim_job("here", 1_000).unwrap(), None);
    }

    #[test]
    fn job_of_killed_worker_is_requeued() {
        let (_home, store) = store();
        let [one, other] = ["git:v6.1", "git:v6.12"].map(|kernel| queued(&store, kernel, 0));
        assert_eq!(store.claim_job("here", 1_000).unwrap().unwrap().number, one);
        assert_eq!(store.claim_job("there", 1_000).unwrap().unwrap().number, other);
        assert!(store.take_back_jobs(None, 1_001).unwrap().is_empty());
        let taken = store.take_back_jobs(Some("here"), 1_001).unwrap();
        assert_eq!(taken.iter().map(|job| job.number).collect::<Vec<_>>(), [one]);
        assert_eq!(store.queued_job(one).unwrap(), taken[0]);
        let taken = store.take_back_jobs(None, 9_000).unwrap();
        assert_eq!(taken.iter().map(|job| job.number).collect::<Vec<_>>(), [other]);
    }

    #[test]
    fn forbidden_transition_changes_nothing() {
        let (_home, store) = store();
        let number = queued(&store, "git:v6.1", 0);
        store.change_job(number, |job| job.cancel(2_000)).unwrap();
        let before = store.queued_job(number).unwrap();
        let error = store.change_job(number, |job| job.cancel(3_000)).unwrap_err();
        assert!(matches!(error, QueueError::Refused(_)), "{error}");
        assert_eq!(store.queued_job(number).unwrap(), before);
        let error = store.queued_job(99).unwrap_err();
        insta::assert_snapshot!(error, @"there is no job 99 in the queue: `marvin queue list --all` lists them");
    }

    #[test]
    fn a_state_from_the_future_is_an_error() {
        let (_home, store) = store();
        let number = queued(&store, "git:v6.1", 0);
        store.ask(|connection| connection.execute("UPDATE queue SET state = 'pondering'", [])).unwrap();
        let QueueError::Store(error) = store.queued_job(number).unwrap_err() else { panic!() };
        assert_eq!(error.guilt(), Guilt::User);
        assert!(error.to_string().contains("written by a newer Marvin"), "{error}");
    }
}
