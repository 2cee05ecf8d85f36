//! Errors between a kernel's name and its build, each with a message that says what to do.
//!
//! `image::ImageFault` has the faults of an image itself.

use std::io;
use std::path::{Path, PathBuf};

use archives::ArchiveError;
use model::Fault;

use crate::ImageFault;

/// Why a name did not become a build.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// An archive does not provide a package.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// An archive cannot be reached or trusted.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A suite has kernels, but not this one.
    #[error("{suite} has no kernel `{requested}`; {instead}")]
    Unknown {
        suite: String,
        requested: String,
        instead: String,
    },
    /// A kernel that only another suite measured.
    #[error(
        "cannot boot {0}: it was imported and has results but no image; `marvin report` compares stored results"
    )]
    Imported(String),
    /// A name that stands for all images of this host.
    #[error("`installed:` names all images of this host, and one is needed: {instead}")]
    AllInstalled { instead: String },
    /// This host has not installed the kernel.
    #[error("this host has no image for {requested}: {instead}")]
    NotInstalled {
        /// The name, and what it stands for.
        requested: String,
        instead: String,
    },
    /// This host's image is not readable for the user.
    #[error(
        "cannot read {}: {detail}\nhint: sudo chmod 0644 {} (dpkg-statoverride --add keeps it so), or take {release} from its distribution's archive, such as ubuntu:VERSION",
        file.display(),
        file.display()
    )]
    InstalledUnreadable {
        file: PathBuf,
        detail: String,
        release: String,
    },
    /// The cache lacks a build, and may not make it now.
    #[error("the cache has no build of {0}")]
    NotMade(String),
    /// No host has put the build where others find it.
    #[error(
        "cannot fetch the build {id}: it is not whole in the directory that hosts share\nhint: `builds` below [work] in marvin.toml"
    )]
    NotShared { id: String },
    /// A program of this host failed.
    #[error("`{command}` failed: {detail}")]
    Program {
        /// The program and its arguments.
        command: String,
        detail: String,
    },
    /// A userland is too large for any guest.
    #[error("the files of a userland have more than {bytes_max} bytes: name fewer in `files`")]
    LargeUserland { bytes_max: u64 },
    /// A file cannot be booted.
    #[error("{what}: {fault}")]
    Image {
        /// The file, or the package and its version.
        what: String,
        fault: ImageFault,
    },
    /// A module cannot be unpacked.
    #[error("{}: this module is damaged: {detail}; install or build it again", file.display())]
    Module { file: PathBuf, detail: String },
    /// Modules exceed a limit.
    #[error("{}: {limit}; Marvin loads no such modules: install or build them again", file.display())]
    Modules {
        /// The file that exceeds it.
        file: PathBuf,
        limit: String,
    },
    /// The data directory cannot be used.
    #[error("cannot use the data directory {}: {source}", folder.display())]
    Home { folder: PathBuf, source: io::Error },
    /// The disk is full.
    #[error("no space left on the device of {}: free disk space there and try again", folder.display())]
    NoSpace {
        /// The directory that was written to.
        folder: PathBuf,
    },
    /// A file of the cache could not be read or written.
    #[error("{} could not be used: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// A source did not become an image.
    #[error(transparent)]
    Source(#[from] crate::source::SourceError),
    /// A hash that is no id.
    #[error(transparent)]
    Id(#[from] model::IdError),
}

/// A package that an archive does not provide.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// A suite without kernels.
    #[error("{suite} has no kernel package for amd64: name another suite ({scheme}:SUITE/VERSION)")]
    NoKernels { suite: String, scheme: &'static str },
    /// The package with a kernel's image is missing from the lists.
    #[error(
        "cannot get {package}: the lists of the archive lack {missing}, which has its image\nhint: name a day when it was \
         there ({scheme}:SUITE@DATE/PACKAGE), or an image file with path:FILE"
    )]
    NoImagePart {
        /// The kernel's package and its version.
        package: String,
        /// The package with its image.
        missing: String,
        scheme: &'static str,
    },
    /// A package contains no kernel.
    #[error("package {0} has no boot/vmlinuz-*: name another one")]
    NoImage(String),
}

impl KernelError {
    /// Returns who has to act on it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Archive(error) => error.fault(),
            Self::Package(_)
            | Self::Unknown { .. }
            | Self::LargeUserland { .. }
            | Self::Imported(_)
            | Self::AllInstalled { .. }
            | Self::NotInstalled { .. }
            | Self::InstalledUnreadable { .. }
            | Self::NotShared { .. }
            | Self::Image { .. }
            | Self::Module { .. }
            | Self::Modules { .. }
            | Self::Home { .. } => Fault::User,
            Self::Source(error) => error.fault(),
            Self::Program { .. }
            | Self::NotMade(_)
            | Self::NoSpace { .. }
            | Self::Io { .. }
            | Self::Id(_) => Fault::Lab,
        }
    }

    /// Makes I/O errors on `path`; a full disk is an error with another remedy.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace {
                folder: path.parent().unwrap_or(path).to_owned(),
            },
            _ => Self::Io {
                path: path.to_owned(),
                source,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::path::Path;

    use super::{Fault, KernelError, PackageError};

    #[test]
    fn full_disk_is_its_own_error() {
        let full = Path::new("/dev/full");
        let error = std::fs::write(full, "x")
            .map_err(KernelError::io(full))
            .unwrap_err();
        insta::assert_snapshot!(error, @"no space left on the device of /dev: free disk space there and try again");
        assert_eq!(error.fault(), Fault::Lab);
    }

    #[test]
    fn every_message_says_what_to_do() {
        let package = "linux-image-6.1.0-56-amd64 6.1.192-2".to_owned();
        let messages = [
            KernelError::Package(PackageError::NoKernels {
                suite: "Debian's buster".to_owned(),
                scheme: "deb",
            }),
            KernelError::Program {
                command: "tar -c x".to_owned(),
                detail: "exit status 2".to_owned(),
            },
            KernelError::Package(PackageError::NoImage(package)),
            KernelError::Home {
                folder: "/home/me/marvin".into(),
                source: Error::from(ErrorKind::PermissionDenied),
            },
            KernelError::io(Path::new("/home/builds/x"))(Error::from(ErrorKind::PermissionDenied)),
        ]
        .map(|error| format!("{:?}: {error}", error.fault()))
        .join("\n");
        insta::assert_snapshot!(messages, @"
        User: Debian's buster has no kernel package for amd64: name another suite (deb:SUITE/VERSION)
        Lab: `tar -c x` failed: exit status 2
        User: package linux-image-6.1.0-56-amd64 6.1.192-2 has no boot/vmlinuz-*: name another one
        User: cannot use the data directory /home/me/marvin: permission denied
        Lab: /home/builds/x could not be used: permission denied
        ");
    }
}
