//! Captures: the memory of a guest whose kernel died in the exact machine.
//!
//! A guest that panics reboots, and its machine pauses. Writing memory takes long and is rarely
//! needed, so the measuring machine does not do it; on the exact machine the same job dies in the
//! same way each time, so this module repeats it.

use serde_json::json;
use wire::Job;

use super::{AtStart, Exact, NO_JOB, Start};
use crate::MachineError;
use crate::backend::{DeadMemory, Guest, Observe};
use crate::qemu::{Ended, Process, Scratch, VmcoreFormat};

/// The file for QEMU's dump of the memory.
const MEMORY: &str = "memory";

impl Exact {
    /// Repeats a job during which the kernel died, and returns the ended guest; `None` if the
    /// kernel does not die this time.
    pub(super) fn capture_job(
        &self,
        start: &Start,
        job: &Job,
    ) -> Result<Option<DeadMemory>, MachineError> {
        self.check_space(self.memory_mib())?;
        let mut scratch = self.prepare(&start.load, &job.encode()?)?;
        let AtStart::Waits(mut process) = self.at_start(start, &mut scratch, Observe::Nothing)?
        else {
            return Ok(None);
        };
        let budget = self.job_budget(&mut process, Observe::Nothing)?;
        process.command("cont", json!({}))?;
        let ended = process.wait_for_end(&budget)?;
        let survived = wire::decode(&scratch.console(), job.id).is_ok();
        let died = ended == Ended::PoweredOff && !survived;
        if died {
            self.write_dump(*process, scratch).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Repeats a boot that failed, and returns the ended guest; `None` if it hangs or boots.
    pub(super) fn capture_boot(
        &self,
        guest: &Guest<'_>,
        seed: u64,
    ) -> Result<Option<DeadMemory>, MachineError> {
        self.check_space(self.memory_mib())?;
        let load = self.load(guest, seed)?;
        let scratch = self.prepare(&load, &NO_JOB)?;
        let mut process = self.start_booting(&load, &scratch, Observe::Nothing)?;
        let ended = process.wait_for_end(&self.boot_budget(Observe::Nothing))?;
        if ended == Ended::PoweredOff {
            self.write_dump(process, scratch).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Writes the memory of a paused guest to a file.
    fn write_dump(
        &self,
        mut process: Process,
        scratch: Scratch,
    ) -> Result<DeadMemory, MachineError> {
        process.write_memory(VmcoreFormat::Elf, MEMORY, self.memory_mib())?;
        drop(process);
        Ok(DeadMemory::new(scratch.path(MEMORY), scratch))
    }
}
