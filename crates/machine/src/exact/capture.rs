//! Captures: the memory of a guest whose kernel died in the exact machine.
//!
//! A guest that panics reboots, and its machine stands still. The one that measured is not asked for memory, which takes long
//! and is seldom wanted; on the exact machine the same job dies in the same way each time, so it is done once more.

use serde_json::json;
use wire::Job;

use super::{Exact, NO_JOB, Start};
use crate::MachineError;
use crate::backend::{DeadMemory, Guest, Observe};
use crate::qemu::{Ended, Process, Scratch, VmcoreFormat};

/// The file that QEMU writes the memory to.
const MEMORY: &str = "memory";

impl Exact {
    /// Does a job again that the kernel did not survive, and returns the guest as it ended; nothing if it ends otherwise
    /// than by the kernel this time.
    pub(super) fn capture_job(&self, start: &Start, job: &Job) -> Result<Option<DeadMemory>, MachineError> {
        self.check_space(self.equipment.memory_mib)?;
        let scratch = self.prepare(&start.load, &job.encode()?)?;
        let Ok(mut process) = self.at_start(start, &scratch, Observe::Nothing)? else { return Ok(None) };
        let budget = self.job_budget(&mut process, Observe::Nothing)?;
        process.command("cont", json!({}))?;
        let ended = process.watch(&budget)?;
        let survived = wire::decode(&scratch.console(), job.id).is_ok();
        let died = ended == Ended::PoweredOff && !survived;
        if died { self.written(process, scratch).map(Some) } else { Ok(None) }
    }

    /// Boots a build again that does not boot, and returns the guest as it ended; nothing if it hangs, or boots.
    pub(super) fn capture_boot(&self, guest: &Guest<'_>, seed: u64) -> Result<Option<DeadMemory>, MachineError> {
        self.check_space(self.equipment.memory_mib)?;
        let scratch = self.prepare(&self.load(guest, seed)?, &NO_JOB)?;
        let mut process = self.booting(seed, &scratch, Observe::Nothing)?;
        let ended = process.watch(&self.boot_budget(Observe::Nothing))?;
        if ended == Ended::PoweredOff { self.written(process, scratch).map(Some) } else { Ok(None) }
    }

    /// Has the memory of a guest that stands still written down.
    fn written(&self, mut process: Process, scratch: Scratch) -> Result<DeadMemory, MachineError> {
        process.write_memory(VmcoreFormat::Elf, MEMORY, self.equipment.memory_mib)?;
        drop(process);
        Ok(DeadMemory::new(scratch.path(MEMORY), scratch))
    }
}
