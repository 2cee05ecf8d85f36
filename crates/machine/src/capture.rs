//! Captures: the memory of a guest whose kernel died in the exact machine.
//!
//! A guest that panics reboots and so ends QEMU, memory and all. But on the exact machine the same job dies in the same way
//! each time, so it is done once more by a machine that stands still where the first one ended.

use serde_json::json;
use wire::Job;

use crate::MachineError;
use crate::crash::StillGuest;
use crate::exact::{Exact, Guest, Start, Trace};
use crate::process::{Ended, Process};

impl Exact {
    /// Does a job again that the kernel did not survive, and returns the guest as it ended; nothing if it ends otherwise
    /// than by the kernel this time.
    ///
    /// # Errors
    /// When the lab fails.
    pub fn capture_job(&self, start: &Start, job: &Job) -> Result<Option<StillGuest>, MachineError> {
        self.check_space(self.memory_mib())?;
        let scratch = self.prepare((&start.kernel, &start.initrd), &job.encode()?)?;
        let Ok(mut process) = self.at_start(start, &scratch, Trace::Nothing)? else { return Ok(None) };
        stand_still(&mut process)?;
        process.command("cont", json!({}))?;
        let ended = process.watch(&self.budget(self.limits().job_cpu_s))?;
        let survived = wire::decode(&scratch.console(), job.id).is_ok();
        let died = ended == Ended::PoweredOff && !survived;
        Ok(died.then(|| StillGuest::new(process, scratch, self.memory_mib())))
    }

    /// Boots a build again that does not boot, and returns the guest as it ended; nothing if it hangs, or boots.
    ///
    /// # Errors
    /// When the lab fails.
    pub fn capture_boot(&self, guest: &Guest<'_>, seed: u64) -> Result<Option<StillGuest>, MachineError> {
        self.check_space(self.memory_mib())?;
        let scratch =
            self.prepare((&guest.build.boot_file().path, &self.initrd_of(guest)?), &vec![0; wire::JOB_SIZE])?;
        let mut process = self.booting(seed, &scratch, Trace::Nothing)?;
        stand_still(&mut process)?;
        let ended = process.watch(&self.budget(self.limits().boot_cpu_s))?;
        Ok((ended == Ended::PoweredOff).then(|| StillGuest::new(process, scratch, self.memory_mib())))
    }
}

/// Has a machine stand still when it would end: not by an argument, which would make it another machine.
fn stand_still(process: &mut Process) -> Result<(), MachineError> {
    process.command("set-action", json!({ "shutdown": "pause" })).map(drop)
}
