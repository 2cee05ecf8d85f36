//! Failures of a machine that are not the kernel's fault.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use archives::ArchiveError;
use model::{Fault, FileSystem};

use crate::qemu::{QemuProblem, ReleaseProblem, find_fix};

/// A failure of a machine that another crate implements: this crate carries it to the lab, and
/// knows only whether a retry may help.
#[derive(Debug)]
pub struct BackendFault {
    error: Box<dyn Error + Send + Sync>,
    is_passing: bool,
}

impl BackendFault {
    /// Wraps an error; `is_passing` if an immediate retry may succeed.
    #[must_use]
    pub fn new(error: impl Error + Send + Sync + 'static, is_passing: bool) -> Self {
        Self {
            error: Box::new(error),
            is_passing,
        }
    }

    /// Returns the error, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }
}

impl fmt::Display for BackendFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for BackendFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// A failure of the lab while it works with a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// There is no usable QEMU.
    #[error(transparent)]
    Qemu(#[from] QemuProblem),
    /// The packages of the reference QEMU could not be had.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// They have other files than Marvin's list says.
    #[error("cannot set QEMU up from its packages: {detail}: a fault of Marvin's list")]
    Bundle { detail: String },
    /// A release did not give the reference QEMU.
    #[error(transparent)]
    Release(#[from] ReleaseProblem),
    /// A machine that another crate implements could not be used.
    #[error(transparent)]
    Backend(#[from] BackendFault),
    /// QEMU ended without a request from the guest.
    #[error("QEMU exited unexpectedly ({how}){}", format_printed(.stderr))]
    QemuDied {
        /// Exit status or signal.
        how: String,
        stderr: String,
    },
    /// QEMU refused a command.
    #[error("QEMU refused `{command}`: {answer}")]
    Refused { command: String, answer: String },
    /// QEMU executed a breakpoint that was no longer there.
    #[error(
        "QEMU executed a breakpoint that the kernel had removed (oops: int3): a fault of its TCG, not of the kernel"
    )]
    Breakpoint,
    /// The host gave QEMU too little processor time.
    #[error(
        "the host was too busy: QEMU had {cpu_s} s of processor time in {wall_s} s; try again with --jobs 1 or when the host is idle"
    )]
    Overloaded {
        /// Processor time used (s).
        cpu_s: u64,
        wall_s: u64,
    },
    /// The disk is full.
    #[error("no space left in {}: {needed_mib} MiB needed; free disk space, or name another directory with --home", .folder.display())]
    NoSpace {
        folder: PathBuf,
        /// The space needed (MiB).
        needed_mib: u64,
    },
    /// The host has no program that makes a file system.
    #[error(
        "cannot make a scratch disk with {file_system}: there is no program {program}\nhint: apt-get install {package}"
    )]
    NoMkfs {
        file_system: FileSystem,
        program: &'static str,
        package: &'static str,
    },
    /// A file system could not be made.
    #[error("cannot make a scratch disk with {file_system}: {why}")]
    NoFileSystem {
        file_system: FileSystem,
        why: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The agent could not set this host for measuring, or back.
    #[error("cannot set this host for measuring, or back: {why}; what it was is in {}", .undo.display())]
    NotPrepared {
        /// What the agent says.
        why: String,
        undo: PathBuf,
    },
    /// The machine has no guest of its own whose serial line a user could have.
    #[error("this machine opens no shell in its guests: use exact or vm")]
    NoTerminal,
    /// The job cannot be encoded.
    #[error(transparent)]
    Job(#[from] wire::JobError),
}

/// Formats what QEMU printed, with what mends it.
fn format_printed(stderr: &str) -> String {
    match (stderr.is_empty(), find_fix(stderr)) {
        (true, _) => String::new(),
        (false, None) => format!(": {stderr}"),
        (false, Some(fix)) => format!(": {stderr}\nhint: {fix}"),
    }
}

impl MachineError {
    /// Returns whose fault the error is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Job(_) | Self::NoTerminal => Fault::User,
            Self::Release(problem) => problem.fault(),
            _ => Fault::Lab,
        }
    }

    /// Returns whether an immediate retry may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Backend(fault) => fault.is_passing,
            // What the host lacks it lacks at the next try, too.
            Self::QemuDied { stderr, .. } => find_fix(stderr).is_none(),
            Self::Overloaded { .. } | Self::Breakpoint => true,
            _ => false,
        }
    }

    /// Returns what makes an error of a failed action on a file.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace {
                folder: path,
                needed_mib: 1,
            },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MachineError;
    use std::path::PathBuf;

    #[test]
    fn messages_say_what_where_and_what_to_do() {
        let space = MachineError::NoSpace {
            folder: PathBuf::from("/home/me/.local/share/marvin"),
            needed_mib: 320,
        };
        insta::assert_snapshot!(space, @"no space left in /home/me/.local/share/marvin: 320 MiB needed; free disk space, or name another directory with --home");
        let died = MachineError::QemuDied {
            how: "signal 9".into(),
            stderr: String::new(),
        };
        insta::assert_snapshot!(died, @"QEMU exited unexpectedly (signal 9)");
        let without_firmware = MachineError::QemuDied {
            how: "exit status 1".into(),
            stderr: "qemu: could not load PC BIOS 'bios-microvm.bin'".into(),
        };
        assert!(died.is_passing() && !without_firmware.is_passing());
        insta::assert_snapshot!(without_firmware, @r"
        QEMU exited unexpectedly (exit status 1): qemu: could not load PC BIOS 'bios-microvm.bin'
        hint: its firmware is not on this host: `marvin setup` brings a QEMU with its own
        ");
        let busy = MachineError::Overloaded {
            cpu_s: 4,
            wall_s: 900,
        };
        insta::assert_snapshot!(busy, @"the host was too busy: QEMU had 4 s of processor time in 900 s; try again with --jobs 1 or when the host is idle");
    }
}
