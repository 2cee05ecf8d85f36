//! A server that boots builds: it installs a build, boots it once, proves that it runs, has the
//! agent measure, and goes back to its own kernel, which is the default of its next start at every
//! moment.
//!
//! `reach` is what is done there, step by step; `ssh` does it, and this module decides what follows
//! from how it went. A server whose kernel died comes back with its own kernel: by itself (the
//! builds boot with `panic=10`), or by its power control.

mod archive;
mod control;
mod deploy;
mod fit;
mod idle;
mod image;
mod look;
mod note;
mod permit;
mod problem;
mod reach;
mod record;
mod seal;
mod ssh;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{
    Capabilities, FailureReason, GuestConfig, Machine, MachineKind, ServerSettings, Stage,
    SubjectFailure,
};
use wire::{Job, Task};

use self::control::{Control, Outside};
pub use self::deploy::{deploy, install, undeploy};
use self::fit::{check_build_id, check_release, problems};
pub use self::idle::switch_off;
use self::image::Carrier;
pub use self::image::images_in_use;
pub use self::look::{ServerLook, accept, look};
pub use self::permit::Permit;
use self::permit::Permitted;
pub use self::problem::ServerProblem;
use self::reach::{Capture, Facts, Kernel, MARK, OTHER_BOOT, Reach, TIMED_OUT};
use self::record::Record;
pub use self::record::{ServerState, server_state};
use crate::agent_process::{machine_for, read_end, refuse};
use crate::backend::{
    Backend, Boot, Booted, DeadMemory, Driver, Guest, JobEnd, Observe, modules_hash,
};
use crate::console::{check_emulator, readable_tail, reason_in, until_next_kernel};
use crate::host::count;
use crate::qemu::Scratch;
use crate::settings::{Limits, Settings};
use crate::{MachineError, hash, identify, load, prepared};

/// Digits of the hash that marks a kernel on the server.
const TAG: usize = 12;
/// Time between two looks at a server that restarts.
const LOOK: Duration = Duration::from_secs(2);
/// How often Marvin asks a server to restart if the connection is cut meanwhile.
const RESTARTS: u32 = 3;
/// What one look takes by itself if the server does not answer (s): ssh's ConnectTimeout, on
/// average half of it.
const LOOK_S: u64 = 7;
/// A dead kernel restarts the server after ten seconds (`panic=10`), and firmware prints something
/// within two minutes; after that only its power helps.
const DEAD_QUIET_S: u64 = 120;
/// What a kernel that hangs is asked for by sysrq: to print all (a kernel with `quiet` would print
/// a headline only), its blocked tasks, and the backtraces of its processors.
const HUNG_KEYS: &str = "8wl";
/// How many looks long its answer is waited for.
const HUNG_LOOKS: u32 = 3;
/// The agent's undo file on the server.
const UNDO: &str = "/var/lib/marvin/undo";
/// How long the agent may take to set the machine (s): before it drops caches, it waits for the
/// disks.
const PREPARE_S: u64 = 120;
/// The file with the memory of a kernel that died.
const MEMORY: &str = "memory";
/// What the names of processors contain that QEMU emulates, or may.
const EMULATED: &str = "QEMU";
/// How much room an installed kernel needs, as a multiple of what is sent: the parts, the
/// initramfs, the modules.
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
    /// The image that is its own system, if it runs one.
    image: Option<Box<dyn Carrier>>,
    /// Saves the memory of kernels that die, if that is asked for.
    capture: Option<Arc<dyn Capture>>,
    /// The directory for it.
    scratch: PathBuf,
    /// Time between two looks; none in tests.
    look: Duration,
    job_s: u64,
    disturbed_share: f64,
    /// The release of its own kernel, once that is known.
    own: Mutex<String>,
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
    build_id: Option<String>,
    /// What was sent there; kept if the server forgets it by a reset.
    archive: Vec<u8>,
    /// What the first boot printed.
    console: Vec<u8>,
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
    /// What it printed until jobs could start.
    console: Vec<u8>,
}

/// How waiting for another boot ended.
#[derive(Debug)]
enum Waited {
    /// The server came back by itself.
    Back(Facts),
    /// It was silent until its power was switched.
    Silent,
    /// It answered in the same boot until its power was switched: it never left it.
    Stayed,
}

impl Waited {
    /// Returns the facts of a server that came back by itself.
    fn back(self) -> Option<Facts> {
        match self {
            Self::Back(facts) => Some(facts),
            Self::Silent | Self::Stayed => None,
        }
    }
}

/// How a boot failed, and its console.
type DeadBoot = (SubjectFailure, Vec<u8>);

impl OnServer {
    /// Asks the server what it is.
    pub(crate) fn open(server: ServerSettings, settings: &Settings) -> Result<Self, MachineError> {
        let image = deploy::carrier(&server, settings)?;
        Self::at(At::of(&server, image, settings)?, settings)
    }

    fn at(at: At, settings: &Settings) -> Result<Self, MachineError> {
        let record_file = Record::file(&settings.home, &at.server.name);
        let (server, facts) = (
            &at.server,
            at.contact()
                .map_err(|problem| record::noted(problem, &record_file))?,
        );
        let report = look::describe(&*at.reach, &server.name, facts.boot_id())?;
        let record = Record::of(&facts, &report).kept(&record_file, &server.name)?;
        let machine = identity(server, record.fingerprint.clone(), &settings.programs.agent)?;
        Ok(Self {
            at: Arc::new(at),
            machine,
            record,
            record_file,
            guest_config: GuestConfig::PLAIN,
        })
    }

    /// Boots a kernel once and proves that it runs.
    fn start(&self, kernel: &Kernel<'_>) -> Result<Result<Session, DeadBoot>, ServerProblem> {
        let mut before = self.at.ready()?;
        match self.install(kernel, &before) {
            Err(problem) if problem.is_silence() => {
                // A connection that was cut: what arrived in part is sent again.
                before = self.at.ready()?;
                self.install(kernel, &before)?;
            }
            installed => installed?,
        }
        // What was printed before belongs to the kernel before.
        drop(self.at.control.new_console());
        self.at.set_away(true);
        match self.at.reach.boot_once(kernel) {
            Err(problem) if problem.is_silence() => self.at.check_restart(&before)?,
            begun => begun?,
        }
        let (end, mut console) = self
            .at
            .wait_for_boot(before.boot_id(), "the boot", Vec::new())?;
        let (stage, reason) = match end {
            Waited::Back(facts) if facts.running() == Some(kernel.tag) => {
                check_release(&self.at.server, kernel, &facts)?;
                match self.prepare(kernel, facts.boot_id()) {
                    Err(problem) if problem.is_silence() => {
                        let (reason, more) =
                            self.at.find_death(facts.boot_id(), "it had booted")?;
                        console.extend(more);
                        (Stage::Settle, reason)
                    }
                    report => {
                        let (boot_id, report) = (facts.boot_id().to_owned(), report?);
                        console.extend(self.at.control.new_console());
                        return Ok(Ok(Session {
                            boot_id,
                            report,
                            console,
                        }));
                    }
                }
            }
            Waited::Back(facts) => {
                self.at.check_home(&facts)?;
                (Stage::Boot, FailureReason::DidNotBoot)
            }
            Waited::Silent => (Stage::Boot, FailureReason::Hung),
            // No kernel is to blame for that.
            Waited::Stayed => return Err(self.at.stayed()),
        };
        Ok(Err((died(stage, reason, &console), console)))
    }

    /// Makes a booted kernel ready for jobs.
    fn prepare(&self, kernel: &Kernel<'_>, boot_id: &str) -> Result<String, ServerProblem> {
        self.at
            .capture
            .as_ref()
            .map_or(Ok(()), |capture| capture.load())?;
        let report = self.at.prepare(boot_id)?;
        check_build_id(&self.at.server, kernel, &report)?;
        self.record.check(&report, &self.at.server.name)?;
        Ok(report)
    }

    /// Boots a kernel, and keeps in mind if the server is lost or another machine.
    fn boot_kernel(&self, kernel: &Kernel<'_>) -> Result<Result<Session, DeadBoot>, MachineError> {
        let end = self
            .start(kernel)
            .map_err(|problem| record::noted(problem, &self.record_file))?;
        if let Err((_, console)) = &end {
            self.check_emulator(console)?;
        }
        Ok(end)
    }

    /// Fails the lab, not the kernel, for a fault of the server's emulator.
    fn check_emulator(&self, console: &[u8]) -> Result<(), MachineError> {
        let is_emulated =
            |(name, value): &(String, String)| name == "host.processor" && value.contains(EMULATED);
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
            return Err(ServerProblem::NoSpace {
                name,
                free_mib,
                needed_mib,
            });
        }
        self.at.reach.install(kernel)
    }
}

impl Backend for OnServer {
    fn identity(&self) -> &Machine {
        &self.machine
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            processors: count(self.at.server.cpus.as_deref()),
            ..MachineKind::Server.capabilities()
        }
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
        self.at.check_kernel(&release)?;
        let (archive, build_id) = (archive::of(guest)?, note::build_id_of(guest.build));
        let kernel = Kernel {
            tag: &tag,
            release: &release,
            build_id: build_id.as_deref(),
            archive: &archive,
        };
        match self.boot_kernel(&kernel)? {
            Ok(mut session) => {
                let console = std::mem::take(&mut session.console);
                let (session, dead) = (Mutex::new(Some(session)), Mutex::default());
                let archive = if self.at.image.is_some() {
                    archive
                } else {
                    Vec::new()
                };
                Ok(Boot::Ready(Box::new(OnBuild {
                    on: self,
                    tag,
                    release,
                    build_id,
                    archive,
                    console,
                    session,
                    dead,
                })))
            }
            Err((failure, console)) => Ok(Boot::Failed(failure, console)),
        }
    }

    fn close(&self) -> Result<(), MachineError> {
        self.at
            .close()
            .map_err(|problem| record::noted(problem, &self.record_file).into())
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
    /// Prepares the way to a server; connects to nothing yet.
    fn of(
        server: &ServerSettings,
        image: Option<Box<dyn Carrier>>,
        settings: &Settings,
    ) -> Result<Self, MachineError> {
        let scratch = settings.scratch()?;
        let agent = &settings.programs.agent;
        let ssh = ssh::Ssh::new(server.clone(), &settings.home, Some(&scratch), agent);
        let reach = Arc::new(Permitted::new(ssh, settings.permit.clone()));
        let capture = server
            .collector
            .is_some()
            .then(|| Arc::clone(&reach) as Arc<dyn Capture>);
        let control = Box::new(Permitted::new(
            Outside::open(server, &settings.home),
            settings.permit.clone(),
        ));
        let Limits {
            job_s,
            disturbed_share,
            ..
        } = settings.limits;
        let (own, is_away, is_held) = (Mutex::default(), Mutex::default(), Mutex::default());
        let look = LOOK;
        let server = server.clone();
        Ok(Self {
            server,
            reach,
            control,
            image,
            capture,
            scratch,
            look,
            job_s,
            disturbed_share,
            own,
            is_away,
            is_held,
        })
    }

    /// Holds the server, has it run its own kernel, and returns its facts.
    fn contact(&self) -> Result<Facts, ServerProblem> {
        let fit = |facts: Facts| {
            problems(&self.server, &facts)
                .into_iter()
                .next()
                .map_or(Ok(facts), Err)
        };
        let mut facts = match self.reach.facts() {
            Err(problem)
                if problem.is_silence()
                    && self
                        .image
                        .as_ref()
                        .is_some_and(|image| !image.needs_system()) =>
            {
                self.restart_image("").unwrap_or(Err(problem))?
            }
            Err(problem) if problem.is_silence() && self.control.is_off().unwrap_or(false) => {
                self.wake()?
            }
            facts => facts?,
        };
        if facts.running().is_none() {
            set(&self.is_held, true);
            facts = self.run_image(facts)?;
        }
        let facts = fit(facts);
        // After an error too: other labs may use it then.
        set(&self.is_held, true);
        let facts = facts?;
        facts
            .own_release()
            .clone_into(&mut self.own.lock().unwrap_or_else(PoisonError::into_inner));
        if facts.running().is_none() {
            return Ok(facts);
        }
        // Another Marvin was killed: what the server is, its own kernel says.
        self.set_away(true);
        self.go_home()?;
        fit(self.reach.facts()?)
    }

    /// Switches the server on, which is off, and waits until it answers.
    fn wake(&self) -> Result<Facts, ServerProblem> {
        self.control.switch_power(true)?;
        if let Waited::Back(facts) = self.look_for("", &mut Vec::new(), 0)? {
            return Ok(facts);
        }
        let (name, seconds) = (self.server.name.clone(), self.server.boot_s);
        Err(ServerProblem::Lost {
            name,
            stage: "it was switched on".to_owned(),
            seconds,
            power: "",
        })
    }

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

    /// Sets the booted kernel for measuring. The next boot forgets it all: there is nothing to set
    /// back.
    fn prepare(&self, boot_id: &str) -> Result<String, ServerProblem> {
        let on = reach::Boot {
            id: boot_id,
            deadline_s: PREPARE_S,
        };
        let turn = |command: &str| {
            let ended = self.reach.run_agent(&on, &[command, UNDO], &[])?;
            look::text_of(&ended, &self.server.name, "be set for measuring")
        };
        // A file of an earlier boot would be in the way.
        turn("restore")?;
        Ok(format!(
            "{}{}",
            turn("prepare")?,
            look::describe(&*self.reach, &self.server.name, boot_id)?
        ))
    }

    /// Returns the server's facts; waits for it if it does not answer, and switches it off and on
    /// if that does not help.
    fn home_if_lost(&self) -> Result<Facts, ServerProblem> {
        match self.reach.facts() {
            Err(problem) if problem.is_silence() => {
                let (waited, _) = self.wait_for_boot("", "the last contact", Vec::new())?;
                waited.back().map_or_else(|| self.reach.facts(), Ok)
            }
            facts => facts,
        }
    }

    /// Waits until the server runs another boot than this one, if need be until its power was
    /// switched off and on. Returns the console with what was printed meanwhile, too.
    fn wait_for_boot(
        &self,
        before: &str,
        stage: &str,
        mut console: Vec<u8>,
    ) -> Result<(Waited, Vec<u8>), ServerProblem> {
        let first = self.look_for(before, &mut console, 0)?;
        if let Waited::Back(_) = first {
            return Ok((first, console));
        }
        if let Waited::Silent = first {
            self.ask_hung_kernel(&mut console);
        }
        let power = if self.control.cycle_power()? {
            let printed = console.len();
            if let Waited::Back(facts) = self.look_for(before, &mut console, printed)? {
                self.check_home(&facts)?;
                return Ok((first, console));
            }
            ", also after its power was switched off and on"
        } else {
            ", and its [[machine]] has no power control"
        };
        if let Waited::Stayed = first {
            return Err(self.stayed());
        }
        // Nothing more can be done about it now.
        set(&self.is_held, false);
        let (name, seconds) = (self.server.name.clone(), self.server.boot_s);
        Err(ServerProblem::Lost {
            name,
            stage: stage.to_owned(),
            seconds,
            power,
        })
    }

    /// Has a kernel under test that hangs print its blocked tasks and what its processors do,
    /// before its power is switched: if the console can ask it, and does not say already how it
    /// died.
    fn ask_hung_kernel(&self, console: &mut Vec<u8>) {
        if !self.is_away() || !self.control.has_power() || reason_in(console).is_some() {
            return;
        }
        if self.control.send_sysrq(HUNG_KEYS) {
            std::thread::sleep(self.look * HUNG_LOOKS);
            console.extend(self.control.new_console());
        }
    }

    fn stayed(&self) -> ServerProblem {
        let said = format!(
            "it still answered in the same boot after {} s",
            self.server.boot_s
        );
        ServerProblem::Step {
            name: self.server.name.clone(),
            step: "restart",
            said,
        }
    }

    /// Finds out why the server fell silent in this boot, and returns how its kernel died, and the
    /// console. If it lives, the connection was cut.
    fn find_death(
        &self,
        boot_id: &str,
        stage: &str,
    ) -> Result<(FailureReason, Vec<u8>), ServerProblem> {
        let mut console = self.control.new_console();
        let facts = match self.reach.facts() {
            Ok(facts) => Some(facts),
            Err(problem) if problem.is_silence() => {
                // A network that comes back brings the same boot back.
                let (waited, whole) = self.wait_for_boot("", stage, console)?;
                console = whole;
                waited.back()
            }
            Err(problem) => return Err(problem),
        };
        let reason = match facts {
            Some(facts) if facts.boot_id() == boot_id => {
                return Err(ServerProblem::Cut {
                    name: self.server.name.clone(),
                });
            }
            Some(facts) => {
                self.check_home(&facts)?;
                // Only the console or its memory tells a kernel that died from a reset of the
                // server.
                FailureReason::AgentDied("the server restarted".into())
            }
            None => FailureReason::Hung,
        };
        Ok((reason, console))
    }

    /// Looks for another boot until the deadline, or until its kernel has died by what the console
    /// has `from` here on, and the console has been quiet since then so long that no restart
    /// can be in progress.
    fn look_for(
        &self,
        before: &str,
        console: &mut Vec<u8>,
        from: usize,
    ) -> Result<Waited, ServerProblem> {
        let looks = |seconds: u64| (seconds / (LOOK_S + self.look.as_secs())).max(1);
        let (mut waited, mut quiet) = (Waited::Silent, 0);
        for _ in 0..looks(self.server.boot_s) {
            std::thread::sleep(self.look);
            let facts = self.reach.facts();
            let new = self.control.new_console();
            quiet = if new.is_empty() { quiet + 1 } else { 0 };
            console.extend(new);
            match facts {
                Ok(facts) if facts.boot_id() != before => return Ok(Waited::Back(facts)),
                // It still runs the kernel before, shuts down, or does not answer yet.
                Ok(_) => {
                    waited = Waited::Stayed;
                    std::thread::sleep(self.look);
                }
                Err(problem) if problem.is_silence() => {
                    waited = Waited::Silent;
                    let is_over = quiet >= looks(DEAD_QUIET_S) && self.control.has_power();
                    if is_over && console.get(from..).and_then(reason_in).is_some() {
                        break;
                    }
                }
                // While services start and end, ssh says many things.
                Err(ServerProblem::Step { .. }) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(waited)
    }

    /// Returns the memory of the kernel that died, or why it was not saved; `None` without
    /// --keep-dump.
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
        let mut facts = self.home_if_lost()?;
        if let Some(restarted) = facts
            .running()
            .and_then(|_| self.restart_image(facts.boot_id()))
        {
            facts = restarted?;
        }
        for tried in 1.. {
            if facts.running().is_none() {
                break;
            }
            match self.reach.reboot() {
                // The connection was cut before or after the server took the command.
                Err(problem) if problem.is_silence() && tried < RESTARTS => {
                    let now = self.home_if_lost()?;
                    if now.boot_id() == facts.boot_id() {
                        continue;
                    }
                    facts = now;
                }
                begun => {
                    begun?;
                    let (waited, _) = self.wait_for_boot(
                        facts.boot_id(),
                        "the return to its own kernel",
                        Vec::new(),
                    )?;
                    facts = waited.back().map_or_else(|| self.reach.facts(), Ok)?;
                }
            }
            if let Some(tag) = facts.running() {
                let (name, step) = (self.server.name.clone(), "return to its own kernel");
                return Err(ServerProblem::Step {
                    name,
                    step,
                    said: format!("it boots {MARK}{tag} again"),
                });
            }
        }
        self.check_home(&self.run_image(facts)?)
    }

    /// Checks that a server which left the kernel under test runs its own one: its boot loader may
    /// have another default by now.
    fn check_home(&self, facts: &Facts) -> Result<(), ServerProblem> {
        if facts.running().is_some() {
            return Ok(());
        }
        if let Some(carrier) = &self.image {
            // Its reset ends an image, which is started again before the next step.
            self.set_away(facts.image() != Some(&carrier.image().id));
            return Ok(());
        }
        self.set_away(false);
        let own = self
            .own
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let runs = facts.get("release").to_owned();
        if own.is_empty() || own == runs {
            return Ok(());
        }
        Err(ServerProblem::OtherKernel {
            name: self.server.name.clone(),
            runs,
            own,
        })
    }

    /// Finds out whether a server restarts whose connection was cut while Marvin asked for it. If
    /// it does not, the boot is tried again.
    fn check_restart(&self, before: &Facts) -> Result<(), ServerProblem> {
        // One that shuts down answers for some seconds.
        std::thread::sleep(self.look * 5);
        if self.home_if_lost()?.boot_id() == before.boot_id() {
            return Err(ServerProblem::Cut {
                name: self.server.name.clone(),
            });
        }
        Ok(())
    }
}

impl Booted for OnBuild {
    fn boot_console(&self) -> &[u8] {
        &self.console
    }

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
        let on = reach::Boot {
            id: &session.boot_id,
            deadline_s: at.job_s,
        };
        match at.reach.run_agent(&on, &["job"], &bytes) {
            Ok(ended) if ended.code == Some(OTHER_BOOT) => self.after_silence(&session),
            Ok(ended) if ended.code == Some(TIMED_OUT) => {
                let console = at.control.new_console();
                Ok(JobEnd::of(
                    Err(died(Stage::Workload, FailureReason::Hung, &console)),
                    console,
                ))
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
                Ok(JobEnd {
                    disturbance,
                    ..JobEnd::of(stream, at.control.new_console())
                })
            }
            Err(problem) if problem.is_silence() => self.after_silence(&session),
            Err(problem) => Err(problem.into()),
        }
    }

    /// Returns the memory of the kernel that died: on a server it may not die again.
    fn run_to_death(&self, _: &Job) -> Result<Option<DeadMemory>, MachineError> {
        self.dead
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .transpose()
    }
}

impl OnBuild {
    /// Returns the boot for the next job; boots again if the last one died.
    fn session(&self) -> Result<Result<Session, DeadBoot>, MachineError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(Ok(session.clone()));
        }
        // It is installed: nothing has to be sent, but to a server that runs from memory.
        let build_id = self.build_id.as_deref();
        let kernel = Kernel {
            tag: &self.tag,
            release: &self.release,
            build_id,
            archive: &self.archive,
        };
        let started = self.on.boot_kernel(&kernel)?;
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
        Ok(JobEnd::of(
            Err(died(Stage::Workload, reason, &console)),
            console,
        ))
    }
}

/// Says how a kernel died: as its console says or, without one, as the server's behaviour suggests.
fn died(stage: Stage, suggested: FailureReason, console: &[u8]) -> SubjectFailure {
    let reason = match reason_in(console) {
        // The PID 1 of a server is not the agent.
        Some(FailureReason::AgentDied(_)) => FailureReason::Panicked,
        reason => reason.unwrap_or(suggested),
    };
    SubjectFailure {
        stage,
        reason,
        console_tail: readable_tail(until_next_kernel(console)),
    }
}

fn identity(
    server: &ServerSettings,
    known: Vec<(String, String)>,
    agent: &[u8],
) -> Result<Machine, MachineError> {
    let get = |name: &str| {
        known
            .iter()
            .find(|(of, _)| of == name)
            .map_or("", |(_, value)| value.as_str())
    };
    let (cpus, processor) = (
        server.cpus.clone().unwrap_or_else(|| "the last one".into()),
        get("host.processor"),
    );
    let place = if server.cpus.is_some() {
        format!("processor {cpus}")
    } else {
        "the last processor".to_owned()
    };
    let summary = format!(
        "{}, {processor}, agent on {place}, boots by {}",
        server.name,
        server.boot.word()
    );
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
