//! A scripted machine for tests of planning: it boots, fails at each stage, breaks, adds noise, and
//! keeps a log. Behind the feature `fake`; no program uses it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use model::{
    Capabilities, FailureReason, GuestConfig, Machine, MachineId, MachineKind, Stage,
    SubjectFailure,
};
use subprocess::Shared;
use wire::{Frame, Job, Stream, Task};

use crate::backend::{Backend, BootOutcome, Booted, Guest, JobEnd, Observe};
use crate::{Disturbance, MachineError, hash};

/// The functions of every kernel that it boots, as a guest lists them.
const SYMBOLS: &str =
    "Tffffffff81000000 vfs_read\nT1000 handle_mm_fault\nT1000 schedule\nT1000 _etext\n";
/// The address of the first function.
const FUNCTION: &str = "ffffffff81000000";

/// A request to the script.
#[derive(Debug, Clone, Copy)]
pub struct FakeRequest<'a> {
    /// The version of the build.
    pub version: &'a str,
    pub replicate: u64,
    /// The job's name; `None` for the boot.
    pub job: Option<&'a str>,
    pub whole: Option<&'a Job>,
    /// Number of equal requests before.
    pub times: usize,
}

#[derive(Debug)]
pub enum Does {
    /// It boots; a job takes this many ticks per operation.
    Takes(u64),
    /// A job takes about this many ticks, with noise up to this many percent.
    Around(u64, f64),
    /// A job takes this many ticks while others take this share of the processors.
    Disturbed(u64, f64),
    /// The agent sends these frames.
    Says(Vec<Frame>),
    Fails(Stage, FailureReason),
    /// The kernel continues until the machine's deadline.
    Hangs(Stage),
    Breaks(MachineError),
}

type Script = dyn Fn(&FakeRequest<'_>) -> Does + Send + Sync;

/// What all guest configs of a fake machine share.
struct State {
    script: Box<Script>,
    request: Shared<BTreeMap<String, usize>>,
    log: Shared<Vec<String>>,
    /// Number of builds booted now, and its maximum.
    booted: Shared<(usize, usize)>,
}

#[derive(Clone)]
pub struct Fake {
    identity: Machine,
    capabilities: Capabilities,
    state: Arc<State>,
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fake")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A build that it has booted.
#[derive(Debug)]
struct FakeBooted {
    machine: Arc<Fake>,
    version: String,
    replicate: u64,
}

impl Fake {
    /// Returns a machine with all capabilities of the exact one.
    pub fn new(script: impl Fn(&FakeRequest<'_>) -> Does + Send + Sync + 'static) -> Self {
        let request = Shared::default();
        let log = Shared::default();
        let booted = Shared::default();
        let state = Arc::new(State {
            script: Box::new(script),
            request,
            log,
            booted,
        });
        let guest_config = GuestConfig::PLAIN;
        Self {
            identity: identity(&guest_config),
            capabilities: MachineKind::Exact.capabilities(),
            state,
        }
    }

    #[must_use]
    pub fn that_can(mut self, change: impl FnOnce(&mut Capabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    /// Returns its requests, one per line: `boot 6.1 #1`, `6.1 #1 getppid`, `release 6.1 #1`.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        lock(&self.state.log).clone()
    }

    /// Returns the number of builds booted now, and its maximum.
    #[must_use]
    pub fn booted(&self) -> (usize, usize) {
        *lock(&self.state.booted)
    }

    fn ask(&self, version: &str, replicate: u64, job: Option<(&str, &Job)>) -> Does {
        let (job, whole) = job.unzip();
        let line = match job {
            None => format!("boot {version} #{replicate}"),
            Some(job) => format!("{version} #{replicate} {job}"),
        };
        lock(&self.state.log).push(line.clone());
        let times = {
            let mut request = lock(&self.state.request);
            let times = request.entry(line).or_default();
            *times += 1;
            *times - 1
        };
        (self.state.script)(&FakeRequest {
            version,
            replicate,
            job,
            whole,
            times,
        })
    }
}

fn lock<T>(mutex: &Shared<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

fn identity(guest_config: &GuestConfig) -> Machine {
    let fingerprint = vec![("equipment".to_owned(), guest_config.to_string())];
    let id = hash(&[b"fake\n", guest_config.to_string().as_bytes()]);
    let id = MachineId::from_hex(&id).unwrap_or_else(|_| unreachable!("a hash is one"));
    Machine {
        id,
        kind: MachineKind::Exact,
        summary: "a fake machine".to_owned(),
        fingerprint,
    }
}

fn failure(stage: Stage, reason: FailureReason) -> SubjectFailure {
    let console_tail = reason.to_string();
    SubjectFailure {
        stage,
        reason,
        console_tail,
    }
}

impl Backend for Fake {
    fn identity(&self) -> &Machine {
        &self.identity
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn with_guest_config(
        &self,
        guest_config: &GuestConfig,
        _: Option<&Path>,
    ) -> Result<Arc<dyn Backend>, MachineError> {
        Ok(Arc::new(Self {
            identity: identity(guest_config),
            ..self.clone()
        }))
    }

    fn boot(
        self: Arc<Self>,
        guest: &Guest<'_>,
        replicate: u64,
    ) -> Result<BootOutcome, MachineError> {
        let version = guest.build.version.clone();
        match self.ask(&version, replicate, None) {
            Does::Breaks(error) => Err(error),
            Does::Fails(stage, reason) => Ok(BootOutcome::KernelFailed {
                failure: failure(stage, reason),
                console: b"the console\n".to_vec(),
            }),
            Does::Hangs(stage) => Ok(BootOutcome::KernelFailed {
                failure: failure(stage, FailureReason::Hung),
                console: Vec::new(),
            }),
            Does::Takes(_) | Does::Around(..) | Does::Disturbed(..) | Does::Says(_) => {
                let mut booted = lock(&self.state.booted);
                *booted = (booted.0 + 1, booted.1.max(booted.0 + 1));
                drop(booted);
                Ok(BootOutcome::Ready(Box::new(FakeBooted {
                    machine: self,
                    version,
                    replicate,
                })))
            }
        }
    }
}

impl Booted for FakeBooted {
    fn run(&self, job: &Job, observe: Observe<'_>) -> Result<JobEnd, MachineError> {
        // Refuses what real machines refuse.
        job.encode()?;
        let (name, operations, iterations) = match &job.task {
            Task::Environment => ("environment", 1, 0),
            Task::Symbols => ("symbols", 1, 0),
            Task::Rmap { case, .. } => (case.as_str(), 1, 0),
            Task::Workload {
                name,
                operations,
                iterations,
                ..
            } => (name.as_str(), *operations, *iterations),
            Task::Tool(tool) => (
                tool.command.first().map_or("tool", String::as_str),
                1,
                tool.runs,
            ),
        };
        let file = |name: &str, text: &str| Frame::File {
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let mut samples = Vec::new();
        let does = self
            .machine
            .ask(&self.version, self.replicate, Some((name, job)));
        let disturbance = match does {
            Does::Disturbed(_, others) => Some(Disturbance {
                others,
                steal: 0.0,
                limit: 0.1,
            }),
            _ => None,
        };
        let stream = match does {
            Does::Breaks(error) => return Err(error),
            Does::Fails(stage, reason) => Err(failure(stage, reason)),
            Does::Hangs(stage) => Err(failure(stage, FailureReason::Hung)),
            Does::Says(frames) => Ok(frames),
            Does::Takes(_) | Does::Around(..) | Does::Disturbed(..)
                if job.task == Task::Symbols =>
            {
                Ok(vec![file("symbols", SYMBOLS)])
            }
            Does::Takes(_) | Does::Around(..) | Does::Disturbed(..)
                if job.task == Task::Environment =>
            {
                Ok(vec![file("/proc/cmdline", "quiet")])
            }
            Does::Takes(ticks) | Does::Disturbed(ticks, _) => {
                samples = vec![ticks * operations; iterations as usize];
                Ok(frames_of(&samples, job))
            }
            Does::Around(ticks, percent) => {
                let request = lock(&self.machine.state.log).len();
                samples = (0..iterations)
                    .map(|n| {
                        let share = draw(&format!(
                            "{} {} {name} {request} {n}",
                            self.version, self.replicate
                        ));
                        let ticks = ticks as f64 * (1.0 + percent / 100.0 * (2.0 * share - 1.0));
                        (ticks * operations as f64) as u64
                    })
                    .collect();
                Ok(frames_of(&samples, job))
            }
        };
        let stream = stream.map(|frames| Stream { frames });
        let is_counted = !matches!(observe, Observe::Nothing) && self.machine.capabilities.counts;
        let counts = (is_counted && !samples.is_empty()).then(|| counts(&samples));
        Ok(JobEnd {
            stream,
            console: b"the console\n".to_vec(),
            counts,
            calls: None,
            path: None,
            shared: None,
            disturbance,
        })
    }

    fn release(self: Box<Self>) -> Result<(), MachineError> {
        lock(&self.machine.state.log).push(format!("release {} #{}", self.version, self.replicate));
        Ok(())
    }
}

impl Drop for FakeBooted {
    fn drop(&mut self) {
        lock(&self.machine.state.booted).0 -= 1;
    }
}

/// Returns the frames of a workload, with samples of one function if the job asks for some.
fn frames_of(samples: &[u64], job: &Job) -> Vec<Frame> {
    let mut frames = vec![Frame::Samples(samples.to_vec())];
    if let Task::Workload {
        sampling: Some(period),
        ..
    } = &job.task
    {
        let file = |name: &str, text: String| Frame::File {
            name: name.to_owned(),
            bytes: text.into_bytes(),
        };
        let head = format!(
            "marvin-samples 1\nevent cpu-clock\nscope system\nperiod {period}\nprocessors 1\n"
        );
        let count = samples.iter().sum::<u64>() / period + 1;
        let stacks = format!("lost 0\nthrottled 0\nunkept 0\nat {FUNCTION}\nprocess {count} 0 0\n");
        frames.extend([
            file("samples", head + &stacks),
            file("symbols", SYMBOLS.to_owned()),
        ]);
    }
    frames
}

/// Counts of regions that belong to one function, as the tracer writes them.
fn counts(samples: &[u64]) -> Vec<u8> {
    let regions: String = samples
        .iter()
        .map(|ticks| format!("region 1 0 {ticks} 0 0\n"))
        .collect();
    format!(
        "{regions}at {FUNCTION} {} 0 0\nend 0 0\n",
        samples.iter().sum::<u64>()
    )
    .into_bytes()
}

/// Returns a pseudo-random number from 0 to 1.
fn draw(text: &str) -> f64 {
    let digits = hash(&[text.as_bytes()]);
    u32::from_str_radix(&digits[..8], 16)
        .map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
