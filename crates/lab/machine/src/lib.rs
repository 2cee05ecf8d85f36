//! Machines: they boot a build and execute its jobs.
//!
//! `backend.rs` is the interface of every machine. The first machine is the exact one (`exact/`),
//! QEMU with instruction counting and no outside input; `vm` is QEMU with several processors and
//! real time, `local` this host, `server` one that ssh reaches, and `fake` follows a script, for
//! tests. `qemu/` controls QEMU itself. `ingest` and `report` interpret results; `lab` decides
//! which jobs run in which order.

mod agent_process;
mod backend;
mod console;
mod error;
mod exact;
#[cfg(feature = "fake")]
mod fake;
mod host;
mod initrd;
mod initrds;
mod load;
mod local;
mod prepared;
pub mod qemu;
mod server;
mod settings;
mod switched;
mod vm;

use std::sync::Arc;

use model::{Machine, MachineId, MachineKind, ServerSettings};
use sha2::{Digest, Sha256};

pub use ::deploy::Image;
pub use backend::{
    Backend, Boot, Booted, DeadMemory, Driver, Guest, JobEnd, Observe, modules_hash,
};
pub use console::{readable_tail, reason_in};
pub use error::MachineError;
pub use exact::{Costs, Smp, hash_memory};
#[cfg(feature = "fake")]
pub use fake::{Asked, Does, Fake};
pub use host::{host_mark, person};
pub use initrd::{InitrdFile, Programs, initrd_of};
pub use load::Disturbance;
pub use local::this_boot;
pub use server::{
    Permit, ServerLook, ServerProblem, ServerState, accept, deploy, images_in_use, install, look,
    server_state, switch_off, undeploy,
};
pub use settings::{Limits, Settings, SnapshotUse, free_mib};
pub use switched::{SwitchError, SwitchLock, Switched, Switching};
pub use vm::VmShape;

/// A kind of machine that can be opened, with what it needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The exact machine.
    Exact,
    /// The exact machine with several processors.
    ExactSmp(Smp),
    /// A virtual machine.
    Vm(VmShape),
    /// This host.
    Local,
    /// A server.
    Server(Box<ServerSettings>),
}

impl Wanted {
    /// Returns how many processors a job may use there, as the capabilities of the opened machine
    /// say.
    #[must_use]
    pub fn processors(&self) -> u32 {
        match self {
            Self::Exact => MachineKind::Exact.capabilities().processors,
            Self::ExactSmp(smp) => smp.cpus,
            Self::Vm(shape) => shape.cpus,
            Self::Local => host::processor_count(),
            Self::Server(server) => host::count(server.cpus.as_deref()),
        }
    }
}

/// Opens a machine.
///
/// # Errors
/// If no QEMU is usable or the data directory cannot be written.
pub fn open(wanted: Wanted, settings: Settings) -> Result<Arc<dyn Backend>, MachineError> {
    Ok(match wanted {
        Wanted::Exact => Arc::new(exact::Exact::open(settings, None)?),
        Wanted::ExactSmp(smp) => Arc::new(exact::Exact::open(settings, Some(smp))?),
        Wanted::Local => Arc::new(local::Local::open(&settings)?),
        Wanted::Server(server) => Arc::new(server::OnServer::open(*server, &settings)?),
        Wanted::Vm(shape) => Arc::new(vm::Vm::open(settings, shape)?),
    })
}

/// Returns a machine whose id is the hash of its kind and its fingerprint.
fn identify(
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
fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
