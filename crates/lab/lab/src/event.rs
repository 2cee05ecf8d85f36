//! Events of an execution: one typed stream for progress bars, logs and journals.

use model::{BuildId, RunId, SubjectFailure};

use crate::Estimate;

/// A replicate, by the name that its machine has for one: `seed 5`, `boot 2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicate {
    /// What the machine varies ([`model::Capabilities::replicate`]).
    pub noun: &'static str,
    pub number: u64,
}

impl std::fmt::Display for Replicate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.noun, self.number)
    }
}

/// An event of an execution.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The plan is known.
    Planned {
        jobs: usize,
        /// Results reused from earlier runs.
        reused: usize,
    },
    Estimated(Estimate),
    /// The estimated rest, after each job.
    RemainingTime {
        /// Wall seconds; `None` while no estimate would be within a factor of two.
        seconds: Option<f64>,
    },
    /// QEMU runs as the user, without walls around it, although the user did not ask for that.
    NoWalls {
        why: String,
    },
    /// A kernel did not know some of the boot parameters that it was given.
    UnknownBootParameters {
        version: String,
        parameters: String,
    },
    /// A build boots; the machine saves the guest afterwards.
    Booting {
        version: String,
        replicate: Replicate,
    },
    /// A build is booted; its jobs can start.
    Ready {
        version: String,
        replicate: Replicate,
        /// A remark about an unusual boot.
        remark: Option<String>,
    },
    /// A build failed to boot; its other replicates are skipped.
    BootFailed {
        version: String,
        replicate: Replicate,
        failure: SubjectFailure,
    },
    /// A job is done.
    Done {
        build: BuildId,
        version: String,
        replicate: Replicate,
        workload: String,
        /// Its value, if a workload completed.
        value: Option<f64>,
    },
    /// There is no profile of a workload, or of any workload of a build.
    NoProfile {
        version: String,
        /// The workload; `None` for all.
        workload: Option<String>,
        why: String,
    },
    /// Marvin stored the memory of a kernel that died, or failed to.
    Dumped {
        version: String,
        /// The workload, or `boot`.
        of: String,
        /// Size of the dump (bytes), or why there is none.
        bytes: Result<usize, String>,
        /// Why it has all pages; `None` if it is filtered.
        unfiltered: Option<String>,
    },
    /// A job is skipped, as its build does not boot.
    JobSkipped,
    /// The lab failed; Marvin tries again.
    Retrying {
        error: String,
    },
    /// Other work on the host disturbed a job; Marvin repeats it.
    Disturbed {
        version: String,
        replicate: Replicate,
        workload: String,
        text: String,
    },
    /// A run is complete and stored.
    Stored(RunId),
}
