//! What can go wrong with the rack: mostly, that the host lacks a program.

use std::io;
use std::path::{Path, PathBuf};

use subprocess::ProgramError;

/// A failure of the rack.
#[derive(Debug, thiserror::Error)]
pub enum RackError {
    /// The host lacks a program.
    #[error("cannot make servers for tests: there is no `{program}`\nhint: apt install {package}")]
    Missing {
        program: &'static str,
        /// Debian's package that has it.
        package: &'static str,
    },
    #[error("`{command}` failed: {reason}")]
    Failed { command: String, reason: String },
    /// A program could not run.
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("cannot {verb} {}: {source}", path.display())]
    Io {
        verb: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// QEMU did not do as it should.
    #[error("QEMU of {server}: {reason}")]
    Qemu { server: String, reason: String },
    /// A server did not answer in time.
    #[error("{server} has no ssh after {seconds} s; its console ends:\n{console}")]
    NoSsh {
        server: String,
        seconds: u64,
        /// The end of its console.
        console: String,
    },
    /// All places are taken.
    #[error("all {0} places of the rack are taken")]
    Full(usize),
}

impl RackError {
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { verb, path, source }
    }
}
