//! Kernels, builds, runs, samples and artifacts, in SQLite or PostgreSQL behind one type.
//!
//! A data directory has `marvin.db` (SQLite), `artifacts/<run>/<name>.zst` and `lock`, which a
//! measuring process holds; a PostgreSQL store has everything in its database. The callers define
//! ids, interpret artifacts, decide what is out of date, and pass the time.

mod artifacts;
mod backup;
mod builds;
mod check;
mod checksum;
#[cfg(any(test, feature = "cluster"))]
pub mod cluster;
mod codes;
mod columns;
mod database;
mod decisions;
mod error;
mod expiry;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod growth;
mod health;
mod home;
mod kernels;
mod location;
mod lock;
mod lookup;
mod machines;
mod notices;
#[cfg(test)]
mod processes;
mod queue;
mod reservations;
mod retention;
#[cfg(test)]
mod roles_tests;
mod runs;
mod samples;
mod schema;
#[cfg(test)]
mod server_tests;
mod store;
#[cfg(test)]
mod testing;

pub use artifacts::Artifact;
pub use backup::{Backup, restore};
pub use check::{Checked, Damage};
pub use error::{AccessError, BackupError, InUse, LookupError, StoreError, VersionError};
pub use expiry::{Expired, Expiry};
pub use home::is_writable;
pub use kernels::SeenKernel;
pub use location::{Address, Location};
pub use lock::{HomeLock, WorkerLock, has_worker};
pub use notices::{Delivery, Notice};
pub use queue::{JobCount, Listed, QueueError, QueueOverview, Queued};
pub use reservations::ReservationError;
pub use retention::{Garbage, PINNED, Retention};
pub use runs::RunSummary;
pub use store::{Store, Upgraded};
