//! What can go wrong with a machine that is not the kernel's fault.

use std::io;
use std::path::{Path, PathBuf};

use model::Guilt;

use crate::qemu::QemuProblem;

/// A failure of the lab while it works with a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// There is no usable QEMU.
    #[error(transparent)]
    Qemu(#[from] QemuProblem),
    /// QEMU ended without the guest having asked for it.
    #[error("QEMU exited unexpectedly ({how}){}", said(.stderr))]
    QemuDied {
        /// Exit status or signal.
        how: String,
        /// What it printed.
        stderr: String,
    },
    /// QEMU refused something.
    #[error("QEMU refused `{command}`: {answer}")]
    Refused {
        /// What was asked.
        command: String,
        /// What it said.
        answer: String,
    },
    /// The host gave QEMU too little time.
    #[error(
        "the host was too busy: QEMU had {cpu_s} s of processor time in {wall_s} s; try again with --jobs 1 or when the host is idle"
    )]
    Overloaded {
        /// Processor seconds it got.
        cpu_s: u64,
        /// Seconds that went by.
        wall_s: u64,
    },
    /// No room.
    #[error("no space left in {}: {needed_mib} MiB needed; free disk space, or name another directory with --home", .folder.display())]
    NoSpace {
        /// Where.
        folder: PathBuf,
        /// How much is needed.
        needed_mib: u64,
    },
    /// A file could not be read or written.
    #[error("failed to {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The job cannot be handed over.
    #[error(transparent)]
    Job(#[from] wire::JobError),
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}

impl MachineError {
    /// Returns whose fault it is.
    #[must_use]
    pub fn guilt(&self) -> Guilt {
        match self {
            Self::Job(_) => Guilt::User,
            _ => Guilt::Infra,
        }
    }

    /// Tells whether trying again at once could help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::QemuDied { .. } | Self::Overloaded { .. })
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { folder: path, needed_mib: 1 },
            _ => Self::Io { action, path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MachineError;
    use std::path::PathBuf;

    #[test]
    fn messages_say_what_where_and_what_to_do() {
        let space = MachineError::NoSpace { folder: PathBuf::from("/home/me/.local/share/marvin"), needed_mib: 320 };
        insta::assert_snapshot!(space, @"no space left in /home/me/.local/share/marvin: 320 MiB needed; free disk space, or name another directory with --home");
        let died = MachineError::QemuDied { how: "signal 9".into(), stderr: String::new() };
        insta::assert_snapshot!(died, @"QEMU exited unexpectedly (signal 9)");
        let busy = MachineError::Overloaded { cpu_s: 4, wall_s: 900 };
        insta::assert_snapshot!(busy, @"the host was too busy: QEMU had 4 s of processor time in 900 s; try again with --jobs 1 or when the host is idle");
    }
}
