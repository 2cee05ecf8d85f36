//! A make-believe server, whose kernels boot, die, hang and lose the network as a test says.

mod idle;
mod image;
mod permitted;
mod scripts;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{
    Build, BuildFile, BuildId, FailureReason, KernelName, Outcome, ServerSettings, SubjectFailure,
};
use subprocess::Ended;
use tempfile::TempDir;
use wire::{Clock, Job, Perturbation, Task};

use self::image::Starter;
use super::control::Control;
use super::image::Carrier;
use super::permit::{Permit, Permitted};
use super::problem::ServerProblem;
use super::reach::{Boot as AgentBoot, Capture, Facts, IMAGE, Kernel, MARK, OTHER_BOOT, Reach};
use super::{At, OnServer, ServerState, server_state};
use crate::backend::{Backend, Boot, Guest, Observe};
use crate::initrd::Programs;
use crate::settings::{Limits, Settings, SnapshotUse};

/// How a kernel's console ends that meets a breakpoint which is not its own.
const INT3: &[u8] =
    b"int3: 0000 [#1] PREEMPT SMP\nKernel panic - not syncing: Fatal exception in interrupt\n";

/// What the kernel under test does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
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
struct State {
    does: Does,
    has_power: bool,
    boots: u32,
    /// How long a boot may take (s).
    boot_s: u64,
    /// How often it was looked at.
    looks: u32,
    running: Option<String>,
    answers: bool,
    /// Whether its power is off.
    is_off: bool,
    /// Whether it shuts down when it is asked to.
    shuts_down: bool,
    installed: Vec<String>,
    memory_mib: u64,
    processor: &'static str,
    user: &'static str,
    /// The release of its own kernel.
    own: &'static str,
    /// The build id of the kernel under test.
    build_id: &'static str,
    free_kib: u64,
    console: Vec<u8>,
    /// Whether its console takes sysrq.
    takes_sysrq: bool,
    /// What its capture kernel saves.
    memory: Option<Vec<u8>>,
    permit: Option<Arc<dyn Permit>>,
    /// What starts its image; it runs one then, which every reset ends.
    carrier: Option<Starter>,
    /// The image that runs.
    image: Option<String>,
    /// Whether that has its own root.
    is_complete: bool,
    log: Vec<String>,
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
struct Fake(Arc<Mutex<State>>);

impl Fake {
    fn new(does: Does) -> Self {
        Self(Arc::new(Mutex::new(State {
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
            carrier: None,
            image: None,
            is_complete: false,
            log: Vec::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> String {
        self.state().log.join(", ")
    }

    fn open(&self, home: &TempDir) -> Result<Arc<OnServer>, crate::MachineError> {
        let server = ServerSettings {
            boot_s: self.state().boot_s,
            ..settings_of("testbox")
        };
        let settings = Settings {
            qemu: None,
            programs: Programs {
                init: Vec::new(),
                agent: Vec::new(),
            },
            loader: Vec::new(),
            tracer: Vec::new(),
            conditions: Vec::new(),
            home: home.path().to_owned(),
            snapshots: SnapshotUse::Never,
            limits: Limits::default(),
            permit: None,
        };
        let carrier = self.state().carrier.clone();
        let image = carrier.map(|starter| Box::new(self.carried(starter)) as Box<dyn Carrier>);
        let permitted = || Permitted::new(self.clone(), self.state().permit.clone());
        let (reach, control) = (Arc::new(permitted()), Box::new(permitted()));
        let capture = self
            .state()
            .memory
            .is_some()
            .then(|| Arc::new(self.clone()) as Arc<dyn Capture>);
        let (look, own, is_away, is_held) = (
            Duration::ZERO,
            Mutex::default(),
            Mutex::default(),
            Mutex::default(),
        );
        let (job_s, disturbed_share, scratch) = (60, 0.1, home.path().to_owned());
        let at = At {
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
        };
        OnServer::at(at, &settings).map(Arc::new)
    }
}

/// Returns the settings of a server without power control and console.
pub(super) fn settings_of(name: &str) -> ServerSettings {
    ServerSettings::of_host(name, "root@testbox")
}

fn silence() -> ServerProblem {
    ServerProblem::Unreachable {
        name: "testbox".into(),
        said: "Connection timed out".into(),
    }
}

impl Reach for Fake {
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
        words: &[&str],
        _: &[u8],
    ) -> Result<Ended, ServerProblem> {
        let mut state = self.state();
        if on.id != state.boots.to_string() {
            return Ok(Ended {
                code: Some(OTHER_BOOT),
                output: Vec::new(),
                said: String::new(),
            });
        }
        state.log.push(words[0].into());
        if state.does == Does::DiesInPreparation && words[0] == "prepare" {
            (state.boots, state.running) = (state.boots + 1, None);
            return Err(silence());
        }
        if words != ["job"] {
            let is_asked = words == ["describe"];
            let build_id = if state.running.is_some() {
                state.build_id
            } else {
                "0123"
            };
            let (memory_mib, processor) = (state.memory_mib, state.processor);
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
                said: String::new(),
            });
        }
        match state.does {
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
                    said: String::new(),
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
        let (name, step, said) = (
            "testbox".into(),
            "save the memory of the kernel",
            "no space".into(),
        );
        self.state()
            .memory
            .clone()
            .filter(|memory| !memory.is_empty())
            .ok_or(ServerProblem::Step { name, step, said })
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

fn build(folder: &TempDir) -> Build {
    let path = folder.path().join("vmlinuz");
    std::fs::write(&path, super::note::tests::image(&[0xab, 0xcd])).unwrap();
    let modules = folder.path().join("modules/6.1");
    std::fs::create_dir_all(&modules).unwrap();
    Build {
        id: BuildId::from_hex(&"a".repeat(64)).unwrap(),
        name: KernelName::Path(PathBuf::from("vmlinuz")),
        version: "6.1".into(),
        origin: model::Origin::Described("vmlinuz".into()),
        image: BuildFile {
            path,
            sha256: "b".repeat(64),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: Some(modules),
    }
}

fn job() -> Job {
    Job {
        id: 7,
        clock: Clock::Monotonic,
        perturbation: Perturbation::default(),
        task: Task::Environment,
    }
}

/// Boots a build and runs a job; returns how they ended.
fn boot_and_run(fake: &Fake) -> (Result<Outcome, String>, Arc<OnServer>) {
    let home = tempfile::tempdir().unwrap();
    boot_and_run_on(fake.open(&home).unwrap(), &home)
}

fn boot_and_run_on(
    server: Arc<OnServer>,
    home: &TempDir,
) -> (Result<Outcome, String>, Arc<OnServer>) {
    let build = build(home);
    let boot = Arc::clone(&server).boot(
        &Guest {
            build: &build,
            modules: &[],
        },
        1,
    );
    let failed = |failure: SubjectFailure| Ok(Outcome::Failed(failure));
    let end = match boot {
        Err(error) => Err(error.to_string()),
        Ok(Boot::Failed(failure, _)) => failed(failure),
        Ok(Boot::Ready(booted)) => match booted.run(&job(), Observe::Nothing) {
            Err(error) => Err(error.to_string()),
            Ok(end) => end.stream.map(|_| Outcome::Completed).or_else(failed),
        },
    };
    (end, server)
}

fn reason(end: Result<Outcome, String>) -> FailureReason {
    match end {
        Ok(Outcome::Failed(failure)) => failure.reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn server_boots_measures_and_returns() {
    let fake = Fake::new(Does::Boots);
    let (end, server) = boot_and_run(&fake);
    assert_eq!(
        reason(end),
        FailureReason::AgentDied("agent: no such workload".into())
    );
    server.close().unwrap();
    server.close().unwrap();
    assert_eq!(
        fake.log(),
        "describe, install, boot, restore, prepare, describe, job, reboot, leave"
    );
    assert_eq!(fake.state().running, None);
}

#[test]
fn kernel_that_dies_at_boot_is_its_failure() {
    let fake = Fake::new(Does::Dies);
    let (end, server) = boot_and_run(&fake);
    assert_eq!(reason(end), FailureReason::Panicked, "as its console says");
    server.close().unwrap();
    assert_eq!(
        fake.log(),
        "describe, install, boot, leave",
        "it runs its own kernel already"
    );
}

#[test]
fn server_that_never_restarts_fails_the_lab() {
    for has_power in [true, false] {
        let fake = Fake::new(Does::IsNotBooted);
        fake.state().has_power = has_power;
        let (end, _) = boot_and_run(&fake);
        assert_eq!(
            end.unwrap_err(),
            "testbox cannot restart: it still answered in the same boot after 30 s"
        );
    }
}

#[test]
fn hung_kernel_is_ended_by_power_control() {
    for (does, log) in [
        (Does::Hangs, "describe, install, boot, power, leave"),
        (
            Does::HangsInJob,
            "describe, install, boot, restore, prepare, describe, job, power, leave",
        ),
    ] {
        let fake = Fake::new(does);
        let (end, server) = boot_and_run(&fake);
        assert_eq!(reason(end), FailureReason::Hung);
        server.close().unwrap();
        assert_eq!(fake.log(), log);
    }
}

#[test]
fn hung_kernel_is_asked_why_before_power() {
    let run = |does| {
        let fake = Fake::new(does);
        fake.state().takes_sysrq = true;
        let (end, _) = boot_and_run(&fake);
        let Ok(Outcome::Failed(failure)) = end else {
            panic!("{end:?}")
        };
        (fake.log(), failure)
    };
    let (log, hung) = run(Does::Hangs);
    assert!(log.contains("boot, sysrq 8wl, power"), "{log}");
    assert!(
        hung.console_tail.contains("Show Blocked State"),
        "{}",
        hung.console_tail
    );
    assert_eq!(hung.reason, FailureReason::Hung);
    let (log, hung) = run(Does::HangsInJob);
    assert!(
        log.contains("job, sysrq 8wl, power") && hung.reason == FailureReason::Hung,
        "{log}"
    );
    // One that died says no more.
    assert!(!run(Does::DiesForGood).0.contains("sysrq"));
}

#[test]
fn dead_kernel_on_console_ends_waiting_early() {
    let looks = |does, has_power| {
        let fake = Fake::new(does);
        (fake.state().boot_s, fake.state().has_power) = (1_800, has_power);
        let (end, _) = boot_and_run(&fake);
        let looks = fake.state().looks;
        (end.ok().map(|end| reason(Ok(end))), looks)
    };
    let (dead, soon) = looks(Does::DiesForGood, true);
    let (hung, late) = looks(Does::Hangs, true);
    assert_eq!(
        (dead, hung),
        (Some(FailureReason::Panicked), Some(FailureReason::Hung))
    );
    assert!(soon < 30 && late > 250, "{soon} {late}");
    // Without power control it may still come back.
    assert!(looks(Does::DiesForGood, false).1 > 250);
}

#[test]
fn server_without_power_control_is_lost() {
    let fake = Fake::new(Does::Hangs);
    fake.state().has_power = false;
    let (end, _) = boot_and_run(&fake);
    insta::assert_snapshot!(end.unwrap_err(), @"testbox is lost: after the boot it did not answer for 30 s, and its [[machine]] has no power control; its own kernel is the default of the next start");
}

#[test]
fn no_job_runs_on_another_kernel() {
    let (home, fake) = (tempfile::tempdir().unwrap(), Fake::new(Does::Boots));
    let (server, build) = (fake.open(&home).unwrap(), build(&home));
    let Boot::Ready(booted) = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap()
    else {
        panic!()
    };
    let run = || {
        booted
            .run(&job(), Observe::Nothing)
            .unwrap()
            .stream
            .unwrap_err()
            .reason
    };
    let dead = FailureReason::AgentDied("agent: no such workload".into());
    assert_eq!(run(), dead);
    // A reset: the server runs its own kernel.
    {
        let mut state = fake.state();
        (state.boots, state.running) = (state.boots + 1, None);
    }
    let restarted = FailureReason::AgentDied("the server restarted".into());
    assert_eq!(run(), restarted, "the job was not run");
    assert_eq!(run(), dead, "the build was booted again");
    assert_eq!(
        fake.log(),
        "describe, install, boot, restore, prepare, describe, job, boot, restore, prepare, describe, job"
    );
}

#[test]
fn kernel_that_dies_in_a_job_fails_it() {
    let fake = Fake::new(Does::DiesInJob);
    let restarted = FailureReason::AgentDied("the server restarted".into());
    assert_eq!(
        reason(boot_and_run(&fake).0),
        restarted,
        "without a console"
    );
}

#[test]
fn memory_of_a_dead_kernel_is_brought_home() {
    for (memory, expected) in [
        (b"pages".to_vec(), "pages"),
        (
            Vec::new(),
            "testbox cannot save the memory of the kernel: no space",
        ),
    ] {
        let (home, fake) = (tempfile::tempdir().unwrap(), Fake::new(Does::DiesInJob));
        fake.state().memory = Some(memory);
        let (server, build) = (fake.open(&home).unwrap(), build(&home));
        let Boot::Ready(booted) = server
            .boot(
                &Guest {
                    build: &build,
                    modules: &[],
                },
                1,
            )
            .unwrap()
        else {
            panic!()
        };
        let failure = booted
            .run(&job(), Observe::Nothing)
            .unwrap()
            .stream
            .unwrap_err();
        let dead = booted.run_to_death(&job());
        let found = dead.map(|dead| std::fs::read_to_string(dead.unwrap().file).unwrap());
        assert_eq!(found.unwrap_or_else(|error| error.to_string()), expected);
        assert_eq!(
            failure.reason == FailureReason::Panicked,
            expected == "pages",
            "without a console"
        );
        assert!(booted.run_to_death(&job()).unwrap().is_none());
        assert!(
            fake.log()
                .starts_with("describe, install, boot, load, restore, prepare"),
            "{}",
            fake.log()
        );
    }
}

#[test]
fn kernel_that_dies_before_the_first_job_fails() {
    let fake = Fake::new(Does::DiesInPreparation);
    fake.state().console = b"Kernel panic - not syncing: before the boot\n".to_vec();
    let (end, server) = boot_and_run(&fake);
    assert_eq!(
        reason(end),
        FailureReason::AgentDied("the server restarted".into())
    );
    server.close().unwrap();
    assert_eq!(
        fake.log(),
        "describe, install, boot, restore, prepare, leave"
    );
}

#[test]
fn cut_connection_is_the_labs_failure() {
    let fake = Fake::new(Does::IsCutInJob);
    let (end, _) = boot_and_run(&fake);
    assert_eq!(
        end.unwrap_err(),
        "the connection to testbox was cut while the kernel ran on"
    );
}

#[test]
fn connection_cut_in_any_step_is_mended() {
    let tail = "restore, prepare, describe, job, reboot";
    for (does, steps) in [
        (
            Does::IsCutInInstall,
            format!("install, install, boot, {tail}, leave"),
        ),
        (
            Does::IsCutAfterBoot,
            format!("install, boot, {tail}, leave"),
        ),
        (
            Does::IsCutBeforeReturn,
            format!("install, boot, {tail}, reboot, leave"),
        ),
        (
            Does::IsCutAfterReturn,
            format!("install, boot, {tail}, leave"),
        ),
    ] {
        let fake = Fake::new(does);
        let (end, server) = boot_and_run(&fake);
        assert_eq!(
            reason(end),
            FailureReason::AgentDied("agent: no such workload".into()),
            "{does:?}"
        );
        server.close().unwrap();
        assert_eq!(fake.log(), format!("describe, {steps}"), "{does:?}");
        assert_eq!(fake.state().running, None);
    }
    // The lab tries such a boot again.
    let fake = Fake::new(Does::IsCutBeforeBoot);
    let (home, server) = (
        tempfile::tempdir().unwrap(),
        fake.open(&tempfile::tempdir().unwrap()).unwrap(),
    );
    let build = build(&home);
    let boot = || {
        Arc::clone(&server).boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
    };
    assert!(boot().unwrap_err().is_passing());
    assert!(matches!(boot().unwrap(), Boot::Ready(_)));
}

#[test]
fn console_of_a_boot_is_kept() {
    let (home, fake) = (tempfile::tempdir().unwrap(), Fake::new(Does::Boots));
    let (server, build) = (fake.open(&home).unwrap(), build(&home));
    let Boot::Ready(booted) = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap()
    else {
        panic!()
    };
    assert_eq!(booted.boot_console(), b"Linux version 6.1\n");
}

#[test]
fn other_build_of_a_release_is_refused() {
    let (home, fake) = (tempfile::tempdir().unwrap(), Fake::new(Does::Boots));
    fake.state().build_id = "ef01";
    let (server, build) = (fake.open(&home).unwrap(), build(&home));
    let error = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap_err();
    insta::assert_snapshot!(error, @"testbox cannot boot the kernel: it runs the build with id ef01 and not abcd");
    assert_eq!(fake.state().running, None, "it runs its own kernel again");
}

#[test]
fn return_to_a_third_kernel_is_reported() {
    let fake = Fake::new(Does::Boots);
    let (_, server) = boot_and_run(&fake);
    fake.state().own = "6.5-other";
    insta::assert_snapshot!(server.close().unwrap_err());
    // Also if a kernel dies, and the boot loader starts another one than before.
    let fake = Fake::new(Does::DiesInJob);
    let (home, build_home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (server, build) = (fake.open(&home).unwrap(), build(&build_home));
    let Boot::Ready(booted) = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap()
    else {
        panic!()
    };
    fake.state().own = "6.5-other";
    let error = booted
        .run(&job(), Observe::Nothing)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("testbox came back with kernel 6.5-other and not with its own, 6.1-own"),
        "{error}"
    );
}

#[test]
fn lost_and_changed_servers_are_remembered() {
    let (home, fake) = (tempfile::tempdir().unwrap(), Fake::new(Does::Hangs));
    fake.state().has_power = false;
    let (server, build) = (fake.open(&home).unwrap(), build(&home));
    server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap_err();
    let state = || server_state("testbox", home.path());
    assert!(
        matches!(state(), Some(ServerState::Lost(why)) if why.starts_with("testbox is lost: after the boot"))
    );
    {
        let mut state = fake.state();
        (state.answers, state.does) = (true, Does::Boots);
    }
    let server = fake.open(&home).unwrap();
    assert_eq!(state(), None);
    fake.state().memory_mib = 500;
    server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap_err();
    let changes = "machine testbox changed: host.memory 1000 MiB -> 500 MiB";
    assert_eq!(state(), Some(ServerState::Quarantined(changes.into())));
}

#[test]
fn stale_breakpoint_of_an_emulator_is_retried() {
    for does in [Does::MeetsBreakpoint, Does::MeetsBreakpointInJob] {
        let fake = Fake::new(does);
        assert!(
            matches!(boot_and_run(&fake).0, Ok(Outcome::Failed(_))),
            "hardware does no such thing"
        );
        let fake = Fake::new(does);
        fake.state().processor = "QEMU Virtual CPU version 2.5+";
        let (end, server) = boot_and_run(&fake);
        assert!(end.unwrap_err().starts_with("QEMU executed a breakpoint"));
        server.close().unwrap();
        assert!(fake.log().ends_with("leave") && fake.state().running.is_none());
    }
}

#[test]
fn machine_that_changed_between_boots_is_refused() {
    let (home, fake) = (tempfile::tempdir().unwrap(), Fake::new(Does::Boots));
    let (server, build) = (fake.open(&home).unwrap(), build(&home));
    fake.state().memory_mib = 500;
    let error = server
        .boot(
            &Guest {
                build: &build,
                modules: &[],
            },
            1,
        )
        .unwrap_err()
        .to_string();
    assert!(error.contains("host.memory 1000 MiB -> 500 MiB"), "{error}");
    assert_eq!(fake.state().running, None, "it runs its own kernel again");
}

#[test]
fn killed_marvins_kernel_is_left_at_opening() {
    let fake = Fake::new(Does::Boots);
    fake.state().running = Some("0123456789ab".into());
    let home = tempfile::tempdir().unwrap();
    fake.open(&home).unwrap();
    assert_eq!(fake.log(), "reboot, describe, leave");
}

#[test]
fn changed_machine_is_refused() {
    let fake = Fake::new(Does::Boots);
    let home = tempfile::tempdir().unwrap();
    fake.open(&home).unwrap();
    fake.state().memory_mib = 500;
    let error = fake.open(&home).unwrap_err().to_string();
    assert!(error.contains("host.memory 1000 MiB -> 500 MiB"), "{error}");
    assert_eq!(
        fake.log(),
        "describe, leave, describe, leave",
        "others may use it"
    );
}

#[test]
fn unfit_servers_are_refused_before_any_change() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::new(Does::Boots);
    fake.state().user = "lab";
    let user = fake.open(&home).unwrap_err().to_string();
    let fake = Fake::new(Does::Boots);
    fake.state().free_kib = 512;
    let (full, _) = boot_and_run(&fake);
    insta::assert_snapshot!(format!("{user}\n{}", full.unwrap_err()), @r#"
    testbox boots kernels only for root, not for user lab: set host = "root@..." in its [[machine]]
    testbox has 0 MiB left in /var/lib/marvin; the kernel needs 1 MiB: free some there
    "#);
    assert_eq!(fake.log(), "describe, leave");
}
