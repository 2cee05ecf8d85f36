//! The interface between plans and machines. Only the module of a machine knows what is behind it:
//! a snapshot, an emulator, a server.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Build, Capabilities, CostModel, GuestConfig, Machine, SubjectFailure};
use wire::{Job, Stream};

use crate::guest_terminal::{GuestTerminal, Pace};
use crate::{Disturbance, InitrdFile, MachineError};

/// A machine that boots builds; several threads may use it at the same time. It sets its own
/// deadlines per stage, as stages take longer on some machines. A kernel's failure is a value; an
/// error is the lab's failure.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Returns the machine's identity, under which results are stored.
    fn identity(&self) -> &Machine;

    /// Returns what this machine can do.
    fn capabilities(&self) -> Capabilities;

    /// Returns the drivers that a build should have there. The lab carries their modules with the
    /// guest.
    fn drivers(&self) -> &[Driver] {
        &[]
    }

    /// Returns this machine with another guest config and, if given, an archive of files: another
    /// machine.
    ///
    /// # Errors
    /// If it cannot be prepared.
    fn with_guest_config(
        &self,
        guest_config: &GuestConfig,
        files: Option<&Path>,
    ) -> Result<Arc<dyn Backend>, MachineError>;

    /// Boots a build up to the point where jobs start. A replicate is one boot; on a deterministic
    /// machine, equal replicates are equal boots.
    ///
    /// # Errors
    /// If the lab fails.
    fn boot(
        self: Arc<Self>,
        guest: &Guest<'_>,
        replicate: u64,
    ) -> Result<BootOutcome, MachineError>;

    /// Boots a build again that failed to boot, to dump its kernel's memory; `None` if it does not
    /// die this time.
    ///
    /// # Errors
    /// If the lab fails.
    fn boot_to_death(
        &self,
        _: &Guest<'_>,
        _replicate: u64,
    ) -> Result<Option<DeadMemory>, MachineError> {
        Ok(None)
    }

    /// Leaves the machine as it was found. Call it when nothing is booted and no boot will follow.
    ///
    /// # Errors
    /// If the machine does not return.
    fn close(&self) -> Result<(), MachineError> {
        Ok(())
    }
}

/// A driver of a machine's own kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The name of its module.
    pub name: String,
    /// What needs it, if a boot without it fails: `the root disk`; otherwise empty.
    pub needed_by: String,
}

/// A build that a machine has booted; dropping it ends the guest.
pub trait Booted: fmt::Debug + Send + Sync {
    /// Returns a remark about an unusual boot.
    fn remark(&self) -> Option<&str> {
        None
    }

    /// Returns what it printed until jobs could start; empty if that is part of the first job's
    /// console, or not known.
    fn boot_console(&self) -> &[u8] {
        &[]
    }

    /// Executes one job.
    ///
    /// # Errors
    /// If the lab fails.
    fn run(&self, job: &Job, observe: Observe<'_>) -> Result<JobEnd, MachineError>;

    /// Starts a job whose guest has its serial line for a user; the inner error is the kernel's
    /// failure.
    ///
    /// # Errors
    /// If the lab fails, or this machine has no guest with a line of its own.
    fn open_terminal(
        &self,
        _: &Job,
        _: Pace,
    ) -> Result<Result<GuestTerminal, SubjectFailure>, MachineError> {
        Err(MachineError::NoTerminal)
    }

    /// Executes a job again during which the kernel died, to dump its memory; `None` if it does not
    /// die this time.
    ///
    /// # Errors
    /// If the lab fails.
    fn run_to_death(&self, _: &Job) -> Result<Option<DeadMemory>, MachineError> {
        Ok(None)
    }

    /// Releases the machine in its state before the boot.
    ///
    /// # Errors
    /// If the lab fails.
    fn release(self: Box<Self>) -> Result<(), MachineError> {
        Ok(())
    }
}

/// What a guest boots and carries.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'a> {
    pub build: &'a Build,
    /// Its modules and their list, in the loader's format; empty for a guest config without
    /// modules.
    pub modules: &'a [InitrdFile],
}

/// How a boot ended. The lab's own failures are errors beside it.
#[derive(Debug)]
pub enum BootOutcome {
    Ready(Box<dyn Booted>),
    KernelFailed {
        failure: SubjectFailure,
        /// All that it printed.
        console: Vec<u8>,
    },
    /// The build lacks something that its guest needs, and was not booted; why. Machines do not
    /// return it: the lab, which fetches modules, finds it out before.
    Unsupported(String),
}

/// What to observe during a job. It does not change what the guest does; [`Capabilities`] say what
/// a machine can observe.
#[derive(Debug, Clone, Copy)]
pub enum Observe<'a> {
    /// Only the agent's frames.
    Nothing,
    /// Instructions by address and by who executes them; the text has the tracer's marks.
    Counts(&'a str),
    /// Calls as well; the marks contain all functions.
    Calls(&'a str),
    /// Lines that move between processors, and entries of the functions in the text.
    Sharing(&'a str),
    /// Counts, and events of a simulated processor.
    Model(&'a str, &'a CostModel),
    /// Counts, and the kernel instructions of the iteration of this number, from 0, in their order.
    Path(&'a str, u64),
}

/// The end of a job.
#[derive(Debug)]
pub struct JobEnd {
    /// The agent's frames, or the kernel's failure.
    pub stream: Result<Stream, SubjectFailure>,
    /// The whole console, with the frames in it.
    pub console: Vec<u8>,
    /// The counts, if requested and if the guest ended by itself.
    pub counts: Option<Vec<u8>>,
    /// The call tree, under the same conditions.
    pub calls: Option<Vec<u8>>,
    /// The instructions in their order, under the same conditions.
    pub path: Option<Vec<u8>>,
    /// The lines of memory that moved between processors, on a machine that follows them, under
    /// the same conditions.
    pub shared: Option<Vec<u8>>,
    /// What disturbed it on the host, if the machine measures time and the job took long enough to
    /// tell.
    pub disturbance: Option<Disturbance>,
}

impl JobEnd {
    /// Returns the end of a job that was not observed, and of which no disturbance is known.
    #[must_use]
    pub const fn unobserved(stream: Result<Stream, SubjectFailure>, console: Vec<u8>) -> Self {
        Self {
            stream,
            console,
            counts: None,
            calls: None,
            path: None,
            shared: None,
            disturbance: None,
        }
    }
}

/// The memory of a kernel that died, in a file that exists as long as this value.
#[derive(Debug)]
pub struct DeadMemory {
    /// A memory dump, filtered or not.
    pub file: PathBuf,
    _folder: Box<dyn Keep>,
}

/// A resource that removes itself when dropped.
trait Keep: Any + fmt::Debug + Send {}
impl<T: Any + fmt::Debug + Send> Keep for T {}

impl DeadMemory {
    /// Keeps the folder, which has the file, until the memory is dropped.
    #[must_use]
    pub fn new(file: PathBuf, folder: impl Any + fmt::Debug + Send) -> Self {
        Self {
            file,
            _folder: Box::new(folder),
        }
    }
}

/// Returns a hash of a build's modules that guests carry.
#[must_use]
pub fn modules_hash(modules: &[InitrdFile]) -> String {
    let lengths: Vec<String> = modules
        .iter()
        .map(|file| format!("{} {}\n", file.path, file.bytes.len()))
        .collect();
    let parts = lengths
        .iter()
        .map(String::as_bytes)
        .zip(modules.iter().map(|file| &*file.bytes));
    crate::hash(
        &parts
            .flat_map(|(name, bytes)| [name, bytes])
            .collect::<Vec<_>>(),
    )
}
