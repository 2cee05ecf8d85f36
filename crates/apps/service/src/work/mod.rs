//! A worker: takes jobs from the queue one by one, executes them, and records how each ended.
//!
//! Each job runs in a process of its own: the worker kills it when it hangs, survives its crash,
//! and takes it along when killed. The time is an argument.

mod health;
mod process;
mod result;
#[cfg(test)]
mod stop_tests;

pub(crate) use health::{Checks, fit_machines, try_machine};
pub use process::JobProcess;
pub(crate) use process::short;
pub use result::JobResult;

use std::cell::Cell;
use std::time::{Duration, Instant};

use model::{Ending, JobState, LEASE_S, MarvinConfig, QueuedJob, UnixTime};
use store::{Listed, Notice, QueueError, Store};

use crate::ServiceError;
use crate::notify::raise_notice;

/// Interval at which an idle worker checks the queue.
const IDLE: Duration = Duration::from_secs(5);
/// Interval at which an idle worker says that it is idle.
const IDLE_AGAIN: Duration = Duration::from_mins(10);
/// Interval at which an idle worker looks whether it is to stop.
const GLANCE: Duration = Duration::from_millis(100);
/// How much longer a job may run whose worker is to stop: a short one ends in it.
const FINISH: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(LEASE_S);

/// The result of one attempt at a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub ending: Ending,
    /// Why the kernel cannot be measured at all: it does not build, or does not boot. `None` if it
    /// can.
    pub no_kernel: Option<String>,
    /// Whether the machine failed, and not the network, the store or this host.
    pub machine_failed: bool,
}

impl Attempt {
    /// Returns an attempt whose kernel and machine did not fail.
    #[must_use]
    pub fn ended(ending: Ending) -> Self {
        Self {
            ending,
            no_kernel: None,
            machine_failed: false,
        }
    }
}

pub trait Executor {
    /// Executes a job to its end, or until `goes_on` returns false because the job is no longer
    /// wanted.
    ///
    /// # Errors
    /// If `goes_on` fails.
    fn attempt(
        &self,
        job: &QueuedJob,
        goes_on: &dyn Fn() -> Result<bool, ServiceError>,
    ) -> Result<Attempt, ServiceError>;
}

/// When a worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When no job is free.
    Drained,
    Killed,
}

/// An event of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkEvent {
    /// A job was requeued: its worker died.
    Requeued(QueuedJob),
    Begun(QueuedJob),
    /// An attempt ended; the job in its new state.
    Ended(QueuedJob),
    /// No job is free; this many wait for a later time. Again each ten minutes that this lasts.
    Idle(usize),
}

/// Numbers of jobs by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worked {
    pub done: usize,
    /// Jobs among them whose kernel failed.
    pub kernels_failed: usize,
    /// Jobs that failed permanently.
    pub failed: usize,
}

/// The share of its time after which a job is reported as late.
const LATE: f64 = 0.8;

/// The job that a worker executes now.
struct CurrentJob {
    begun: Instant,
    renewed: Cell<Instant>,
    is_late: Cell<bool>,
    /// Since when the worker is to stop.
    stopping: Cell<Option<Instant>>,
}

pub struct Worker<'a> {
    /// Its name: the machine's.
    pub name: &'a str,
    /// The machines whose jobs it takes.
    pub machines: &'a [String],
    pub store: &'a Store,
    /// The channels for notices.
    pub settings: &'a MarvinConfig,
    pub executor: &'a dyn Executor,
    /// Returns the current time.
    pub clock: &'a dyn Fn() -> UnixTime,
    pub notify: &'a dyn Fn(WorkEvent),
    /// Returns whether it is to stop: it gives its job back, or ends it if that is soon.
    pub is_stopping: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Worker<'_> {
    /// Works. The caller must hold the [`store::WorkerLock`]: jobs held under this worker's name
    /// then belong to a dead worker.
    ///
    /// # Errors
    /// If the store fails; jobs keep their last recorded state, and the next worker continues from
    /// there.
    pub fn work(&self, until: Until) -> Result<Worked, ServiceError> {
        let mut worked = Worked::default();
        self.requeue_jobs(Some(self.name))?;
        let mut idle_noted = None::<Instant>;
        let mut checks = Checks::default();
        loop {
            if (self.is_stopping)() {
                return Ok(worked);
            }
            self.requeue_jobs(None)?;
            let now = (self.clock)();
            match self.store.claim_job(
                self.name,
                &fit_machines(self.store, self.machines, now)?,
                now,
            )? {
                Some(job) => {
                    idle_noted = None;
                    try_machine(self.store, &job, now)?;
                    self.execute(&job, &mut worked)?;
                }
                None if checks.queue(self.store, &self.settings.servers, self.machines, now)? => {}
                None if until == Until::Drained => {
                    (self.notify)(WorkEvent::Idle(self.store.queued_jobs(Listed::Open)?.len()));
                    return Ok(worked);
                }
                None => {
                    if idle_noted.is_none_or(|noted| noted.elapsed() >= IDLE_AGAIN) {
                        idle_noted = Some(Instant::now());
                        (self.notify)(WorkEvent::Idle(self.store.queued_jobs(Listed::Open)?.len()));
                    }
                    self.rest();
                }
            }
        }
    }

    /// Executes one job, as the worker that a batch system has started for it. Waits for the end of
    /// its lease if another worker has it: that one may be dead. Returns the job as it is then,
    /// and whether this worker had it.
    ///
    /// # Errors
    /// As [`Self::work`].
    pub fn work_one(&self, number: u64) -> Result<(QueuedJob, bool), ServiceError> {
        let begun = Instant::now();
        loop {
            self.requeue_jobs(None)?;
            let now = (self.clock)();
            match self
                .store
                .change_job(number, |job| job.claim(self.name, now))
            {
                Ok(job) => {
                    self.execute(&job, &mut Worked::default())?;
                    return Ok((self.store.queued_job(number)?, true));
                }
                Err(QueueError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
            let job = self.store.queued_job(number)?;
            if !matches!(job.state, JobState::Running { .. }) || begun.elapsed() > LEASE * 2 {
                return Ok((job, false));
            }
            std::thread::sleep(IDLE);
        }
    }

    /// Waits until the next look at the queue, or until the worker is to stop.
    fn rest(&self) {
        for _ in 0..IDLE.as_millis() / GLANCE.as_millis() {
            if (self.is_stopping)() {
                return;
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn requeue_jobs(&self, ended_worker: Option<&str>) -> Result<(), ServiceError> {
        let taken_back = self.store.take_back_jobs(ended_worker, (self.clock)())?;
        taken_back
            .into_iter()
            .for_each(|job| (self.notify)(WorkEvent::Requeued(job)));
        Ok(())
    }

    fn execute(&self, job: &QueuedJob, worked: &mut Worked) -> Result<(), ServiceError> {
        (self.notify)(WorkEvent::Begun(job.clone()));
        let current = CurrentJob {
            begun: Instant::now(),
            renewed: Cell::new(Instant::now()),
            is_late: Cell::default(),
            stopping: Cell::default(),
        };
        let attempt = self
            .executor
            .attempt(job, &|| self.renew_lease(job, &current))?;
        // A job that was cancelled or lost says nothing: it was ended half-way.
        let ending = if self.is_cut_off(&attempt) {
            Ending::GivenBack
        } else if self.is_ours(job)? {
            self.judge_machine(job, &attempt)?
        } else {
            attempt.ending
        };
        let no_kernel = attempt.no_kernel;
        if ending == Ending::Overran {
            self.notify_overrun(job)?;
        }
        if let Some(why) = &no_kernel {
            self.notify_no_kernel(job, why)?;
        }
        let kernel_failed = matches!(&ending, Ending::Done(reason) if !reason.is_empty());
        let now = (self.clock)();
        let job = match self
            .store
            .change_job(job.number, |job_now| job_now.end(job.fence, ending, now))
        {
            Ok(job) => job,
            // Cancelled meanwhile: keep it cancelled.
            Err(QueueError::Refused(_) | QueueError::NoJob(_) | QueueError::Removed(_)) => {
                self.store.queued_job(job.number)?
            }
            Err(QueueError::Store(error)) => return Err(error.into()),
        };
        match job.state {
            JobState::Done => {
                worked.done += 1;
                worked.kernels_failed += usize::from(kernel_failed);
            }
            JobState::Failed => {
                worked.failed += 1;
                self.notify_failed(&job)?;
            }
            _ => {}
        }
        (self.notify)(WorkEvent::Ended(job));
        Ok(())
    }

    /// Returns whether an attempt ended because the worker is to stop: service managers also send
    /// the signal to the job's process.
    fn is_cut_off(&self, attempt: &Attempt) -> bool {
        (self.is_stopping)()
            && attempt.no_kernel.is_none()
            && matches!(attempt.ending, Ending::Lab(_) | Ending::Busy(_))
    }

    /// Renews the lease of a job when half of it is over; returns whether the job is still this
    /// worker's. While the store does not answer, it is until the lease ends.
    fn renew_lease(&self, job: &QueuedJob, current: &CurrentJob) -> Result<bool, ServiceError> {
        if (self.is_stopping)() {
            let since = current.stopping.get().unwrap_or_else(Instant::now);
            current.stopping.set(Some(since));
            if since.elapsed() >= FINISH {
                return Ok(false);
            }
        }
        let age = current.renewed.get().elapsed();
        let limit = Duration::from_secs(job.new.deadline_s);
        if current.begun.elapsed() >= limit.mul_f64(LATE) && !current.is_late.replace(true) {
            // The message may wait until the store answers; the job does not.
            drop(self.notify_late(job));
        }
        // Half of the lease is enough for two or three failed tries before it ends.
        let answer = if age < LEASE / 2 {
            self.store
                .queued_job(job.number)
                .map(|now| now.fence == job.fence)
        } else {
            let now = (self.clock)();
            self.store
                .change_job(job.number, |job_now| job_now.renew(job.fence, now))
                .map(|_| {
                    current.renewed.set(Instant::now());
                    true
                })
        };
        Ok(match answer {
            Ok(is_ours) => is_ours,
            Err(QueueError::Refused(_) | QueueError::NoJob(_) | QueueError::Removed(_)) => false,
            Err(QueueError::Store(_)) => age < LEASE,
        })
    }

    fn is_ours(&self, job: &QueuedJob) -> Result<bool, ServiceError> {
        Ok(self.store.queued_job(job.number)?.fence == job.fence)
    }

    fn notify_late(&self, job: &QueuedJob) -> Result<(), ServiceError> {
        let number = job.number;
        let deadline_s = job.new.deadline_s;
        let share = LATE * 100.0;
        let body = format!(
            "{}\nMarvin kills it when it has run for {deadline_s} s.\n",
            job.new.work
        );
        let headline = format!("job {number} has used {share:.0} % of its time");
        self.notify_all(format!("late:{number}:{}", job.fence), headline, body)
    }

    fn notify_overrun(&self, job: &QueuedJob) -> Result<(), ServiceError> {
        let number = job.number;
        let deadline_s = job.new.deadline_s;
        let body = format!("{}\nMarvin killed it after {deadline_s} s.\n", job.new.work);
        self.notify_all(
            format!("overrun:{number}"),
            format!("job {number} took too long"),
            body,
        )
    }

    fn notify_no_kernel(&self, job: &QueuedJob, why: &str) -> Result<(), ServiceError> {
        let work = &job.new.work;
        let kernel = if work.tree.is_empty() {
            work.kernel.to_string()
        } else {
            format!("{} of {}", work.kernel, work.tree)
        };
        let body = format!("{why}\n\njob {}: {work}\n", job.number);
        self.notify_all(
            format!("boot:{}:{}", work.tree, work.kernel),
            format!("{kernel} does not build or boot"),
            body,
        )
    }

    fn notify_failed(&self, job: &QueuedJob) -> Result<(), ServiceError> {
        raise_notice(
            self.store,
            &self.settings.channels,
            &notice_of_failed(job, (self.clock)()),
        )
    }

    fn notify_all(
        &self,
        subject: String,
        headline: String,
        body: String,
    ) -> Result<(), ServiceError> {
        let notice = Notice {
            subject,
            headline,
            body,
            raised_unix: (self.clock)(),
        };
        raise_notice(self.store, &self.settings.channels, &notice)
    }
}

/// Returns the notice of a job that failed permanently.
pub(crate) fn notice_of_failed(job: &QueuedJob, now_unix: UnixTime) -> Notice {
    Notice {
        subject: format!("failed:{}:{}", job.number, job.queued_unix.seconds()),
        headline: format!("job {} failed", job.number),
        body: format!("{}\n{}\n", job.new.work, job.reason),
        raised_unix: now_unix,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::{Cell, RefCell};

    use model::{Ending, JobState, NewJob, UnixTime, Work};
    use store::{Queued, Store};

    use super::{Attempt, Executor, Until, Worked, Worker};
    use crate::ServiceError;

    /// Ends each attempt as scripted, and records the jobs.
    struct Script {
        endings: RefCell<Vec<Attempt>>,
        seen: RefCell<Vec<u64>>,
    }

    impl Executor for Script {
        fn attempt(
            &self,
            job: &model::QueuedJob,
            goes_on: &dyn Fn() -> Result<bool, ServiceError>,
        ) -> Result<Attempt, ServiceError> {
            self.seen.borrow_mut().push(job.number);
            assert!(goes_on()?);
            Ok(self.endings.borrow_mut().remove(0))
        }
    }

    pub(super) fn settings(text: &str) -> model::MarvinConfig {
        config::settings(text, &model::ToolRows::default()).unwrap()
    }

    fn done() -> Attempt {
        Attempt::ended(Ending::Done(String::new()))
    }

    /// An attempt that fails by its machine.
    pub(super) fn no_power() -> Attempt {
        Attempt {
            machine_failed: true,
            ..Attempt::ended(Ending::Lab("no power".into()))
        }
    }

    fn queued(store: &Store, kernel: &str) -> u64 {
        queued_on(store, kernel, model::USUAL_MACHINE)
    }

    pub(super) fn queued_on(store: &Store, kernel: &str, machine: &str) -> u64 {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: String::new(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into()],
            seeds: 1,
            machine: machine.to_owned(),
        };
        let new = NewJob {
            work,
            plan: String::new(),
            priority: 0,
            rank: 0,
            attempts_max: 2,
            deadline_s: 100,
        };
        let Queued::New(number) = store.queue_job(&new, UnixTime::new(0)).unwrap() else {
            panic!()
        };
        number
    }

    fn worked(store: &Store, now: &Cell<i64>, endings: Vec<Attempt>) -> (Worked, Vec<u64>) {
        let settings = settings("[[notify]]\nname = \"us\"\ncommand = [\"true\"]\n");
        let script = Script {
            endings: RefCell::new(endings),
            seen: RefCell::default(),
        };
        let worker = Worker {
            name: "here",
            machines: &[model::USUAL_MACHINE.to_owned(), "testbox".to_owned()],
            store,
            settings: &settings,
            executor: &script,
            clock: &|| UnixTime::new(now.get()),
            notify: &|_| {},
            is_stopping: &|| false,
        };
        let worked = worker.work(Until::Drained).unwrap();
        (worked, script.seen.into_inner())
    }

    fn headlines(store: &Store) -> Vec<String> {
        store
            .list_undelivered()
            .unwrap()
            .into_iter()
            .map(|delivery| delivery.notice.headline)
            .collect()
    }

    #[test]
    fn jobs_are_retried_and_failures_reported_once() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let [one, two, three] =
            ["git:v6.1", "git:v6.2", "deb:6.1"].map(|kernel| queued(&store, kernel));
        let now = Cell::new(1_000);
        let no_boot = Attempt {
            no_kernel: Some("panic".into()),
            ..Attempt::ended(Ending::Done("does not boot: panic".into()))
        };
        let (worked_once, seen) = worked(
            &store,
            &now,
            vec![done(), no_boot.clone(), Attempt::ended(Ending::Overran)],
        );
        assert_eq!(seen, [one, two, three]);
        assert_eq!(
            worked_once,
            Worked {
                done: 2,
                kernels_failed: 1,
                failed: 0
            }
        );
        assert_eq!(
            headlines(&store),
            ["git:v6.2 does not build or boot", "job 3 took too long"]
        );
        assert!(
            worked(&store, &now, vec![]).1.is_empty(),
            "not before its time"
        );
        now.set(2_000);
        let (again, seen) = worked(&store, &now, vec![Attempt::ended(Ending::Overran)]);
        assert_eq!((again.failed, seen), (1, vec![three]));
        assert_eq!(headlines(&store)[2..], ["job 3 failed"]);
        let job = store.queued_job(three).unwrap();
        assert_eq!(
            (job.state, job.reason.as_str()),
            (JobState::Failed, "did not end within 100 s (tried 2 times)")
        );
    }

    #[test]
    fn broken_machine_is_quarantined_and_loses_no_job() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let all =
            ["git:v6.1", "git:v6.2", "git:v6.3"].map(|kernel| queued_on(&store, kernel, "testbox"));
        let now = Cell::new(1_000);
        assert_eq!(
            worked(&store, &now, vec![no_power(), no_power(), no_power()]).1,
            all
        );
        assert_eq!(headlines(&store), ["testbox is quarantined"]);
        let third = store.queued_job(all[2]).unwrap();
        assert_eq!(
            (third.attempts, third.reason.as_str()),
            (0, "testbox is quarantined: no power")
        );
        // It tries one job, others go on elsewhere.
        let exact = queued(&store, "git:v6.4");
        now.set(1_500);
        assert_eq!(worked(&store, &now, vec![done()]).1, [exact]);
        now.set(1_700);
        assert_eq!(worked(&store, &now, vec![no_power()]).1, [all[0]]);
        now.set(2_400);
        let (worked, seen) = worked(&store, &now, vec![done(), done(), done()]);
        assert_eq!((worked.done, seen), (3, all.to_vec()));
        assert_eq!(headlines(&store)[1..], ["testbox works again"]);
        assert!(store.standing("machine:testbox").unwrap().is_none());
    }

    /// Lets a worker of `testbox` work until its queue is empty, and returns the jobs that it had.
    fn checked(
        store: &Store,
        settings: &model::MarvinConfig,
        now_unix: UnixTime,
        endings: Vec<Attempt>,
    ) -> Vec<u64> {
        let script = Script {
            endings: RefCell::new(endings),
            seen: RefCell::default(),
        };
        let worker = Worker {
            name: "here",
            machines: &["testbox".to_owned()],
            store,
            settings,
            executor: &script,
            clock: &|| now_unix,
            notify: &|_| {},
            is_stopping: &|| false,
        };
        worker.work(Until::Drained).unwrap();
        script.seen.into_inner()
    }

    #[test]
    fn server_is_checked_when_it_had_no_job() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let first = queued_on(&store, "git:v6.1", "testbox");
        let settings =
            settings("[[machine]]\nname = \"testbox\"\nhost = \"testbox\"\ncheck_every = \"1h\"\n");
        assert_eq!(
            checked(&store, &settings, UnixTime::new(0), vec![done()]),
            [first]
        );
        assert_eq!(
            checked(&store, &settings, UnixTime::new(3_599), vec![]),
            [0; 0]
        );
        let check = checked(&store, &settings, UnixTime::new(3_600), vec![done()])[0];
        let job = store.queued_job(check).unwrap();
        assert_eq!(
            (job.new.plan.as_str(), job.new.work.seeds),
            (model::CHECK_PLAN, 2)
        );
        // The same work again.
        assert_eq!(
            checked(&store, &settings, UnixTime::new(7_199), vec![]),
            [0; 0]
        );
        let mine = model::Reservation {
            machines: vec!["testbox".into()],
            ..model::Reservation::default()
        };
        store.reserve(&mine, 100, UnixTime::new(7_200)).unwrap();
        assert_eq!(
            checked(&store, &settings, UnixTime::new(7_200), vec![]),
            [0; 0],
            "it is reserved"
        );
        assert_eq!(
            checked(&store, &settings, UnixTime::new(7_300), vec![no_power()]),
            [check]
        );
        assert_eq!(
            store.health().unwrap()[0].failures,
            1,
            "it counts as any job's failure"
        );
    }

    #[test]
    fn failures_of_the_host_quarantine_no_machine() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let jobs =
            ["git:v6.1", "git:v6.2", "git:v6.3"].map(|kernel| queued_on(&store, kernel, "testbox"));
        let no_network = Attempt::ended(Ending::Lab("no network".into()));
        let all = worked(&store, &Cell::new(1_000), vec![no_network; 3]).1;
        assert_eq!((all, store.health().unwrap()), (jobs.to_vec(), vec![]));
    }

    #[test]
    fn worker_continues_its_killed_predecessors_job() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let one = queued(&store, "git:v6.1");
        // Killed during the job: no end was recorded.
        store
            .claim_job(
                "here",
                &[model::USUAL_MACHINE.to_owned()],
                UnixTime::new(10),
            )
            .unwrap()
            .unwrap();
        let now = Cell::new(20);
        assert_eq!(worked(&store, &now, vec![done()]).1, [one]);
        let job = store.queued_job(one).unwrap();
        assert_eq!((job.state, job.attempts), (JobState::Done, 1));
    }

    #[test]
    fn killed_workers_do_not_fail_a_job() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let one = queued(&store, "git:v6.1");
        // More often than the job may be attempted.
        let other = queued(&store, "git:v6.2");
        for day in 0..5 {
            store
                .claim_job(
                    "here",
                    &[model::USUAL_MACHINE.to_owned()],
                    UnixTime::new(day * 86_400),
                )
                .unwrap()
                .unwrap();
            store
                .take_back_jobs(Some("here"), UnixTime::new(day * 86_400))
                .unwrap();
        }
        let job = store.queued_job(one).unwrap();
        assert_eq!(
            (job.state, job.attempts, job.kills),
            (
                JobState::Waiting {
                    from_unix: UnixTime::new(4 * 86_400 + 960)
                },
                0,
                5
            )
        );
        assert_eq!(job.reason, "its workers were killed, 5 in a row");
        // It lets the other pass, which it would otherwise block.
        assert_eq!(
            store
                .claim_job(
                    "here",
                    &[model::USUAL_MACHINE.to_owned()],
                    UnixTime::new(4 * 86_400)
                )
                .unwrap()
                .map(|job| job.number),
            Some(other)
        );
    }

    #[test]
    fn cancelled_running_job_stays_cancelled() {
        struct Cancels<'a>(&'a Store);
        impl Executor for Cancels<'_> {
            fn attempt(
                &self,
                job: &model::QueuedJob,
                goes_on: &dyn Fn() -> Result<bool, ServiceError>,
            ) -> Result<Attempt, ServiceError> {
                self.0
                    .change_job(job.number, |job| job.cancel(UnixTime::new(5)))?;
                assert!(!goes_on()?);
                // As a process that is killed half-way ends: at the machine, by what it saw.
                Ok(Attempt {
                    machine_failed: true,
                    ..Attempt::ended(Ending::Lab("cut".into()))
                })
            }
        }
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let all =
            ["git:v6.1", "git:v6.2", "git:v6.3"].map(|kernel| queued_on(&store, kernel, "testbox"));
        let settings = settings("");
        let executor = Cancels(&store);
        let worker = Worker {
            name: "here",
            machines: &["testbox".to_owned()],
            store: &store,
            settings: &settings,
            executor: &executor,
            clock: &|| UnixTime::new(5),
            notify: &|_| {},
            is_stopping: &|| false,
        };
        assert_eq!(worker.work(Until::Drained).unwrap(), Worked::default());
        assert!(
            all.iter()
                .all(|job| store.queued_job(*job).unwrap().state == JobState::Cancelled)
        );
        assert_eq!(
            store.health().unwrap(),
            [],
            "jobs that were cancelled say nothing about their machine"
        );
    }
}
