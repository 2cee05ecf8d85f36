//! The seam: what every machine is to whoever plans work for it. What is behind it (a snapshot, an emulator, a server) is
//! known to its own module only.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Build, Capabilities, CostModel, Equipment, Machine, SubjectFailure};
use wire::{Job, Stream};

use crate::{InitrdFile, MachineError};

/// A machine that boots builds. May be used by several threads at once. Its deadlines are its own, by stage: what is long
/// on one is short on another. A kernel that fails is a value; an error is the lab's failure.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Returns what results are filed under.
    fn identity(&self) -> &Machine;

    /// Returns what this machine can do.
    fn capabilities(&self) -> Capabilities;

    /// Returns this machine with other equipment, and an archive of files where it is to carry one: another machine.
    ///
    /// # Errors
    /// When it cannot be prepared.
    fn equipped(&self, equipment: &Equipment, files: Option<&Path>) -> Result<Arc<dyn Backend>, MachineError>;

    /// Boots a build up to the point where jobs start. A replicate is one boot; where a machine is deterministic, the same
    /// one comes out the same each time.
    ///
    /// # Errors
    /// When the lab fails.
    fn boot(self: Arc<Self>, guest: &Guest<'_>, replicate: u64) -> Result<Boot, MachineError>;

    /// Boots a build that did not boot once more, for the memory of its kernel; nothing if it does not die this time.
    ///
    /// # Errors
    /// When the lab fails.
    fn boot_to_death(&self, _: &Guest<'_>, _replicate: u64) -> Result<Option<DeadMemory>, MachineError> {
        Ok(None)
    }
}

/// A build that a machine has booted, for as long as this value lives.
pub trait Booted: fmt::Debug + Send + Sync {
    /// Returns what is out of the ordinary about this boot, for people.
    fn remark(&self) -> Option<&str> {
        None
    }

    /// Does one job.
    ///
    /// # Errors
    /// When the lab fails.
    fn run(&self, job: &Job, observe: Observe<'_>) -> Result<JobEnd, MachineError>;

    /// Does a job once more that the kernel did not survive, for its memory; nothing if it does not die this time.
    ///
    /// # Errors
    /// When the lab fails.
    fn run_to_death(&self, _: &Job) -> Result<Option<DeadMemory>, MachineError> {
        Ok(None)
    }

    /// Gives the machine back as it was before.
    ///
    /// # Errors
    /// When the lab fails.
    fn release(self: Box<Self>) -> Result<(), MachineError> {
        Ok(())
    }
}

/// What a guest boots and carries.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'a> {
    /// The build.
    pub build: &'a Build,
    /// Its modules and their list, as the guest's loader wants them; none where its equipment has none.
    pub modules: &'a [InitrdFile],
}

/// How a boot ended.
#[derive(Debug)]
pub enum Boot {
    /// Jobs can start from here.
    Ready(Box<dyn Booted>),
    /// The kernel failed; with the whole console.
    Failed(SubjectFailure, Vec<u8>),
}

/// What is observed of a job. The guest does the same whatever it is; [`Capabilities`] say what a machine can observe.
#[derive(Debug, Clone, Copy)]
pub enum Observe<'a> {
    /// Nothing but what the agent says.
    Nothing,
    /// Instructions by address and by who executes them, told apart by these marks.
    Counts(&'a str),
    /// Calls as well; the marks name all functions.
    Calls(&'a str),
    /// Counts, and what this simulated processor makes of them.
    Model(&'a str, &'a CostModel),
}

/// How a job ended.
#[derive(Debug)]
pub struct JobEnd {
    /// The agent's frames, or how the kernel failed.
    pub stream: Result<Stream, SubjectFailure>,
    /// The whole console, with the frames in it.
    pub console: Vec<u8>,
    /// What was counted, where that was asked for and the guest ended by itself.
    pub counts: Option<Vec<u8>>,
    /// The call tree, under the same conditions.
    pub calls: Option<Vec<u8>>,
}

/// The memory of a kernel that died, in a file that is there as long as this value.
#[derive(Debug)]
pub struct DeadMemory {
    /// An ELF file, not filtered.
    pub file: PathBuf,
    _folder: Box<dyn Keep>,
}

/// What removes itself when it is dropped.
trait Keep: Any + fmt::Debug + Send {}
impl<T: Any + fmt::Debug + Send> Keep for T {}

impl DeadMemory {
    pub(crate) fn new(file: PathBuf, folder: impl Any + fmt::Debug + Send) -> Self {
        Self { file, _folder: Box::new(folder) }
    }
}

/// Returns a hash of what guests carry of a build's modules.
#[must_use]
pub fn modules_hash(modules: &[InitrdFile]) -> String {
    let lengths: Vec<String> = modules.iter().map(|file| format!("{} {}\n", file.path, file.bytes.len())).collect();
    let parts = lengths.iter().map(String::as_bytes).zip(modules.iter().map(|file| &*file.bytes));
    crate::hash(&parts.flat_map(|(name, bytes)| [name, bytes]).collect::<Vec<_>>())
}
