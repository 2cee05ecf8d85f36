//! The dispatcher with a make-believe batch system: what is sent, counted, cancelled and reported.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use model::{Ending, JobState, MarvinConfig, NewJob, UnixTime, Work};
use store::{Queued, Store};

use super::super::{BatchError, BatchJob, BatchState, BatchSystem, Submission};
use super::{DispatchEvent, Dispatcher, Followed, LOOK, SILENT_S};

/// A batch system in memory: a test moves its jobs.
#[derive(Debug, Default)]
struct Believed {
    jobs: Mutex<Vec<BatchJob>>,
    refuses: AtomicBool,
}

impl Believed {
    fn set(&self, place: usize, state: BatchState, about: &str) {
        let mut jobs = self.jobs.lock().unwrap();
        let job = &mut jobs[place];
        (job.state, job.about) = (state, about.to_owned());
    }

    fn states(&self) -> Vec<(String, BatchState)> {
        self.jobs
            .lock()
            .unwrap()
            .iter()
            .map(|job| (job.name.clone(), job.state))
            .collect()
    }
}

impl BatchSystem for Believed {
    fn name(&self) -> &'static str {
        "Slurm"
    }

    fn list(&self) -> Result<Vec<BatchJob>, BatchError> {
        Ok(self.jobs.lock().unwrap().clone())
    }

    fn submit(&self, job: &Submission<'_>) -> Result<String, BatchError> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(BatchError::Refused {
                system: "Slurm",
                reason: "Invalid feature specification".into(),
            });
        }
        assert_eq!(
            job.command.last().unwrap().to_str(),
            job.name.split('-').nth(1),
            "{job:?}"
        );
        let id = (self.jobs.lock().unwrap().len() + 1).to_string();
        let name = job.name.to_owned();
        let about = "Resources".to_owned();
        self.jobs.lock().unwrap().push(BatchJob {
            id: id.clone(),
            name,
            state: BatchState::Waits,
            about,
        });
        Ok(id)
    }

    fn cancel(&self, id: &str) -> Result<(), BatchError> {
        self.jobs
            .lock()
            .unwrap()
            .iter_mut()
            .filter(|job| job.id == id)
            .for_each(|job| job.state = BatchState::Ended);
        Ok(())
    }
}

/// A site whose time stands still unless a test moves it.
struct Site {
    _home: tempfile::TempDir,
    store: Store,
    system: Believed,
    settings: MarvinConfig,
    now: Cell<UnixTime>,
    events: RefCell<Vec<DispatchEvent>>,
}

impl Site {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let text = "[[notify]]\nname = \"us\"\ncommand = [\"true\"]\n";
        let settings = config::settings(text, &model::ToolRows::default()).unwrap();
        let now = Cell::new(UnixTime::new(1_000));
        let events = RefCell::default();
        Self {
            _home: home,
            store,
            system: Believed::default(),
            settings,
            now,
            events,
        }
    }

    fn queue(&self, kernel: &str) -> u64 {
        let work = Work {
            kernel: kernel.parse().unwrap(),
            tree: String::new(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into()],
            seeds: 1,
            machine: model::USUAL_MACHINE.to_owned(),
        };
        let new = NewJob {
            work,
            plan: String::new(),
            priority: 0,
            rank: 0,
            attempts_max: 2,
            deadline_s: 100,
        };
        let Queued::New(number) = self.store.queue_job(&new, self.now.get()).unwrap() else {
            panic!()
        };
        number
    }

    /// One look of a dispatcher that knows what another one left, or nothing.
    fn look(&self, followed: &mut Followed) -> bool {
        let batch = self.system.list().unwrap();
        self.with_dispatcher(|dispatcher| dispatcher.look(&batch, followed).unwrap())
    }

    fn with_dispatcher<T>(&self, use_it: impl FnOnce(&Dispatcher<'_>) -> T) -> T {
        let machines = [model::USUAL_MACHINE.to_owned()];
        let command = ["marvin".into(), "work".into(), "--take".into()];
        use_it(&Dispatcher {
            store: &self.store,
            system: &self.system,
            machines: &machines,
            command: &command,
            jobs_max: 2,
            settings: &self.settings,
            clock: &|| self.now.get(),
            notify: &|event| self.events.borrow_mut().push(event),
        })
    }

    fn headlines(&self) -> Vec<String> {
        self.store
            .list_undelivered()
            .unwrap()
            .into_iter()
            .map(|delivery| delivery.notice.headline)
            .collect()
    }

    /// What a worker does that the batch system started.
    fn claim(&self, number: u64) -> u64 {
        self.store
            .change_job(number, |job| job.claim("bm1", self.now.get()))
            .unwrap()
            .fence
    }

    fn end(&self, number: u64, fence: u64, ending: Ending) {
        self.store
            .change_job(number, |job| job.end(fence, ending, self.now.get()))
            .unwrap();
    }
}

#[test]
fn each_job_is_sent_once_by_any_dispatcher() {
    let site = Site::new();
    let [one, two, three] = ["deb:6.1", "deb:6.6", "deb:6.12"].map(|kernel| site.queue(kernel));
    let mut followed = Followed::default();
    assert!(site.look(&mut followed));
    // Another one, that knows nothing, sees what was sent.
    assert!(site.look(&mut Followed::default()));
    let expected = [one, two].map(|number| (format!("marvin-{number}-1000-0"), BatchState::Waits));
    assert_eq!(site.system.states(), expected);
    site.system.set(0, BatchState::Runs, "on bm1");
    let fence = site.claim(one);
    assert!(site.look(&mut followed));
    site.end(one, fence, Ending::Done(String::new()));
    site.system.set(0, BatchState::Ended, "COMPLETED");
    assert!(site.look(&mut followed));
    assert_eq!(
        site.system.states()[2],
        (format!("marvin-{three}-1000-0"), BatchState::Waits)
    );
    assert_eq!(followed.worked.done, 1);
    let last = site.events.borrow().last().cloned();
    assert!(
        matches!(last, Some(DispatchEvent::Work(crate::WorkEvent::Ended(job))) if job.number == one)
    );
}

#[test]
fn ended_job_is_noticed_before_next_look() {
    let site = Site::new();
    let number = site.queue("deb:6.1");
    let mut followed = Followed::default();
    site.look(&mut followed);
    let fence = site.claim(number);
    site.end(number, fence, Ending::Done(String::new()));
    let begun = Instant::now();
    site.with_dispatcher(|dispatcher| dispatcher.rest(&followed).unwrap());
    assert!(begun.elapsed() < LOOK, "{:?}", begun.elapsed());
}

#[test]
fn job_that_runs_unlisted_keeps_dispatcher_busy() {
    let site = Site::new();
    let number = site.queue("deb:6.1");
    let mut followed = Followed::default();
    site.look(&mut followed);
    let fence = site.claim(number);
    site.system.set(0, BatchState::Ended, "COMPLETED");
    assert!(site.look(&mut followed), "`work --once` would end here");
    site.end(number, fence, Ending::Done(String::new()));
    assert!(!site.look(&mut followed));
    assert_eq!(followed.worked.done, 1);
}

#[test]
fn cancelled_job_leaves_the_batch_system() {
    let site = Site::new();
    let number = site.queue("deb:6.1");
    let mut followed = Followed::default();
    site.look(&mut followed);
    site.store
        .change_job(number, |job| job.cancel(UnixTime::new(1_000)))
        .unwrap();
    site.look(&mut followed);
    assert_eq!(site.system.states()[0].1, BatchState::Ended);
    assert!(!site.look(&mut followed));
    assert_eq!(followed.worked, crate::Worked::default());
}

#[test]
fn batch_jobs_that_fail_count_as_attempts() {
    let site = Site::new();
    let number = site.queue("deb:6.1");
    let mut followed = Followed::default();
    site.look(&mut followed);
    site.system
        .set(0, BatchState::Ended, "FAILED, NonZeroExitCode");
    for _ in 0..2 {
        assert!(!site.look(&mut followed));
    }
    let job = site.store.queued_job(number).unwrap();
    let why = "batch job 1 ended without it: FAILED, NonZeroExitCode";
    assert_eq!((job.attempts, job.reason.as_str()), (1, why));
    site.now.set(UnixTime::new(2_000));
    site.system.refuses.store(true, Ordering::Relaxed);
    site.look(&mut followed);
    let job = site.store.queued_job(number).unwrap();
    assert_eq!(job.state, JobState::Failed);
    assert_eq!(
        job.reason,
        "Slurm refuses the job: Invalid feature specification (tried 2 times)"
    );
    assert_eq!(site.headlines(), ["job 1 failed"]);
    site.look(&mut followed);
    assert_eq!(followed.worked.failed, 1);
}

#[test]
fn held_jobs_and_silence_are_reported_once() {
    let site = Site::new();
    site.queue("deb:6.1");
    let mut followed = Followed::default();
    site.look(&mut followed);
    site.system
        .set(0, BatchState::Held, "launch failed requeued held");
    for _ in 0..2 {
        assert!(site.look(&mut followed));
    }
    assert_eq!(site.headlines(), ["job 1 is held by Slurm"]);
    let machines = [];
    let command = [];
    let dispatcher = Dispatcher {
        store: &site.store,
        system: &site.system,
        machines: &machines,
        command: &command,
        jobs_max: 1,
        settings: &site.settings,
        clock: &|| site.now.get(),
        notify: &|_| {},
    };
    let down = BatchError::Silent {
        system: "Slurm",
        reason: "Unable to contact slurm controller".into(),
    };
    for after in [0, 5, SILENT_S, SILENT_S + 5] {
        site.now.set(UnixTime::new(1_000).plus_seconds(after));
        dispatcher.silent(&down, &mut followed).unwrap();
    }
    assert_eq!(site.headlines()[1..], ["Slurm does not answer"]);
}
