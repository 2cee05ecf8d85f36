//! A make-believe server, whose kernels boot, die, hang and lose the network as a test says.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use machine::{Limits, MachineError};
use model::ServerSettings;
use subprocess::Ended;
use subprocess::Shared;
use tempfile::TempDir;

use super::image::Starter;
use crate::boot::ServerMachine;
use crate::deploy::ImageLoader;
use crate::handle::ServerHandle;
use crate::permit::{Permit, Permitted, ServerAccess};
use crate::power_and_console::Control;
use crate::problem::ServerProblem;
use crate::remote::{
    AgentBoot, Capture, Facts, IMAGE, Kernel, MARK, NO_PLACE, OTHER_BOOT, RemoteHost,
};

/// How a kernel's console ends that meets a breakpoint which is not its own.
const INT3: &[u8] =
    b"int3: 0000 [#1] PREEMPT SMP\nKernel panic - not syncing: Fatal exception in interrupt\n";

/// What the kernel under test does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Boots,
    /// It dies while it boots, and the server starts its own kernel.
    Dies,
    /// An emulator executes a breakpoint that the kernel has removed, at boot.
    MeetsBreakpoint,
    /// It does so in a job.
    MeetsBreakpointInJob,
    /// It does not answer until the power is switched.
    Hangs,
    /// The server takes the command to boot it, and stays in its boot.
    IsNotBooted,
    /// It dies, and the server stays so until its power is switched.
    DiesForGood,
    /// It dies while the server is set for measuring.
    DiesInPreparation,
    /// It dies in a job, and the server starts its own kernel.
    DiesInJob,
    /// It stops in a job until the power is switched.
    HangsInJob,
    /// It has no place for the files of a program.
    HasNoPlace,
    /// The connection is cut in a job.
    IsCutInJob,
    /// It is cut while a kernel is installed.
    IsCutInInstall,
    /// It is cut before the server takes the command to boot a kernel once, or after that.
    IsCutBeforeBoot,
    IsCutAfterBoot,
    /// It is cut before the server takes the command to go back, or after that.
    IsCutBeforeReturn,
    IsCutAfterReturn,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) does: Does,
    pub(super) has_power: bool,
    pub(super) boots: u32,
    /// How long a boot may take (s).
    pub(super) boot_s: u64,
    /// How often it was looked at.
    pub(super) looks: u32,
    pub(super) running: Option<String>,
    pub(super) answers: bool,
    /// Whether its power is off.
    pub(super) is_off: bool,
    /// Whether it shuts down when it is asked to.
    pub(super) shuts_down: bool,
    pub(super) installed: Vec<String>,
    pub(super) memory_mib: u64,
    pub(super) processor: &'static str,
    pub(super) user: &'static str,
    /// The release of its own kernel.
    pub(super) own: &'static str,
    /// The build id of the kernel under test.
    pub(super) build_id: &'static str,
    pub(super) free_kib: u64,
    pub(super) console: Vec<u8>,
    /// Whether its console takes sysrq.
    pub(super) takes_sysrq: bool,
    /// What its capture kernel saves.
    pub(super) memory: Option<Vec<u8>>,
    pub(super) permit: Option<Arc<dyn Permit>>,
    /// What starts its image; it runs one then, which every reset ends.
    pub(super) starter: Option<Starter>,
    /// The image that runs.
    pub(super) image: Option<String>,
    /// Whether that has its own root.
    pub(super) is_complete: bool,
    pub(super) log: Vec<String>,
}

impl State {
    /// What a reset ends: an image, and what was installed in it.
    fn reset(&mut self) {
        if self.image.take().is_some() {
            self.installed.clear();
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Fake(Arc<Shared<State>>);

impl Fake {
    pub(super) fn new(does: Does) -> Self {
        Self(Arc::new(Shared::new(State {
            does,
            has_power: true,
            boots: 1,
            boot_s: 30,
            looks: 0,
            running: None,
            answers: true,
            is_off: false,
            shuts_down: true,
            installed: Vec::new(),
            memory_mib: 1000,
            processor: "make-believe",
            user: "root",
            own: "6.1-own",
            build_id: "abcd",
            free_kib: 1 << 30,
            console: Vec::new(),
            takes_sysrq: false,
            memory: None,
            permit: None,
            starter: None,
            image: None,
            is_complete: false,
            log: Vec::new(),
        })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    pub(super) fn log(&self) -> String {
        self.state().log.join(", ")
    }

    pub(super) fn open(&self, home: &TempDir) -> Result<Arc<ServerMachine>, MachineError> {
        let server = ServerSettings {
            boot_s: self.state().boot_s,
            ..settings_of("testbox")
        };
        let access = ServerAccess {
            home: home.path().to_owned(),
            agent: Vec::new(),
            limits: Limits::default(),
            permit: None,
        };
        let starter = self.state().starter.clone();
        let image = starter.map(|starter| Box::new(self.loader(starter)) as Box<dyn ImageLoader>);
        let permitted = || Permitted::new(self.clone(), self.state().permit.clone());
        let capture = self
            .state()
            .memory
            .is_some()
            .then(|| Arc::new(self.clone()) as Arc<dyn Capture>);
        let handle = ServerHandle {
            server,
            remote: Arc::new(permitted()),
            control: Box::new(permitted()),
            image,
            capture,
            scratch: machine::ScratchFolder::new(home.path()).unwrap(),
            poll_interval: Duration::ZERO,
            job_s: 60,
            disturbed_share: 0.1,
            life: Shared::default(),
        };
        ServerMachine::with_handle(handle, &access).map(Arc::new)
    }
}

/// Returns the settings of a server without power control and console.
pub(crate) fn settings_of(name: &str) -> ServerSettings {
    ServerSettings::of_host(name, "root@testbox")
}

fn silence() -> ServerProblem {
    ServerProblem::Unreachable {
        name: "testbox".into(),
        answer: "Connection timed out".into(),
    }
}

impl RemoteHost for Fake {
    fn facts(&self) -> Result<Facts, ServerProblem> {
        let mut state = self.state();
        state.looks += 1;
        if !state.answers {
            return Err(silence());
        }
        let mark = state
            .running
            .as_ref()
            .map(|tag| format!("{MARK}{tag}"))
            .unwrap_or_default();
        let image = state
            .image
            .as_ref()
            .map(|id| format!("{IMAGE}{id}"))
            .unwrap_or_default();
        let initrd = if state.image.is_some() && !state.is_complete {
            ""
        } else {
            "/boot/initrd"
        };
        let installed: String = state
            .installed
            .iter()
            .map(|tag| format!("installed={tag}\n"))
            .collect();
        let release = if state.running.is_some() {
            "6.1"
        } else {
            state.own
        };
        Ok(Facts::read(&format!(
            "boot_id={}\nrelease={release}\ncmdline=root=/dev/vda1 {mark} {image}\nuser={}\nfree_kib={}\n{installed}\
             tool.kexec=yes\ntool.cpio=yes\ntool.depmod=yes\ntool.taskset=yes\ntool.timeout=yes\n\
             own_initrd={initrd}\nhas_kexec=yes\nown=6.1-own\n\
             driver=virtio_blk the root disk\nmachine_id=12\ndone=yes\n",
            state.boots, state.user, state.free_kib
        )))
    }

    fn install(&self, kernel: &Kernel<'_>) -> Result<(), ServerProblem> {
        let mut state = self.state();
        state.log.push("install".into());
        if state.does == Does::IsCutInInstall {
            state.does = Does::Boots;
            return Err(silence());
        }
        state.installed.push(kernel.tag.to_owned());
        Ok(())
    }

    fn boot_once(&self, kernel: &Kernel<'_>) -> Result<(), ServerProblem> {
        let mut state = self.state();
        state.log.push("boot".into());
        if state.does == Does::IsCutBeforeBoot {
            state.does = Does::Boots;
            return Err(silence());
        }
        if state.does == Does::IsNotBooted {
            return Ok(());
        }
        state.boots += 1;
        state.console.extend(b"Linux version 6.1\n");
        match state.does {
            Does::Dies => state
                .console
                .extend(b"Kernel panic - not syncing: VFS: cannot\n"),
            Does::MeetsBreakpoint => state.console.extend(INT3),
            Does::DiesForGood => {
                state
                    .console
                    .extend(b"Kernel panic - not syncing: VFS: cannot\n");
                state.answers = false;
            }
            Does::Hangs => state.answers = false,
            _ => state.running = Some(kernel.tag.to_owned()),
        }
        if state.does == Does::IsCutAfterBoot {
            Err(silence())
        } else {
            Ok(())
        }
    }

    fn reboot(&self) -> Result<(), ServerProblem> {
        let mut state = self.state();
        state.log.push("reboot".into());
        if state.does == Does::IsCutBeforeReturn {
            state.does = Does::Boots;
            return Err(silence());
        }
        (state.boots, state.running) = (state.boots + 1, None);
        state.reset();
        if state.does == Does::IsCutAfterReturn {
            Err(silence())
        } else {
            Ok(())
        }
    }

    fn shut_down(&self) -> Result<(), ServerProblem> {
        let mut state = self.state();
        state.log.push("shut down".into());
        (state.answers, state.is_off) = (false, state.shuts_down);
        Ok(())
    }

    fn run_agent(
        &self,
        on: &AgentBoot<'_>,
        arguments: &[&str],
        _: &[u8],
    ) -> Result<Ended, ServerProblem> {
        let mut state = self.state();
        if on.id != state.boots.to_string() {
            return Ok(Ended {
                code: Some(OTHER_BOOT),
                output: Vec::new(),
                stderr: String::new(),
            });
        }
        let what = match on.files {
            Some(files) => format!("{} among {}", arguments[0], files.sha256),
            None => arguments[0].to_owned(),
        };
        state.log.push(what);
        if state.does == Does::DiesInPreparation && arguments[0] == "prepare" {
            (state.boots, state.running) = (state.boots + 1, None);
            return Err(silence());
        }
        if arguments != ["job"] {
            let is_asked = arguments == ["describe"];
            let build_id = if state.running.is_some() {
                state.build_id
            } else {
                "0123"
            };
            let memory_mib = state.memory_mib;
            let processor = state.processor;
            let report = format!(
                "boot.build_id={build_id}\nhost.memory={memory_mib} MiB\nhost.processor={processor}\n"
            );
            let output = if is_asked {
                report.into_bytes()
            } else {
                Vec::new()
            };
            return Ok(Ended {
                code: Some(0),
                output,
                stderr: String::new(),
            });
        }
        match state.does {
            Does::HasNoPlace => {
                return Ok(Ended {
                    code: Some(NO_PLACE),
                    output: Vec::new(),
                    stderr: "its files do not fit\n".into(),
                });
            }
            Does::DiesInJob => {
                (state.boots, state.running) = (state.boots + 1, None);
                state.reset();
            }
            Does::MeetsBreakpointInJob => {
                state.console.extend(INT3);
                (state.boots, state.running) = (state.boots + 1, None);
            }
            Does::HangsInJob => state.answers = false,
            Does::IsCutInJob => state.does = Does::Boots,
            _ => {
                return Ok(Ended {
                    code: Some(1),
                    output: b"agent: no such workload\n".to_vec(),
                    stderr: String::new(),
                });
            }
        }
        Err(silence())
    }

    fn leave(&self) -> Result<(), ServerProblem> {
        self.state().log.push("leave".into());
        Ok(())
    }
}

impl Capture for Fake {
    fn load(&self) -> Result<(), ServerProblem> {
        self.state().log.push("load".into());
        Ok(())
    }

    fn take(&self) -> Result<Vec<u8>, ServerProblem> {
        let name = "testbox".into();
        let step = "save the memory of the kernel";
        let answer = "no space".into();
        self.state()
            .memory
            .clone()
            .filter(|memory| !memory.is_empty())
            .ok_or(ServerProblem::Step { name, step, answer })
    }
}

impl Control for Fake {
    fn cycle_power(&self) -> Result<bool, ServerProblem> {
        let mut state = self.state();
        if state.has_power {
            state.log.push("power".into());
            (state.boots, state.running, state.answers) = (state.boots + 1, None, true);
            state.reset();
        }
        Ok(state.has_power)
    }

    fn has_power(&self) -> bool {
        self.state().has_power
    }

    fn is_off(&self) -> Result<bool, ServerProblem> {
        Ok(self.state().is_off)
    }

    fn switch_power(&self, is_on: bool) -> Result<(), ServerProblem> {
        let mut state = self.state();
        state.log.push(if is_on { "on" } else { "off" }.into());
        (state.is_off, state.answers) = (!is_on, is_on && state.does != Does::Hangs);
        state.boots += 1;
        Ok(())
    }

    fn new_console(&self) -> Vec<u8> {
        std::mem::take(&mut self.state().console)
    }

    fn send_sysrq(&self, keys: &str) -> bool {
        let mut state = self.state();
        if state.takes_sysrq {
            state.log.push(format!("sysrq {keys}"));
            state.console.extend(b"sysrq: Show Blocked State\n");
        }
        state.takes_sysrq
    }
}
