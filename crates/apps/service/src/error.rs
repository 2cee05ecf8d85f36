//! Errors of a site, and whose fault each is.

use model::Fault;
use store::{QueueError, StoreError};

use crate::BatchError;

/// A failure of a site.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue refused a change, or its store failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The batch system does not answer.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl ServiceError {
    /// Returns whose fault the error is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Store(error) => error.fault(),
            Self::Queue(error) => error.fault(),
            Self::Batch(_) => Fault::Lab,
        }
    }
}
