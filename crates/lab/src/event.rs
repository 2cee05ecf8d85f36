//! What happens while a plan is carried out: one typed stream that progress bars, logs and journals read.

use model::{RunId, SubjectFailure};

use crate::Estimate;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The plan is known: so many jobs are to be done, so many results are there already.
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
        /// The seed.
        seed: u64,
    },
    /// A build can be started from, from its snapshot or, with the reason, only by booting it each time.
    Ready {
        /// Its version.
        version: String,
        /// The seed.
        seed: u64,
        /// Why there is no snapshot, if there is none.
        without_snapshot: Option<String>,
    },
    /// A build failed to boot; its other seeds are left out.
    BootFailed {
        /// Its version.
        version: String,
        /// The seed.
        seed: u64,
        /// How.
        failure: SubjectFailure,
    },
    /// A job is done.
    Done {
        /// The build's version.
        version: String,
        /// The seed.
        seed: u64,
        /// The workload.
        workload: String,
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
