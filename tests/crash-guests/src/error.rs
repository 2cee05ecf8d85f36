//! What can go wrong with a crash guest.

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
    /// QEMU failed.
    #[error(transparent)]
    Machine(#[from] MachineError),
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
    /// The guest did not come to its end; the text says how far it got.
    #[error("the crash guest failed: {0}")]
    Guest(String),
}

impl CrashError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
