//! Errors of an import, and who has to act on them.

use std::path::PathBuf;

use model::{Fault, IdError};
use store::StoreError;

/// A failure of an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The directory is no result of the suite, or cannot be read.
    #[error("cannot import {}: {what}", folder.display())]
    Folder {
        /// The directory, or the file in it.
        folder: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// A hash is no id: a bug.
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ImportError {
    /// Returns who has to act on it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Folder { .. } => Fault::User,
            Self::Id(_) => Fault::Lab,
            Self::Store(error) => error.fault(),
        }
    }
}
