//! What happens while a plan is carried out: one typed stream that progress bars, logs and journals read.

use model::{BuildId, RunId, SubjectFailure};

use crate::Estimate;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The plan is known: so many jobs are to be done, so many results exist already.
    Planned {
        /// Jobs to be done.
        jobs: usize,
        /// Results of earlier runs that are used again.
        reused: usize,
    },
    /// How long that will take.
    Estimated(Estimate),
    /// A build boots, to be saved.
    Booting {
        /// Its version.
        version: String,
        /// The replicate.
        replicate: u64,
    },
    /// A build is booted, and jobs can start.
    Ready {
        /// Its version.
        version: String,
        /// The replicate.
        replicate: u64,
        /// What is out of the ordinary about this boot.
        remark: Option<String>,
    },
    /// A build failed to boot; its other replicates are left out.
    BootFailed {
        /// Its version.
        version: String,
        /// The replicate.
        replicate: u64,
        /// How.
        failure: SubjectFailure,
    },
    /// A job is done.
    Done {
        /// The build.
        build: BuildId,
        /// The build's version.
        version: String,
        /// The replicate.
        replicate: u64,
        /// The workload.
        workload: String,
        /// Its value, where it is of one workload and completed.
        value: Option<f64>,
    },
    /// There is no profile: of a workload, or of any of a build's.
    NoProfile {
        /// The build's version.
        version: String,
        /// The workload, if it is only one.
        workload: Option<String>,
        /// Why.
        why: String,
    },
    /// The memory of a kernel that died is kept, in so many bytes; or why it is not.
    Dumped {
        /// The build's version.
        version: String,
        /// The workload, or `boot`.
        of: String,
        /// How many bytes the dump has.
        bytes: Result<usize, String>,
    },
    /// A job will not be done, as its build does not boot.
    LeftOut,
    /// The lab failed and tries again.
    Retrying {
        /// What failed.
        error: String,
    },
    /// A run is complete and stored.
    Stored(RunId),
}
