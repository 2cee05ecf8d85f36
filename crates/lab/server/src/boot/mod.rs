//! A server as a machine of the lab: it installs a build, boots it once, proves that it runs, has
//! the agent measure, and returns to the server's own kernel.
//!
//! `handle` decides what follows from a server that does not answer; `remote` does each step there.

mod archive;
pub(crate) mod build_id;
mod running_build;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use machine::{
    Backend, BootOutcome, Driver, Guest, MachineError, check_emulator, count_processors, hash,
    identify, machine_for, modules_hash, readable_tail, reason_in, until_next_kernel,
};
use model::{
    Capabilities, FailureReason, GuestConfig, Machine, MachineKind, ServerSettings, Stage,
    SubjectFailure,
};
use subprocess::Shared;

use self::running_build::RunningBuild;
use crate::deploy::image_loader;
use crate::fit::{check_build_id, check_release};
use crate::handle::{Life, Reboot, ServerHandle};
use crate::look;
use crate::permit::ServerAccess;
use crate::problem::ServerProblem;
use crate::record::{Record, record_problem};
use crate::remote::{Facts, Kernel, ProgramFiles, ssh};

/// Digits of the hash that marks a kernel on the server.
const TAG: usize = 12;
/// What the names of processors contain that QEMU emulates, or may.
const EMULATED: &str = "QEMU";
/// How much room an installed kernel needs, as a multiple of what is sent: the parts, the
/// initramfs, the modules.
const ROOM: u64 = 4;

#[derive(Debug)]
pub struct ServerMachine {
    handle: Arc<ServerHandle>,
    machine: Machine,
    record: Record,
    record_file: PathBuf,
    guest_config: GuestConfig,
    /// The files of a user's own program that run there.
    files: Option<ProgramFiles>,
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

/// How the boot of a build ended.
enum Start {
    Ready(Session),
    KernelFailed {
        failure: SubjectFailure,
        console: Vec<u8>,
    },
}

impl ServerMachine {
    /// Asks the server what it is.
    pub fn open(server: ServerSettings, access: &ServerAccess) -> Result<Self, MachineError> {
        let image = image_loader(&server, access)?;
        Self::with_handle(ServerHandle::new(&server, image, access)?, access)
    }

    pub(crate) fn with_handle(
        handle: ServerHandle,
        access: &ServerAccess,
    ) -> Result<Self, MachineError> {
        let record_file = Record::file(&access.home, &handle.server.name);
        let server = &handle.server;
        let facts = handle
            .acquire()
            .map_err(|problem| record_problem(problem, &record_file))?;
        // By its own kernel: the identity of the machine may not depend on a kernel under test.
        let report = look::describe(&*handle.remote, &server.name, facts.boot_id())?;
        let record =
            Record::from_facts(&facts, &report).confirm_or_create(&record_file, &server.name)?;
        let machine = identity(server, record.fingerprint.clone(), &access.agent)?;
        Ok(Self {
            handle: Arc::new(handle),
            machine,
            record,
            record_file,
            guest_config: GuestConfig::PLAIN,
            files: None,
        })
    }

    /// Boots a kernel once and proves that it runs.
    fn start(&self, kernel: &Kernel<'_>) -> Result<Start, ServerProblem> {
        let mut before = self.handle.ready()?;
        match self.install(kernel, &before) {
            Err(problem) if problem.is_silence() => {
                // A connection that was cut: what arrived in part is sent again.
                before = self.handle.ready()?;
                self.install(kernel, &before)?;
            }
            installed => installed?,
        }
        // What was printed before belongs to the kernel before.
        drop(self.handle.control.new_console());
        // Before the command: if its answer is lost, the kernel may run all the same.
        self.handle.change(Life::begin_test);
        match self.handle.remote.boot_once(kernel) {
            Err(problem) if problem.is_silence() => self.handle.check_restart(&before)?,
            begun => begun?,
        }
        let (end, mut console) =
            self.handle
                .wait_for_boot(before.boot_id(), "the boot", Vec::new())?;
        let (stage, reason) = match end {
            // The mark on the command line, and not the release: two builds may have one release.
            Reboot::Rebooted(facts) if facts.running() == Some(kernel.tag) => {
                check_release(&self.handle.server, kernel, &facts)?;
                match self.prepare(kernel, facts.boot_id()) {
                    Err(problem) if problem.is_silence() => {
                        let (reason, more) =
                            self.handle.find_death(facts.boot_id(), "it had booted")?;
                        console.extend(more);
                        (Stage::Settle, reason)
                    }
                    report => {
                        let boot_id = facts.boot_id().to_owned();
                        let report = report?;
                        console.extend(self.handle.control.new_console());
                        return Ok(Start::Ready(Session {
                            boot_id,
                            report,
                            console,
                        }));
                    }
                }
            }
            Reboot::Rebooted(facts) => {
                self.handle.verify_own_kernel(&facts)?;
                (Stage::Boot, FailureReason::DidNotBoot)
            }
            Reboot::NoAnswer => (Stage::Boot, FailureReason::Hung),
            // No kernel is to blame for that.
            Reboot::NeverLeft => return Err(self.handle.never_left()),
        };
        Ok(Start::KernelFailed {
            failure: died(stage, reason, &console),
            console,
        })
    }

    /// Makes a booted kernel ready for jobs.
    fn prepare(&self, kernel: &Kernel<'_>, boot_id: &str) -> Result<String, ServerProblem> {
        self.handle
            .capture
            .as_ref()
            .map_or(Ok(()), |capture| capture.load())?;
        let report = self.handle.prepare(boot_id)?;
        check_build_id(&self.handle.server, kernel, &report)?;
        self.record.check(&report, &self.handle.server.name)?;
        Ok(report)
    }

    /// Boots a kernel, and keeps in mind if the server is lost or another machine.
    fn boot_kernel(&self, kernel: &Kernel<'_>) -> Result<Start, MachineError> {
        let end = self
            .start(kernel)
            .map_err(|problem| record_problem(problem, &self.record_file))?;
        // A server may be a guest itself, and its emulator may fail in ways that look like a dying
        // kernel.
        if let Start::KernelFailed { console, .. } = &end {
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
        // Checked before anything is sent, so that the message can say how much is missing.
        let needed_mib = ((kernel.archive.len() as u64 * ROOM) >> 20).max(1);
        let free_mib = facts.get("free_kib").parse::<u64>().unwrap_or(0) >> 10;
        if free_mib < needed_mib {
            let name = self.handle.server.name.clone();
            return Err(ServerProblem::NoSpace {
                name,
                free_mib,
                needed_mib,
            });
        }
        self.handle.remote.install(kernel)
    }
}

impl Backend for ServerMachine {
    fn identity(&self) -> &Machine {
        &self.machine
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            processors: count_processors(self.handle.server.cpus.as_deref()),
            ..MachineKind::Server.capabilities()
        }
    }

    fn drivers(&self) -> &[Driver] {
        &self.record.drivers
    }

    fn with_guest_config(
        &self,
        guest_config: &GuestConfig,
        files: Option<&Path>,
    ) -> Result<Arc<dyn Backend>, MachineError> {
        Ok(Arc::new(Self {
            handle: Arc::clone(&self.handle),
            machine: machine_for(&self.machine, guest_config, files.is_some())?,
            record: self.record.clone(),
            record_file: self.record_file.clone(),
            guest_config: guest_config.clone(),
            files: files.map(ProgramFiles::of_archive),
        }))
    }

    fn boot(
        self: Arc<Self>,
        guest: &Guest<'_>,
        _replicate: u64,
    ) -> Result<BootOutcome, MachineError> {
        if !guest.build.name.boot_parameters().is_empty() {
            let why = "@cmdline:, @sysctl:, @sysfs: and @memory: are for guests of exact, exact-smp and vm; a server boots with the \
                       parameters of its own kernel";
            return Ok(BootOutcome::Unsupported(why.to_owned()));
        }
        let tag = tag(guest);
        let release = archive::release(guest.build).to_owned();
        self.handle.check_kernel(&release)?;
        let archive = archive::pack(guest)?;
        let build_id = build_id::build_id_of(guest.build);
        let kernel = Kernel {
            tag: &tag,
            release: &release,
            build_id: build_id.as_deref(),
            archive: &archive,
        };
        match self.boot_kernel(&kernel)? {
            Start::Ready(mut session) => {
                let console = std::mem::take(&mut session.console);
                // A system in memory forgets an installed build by a reset: it is sent again.
                let archive = if self.handle.image.is_some() {
                    archive
                } else {
                    Vec::new()
                };
                Ok(BootOutcome::Ready(Box::new(RunningBuild {
                    on: self,
                    tag,
                    release,
                    build_id,
                    archive,
                    console,
                    session: Shared::new(Some(session)),
                    dead: Shared::default(),
                })))
            }
            Start::KernelFailed { failure, console } => {
                Ok(BootOutcome::KernelFailed { failure, console })
            }
        }
    }

    fn close(&self) -> Result<(), MachineError> {
        self.handle
            .close()
            .map_err(|problem| record_problem(problem, &self.record_file).into())
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
    let cpus = server.cpus.clone().unwrap_or_else(|| "the last one".into());
    let processor = get("host.processor");
    let place = if server.cpus.is_some() {
        format!("processor {cpus}")
    } else {
        "the last processor".to_owned()
    };
    let summary = format!(
        "{}, {processor}, agent on {place}, boots by {}",
        server.name,
        server.boot.name()
    );
    let mut fingerprint = known.clone();
    fingerprint.extend([
        ("agent.processors".to_owned(), cpus),
        ("agent.sha256".to_owned(), hash(&[agent])),
        ("boot".to_owned(), server.boot.name().to_owned()),
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
