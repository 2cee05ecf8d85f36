//! A server that boots builds: it installs a build, boots it once, proves that it runs, has the agent measure, and goes back
//! to its own kernel, which is the default of its next start at every moment.
//!
//! `reach` is what is done there, step by step; `ssh` does it, and this module decides what follows from how it went. A
//! server whose kernel died comes back with its own kernel: by itself (the builds boot with `panic=10`), or by its power
//! control.

mod archive;
mod control;
mod look;
mod problem;
mod reach;
mod record;
mod ssh;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{
    BootOnce, Capabilities, FailureReason, GuestConfig, Machine, MachineKind, ServerSettings, Stage, SubjectFailure,
};
use wire::{Job, Task};

use self::control::{Control, Programs};
pub use self::look::{ServerLook, look};
pub use self::problem::ServerProblem;
use self::reach::{Capture, Facts, Kernel, MARK, OTHER_BOOT, Reach, TIMED_OUT};
use self::record::Record;
use crate::agent_process::{machine_for, read_end, refuse};
use crate::backend::{Backend, Boot, Booted, DeadMemory, Driver, Guest, JobEnd, Observe, modules_hash};
use crate::console::{check_emulator, readable_tail, reason_in, until_next_kernel};
use crate::host::count;
use crate::qemu::Scratch;
use crate::settings::{Limits, Settings};
use crate::{MachineError, hash, identify, load, prepared};

/// Digits of the hash that marks a kernel on the server.
const TAG: usize = 12;
/// Time between two looks at a server that restarts.
const LOOK: Duration = Duration::from_secs(2);
/// What one look takes by itself if the server does not answer (s): ssh's ConnectTimeout, on average half of it.
const LOOK_S: u64 = 7;
/// The agent's undo file on the server.
const UNDO: &str = "/var/lib/marvin/undo";
/// How long the agent may take to set the machine (s): before it drops caches, it waits for the disks.
const PREPARE_S: u64 = 120;
/// The file with the memory of a kernel that died.
const MEMORY: &str = "memory";
/// What the names of processors contain that QEMU emulates, or may.
const EMULATED: &str = "QEMU";
/// How much room an installed kernel needs, as a multiple of what is sent: the parts, the initramfs, the modules.
const ROOM: u64 = 4;

/// A server.
#[derive(Debug)]
pub(crate) struct OnServer {
    at: Arc<At>,
    machine: Machine,
    record: Record,
    record_file: PathBuf,
    guest_config: GuestConfig,
}

/// A way to the server, and what is known of its state.
#[derive(Debug)]
struct At {
    server: ServerSettings,
    reach: Arc<dyn Reach>,
    control: Box<dyn Control>,
    /// Saves the memory of kernels that die, if that is asked for.
    capture: Option<Arc<dyn Capture>>,
    /// The directory for it.
    scratch: PathBuf,
    /// Time between two looks; none in tests.
    look: Duration,
    job_s: u64,
    disturbed_share: f64,
    /// Whether it may run a kernel under test.
    is_away: Mutex<bool>,
    /// Whether it is held for this lab.
    is_held: Mutex<bool>,
}

/// A build that the server runs.
#[derive(Debug)]
struct OnBuild {
    on: Arc<OnServer>,
    tag: String,
    release: String,
    /// The present boot; none after one that died.
    session: Mutex<Option<Session>>,
    /// The memory of the kernel that died last, or why it was not saved.
    dead: Mutex<Option<Result<DeadMemory, MachineError>>>,
}

/// A boot of a build.
#[derive(Debug, Clone)]
struct Session {
    boot_id: String,
    /// What was set for measuring, and what the machine says about itself.
    report: String,
}

/// How a boot failed, and its console.
type DeadBoot = (SubjectFailure, Vec<u8>);

impl OnServer {
    /// Asks the server what it is.
    pub(crate) fn open(server: ServerSettings, settings: &Settings) -> Result<Self, MachineError> {
        let scratch = settings.scratch()?;
        let agent = &settings.programs.agent;
        let reach = Arc::new(ssh::Ssh::new(server.clone(), &settings.home, Some(&scratch), agent));
        let capture = server.collector.is_some().then(|| Arc::clone(&reach) as Arc<dyn Capture>);
        let control = Box::new(Programs::start(&server));
        let Limits { job_s, disturbed_share, .. } = settings.limits;
        let (is_away, is_held) = (Mutex::default(), Mutex::default());
        let look = LOOK;
        let at = At { server, reach, control, capture, scratch, look, job_s, disturbed_share, is_away, is_held };
        Self::at(at, settings)
    }

    fn at(at: At, settings: &Settings) -> Result<Self, MachineError> {
        let (server, mut facts) = (&at.server, at.reach.facts()?);
        set(&at.is_held, true);
        if let Some(problem) = problems(server, &facts).into_iter().next() {
            return Err(problem.into());
        }
        if facts.running().is_some() {
            // Another Marvin was killed: what the server is, its own kernel says.
            at.set_away(true);
            at.go_home()?;
            facts = at.reach.facts()?;
        }
        let report = look::describe(&*at.reach, &server.name, facts.boot_id())?;
        let record_file = Record::file(&settings.home, &server.name);
        let record = Record::of(&facts, &report).kept(&record_file, &server.name)?;
        let machine = identity(server, record.fingerprint.clone(), &settings.programs.agent)?;
        Ok(Self { at: Arc::new(at), machine, record, record_file, guest_config: GuestConfig::PLAIN })
    }

    /// Boots a kernel once and proves that it runs.
    fn start(&self, kernel: &Kernel<'_>) -> Result<Result<Session, DeadBoot>, MachineError> {
        let before = self.at.home_if_lost()?;
        self.install(kernel, &before)?;
        // What was printed before belongs to the kernel before.
        drop(self.at.control.new_console());
        self.at.set_away(true);
        self.at.reach.boot_once(kernel)?;
        let (end, mut console) = self.at.wait_for_boot(before.boot_id(), "the boot")?;
        let (stage, reason) = match end {
            Some(facts) if facts.running() == Some(kernel.tag) => {
                check_release(&self.at.server, kernel, &facts)?;
                match self.prepare(facts.boot_id()) {
                    Err(problem) if problem.is_silence() => {
                        let (reason, more) = self.at.find_death(facts.boot_id(), "it had booted")?;
                        console.extend(more);
                        (Stage::Settle, reason)
                    }
                    session => return Ok(Ok(session?)),
                }
            }
            Some(_) => {
                self.at.set_away(false);
                (Stage::Boot, FailureReason::DidNotBoot)
            }
            None => (Stage::Boot, FailureReason::Hung),
        };
        self.check_emulator(&console)?;
        Ok(Err((died(stage, reason, &console), console)))
    }

    /// Makes a booted kernel ready for jobs.
    fn prepare(&self, boot_id: &str) -> Result<Session, ServerProblem> {
        self.at.capture.as_ref().map_or(Ok(()), |capture| capture.load())?;
        let report = self.at.prepare(boot_id)?;
        self.record.check(&report, &self.record_file, &self.at.server.name)?;
        Ok(Session { boot_id: boot_id.to_owned(), report })
    }

    /// Fails the lab, not the kernel, for a fault of the server's emulator.
    fn check_emulator(&self, console: &[u8]) -> Result<(), MachineError> {
        let is_emulated = |(name, value): &(String, String)| name == "host.processor" && value.contains(EMULATED);
        check_emulator(self.record.fingerprint.iter().any(is_emulated), console)
    }

    /// Installs a build unless it is there.
    fn install(&self, kernel: &Kernel<'_>, facts: &Facts) -> Result<(), ServerProblem> {
        if facts.has_installed(kernel.tag) {
            return Ok(());
        }
        let needed_mib = ((kernel.archive.len() as u64 * ROOM) >> 20).max(1);
        let free_mib = facts.get("free_kib").parse::<u64>().unwrap_or(0) >> 10;
        if free_mib < needed_mib {
            let name = self.at.server.name.clone();
            return Err(ServerProblem::NoSpace { name, free_mib, needed_mib });
        }
        self.at.reach.install(kernel)
    }
}

impl Backend for OnServer {
    fn identity(&self) -> &Machine {
        &self.machine
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { processors: count(self.at.server.cpus.as_deref()), ..MachineKind::Server.capabilities() }
    }

    fn drivers(&self) -> &[Driver] {
        &self.record.drivers
    }

    fn with_guest_config(
        &self,
        guest_config: &GuestConfig,
        _: Option<&Path>,
    ) -> Result<Arc<dyn Backend>, MachineError> {
        Ok(Arc::new(Self {
            at: Arc::clone(&self.at),
            machine: machine_for(&self.machine, guest_config)?,
            record: self.record.clone(),
            record_file: self.record_file.clone(),
            guest_config: guest_config.clone(),
        }))
    }

    fn boot(self: Arc<Self>, guest: &Guest<'_>, _replicate: u64) -> Result<Boot, MachineError> {
        let (tag, release) = (tag(guest), archive::release(guest.build).to_owned());
        let archive = archive::of(guest)?;
        match self.start(&Kernel { tag: &tag, release: &release, archive: &archive })? {
            Ok(session) => {
                let session = Mutex::new(Some(session));
                Ok(Boot::Ready(Box::new(OnBuild { on: self, tag, release, session, dead: Mutex::default() })))
            }
            Err((failure, console)) => Ok(Boot::Failed(failure, console)),
        }
    }

    fn close(&self) -> Result<(), MachineError> {
        Ok(self.at.close()?)
    }
}

fn set(flag: &Mutex<bool>, to: bool) -> bool {
    std::mem::replace(&mut flag.lock().unwrap_or_else(PoisonError::into_inner), to)
}

impl Drop for At {
    fn drop(&mut self) {
        // After an error that was reported: the server should not wait for the next contact.
        drop(self.close());
    }
}

impl At {
    fn set_away(&self, is_away: bool) {
        set(&self.is_away, is_away);
    }

    fn is_away(&self) -> bool {
        *self.is_away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the server run its own kernel and lets others use it, unless that is done.
    fn close(&self) -> Result<(), ServerProblem> {
        if !set(&self.is_held, false) {
            return Ok(());
        }
        self.go_home()?;
        self.reach.leave()
    }

    /// Sets the booted kernel for measuring. The next boot forgets it all: there is nothing to set back.
    fn prepare(&self, boot_id: &str) -> Result<String, ServerProblem> {
        let on = reach::Boot { id: boot_id, deadline_s: PREPARE_S };
        let turn = |command: &str| {
            let ended = self.reach.run_agent(&on, &[command, UNDO], &[])?;
            look::text_of(&ended, &self.server.name, "be set for measuring")
        };
        // A file of an earlier boot would be in the way.
        turn("restore")?;
        Ok(format!("{}{}", turn("prepare")?, look::describe(&*self.reach, &self.server.name, boot_id)?))
    }

    /// Returns the server's facts; waits for it if it does not answer, and switches it off and on if that does not help.
    fn home_if_lost(&self) -> Result<Facts, ServerProblem> {
        match self.reach.facts() {
            Err(problem) if problem.is_silence() => {
                let (facts, _) = self.wait_for_boot("", "the last contact")?;
                facts.map_or_else(|| self.reach.facts(), Ok)
            }
            facts => facts,
        }
    }

    /// Waits until the server runs another boot than this one and returns its facts; also after its power was switched
    /// off and on, which is `None`: the kernel did not come back by itself. Returns the console of that time, too.
    fn wait_for_boot(&self, before: &str, stage: &str) -> Result<(Option<Facts>, Vec<u8>), ServerProblem> {
        let mut console = Vec::new();
        if let Some(facts) = self.look_for(before, &mut console)? {
            return Ok((Some(facts), console));
        }
        let power = if self.control.cycle_power()? {
            if self.look_for(before, &mut console)?.is_some() {
                self.set_away(false);
                return Ok((None, console));
            }
            ", also after its power was switched off and on"
        } else {
            ", and its [[machine]] has no power control"
        };
        // Nothing more can be done about it now.
        set(&self.is_held, false);
        let (name, seconds) = (self.server.name.clone(), self.server.boot_s);
        Err(ServerProblem::Lost { name, stage: stage.to_owned(), seconds, power })
    }

    /// Finds out why the server fell silent in this boot, and returns how its kernel died, and the console. If it lives, the
    /// connection was cut.
    fn find_death(&self, boot_id: &str, stage: &str) -> Result<(FailureReason, Vec<u8>), ServerProblem> {
        let mut console = self.control.new_console();
        let facts = match self.reach.facts() {
            Ok(facts) => Some(facts),
            Err(problem) if problem.is_silence() => {
                // A network that comes back brings the same boot back.
                let (facts, more) = self.wait_for_boot("", stage)?;
                console.extend(more);
                facts
            }
            Err(problem) => return Err(problem),
        };
        let reason = match facts {
            Some(facts) if facts.boot_id() == boot_id => {
                return Err(ServerProblem::Cut { name: self.server.name.clone() });
            }
            // Only the console or its memory tells a kernel that died from a reset of the server.
            Some(_) => FailureReason::AgentDied("the server restarted".into()),
            None => FailureReason::Hung,
        };
        self.set_away(false);
        Ok((reason, console))
    }

    /// Looks for another boot until the deadline.
    fn look_for(&self, before: &str, console: &mut Vec<u8>) -> Result<Option<Facts>, ServerProblem> {
        for _ in 0..(self.server.boot_s / (LOOK_S + self.look.as_secs())).max(1) {
            std::thread::sleep(self.look);
            let facts = self.reach.facts();
            console.extend(self.control.new_console());
            match facts {
                Ok(facts) if facts.boot_id() != before => return Ok(Some(facts)),
                // It still runs the kernel before, shuts down, or does not answer yet.
                Ok(_) => std::thread::sleep(self.look),
                Err(problem) if problem.is_silence() => {}
                // While services start and end, ssh says many things.
                Err(ServerProblem::Step { .. }) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(None)
    }

    /// Returns the memory of the kernel that died, or why it was not saved; `None` without --keep-dump.
    fn dead_memory(&self) -> Option<Result<DeadMemory, MachineError>> {
        let bytes = self.capture.as_ref()?.take();
        let file = |bytes: Vec<u8>| {
            let scratch = Scratch::new(&self.scratch)?;
            scratch.write(MEMORY, &bytes)?;
            Ok(DeadMemory::new(scratch.path(MEMORY), scratch))
        };
        Some(bytes.map_err(MachineError::from).and_then(file))
    }

    /// Has the server boot its own kernel if it runs another one.
    fn go_home(&self) -> Result<(), ServerProblem> {
        if !self.is_away() {
            return Ok(());
        }
        let facts = self.home_if_lost()?;
        if facts.running().is_some() {
            self.reach.reboot()?;
            let (facts, _) = self.wait_for_boot(facts.boot_id(), "the return to its own kernel")?;
            if let Some(tag) = facts.as_ref().and_then(Facts::running) {
                let (name, step) = (self.server.name.clone(), "return to its own kernel");
                return Err(ServerProblem::Step { name, step, said: format!("it boots {MARK}{tag} again") });
            }
        }
        self.set_away(false);
        Ok(())
    }
}

impl Booted for OnBuild {
    fn run(&self, job: &Job, _: Observe<'_>) -> Result<JobEnd, MachineError> {
        let bytes = job.encode()?;
        let at = &self.on.at;
        if let Some(refused) = refuse(&self.on.guest_config) {
            return Ok(refused);
        }
        let session = match self.session()? {
            Ok(session) => session,
            Err((failure, console)) => return Ok(JobEnd::of(Err(failure), console)),
        };
        let on = reach::Boot { id: &session.boot_id, deadline_s: at.job_s };
        match at.reach.run_agent(&on, &["job"], &bytes) {
            Ok(ended) if ended.code == Some(OTHER_BOOT) => self.after_silence(&session),
            Ok(ended) if ended.code == Some(TIMED_OUT) => {
                let console = at.control.new_console();
                Ok(JobEnd::of(Err(died(Stage::Workload, FailureReason::Hung, &console)), console))
            }
            Ok(ended) => {
                let (mut stream, _) = read_end(&ended, job.id);
                let mut disturbance = None;
                if let Ok(stream) = &mut stream {
                    disturbance = load::take(stream, at.disturbed_share);
                    if job.task == Task::Environment {
                        stream.frames.push(prepared::report(&session.report));
                    }
                }
                Ok(JobEnd { disturbance, ..JobEnd::of(stream, at.control.new_console()) })
            }
            Err(problem) if problem.is_silence() => self.after_silence(&session),
            Err(problem) => Err(problem.into()),
        }
    }

    /// Returns the memory of the kernel that died: on a server it may not die again.
    fn run_to_death(&self, _: &Job) -> Result<Option<DeadMemory>, MachineError> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner).take().transpose()
    }
}

impl OnBuild {
    /// Returns the boot for the next job; boots again if the last one died.
    fn session(&self) -> Result<Result<Session, DeadBoot>, MachineError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(Ok(session.clone()));
        }
        // It is installed: nothing has to be sent.
        let started = self.on.start(&Kernel { tag: &self.tag, release: &self.release, archive: &[] })?;
        *session = started.as_ref().ok().cloned();
        Ok(started)
    }

    /// Finds out why the connection ended during a job: cut, or the kernel died.
    fn after_silence(&self, session: &Session) -> Result<JobEnd, MachineError> {
        let (mut reason, console) = self.on.at.find_death(&session.boot_id, "a job")?;
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.on.check_emulator(&console)?;
        let dead = self.on.at.dead_memory();
        if matches!(dead, Some(Ok(_))) {
            reason = FailureReason::Panicked;
        }
        *self.dead.lock().unwrap_or_else(PoisonError::into_inner) = dead;
        Ok(JobEnd::of(Err(died(Stage::Workload, reason, &console)), console))
    }
}

/// Says how a kernel died: as its console says or, without one, as the server's behaviour suggests.
fn died(stage: Stage, suggested: FailureReason, console: &[u8]) -> SubjectFailure {
    let reason = reason_in(console).unwrap_or(suggested);
    SubjectFailure { stage, reason, console_tail: readable_tail(until_next_kernel(console)) }
}

/// Returns why Marvin cannot boot kernels there, found before anything is changed.
fn problems(server: &ServerSettings, facts: &Facts) -> Vec<ServerProblem> {
    let name = || server.name.clone();
    let mut problems = Vec::new();
    if facts.get("user") != "root" {
        problems.push(ServerProblem::NotRoot { name: name(), user: facts.get("user").to_owned() });
    }
    if !facts.get("unwritable").is_empty() {
        let said = facts.get("unwritable").to_owned();
        problems.push(ServerProblem::Step { name: name(), step: "keep kernels", said });
    }
    let of_boot = match &server.boot {
        BootOnce::Kexec => Some("kexec"),
        BootOnce::Grub => Some("grub-reboot"),
        BootOnce::SystemdBoot => Some("bootctl"),
        BootOnce::Command(_) => None,
    };
    for tool in of_boot.into_iter().chain(["cpio", "depmod", "taskset", "timeout"]) {
        if facts.get(&format!("tool.{tool}")) != "yes" {
            problems.push(ServerProblem::NoTool { name: name(), tool: tool.to_owned() });
        }
    }
    if facts.running().is_none() && facts.get("own_initrd").is_empty() {
        problems.push(ServerProblem::NoInitramfs { name: name(), release: facts.get("release").to_owned() });
    }
    if facts.get("secure_boot") == "1" {
        problems.push(ServerProblem::Locked { name: name(), why: "secure boot is on".into() });
    }
    let lockdown = facts.get("lockdown");
    if lockdown.contains("[integrity]") || lockdown.contains("[confidentiality]") {
        problems.push(ServerProblem::Locked { name: name(), why: format!("lockdown: {lockdown}") });
    }
    problems
}

/// Checks the release of the kernel that runs, beside its mark.
fn check_release(server: &ServerSettings, kernel: &Kernel<'_>, facts: &Facts) -> Result<(), ServerProblem> {
    let runs = facts.get("release");
    if kernel.release.is_empty() || runs == kernel.release {
        return Ok(());
    }
    let said = format!("it runs {runs} and not {}", kernel.release);
    Err(ServerProblem::Step { name: server.name.clone(), step: "boot the kernel", said })
}

fn identity(server: &ServerSettings, known: Vec<(String, String)>, agent: &[u8]) -> Result<Machine, MachineError> {
    let get = |name: &str| known.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value.as_str());
    let (cpus, processor) = (server.cpus.clone().unwrap_or_else(|| "the last one".into()), get("host.processor"));
    let summary = format!("{}, {processor}, agent on processor {cpus}, boots by {}", server.name, server.boot.word());
    let mut fingerprint = known.clone();
    fingerprint.extend([
        ("agent.processors".to_owned(), cpus),
        ("agent.sha256".to_owned(), hash(&[agent])),
        ("boot".to_owned(), server.boot.word().to_owned()),
    ]);
    if server.collector.is_some() {
        // Less memory is left to the kernel.
        fingerprint.push(("reserved".to_owned(), ssh::RESERVED.to_owned()));
    }
    identify(MachineKind::Server, summary, fingerprint)
}

/// Returns what marks a build with its modules on the server.
fn tag(guest: &Guest<'_>) -> String {
    let parts = [guest.build.id.hex().to_owned(), modules_hash(guest.modules)];
    hash(&parts.each_ref().map(String::as_bytes))[..TAG].to_owned()
}
