//! Jobs through a batch system, which gives each a host: Slurm, or another one by a program.
//!
//! The queue stays the source of truth. A dispatcher sends each free job as one batch job, which is
//! a worker for that job: it claims the job on the host that it was given. A batch job's name has
//! the job's number, the time when the job was queued, and the job's fence: what is there already,
//! the batch system knows, so a dispatcher keeps nothing.

mod command;
mod decide;
mod direct;
mod dispatch;
mod script;
mod slurm;

use std::ffi::OsString;
use std::fmt::Debug;

use model::{BatchKind, MarvinConfig, QueuedJob, USUAL_MACHINE};

use self::command::SiteProgram;
use self::slurm::Slurm;

pub use direct::{AheadJobs, DirectJob, DirectJobs, SentJob};
pub use dispatch::{DispatchEvent, Dispatcher};
use script::script;

/// Names the job and the node of a batch job, in Slurm's environment.
const JOB_ID: &str = "SLURM_JOB_ID";
const NODE: &str = "SLURMD_NODENAME";

pub trait BatchSystem: Debug + Send + Sync {
    /// Returns its name in messages: `Slurm`.
    fn name(&self) -> &'static str;

    /// Returns Marvin's jobs there: those that wait or run, and those that ended lately.
    ///
    /// # Errors
    /// If it does not answer.
    fn list(&self) -> Result<Vec<BatchJob>, BatchError>;

    /// Sends a job, and returns its number there.
    ///
    /// # Errors
    /// If it does not answer, or refuses the job.
    fn submit(&self, job: &Submission<'_>) -> Result<String, BatchError>;

    /// Cancels a job; one that has ended is no error.
    ///
    /// # Errors
    /// If it does not answer.
    fn cancel(&self, id: &str) -> Result<(), BatchError>;
}

/// A job as a batch system lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchJob {
    pub id: String,
    pub name: String,
    pub state: BatchState,
    /// What the system says about the state: `Resources`, a host's name; may be empty.
    pub about: String,
}

impl BatchJob {
    /// Returns whether it is for a queued job: whichever attempt.
    fn is_for(&self, job: &QueuedJob) -> bool {
        self.name.starts_with(&batch_name_prefix(job))
    }
}

/// The state of a job in a batch system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchState {
    /// It waits for a host.
    Waits,
    /// It waits until an administrator releases it.
    Held,
    Runs,
    Ended,
}

impl BatchState {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::Held => "held",
            Self::Runs => "runs",
            Self::Ended => "ended",
        }
    }
}

/// A job to send.
#[derive(Debug, Clone)]
pub struct Submission<'a> {
    pub name: &'a str,
    /// What it does, in one line, for the people who read the system's lists.
    pub about: &'a str,
    /// The machine that it measures on.
    pub machine: &'a str,
    /// How long it may take (min).
    pub minutes: u64,
    /// The command and its arguments; `%N` in an argument means the host's name.
    pub command: &'a [OsString],
}

/// Why a batch system did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// It does not answer now.
    #[error("{system} does not answer: {reason}")]
    Silent {
        system: &'static str,
        reason: String,
    },
    /// It refuses the job.
    #[error("{system} refuses the job: {reason}")]
    Refused {
        system: &'static str,
        reason: String,
    },
}

/// Returns the batch system of a site, if it has one.
#[must_use]
pub fn batch_system(settings: &MarvinConfig) -> Option<Box<dyn BatchSystem>> {
    Some(match &settings.batch.as_ref()?.system {
        BatchKind::Slurm(slurm) => {
            let servers = settings.servers.iter();
            let nodes = servers
                .filter_map(|server| Some((server.name.clone(), server.slurm_node.clone()?)))
                .collect();
            Box::new(Slurm {
                settings: slurm.clone(),
                nodes,
            })
        }
        BatchKind::Command(command) => Box::new(SiteProgram {
            command: command.clone(),
        }),
    })
}

/// Returns whether Slurm can run jobs of a machine.
#[must_use]
pub fn has_slurm_node(settings: &MarvinConfig, machine: &str) -> bool {
    let mut servers = settings.servers.iter();
    machine == USUAL_MACHINE
        || servers.any(|server| server.name == machine && server.slurm_node.is_some())
}

/// Returns the name of a worker that a batch system has started.
#[must_use]
pub fn batch_worker_name() -> String {
    let node = set_variable(NODE).unwrap_or_else(crate::machine_name);
    match set_variable(JOB_ID) {
        Some(id) => format!("{node}:slurm-{id}"),
        None => format!("{node}:batch-{}", std::process::id()),
    }
}

/// Returns a variable of the environment; `None` if it is empty, as Slurm leaves some.
fn set_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the beginning of the names of all batch jobs for a queued job: whichever attempt they
/// are for.
fn batch_name_prefix(job: &QueuedJob) -> String {
    format!("marvin-{}-{}-", job.number, job.queued_unix.seconds())
}

/// Returns Marvin's jobs in a batch system that are for a queued job.
#[must_use]
pub fn batch_jobs_of(job: &QueuedJob, all: &[BatchJob]) -> Vec<BatchJob> {
    all.iter().filter(|one| one.is_for(job)).cloned().collect()
}
