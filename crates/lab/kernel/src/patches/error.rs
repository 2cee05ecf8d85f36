//! Errors between what a user names and its patches.

use std::path::PathBuf;

use model::Fault;

use crate::KernelError;

/// Why patches are not read.
#[derive(Debug, thiserror::Error)]
pub enum PatchesError {
    /// A file is unreadable.
    #[error("cannot read the patch {}: {detail}; name a patch, a mailbox or a folder of patches", file.display())]
    Unreadable { file: PathBuf, detail: String },
    /// More than Marvin reads.
    #[error("cannot read the patches in {}: {limit}; name fewer", place.display())]
    TooMuch {
        /// The file or folder.
        place: PathBuf,
        limit: String,
    },
    /// No patch at all.
    #[error("no patch in {}: {detail}", place.display())]
    NoPatch {
        /// The file or folder.
        place: PathBuf,
        /// What is there instead, and what to do.
        detail: String,
    },
    /// git cannot read a mail.
    #[error("cannot read mail {number} of {}: git says `{detail}`; remove or repair it", file.display())]
    Mail {
        file: PathBuf,
        /// Its number, from 1.
        number: usize,
        detail: String,
    },
    /// A line of a quilt series is one that Marvin does not follow.
    #[error("line {line} of {}: {detail}", file.display())]
    Series {
        file: PathBuf,
        line: usize,
        /// The fault, and what to do.
        detail: String,
    },
    /// The file is a log of several commits, the newest first.
    #[error(
        "cannot read {}: it has several commits as `git log -p` prints them, newest first\nhint: `git format-patch --stdout OLDER..NEWER`",
        file.display()
    )]
    Log { file: PathBuf },
    /// Another error, such as one of git.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl PatchesError {
    /// Returns who has to act on it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Kernel(error) => error.fault(),
            _ => Fault::User,
        }
    }
}
