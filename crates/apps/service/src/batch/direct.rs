//! Jobs that a command sends for itself, beside the queue. A job's name follows from its work, so
//! that an interrupted command finds its jobs again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use super::{BatchError, BatchJob, BatchState, BatchSystem, Submission};

/// Interval between two looks at the batch system.
const LOOK: Duration = Duration::from_secs(2);
/// How long a batch system may be silent.
const SILENT: Duration = Duration::from_secs(600);
/// How long all jobs may take.
const DEADLINE: Duration = Duration::from_secs(86_400);

/// What a job does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectJob {
    /// In one line, for the people who read the system's lists.
    pub about: String,
    /// The words after those that all jobs have.
    pub arguments: Vec<OsString>,
}

/// A job in the batch system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentJob {
    name: String,
    pub id: String,
}

/// How jobs of a command are sent.
#[derive(Debug)]
pub struct DirectJobs<'a> {
    pub system: &'a dyn BatchSystem,
    /// The beginning of their names: `marvin-…-`, not a number, which jobs of the queue have
    /// there.
    pub prefix: String,
    /// The machine that they measure on.
    pub machine: &'a str,
    /// How long one may take (min).
    pub minutes: u64,
    /// The first words of their commands.
    pub command: &'a [OsString],
}

impl DirectJobs<'_> {
    fn name(&self, job: &DirectJob) -> String {
        let mut hasher = DefaultHasher::new();
        job.arguments.hash(&mut hasher);
        format!("{}{:016x}", self.prefix, hasher.finish())
    }

    fn submit(&self, job: &DirectJob) -> Result<SentJob, BatchError> {
        let name = self.name(job);
        let own = self.command.iter();
        let command: Vec<OsString> = own.chain(&job.arguments).cloned().collect();
        let machine = self.machine;
        let minutes = self.minutes;
        let id = self.system.submit(&Submission {
            name: &name,
            about: &job.about,
            machine,
            minutes,
            command: &command,
        })?;
        Ok(SentJob { name, id })
    }

    /// Sends jobs; those that an interrupted command sent are found instead.
    ///
    /// # Errors
    /// If the batch system does not answer, or refuses one.
    pub fn send(&self, jobs: &[DirectJob]) -> Result<Vec<SentJob>, BatchError> {
        let listed = self.system.list()?;
        jobs.iter()
            .map(|job| match self.find_live(job, &listed) {
                Some(known) => Ok(known),
                None => self.submit(job),
            })
            .collect()
    }

    /// Returns a job that an interrupted command sent, unless it has ended.
    fn find_live(&self, job: &DirectJob, listed: &[BatchJob]) -> Option<SentJob> {
        let name = self.name(job);
        let known = listed
            .iter()
            .find(|one| one.name == name && one.state != BatchState::Ended)?;
        Some(SentJob {
            id: known.id.clone(),
            name,
        })
    }

    /// Waits until all jobs have ended, or for a day; reports how many ended and run.
    ///
    /// # Errors
    /// If the batch system is silent for ten minutes.
    pub fn wait(&self, sent: &[SentJob], report: &dyn Fn(usize, usize)) -> Result<(), BatchError> {
        let begun = Instant::now();
        let mut heard = Instant::now();
        let mut last = (0, 0);
        while begun.elapsed() < DEADLINE {
            match self.system.list() {
                Ok(listed) => {
                    heard = Instant::now();
                    let ended = count_in_state(sent, &listed, BatchState::Ended);
                    let running = count_in_state(sent, &listed, BatchState::Runs);
                    if (ended, running) != last {
                        report(ended, running);
                        last = (ended, running);
                    }
                    if ended == sent.len() {
                        return Ok(());
                    }
                }
                Err(error) if heard.elapsed() > SILENT => return Err(error),
                Err(_) => {}
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

fn count_in_state(sent: &[SentJob], listed: &[BatchJob], state: BatchState) -> usize {
    sent.iter()
        .filter(|job| state_of(job, listed) == state)
        .count()
}

/// Returns the state of a job; one that the system has forgotten has ended.
fn state_of(sent: &SentJob, listed: &[BatchJob]) -> BatchState {
    let found = listed
        .iter()
        .find(|job| job.id == sent.id && job.name == sent.name);
    found.map_or(BatchState::Ended, |job| job.state)
}

/// Jobs whose results may be wanted: each is sent once, and cancelled when it is no longer wanted.
#[derive(Debug)]
pub struct AheadJobs<'a> {
    jobs: DirectJobs<'a>,
    /// Names of jobs that were sent, by this command or an interrupted one.
    sent: RefCell<BTreeSet<String>>,
}

impl<'a> AheadJobs<'a> {
    #[must_use]
    pub fn new(jobs: DirectJobs<'a>) -> Self {
        Self {
            jobs,
            sent: RefCell::default(),
        }
    }

    /// Sends `wanted` and returns what was sent, with its number; leaves `current` alone if it is
    /// there, and cancels all other jobs with the prefix.
    ///
    /// # Errors
    /// If the batch system does not answer, or refuses one.
    pub fn want<'j>(
        &self,
        current: Option<&DirectJob>,
        wanted: &'j [DirectJob],
    ) -> Result<Vec<(&'j DirectJob, String)>, BatchError> {
        let listed = self.jobs.system.list()?;
        let names: BTreeSet<String> = current
            .into_iter()
            .chain(wanted)
            .map(|job| self.jobs.name(job))
            .collect();
        let own = listed
            .iter()
            .filter(|one| one.name.starts_with(&self.jobs.prefix));
        for one in own {
            if names.contains(&one.name) {
                self.sent.borrow_mut().insert(one.name.clone());
            } else if one.state != BatchState::Ended {
                self.jobs.system.cancel(&one.id)?;
                self.sent.borrow_mut().remove(&one.name);
            }
        }
        let mut new = Vec::new();
        for job in wanted {
            if !self.sent.borrow().contains(&self.jobs.name(job)) {
                let sent = self.jobs.submit(job)?;
                self.sent.borrow_mut().insert(sent.name);
                new.push((job, sent.id));
            }
        }
        Ok(new)
    }

    /// Waits while a job runs. One that has no host yet is cancelled.
    ///
    /// # Errors
    /// If the batch system is silent for ten minutes.
    pub fn wait(&self, job: &DirectJob) -> Result<(), BatchError> {
        let name = self.jobs.name(job);
        if !self.sent.borrow().contains(&name) {
            return Ok(());
        }
        let mut heard = Instant::now();
        loop {
            match self.jobs.system.list() {
                Ok(listed) => {
                    heard = Instant::now();
                    let live = listed
                        .iter()
                        .find(|one| one.name == name && one.state != BatchState::Ended);
                    match live.map(|one| (one.state, &one.id)) {
                        None => return Ok(()),
                        Some((BatchState::Runs, _)) => {}
                        Some((_, id)) => return self.jobs.system.cancel(id),
                    }
                }
                Err(error) if heard.elapsed() > SILENT => return Err(error),
                Err(_) => {}
            }
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::{BatchError, BatchJob, BatchState, BatchSystem, Submission};
    use super::{AheadJobs, DirectJob, DirectJobs};

    /// A batch system in memory, whose running jobs end at the second look.
    #[derive(Debug, Default)]
    struct Believed(Mutex<Vec<(BatchJob, usize)>>);

    impl Believed {
        fn states(&self) -> Vec<BatchState> {
            self.0
                .lock()
                .unwrap()
                .iter()
                .map(|(job, _)| job.state)
                .collect()
        }

        fn run(&self, place: usize) {
            self.0.lock().unwrap()[place].0.state = BatchState::Runs;
        }
    }

    impl BatchSystem for Believed {
        fn name(&self) -> &'static str {
            "Slurm"
        }

        fn list(&self) -> Result<Vec<BatchJob>, BatchError> {
            let mut jobs = self.0.lock().unwrap();
            let listed = jobs.iter().map(|(job, _)| job.clone()).collect();
            for (job, looks) in jobs
                .iter_mut()
                .filter(|(job, _)| job.state == BatchState::Runs)
            {
                *looks += 1;
                if *looks > 1 {
                    job.state = BatchState::Ended;
                }
            }
            Ok(listed)
        }

        fn submit(&self, job: &Submission<'_>) -> Result<String, BatchError> {
            assert_eq!(
                (job.machine, job.minutes, job.command.len()),
                ("exact", 7, 2),
                "{job:?}"
            );
            let mut jobs = self.0.lock().unwrap();
            let id = (jobs.len() + 1).to_string();
            let name = job.name.to_owned();
            let state = BatchState::Waits;
            jobs.push((
                BatchJob {
                    id: id.clone(),
                    name,
                    state,
                    about: String::new(),
                },
                0,
            ));
            Ok(id)
        }

        fn cancel(&self, id: &str) -> Result<(), BatchError> {
            let mut jobs = self.0.lock().unwrap();
            jobs.iter_mut()
                .filter(|(job, _)| job.id == id)
                .for_each(|(job, _)| job.state = BatchState::Ended);
            Ok(())
        }
    }

    fn job(name: &str) -> DirectJob {
        DirectJob {
            about: name.to_owned(),
            arguments: vec![name.into()],
        }
    }

    fn with_jobs(system: &Believed, prefix: &str, use_it: &dyn Fn(DirectJobs<'_>)) {
        let command = ["marvin".into()];
        use_it(DirectJobs {
            system,
            prefix: prefix.to_owned(),
            machine: "exact",
            minutes: 7,
            command: &command,
        });
    }

    #[test]
    fn interrupted_command_finds_its_jobs() {
        let system = Believed::default();
        with_jobs(&system, "marvin-run-", &|jobs| {
            let first = jobs.send(&[job("a"), job("b")]).unwrap();
            assert_eq!(jobs.send(&[job("a"), job("b")]).unwrap(), first);
            (0..2).for_each(|place| system.run(place));
            let seen = Mutex::new(Vec::new());
            jobs.wait(&first, &|ended, runs| {
                seen.lock().unwrap().push((ended, runs));
            })
            .unwrap();
            assert_eq!(*seen.lock().unwrap(), [(0, 2), (2, 0)]);
            // What ended is sent again, if the command still lacks its result.
            assert_eq!(jobs.send(&[job("a")]).unwrap()[0].id, "3");
        });
    }

    #[test]
    fn jobs_no_longer_wanted_are_cancelled() {
        use BatchState::{Ended, Runs, Waits};
        let system = Believed::default();
        with_jobs(&system, "marvin-bisect-other-", &|jobs| {
            drop(jobs.send(&[job("a")]).unwrap());
        });
        with_jobs(&system, "marvin-bisect-1-", &|jobs| {
            let ahead = AheadJobs::new(jobs);
            assert_eq!(
                ahead
                    .want(Some(&job("a")), &[job("b"), job("c")])
                    .unwrap()
                    .len(),
                2,
                "this host measures a"
            );
            ahead.wait(&job("a")).unwrap();
            system.run(1);
            assert!(ahead.want(Some(&job("b")), &[]).unwrap().is_empty());
            assert_eq!(
                system.states(),
                [Waits, Runs, Ended],
                "b goes on, c is not wanted"
            );
            ahead.wait(&job("b")).unwrap();
            assert_eq!(system.states()[1], Ended);
            // An ended job that brought no result is not sent again.
            assert!(ahead.want(None, &[job("b")]).unwrap().is_empty());
        });
    }

    #[test]
    fn job_without_a_host_is_withdrawn() {
        let system = Believed::default();
        with_jobs(&system, "marvin-bisect-1-", &|jobs| {
            drop(jobs.send(&[job("b")]).unwrap());
        });
        // Another process, after the first was killed.
        with_jobs(&system, "marvin-bisect-1-", &|jobs| {
            let ahead = AheadJobs::new(jobs);
            assert!(ahead.want(None, &[job("b")]).unwrap().is_empty());
            ahead.wait(&job("b")).unwrap();
            assert_eq!(system.states(), [BatchState::Ended]);
        });
    }
}
