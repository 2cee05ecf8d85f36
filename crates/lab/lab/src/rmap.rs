//! The experiment on reverse mappings: one cell of its grid on a build. Stores nothing.

use machine::{BootOutcome, Observe};
use model::{Build, FailureReason, GuestConfig, GuestModule, Machine, RmapCell, RmapOutcome};
use wire::Task;

use crate::job::with_retries;
use crate::{Lab, LabError};

/// Swap in memory. Kernels differ in the compression they need; without zram the kernel reclaims
/// nothing, and the result says so.
const MODULES: &[GuestModule] = &[
    GuestModule::may("lzo"),
    GuestModule::may("lzo-rle"),
    GuestModule::may("zram"),
];

fn guest_config(memory_mib: u32) -> GuestConfig {
    GuestConfig {
        modules: MODULES,
        ..GuestConfig::with_memory(memory_mib)
    }
}

impl Lab {
    /// Returns the machine for the experiment on reverse mappings.
    ///
    /// # Errors
    /// If the machine cannot be prepared.
    pub fn rmap_machine(&self, memory_mib: u32) -> Result<Machine, LabError> {
        Ok(self
            .machine_pool()
            .machine(&guest_config(memory_mib))?
            .identity()
            .clone())
    }

    /// Measures one cell of the experiment on reverse mappings with a seed, in a guest of
    /// `memory_mib` MiB.
    ///
    /// # Errors
    /// If the lab fails. A kernel's failure is a result.
    pub fn rmap(
        &self,
        build: &Build,
        seed: u64,
        memory_mib: u32,
        cell: RmapCell,
    ) -> Result<RmapOutcome, LabError> {
        let placement = self
            .machine_pool()
            .placement(build, &guest_config(memory_mib))?;
        self.take_turn()?;
        let booted = match placement.boot(build, seed)? {
            BootOutcome::Ready(booted) => booted,
            BootOutcome::KernelFailed { failure, .. } => {
                return Ok(RmapOutcome::Failed(failure.reason.to_string()));
            }
            BootOutcome::Unsupported(why) => return Ok(RmapOutcome::Unsupported(why)),
        };
        let RmapCell {
            case,
            processes,
            mappings,
        } = cell;
        let name = format!("rmap {case} {processes} {mappings}");
        let task = Task::Rmap {
            case: case.name().to_owned(),
            processes,
            mappings,
        };
        let job = placement
            .booted_build(build, seed, &*booted, self.tools())
            .job(&name, task);
        let end = with_retries(&|_| {}, || booted.run(&job, Observe::Nothing))?;
        Ok(match end.stream {
            Err(failure) => failed(failure.reason),
            Ok(stream) => match (ingest::rmap(&stream), machine::reason_in(&end.console)) {
                // The agent only sees that a process was killed; the console may have the reason.
                (RmapOutcome::Failed(_), Some(reason)) => failed(reason),
                (outcome, _) => outcome,
            },
        })
    }
}

fn failed(reason: FailureReason) -> RmapOutcome {
    RmapOutcome::Failed(reason.to_string())
}
