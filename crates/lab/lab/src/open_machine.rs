//! Opens the machine on which a lab measures: one of `machine`, or a server.

use std::sync::Arc;

use machine::{
    Backend, Exact, Local, Settings, Smp, Vm, VmShape, count_processors, processor_count,
};
use model::ServerSettings;
use server::{ServerAccess, ServerMachine};
use store::Location;

use crate::LabError;
use crate::lease::Lease;

/// A kind of machine that can be opened, with what it needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Exact,
    /// The exact machine with several processors.
    ExactSmp(Smp),
    Vm(VmShape),
    Local,
    Server(Box<ServerSettings>),
}

impl Wanted {
    /// Returns how many processors a job may use there, as the capabilities of the opened machine
    /// say.
    #[must_use]
    pub fn processors(&self) -> u32 {
        match self {
            Self::Exact => Exact::processors(None),
            Self::ExactSmp(smp) => Exact::processors(Some(*smp)),
            Self::Vm(shape) => shape.cpus,
            Self::Local => processor_count(),
            Self::Server(server) => count_processors(server.cpus.as_deref()),
        }
    }
}

/// Opens a machine. A server is reserved in the store first: only servers have several users.
///
/// # Errors
/// If no QEMU is usable, the data directory cannot be written, or a server is reserved by another
/// user or cannot be used.
pub(crate) fn open_machine(
    wanted: Wanted,
    settings: Settings,
    store: Location,
) -> Result<Arc<dyn Backend>, LabError> {
    Ok(match wanted {
        Wanted::Exact => Arc::new(Exact::open(settings, None)?),
        Wanted::ExactSmp(smp) => Arc::new(Exact::open(settings, Some(smp))?),
        Wanted::Local => Arc::new(Local::open(&settings)?),
        Wanted::Vm(shape) => Arc::new(Vm::open(settings, shape)?),
        Wanted::Server(server) => {
            let lease = Lease::take(store, &server.name)?;
            let access = ServerAccess {
                home: settings.home,
                agent: settings.programs.agent,
                limits: settings.limits,
                permit: Some(Arc::new(lease)),
            };
            Arc::new(ServerMachine::open(*server, &access)?)
        }
    })
}
