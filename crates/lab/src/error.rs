//! What can go wrong in the lab, and whose fault it is. A kernel's failure is not among these: it is a result.

use kernel::KernelError;
use machine::MachineError;
use model::Guilt;
use store::StoreError;

/// A failure of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A kernel could not be had.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A machine failed.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A machine failed again and again.
    #[error("{error} (tried {tries} times)")]
    GaveUp {
        /// How often it was tried.
        tries: u32,
        /// The last failure.
        error: MachineError,
    },
    /// A profile that was kept cannot be read.
    #[error("{name} of {run} is not a profile of this version of Marvin; measure again with --force")]
    BadProfile {
        /// The run.
        run: model::RunId,
        /// The artefact.
        name: String,
    },
    /// A profile that was kept has other counts than the result beside it.
    #[error(
        "{name} of {run} counts other instructions than the run's result: one of them was changed; measure again with --force"
    )]
    OtherProfile {
        /// The run.
        run: model::RunId,
        /// The artefact.
        name: String,
    },
    /// Copies of monitors that were kept cannot be read.
    #[error("{name} of {run} has no monitor copies of this version of Marvin: measure again with --force")]
    BadMonitors {
        /// The run.
        run: model::RunId,
        /// The artefact.
        name: String,
    },
    /// The log of a bisection could not be read or written.
    #[error("{}: {error}", file.display())]
    Bisection {
        /// The file or folder.
        file: std::path::PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The log of a bisection is not one.
    #[error("{} is not the log of this bisection: remove it, or give --force", file.display())]
    BadBisection {
        /// The file.
        file: std::path::PathBuf,
    },
    /// There is nothing to do.
    #[error("nothing to do: the plan has no {0}")]
    Empty(&'static str),
}

impl LabError {
    /// Returns whose fault it is.
    #[must_use]
    pub fn guilt(&self) -> Guilt {
        let user = match self {
            Self::Kernel(error) => error.guilt() == Guilt::User,
            Self::Machine(error) => error.guilt() == Guilt::User,
            Self::Store(error) => error.guilt() == Guilt::User,
            Self::GaveUp { .. }
            | Self::BadProfile { .. }
            | Self::OtherProfile { .. }
            | Self::BadMonitors { .. }
            | Self::Bisection { .. }
            | Self::BadBisection { .. } => false,
            Self::Empty(_) => true,
        };
        if user { Guilt::User } else { Guilt::Infra }
    }
}
