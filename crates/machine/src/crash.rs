//! Crash guests: booted to have their memory captured, and measured by nobody.
//!
//! They run on QEMU's q35 with real firmware, so that a bzImage places itself at random (KASLR) and finds what kdump
//! and the vmcoreinfo device need, none of which the exact machine has. Same QEMU, same process, same deadlines.

use std::fs;
use std::path::{Path, PathBuf};

use model::{Stage, SubjectFailure};

use crate::MachineError;
use crate::exact::{Budget, CONSOLE, CONTROL, Ended, Exact, Process, Scratch, failure};
use crate::vmcore::{VmcoreFormat, write_vmcore};

/// Bytes that a crash guest may print.
const CONSOLE_BYTES: u64 = 16 << 20;
/// How many times longer than its processor time it may take on the wall.
const WALL_FACTOR: u64 = 8;
/// QEMU's file for a vmcore within its folder.
const VMCORE: &str = "vmcore";

/// How many levels the guest's page tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// As on most processors.
    FourLevels,
    /// As on those with LA57.
    FiveLevels,
}

/// A disk of zeroes, which the guest knows by its serial number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The serial number: a plain name.
    pub serial: &'static str,
    /// Its size in MiB; its file is sparse.
    pub mib: u32,
}

/// What a crash guest is.
#[derive(Debug, Clone)]
pub struct CrashGuest<'a> {
    /// The image, a bzImage where it is to place itself at random.
    pub image: &'a Path,
    /// The initrd.
    pub initrd: &'a [u8],
    /// What the kernel's command line says beside the console and what to do after a panic.
    pub command_line: &'a str,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// The page tables.
    pub paging: Paging,
    /// Its disks.
    pub disks: &'a [Disk],
    /// Processor seconds of QEMU until it stands still.
    pub cpu_s: u64,
}

/// How a crash guest ended up.
#[derive(Debug)]
pub enum Crash {
    /// It stopped, panicked or switched off, and its memory is still there.
    Still(StillGuest),
    /// It went on beyond its deadline, or printed without end; with the whole console.
    Failed(SubjectFailure, Vec<u8>),
}

/// A guest that stands still, for as long as this value lives.
#[derive(Debug)]
pub struct StillGuest {
    process: Process,
    scratch: Scratch,
    memory_mib: u32,
}

impl Exact {
    /// Boots a crash guest with this machine's QEMU, and waits until it stands still.
    ///
    /// # Errors
    /// When the lab fails. A kernel that hangs is a result, see [`Crash::Failed`].
    pub fn crash(&self, guest: &CrashGuest<'_>) -> Result<Crash, MachineError> {
        // Nothing of it is on the disk before somebody wants a vmcore, but then all of it.
        self.check_space(guest.memory_mib)?;
        let (program, folder) = self.qemu_and_scratch();
        let scratch = Scratch::new(folder)?;
        scratch.link("kernel", guest.image)?;
        scratch.write("initrd", guest.initrd)?;
        for disk in guest.disks {
            let path = scratch.path(disk.serial);
            let file = fs::File::create(&path).map_err(MachineError::io("create", &path))?;
            file.set_len(u64::from(disk.mib) << 20).map_err(MachineError::io("create", &path))?;
        }
        let mut process = Process::start(program, &arguments(guest), &scratch)?;
        let budget =
            Budget { until: None, is_fast: false, wall_s: guest.cpu_s * WALL_FACTOR, console_bytes: CONSOLE_BYTES };
        let ended = process.watch(&budget)?;
        match ended {
            Ended::Stopped | Ended::PoweredOff => Ok(Crash::Still(StillGuest::new(process, scratch, guest.memory_mib))),
            Ended::Deadline | Ended::ConsoleFull => {
                let console = scratch.console();
                Ok(Crash::Failed(failure(Stage::Workload, ended, &console), console))
            }
        }
    }
}

impl StillGuest {
    pub(crate) fn new(process: Process, scratch: Scratch, memory_mib: u32) -> Self {
        Self { process, scratch, memory_mib }
    }

    /// Returns a folder that is there as long as the guest is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.scratch.folder()
    }

    /// Returns what the guest has printed.
    #[must_use]
    pub fn console(&self) -> Vec<u8> {
        self.scratch.console()
    }

    /// Writes the guest's memory to a file.
    ///
    /// # Errors
    /// When QEMU refuses or the file cannot be written.
    pub fn write_vmcore(&mut self, format: VmcoreFormat, to: &Path) -> Result<(), MachineError> {
        write_vmcore(&mut self.process, format, VMCORE, self.memory_mib)?;
        keep(&self.scratch.path(VMCORE), to)
    }

    /// Ends the guest and keeps the first bytes of its disks, each in a file of its own.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn keep_disks(self, disks: &[(&Disk, u64, PathBuf)]) -> Result<(), MachineError> {
        drop(self.process);
        for (disk, bytes, to) in disks {
            let path = self.scratch.path(disk.serial);
            let file = fs::File::options().write(true).open(&path).map_err(MachineError::io("open", &path))?;
            file.set_len(*bytes).map_err(MachineError::io("cut", &path))?;
            keep(&path, to)?;
        }
        Ok(())
    }
}

/// Moves a file, to another file system if need be.
fn keep(from: &Path, to: &Path) -> Result<(), MachineError> {
    fs::rename(from, to).or_else(|_| fs::copy(from, to).map(drop)).map_err(MachineError::io("keep", to))
}

fn arguments(guest: &CrashGuest<'_>) -> Vec<String> {
    let words = [
        "-nodefaults -no-user-config -display none -no-reboot -nic none -M q35",
        "-accel tcg,thread=multi,tb-size=256 -device vmcoreinfo",
        // A guest that has it stopped by the watchdog, or panics and reboots, or switches off: its memory stays.
        "-device ib700 -action watchdog=pause -action shutdown=pause",
        "-kernel kernel -initrd initrd",
        CONTROL,
    ];
    let mut words: Vec<String> = words.iter().flat_map(|line| line.split(' ')).map(str::to_owned).collect();
    let cpu = match guest.paging {
        Paging::FourLevels => "max,la57=off",
        Paging::FiveLevels => "max",
    };
    words.extend(["-cpu", cpu, "-m"].map(str::to_owned));
    words.extend([guest.memory_mib.to_string(), "-serial".into(), format!("file:{CONSOLE}")]);
    for Disk { serial, .. } in guest.disks {
        words.extend(["-drive".into(), format!("if=none,id={serial},file={serial},format=raw,cache=unsafe")]);
        words.extend(["-device".into(), format!("virtio-blk-pci,drive={serial},serial={serial}")]);
    }
    words.extend(["-append".into(), format!("console=ttyS0 reboot=t panic=-1 oops=panic {}", guest.command_line)]);
    words
}

#[cfg(test)]
mod tests {
    use super::{CrashGuest, Disk, Paging, arguments};
    use std::path::Path;

    #[test]
    fn arguments_hold_no_path_of_the_host() {
        let guest = CrashGuest {
            image: Path::new("elsewhere/vmlinuz"),
            initrd: b"",
            command_line: "nokaslr",
            memory_mib: 512,
            paging: Paging::FourLevels,
            disks: &[Disk { serial: "scratch", mib: 64 }],
            cpu_s: 1,
        };
        insta::assert_snapshot!(arguments(&guest).join(" "), @"-nodefaults -no-user-config -display none -no-reboot -nic none -M q35 -accel tcg,thread=multi,tb-size=256 -device vmcoreinfo -device ib700 -action watchdog=pause -action shutdown=pause -kernel kernel -initrd initrd -chardev stdio,id=control,signal=off -mon chardev=control,mode=control -cpu max,la57=off -m 512 -serial file:console -drive if=none,id=scratch,file=scratch,format=raw,cache=unsafe -device virtio-blk-pci,drive=scratch,serial=scratch -append console=ttyS0 reboot=t panic=-1 oops=panic nokaslr");
    }
}
