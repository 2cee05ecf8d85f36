//! The exact machine: QEMU's microvm with TCG and instruction counting, one processor or several,
//! nothing asynchronous.
//!
//! A build boots once per seed, settles, stops at an exact instruction, and QEMU saves it; each job
//! starts from there. The only input is the job (fw_cfg), the only output the serial line's file.
//! `docs/exact-machine.md` has measurements that justify each argument.

mod capture;
mod cpu;
mod processors;
mod proof;
mod snapshot;
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Capabilities, ExactCpu, GuestConfig, Machine, MachineKind, Stage, SubjectFailure};
use serde_json::json;
use wire::Job;

use self::cpu::Cpu;
pub use self::processors::{Costs, Smp};
use self::processors::{Processors, SHARED, count_transfers};
pub use self::proof::ReferenceNumbers;
pub use self::snapshot::hash_memory;
use self::snapshot::{RAM, Snapshot, Snapshots};
use crate::backend::{
    Backend, BootOutcome, Booted, DeadMemory, Guest, JobEnd, Observe, modules_hash,
};
use crate::guest_terminal::{GuestTerminal, Pace};
use crate::initrds::Initrds;
use crate::qemu::{
    Budget, CONSOLE, CONTROL, Ended, Process, Qemu, STATE, Scratch, failure, restore, save,
    stream_failure,
};
use crate::settings::{ScratchFolder, Settings, SnapshotUse, free_mib};
use crate::{MachineError, hash, identify};

const COMMAND_LINE: &str =
    "console=ttyS0 nokaslr norandmaps reboot=t panic=-1 oops=panic cryptomgr.notests";

/// The plugin's file within a scratch directory, its input and its output.
const TRACER: &str = "tracer.so";
const MARKS: &str = "marks";
const COUNTS: &str = "counts";
/// Slowest plausible rate of a host (instructions per second of wall time); below it the host is
/// too busy.
const SLOWEST: u64 = 10_000_000;
/// Wall time beside that (s).
const LEAST_WALL_S: u64 = 60;
/// The job of a guest that only boots.
const NO_JOB: [u8; wire::JOB_SIZE] = [0; wire::JOB_SIZE];
/// The tracer's file for the call tree.
const CALLS: &str = "calls";
/// The second plugin's file, and its output.
const RECORDER: &str = "recorder.so";
const PATH: &str = "path";

/// An exact machine, ready to boot builds. Several threads may use it at the same time.
#[derive(Debug)]
pub struct Exact {
    qemu: Qemu,
    /// None for one processor.
    processors: Option<Processors>,
    machine: Machine,
    initrds: Initrds,
    tracer: PathBuf,
    scratch: Arc<ScratchFolder>,
    snapshots: Arc<Snapshots>,
    settings: Settings,
}

/// What a machine boots.
#[derive(Debug, Clone)]
struct Load {
    /// The file to boot.
    kernel: PathBuf,
    initrd: PathBuf,
    seed: u64,
    /// What the kernel's command line gets beside the machine's own words.
    boot_parameters: String,
}

#[derive(Debug)]
struct Start {
    machine: Arc<Exact>,
    snapshot: Snapshot,
    load: Load,
}

/// Returns the tracer's arguments; see `crates/guest/tracer/src/lib.rs`.
fn tracer_arguments(observe: Observe<'_>, seed: u64) -> String {
    match observe {
        Observe::Nothing => String::new(),
        Observe::Sharing(_) => format!(",marks={MARKS}"),
        Observe::Counts(_) | Observe::Path(..) => format!(",counts={COUNTS},marks={MARKS}"),
        Observe::Calls(_) => format!(",counts={COUNTS},marks={MARKS},calls={CALLS}"),
        Observe::Model(_, model) => {
            let sizes = model
                .simulated()
                .into_iter()
                .map(|(word, size)| format!(",{word}={size}"));
            format!(
                ",counts={COUNTS},marks={MARKS},model=on,seed={seed}{}",
                sizes.collect::<String>()
            )
        }
    }
}

/// The end of a machine's way to where jobs start.
enum AtStart {
    /// It waits there.
    Waits(Box<Process>),
    /// It died or hung before.
    Died(Ended),
}

impl Exact {
    /// Returns how many processors a job may use on the machine with these processors.
    #[must_use]
    pub const fn processors(smp: Option<Smp>) -> u32 {
        match smp {
            Some(smp) => smp.cpus,
            None => MachineKind::Exact.capabilities().processors,
        }
    }

    /// Finds QEMU, computes the machine's identity and prepares its directories.
    ///
    /// # Errors
    /// If no QEMU is usable or the data directory cannot be written.
    pub fn open(settings: Settings, processors: Option<Smp>) -> Result<Self, MachineError> {
        let qemu = Qemu::find(settings.qemu.as_deref(), &settings.home)?;
        let processors = processors
            .map(|smp| Processors::new(smp, &qemu))
            .transpose()?;
        let scratch = Arc::new(ScratchFolder::new(&settings.home)?);
        let programs = settings.programs.clone();
        let initrds = Initrds::new(scratch.path(), programs, settings.loader.clone())?;
        let machine = identity(&qemu, processors, &initrds, &settings)?;
        let tracer = scratch.path().join(TRACER);
        fs::write(&tracer, &settings.tracer).map_err(MachineError::io("write", &tracer))?;
        if !qemu.is_known() {
            let cpu = Cpu::named(settings.cpu);
            let mut arguments = machine_arguments(&qemu, cpu, processors);
            arguments.extend(plugin(&qemu, String::new()));
            arguments.extend(AT_THE_END.map(str::to_owned));
            cpu::check(&qemu, cpu, arguments, &tracer, scratch.path())?;
        }
        let snapshots = Snapshots::new(
            settings.home.join("snapshots"),
            settings.limits.snapshot_bytes,
        );
        Ok(Self {
            qemu,
            processors,
            machine,
            initrds,
            tracer,
            scratch,
            snapshots: Arc::new(snapshots),
            settings,
        })
    }

    fn memory_mib(&self) -> u32 {
        self.initrds.guest_config().memory_mib
    }

    /// Returns what to boot for a guest.
    fn load(&self, guest: &Guest<'_>, seed: u64) -> Result<Load, MachineError> {
        Ok(Load {
            kernel: guest.build.boot_file().path.clone(),
            initrd: self.initrds.path_for(guest)?,
            seed,
            boot_parameters: guest.build.name.boot_parameters(),
        })
    }

    fn failed_boot(&self, load: &Load, ended: Ended, scratch: &Scratch) -> BootOutcome {
        let console = scratch.console();
        if wire::find_hello(&console).is_some() {
            return BootOutcome::KernelFailed {
                failure: failure(Stage::Settle, ended, &console),
                console,
            };
        }
        // A kernel that dies early with `quiet` prints nothing; repeat the boot with all messages.
        let console = self.boot_aloud(load).unwrap_or(console);
        BootOutcome::KernelFailed {
            failure: failure(Stage::Boot, ended, &console),
            console,
        }
    }

    /// Starts a machine and takes it to where jobs start.
    fn at_start(
        &self,
        start: &Start,
        scratch: &mut Scratch,
        observe: Observe<'_>,
    ) -> Result<AtStart, MachineError> {
        if let Snapshot::Saved(folder) = &start.snapshot
            && let Some(process) = self.restore_snapshot(folder, &start.load, scratch, observe)
        {
            return Ok(AtStart::Waits(Box::new(process)));
        }
        let mut process = self.start_booting(&start.load, scratch, observe)?;
        // The guest stops where a snapshot would be taken, and continues from there: without the
        // stop its timer would fire some instructions earlier or later, and the numbers
        // would differ from those with a snapshot.
        let ended = process.wait_for_end(&self.boot_budget(observe))?;
        Ok(if ended == Ended::Stopped {
            AtStart::Waits(Box::new(process))
        } else {
            AtStart::Died(ended)
        })
    }

    /// Starts a machine that boots, without a snapshot.
    fn start_booting(
        &self,
        load: &Load,
        scratch: &Scratch,
        observe: Observe<'_>,
    ) -> Result<Process, MachineError> {
        let mut arguments = self.arguments(load, "quiet", observe);
        arguments.extend(["-m".to_owned(), self.memory_mib().to_string()]);
        Process::start(&self.qemu, &arguments, scratch)
    }

    /// Restores a snapshot; if that fails, deletes the snapshot and boots the guest.
    fn restore_snapshot(
        &self,
        folder: &Path,
        load: &Load,
        scratch: &mut Scratch,
        observe: Observe<'_>,
    ) -> Option<Process> {
        // QEMU would wait for a missing memory file.
        if !folder.join(RAM).is_file() {
            return None;
        }
        let forget = |scratch: &mut Scratch| {
            self.snapshots.forget(folder);
            [RAM, STATE].iter().for_each(|name| scratch.unlink(name));
        };
        self.restore(folder, load, scratch, observe)
            .map_err(|_| forget(scratch))
            .ok()
    }

    fn restore(
        &self,
        folder: &Path,
        load: &Load,
        scratch: &mut Scratch,
        observe: Observe<'_>,
    ) -> Result<Process, MachineError> {
        let share = self.link_snapshot(folder, scratch)?;
        let mut arguments = self.arguments(load, "quiet", observe);
        arguments.extend(memory(self.memory_mib(), &share));
        arguments.extend(["-S", "-incoming", "defer"].map(str::to_owned));
        let mut process = Process::start(&self.qemu, &arguments, scratch)?;
        restore(&mut process, scratch)?;
        Ok(process)
    }

    /// Links a snapshot into a scratch directory, and returns how QEMU shares its memory: not. The
    /// guest's writes stay in its process, the saved memory is only read.
    fn link_snapshot(&self, folder: &Path, scratch: &mut Scratch) -> Result<String, MachineError> {
        let read_only = self.qemu.read_only_memory();
        match read_only {
            Some(_) => scratch.link(RAM, &folder.join(RAM))?,
            None => scratch.link_writable(RAM, &folder.join(RAM))?,
        }
        scratch.link(STATE, &folder.join(STATE))?;
        Ok(format!("off{}", read_only.unwrap_or_default()))
    }

    /// Boots again with all messages, and returns the console if it has more.
    fn boot_aloud(&self, load: &Load) -> Option<Vec<u8>> {
        let scratch = self.prepare(load, &NO_JOB).ok()?;
        let mut arguments = self.arguments(
            load,
            "ignore_loglevel earlyprintk=serial,ttyS0,115200",
            Observe::Nothing,
        );
        arguments.extend(["-m".to_owned(), self.memory_mib().to_string()]);
        let mut process = Process::start(&self.qemu, &arguments, &scratch).ok()?;
        process
            .wait_for_end(&self.boot_budget(Observe::Nothing))
            .ok()?;
        drop(process);
        Some(scratch.console()).filter(|console| !console.is_empty())
    }

    /// Makes a scratch directory with the machine's files.
    fn prepare(&self, load: &Load, job: &[u8]) -> Result<Scratch, MachineError> {
        let scratch = Scratch::new(self.scratch.path())?;
        scratch.link("kernel", &load.kernel)?;
        scratch.link("initrd", &load.initrd)?;
        scratch.link(TRACER, &self.tracer)?;
        scratch.write("job", job)?;
        Ok(scratch)
    }

    fn arguments(&self, load: &Load, loudness: &str, observe: Observe<'_>) -> Vec<String> {
        let seed = load.seed;
        let boot = &load.boot_parameters;
        let follows = matches!(observe, Observe::Sharing(_));
        let of_processors = self
            .processors
            .map(|processors| processors.tracer_arguments(seed, follows));
        let of_tracer = format!(
            "{}{}",
            tracer_arguments(observe, seed),
            of_processors.unwrap_or_default()
        );
        let cpu = Cpu::named(self.settings.cpu);
        let mut arguments = fixed_arguments(&self.qemu, cpu, self.processors);
        arguments.extend(plugin(&self.qemu, of_tracer));
        if let Observe::Path(_, region) = observe {
            arguments.extend([
                "-plugin".into(),
                format!("./{RECORDER},path={PATH},marks={MARKS},region={region}"),
            ]);
        }
        arguments.extend(["-seed".into(), (seed & 0xffff_ffff).to_string()]);
        arguments.extend([
            "-append".into(),
            format!("{} {loudness} {boot}", command_line(self.processors))
                .trim_end()
                .to_owned(),
        ]);
        arguments.extend(AT_THE_END.map(str::to_owned));
        arguments
    }

    /// Lists everything that a snapshot depends on, as lines.
    fn ingredients(&self, guest: &Guest<'_>, seed: u64) -> String {
        let image = &guest.build.boot_file().sha256;
        let modules = match guest.modules {
            [] => String::new(),
            modules => format!("modules.sha256={}\n", modules_hash(modules)),
        };
        let boot = match guest.build.name.boot_parameters() {
            boot if boot.is_empty() => boot,
            boot => format!("boot={boot}\n"),
        };
        format!(
            "machine={}\nimage.sha256={image}\n{modules}{boot}seed={seed}\n",
            self.machine.id
        )
    }

    /// Returns the budget of a boot.
    fn boot_budget(&self, observe: Observe<'_>) -> Budget {
        self.budget(0, self.settings.limits.boot_instructions, observe)
    }

    /// Returns the budget of a job that begins now.
    fn job_budget(
        &self,
        process: &mut Process,
        observe: Observe<'_>,
    ) -> Result<Budget, MachineError> {
        Ok(self.budget(
            process.instructions()?,
            self.settings.limits.job_instructions,
            observe,
        ))
    }

    fn budget(&self, executed: u64, more: u64, observe: Observe<'_>) -> Budget {
        let until = Some(executed + more);
        let console_bytes = self.settings.limits.console_bytes;
        // Following calls and simulating take longer than executing.
        let is_fast =
            matches!(observe, Observe::Nothing | Observe::Counts(_)) && self.processors.is_none();
        Budget {
            until,
            is_fast,
            wall_s: LEAST_WALL_S + more / SLOWEST,
            console_bytes,
        }
    }

    /// Checks for disk space: a disk that fills up under the guest's memory kills QEMU with SIGBUS.
    fn check_space(&self, memory_mib: u32) -> Result<(), MachineError> {
        let needed_mib = u64::from(memory_mib) + 64;
        match free_mib(self.scratch.path()) {
            Some(free) if free < needed_mib => Err(MachineError::NoSpace {
                folder: self.settings.home.clone(),
                needed_mib,
            }),
            // If the free space is unknown, QEMU's own failure has to do.
            _ => Ok(()),
        }
    }
}

impl Backend for Exact {
    fn identity(&self) -> &Machine {
        &self.machine
    }

    fn capabilities(&self) -> Capabilities {
        if let Some(processors) = self.processors {
            let processors = processors.count;
            let sharing = processors > 1;
            return Capabilities {
                processors,
                sharing,
                ..MachineKind::ExactSmp.capabilities()
            };
        }
        // Without plugins there are no counts.
        let counts = self.qemu.plugins;
        Capabilities {
            counts,
            calls: counts,
            cost_model: counts,
            ..MachineKind::Exact.capabilities()
        }
    }

    fn with_guest_config(
        &self,
        guest_config: &GuestConfig,
        files: Option<&Path>,
    ) -> Result<Arc<dyn Backend>, MachineError> {
        let initrds = self.initrds.with_guest_config(guest_config, files)?;
        Ok(Arc::new(Self {
            qemu: self.qemu.clone(),
            processors: self.processors,
            machine: identity(&self.qemu, self.processors, &initrds, &self.settings)?,
            initrds,
            tracer: self.tracer.clone(),
            scratch: Arc::clone(&self.scratch),
            snapshots: Arc::clone(&self.snapshots),
            settings: self.settings.clone(),
        }))
    }

    fn boot(self: Arc<Self>, guest: &Guest<'_>, seed: u64) -> Result<BootOutcome, MachineError> {
        let load = self.load(guest, seed)?;
        let ready = |snapshot| {
            BootOutcome::Ready(Box::new(Start {
                machine: Arc::clone(&self),
                snapshot,
                load: load.clone(),
            }))
        };
        if self.settings.snapshots == SnapshotUse::Never {
            return Ok(ready(plain_boot("snapshots are switched off")));
        }
        let ingredients = self.ingredients(guest, seed);
        let turn = self.snapshots.turn(&ingredients);
        let _mine = turn.lock();
        if let Some(folder) = self.snapshots.find(&ingredients) {
            return Ok(ready(Snapshot::Saved(folder)));
        }
        self.check_space(self.memory_mib())?;
        let scratch = self.prepare(&load, &NO_JOB)?;
        let mut arguments = self.arguments(&load, "quiet", Observe::Nothing);
        arguments.extend(memory(self.memory_mib(), "on"));
        let mut process = Process::start(&self.qemu, &arguments, &scratch)?;
        let ended = process.wait_for_end(&self.boot_budget(Observe::Nothing))?;
        let hello = wire::find_hello(&scratch.console()).is_some();
        if ended != Ended::Stopped || !hello {
            drop(process);
            return Ok(self.failed_boot(&load, ended, &scratch));
        }
        match save(&mut process, &scratch) {
            Ok(()) => {
                drop(process);
                Ok(ready(Snapshot::Saved(
                    self.snapshots.keep(&ingredients, &scratch)?,
                )))
            }
            Err(MachineError::Refused { command, answer }) => Ok(ready(plain_boot(&format!(
                "QEMU refused `{command}`: {answer}"
            )))),
            Err(error) => Err(error),
        }
    }

    fn boot_to_death(
        &self,
        guest: &Guest<'_>,
        seed: u64,
    ) -> Result<Option<DeadMemory>, MachineError> {
        self.capture_boot(guest, seed)
    }
}

impl Booted for Start {
    fn remark(&self) -> Option<&str> {
        match &self.snapshot {
            Snapshot::PlainBoot(why) => Some(why),
            Snapshot::Saved(_) => None,
        }
    }

    fn run(&self, job: &Job, observe: Observe<'_>) -> Result<JobEnd, MachineError> {
        let exact = &self.machine;
        let mut scratch = exact.prepare(&self.load, &job.encode()?)?;
        if let Observe::Sharing(marks)
        | Observe::Counts(marks)
        | Observe::Calls(marks)
        | Observe::Path(marks, _)
        | Observe::Model(marks, _) = observe
        {
            scratch.write(MARKS, marks.as_bytes())?;
        }
        if let Observe::Path(..) = observe {
            scratch.write(RECORDER, &exact.settings.path_recorder)?;
        }
        let mut process = match exact.at_start(self, &mut scratch, observe)? {
            AtStart::Waits(process) => process,
            AtStart::Died(ended) => {
                let console = scratch.console();
                let stream = Err(failure(Stage::Boot, ended, &console));
                return Ok(JobEnd::unobserved(stream, console));
            }
        };
        let budget = exact.job_budget(&mut process, observe)?;
        process.command("cont", json!({}))?;
        let ended = process.wait_for_end(&budget)?;
        if ended == Ended::PoweredOff {
            process.end()?;
        } else {
            drop(process);
        }
        let console = scratch.console();
        let written = |file| fs::read(scratch.path(file)).ok();
        let shared = written(SHARED);
        let stream = match (ended, wire::decode(&console, job.id)) {
            (Ended::PoweredOff, Ok(mut stream)) => {
                if matches!(observe, Observe::Sharing(_)) {
                    count_transfers(&mut stream, shared.as_deref().unwrap_or_default())?;
                }
                Ok(stream)
            }
            (_, error) => {
                // On a full disk the console loses bytes, which is not the kernel's fault.
                exact.check_space(exact.memory_mib())?;
                Err(stream_failure(ended, error.err(), &console))
            }
        };
        Ok(JobEnd {
            counts: written(COUNTS),
            calls: written(CALLS),
            path: written(PATH),
            shared,
            ..JobEnd::unobserved(stream, console)
        })
    }

    fn open_terminal(
        &self,
        job: &Job,
        pace: Pace,
    ) -> Result<Result<GuestTerminal, SubjectFailure>, MachineError> {
        self.machine.open_terminal(self, job, pace)
    }

    fn run_to_death(&self, job: &Job) -> Result<Option<DeadMemory>, MachineError> {
        self.machine.capture_job(self, job)
    }
}

fn plain_boot(why: &str) -> Snapshot {
    Snapshot::PlainBoot(format!("no snapshot ({why}): each job boots"))
}

/// Returns the kernel's command line. Processors' times differ by some hundred nanoseconds, for
/// which the kernel would give the TSC up.
fn command_line(processors: Option<Processors>) -> String {
    let more = if has_several(processors) {
        " tsc=reliable"
    } else {
        ""
    };
    format!("{COMMAND_LINE}{more}")
}

/// Pause at the end, so that Marvin can read the number of executed instructions.
const AT_THE_END: [&str; 2] = ["-action", "shutdown=pause"];

/// Returns the argument that loads the plugin; empty if this QEMU loads none.
fn plugin(qemu: &Qemu, of_tracer: String) -> Vec<String> {
    // With a directory: QEMU would look for a bare name in the library path.
    if qemu.plugins {
        vec!["-plugin".into(), format!("./{TRACER}{of_tracer}")]
    } else {
        Vec::new()
    }
}

/// The arguments shared by all boots and builds; part of the machine's identity.
fn fixed_arguments(qemu: &Qemu, cpu: &Cpu, processors: Option<Processors>) -> Vec<String> {
    let guest = "-device ib700 -action watchdog=pause -kernel kernel -initrd initrd -fw_cfg name=opt/marvin/job,file=job";
    let mut arguments = machine_arguments(qemu, cpu, processors);
    arguments.extend(guest.split(' ').map(str::to_owned));
    arguments
}

/// The arguments of a machine without a guest.
fn machine_arguments(qemu: &Qemu, cpu: &Cpu, processors: Option<Processors>) -> Vec<String> {
    let arguments = [
        "-nodefaults -no-user-config -display none -no-reboot",
        "-accel tcg,thread=single,tb-size=64 -icount shift=0,sleep=off",
        "-rtc clock=vm,base=2020-01-01T00:00:00",
        CONTROL,
    ];
    let mut arguments: Vec<String> = arguments
        .iter()
        .flat_map(|line| line.split(' '))
        .map(str::to_owned)
        .collect();
    arguments.extend(["-M".into(), qemu.microvm().into()]);
    arguments.extend([
        "-cpu".into(),
        cpu.argument(),
        "-serial".into(),
        format!("file:{CONSOLE}"),
    ]);
    arguments.extend(
        processors
            .into_iter()
            .flat_map(|processors| ["-smp".into(), processors.count.to_string()]),
    );
    arguments
}

fn has_several(processors: Option<Processors>) -> bool {
    processors.is_some_and(|processors| processors.count > 1)
}

/// Arguments for the guest's memory as a file, shared (written back) or private to the process.
fn memory(mib: u32, share: &str) -> [String; 6] {
    [
        "-m".into(),
        mib.to_string(),
        "-object".into(),
        format!("memory-backend-file,id=ram,size={mib}M,mem-path={RAM},share={share}"),
        "-machine".into(),
        "memory-backend=ram".into(),
    ]
}

fn identity(
    qemu: &Qemu,
    processors: Option<Processors>,
    initrds: &Initrds,
    settings: &Settings,
) -> Result<Machine, MachineError> {
    let cpu = Cpu::named(settings.cpu);
    let memory_mib = initrds.guest_config().memory_mib;
    let mut fingerprint = initrds.fingerprint();
    fingerprint.extend([
        (
            "tracer.sha256".to_owned(),
            if qemu.plugins {
                hash(&[&settings.tracer])
            } else {
                "none".to_owned()
            },
        ),
        (
            "arguments".to_owned(),
            fixed_arguments(qemu, cpu, processors).join(" "),
        ),
        ("command_line".to_owned(), command_line(processors)),
        ("cpu".to_owned(), cpu.argument()),
    ]);
    // The usual one has no name: machines from before there were others keep their ids.
    if settings.cpu != ExactCpu::default() {
        fingerprint.push((ExactCpu::KEY.to_owned(), settings.cpu.name().to_owned()));
    }
    fingerprint.extend(processors.into_iter().flat_map(Processors::fingerprint));
    fingerprint.extend(
        qemu.fingerprint()
            .into_iter()
            .chain(settings.conditions.iter().cloned()),
    );
    let fitted = fingerprint
        .iter()
        .find(|(name, _)| name == "equipment.modules");
    let fitted = fitted.map_or_else(String::new, |(_, modules)| format!(", modules {modules}"));
    let (kind, smp) = match processors {
        None => (MachineKind::Exact, String::new()),
        Some(processors) => (
            MachineKind::ExactSmp,
            format!(", {} processors", processors.count),
        ),
    };
    let other = if qemu.is_known() { "" } else { "another " };
    let summary = format!(
        "{other}QEMU {}, microvm, {}{smp}, {memory_mib} MiB{fitted}, -icount shift=0",
        qemu.version, cpu.summary
    );
    identify(kind, summary, fingerprint)
}
