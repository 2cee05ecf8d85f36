//! `marvin work`: the worker of a machine, and the process that executes one job.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use config::ConfigFile;
use kernel::{Configuration, MakeOptions, SourceSettings};
use lab::{Dumps, LabError, LabOptions, Plan, Reuse, Sampled, Wanted};
use machine::MachineError;
use machine::qemu::QemuProblem;
use model::{
    CHECK_PLAN, KernelName, MarvinConfig, QueuedJob, ReservationRefusal, ServerSettings,
    TreeOrigin, Work,
};
use server::{ServerProblem, server_problem};
use service::{
    IdleReport, JobProcess, JobResult, ServerPower, Until, Worked, Worker, switch_idle_off,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use store::{InUse, Location, Store, StoreError, WorkerLock};
use subprocess::Shared;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{find_build, parallel_machines, prepare_tools, replicates};
use crate::options::{BatchName, NoisyOptions};
use crate::queue::{BatchTarget, Courier, Journal, sent_machines, worker_machines};
use crate::say;
use crate::select::{ChosenWorkloads, choose_named_workloads, find_machines};
use crate::servers::record_consoles;
use crate::session::{
    About, LastingState, LogLevel, LogOptions, Progress, Session, Stop, now, open_when_reached,
    start_log, write_event,
};

const WORK_EXAMPLES: &str = "Examples:
  marvin work
  marvin work --on testbox
  marvin work --via slurm --store postgres://lab@db.lab/marvin";

/// `marvin work`.
#[derive(Debug, Args)]
#[command(after_help = WORK_EXAMPLES)]
pub(crate) struct WorkArguments {
    /// Exit when the queue has no free job
    #[arg(long)]
    pub(crate) once: bool,

    /// Send jobs to this batch system of marvin.toml, and follow them, instead of running them on
    /// this host
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) via: Option<BatchName>,

    /// Run this one job of the queue as its worker; batch jobs use this
    #[arg(long, value_name = "NUMBER", hide = true, conflicts_with_all = ["via", "execute"])]
    pub(crate) take: Option<u64>,

    /// Take only jobs of these machines, separated by commas; default: exact and all of
    /// marvin.toml
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::machine())]
    pub(crate) on: Vec<String>,

    /// Run this one job and print one line with its result; a worker starts this for each job
    #[arg(long, alias = "carry-out", value_name = "NUMBER", hide = true)]
    pub(crate) execute: Option<u64>,

    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// The kernel config of jobs without a tree.
pub(crate) const USUAL_CONFIG: &str = "default";
/// Pause of a worker after its lab failed.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// How long it may take to stop; the job's lease ends by itself then.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Interval between deliveries of notices.
const COURIER: Duration = Duration::from_secs(5);

/// Interval between checks whether the worker has ended.
const COURIER_POLL: Duration = Duration::from_millis(100);

/// The lab that switches idle servers off.
struct Switching<'a> {
    location: &'a Location,
    home: &'a std::path::Path,
}

impl ServerPower for Switching<'_> {
    fn switch_off(&self, server: &ServerSettings) -> Result<(), String> {
        lab::switch_off(self.location.clone(), server, self.home).map_err(|error| error.to_string())
    }
}

pub(crate) fn work(session: &Session, command: &WorkArguments) -> anyhow::Result<Exit> {
    if let Some(number) = command.execute {
        return execute(session, number);
    }
    start_log(&command.log, !command.once, session.is_quiet());
    let home = session.home()?;
    let site = session.config()?;
    let location = session.store_location()?;
    if let Some(number) = command.take {
        return take(session, number, site, &location);
    }
    let mut machines = worker_machines(&site.settings, &command.on)?;
    if let Some(named) = command.via.filter(|_| command.on.is_empty()) {
        machines = sent_machines(&site.settings, named, machines);
    }
    let via = command
        .via
        .map(|via| BatchTarget::open(session, via, site, &machines))
        .transpose()?;
    let _lock = WorkerLock::acquire(home)?;
    let stop = match via {
        None => Stop::on(&[SIGTERM, SIGINT], STOP_LIMIT, Exit::Lab),
        // The queue and the batch system have all that the next dispatcher needs.
        Some(_) => Stop::on(&[SIGTERM], Duration::ZERO, Exit::Fine),
    };
    let store = match command.once {
        true => Store::open(&location)?,
        false => open_when_reached(&stop, || Ok(Store::open(&location)?))?,
    };
    let executor = job_process(session)?;
    let journal = Journal::new(session.is_quiet());
    let name = session.worker_name()?;
    // On a server, its clock decides about leases; without its answer the next question fails too.
    let clock = || store.time(now()).unwrap_or_else(|_| now());
    let worker = Worker {
        name: &name,
        machines: &machines,
        store: &store,
        settings: &site.settings,
        executor: &executor,
        clock: &clock,
        notify: &|event| journal.note_work(&event),
        is_stopping: &|| stop.is_asked(),
    };
    let run = |until: Until| match &via {
        None => worker.work(until),
        Some(via) => via.dispatch(until, &store, &clock, &journal),
    };
    drop(record_consoles(home, site.settings.servers.clone()));
    let ended = AtomicBool::new(false);
    let idle_trouble = Shared::new(LastingState::default());
    let lab = Switching {
        location: &location,
        home,
    };
    let worked = std::thread::scope(|scope| {
        let courier = scope.spawn(|| deliver_notices(&location, site, session, &ended));
        scope.spawn(|| {
            switch_idle_off(
                &location,
                &site.settings.servers,
                &machines,
                &lab,
                &ended,
                now,
                &|report| note_idle_servers(&idle_trouble, report),
            );
        });
        let worked = loop {
            match run(if command.once {
                Until::Drained
            } else {
                Until::Killed
            }) {
                // Without `--once`, continue after an error that may pass, such as a full disk.
                Err(error) if !command.once && !stop.is_asked() => {
                    journal.note_failure(&error.into());
                }
                worked => break worked,
            }
            stop.sleep(RETRY_AFTER);
        };
        ended.store(true, Ordering::Relaxed);
        drop(courier.join());
        worked
    })?;
    let text = format!("done {}, failed {}", worked.done, worked.failed);
    if command.once {
        session.answer(None)?.write(text + "\n")?;
    } else {
        say(&text);
    }
    Ok(match worked {
        _ if stop.is_asked() => stop.finish(session.is_quiet()),
        Worked { failed: 1.., .. } => Exit::Lab,
        Worked {
            kernels_failed: 1..,
            ..
        } => Exit::Subject,
        _ => Exit::Fine,
    })
}

fn note_idle_servers(trouble: &Shared<LastingState>, report: IdleReport) {
    let about = About::default();
    match report {
        IdleReport::Server { name, text } => {
            write_event(LogLevel::Info, About::machine(&name), &text);
        }
        IdleReport::Looked => trouble
            .lock()
            .end(about, "idle servers can be looked for again"),
        IdleReport::Failed(text) => trouble.lock().hold(LogLevel::Warn, about, &text),
    }
}

/// Runs one job of the queue, for a batch system that has given it this host. The dispatcher
/// delivers its notices.
fn take(
    session: &Session,
    number: u64,
    site: &ConfigFile,
    location: &Location,
) -> anyhow::Result<Exit> {
    // The batch system asks by the signal before it kills; the job is free for another host then.
    let stop = Stop::on(&[SIGTERM], STOP_LIMIT, Exit::Lab);
    let store = Store::open(location)?;
    let executor = job_process(session)?;
    let journal = Journal::default();
    let worker = Worker {
        name: &service::batch_worker_name(),
        machines: &[],
        store: &store,
        settings: &site.settings,
        executor: &executor,
        clock: &|| store.time(now()).unwrap_or_else(|_| now()),
        notify: &|event| journal.note_work(&event),
        is_stopping: &|| stop.is_asked(),
    };
    let (job, was_ours) = worker.work_one(number)?;
    if stop.is_asked() {
        return Ok(stop.finish(false));
    }
    if was_ours || job.state.is_over() {
        return Ok(Exit::Fine);
    }
    let about = About {
        job: Some(number),
        machine: Some(&job.new.work.machine),
    };
    let text = format!(
        "job {number} is {}: another worker has it, or it waits for its next attempt",
        job.state.name()
    );
    write_event(LogLevel::Warn, about, &text);
    Ok(Exit::Lab)
}

/// Returns what executes jobs: this program, in a process for each.
fn job_process(session: &Session) -> anyhow::Result<JobProcess> {
    let mut command = session.own_command()?;
    command.extend(["work".into(), "--execute".into()]);
    Ok(JobProcess {
        // The number of the job comes last.
        command,
        logs: session.home()?.join("jobs"),
    })
}

/// Delivers notices while jobs run, whatever fails, and once more at the end.
fn deliver_notices(location: &Location, site: &ConfigFile, session: &Session, ended: &AtomicBool) {
    let mut last = false;
    let mut courier = Courier::default();
    loop {
        courier.work(location, site, session);
        if last {
            return;
        }
        for _ in 0..COURIER.as_millis() / COURIER_POLL.as_millis() {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(COURIER_POLL);
        }
        last = ended.load(Ordering::Relaxed);
    }
}

/// Executes a job and prints the line that its worker reads.
fn execute(session: &Session, number: u64) -> anyhow::Result<Exit> {
    let job = session.open_store_read_only()?.queued_job(number)?;
    let came = match done(session, &job) {
        Ok(came) => came,
        Err(error) if let Some(why) = hinders(&error) => JobResult::Busy(why),
        Err(error) if crate::exit::is_subject(&error) => JobResult::NoKernel(format!("{error:#}")),
        Err(error) if is_of_machine(&error) => JobResult::MachineFailed(format!("{error:#}")),
        Err(error) => return Err(error),
    };
    let exit = match came {
        JobResult::Done => Exit::Fine,
        JobResult::Busy(_) | JobResult::MachineFailed(_) => Exit::Lab,
        JobResult::NoKernel(_) | JobResult::WorkloadsFailed(_) => Exit::Subject,
    };
    session.answer(None)?.write(came.line())?;
    Ok(exit)
}

/// Returns who uses data directory or machine, or what this host lacks, if that is why the job cannot
/// run now: it waits for a person, which is no attempt.
fn hinders(error: &anyhow::Error) -> Option<String> {
    match error.downcast_ref()? {
        LabError::Store(StoreError::InUse(InUse::Locked { .. })) => {
            Some("another marvin was measuring in this home".to_owned())
        }
        LabError::Reserved(why @ ReservationRefusal::Taken { .. }) => Some(why.to_string()),
        LabError::Machine(MachineError::Qemu(problem @ QemuProblem::Missing { .. })) => {
            Some(problem.to_string())
        }
        LabError::Machine(error) => match server_problem(error)? {
            why @ (ServerProblem::Held { .. } | ServerProblem::NotOurs(_)) => Some(why.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether the job's server failed. Of the exact machine such a failure is this host's.
fn is_of_machine(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<LabError>();
    error.is_some_and(|error| {
        matches!(
            error,
            LabError::Machine(MachineError::Backend(_)) | LabError::GaveUp { .. }
        )
    })
}

fn done(session: &Session, job: &QueuedJob) -> anyhow::Result<JobResult> {
    let home = session.home()?;
    let work = &job.new.work;
    let ChosenWorkloads {
        suite,
        workloads,
        tools,
    } = choose_named_workloads(session.tools(&[])?, &work.suite, &work.workloads)?;
    let sources = sources(session.config()?, job, home)?;
    // Where the queue is.
    let store = Some(session.store_location()?);
    let named = find_machines(
        session,
        &[&work.machine],
        &NoisyOptions {
            boots: None,
            cpus: None,
            memory: None,
        },
    )?;
    let wanted = named
        .into_iter()
        .next()
        .map_or(Wanted::Exact, |(_, wanted)| wanted);
    let lab = session.open_lab(LabOptions {
        store,
        wanted,
        tools,
        sources,
        ..LabOptions::default()
    })?;
    // Lines, for the job's log.
    let progress = Progress::Lines(subprocess::Shared::default());
    let build = find_build(&lab, &work.kernel, &progress)?;
    prepare_tools(&lab, &workloads, &progress)?;
    let plan = Plan {
        sides: vec![&build],
        suite: &suite,
        workloads,
        replicates: replicates(lab.machine(), work.seeds, work.seeds),
        machines: parallel_machines(None),
        // A check of a server has to boot it.
        reuse: if job.new.plan == CHECK_PLAN {
            Reuse::Nothing
        } else {
            Reuse::Stored
        },
        dumps: Dumps::Drop,
        sampled: Sampled::No,
    };
    let runs = lab
        .execute(&plan, &|event| progress.event(&event))?
        .concat();
    Ok(JobResult::of_runs(&build.version, &runs))
}

/// Returns how to build a job's kernel, and fetches its tree.
fn sources(
    site: &ConfigFile,
    job: &QueuedJob,
    home: &std::path::Path,
) -> anyhow::Result<SourceSettings> {
    let work = &job.new.work;
    if site.settings.work.is_of_named_trees {
        check_named(&site.settings, work)?;
    }
    let configuration = Configuration::named(&work.config)?;
    let shared = site.settings.builds.clone();
    let mut sources = SourceSettings {
        configuration,
        make: MakeOptions {
            cc: None,
            arguments: site.settings.make_args.clone(),
        },
        shared,
        ..SourceSettings::default()
    };
    let KernelName::Git(revision) = work.kernel.source() else {
        return Ok(sources);
    };
    let tree = site
        .settings
        .trees
        .iter()
        .find(|tree| tree.name == work.tree);
    match tree.map(|tree| &tree.origin) {
        Some(TreeOrigin::Git { place, .. }) => {
            sources.tree = Some(kernel::tree_with_tag(home, &work.tree, place, revision)?);
            Ok(sources)
        }
        _ => {
            let text = format!(
                "marvin.toml has no git [[tree]] `{}` any more, which {} needs",
                work.tree, work.kernel
            );
            Err(WrongInput(text).into())
        }
    }
}

/// Checks that all that a job reads and runs is what this host's marvin.toml or an archive has:
/// a writer of the queue could name any folder, and make runs what is in its Makefile.
fn check_named(settings: &MarvinConfig, work: &Work) -> Result<(), WrongInput> {
    let is_own_source = !matches!(
        work.kernel.source(),
        KernelName::Path(_) | KernelName::Tree(_) | KernelName::Patch { .. }
    );
    let is_own_build = match &work.kernel {
        KernelName::Changed { changes, .. } => {
            changes.cc.is_none() && changes.make_args.is_empty() && changes.config.is_empty()
        }
        _ => true,
    };
    let tree = settings.trees.iter().find(|tree| tree.name == work.tree);
    let is_own_config = work.config == tree.map_or(USUAL_CONFIG, |tree| &tree.config);
    if is_own_source && is_own_build && is_own_config {
        return Ok(());
    }
    Err(WrongInput(format!(
        "cannot measure {}: this worker takes no folder, file, config or compiler from the queue \
         (only_named_trees of [work] in its marvin.toml)\n\
         hint: queue a git: name of a [[tree]], or a package",
        work.kernel
    )))
}
