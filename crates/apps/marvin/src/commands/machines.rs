//! `marvin machines`: lists machines to measure on, and checks servers.

use std::path::Path;

use clap::{Args, Subcommand};
use history::describe_frequency;
use lab::{Sampled, Wanted};
use machine::Smp;
use machine::qemu::Qemu;
use model::{BootOnce, Health, MachineId, ServerSettings, UnixTime, describe_off, quarantine_of};
use server::{
    Power, ServerLook, ServerProblem, ServerState, accept, console_folder, is_off, is_recorded,
    look, server_state,
};
use store::{QueueOverview, Store, StoreError};

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{KernelMeasurement, open_lab_on, replicates};
use crate::options::{EXACT_SMP, MeasureOptions, NoisyOptions, OWN_MACHINES};
use crate::select::{choose_workloads, find_machines, kernel_name_in};
use crate::servers::{Reserved, reserved};
use crate::session::{Output, Session};
use crate::views::{Check, DoctorDocument, ListedMachine, MachineState, MachinesDocument, Problem};

/// `marvin machines`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MachinesArguments {
    #[command(subcommand)]
    pub(crate) command: Option<MachinesCommand>,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// A subcommand of `marvin machines`.
#[derive(Debug, Subcommand)]
pub(crate) enum MachinesCommand {
    /// Check a machine: print a fix for each problem, and the noise between boots
    Check(Box<MachinesCheck>),
}

/// `marvin machines check`.
#[derive(Debug, Args)]
pub(crate) struct MachinesCheck {
    /// Machine: vm, local, or the name of a [[machine]] in marvin.toml
    #[arg(add = completion::machine())]
    pub(crate) name: String,

    /// Kernel to measure --boots times first [default: judge by stored boots]
    #[arg(add = completion::kernel())]
    pub(crate) kernel: Option<String>,

    /// Accept the server's changed hardware as its hardware from now on
    #[arg(long, conflicts_with = "kernel")]
    pub(crate) accept: bool,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) noisy: NoisyOptions,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// What a server without them lacks.
const NO_POWER: &str = "a kernel that hangs leaves the server lost";

const NO_CONSOLE: &str = "why a kernel died is not recorded";

/// Most runs whose environments are read.
const RUNS_READ: usize = 100;

pub(crate) fn machines(session: &Session, command: &MachinesArguments) -> anyhow::Result<Exit> {
    let home = session.home()?;
    let servers = &session.config()?.settings.servers;
    let answer = session.answer(None)?;
    if let Some(MachinesCommand::Check(command)) = &command.command {
        return check(session, command);
    }
    let reserved = reserved(session)?;
    let queue = read_queue(session)?;
    // A server that does not answer takes ten seconds: ask all at once.
    let listed = std::thread::scope(|scope| {
        let looks: Vec<_> = servers
            .iter()
            .map(|server| scope.spawn(|| with_queue(listed(server, home, &reserved), &queue)))
            .collect();
        let answers = looks.into_iter().map(|one| {
            one.join()
                .unwrap_or_else(|bug| std::panic::resume_unwind(bug))
        });
        own(home)
            .into_iter()
            .map(|one| with_queue(one, &queue))
            .chain(answers)
            .collect()
    });
    answer.list(&MachinesDocument::new(listed), command.output)?;
    Ok(Exit::Fine)
}

/// Checks a machine, measures a kernel on it if one is named, and says how much its boots scatter.
fn check(session: &Session, command: &MachinesCheck) -> anyhow::Result<Exit> {
    let wanted = find_machines(session, &[&command.name], &command.noisy)?
        .remove(0)
        .1;
    let answer = session.answer(None)?;
    let mut found = match &wanted {
        Wanted::Exact | Wanted::ExactSmp(_) => {
            let text = "exact repeats each number, so no boot scatters; this host is checked by: marvin doctor";
            return Err(WrongInput(text.to_owned()).into());
        }
        Wanted::Server(server) => {
            let home = session.home()?;
            match command.accept.then(|| accept(server, home, lab::AGENT)) {
                Some(Err(problem)) => vec![Check::new("accept", Err(as_problem(&problem)))],
                Some(Ok(())) | None => checks(server, home),
            }
        }
        Wanted::Vm(_) | Wanted::Local if command.accept => {
            return Err(WrongInput(
                "--accept is for servers: Marvin keeps no record of vm and local".to_owned(),
            )
            .into());
        }
        Wanted::Vm(_) | Wanted::Local => Vec::new(),
    };
    let mut noise = Vec::new();
    if found.iter().all(|check| check.problem.is_none()) {
        let chosen = choose_workloads(session, &command.measure, &[])?;
        let lab = open_lab_on(wanted, session, &command.measure, chosen.tools.clone())?;
        if let Some(kernel) = &command.kernel {
            let progress = session.progress();
            let seeds = replicates(lab.machine(), 1, command.noisy.boots());
            let whole = KernelMeasurement {
                measure: &command.measure,
                chosen: &chosen,
                build: None,
                seeds,
                sampled: Sampled::No,
            };
            let kernel = kernel_name_in(kernel, command.measure.sources.tree.as_deref())?;
            whole.measure(&lab, &kernel, &progress)?;
            progress.end();
        }
        let machine = lab.machine().clone();
        lab.close()?;
        found.push(Check::new("machine", Ok(machine.summary.clone())));
        let history = session.read_history()?.history;
        let machines: Vec<_> = history
            .machine_indexes()
            .filter(|known| history.machine(*known).is_kin(&machine))
            .collect();
        noise = history.noise_floors(&machines);
        let known: Vec<&MachineId> = machines.iter().map(|n| &history.machine(*n).id).collect();
        found.extend(frequency(session, &known)?);
        if noise.is_empty() {
            let how = match machine.capabilities().boots {
                true => format!("marvin machines check {} KERNEL", command.name),
                false => "marvin run running: --on local, once after each reboot".to_owned(),
            };
            found.push(Check::new(
                "noise",
                Ok(format!("not known: no kernel has two boots here; {how}")),
            ));
        }
    }
    let document = DoctorDocument::new(&command.name, found).with_noise(&noise);
    answer.list(&document, command.output)?;
    Ok(if document.is_fit() {
        Exit::Fine
    } else {
        Exit::Lab
    })
}

/// Says whether the frequency of the processors may have changed in the latest runs on these
/// machines.
fn frequency(session: &Session, machines: &[&MachineId]) -> anyhow::Result<Option<Check>> {
    let store = session.open_store_read_only()?;
    let mut runs = store.runs(RUNS_READ)?;
    runs.retain(|run| machines.contains(&&run.machine));
    let runs = runs
        .iter()
        .map(|run| store.run(&run.id))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(describe_frequency(runs.iter().map(|run| &run.environment))
        .map(|text| Check::new("suspicion", Ok(text))))
}

/// Returns the machines that need no settings.
fn own(home: &Path) -> Vec<ListedMachine> {
    let given = std::env::var_os("MARVIN_QEMU");
    let found = Qemu::find(given.as_ref().map(Path::new), home);
    let (state, qemu) = match &found {
        Ok(qemu) => (
            MachineState::Ready,
            format!(
                "QEMU {}: ",
                qemu.version.split(' ').next().unwrap_or_default()
            ),
        ),
        Err(_) => (
            MachineState::Unfit,
            "no QEMU, see marvin doctor: ".to_owned(),
        ),
    };
    let is_unknown = found.as_ref().is_ok_and(|qemu| Smp::check(qemu).is_err());
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    OWN_MACHINES
        .into_iter()
        .map(|(name, about)| {
            let is_here = name == "local";
            let (state, qemu) = match name {
                "local" => (MachineState::Ready, ""),
                EXACT_SMP if is_unknown => (MachineState::Unfit, "needs another build of QEMU: "),
                _ => (state, &*qemu),
            };
            let kernel = release
                .as_ref()
                .filter(|_| is_here)
                .map(|release| model::sanitize_line(release.trim()));
            let about = format!("{qemu}{about}");
            ListedMachine {
                name: name.to_owned(),
                kind: name,
                state,
                kernel,
                held_minutes: None,
                waiting: 0,
                about,
            }
        })
        .collect()
}

/// What the queue knows of machines.
#[derive(Default)]
struct QueueState {
    health: Vec<Health>,
    jobs: QueueOverview,
}

/// Reads it; nothing if there is no store yet.
fn read_queue(session: &Session) -> anyhow::Result<QueueState> {
    let store = match Store::open_read_only(session.store_location()?) {
        Err(StoreError::Empty { .. }) => return Ok(QueueState::default()),
        store => store?,
    };
    // No single job is looked at, so no time matters.
    Ok(QueueState {
        health: store.health()?,
        jobs: store.queue_overview(UnixTime::new(0), 0, 0)?,
    })
}

/// Says how many jobs wait for a machine, and of one that would take jobs that the queue gives it
/// none.
fn with_queue(listed: ListedMachine, queue: &QueueState) -> ListedMachine {
    let listed = ListedMachine {
        waiting: queue.jobs.jobs(&listed.name, "waiting"),
        ..listed
    };
    match quarantine_of(&listed.name, &queue.health) {
        Some(ill) if matches!(listed.state, MachineState::Ready | MachineState::Reserved) => {
            let about = model::sanitize_line(&format!(
                "the lab failed {} times: {}",
                ill.failures, ill.reason
            ));
            ListedMachine {
                state: MachineState::Quarantined,
                about,
                ..listed
            }
        }
        _ => listed,
    }
}

fn listed(server: &ServerSettings, home: &Path, reserved: &Reserved) -> ListedMachine {
    let name = server.name.clone();
    let kind = "ssh";
    let (mut state, kernel, mut held_minutes, mut about) = match look(server, home, lab::AGENT) {
        Err(problem) => {
            // What is known of it from the last contact.
            let (state, about) = match server_state(&server.name, home) {
                Some(ServerState::Quarantined(why)) => (MachineState::Quarantined, why),
                _ if problem.is_silence() && is_off(server) => {
                    (MachineState::Off, describe_off(&name))
                }
                Some(ServerState::Lost(why)) => (MachineState::Lost, why),
                None => (MachineState::Silent, first_line(&problem)),
            };
            (state, None, None, about)
        }
        Ok(look) => {
            let (state, about) = state(server, &look, server_state(&server.name, home));
            (state, Some(look.kernel), look.held_minutes, about)
        }
    };
    // A killed lab's own reservation says less than that the server still runs the kernel under
    // test, or is off.
    let shown = reserved.on_server(&server.name).filter(|one| match state {
        MachineState::Ready => true,
        MachineState::Away | MachineState::Off => !one.by_lab,
        _ => false,
    });
    if let Some(one) = shown {
        let taken = one.taken(reserved.now_unix);
        let off = if state == MachineState::Off {
            "; it is off"
        } else {
            ""
        };
        (state, held_minutes) = (MachineState::Reserved, Some(taken.left_s.div_ceil(60)));
        about = format!("{taken}{off}");
    }
    ListedMachine {
        name,
        kind,
        state,
        kernel,
        held_minutes,
        waiting: 0,
        about,
    }
}

fn state(
    server: &ServerSettings,
    look: &ServerLook,
    last_state: Option<ServerState>,
) -> (MachineState, String) {
    if let Some(problem) = look.problems.first() {
        return (MachineState::Unfit, first_line(problem));
    }
    if let Some(holder) = &look.held_by {
        return (
            MachineState::Held,
            format!("by {holder}{}", minutes(look.held_minutes)),
        );
    }
    // A server that answers is no longer lost; whether it is the same machine, its own kernel says.
    let quarantined = match last_state {
        Some(ServerState::Quarantined(changes)) if look.under_test => Some(changes),
        _ => None,
    };
    if let Some(changes) = look.changes.clone().or(quarantined) {
        return (MachineState::Quarantined, changes);
    }
    let hardware = look.hardware.iter().map(String::as_str);
    let boots = format!("boots by {}", server.boot.name());
    let image = look.image.as_ref().map(describe_image);
    let about = hardware
        .chain([&*boots])
        .chain(image.as_deref())
        .collect::<Vec<_>>()
        .join(", ");
    (
        if look.under_test {
            MachineState::Away
        } else {
            MachineState::Ready
        },
        about,
    )
}

/// Says which image a server has.
fn describe_image((name, runs): &(String, bool)) -> String {
    let not_now = if *runs {
        ""
    } else {
        ", which the next measurement starts"
    };
    format!("image {name}{not_now}")
}

/// Says how long a hold lasts.
fn minutes(left: Option<u64>) -> String {
    left.map_or_else(String::new, |left| {
        format!(", {left} min more unless renewed")
    })
}

fn first_line(problem: &ServerProblem) -> String {
    problem
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Checks a server, in the order in which a measurement needs it.
fn checks(server: &ServerSettings, home: &Path) -> Vec<Check> {
    let look = match look(server, home, lab::AGENT) {
        Err(problem) if problem.is_silence() && is_off(server) => {
            let wrong = format!("{} is off", server.name);
            let fix = describe_off(&server.name);
            return vec![Check::new("power", Err(Problem { wrong, fix }))];
        }
        Err(problem) => return vec![Check::new("ssh", Err(as_problem(&problem)))],
        Ok(look) => look,
    };
    let mut checks = vec![Check::new(
        "ssh",
        Ok(format!("{} answers, its key is known", server.host)),
    )];
    checks.extend(
        look.problems
            .iter()
            .map(|problem| Check::new("boot", Err(as_problem(problem)))),
    );
    if look.problems.is_empty() {
        checks.push(Check::new("boot", Ok(boots(&server.boot).to_owned())));
    }
    let kernel = if look.under_test {
        "a kernel under test; the next measurement returns to its own"
    } else {
        "its own"
    };
    checks.push(Check::new(
        "kernel",
        Ok(format!("{}, {kernel}", look.kernel)),
    ));
    let found = look.changes.map_or(Ok(()), |wrong| {
        let fix = format!(
            "undo the change, or: marvin machines check {} --accept",
            server.name
        );
        Err(Problem { wrong, fix })
    });
    checks.extend(
        look.hardware
            .map(|hardware| Check::new("hardware", found.map(|()| hardware))),
    );
    checks.extend(
        look.image
            .as_ref()
            .map(|image| Check::new("image", Ok(describe_image(image)))),
    );
    checks.push(Check::new(
        "disk",
        Ok(format!("{} MiB free in /var/lib/marvin", look.free_mib)),
    ));
    checks.push(Check::new("clock", clock(&look.clock)));
    checks.push(Check::new("power", power(server)));
    let console = server.console.as_ref().map(|console| {
        match is_recorded(&console_folder(home, &server.name)) {
            true => format!("recorded, from {}", console.place()),
            false => {
                format!(
                    "from {}; recorded while a measurement runs (always: marvin console --record)",
                    console.place()
                )
            }
        }
    });
    checks.push(Check::new(
        "console",
        Ok(console.unwrap_or_else(|| format!("none: {NO_CONSOLE}"))),
    ));
    if let Some(holder) = look.held_by {
        let fix = "wait until it is free".to_owned();
        let wrong = format!("held by {holder}{}", minutes(look.held_minutes));
        checks.push(Check::new("hold", Err(Problem { wrong, fix })));
    }
    checks
}

/// Asks what switches the power for its state.
fn power(server: &ServerSettings) -> Result<String, Problem> {
    let Some(settings) = &server.power else {
        return Ok(format!("none: {NO_POWER}"));
    };
    let power = Power::new(&server.name, settings);
    match power.state() {
        Ok(state) => Ok(format!("{state}, by {}", power.place())),
        Err(error) => {
            let fix = format!("[machine.power] of {} in marvin.toml", server.name);
            Err(Problem {
                wrong: error.to_string(),
                fix,
            })
        }
    }
}

fn boots(how: &BootOnce) -> &'static str {
    match how {
        BootOnce::Kexec => "by kexec: the firmware does not run between two kernels",
        BootOnce::Grub => "by GRUB, once; then its own kernel again",
        BootOnce::SystemdBoot => "by systemd-boot, once; then its own kernel again",
        BootOnce::Command(_) => "by the site's program",
    }
}

/// Other clock sources than the processors' take a microsecond to read, and more
/// (arch/x86/kernel/hpet.c, acpi_pm.c).
fn clock(source: &str) -> Result<String, Problem> {
    match source {
        "tsc" | "kvm-clock" | "arch_sys_counter" => Ok(source.to_owned()),
        _ => Ok(format!(
            "{source}: slow to read; short workloads get less exact"
        )),
    }
}

/// Splits a problem's text into what is wrong and what to do.
fn as_problem(problem: &impl std::fmt::Display) -> Problem {
    let text = problem.to_string();
    let (wrong, fix) = text
        .split_once("\nhint: ")
        .or_else(|| text.split_once(": "))
        .unwrap_or((&text, ""));
    Problem {
        wrong: wrong.to_owned(),
        fix: fix.to_owned(),
    }
}
