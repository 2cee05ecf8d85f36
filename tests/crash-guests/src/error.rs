//! Errors of crash guests.

use std::io;
use std::path::{Path, PathBuf};

use kernel::KernelError;
use machine::MachineError;

/// A failure to boot or capture a crash guest.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The build lacks a module, or it cannot be read.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The lab has no build.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A file could not be read or written.
    #[error("failed to {action} {}: {source}", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The guest did not finish; the text says how far it got.
    #[error("the crash guest failed: {0}")]
    Guest(String),
}

impl CrashError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
