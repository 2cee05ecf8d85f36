//! Errors of the lab, and whose fault each is. A kernel's failure is not among them: it is a
//! result.

use kernel::KernelError;
use machine::MachineError;
use model::{Fault, ReservationRefusal};
use store::{ReservationError, StoreError};

/// A failure of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A kernel cannot be fetched or built.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Patches cannot be read.
    #[error(transparent)]
    Patches(#[from] kernel::PatchesError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another user has the machine.
    #[error("{0}{hint}", hint = remedy(.0))]
    Reserved(ReservationRefusal),
    /// A machine failed repeatedly.
    #[error("{error} (tried {tries} times)")]
    GaveUp { tries: u32, error: MachineError },
    /// A stored profile cannot be read.
    #[error(
        "cannot read {name} of {run}: not a profile of this version\nhint: measure again with --force"
    )]
    BadProfile { run: model::RunId, name: String },
    /// A stored profile contradicts the result beside it.
    #[error(
        "cannot use {name} of {run}: its counts differ from the run's result, so one of them was changed\nhint: measure again with --force"
    )]
    OtherProfile { run: model::RunId, name: String },
    /// Stored copies of monitors cannot be read.
    #[error(
        "cannot read {name} of {run}: not monitor copies of this version\nhint: measure again with --force"
    )]
    BadMonitors { run: model::RunId, name: String },
    /// The log of a bisection cannot be read or written.
    #[error("{}: {error}", file.display())]
    Bisection {
        /// The file or directory.
        file: std::path::PathBuf,
        error: std::io::Error,
    },
    /// The log of a stabilisation cannot be read or written.
    #[error("{}: {error}", file.display())]
    Stabilisation {
        /// The file or directory.
        file: std::path::PathBuf,
        error: std::io::Error,
    },
    /// The log of a bisection is invalid.
    #[error("cannot continue the bisection: {} is not its log\nhint: remove the file, or give --force", file.display())]
    BadBisection { file: std::path::PathBuf },
    /// The machine cannot run this kernel.
    #[error("{machine} cannot measure `{kernel}`; {}", if *boots { "it boots builds, and this kernel has no image: measure it with --on local" } else { "it measures only the kernel that it runs, whose name is `running:`" })]
    OtherKernel {
        machine: model::MachineKind,
        kernel: String,
        /// Whether the machine boots builds.
        boots: bool,
    },
    /// The machine has fewer processors than a workload has tasks.
    #[error(
        "{machine} cannot run {workload}: it needs {tasks} processors, and {machine} has {processors}"
    )]
    TooFewProcessors {
        machine: model::MachineKind,
        workload: String,
        tasks: u32,
        processors: u32,
    },
    /// The plan is empty.
    #[error("nothing to do: the plan has no {0}")]
    Empty(&'static str),
}

impl From<ReservationError> for LabError {
    fn from(error: ReservationError) -> Self {
        match error {
            ReservationError::Refused(why) => why.into(),
            ReservationError::Store(error) => error.into(),
        }
    }
}

impl From<ReservationRefusal> for LabError {
    fn from(why: ReservationRefusal) -> Self {
        Self::Reserved(why)
    }
}

/// Says what to do about a refused reservation.
fn remedy(why: &ReservationRefusal) -> String {
    match why {
        ReservationRefusal::Taken { machine, .. } => {
            format!(
                "\nhint: wait until it is free, or take it away: marvin release {machine} --force"
            )
        }
        ReservationRefusal::Free(_) | ReservationRefusal::Over { .. } => String::new(),
    }
}

impl LabError {
    /// Returns whose fault the error is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        let user = match self {
            Self::Kernel(error) => error.fault() == Fault::User,
            Self::Patches(error) => error.fault() == Fault::User,
            Self::Machine(error) => error.fault() == Fault::User,
            Self::Store(error) => error.fault() == Fault::User,
            Self::GaveUp { .. }
            | Self::BadProfile { .. }
            | Self::OtherProfile { .. }
            | Self::BadMonitors { .. }
            | Self::Bisection { .. }
            | Self::Stabilisation { .. }
            | Self::BadBisection { .. } => false,
            Self::Reserved(why) => matches!(why, ReservationRefusal::Free(_)),
            Self::Empty(_) | Self::OtherKernel { .. } | Self::TooFewProcessors { .. } => true,
        };
        if user { Fault::User } else { Fault::Lab }
    }
}
