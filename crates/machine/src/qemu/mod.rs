//! QEMU: which one there is, and one that runs. What it runs is up to its caller: its arguments, how long it may take, what a
//! guest that ended is asked for.

mod memory;
mod process;
mod program;
mod qmp;
mod seat;

use model::{FailureReason, Stage, SubjectFailure};

pub use self::memory::VmcoreFormat;
pub use self::process::{Budget, CONSOLE, CONTROL, Ended, Process, Scratch};
pub use self::program::{Qemu, QemuProblem};
use crate::console::{readable_tail, reason_in};

/// Returns the kernel's failure where a stage ended before the guest did what it was to.
#[must_use]
pub fn failure(stage: Stage, ended: Ended, console: &[u8]) -> SubjectFailure {
    let reason = match (ended, reason_in(console)) {
        (Ended::ConsoleFull, _) => FailureReason::TooMuchOutput,
        (_, Some(reason)) => reason,
        (Ended::PoweredOff, None) if let Some(why) = wire::find_last_words(console) => FailureReason::Lacks(why),
        (Ended::Stopped, None) => FailureReason::Lacks("a serial console (CONFIG_SERIAL_8250_CONSOLE)".into()),
        (Ended::Deadline, None) => FailureReason::Hung,
        (Ended::PoweredOff, None) if stage == Stage::Boot => FailureReason::DidNotBoot,
        (Ended::PoweredOff, None) => FailureReason::AgentDied("the guest switched off".into()),
    };
    SubjectFailure { stage, reason, console_tail: readable_tail(console) }
}
