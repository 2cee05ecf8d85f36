//! The queue: waiting, running and finished jobs. The model defines each transition; here one
//! process at a time takes it durably, on a server too, whose workers are on any host.

mod overview;

pub use overview::{JobCount, QueueOverview};

use model::{
    Fault, JobState, KernelName, KernelNameError, NewJob, QueuedJob, Refusal, UnixTime, Work,
};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, Value, ValueRef};

use crate::columns::{self, Time, UnknownCode, Unsigned};
use crate::database::{Database, Failure, Locked, Row, Values};
use crate::{Store, StoreError};

/// The columns of a job's identity, in the order of [`of_work`] and [`read`].
const WORK: [&str; 7] = [
    "kernel",
    "tree",
    "config",
    "suite",
    "workloads",
    "seeds",
    "machine",
];
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
    /// It was over, and `gc` deleted it.
    #[error(
        "job {0} was over for longer than marvin.toml keeps jobs, and `marvin gc` deleted it; its results are kept"
    )]
    Removed(u64),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueueError {
    /// Returns who has to act on it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Refused(_) | Self::NoJob(_) | Self::Removed(_) => Fault::User,
            Self::Store(error) => error.fault(),
        }
    }
}

impl Store {
    /// Queues a job, unless equal work was queued before, in any state.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn queue_job(&self, new: &NewJob, now_unix: UnixTime) -> Result<Queued, StoreError> {
        self.with(|database| {
            let transaction = database.change()?;
            // The database assigns the number; everything else is set below.
            let Some(number) = insert(database, &QueuedJob::queued(0, new.clone(), now_unix))?
            else {
                let same: Vec<String> = (1..)
                    .zip(WORK)
                    .map(|(n, column)| format!("{column} = ?{n}"))
                    .collect();
                let work = of_work(&new.work);
                let known = select(
                    database,
                    &format!("WHERE {}", same.join(" AND ")),
                    &values(&work),
                )?
                .pop();
                return Ok(Queued::Known(Box::new(known.ok_or_else(|| {
                    Failure::Silent("equal work was queued, and is gone".to_owned())
                })?)));
            };
            transaction.commit()?;
            Ok(Queued::New(number))
        })
    }

    /// Lists jobs in their order of execution; finished ones only on request, newest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn queued_jobs(&self, which: Listed) -> Result<Vec<QueuedJob>, StoreError> {
        self.with(|database| {
            let open = "WHERE state IN ('waiting', 'running') ORDER BY state, priority DESC, rank, number";
            let mut jobs = select(database, open, &[])?;
            if which == Listed::All {
                let over = "WHERE state NOT IN ('waiting', 'running') ORDER BY ended_unix DESC, number DESC";
                jobs.extend(select(database, over, &[])?);
            }
            Ok(jobs)
        })
    }

    /// Returns a job.
    ///
    /// # Errors
    /// If there is none of that number, or the database cannot be read.
    pub fn queued_job(&self, number: u64) -> Result<QueuedJob, QueueError> {
        match self.with(|database| of_number(database, number, ""))? {
            Some(job) => Ok(job),
            None => Err(self.missing_job(number)?),
        }
    }

    /// Returns why there is no job of a number: numbers only rise.
    fn missing_job(&self, number: u64) -> Result<QueueError, StoreError> {
        let select = "SELECT max(number) FROM queue";
        let newest: Option<i64> = self
            .with(|database| database.row(select, &[], |row| row.get(0)))?
            .flatten();
        let was_there = newest.is_some_and(|newest| (1..newest.cast_unsigned()).contains(&number));
        Ok(if was_there {
            QueueError::Removed(number)
        } else {
            QueueError::NoJob(number)
        })
    }

    /// Claims the next free job of these machines for a worker. Workers of one server pass over
    /// what others claim now.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn claim_job(
        &self,
        worker: &str,
        machines: &[String],
        now_unix: UnixTime,
    ) -> Result<Option<QueuedJob>, StoreError> {
        if machines.is_empty() {
            return Ok(None);
        }
        let places: Vec<String> = (2..).zip(machines).map(|(n, _)| format!("?{n}")).collect();
        let free = format!(
            "WHERE state = 'waiting' AND until_unix <= ?1 AND machine IN ({}) ORDER BY priority DESC, rank, number LIMIT 1",
            places.join(", ")
        );
        let now = Time(now_unix);
        let mut given: Vec<&dyn ToSql> = vec![&now];
        given.extend(machines.iter().map(|name| -> &dyn ToSql { name }));
        self.with(|database| {
            let transaction = database.change()?;
            let next = format!("{free}{}", database.lock(Locked::Skip));
            let Some(mut job) = select(database, &next, &given)?.pop() else {
                return Ok(None);
            };
            if job.claim(worker, now_unix).is_err() {
                return Ok(None);
            }
            update(database, &job)?;
            transaction.commit()?;
            Ok(Some(job))
        })
    }

    /// Requeues and returns the jobs of dead workers: those whose lease is over, and all of a
    /// worker that is known to have ended.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn take_back_jobs(
        &self,
        ended_worker: Option<&str>,
        now_unix: UnixTime,
    ) -> Result<Vec<QueuedJob>, StoreError> {
        self.with(|database| {
            let stale =
                "WHERE state = 'running' AND (until_unix <= ?1 OR worker = ?2) ORDER BY number";
            let given: Values<'_> = &[&Time(now_unix), &ended_worker];
            // Asked without a lock first: there is rarely anything to take back.
            if select(database, stale, given)?.is_empty() {
                return Ok(Vec::new());
            }
            let transaction = database.change()?;
            let mut taken = select(
                database,
                &format!("{stale}{}", database.lock(Locked::Wait)),
                given,
            )?;
            taken.retain_mut(|job| {
                let is_of_ended = match &job.state {
                    JobState::Running { worker, .. } => Some(worker.as_str()) == ended_worker,
                    _ => false,
                };
                (is_of_ended || job.is_stale(now_unix)) && job.take_back(now_unix)
            });
            for job in &taken {
                update(database, job)?;
            }
            transaction.commit()?;
            Ok(taken)
        })
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
        self.with(|database| {
            let transaction = database.change()?;
            let Some(mut job) = of_number(database, number, database.lock(Locked::Wait))? else {
                return Ok(Err(QueueError::NoJob(number)));
            };
            if let Err(refusal) = step(&mut job) {
                return Ok(Err(refusal.into()));
            }
            update(database, &job)?;
            transaction.commit()?;
            Ok(Ok(job))
        })?
    }
}

/// The jobs to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Waiting and running ones.
    Open,
    All,
}

fn of_number(database: &Database, number: u64, lock: &str) -> Result<Option<QueuedJob>, Failure> {
    Ok(select(
        database,
        &format!("WHERE number = ?1{lock}"),
        &[&Unsigned(number)],
    )?
    .pop())
}

fn select(database: &Database, tail: &str, given: Values<'_>) -> Result<Vec<QueuedJob>, Failure> {
    let select = format!(
        "SELECT number, {}, {} FROM queue {tail}",
        WORK.join(", "),
        CHANGES.join(", ")
    );
    database.rows(&select, given, read)
}

/// Returns the number of the new job; `None` if equal work has one.
fn insert(database: &Database, job: &QueuedJob) -> Result<Option<u64>, Failure> {
    let columns = [&WORK[..], &CHANGES].concat();
    let places: Vec<String> = (1..=columns.len()).map(|n| format!("?{n}")).collect();
    let columns = columns.join(", ");
    let places = places.join(", ");
    let text = format!(
        "INSERT INTO queue ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING RETURNING number"
    );
    let given: Vec<Value> = of_work(&job.new.work)
        .into_iter()
        .chain(that_changes(job))
        .collect();
    database.row(&text, &values(&given), |row| Ok(row.get::<Unsigned>(0)?.0))
}

fn update(database: &Database, job: &QueuedJob) -> Result<(), Failure> {
    let set: Vec<String> = (2..)
        .zip(CHANGES)
        .map(|(n, column)| format!("{column} = ?{n}"))
        .collect();
    let number = Value::from(job.number.cast_signed());
    let given: Vec<Value> = [number].into_iter().chain(that_changes(job)).collect();
    database
        .execute(
            &format!("UPDATE queue SET {} WHERE number = ?1", set.join(", ")),
            &values(&given),
        )
        .map(drop)
}

fn values(given: &[Value]) -> Vec<&dyn ToSql> {
    given.iter().map(|value| -> &dyn ToSql { value }).collect()
}

fn of_work(work: &Work) -> [Value; WORK.len()] {
    let Work {
        kernel,
        tree,
        config,
        suite,
        workloads,
        seeds,
        machine,
    } = work;
    let texts = [
        kernel.to_string(),
        tree.clone(),
        config.clone(),
        suite.clone(),
        workloads.join(","),
    ];
    let [kernel, tree, config, suite, workloads] = texts.map(Value::from);
    [
        kernel,
        tree,
        config,
        suite,
        workloads,
        seeds.cast_signed().into(),
        machine.clone().into(),
    ]
}

fn that_changes(job: &QueuedJob) -> [Value; CHANGES.len()] {
    let NewJob {
        plan,
        priority,
        rank,
        attempts_max,
        deadline_s,
        ..
    } = &job.new;
    let (worker, until) = holder(&job.state);
    [
        plan.clone().into(),
        (*priority).into(),
        rank.cast_signed().into(),
        (*attempts_max).into(),
        deadline_s.cast_signed().into(),
        job.state.name().to_owned().into(),
        worker.map(str::to_owned).into(),
        until.map(Time).into(),
        job.fence.cast_signed().into(),
        job.attempts.into(),
        job.reason.clone().into(),
        Time(job.queued_unix).into(),
        job.started_unix.map(Time).into(),
        job.ended_unix.map(Time).into(),
        job.kills.into(),
    ]
}

/// Returns the holder of a job, and the time in its state.
fn holder(state: &JobState) -> (Option<&str>, Option<UnixTime>) {
    match state {
        JobState::Waiting { from_unix } => (None, Some(*from_unix)),
        JobState::Running { worker, until_unix } => (Some(worker), Some(*until_unix)),
        _ => (None, None),
    }
}

fn read(row: &Row<'_>) -> Result<QueuedJob, Failure> {
    let whole = |column: usize| row.get::<Unsigned>(column).map(|number| number.0);
    let workloads: String = row.get(5)?;
    let work = Work {
        kernel: row.get::<Kernel>(1)?.0,
        tree: row.get(2)?,
        config: row.get(3)?,
        suite: row.get(4)?,
        workloads: workloads
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        seeds: whole(6)?,
        machine: row.get(7)?,
    };
    let new = NewJob {
        work,
        plan: row.get(8)?,
        priority: row.get(9)?,
        rank: whole(10)?,
        attempts_max: row.get(11)?,
        deadline_s: whole(12)?,
    };
    let state = match row.get::<StoredState>(13)? {
        StoredState::Waiting => JobState::Waiting {
            from_unix: columns::time(row, 15)?,
        },
        StoredState::Running => JobState::Running {
            worker: row.get(14)?,
            until_unix: columns::time(row, 15)?,
        },
        StoredState::Over(state) => state,
    };
    Ok(QueuedJob {
        number: whole(0)?,
        new,
        state,
        fence: whole(16)?,
        attempts: row.get(17)?,
        reason: row.get(18)?,
        queued_unix: columns::time(row, 19)?,
        started_unix: columns::optional_time(row, 20)?,
        ended_unix: columns::optional_time(row, 21)?,
        kills: row.get(22)?,
    })
}

/// A kernel's name, as text.
struct Kernel(KernelName);

impl FromSql for Kernel {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?.parse();
        name.map(Self)
            .map_err(|error: KernelNameError| FromSqlError::Other(Box::new(error)))
    }
}

/// The name of a state; what belongs to it is in other columns.
enum StoredState {
    Waiting,
    Running,
    Over(JobState),
}

impl StoredState {
    fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Over(state) => state.name(),
        }
    }
}

impl FromSql for StoredState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value.as_str()? {
            "waiting" => Self::Waiting,
            "running" => Self::Running,
            "done" => Self::Over(JobState::Done),
            "failed" => Self::Over(JobState::Failed),
            "cancelled" => Self::Over(JobState::Cancelled),
            "replaced" => Self::Over(JobState::Replaced),
            other => return Err(UnknownCode::error("state of a queued job", other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{Ending, Fault, JobState, LEASE_S, NewJob, USUAL_MACHINE, UnixTime, Work};

    use super::{Listed, QueueError, Queued};
    use crate::Store;
    use crate::testing::{New, again, contract, store};

    contract!(
        jobs_are_queued_once_and_done_by_priority,
        worker_takes_only_jobs_of_its_machines,
        job_of_killed_worker_is_requeued,
        forbidden_transition_changes_nothing,
        workers_never_claim_one_job_twice,
    );

    pub(super) fn claim(store: &Store, worker: &str, now: i64) -> Option<model::QueuedJob> {
        store
            .claim_job(worker, &[USUAL_MACHINE.to_owned()], UnixTime::new(now))
            .unwrap()
    }

    pub(super) fn new(kernel: &str, priority: i64) -> NewJob {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: "stable".into(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into(), "fork".into()],
            seeds: 2,
            machine: USUAL_MACHINE.to_owned(),
        };
        NewJob {
            work,
            plan: "quick".into(),
            priority,
            rank: 7,
            attempts_max: 3,
            deadline_s: 100,
        }
    }

    pub(super) fn queued(store: &Store, kernel: &str, priority: i64) -> u64 {
        match store
            .queue_job(&new(kernel, priority), UnixTime::new(1_000))
            .unwrap()
        {
            Queued::New(number) => number,
            Queued::Known(job) => panic!("{job:?}"),
        }
    }

    fn jobs_are_queued_once_and_done_by_priority(make: New<'_>) {
        let (_home, store) = make();
        let low = queued(&store, "git:v6.1", 1);
        let high = queued(&store, "git:v6.12", 2);
        let Queued::Known(known) = store
            .queue_job(&new("git:v6.1", 5), UnixTime::new(2_000))
            .unwrap()
        else {
            panic!()
        };
        assert_eq!(
            (known.number, known.new.priority, known.queued_unix),
            (low, 1, UnixTime::new(1_000))
        );
        let job = claim(&store, "here", 1_000).unwrap();
        assert_eq!((job.number, job.attempts), (high, 1));
        assert_eq!(
            job.state,
            JobState::Running {
                worker: "here".into(),
                until_unix: UnixTime::new(1_000).plus_seconds(LEASE_S)
            }
        );
        // Another process reads the same.
        let reader = Store::open_read_only(store.location()).unwrap();
        assert_eq!(reader.queued_job(high).unwrap(), job);
        let fence = job.fence;
        let done = store
            .change_job(high, |job| {
                job.end(fence, Ending::Done("fine".into()), UnixTime::new(1_100))
            })
            .unwrap();
        assert_eq!(
            (done.state, done.reason.as_str(), done.ended_unix),
            (JobState::Done, "fine", Some(UnixTime::new(1_100)))
        );
        let order: Vec<u64> = store
            .queued_jobs(Listed::All)
            .unwrap()
            .iter()
            .map(|job| job.number)
            .collect();
        assert_eq!(order, [low, high]);
        assert_eq!(store.queued_jobs(Listed::Open).unwrap().len(), 1);
        assert_eq!(claim(&store, "here", 1_000).unwrap().number, low);
        assert_eq!(claim(&store, "here", 1_000), None);
        assert_eq!(
            store.claim_job("here", &[], UnixTime::new(1_000)).unwrap(),
            None,
            "all are quarantined"
        );
    }

    fn worker_takes_only_jobs_of_its_machines(make: New<'_>) {
        let (_home, store) = make();
        let mut of_testbox = new("git:v6.1", 9);
        of_testbox.work.machine = "testbox".into();
        let Queued::New(on_testbox) = store.queue_job(&of_testbox, UnixTime::new(1_000)).unwrap()
        else {
            panic!()
        };
        let exact = queued(&store, "git:v6.1", 1);
        assert_eq!(claim(&store, "here", 1_000).unwrap().number, exact);
        assert_eq!(claim(&store, "here", 1_000), None);
        let machines = ["other".to_owned(), "testbox".to_owned()];
        assert_eq!(
            store
                .claim_job("there", &machines, UnixTime::new(999))
                .unwrap(),
            None,
            "not before it may start"
        );
        assert_eq!(
            store
                .claim_job("there", &machines, UnixTime::new(1_000))
                .unwrap()
                .unwrap()
                .number,
            on_testbox
        );
        assert_eq!(store.queued_job(on_testbox).unwrap().new, of_testbox);
    }

    fn workers_never_claim_one_job_twice(make: New<'_>) {
        let (_home, store) = make();
        let numbers: Vec<u64> = (0..24)
            .map(|n| queued(&store, &format!("git:v6.{n}"), n % 3))
            .collect();
        let mut claimed: Vec<u64> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|n| (again(&store), format!("worker {n}")))
                .map(|(store, name)| {
                    scope.spawn(move || {
                        std::iter::from_fn(|| claim(&store, &name, 1_000))
                            .map(|job| job.number)
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap())
                .collect()
        });
        claimed.sort_unstable();
        assert_eq!(claimed, numbers);
    }

    fn job_of_killed_worker_is_requeued(make: New<'_>) {
        let (_home, store) = make();
        let [one, other] = ["git:v6.1", "git:v6.12"].map(|kernel| queued(&store, kernel, 0));
        assert_eq!(claim(&store, "here", 1_000).unwrap().number, one);
        assert_eq!(claim(&store, "there", 1_000).unwrap().number, other);
        assert!(
            store
                .take_back_jobs(None, UnixTime::new(1_001))
                .unwrap()
                .is_empty()
        );
        let taken = store
            .take_back_jobs(Some("here"), UnixTime::new(1_001))
            .unwrap();
        assert_eq!(
            taken.iter().map(|job| job.number).collect::<Vec<_>>(),
            [one]
        );
        assert_eq!(store.queued_job(one).unwrap(), taken[0]);
        let taken = store.take_back_jobs(None, UnixTime::new(9_000)).unwrap();
        assert_eq!(
            taken.iter().map(|job| job.number).collect::<Vec<_>>(),
            [other]
        );
    }

    fn forbidden_transition_changes_nothing(make: New<'_>) {
        let (_home, store) = make();
        let number = queued(&store, "git:v6.1", 0);
        store
            .change_job(number, |job| job.cancel(UnixTime::new(2_000)))
            .unwrap();
        let before = store.queued_job(number).unwrap();
        let error = store
            .change_job(number, |job| job.cancel(UnixTime::new(3_000)))
            .unwrap_err();
        assert!(matches!(error, QueueError::Refused(_)), "{error}");
        assert_eq!(store.queued_job(number).unwrap(), before);
        let error = store.queued_job(99).unwrap_err();
        insta::assert_snapshot!(error, @"there is no job 99 in the queue: `marvin queue list --all` lists them");
    }

    #[test]
    fn a_state_from_the_future_is_an_error() {
        let (_home, store) = store();
        let number = queued(&store, "git:v6.1", 0);
        store
            .with(|database| database.execute("UPDATE queue SET state = 'pondering'", &[]))
            .unwrap();
        let QueueError::Store(error) = store.queued_job(number).unwrap_err() else {
            panic!()
        };
        assert_eq!(error.fault(), Fault::User);
        assert!(
            error.to_string().contains("written by a newer Marvin"),
            "{error}"
        );
    }
}
