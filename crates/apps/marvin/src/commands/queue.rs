//! `marvin queue`: lists and changes queued jobs.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use kernel::KernelError;
use model::{Choice, KernelName, NewJob, QueuedJob, TreeOrigin, Work};
use store::{Listed, Queued, Store, WorkerLock};

use super::work::USUAL_CONFIG;
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::SeedOptions;
use crate::queue::{configured_batch, queue_machine};
use crate::select::{ChosenWorkloads, choose_named_workloads, find_tree, kernel_name_in};
use crate::session::{Output, Session, now};
use crate::views::{JobDocument, QueueDocument, QueueView};

/// `marvin queue`.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List waiting and running jobs in the order of execution
    List(QueueList),
    /// Queue or requeue a kernel
    Add(QueueAdd),
    /// Cancel a job; Marvin kills a running one
    Cancel {
        /// Job number
        #[arg(add = completion::job())]
        job: u64,
    },
    /// Move a job in the queue
    Move(QueueMove),
    /// Show one job in full and the reason for its position
    Why {
        /// Job number
        #[arg(add = completion::job())]
        job: u64,

        #[command(flatten)]
        output: Output,
    },
}

/// `marvin queue list`.
#[derive(Debug, Args)]
pub(crate) struct QueueList {
    /// Also list finished jobs, newest first
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: Output,
}

const ADD_EXAMPLES: &str = "Examples:
  marvin queue add deb:6.12 --workload fault,fork
  marvin queue add git:v6.12 --tree stable --priority 500
  marvin queue add deb:6.12 --on testbox";

/// Seeds of a job, or boots of a server, by default.
const SEEDS: u64 = 5;

/// `marvin queue add`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub(crate) struct QueueAdd {
    /// Kernel to measure
    #[arg(add = completion::kernel())]
    pub(crate) kernel: String,

    /// Tree of marvin.toml for a git: name
    #[arg(long, value_name = "NAME", add = completion::tree_name())]
    pub(crate) tree: Option<String>,

    /// Suite to measure
    #[arg(long, value_name = "SUITE", default_value = "micro", add = completion::suite())]
    pub(crate) suite: String,

    /// Measure only these workloads or groups, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Machine: exact, or one of marvin.toml
    #[arg(long, value_name = "NAME", default_value = "exact", add = completion::machine())]
    pub(crate) on: String,

    /// Priority: higher runs first; plans have 100 by default
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        allow_negative_numbers = true
    )]
    pub(crate) priority: i64,
}

/// `marvin queue move`.
#[derive(Debug, Args)]
pub(crate) struct QueueMove {
    /// Job number
    #[arg(add = completion::job())]
    pub(crate) job: u64,

    /// New position: first, last, or a priority
    pub(crate) place: String,
}

pub(crate) fn queue(session: &Session, command: &QueueCommand) -> anyhow::Result<Exit> {
    let answer = session.answer(None)?;
    let location = session.store_location()?;
    let text = match command {
        QueueCommand::List(list) => {
            let store = Store::open_read_only(&location)?;
            let all = store.queued_jobs(Listed::All)?;
            let now = store.time(now())?;
            let shown: Vec<QueuedJob> = all
                .iter()
                .filter(|job| list.all || !job.state.is_over())
                .cloned()
                .collect();
            let forecast = model::forecast(&all, now);
            let has_worker = session.has_worker()?;
            let view = QueueView {
                jobs: &shown,
                forecast: &forecast,
                now_unix: now,
                has_worker,
                health: &[],
            };
            answer.list(&QueueDocument::new(view), list.output)?;
            return Ok(Exit::Fine);
        }
        QueueCommand::Why { job, output } => {
            let store = Store::open_read_only(&location)?;
            let job = store.queued_job(*job)?;
            let all = store.queued_jobs(Listed::All)?;
            let now = store.time(now())?;
            let view = QueueView {
                jobs: &all,
                forecast: &model::forecast(&all, now),
                now_unix: now,
                has_worker: session.has_worker()?,
                health: &store.health()?,
            };
            let document = JobDocument::new(&job, &model::why(&job, &all, now), view)
                .with_batch(batch_line(session, &job)?);
            answer.list(&document, *output)?;
            return Ok(Exit::Fine);
        }
        QueueCommand::Add(add) => added(&new_job(session, add)?, &Store::open(&location)?)?,
        QueueCommand::Cancel { job } => {
            // A missing data directory has no jobs; do not create it for the answer.
            drop(Store::open_read_only(&location)?);
            let store = Store::open(&location)?;
            let now = store.time(now())?;
            describe_job(&store.change_job(*job, |job| job.cancel(now))?)
        }
        QueueCommand::Move(to) => {
            drop(Store::open_read_only(&location)?);
            let store = Store::open(&location)?;
            let home = session.home()?;
            // Without a worker here, the jobs that this machine's worker held wait: it was killed.
            if let Ok(_lock) = WorkerLock::acquire(home) {
                store.take_back_jobs(Some(&session.worker_name()?), store.time(now())?)?;
            }
            move_job(&store, to)?
        }
    };
    answer.write(text)?;
    Ok(Exit::Fine)
}

/// Says what the batch system of marvin.toml does with a job; `None` if it knows no such job.
fn batch_line(session: &Session, job: &QueuedJob) -> anyhow::Result<Option<String>> {
    let Some(system) = configured_batch(session)?.filter(|_| !job.state.is_over()) else {
        return Ok(None);
    };
    let jobs = match system.list() {
        Ok(all) => service::batch_jobs_of(job, &all),
        Err(error) => return Ok(Some(error.to_string())),
    };
    let name = system.name();
    Ok(jobs.last().map(|one| match one.about.as_str() {
        "" => format!("{name} job {} {}", one.id, one.state.name()),
        about => format!("{name} job {} {}: {about}", one.id, one.state.name()),
    }))
}

fn describe_job(job: &QueuedJob) -> String {
    format!(
        "job {} is {}: {}\n",
        job.number,
        job.state.name(),
        job.new.work
    )
}

fn added(new: &NewJob, store: &Store) -> anyhow::Result<String> {
    let now = store.time(now())?;
    let job = match store.queue_job(new, now)? {
        Queued::New(number) => store.queued_job(number)?,
        Queued::Known(known) if known.state.is_over() => {
            store.change_job(known.number, |job| job.again(new.clone(), now))?
        }
        Queued::Known(known) => {
            return Ok(format!(
                "{} it was queued already\n",
                describe_job(&known).trim_end()
            ));
        }
    };
    Ok(describe_job(&job))
}

fn new_job(session: &Session, add: &QueueAdd) -> anyhow::Result<NewJob> {
    let ChosenWorkloads {
        suite,
        workloads,
        tools,
    } = choose_named_workloads(session.tools(&[])?, &add.suite, &add.workload)?;
    let settings = &session.config()?.settings;
    let kernel = absolute(
        session,
        kernel_name_in(&add.kernel, add.tree.as_deref().map(Path::new))?,
    )?;
    let tree = match &add.tree {
        Some(name) => Some(find_tree(&settings.trees, name).map_err(WrongInput)?),
        None => None,
    };
    let is_git = matches!(kernel, KernelName::Git(_));
    if is_git && !tree.is_some_and(|tree| matches!(tree.origin, TreeOrigin::Git { .. })) {
        let text = format!("{kernel} needs a git tree of marvin.toml: name it with --tree NAME");
        return Err(WrongInput(text).into());
    }
    let work = Work {
        kernel,
        tree: tree.map(|tree| tree.name.clone()).unwrap_or_default(),
        config: tree.map_or(USUAL_CONFIG, |tree| &tree.config).to_owned(),
        suite: suite.name.to_owned(),
        workloads: Choice { suite, workloads }.terms(&tools.rows()),
        seeds: add.seeds.count(SEEDS),
        machine: queue_machine(settings, &add.on)?,
    };
    Ok(NewJob {
        work,
        plan: String::new(),
        priority: add.priority,
        rank: 0,
        attempts_max: settings.work.attempts_max,
        deadline_s: settings.work.deadline_s,
    })
}

/// Makes the paths in a name absolute, so that a worker finds them from any directory. Refuses
/// missing files and packages that the distribution's archive has not; without a network, the worker reports a
/// missing package.
fn absolute(session: &Session, name: KernelName) -> anyhow::Result<KernelName> {
    if let KernelName::Package(query) = &name {
        let archives = session.archives()?;
        let offers = kernel::offers(&archives, query);
        session.say_notices(&archives);
        if let Err(error @ KernelError::Unknown { .. }) = offers {
            return Err(error).with_context(|| format!("cannot queue {name}"));
        }
    }
    Ok(match name {
        KernelName::Path(path) => KernelName::Path(absolute_path(&path)?),
        KernelName::Tree(path) => KernelName::Tree(absolute_path(&path)?),
        KernelName::Changed {
            kernel,
            mut changes,
        } => {
            for part in &mut changes.config {
                if Path::new(part).is_file() {
                    *part = absolute_path(Path::new(part))?.display().to_string();
                }
            }
            KernelName::Changed {
                kernel: Box::new(absolute(session, *kernel)?),
                changes,
            }
        }
        other => other,
    })
}

fn absolute_path(path: &Path) -> anyhow::Result<PathBuf> {
    if let Err(error) = std::fs::metadata(path) {
        let text = format!(
            "cannot queue {}: {error}; name an existing file or directory",
            path.display()
        );
        return Err(WrongInput(text).into());
    }
    std::path::absolute(path).with_context(|| format!("{} has no absolute path", path.display()))
}

fn move_job(store: &Store, to: &QueueMove) -> anyhow::Result<String> {
    let waiting = store.queued_jobs(Listed::Open)?;
    let now = store.time(now())?;
    let others = waiting
        .iter()
        .filter(|job| job.number != to.job)
        .map(|job| job.new.priority);
    let priority = match to.place.as_str() {
        "first" => others.max().map_or(0, |most| most.saturating_add(1)),
        "last" => others.min().map_or(0, |least| least.saturating_sub(1)),
        number => number.parse().map_err(|_| {
            WrongInput(format!("`{number}` is not a position in the queue: use first, last, or a priority such as 200"))
        })?,
    };
    let job = store.change_job(to.job, |job| {
        job.reprioritise(priority)?;
        if to.place == "first" {
            job.hurry(now);
        }
        Ok(())
    })?;
    Ok(format!(
        "job {} has priority {priority} now: {}\n",
        job.number, job.new.work
    ))
}
