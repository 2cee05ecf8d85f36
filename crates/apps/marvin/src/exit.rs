//! Exit codes, and the text of errors.

use compare::Conclusion;
use config::ConfigError;
use kernel::{KernelError, SourceError};
use lab::LabError;
use model::Fault;
use results::import::ImportError;
use service::ServiceError;
use store::{QueueError, StoreError};

use crate::session::{About, LogLevel, write_event};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Fine,
    Worse,
    /// The input is wrong.
    Usage,
    /// No regression, but unclear rows.
    Unclear,
    /// A kernel did not boot or did not survive a workload.
    Subject,
    Lab,
    /// A bug in Marvin.
    Bug,
}

/// Exit code with which `git bisect run` skips a commit.
const SKIP: u8 = 125;

/// All exit codes with their meaning, for the help.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0   no regression
  1   at least one regression
  2   wrong usage or configuration
  3   no regression, but at least one unclear result
  4   a kernel failed to build, boot or complete a workload
  5   the lab failed (QEMU, disk, network, data directory in use): try again later
  70  a bug in Marvin";

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Worse => 1,
            Self::Usage => 2,
            Self::Unclear => 3,
            Self::Subject => 4,
            Self::Lab => 5,
            Self::Bug => 70,
        }
    }

    /// Returns the code for `git bisect run`, which takes 1 to 127 except 125 as bad and ends at
    /// more (git, Documentation/git-bisect.txt): a failure of the lab says nothing about a commit.
    pub(crate) fn bisect_code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Worse => 1,
            Self::Usage | Self::Unclear | Self::Subject | Self::Lab | Self::Bug => SKIP,
        }
    }
}

impl From<Conclusion> for Exit {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Fine => Self::Fine,
            Conclusion::Unclear => Self::Unclear,
            Conclusion::Worse => Self::Worse,
            Conclusion::Failed => Self::Subject,
        }
    }
}

/// Wrong input: a message that says what, where and what to do.
#[derive(Debug)]
pub(crate) struct WrongInput(pub(crate) String);

impl std::error::Error for WrongInput {}

impl std::fmt::Display for WrongInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Prints an error with its causes and returns its exit code.
pub(crate) fn explain(error: &anyhow::Error) -> Exit {
    write_event(LogLevel::Error, About::default(), &describe_error(error));
    fault(error)
}

/// Returns an error with its causes.
pub(crate) fn describe_error(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}");
    for cause in error.chain().skip(1) {
        text.push_str("\n  because: ");
        text.push_str(&cause.to_string());
    }
    text
}

/// Returns whether the cause is a kernel that does not build: its own fault.
fn does_not_build(cause: &(dyn std::error::Error + 'static)) -> bool {
    let of_lab = cause
        .downcast_ref::<LabError>()
        .and_then(|error| match error {
            LabError::Kernel(error) => Some(error),
            _ => None,
        });
    let error = of_lab.or_else(|| cause.downcast_ref::<KernelError>());
    matches!(
        error,
        Some(KernelError::Source(SourceError::DoesNotBuild { .. }))
    )
}

/// Returns whether an error is the fault of a kernel that does not build.
pub(crate) fn is_subject(error: &anyhow::Error) -> bool {
    error.chain().any(does_not_build)
}

/// Returns the exit code of an error.
pub(crate) fn fault(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if does_not_build(cause) {
            return Exit::Subject;
        }
        let Some(fault) = fault_of(cause) else {
            continue;
        };
        return if fault == Fault::User {
            Exit::Usage
        } else {
            Exit::Lab
        };
    }
    Exit::Lab
}

/// Returns whose fault an error is, if it is one of Marvin's error types.
fn fault_of(cause: &(dyn std::error::Error + 'static)) -> Option<Fault> {
    if cause.is::<WrongInput>() || cause.is::<compare::CompareError>() {
        return Some(Fault::User);
    }
    let error = cause.downcast_ref::<LabError>().map(LabError::fault);
    error
        .or_else(|| cause.downcast_ref().map(StoreError::fault))
        .or_else(|| cause.downcast_ref().map(QueueError::fault))
        .or_else(|| cause.downcast_ref().map(ConfigError::fault))
        .or_else(|| cause.downcast_ref().map(ServiceError::fault))
        .or_else(|| cause.downcast_ref().map(ImportError::fault))
        .or_else(|| cause.downcast_ref().map(KernelError::fault))
        .or_else(|| cause.downcast_ref().map(machine::MachineError::fault))
        .or_else(|| match cause.downcast_ref()? {
            web::PublishError::Foreign(_) => Some(Fault::User),
            _ => None,
        })
        .or_else(|| match cause.downcast_ref()? {
            results::HistoryReadError::Store(error) => Some(error.fault()),
            _ => None,
        })
}
