//! Machines: they boot a build and execute its jobs.
//!
//! `backend.rs` is the interface of every machine. The first machine is the exact one (`exact/`), QEMU with instruction
//! counting and no outside input; the second is scripted, for tests (`fake.rs`). `qemu/` controls QEMU itself. `ingest`
//! and `report` interpret results; `lab` decides which jobs run in which order.

mod backend;
mod console;
mod error;
mod exact;
#[cfg(feature = "fake")]
mod fake;
mod initrd;
pub mod qemu;

use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use backend::{Backend, Boot, Booted, DeadMemory, Guest, JobEnd, Observe, modules_hash};
pub use console::{readable_tail, reason_in};
pub use error::MachineError;
pub use exact::{Limits, Settings, SnapshotUse, free_mib, hash_memory};
#[cfg(feature = "fake")]
pub use fake::{Asked, Does, Fake};
pub use initrd::{InitrdFile, Programs, initrd_of};

/// Opens the machine with these settings. There is one kind so far, the exact machine.
///
/// # Errors
/// If no QEMU is usable or the data directory cannot be written.
pub fn open(settings: Settings) -> Result<Arc<dyn Backend>, MachineError> {
    Ok(Arc::new(exact::Exact::open(settings)?))
}

/// Returns the SHA-256 of the concatenated parts as hexadecimal digits.
fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
