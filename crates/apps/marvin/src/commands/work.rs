//! `marvin work`: the worker of a machine, and the process that executes one job.

use config::ConfigFile;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use kernel::{Configuration, SourceSettings};
use lab::Wanted;
use lab::{Dumps, LabError, LabSettings, Plan, Reuse, Sampled};
use machine::MachineError;
use model::{CHECK_PLAN, KernelName, QueuedJob, ReservationRefusal, ServerSettings, TreeOrigin};
use server::{ServerProblem, server_problem};
use service::{
    JobProcess, JobResult, ServerPower, ServiceError, Until, WorkEvent, Worked, Worker,
    switch_idle_off,
};
use store::{Location, Store, StoreError, WorkerLock};

use super::compare::now;
use super::config::site;
use super::console::record_consoles;
use super::measure::{Chosen, choose, machines_of, machines_of_names, replicates};
use super::queue::worker_machines;
use super::tools::known_tools;
use super::via::{self, Via};
use super::watch::deliver;
use crate::answer::Answer;
use crate::cli::{Arguments, Noisy, Work};
use crate::exit::{Exit, WrongInput};
use crate::home::{home, open_lab, store, worker_name};
use crate::progress::Progress;
use crate::say;

/// Pause of a worker after its lab failed.
const AGAIN: Duration = Duration::from_secs(60);
/// Interval between deliveries of notices.
const COURIER: Duration = Duration::from_secs(5);
/// Interval between checks whether the worker has ended.
const COURIER_LOOK: Duration = Duration::from_millis(100);

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

pub(crate) fn work(arguments: &Arguments, command: &Work) -> anyhow::Result<Exit> {
    if let Some(number) = command.execute {
        return execute(arguments, number);
    }
    let home = home(arguments.home.as_deref())?;
    let site = site(arguments)?;
    let location = store(arguments)?;
    if let Some(number) = command.take {
        return take(arguments, number, &site, &location);
    }
    let mut machines = worker_machines(&site.settings, &command.on)?;
    if let Some(named) = command.via.filter(|_| command.on.is_empty()) {
        machines = via::sent_machines(&site.settings, named, machines);
    }
    let via = command
        .via
        .map(|via| Via::open(arguments, via, &site, &machines))
        .transpose()?;
    let _lock = WorkerLock::acquire(&home)?;
    let store = Store::open(&location)?;
    let executor = job_process(arguments, &home)?;
    let notify = |event: WorkEvent| {
        if !arguments.quiet {
            say(&service::format_work_event(&event));
        }
    };
    let name = worker_name(&home, &location);
    // On a server, its clock decides about leases; without its answer the next question fails too.
    let clock = || store.time(now()).unwrap_or_else(|_| now());
    let worker = Worker {
        name: &name,
        machines: &machines,
        store: &store,
        settings: &site.settings,
        executor: &executor,
        clock: &clock,
        notify: &notify,
    };
    let run = |until: Until| match &via {
        None => worker.work(until),
        Some(via) => via.dispatch(until, &store, &clock, arguments.quiet),
    };
    drop(record_consoles(&home, site.settings.servers.clone()));
    let (ended, lab) = (
        AtomicBool::new(false),
        Switching {
            location: &location,
            home: &home,
        },
    );
    let worked = std::thread::scope(|scope| {
        let courier = scope.spawn(|| courier(&location, &site, arguments, &ended));
        scope.spawn(|| {
            switch_idle_off(
                &location,
                &site.settings.servers,
                &machines,
                &lab,
                &ended,
                now,
                say,
            );
        });
        let worked = loop {
            match run(if command.once {
                Until::Drained
            } else {
                Until::Killed
            }) {
                // Without `--once`, continue after an error that may pass, such as a full disk.
                Err(error) if !command.once => drop(crate::exit::explain(&error.into())),
                worked => break worked,
            }
            std::thread::sleep(AGAIN);
        };
        ended.store(true, Ordering::Relaxed);
        drop(courier.join());
        worked
    })?;
    Answer::open(None)?.write(format!("done {}, failed {}\n", worked.done, worked.failed))?;
    Ok(match worked {
        Worked { failed: 1.., .. } => Exit::Lab,
        Worked {
            kernels_failed: 1..,
            ..
        } => Exit::Subject,
        _ => Exit::Fine,
    })
}

/// Runs one job of the queue, for a batch system that has given it this host. The dispatcher
/// delivers its notices.
fn take(
    arguments: &Arguments,
    number: u64,
    site: &ConfigFile,
    location: &Location,
) -> anyhow::Result<Exit> {
    let home = home(arguments.home.as_deref())?;
    let store = Store::open(location)?;
    let clock = || store.time(now()).unwrap_or_else(|_| now());
    let executor = job_process(arguments, &home)?;
    let worker = Worker {
        name: &service::batch_worker_name(),
        machines: &[],
        store: &store,
        settings: &site.settings,
        executor: &executor,
        clock: &clock,
        notify: &|event| say(&service::format_work_event(&event)),
    };
    let (job, was_ours) = worker.work_one(number)?;
    if was_ours || job.state.is_over() {
        return Ok(Exit::Fine);
    }
    say(&format!(
        "job {number} is {}: another worker has it, or it waits for its next attempt",
        job.state.word()
    ));
    Ok(Exit::Lab)
}

/// Returns what executes jobs: this program, in a process for each.
fn job_process(arguments: &Arguments, home: &std::path::Path) -> anyhow::Result<JobProcess> {
    Ok(JobProcess {
        command: command_of_job(arguments, home)?,
        logs: home.join("jobs"),
    })
}

/// Returns the command that executes a job, without the job's number.
fn command_of_job(
    arguments: &Arguments,
    home: &std::path::Path,
) -> anyhow::Result<Vec<std::ffi::OsString>> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut words = vec![program.into_os_string(), "--home".into(), home.into()];
    if let Some(file) = &arguments.config_file {
        words.extend(["--config-file".into(), file.into()]);
    }
    if arguments.no_sandbox {
        words.push("--no-sandbox".into());
    }
    words.extend(store_words(arguments));
    words.extend(["work".into(), "--execute".into()]);
    Ok(words)
}

/// Returns the words that name the store to another Marvin; none if it is in the environment, which
/// that one gets and which `ps` does not show.
pub(super) fn store_words(arguments: &Arguments) -> Vec<std::ffi::OsString> {
    let inherited = std::env::var("MARVIN_STORE").ok();
    let given = arguments
        .store
        .as_deref()
        .filter(|address| inherited.as_deref() != Some(address));
    given.map_or_else(Vec::new, |address| vec!["--store".into(), address.into()])
}

/// Delivers notices while jobs run, whatever fails, and once more at the end.
fn courier(location: &Location, site: &ConfigFile, arguments: &Arguments, ended: &AtomicBool) {
    let mut last = false;
    loop {
        let delivered = Store::open(location)
            .map_err(ServiceError::from)
            .and_then(|store| deliver(&store, site, arguments));
        if let Err(error) = delivered {
            say(&format!("cannot deliver notices now: {error}"));
        }
        if last {
            return;
        }
        for _ in 0..COURIER.as_millis() / COURIER_LOOK.as_millis() {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(COURIER_LOOK);
        }
        last = ended.load(Ordering::Relaxed);
    }
}

/// Executes a job and prints the line that its worker reads.
fn execute(arguments: &Arguments, number: u64) -> anyhow::Result<Exit> {
    let job = Store::open_read_only(store(arguments)?)?.queued_job(number)?;
    let came = match done(arguments, &job) {
        Ok(came) => came,
        Err(error) if let Some(who) = in_use(&error) => JobResult::Busy(who),
        Err(error) if crate::exit::is_subject(&error) => JobResult::NoKernel(format!("{error:#}")),
        Err(error) if is_of_machine(&error) => JobResult::MachineFailed(format!("{error:#}")),
        Err(error) => return Err(error),
    };
    let exit = match came {
        JobResult::Done => Exit::Fine,
        JobResult::Busy(_) | JobResult::MachineFailed(_) => Exit::Lab,
        JobResult::NoKernel(_) | JobResult::WorkloadsFailed(_) => Exit::Subject,
    };
    Answer::open(None)?.write(came.line())?;
    Ok(exit)
}

/// Returns who uses data directory or machine, if that is why the job cannot run now.
fn in_use(error: &anyhow::Error) -> Option<String> {
    match error.downcast_ref()? {
        LabError::Store(StoreError::Locked { .. }) => {
            Some("another marvin was measuring in this home".to_owned())
        }
        LabError::Reserved(why @ ReservationRefusal::Taken { .. }) => Some(why.to_string()),
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

fn done(arguments: &Arguments, job: &QueuedJob) -> anyhow::Result<JobResult> {
    let home = home(arguments.home.as_deref())?;
    let work = &job.new.work;
    let Chosen {
        suite,
        workloads,
        tools,
    } = choose(known_tools(arguments, &[])?, &work.suite, &work.workloads)?;
    let sources = sources(&site(arguments)?, job, &home)?;
    // Where the queue is.
    let store = Some(store(arguments)?);
    let named = machines_of_names(
        arguments,
        &[&work.machine],
        &Noisy {
            boots: None,
            cpus: None,
            memory: None,
        },
    )?;
    let wanted = named
        .into_iter()
        .next()
        .map_or(Wanted::Exact, |(_, wanted)| wanted);
    let lab = open_lab(
        arguments,
        LabSettings {
            store,
            wanted,
            tools,
            sources,
            ..LabSettings::default()
        },
    )?;
    // Lines, for the job's log.
    let progress = Progress::Lines(std::sync::Mutex::default());
    let build = super::measure::build(&lab, &work.kernel, &progress)?;
    super::measure::prepare(&lab, &workloads, &progress)?;
    let plan = Plan {
        sides: vec![&build],
        suite: &suite,
        workloads,
        replicates: replicates(lab.machine(), work.seeds, work.seeds),
        machines: machines_of(None),
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
    let configuration = Configuration::named(&work.config)?;
    let shared = site.settings.builds.clone();
    let mut sources = SourceSettings {
        configuration,
        shared,
        ..SourceSettings::default()
    };
    let KernelName::Git(revision) = &work.kernel else {
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
