//! Machines: where a build is booted and a job is done.
//!
//! `backend.rs` says what every machine is to whoever plans work; the first is the exact one (`exact/`), QEMU with
//! instruction counting and no outside input. The second does what a test says (`fake.rs`). QEMU itself is in `qemu/`. What a
//! result means is left to `ingest` and `report`; which jobs are done in which order is left to `lab`.

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

/// Opens the machine that these settings describe. So far there is one kind, the exact machine.
///
/// # Errors
/// When there is no usable QEMU or the home cannot be written.
pub fn open(settings: Settings) -> Result<Arc<dyn Backend>, MachineError> {
    Ok(Arc::new(exact::Exact::open(settings)?))
}

/// Returns the SHA-256 of the concatenated parts as hexadecimal digits.
fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
