//! The virtual machine: QEMU with several processors and the guest's clock, by KVM where it works,
//! else by TCG without counting. Noisy: what it says about a kernel is statistics over boots.
//!
//! A build boots once per replicate, and does its jobs one after the other: `marvin-serve` in the
//! guest reads them from the second serial line. A guest that dies boots again for the next job.

mod accelerator;
mod disk;
mod pinned;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{Capabilities, GuestConfig, Machine, MachineKind, Stage};
use subprocess::Shared;
use wire::{JOB_END, Job, Task};

use self::accelerator::Accelerator;
use self::disk::ScratchDisk;
use self::pinned::Pinned;
use crate::backend::{Backend, BootOutcome, Booted, Guest, JobEnd, Observe};
use crate::console::check_emulator;
use crate::host::{allowed_processors, processor_name};
use crate::initrds::Initrds;
use crate::load::Accounts;
use crate::prepared::report_frame;
use crate::qemu::{CONSOLE, CONTROL, Ended, Process, Qemu, Scratch, Seat, failure, stream_failure};
use crate::settings::{Limits, ScratchFolder, Settings};
use crate::{MachineError, identify};

const COMMAND_LINE: &str = "console=ttyS0 reboot=t panic=-1 oops=panic quiet";
/// The socket of the second serial line within a scratch directory.
const JOBS: &str = "jobs";
/// How long one read of the jobs' line waits; then the guest is looked at, which takes as long.
const SLICE: Duration = Duration::from_millis(25);
/// How often the guest is looked at during a boot (Hz).
const LOOKS_PER_S: u64 = 40;
/// Limit on what a job may send (bytes).
const STREAM_MAX: usize = 64 << 20;

/// What a virtual machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmShape {
    pub cpus: u32,
    /// Its memory (MiB); workloads that need more get more.
    pub memory_mib: u32,
}

/// A virtual machine, ready to boot builds.
#[derive(Debug)]
pub struct Vm {
    qemu: Qemu,
    accelerator: Accelerator,
    shape: VmShape,
    machine: Machine,
    initrds: Initrds,
    disk: Option<ScratchDisk>,
    scratch: Arc<ScratchFolder>,
    settings: Settings,
}

/// A build on this machine.
#[derive(Debug)]
struct Start {
    vm: Arc<Vm>,
    kernel: PathBuf,
    initrd: PathBuf,
    /// What the kernel's command line gets beside the machine's own words.
    boot_parameters: String,
    /// What the first guest printed until it waited for jobs.
    console: Vec<u8>,
    /// The running guest; none after one that died.
    running: Shared<Option<Running>>,
}

/// How the boot of a guest ended.
enum GuestStart {
    Waits(Box<Running>),
    /// There is no guest.
    Died {
        ended: Ended,
        console: Vec<u8>,
    },
}

/// A guest that waits for jobs.
#[derive(Debug)]
struct Running {
    // Dropped in this order: QEMU ends before its directory is removed.
    process: Process,
    jobs: UnixStream,
    scratch: Scratch,
    pinned: Pinned,
    /// How much of the console earlier jobs printed (bytes).
    console_read: usize,
}

impl Vm {
    /// Finds QEMU and how it executes guests here, and prepares the machine's directories.
    ///
    /// # Errors
    /// If no QEMU is usable or the data directory cannot be written.
    pub fn open(settings: Settings, shape: VmShape) -> Result<Self, MachineError> {
        let qemu = Qemu::find(settings.qemu.as_deref(), &settings.home)?;
        let scratch = Arc::new(ScratchFolder::new(&settings.home)?);
        let accelerator = Accelerator::find(&qemu, scratch.path())?;
        let programs = settings.programs.clone();
        let initrds = Initrds::new(scratch.path(), programs, settings.loader.clone())?;
        let machine = identity(&qemu, (accelerator, shape), &initrds, None)?;
        Ok(Self {
            qemu,
            accelerator,
            shape,
            machine,
            initrds,
            disk: None,
            scratch,
            settings,
        })
    }

    /// Boots a guest until it waits for jobs.
    fn start(
        &self,
        kernel: &Path,
        initrd: &Path,
        boot_parameters: &str,
    ) -> Result<GuestStart, MachineError> {
        let scratch = Scratch::new(self.scratch.path())?;
        scratch.link("kernel", kernel)?;
        scratch.link("initrd", initrd)?;
        let mut arguments = arguments(
            self.accelerator,
            self.shape,
            memory_mib(self.shape, &self.initrds),
            boot_parameters,
        );
        if let Some(disk) = &self.disk {
            disk.make(&scratch)?;
            arguments.extend(ScratchDisk::arguments().split(' ').map(str::to_owned));
        }
        let mut process = Process::start_on(Seat::anywhere(), &self.qemu, &arguments, &scratch)?;
        let pinned = Pinned::pin(
            process.id(),
            &process.processor_threads(),
            allowed_processors(),
        );
        let jobs = scratch.at_socket(JOBS, UnixStream::connect)?;
        jobs.set_read_timeout(Some(SLICE))
            .map_err(MachineError::io("set up", &scratch.path(JOBS)))?;
        let console_bytes = self.settings.limits.console_bytes;
        for _ in 0..self.settings.limits.boot_s * LOOKS_PER_S {
            let ended = process.poll(console_bytes)?;
            let console = scratch.console();
            if let Some(ended) = ended {
                drop(process);
                self.check_emulator(&scratch.console())?;
                return Ok(GuestStart::Died {
                    ended,
                    console: scratch.console(),
                });
            }
            if wire::find_hello(&console).is_some() {
                let console_read = console.len();
                return Ok(GuestStart::Waits(Box::new(Running {
                    process,
                    jobs,
                    scratch,
                    pinned,
                    console_read,
                })));
            }
            if wire::find_last_words(&console).is_some() {
                return Ok(GuestStart::Died {
                    ended: Ended::PoweredOff,
                    console,
                });
            }
        }
        Ok(GuestStart::Died {
            ended: Ended::Deadline,
            console: scratch.console(),
        })
    }
}

impl Vm {
    /// Fails the lab, not the kernel, for a fault of the emulator.
    fn check_emulator(&self, console: &[u8]) -> Result<(), MachineError> {
        check_emulator(self.accelerator == Accelerator::Tcg, console)
    }
}

impl Backend for Vm {
    fn identity(&self) -> &Machine {
        &self.machine
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            processors: self.shape.cpus,
            ..MachineKind::Vm.capabilities()
        }
    }

    fn with_guest_config(
        &self,
        guest_config: &GuestConfig,
        files: Option<&Path>,
    ) -> Result<Arc<dyn Backend>, MachineError> {
        let initrds = self.initrds.with_guest_config(guest_config, files)?;
        let disk = guest_config.disk.map(ScratchDisk::find).transpose()?;
        Ok(Arc::new(Self {
            qemu: self.qemu.clone(),
            accelerator: self.accelerator,
            shape: self.shape,
            machine: identity(
                &self.qemu,
                (self.accelerator, self.shape),
                &initrds,
                disk.as_ref(),
            )?,
            initrds,
            disk,
            scratch: Arc::clone(&self.scratch),
            settings: self.settings.clone(),
        }))
    }

    fn boot(
        self: Arc<Self>,
        guest: &Guest<'_>,
        _replicate: u64,
    ) -> Result<BootOutcome, MachineError> {
        let kernel = guest.build.boot_file().path.clone();
        let initrd = self.initrds.path_for(guest)?;
        let boot_parameters = guest.build.name.boot_parameters();
        match self.start(&kernel, &initrd, &boot_parameters)? {
            GuestStart::Waits(running) => {
                let console = running.scratch.console();
                let running = Shared::new(Some(*running));
                Ok(BootOutcome::Ready(Box::new(Start {
                    vm: self,
                    kernel,
                    initrd,
                    boot_parameters,
                    console,
                    running,
                })))
            }
            GuestStart::Died { ended, console } => Ok(BootOutcome::KernelFailed {
                failure: failure(Stage::Boot, ended, &console),
                console,
            }),
        }
    }
}

impl Booted for Start {
    fn boot_console(&self) -> &[u8] {
        &self.console
    }

    fn run(&self, job: &Job, _: Observe<'_>) -> Result<JobEnd, MachineError> {
        let bytes = job.encode()?;
        let mut guest = self.running.lock();
        if guest.is_none() {
            // The last job killed the guest: this one gets another boot.
            match self
                .vm
                .start(&self.kernel, &self.initrd, &self.boot_parameters)?
            {
                GuestStart::Waits(again) => *guest = Some(*again),
                GuestStart::Died { ended, console } => {
                    let failure = failure(Stage::Boot, ended, &console);
                    return Ok(JobEnd::unobserved(Err(failure), console));
                }
            }
        }
        let Some(running) = guest.as_mut() else {
            unreachable!("a guest was started")
        };
        let limits = &self.vm.settings.limits;
        let before = running.accounts();
        let (sent, ended) = running.exchange(&bytes, limits)?;
        let disturbance = running.accounts().since(&before, limits.disturbed_share);
        let console = running.new_console();
        let stream = match (ended, wire::decode(&sent, job.id)) {
            (None, Ok(mut stream)) => {
                if job.task == Task::Environment {
                    stream.frames.push(report_frame(&running.pinned.describe()));
                }
                Ok(stream)
            }
            (ended, decoded) => {
                // The next job gets a guest that nothing has happened to.
                *guest = None;
                self.vm.check_emulator(&console)?;
                Err(stream_failure(
                    ended.unwrap_or(Ended::PoweredOff),
                    decoded.err(),
                    &console,
                ))
            }
        };
        Ok(JobEnd {
            disturbance,
            ..JobEnd::unobserved(stream, console)
        })
    }
}

impl Running {
    /// Sends a job and returns what came back until its end, or until the guest ended.
    fn exchange(
        &mut self,
        job: &[u8],
        limits: &Limits,
    ) -> Result<(Vec<u8>, Option<Ended>), MachineError> {
        let line = self.scratch.path(JOBS);
        self.jobs
            .write_all(job)
            .map_err(MachineError::io("write", &line))?;
        let mut sent = Vec::new();
        let mut part = vec![0; 1 << 16];
        // Only waits count: the line brings some bytes at a time. QEMU itself ends after a day.
        let mut waits = 0;
        while waits < limits.job_s * LOOKS_PER_S / 2 {
            match self.jobs.read(&mut part) {
                Ok(count @ 1..) => {
                    sent.extend_from_slice(&part[..count]);
                    if part[..count].contains(&JOB_END) {
                        return Ok((sent, None));
                    }
                    if sent.len() > STREAM_MAX {
                        return Ok((sent, Some(Ended::ConsoleFull)));
                    }
                    continue;
                }
                Ok(0) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
                Err(error) => return Err(MachineError::io("read", &line)(error)),
            }
            waits += 1;
            if let Some(ended) = self.process.poll(limits.console_bytes)? {
                return Ok((sent, Some(ended)));
            }
        }
        Ok((sent, Some(Ended::Deadline)))
    }

    fn accounts(&self) -> Accounts {
        Accounts::of_process(self.process.id(), self.pinned.used())
    }

    /// Returns what the guest has printed since the last job.
    fn new_console(&mut self) -> Vec<u8> {
        let console = self.scratch.console();
        let new = console
            .get(self.console_read..)
            .unwrap_or_default()
            .to_vec();
        self.console_read = console.len();
        new
    }
}

fn memory_mib(shape: VmShape, initrds: &Initrds) -> u32 {
    shape.memory_mib.max(initrds.guest_config().memory_mib)
}

fn arguments(
    accelerator: Accelerator,
    shape: VmShape,
    memory_mib: u32,
    boot_parameters: &str,
) -> Vec<String> {
    let options = [
        "-nodefaults -no-user-config -display none -no-reboot -M q35 -name marvin,debug-threads=on",
        "-kernel kernel -initrd initrd",
        CONTROL,
        &format!("-serial file:{CONSOLE} -chardev socket,id=jobs,path={JOBS},server=on,wait=off -serial chardev:jobs"),
        &format!("-smp {} -m {memory_mib} {}", shape.cpus, accelerator.arguments()),
    ]
    .join(" ");
    let options = options.split(' ').map(str::to_owned);
    options
        .chain([
            "-append".to_owned(),
            format!("{COMMAND_LINE} {boot_parameters}")
                .trim_end()
                .to_owned(),
        ])
        .collect()
}

fn identity(
    qemu: &Qemu,
    (accelerator, shape): (Accelerator, VmShape),
    initrds: &Initrds,
    disk: Option<&ScratchDisk>,
) -> Result<Machine, MachineError> {
    let memory_mib = memory_mib(shape, initrds);
    let processor = processor_name();
    let mut fingerprint = initrds.fingerprint();
    fingerprint.retain(|(name, _)| name != "memory_mib");
    fingerprint.extend([
        (
            "arguments".to_owned(),
            arguments(accelerator, shape, memory_mib, "").join(" "),
        ),
        ("host.processor".to_owned(), processor.clone()),
        ("memory_mib".to_owned(), memory_mib.to_string()),
    ]);
    fingerprint.extend(qemu.fingerprint());
    fingerprint.extend(disk.map(ScratchDisk::fingerprint));
    let cpus = shape.cpus;
    let summary = format!(
        "QEMU {}, q35, {accelerator}, {cpus} processors, {memory_mib} MiB, on {processor}",
        qemu.version
    );
    identify(MachineKind::Vm, summary, fingerprint)
}
