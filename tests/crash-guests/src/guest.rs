//! QEMU with a crash guest: its command line, and its memory and disks once it has stopped.
//!
//! It runs on q35 with real firmware, so that a bzImage chooses a random address (KASLR) and finds
//! what kdump and the vmcoreinfo device need; the exact machine has none of these. Same QEMU, same
//! process, same deadlines.

use std::fs;
use std::path::{Path, PathBuf};

use machine::qemu::{
    Budget, CONSOLE, CONTROL, Ended, Process, Qemu, Scratch, VmcoreFormat, failure,
};
use machine::{MachineError, free_mib};
use model::{Stage, SubjectFailure};

use crate::CrashError;

/// Output limit of a crash guest, in bytes.
const CONSOLE_BYTES: u64 = 16 << 20;
/// Wall time limit, as a multiple of processor time.
const WALL_FACTOR: u64 = 8;
/// The name of a vmcore in QEMU's directory.
const VMCORE: &str = "vmcore";

/// The levels of the guest's page tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// As on most processors.
    FourLevels,
    /// As on those with LA57.
    FiveLevels,
}

/// A disk of zeroes with a serial number, by which the guest finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The serial number: a plain name.
    pub serial: &'static str,
    /// Its size in MiB; its file is sparse.
    pub mib: u32,
}

#[derive(Debug)]
pub(crate) struct Guest<'a> {
    /// The image: a bzImage for a random address.
    pub(crate) image: &'a Path,
    pub(crate) initrd: &'a [u8],
    /// Additional kernel command line.
    pub(crate) command_line: &'a str,
    pub(crate) memory_mib: u32,
    pub(crate) paging: Paging,
    pub(crate) disks: &'a [Disk],
    /// Limit of QEMU's processor seconds.
    pub(crate) cpu_s: u64,
}

/// How a crash guest ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It stopped, panicked or powered off; its memory still exists.
    Still(Box<StillGuest>),
    /// It exceeded its deadline or its output limit.
    Failed(SubjectFailure),
}

/// A stopped guest; ends with this value.
#[derive(Debug)]
pub struct StillGuest {
    process: Process,
    scratch: Scratch,
    memory_mib: u32,
}

impl Guest<'_> {
    /// Boots the guest with this QEMU, in a directory below `parent`, and waits until it has
    /// stopped.
    pub(crate) fn boot(&self, qemu: &Qemu, parent: &Path) -> Result<End, CrashError> {
        // Its memory is written to disk with a vmcore, and then completely.
        let needed_mib = u64::from(self.memory_mib) + 64;
        if free_mib(parent).is_some_and(|free| free < needed_mib) {
            return Err(MachineError::NoSpace {
                folder: parent.to_owned(),
                needed_mib,
            }
            .into());
        }
        let scratch = Scratch::new(parent)?;
        scratch.link("kernel", self.image)?;
        scratch.write("initrd", self.initrd)?;
        for disk in self.disks {
            let path = scratch.path(disk.serial);
            let file = fs::File::create(&path).map_err(CrashError::io("create", &path))?;
            file.set_len(u64::from(disk.mib) << 20)
                .map_err(CrashError::io("create", &path))?;
        }
        let mut process = Process::start(qemu, &arguments(self), &scratch)?;
        let budget = Budget {
            until: None,
            is_fast: false,
            wall_s: self.cpu_s * WALL_FACTOR,
            console_bytes: CONSOLE_BYTES,
        };
        let ended = process.wait_for_end(&budget)?;
        Ok(match ended {
            Ended::Stopped | Ended::PoweredOff => End::Still(Box::new(StillGuest {
                process,
                scratch,
                memory_mib: self.memory_mib,
            })),
            Ended::Deadline | Ended::ConsoleFull => {
                End::Failed(failure(Stage::Workload, ended, &scratch.console()))
            }
        })
    }
}

impl StillGuest {
    /// Returns the guest's output.
    #[must_use]
    pub fn console(&self) -> Vec<u8> {
        self.scratch.console()
    }

    /// Writes the guest's memory to a file.
    ///
    /// # Errors
    /// If QEMU refuses or the file cannot be written.
    pub fn write_vmcore(&mut self, format: VmcoreFormat, to: &Path) -> Result<(), CrashError> {
        self.process.write_memory(format, VMCORE, self.memory_mib)?;
        keep(&self.scratch.path(VMCORE), to)
    }

    /// Ends the guest and saves the first bytes of each disk to a file.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep_disks(self, disks: &[(&Disk, u64, PathBuf)]) -> Result<(), CrashError> {
        drop(self.process);
        for (disk, bytes, to) in disks {
            let path = self.scratch.path(disk.serial);
            let file = fs::File::options()
                .write(true)
                .open(&path)
                .map_err(CrashError::io("open", &path))?;
            file.set_len(*bytes).map_err(CrashError::io("cut", &path))?;
            keep(&path, to)?;
        }
        Ok(())
    }
}

/// Moves a file, also to another file system.
fn keep(from: &Path, to: &Path) -> Result<(), CrashError> {
    fs::rename(from, to)
        .or_else(|_| fs::copy(from, to).map(drop))
        .map_err(CrashError::io("keep", to))
}

fn arguments(guest: &Guest<'_>) -> Vec<String> {
    let words = [
        "-nodefaults -no-user-config -display none -no-reboot -nic none -M q35",
        "-accel tcg,thread=multi,tb-size=256 -device vmcoreinfo",
        // If the guest panics and reboots, or powers off, QEMU stops and its memory stays.
        "-device ib700 -action watchdog=pause -action shutdown=pause",
        "-kernel kernel -initrd initrd",
        CONTROL,
    ];
    let mut words: Vec<String> = words
        .iter()
        .flat_map(|line| line.split(' '))
        .map(str::to_owned)
        .collect();
    let cpu = match guest.paging {
        Paging::FourLevels => "max,la57=off",
        Paging::FiveLevels => "max",
    };
    words.extend(["-cpu", cpu, "-m"].map(str::to_owned));
    words.extend([
        guest.memory_mib.to_string(),
        "-serial".into(),
        format!("file:{CONSOLE}"),
    ]);
    for Disk { serial, .. } in guest.disks {
        words.extend([
            "-drive".into(),
            format!("if=none,id={serial},file={serial},format=raw,cache=unsafe"),
        ]);
        words.extend([
            "-device".into(),
            format!("virtio-blk-pci,drive={serial},serial={serial}"),
        ]);
    }
    words.extend([
        "-append".into(),
        format!(
            "console=ttyS0 reboot=t panic=-1 oops=panic {}",
            guest.command_line
        ),
    ]);
    words
}

#[cfg(test)]
mod tests {
    use super::{Disk, Guest, Paging, arguments};
    use std::path::Path;

    #[test]
    fn arguments_hold_no_path_of_the_host() {
        let guest = Guest {
            image: Path::new("elsewhere/vmlinuz"),
            initrd: b"",
            command_line: "nokaslr",
            memory_mib: 512,
            paging: Paging::FourLevels,
            disks: &[Disk {
                serial: "scratch",
                mib: 64,
            }],
            cpu_s: 1,
        };
        insta::assert_snapshot!(arguments(&guest).join(" "), @"-nodefaults -no-user-config -display none -no-reboot -nic none -M q35 -accel tcg,thread=multi,tb-size=256 -device vmcoreinfo -device ib700 -action watchdog=pause -action shutdown=pause -kernel kernel -initrd initrd -chardev stdio,id=control,signal=off -mon chardev=control,mode=control -cpu max,la57=off -m 512 -serial file:console -drive if=none,id=scratch,file=scratch,format=raw,cache=unsafe -device virtio-blk-pci,drive=scratch,serial=scratch -append console=ttyS0 reboot=t panic=-1 oops=panic nokaslr");
    }
}
