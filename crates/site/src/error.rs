//! What can go wrong at a site, and whose fault it is.

use std::path::PathBuf;

use model::Guilt;
use store::{QueueError, StoreError};

/// A failure of a site.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue refused something, or the store failed with it.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The settings cannot be read.
    #[error("{}: {what}", file.display())]
    Settings {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, with the line.
        what: String,
    },
}

impl SiteError {
    /// Returns whose fault it is.
    #[must_use]
    pub fn guilt(&self) -> Guilt {
        match self {
            Self::Store(error) => error.guilt(),
            Self::Queue(error) => error.guilt(),
            Self::Settings { .. } => Guilt::User,
        }
    }
}
