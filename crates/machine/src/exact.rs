//! The exact machine: QEMU's microvm with TCG and instruction counting, one processor, nothing asynchronous.
//!
//! A build boots once per seed, settles, stops at an exact instruction and is saved; each job starts from there. The
//! only input is the job (fw_cfg) and the only output the serial line's file. Why each argument is there is measured
//! in `docs/exact-machine.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use model::{Build, CostModel, FailureReason, Machine, MachineId, MachineKind, Stage, SubjectFailure};
use serde_json::json;
use wire::{Job, Stream, StreamError};

use crate::MachineError;
use crate::console::{readable_tail, reason_in};
use crate::initrd::{InitrdFile, Programs, equipped, initrd};
use crate::process::{Budget, CONSOLE, CONTROL, Ended, Process, Scratch};
use crate::qemu::{Qemu, hash};
use crate::snapshot::{RAM, STATE, Snapshot, Snapshots};

/// `max` has all that TCG offers; without erms and fsrm, `rep movsb` is not counted byte by byte where another kernel
/// would be counted word by word.
const CPU: &str = "max,-erms,-fsrm";
const COMMAND_LINE: &str = "console=ttyS0 nokaslr norandmaps reboot=t panic=-1 oops=panic cryptomgr.notests";

/// The plugin's file within a scratch folder, what it reads and what it writes.
const TRACER: &str = "tracer.so";
const MARKS: &str = "marks";
const COUNTS: &str = "counts";
/// What the tracer writes the call tree to.
const CALLS: &str = "calls";

/// Limits of one machine. Processor seconds count, so that a busy host does not make a kernel "hang".
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Processor seconds of QEMU for boot and settling.
    pub boot_cpu_s: u64,
    /// Processor seconds of QEMU for a job.
    pub job_cpu_s: u64,
    /// How many times longer than that it may take on the wall.
    pub wall_factor: u64,
    /// Bytes a guest may print.
    pub console_bytes: u64,
    /// Bytes that all snapshots together may take on disk.
    pub snapshot_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { boot_cpu_s: 60, job_cpu_s: 60, wall_factor: 8, console_bytes: 16 << 20, snapshot_bytes: 4 << 30 }
    }
}

/// Whether snapshots are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotUse {
    /// Boot once per seed, then start from the saved guest.
    Cached,
    /// Boot for each job. Slower, with the same numbers.
    Never,
}

/// What an exact machine is made of.
#[derive(Debug, Clone)]
pub struct Settings {
    /// QEMU, if not the one in PATH.
    pub qemu: Option<PathBuf>,
    /// The guest's programs.
    pub programs: Programs,
    /// The plugin that QEMU loads.
    pub tracer: Vec<u8>,
    /// What else results depend on, to be part of the machine's identity.
    pub conditions: Vec<(String, String)>,
    /// Where snapshots and scratch files go.
    pub home: PathBuf,
    /// Guest memory in MiB.
    pub memory_mib: u32,
    /// Whether snapshots are used.
    pub snapshots: SnapshotUse,
    /// Limits.
    pub limits: Limits,
}

/// What a machine's guests have beyond their programs.
#[derive(Debug, Clone, Default)]
pub struct Fittings {
    /// What loads modules, and which, as a text that tells this from other equipment; none for guests without.
    pub loader: Option<(Vec<u8>, String)>,
    /// A cpio archive that is unpacked into the guest's root first.
    pub files: Option<PathBuf>,
    /// What tells these files, and what is done with them, from others.
    pub files_of: String,
}

/// What a guest boots and carries.
#[derive(Debug, Clone, Copy)]
pub struct Guest<'a> {
    /// The build.
    pub build: &'a Build,
    /// Its modules and their list, as the machine's loader wants them; none where it has no loader.
    pub modules: &'a [InitrdFile],
}

/// An exact machine, ready to boot builds. May be used by several threads at once.
#[derive(Debug)]
pub struct Exact {
    qemu: Qemu,
    machine: Machine,
    /// What guests without modules have.
    initrd: PathBuf,
    tracer: PathBuf,
    scratch: PathBuf,
    snapshots: Arc<Snapshots>,
    settings: Settings,
    fittings: Fittings,
}

/// Where jobs start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The saved guest.
    pub snapshot: Snapshot,
    /// The file that was booted.
    pub kernel: PathBuf,
    /// What it was booted with.
    pub initrd: PathBuf,
    /// The seed it was booted with.
    pub seed: u64,
}

/// How a boot ended.
#[derive(Debug)]
pub enum Boot {
    /// Jobs can start from here.
    Ready(Start),
    /// The kernel failed; with the whole console.
    Failed(SubjectFailure, Vec<u8>),
}

/// How a job ended.
#[derive(Debug)]
pub struct JobEnd {
    /// The agent's frames, or how the kernel failed.
    pub stream: Result<Stream, SubjectFailure>,
    /// The whole console, with the frames in it.
    pub console: Vec<u8>,
    /// What the tracer counted, where it was asked to and QEMU ended by itself.
    pub counts: Option<Vec<u8>>,
    /// The call tree, under the same conditions.
    pub calls: Option<Vec<u8>>,
}

/// What the tracer is to do, as in `crates/tracer/src/lib.rs`. The guest does the same whatever it is.
#[derive(Debug, Clone, Copy)]
pub enum Trace<'a> {
    /// Only keep the clock exact.
    Nothing,
    /// Count instructions by address and by who executes them, told apart by these marks.
    Counts(&'a str),
    /// Follow calls as well; the marks name all functions.
    Calls(&'a str),
    /// Count, and simulate this processor.
    Model(&'a str, &'a CostModel),
}

impl Trace<'_> {
    fn arguments(self, seed: u64) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Counts(_) => format!(",counts={COUNTS},marks={MARKS}"),
            Self::Calls(_) => format!(",counts={COUNTS},marks={MARKS},calls={CALLS}"),
            Self::Model(_, model) => {
                let sizes = model.simulated().into_iter().map(|(word, size)| format!(",{word}={size}"));
                format!(",counts={COUNTS},marks={MARKS},model=on,seed={seed}{}", sizes.collect::<String>())
            }
        }
    }
}

impl Exact {
    /// Finds QEMU, works out the machine's identity and prepares its folders.
    ///
    /// # Errors
    /// When there is no usable QEMU or the home cannot be written.
    pub fn open(settings: Settings) -> Result<Self, MachineError> {
        let qemu = Qemu::find(settings.qemu.as_deref())?;
        let archive = initrd(&settings.programs);
        let machine = identify(&qemu, (&archive, &[]), &settings)?;
        let scratch = settings.home.join("scratch");
        if scratch.exists() {
            // Left by a killed Marvin; the home's lock says that nobody is using it now.
            fs::remove_dir_all(&scratch).map_err(MachineError::io("remove", &scratch))?;
        }
        fs::create_dir_all(&scratch).map_err(MachineError::io("create", &scratch))?;
        let initrd = scratch.join("initrd");
        fs::write(&initrd, &archive).map_err(MachineError::io("write", &initrd))?;
        let tracer = scratch.join(TRACER);
        fs::write(&tracer, &settings.tracer).map_err(MachineError::io("write", &tracer))?;
        let snapshots = Snapshots::new(settings.home.join("snapshots"), settings.limits.snapshot_bytes)?;
        let (snapshots, fittings) = (Arc::new(snapshots), Fittings::default());
        Ok(Self { qemu, machine, initrd, tracer, scratch, snapshots, settings, fittings })
    }

    /// Returns this machine with so much memory and other fittings: another machine, in the same folders.
    ///
    /// # Errors
    /// When the archive of files cannot be read, or the scratch folder cannot be written.
    pub fn equipped(&self, memory_mib: u32, fittings: Fittings) -> Result<Self, MachineError> {
        let settings = Settings { memory_mib, ..self.settings.clone() };
        let mut archive = match &fittings.files {
            Some(path) => fs::read(path).map_err(MachineError::io("read", path))?,
            None => Vec::new(),
        };
        let mut pairs = Vec::new();
        if let Some((loader, modules)) = &fittings.loader {
            pairs.push(("equipment.loader.sha256".to_owned(), hash(&[loader])));
            pairs.push(("equipment.modules".to_owned(), modules.clone()));
        }
        if fittings.files.is_some() {
            pairs.push(("equipment.files.sha256".to_owned(), hash(&[&archive])));
            pairs.push(("equipment.files.of".to_owned(), fittings.files_of.clone()));
        }
        let own = initrd(&settings.programs);
        let machine = identify(&self.qemu, (&own, &pairs), &settings)?;
        archive.extend(own);
        let initrd = self.keep_initrd(&archive)?;
        let (qemu, tracer, scratch) = (self.qemu.clone(), self.tracer.clone(), self.scratch.clone());
        Ok(Self { qemu, machine, initrd, tracer, scratch, snapshots: Arc::clone(&self.snapshots), settings, fittings })
    }

    /// Writes an initrd under the name of its content, where it stays as long as the lab is open.
    fn keep_initrd(&self, archive: &[u8]) -> Result<PathBuf, MachineError> {
        let path = self.scratch.join(format!("initrd-{}", hash(&[archive])));
        if !path.exists() {
            let folder = Scratch::new(&self.scratch)?;
            folder.write("initrd", archive)?;
            fs::rename(folder.path("initrd"), &path).map_err(MachineError::io("keep", &path))?;
        }
        Ok(path)
    }

    /// Returns the initrd of a guest.
    pub(crate) fn initrd_of(&self, guest: &Guest<'_>) -> Result<PathBuf, MachineError> {
        let Some((loader, _)) = &self.fittings.loader else { return Ok(self.initrd.clone()) };
        let mut archive = match &self.fittings.files {
            Some(path) => fs::read(path).map_err(MachineError::io("read", path))?,
            None => Vec::new(),
        };
        archive.extend(equipped(&self.settings.programs, loader, guest.modules));
        self.keep_initrd(&archive)
    }

    /// Returns the machine's identity.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Returns the guest's memory in MiB.
    pub(crate) fn memory_mib(&self) -> u32 {
        self.settings.memory_mib
    }

    /// Returns QEMU and the folder that scratch folders are made in, for guests that are not measured.
    pub(crate) fn qemu_and_scratch(&self) -> (&Path, &Path) {
        (&self.qemu.program, &self.scratch)
    }

    /// Tells whether instructions can be counted by function: whether QEMU loads plugins.
    #[must_use]
    pub fn can_count(&self) -> bool {
        self.qemu.plugins
    }

    /// Boots a build with a seed up to the point where jobs start, or finds the snapshot of an earlier boot.
    ///
    /// # Errors
    /// When the lab fails. A kernel that fails is a result, see [`Boot::Failed`].
    pub fn boot(&self, guest: &Guest<'_>, seed: u64) -> Result<Boot, MachineError> {
        let (build, initrd) = (guest.build, self.initrd_of(guest)?);
        let ready = |snapshot| {
            let (kernel, initrd) = (build.boot_file().path.clone(), initrd.clone());
            Boot::Ready(Start { snapshot, kernel, initrd, seed })
        };
        if self.settings.snapshots == SnapshotUse::Never {
            return Ok(ready(Snapshot::PlainBoot("snapshots are switched off".into())));
        }
        let ingredients = self.ingredients(guest, seed);
        let turn = self.snapshots.turn(&ingredients);
        let _mine = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = self.snapshots.find(&ingredients) {
            return Ok(ready(Snapshot::Saved(folder)));
        }
        self.check_space(self.settings.memory_mib)?;
        let scratch = self.prepare((&build.boot_file().path, &initrd), &vec![0; wire::JOB_SIZE])?;
        let mut arguments = self.arguments(seed, "quiet", Trace::Nothing);
        arguments.extend(memory(self.settings.memory_mib, "on"));
        let mut process = Process::start(&self.qemu.program, &arguments, &scratch)?;
        let ended = process.watch(&self.budget(self.settings.limits.boot_cpu_s))?;
        let hello = wire::find_hello(&scratch.console()).is_some();
        if ended != Ended::Stopped || !hello {
            drop(process);
            return Ok(self.failed_boot((build, &initrd, seed), ended, &scratch));
        }
        match save(&mut process) {
            Ok(()) => {
                drop(process);
                Ok(ready(Snapshot::Saved(self.snapshots.keep(&ingredients, &scratch)?)))
            }
            Err(MachineError::Refused { command, answer }) => {
                Ok(ready(Snapshot::PlainBoot(format!("QEMU refused `{command}`: {answer}"))))
            }
            Err(error) => Err(error),
        }
    }

    fn failed_boot(&self, booted: (&Build, &Path, u64), ended: Ended, scratch: &Scratch) -> Boot {
        let console = scratch.console();
        if wire::find_hello(&console).is_some() {
            return Boot::Failed(failure(Stage::Settle, ended, &console), console);
        }
        // A quiet kernel that dies early leaves nothing behind; the same boot again with all its messages does.
        let console = self.boot_aloud(booted).unwrap_or(console);
        Boot::Failed(failure(Stage::Boot, ended, &console), console)
    }

    /// Does one job from a snapshot.
    ///
    /// # Errors
    /// When the lab fails. A kernel that fails is a result, see [`JobEnd::stream`].
    pub fn run(&self, start: &Start, job: &Job, trace: Trace<'_>) -> Result<JobEnd, MachineError> {
        let scratch = self.prepare((&start.kernel, &start.initrd), &job.encode()?)?;
        if let Trace::Counts(marks) | Trace::Calls(marks) | Trace::Model(marks, _) = trace {
            scratch.write(MARKS, marks.as_bytes())?;
        }
        let mut process = match self.at_start(start, &scratch, trace)? {
            Ok(process) => process,
            Err(ended) => {
                let console = scratch.console();
                let stream = Err(failure(Stage::Boot, ended, &console));
                return Ok(JobEnd { stream, console, counts: None, calls: None });
            }
        };
        process.command("cont", json!({}))?;
        let ended = process.watch(&self.budget(self.settings.limits.job_cpu_s))?;
        if ended == Ended::PoweredOff {
            process.wait_for_end()?;
        } else {
            drop(process);
        }
        let console = scratch.console();
        let stream = match (ended, wire::decode(&console, job.id)) {
            (Ended::PoweredOff, Ok(stream)) => Ok(stream),
            (_, error) => {
                // On a full disk the console loses bytes; that is no fault of the kernel's.
                self.check_space(self.settings.memory_mib)?;
                Err(stream_failure(ended, error.err(), &console))
            }
        };
        let written = |file| fs::read(scratch.path(file)).ok();
        Ok(JobEnd { stream, console, counts: written(COUNTS), calls: written(CALLS) })
    }

    /// Starts a machine that stands where jobs start; or says how it ended before it got there.
    pub(crate) fn at_start(
        &self,
        start: &Start,
        scratch: &Scratch,
        trace: Trace<'_>,
    ) -> Result<Result<Process, Ended>, MachineError> {
        if let Snapshot::Saved(folder) = &start.snapshot
            && let Some(process) = self.restored((folder, start.seed), scratch, trace)
        {
            return Ok(Ok(process));
        }
        let mut process = self.booting(start.seed, scratch, trace)?;
        // The guest stops where a snapshot would be taken, and goes on from there: a machine that does not
        // stop meets its timer some instructions apart from one that does, and the numbers would differ.
        let ended = process.watch(&self.budget(self.settings.limits.boot_cpu_s))?;
        Ok(if ended == Ended::Stopped { Ok(process) } else { Err(ended) })
    }

    /// Starts a machine that boots, for no snapshot.
    pub(crate) fn booting(&self, seed: u64, scratch: &Scratch, trace: Trace<'_>) -> Result<Process, MachineError> {
        let mut arguments = self.arguments(seed, "quiet", trace);
        arguments.extend(["-m".to_owned(), self.settings.memory_mib.to_string()]);
        Process::start(&self.qemu.program, &arguments, scratch)
    }

    /// Restores a snapshot; one that cannot be restored is forgotten, and the guest boots instead.
    fn restored(&self, saved: (&Path, u64), scratch: &Scratch, trace: Trace<'_>) -> Option<Process> {
        // QEMU would wait for a memory file that is not there.
        if !saved.0.join(RAM).is_file() {
            return None;
        }
        self.restore(saved, scratch, trace).map_err(|_| self.snapshots.forget(saved.0)).ok()
    }

    fn restore(
        &self,
        (folder, seed): (&Path, u64),
        scratch: &Scratch,
        trace: Trace<'_>,
    ) -> Result<Process, MachineError> {
        scratch.link(RAM, &folder.join(RAM))?;
        scratch.link(STATE, &folder.join(STATE))?;
        let mut arguments = self.arguments(seed, "quiet", trace);
        // share=off: what the guest writes stays in this process, the saved memory is only read.
        arguments.extend(memory(self.settings.memory_mib, "off"));
        arguments.extend(["-S", "-incoming", "defer"].map(str::to_owned));
        let mut process = Process::start(&self.qemu.program, &arguments, scratch)?;
        ignore_shared(&mut process)?;
        process.command("migrate-incoming", json!({ "uri": format!("exec:cat {STATE}") }))?;
        let status = process.until_not("query-status", &["inmigrate"])?;
        // It was saved in the state that the watchdog had put it into.
        if status != "watchdog" && status != "paused" {
            return Err(MachineError::Refused { command: "migrate-incoming".into(), answer: status });
        }
        Ok(process)
    }

    /// Boots once more with all messages, and returns the console if there is more on it.
    fn boot_aloud(&self, (build, initrd, seed): (&Build, &Path, u64)) -> Option<Vec<u8>> {
        let scratch = self.prepare((&build.boot_file().path, initrd), &vec![0; wire::JOB_SIZE]).ok()?;
        let mut arguments = self.arguments(seed, "ignore_loglevel earlyprintk=serial,ttyS0,115200", Trace::Nothing);
        arguments.extend(["-m".to_owned(), self.settings.memory_mib.to_string()]);
        let mut process = Process::start(&self.qemu.program, &arguments, &scratch).ok()?;
        process.watch(&self.budget(self.settings.limits.boot_cpu_s)).ok()?;
        drop(process);
        Some(scratch.console()).filter(|console| !console.is_empty())
    }

    /// Makes a folder for a machine, with what each needs.
    pub(crate) fn prepare(&self, (kernel, initrd): (&Path, &Path), job: &[u8]) -> Result<Scratch, MachineError> {
        let scratch = Scratch::new(&self.scratch)?;
        scratch.link("kernel", kernel)?;
        scratch.link("initrd", initrd)?;
        scratch.link(TRACER, &self.tracer)?;
        scratch.write("job", job)?;
        Ok(scratch)
    }

    fn arguments(&self, seed: u64, loudness: &str, trace: Trace<'_>) -> Vec<String> {
        // With the folder: QEMU would look for a bare name where libraries are.
        let plugin = format!("./{TRACER}{}", trace.arguments(seed));
        let mut arguments = fixed_arguments(&self.qemu);
        if self.qemu.plugins {
            arguments.extend(["-plugin".into(), plugin]);
        }
        arguments.extend(["-seed".into(), (seed & 0xffff_ffff).to_string()]);
        arguments.extend(["-append".into(), format!("{COMMAND_LINE} {loudness}")]);
        arguments
    }

    /// Everything that a snapshot depends on, as lines.
    fn ingredients(&self, guest: &Guest<'_>, seed: u64) -> String {
        let image = &guest.build.boot_file().sha256;
        let modules = match guest.modules {
            [] => String::new(),
            modules => format!("modules.sha256={}\n", modules_hash(modules)),
        };
        format!("machine={}\nimage.sha256={image}\n{modules}seed={seed}\n", self.machine.id)
    }

    /// Returns how long a machine may take that may use so many processor seconds.
    pub(crate) fn budget(&self, cpu_s: u64) -> Budget {
        let limits = &self.settings.limits;
        Budget { cpu_s, wall_s: cpu_s * limits.wall_factor, console_bytes: limits.console_bytes }
    }

    /// A disk that fills up under the guest's memory kills QEMU with SIGBUS: better to ask first.
    pub(crate) fn check_space(&self, memory_mib: u32) -> Result<(), MachineError> {
        let needed_mib = u64::from(memory_mib) + 64;
        let df = std::process::Command::new("df").args(["--output=avail", "-Bm"]).arg(&self.scratch).output();
        let free = df.ok().and_then(|df| {
            let text = String::from_utf8_lossy(&df.stdout).into_owned();
            text.lines().nth(1)?.trim().trim_end_matches('M').parse::<u64>().ok()
        });
        match free {
            Some(free) if free < needed_mib => {
                Err(MachineError::NoSpace { folder: self.settings.home.clone(), needed_mib })
            }
            // Without an answer QEMU's own failure will tell.
            _ => Ok(()),
        }
    }
}

/// The arguments that are the same for every boot and every build; part of the machine's identity.
fn fixed_arguments(qemu: &Qemu) -> Vec<String> {
    let words = [
        "-nodefaults -no-user-config -display none -no-reboot",
        "-accel tcg,thread=single,tb-size=64 -icount shift=0,sleep=off",
        "-rtc clock=vm,base=2020-01-01T00:00:00",
        "-device ib700 -action watchdog=pause -kernel kernel -initrd initrd",
        "-fw_cfg name=opt/marvin/job,file=job",
        CONTROL,
    ];
    let mut words: Vec<String> = words.iter().flat_map(|line| line.split(' ')).map(str::to_owned).collect();
    words.extend(["-M".into(), qemu.microvm().into()]);
    words.extend(["-cpu".into(), CPU.into(), "-serial".into(), format!("file:{CONSOLE}")]);
    words
}

/// The guest's memory as a file, shared (written back) or private to the process.
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

fn save(process: &mut Process) -> Result<(), MachineError> {
    ignore_shared(process)?;
    process.command("migrate", json!({ "uri": format!("exec:cat > {STATE}") }))?;
    match process.until_not("query-migrate", &["none", "setup", "active", "device"])?.as_str() {
        "completed" => Ok(()),
        status => Err(MachineError::Refused { command: "migrate".into(), answer: status.to_owned() }),
    }
}

/// Memory stays in its file: only the devices' state is migrated.
fn ignore_shared(process: &mut Process) -> Result<(), MachineError> {
    let capabilities = json!({ "capabilities": [{ "capability": "x-ignore-shared", "state": true }] });
    process.command("migrate-set-capabilities", capabilities).map(|_| ())
}

/// Returns a hash of what guests carry of a build's modules.
#[must_use]
pub fn modules_hash(modules: &[InitrdFile]) -> String {
    let lengths: Vec<String> = modules.iter().map(|file| format!("{} {}\n", file.path, file.bytes.len())).collect();
    let parts = lengths.iter().map(String::as_bytes).zip(modules.iter().map(|file| &*file.bytes));
    hash(&parts.flat_map(|(name, bytes)| [name, bytes]).collect::<Vec<_>>())
}

fn identify(
    qemu: &Qemu,
    (archive, equipment): (&[u8], &[(String, String)]),
    settings: &Settings,
) -> Result<Machine, MachineError> {
    let memory_mib = settings.memory_mib;
    let mut fingerprint = vec![
        ("initrd.sha256".to_owned(), hash(&[archive])),
        ("tracer.sha256".to_owned(), if qemu.plugins { hash(&[&settings.tracer]) } else { "none".to_owned() }),
        ("arguments".to_owned(), fixed_arguments(qemu).join(" ")),
        ("command_line".to_owned(), COMMAND_LINE.to_owned()),
        ("cpu".to_owned(), CPU.to_owned()),
        ("memory_mib".to_owned(), memory_mib.to_string()),
        ("qemu.version".to_owned(), qemu.version.clone()),
    ];
    fingerprint.extend(qemu.hashes.iter().map(|(name, hash)| (format!("sha256.{name}"), hash.clone())));
    fingerprint.extend(settings.conditions.iter().chain(equipment).cloned());
    fingerprint.sort();
    let text: String = fingerprint.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let digest = hash(&[b"exact\n", text.as_bytes()]);
    let id = MachineId::from_hex(&digest)
        .map_err(|error| MachineError::Refused { command: "sha256".into(), answer: error.to_string() })?;
    let fitted = equipment.iter().find(|(name, _)| name == "equipment.modules");
    let fitted = fitted.map_or_else(String::new, |(_, modules)| format!(", modules {modules}"));
    let summary = format!("QEMU {}, microvm, -cpu {CPU}, {memory_mib} MiB{fitted}, -icount shift=0", qemu.version);
    Ok(Machine { id, kind: MachineKind::Exact, summary, fingerprint })
}

fn stream_failure(ended: Ended, error: Option<StreamError>, console: &[u8]) -> SubjectFailure {
    let stage = match &error {
        None | Some(StreamError::Empty) => Stage::Workload,
        Some(_) => Stage::Results,
    };
    let mut failure = failure(stage, ended, console);
    // A stream that is damaged although the kernel ended well has no other explanation.
    if ended == Ended::PoweredOff
        && reason_in(console).is_none()
        && wire::find_last_words(console).is_none()
        && let Some(error) = error
    {
        failure.reason = FailureReason::BadStream(error.to_string());
    }
    failure
}

pub(crate) fn failure(stage: Stage, ended: Ended, console: &[u8]) -> SubjectFailure {
    let reason = match (ended, reason_in(console)) {
        (Ended::ConsoleFull, _) => FailureReason::TooMuchOutput,
        (_, Some(reason)) => reason,
        (Ended::PoweredOff, None) if let Some(why) = wire::find_last_words(console) => FailureReason::Lacks(why),
        (Ended::Stopped, None) => FailureReason::Lacks("a serial console (CONFIG_SERIAL_8250_CONSOLE)".into()),
        (Ended::Deadline, None) => FailureReason::Hung,
        (Ended::PoweredOff, None) if stage == Stage::Boot => FailureReason::DidNotBoot,
        (Ended::PoweredOff, None) => FailureReason::AgentDied("the guest switched off".into()),
    };
    SubjectFailure { stage, reason, console_tail: readable_tail(console) }
}
