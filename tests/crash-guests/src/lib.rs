//! Crash guests: boots guests to capture their memory, never to measure. For tests only: no program
//! of Marvin boots one.
//!
//! `tests/dumps` captures them in every way and compares the filtered dumps with other programs'.

pub mod elf;
mod error;
mod guest;
pub mod pages;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kernel::modules;
use lab::{CRASH, Lab, LabOptions};
use machine::qemu::{Qemu, VmcoreFormat};
use machine::{InitrdFile, initrd_of};
use model::Build;
use wire::{Frame, MARK, PROTOCOL, decode, find_last_words};

pub use error::CrashError;
pub use guest::{Disk, Paging, StillGuest};
use guest::{End, Guest};

/// The disk whose blocks the guest reads into its page cache; large enough for any request.
pub const SCRATCH_DISK: Disk = Disk {
    serial: "scratch",
    mib: 1 << 20,
};
/// The disk to which the capture kernel copies /proc/vmcore.
pub const VMCORE_DISK: Disk = Disk {
    serial: "vmcore",
    mib: 1 << 20,
};
/// The disk to which it copies the filter's output.
pub const DUMP_DISK: Disk = Disk {
    serial: "dump",
    mib: 1 << 20,
};

/// The modules that the guest needs before the crash and in the crash kernel.
const DISK_MODULES: [&str; 2] = ["virtio_pci", "virtio_blk"];
/// The driver that gives VMCOREINFO to QEMU.
const NOTE_MODULE: &str = "qemu_fw_cfg";

/// Where the kernel and its memory map are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    Random,
    Fixed,
}

/// A program that the capture kernel runs on /proc/vmcore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The program: static, because there are no libraries.
    pub program: Vec<u8>,
    /// Its arguments before the two files.
    pub words: Vec<String>,
}

/// How a crash guest ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The host stops it.
    Stop,
    Panic,
    /// It panics, and a crash kernel with this many MiB captures it.
    Kdump(u32, Option<Filter>),
}

/// The properties of a crash guest.
#[derive(Debug, Clone)]
pub struct CrashPlan<'a> {
    pub memory_mib: u32,
    pub paging: Paging,
    /// Where the kernel is.
    pub placement: Placement,
    /// The kinds and amounts of memory to fill; the words are those of
    /// `crates/guest/agent/src/bin/crash/words.rs`.
    pub fill: &'a [(&'a str, u32)],
    pub ending: Ending,
}

/// A crash guest that has finished.
#[derive(Debug)]
pub struct Crashed {
    /// The guest, with its memory.
    pub guest: StillGuest,
    /// The reports of each of its kernels, by name.
    pub reports: Vec<BTreeMap<String, String>>,
}

/// Boots crash guests: a QEMU, and a directory for their files.
#[derive(Debug)]
pub struct CrashGuests {
    qemu: Qemu,
    scratch: PathBuf,
}

impl CrashGuests {
    /// Finds QEMU and makes the directory.
    ///
    /// # Errors
    /// If there is no usable QEMU, or the directory cannot be made.
    pub fn open(scratch: &Path) -> Result<Self, CrashError> {
        fs::create_dir_all(scratch).map_err(CrashError::io("create", scratch))?;
        Ok(Self {
            qemu: Qemu::find(None, std::path::Path::new("/nonexistent"))?,
            scratch: scratch.to_owned(),
        })
    }

    /// Boots a build as a crash guest and waits until it has stopped.
    ///
    /// # Errors
    /// If QEMU fails, or the guest does not finish.
    pub fn crash(&self, build: &Build, plan: &CrashPlan<'_>) -> Result<Crashed, CrashError> {
        let initrd = initrd(build, &plan.ending)?;
        let command_line = command_line(plan);
        let guest = Guest {
            image: &build.image.path,
            initrd: &initrd,
            command_line: &command_line,
            memory_mib: plan.memory_mib,
            paging: plan.paging,
            disks: &[SCRATCH_DISK, VMCORE_DISK, DUMP_DISK],
            cpu_s: u64::from(120 + plan.memory_mib / 8),
        };
        let kernels = if matches!(plan.ending, Ending::Kdump(..)) {
            2
        } else {
            1
        };
        match guest.boot(&self.qemu, &self.scratch)? {
            End::Failed(failure) => Err(CrashError::Guest(format!(
                "{}\n{}",
                failure.reason, failure.console_tail
            ))),
            End::Still(guest) => {
                let console = guest.console();
                match reports(&console) {
                    Ok(reports) if reports.len() == kernels => Ok(Crashed {
                        guest: *guest,
                        reports,
                    }),
                    Ok(_) => Err(CrashError::Guest(machine::readable_tail(&console))),
                    Err(said) => Err(CrashError::Guest(format!(
                        "{said}\n{}",
                        machine::readable_tail(&console)
                    ))),
                }
            }
        }
    }
}

/// Boots a kernel in a guest with memory of every kind, stops it, and writes its memory like
/// /proc/vmcore: a dump for benches.
///
/// # Errors
/// If the kernel has no build, or the guest does not finish.
pub fn capture(home: &Path, kernel: &str, memory_mib: u32, to: &Path) -> Result<(), CrashError> {
    let lab = Lab::open(home, LabOptions::default())?;
    let name = kernel
        .parse()
        .map_err(|error| CrashError::Guest(format!("{kernel}: {error}")))?;
    let build = lab.build(&name, &|_| {})?;
    let part = |percent: u32| memory_mib * percent / 100;
    let fill = [
        ("anon", part(15)),
        ("thp", part(10)),
        ("huge", part(3)),
        ("shm", part(7)),
        ("disk", part(4)),
        ("files", memory_mib * 25),
    ];
    let paging = Paging::FiveLevels;
    let placement = Placement::Random;
    let ending = Ending::Stop;
    let plan = CrashPlan {
        memory_mib,
        paging,
        placement,
        fill: &fill,
        ending,
    };
    let mut crashed = CrashGuests::open(&home.join("scratch/crash"))?.crash(&build, &plan)?;
    let raw = home.join("scratch/qemu.elf");
    crashed.guest.write_vmcore(VmcoreFormat::Elf, &raw)?;
    elf::rewrite(&elf::Elf::open(&raw), to);
    fs::remove_file(&raw).map_err(CrashError::io("remove", &raw))
}

fn command_line(plan: &CrashPlan<'_>) -> String {
    let fill = plan
        .fill
        .iter()
        .map(|(name, amount)| format!("marvin.{name}={amount}"));
    let mut words: Vec<String> = fill.collect();
    if plan.placement == Placement::Fixed {
        words.push("nokaslr".into());
    }
    match &plan.ending {
        Ending::Stop => words.push("marvin.end=stop".into()),
        Ending::Panic => words.push("marvin.end=panic".into()),
        Ending::Kdump(mib, filter) => {
            words.extend(["marvin.end=kdump".into(), format!("crashkernel={mib}M")]);
            words.extend(
                filter
                    .as_ref()
                    .map(|filter| format!("marvin.filter={}", filter.words.join(","))),
            );
        }
    }
    words.join(" ")
}

/// Returns the guest's initrd, with the crash kernel's initrd if there is one.
fn initrd(build: &Build, ending: &Ending) -> Result<Vec<u8>, CrashError> {
    let mut files = with_modules(build, &[NOTE_MODULE])?;
    if let Ending::Kdump(_, filter) = ending {
        let mut inner = with_modules(build, &[])?;
        let program = filter
            .iter()
            .map(|filter| ("marvin-dump", filter.program.clone()));
        inner.extend(program.map(|(path, bytes)| InitrdFile {
            path: path.into(),
            bytes,
        }));
        let image =
            fs::read(&build.image.path).map_err(CrashError::io("read", &build.image.path))?;
        files.push(InitrdFile {
            path: "capture/kernel".into(),
            bytes: image,
        });
        files.push(InitrdFile {
            path: "capture/initrd".into(),
            bytes: initrd_of(&inner),
        });
    }
    Ok(initrd_of(&files))
}

/// Returns the first program and the modules, with names in loading order.
fn with_modules(build: &Build, more: &[&str]) -> Result<Vec<InitrdFile>, CrashError> {
    let names: Vec<&str> = DISK_MODULES.iter().chain(more).copied().collect();
    let found = modules(build, &names)?;
    let file = |(at, module): (usize, kernel::Module)| InitrdFile {
        path: format!("modules/{at:02}-{}.ko", module.name),
        bytes: module.bytes,
    };
    let init = InitrdFile {
        path: "init".into(),
        bytes: CRASH.to_vec(),
    };
    Ok([init]
        .into_iter()
        .chain(found.into_iter().enumerate().map(file))
        .collect())
}

/// Returns the reports of each kernel on one console; each kernel's stream begins with frame 0.
fn reports(console: &[u8]) -> Result<Vec<BTreeMap<String, String>>, String> {
    if let Some(said) = find_last_words(console) {
        return Err(said);
    }
    let first = format!("\n{MARK}{PROTOCOL} 0 ").into_bytes();
    let starts: Vec<usize> = console
        .windows(first.len())
        .enumerate()
        .filter(|(_, window)| *window == first)
        .map(|(at, _)| at)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([console.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| report(&console[*start..end]))
        .collect()
}

fn report(console: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let stream = decode(console, 0)
        .map_err(|error| format!("the guest's report cannot be read: {error}"))?;
    let mut texts = BTreeMap::<String, String>::new();
    for frame in stream.frames {
        if let Frame::File { name, bytes } = frame {
            texts
                .entry(name)
                .or_default()
                .push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::{CrashPlan, Ending, Filter, Paging, Placement, command_line, reports};
    use wire::{Frame, encode};

    fn stream(frames: &[Frame]) -> String {
        frames
            .iter()
            .enumerate()
            .map(|(at, frame)| format!("[ 1.0] kernel\n{}", encode(0, at, frame)))
            .collect()
    }

    fn file(name: &str, text: &str) -> Frame {
        Frame::File {
            name: name.into(),
            bytes: text.into(),
        }
    }

    #[test]
    fn two_kernels_on_one_console_are_separated() {
        let hello = Frame::Hello { agent: "0".into() };
        let one = stream(&[
            hello.clone(),
            file("filled", "a\n"),
            file("filled", "b\n"),
            Frame::End,
        ]);
        let two = stream(&[hello, file("captured", "c\n"), Frame::End]);
        let found = reports(format!("{one}[ 2.0] panic\n{two}").as_bytes()).unwrap();
        assert_eq!(
            (found.len(), &*found[0]["filled"], &*found[1]["captured"]),
            (2, "a\nb\n", "c\n")
        );
        assert_eq!(reports(b"[ 0.1] nothing").unwrap().len(), 0);
    }

    #[test]
    fn a_guest_that_fails_says_why() {
        let console = stream(&[Frame::Hello { agent: "0".into() }])
            + &stream(&[Frame::Failed("no disk".into())]);
        assert_eq!(reports(console.as_bytes()).unwrap_err(), "no disk");
        let cut = stream(&[Frame::Hello { agent: "0".into() }]);
        assert_eq!(
            reports(cut.as_bytes()).unwrap_err(),
            "the guest's report cannot be read: it is cut after frame 0"
        );
    }

    #[test]
    fn command_line_contains_the_task() {
        let filter = Filter {
            program: vec![],
            words: vec!["-d".into(), "31".into()],
        };
        let plan = CrashPlan {
            memory_mib: 512,
            paging: Paging::FiveLevels,
            placement: Placement::Fixed,
            fill: &[("anon", 64), ("files", 1000)],
            ending: Ending::Kdump(256, Some(filter)),
        };
        insta::assert_snapshot!(command_line(&plan), @"marvin.anon=64 marvin.files=1000 nokaslr marvin.end=kdump crashkernel=256M marvin.filter=-d,31");
    }
}
