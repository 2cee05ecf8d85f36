//! QEMU: finds it and controls a running one. The caller decides on its arguments, its deadlines
//! and the queries after the guest's end.

mod bundle;
mod memory;
mod packed;
mod process;
mod program;
mod seat;
mod start_failure;
mod state;

use model::{FailureReason, Stage, SubjectFailure};
use wire::StreamError;

pub use self::bundle::{Origin, SetupEvent, packages as setup_packages, set_up};
pub use self::memory::VmcoreFormat;
pub use self::packed::{ReleaseProblem, pack_setup};
pub use self::process::{Budget, CONSOLE, CONTROL, Ended, Process, Scratch};
pub use self::program::{Qemu, QemuProblem};
pub(crate) use self::seat::Seat;
pub(crate) use self::start_failure::find_fix;
pub use self::state::{STATE, restore, save};
use crate::console::{readable_tail, reason_in};

/// Returns the kernel's failure for a stage that ended too early.
#[must_use]
pub fn failure(stage: Stage, ended: Ended, console: &[u8]) -> SubjectFailure {
    let reason = match (ended, reason_in(console)) {
        (Ended::ConsoleFull, _) => FailureReason::TooMuchOutput,
        (_, Some(reason)) => reason,
        (Ended::PoweredOff, None) if let Some(why) = wire::find_last_words(console) => {
            FailureReason::Lacks(why)
        }
        (Ended::Stopped, None) => {
            FailureReason::Lacks("a serial console (CONFIG_SERIAL_8250_CONSOLE)".into())
        }
        (Ended::Deadline, None) => FailureReason::Hung,
        (Ended::PoweredOff, None) if stage == Stage::Boot => FailureReason::DidNotBoot,
        (Ended::PoweredOff, None) => FailureReason::AgentDied("the guest switched off".into()),
    };
    SubjectFailure {
        stage,
        reason,
        console_tail: readable_tail(console),
    }
}

/// Returns the failure of a job whose guest ended early or whose stream is damaged.
pub(crate) fn stream_failure(
    ended: Ended,
    error: Option<StreamError>,
    console: &[u8],
) -> SubjectFailure {
    let stage = match &error {
        None | Some(StreamError::Empty) => Stage::Workload,
        Some(_) => Stage::Results,
    };
    let mut failure = failure(stage, ended, console);
    // Only a full disk damages a stream of a kernel that ended well.
    if ended == Ended::PoweredOff
        && reason_in(console).is_none()
        && wire::find_last_words(console).is_none()
        && let Some(error) = error
    {
        failure.reason = FailureReason::BadStream(error.to_string());
    }
    failure
}
