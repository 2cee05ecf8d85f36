//! Machines: they boot a build and execute its jobs.
//!
//! `backend.rs` is the interface of every machine. The first machine is the exact one (`exact/`),
//! QEMU with instruction counting and no outside input; `vm` is QEMU with several processors and
//! real time, `local` this host, and `fake` follows a script, for tests. The crate `server` has
//! another one, which ssh reaches. `qemu/` controls QEMU itself. `ingest` and `compare` interpret
//! results; `lab` opens machines and decides which jobs run in which order.

mod agent_process;
mod backend;
mod console;
mod error;
mod exact;
#[cfg(feature = "fake")]
mod fake;
mod guest_terminal;
mod host;
mod initrd;
mod initrds;
mod load;
mod local;
mod prepared;
pub mod qemu;
mod settings;
mod switched;
mod vm;

use model::{Machine, MachineId, MachineKind};
use sha2::{Digest, Sha256};

pub use agent_process::{machine_for, read_end, refuse_guest_config};
pub use backend::{
    Backend, BootOutcome, Booted, DeadMemory, Driver, Guest, JobEnd, Observe, modules_hash,
};
pub use console::{check_emulator, outcome_of, readable_tail, reason_in, until_next_kernel};
pub use error::{BackendFault, MachineError};
pub use exact::{Costs, Exact, ReferenceNumbers, Smp, hash_memory};
#[cfg(feature = "fake")]
pub use fake::{Does, Fake, FakeRequest};
pub use guest_terminal::{GuestTerminal, Heard, Pace};
pub use host::{count_processors, host_mark, person, processor_count};
pub use initrd::{InitrdFile, Programs, archive_of, archive_of_settings, initrd_of};
pub use load::{Disturbance, take_disturbance};
pub use local::{Local, this_boot};
pub use prepared::report_frame;
pub use settings::{Limits, ScratchFolder, Settings, SnapshotUse, free_mib};
pub use switched::{SwitchError, SwitchLock, Switched, Switching};
pub use vm::{Vm, VmShape};

/// Returns a machine whose id is the hash of its kind and its fingerprint.
///
/// # Errors
/// If the id cannot be made.
pub fn identify(
    kind: MachineKind,
    summary: String,
    mut fingerprint: Vec<(String, String)>,
) -> Result<Machine, MachineError> {
    fingerprint.sort();
    let text: String = fingerprint
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    let digest = hash(&[format!("{kind}\n").as_bytes(), text.as_bytes()]);
    let id = MachineId::from_hex(&digest).map_err(|error| MachineError::Refused {
        command: "sha256".into(),
        answer: error.to_string(),
    })?;
    Ok(Machine {
        id,
        kind,
        summary,
        fingerprint,
    })
}

/// Returns the SHA-256 of the concatenated parts as hexadecimal digits.
#[must_use]
pub fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    model::hexadecimal(&hasher.finalize())
}
