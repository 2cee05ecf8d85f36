//! The reference job: shows whether this host gives the reference numbers, without a kernel and
//! without a network.
//!
//! A guest of 1 KiB (`proof.s`) is saved and restored as kernels are, behind the same walls and with
//! the plugin. Then it has a process, system calls, traps, a timer and an idle task for some
//! seconds. Its numbers depend on all that a measurement depends on but the kernel: QEMU,
//! instruction counting, the plugin, snapshots, seeds. Whether another QEMU is refused is `cpu`'s.

use std::{fmt, fs};

use serde_json::json;

use super::cpu::{self, Cpu};
use super::{
    AT_THE_END, COUNTS, Exact, MARKS, TRACER, machine_arguments, memory, plugin, tracer_arguments,
};
use crate::MachineError;
use crate::backend::Observe;
use crate::qemu::{Budget, Ended, Process, Scratch, restore, save};

/// The guest, and the addresses of [`ENTRIES`] behind it.
const GUEST: &[u8] = include_bytes!("proof.bin");
/// What the plugin has to know, in the order of the guest's addresses.
const ENTRIES: [&str; 4] = ["interrupt", "exception", "syscall", "switch"];
/// Its file within a scratch directory.
const FIRMWARE: &str = "firmware";
/// Its memory (MiB).
const MEMORY_MIB: u32 = 64;
const SEED: u64 = 1;
/// The machine: as for kernels, but for what boots.
const ARGUMENTS: &str = "-device ib700 -action watchdog=pause -bios firmware -seed 1";
/// More than ten times what it executes.
const INSTRUCTIONS_MAX: u64 = 2_000_000_000;
/// Wall time of a host that is too busy (s).
const WALL_S: u64 = 300;
/// More bytes than it sends.
const CONSOLE_BYTES: u64 = 4096;

/// The numbers of the reference job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceNumbers {
    /// Guest time, in ticks.
    pub sample: u64,
    /// Instructions of the kernel for the process.
    pub kernel: u64,
    /// Instructions of the process.
    pub user: u64,
    /// Instructions of interrupts.
    pub interrupt: u64,
    /// Instructions of other tasks.
    pub other: u64,
}

impl ReferenceNumbers {
    /// Those of the reference QEMU, with each CPU.
    pub const RECORDED: Self = Self {
        sample: 125_058_965,
        kernel: 2_330_500,
        user: 64_240_438,
        interrupt: 54_500,
        other: 5_499,
    };

    /// Reads them from what the guest sent and the plugin wrote.
    fn read(console: &[u8], counts: &str) -> Option<Self> {
        let sample = u64::from_le_bytes(console.try_into().ok()?);
        let mut lines = counts.lines().filter(|line| !line.starts_with("at "));
        let region = lines.next()?.strip_prefix("region 1 ")?;
        let numbers: Vec<u64> = region
            .split(' ')
            .map_while(|number| number.parse().ok())
            .collect();
        // The kinds of costly instructions follow.
        let [user, kernel, interrupt, other, ..] = *numbers else {
            return None;
        };
        Some(Self {
            sample,
            kernel,
            user,
            interrupt,
            other,
        })
    }
}

impl fmt::Display for ReferenceNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sample,
            kernel,
            user,
            interrupt,
            other,
        } = self;
        write!(
            f,
            "sample {sample}, kernel {kernel}, user {user}, interrupt {interrupt}, other {other}"
        )
    }
}

/// Returns the plugin's file of marks.
fn marks(entries: &[u8]) -> String {
    let addresses = entries.chunks_exact(8).map(|bytes| {
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    });
    let lines = ENTRIES.iter().zip(addresses);
    lines
        .map(|(entry, address): (&&str, u64)| format!("{entry} {address:x}\n"))
        .collect()
}

/// Limits of the job.
const BUDGET: Budget = Budget {
    until: Some(INSTRUCTIONS_MAX),
    is_fast: false,
    wall_s: WALL_S,
    console_bytes: CONSOLE_BYTES,
};

impl Exact {
    /// Executes the reference job.
    ///
    /// # Errors
    /// If QEMU does not start or refuses a snapshot, or the guest ends early.
    pub fn prove(&self) -> Result<ReferenceNumbers, MachineError> {
        let saved = self.prepare_proof()?;
        let arguments = self.proof_arguments(Observe::Nothing, "on");
        let mut process = Process::start(&self.qemu, &arguments, &saved)?;
        expect(Ended::Stopped, process.wait_for_end(&BUDGET)?)?;
        save(&mut process, &saved)?;
        drop(process);

        let mut scratch = self.prepare_proof()?;
        let share = self.link_snapshot(saved.folder(), &mut scratch)?;
        let mut arguments = self.proof_arguments(Observe::Counts(""), &share);
        arguments.extend(["-S", "-incoming", "defer"].map(str::to_owned));
        let mut process = Process::start(&self.qemu, &arguments, &scratch)?;
        restore(&mut process, &scratch)?;
        process.command("cont", json!({}))?;
        expect(Ended::PoweredOff, process.wait_for_end(&BUDGET)?)?;
        process.end()?;
        let counts = fs::read_to_string(scratch.path(COUNTS)).unwrap_or_default();
        ReferenceNumbers::read(&scratch.console(), &counts)
            .ok_or_else(|| failed(format!("the plugin wrote {} bytes of counts", counts.len())))
    }

    /// Makes a scratch directory with the guest and what the plugin has to know.
    fn prepare_proof(&self) -> Result<Scratch, MachineError> {
        let scratch = Scratch::new(self.scratch.path())?;
        let (code, entries) = GUEST.split_at(GUEST.len() - 8 * ENTRIES.len());
        scratch.write(FIRMWARE, &cpu::in_rom(code))?;
        scratch.write(MARKS, marks(entries).as_bytes())?;
        scratch.link(TRACER, &self.tracer)?;
        Ok(scratch)
    }

    fn proof_arguments(&self, observe: Observe<'_>, share: &str) -> Vec<String> {
        let cpu = Cpu::named(self.settings.cpu);
        let mut arguments = machine_arguments(&self.qemu, cpu, None);
        arguments.extend(ARGUMENTS.split(' ').map(str::to_owned));
        arguments.extend(memory(MEMORY_MIB, share));
        arguments.extend(plugin(&self.qemu, tracer_arguments(observe, SEED)));
        arguments.extend(AT_THE_END.map(str::to_owned));
        arguments
    }
}

fn expect(expected: Ended, ended: Ended) -> Result<(), MachineError> {
    if ended == expected {
        Ok(())
    } else {
        Err(failed(format!(
            "its guest ended by {ended:?}, not by {expected:?}"
        )))
    }
}

fn failed(answer: String) -> MachineError {
    MachineError::Refused {
        command: "reference job".to_owned(),
        answer,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{ENTRIES, GUEST, ReferenceNumbers, marks};

    #[test]
    fn guest_is_what_its_source_says() {
        let folder = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exact/proof.s");
        let assembled = Command::new("as")
            .args(["--64", source, "-o", "proof.o"])
            .current_dir(&folder)
            .status();
        assert!(assembled.unwrap().success());
        let linked = Command::new("ld")
            .args(["-Ttext", "0x8000", "--oformat", "binary", "proof.o", "-o"])
            .arg("proof.bin")
            .current_dir(&folder)
            .status();
        assert!(linked.unwrap().success());
        let bytes = std::fs::read(folder.path().join("proof.bin")).unwrap();
        assert!(bytes == GUEST, "make proof.bin again, as proof.s says");
    }

    #[test]
    fn entries_are_addresses_of_the_kernel() {
        let entries = &GUEST[GUEST.len() - 8 * ENTRIES.len()..];
        let marks = marks(entries);
        for (line, entry) in marks.lines().zip(ENTRIES) {
            assert!(
                line.starts_with(&format!("{entry} ffff80000000")),
                "{marks}"
            );
        }
        assert_eq!(marks.lines().count(), ENTRIES.len());
    }

    #[test]
    fn numbers_are_read_whole_or_not() {
        let counts = "region 1 1 2 3 4 0 7\nat 0 1 0 0\nend 0 0\n";
        let console = 9_u64.to_le_bytes();
        let numbers = ReferenceNumbers::read(&console, counts).unwrap();
        assert_eq!(
            numbers.to_string(),
            "sample 9, kernel 2, user 1, interrupt 3, other 4"
        );
        for (console, counts) in [
            (&console[1..], counts),
            (&console[..], ""),
            (&console[..], "region 1 1 2 3\nend 0 0\n"),
        ] {
            assert_eq!(ReferenceNumbers::read(console, counts), None, "{counts}");
        }
    }
}
