//! Kernels, builds, runs and samples in SQLite; raw artefacts beside it.
//!
//! Everything lies in one folder, the home: `marvin.db`, `artefacts/<run>/<name>.zst`, and `lock`, held by whoever
//! measures. Leaves to others: what ids are made of, what a run's artefacts mean, when something is out of date, and
//! the time of day (it has no clock; times come from the caller).

mod artefacts;
mod builds;
mod codes;
mod columns;
mod decisions;
mod error;
mod growth;
mod home;
mod kernels;
mod lock;
mod lookup;
mod machines;
mod notices;
#[cfg(test)]
mod processes;
mod queue;
mod runs;
mod samples;
mod schema;
mod store;
#[cfg(test)]
mod testing;

pub use artefacts::Artefact;
pub use error::{Guilt, StoreError};
pub use kernels::SeenKernel;
pub use lock::{HomeLock, WorkerLock};
pub use notices::{Delivery, Notice};
pub use queue::{Listed, QueueError, Queued};
pub use runs::RunSummary;
pub use store::Store;
