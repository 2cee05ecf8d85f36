//! What goes wrong with images.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use subprocess::ProgramError;

/// An image cannot be made, or used.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// A file of this host.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A program is missing on this host.
    #[error("images of Debian need {program} on this host\nhint: apt-get install {package}")]
    Missing {
        program: &'static str,
        package: &'static str,
    },
    /// A program cannot be run.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The program that makes the image failed.
    #[error("cannot make image {name}: {answer}\nhint: the whole log is in {}", log.display())]
    Failed {
        name: String,
        answer: String,
        log: PathBuf,
    },
    /// The program that makes the image left no image.
    #[error("cannot make image {name}: its program left no {file} in its directory")]
    Incomplete { name: String, file: &'static str },
    /// An image was not made yet, or is gone.
    #[error("no image {name} here: marvin deploy makes it")]
    Unknown { name: String },
    /// An image is being made.
    #[error("cannot look for unused images in {}: one is being made\nhint: try again when marvin deploy has made it", path.display())]
    Busy {
        /// The directory of the images.
        path: PathBuf,
    },
    /// A file of an image is not what it was.
    #[error("image {name} is damaged: {} has another hash\nhint: marvin deploy MACHINE {name} --rebuild makes it again", path.display())]
    Damaged { name: String, path: PathBuf },
    /// Marvin cannot listen for servers.
    #[error(
        "cannot listen for iPXE at {address}: {source}\nhint: another marvin deploy may listen there; pxe in [machine.deploy] names the address"
    )]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
}

impl DeployError {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
