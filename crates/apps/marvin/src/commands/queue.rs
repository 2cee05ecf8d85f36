//! `marvin queue`: lists and changes queued jobs.

use std::path::Path;

use anyhow::Context;
use kernel::KernelError;
use model::{Choice, KernelName, LabSettings, NewJob, QueuedJob, TreeOrigin, USUAL_MACHINE, Work};
use store::{Listed, Queued, Store, WorkerLock};

use super::compare::now;
use super::config::site;
use super::measure::{Chosen, choose, did_you_mean, kernel_name};
use super::tools::known_tools;
use super::tree::find_tree;
use crate::answer::Answer;
use crate::cli::{Arguments, Queue, QueueAdd, QueueMove};
use crate::exit::{Exit, WrongInput};
use crate::home::{has_worker, home, store, worker_name};
use lists::{JobDocument, QueueDocument, QueueView};

pub(crate) fn queue(arguments: &Arguments, command: &Queue) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let location = store(arguments)?;
    let text = match command {
        Queue::List(list) => {
            let store = Store::open_read_only(&location)?;
            let (all, now) = (store.queued_jobs(Listed::All)?, store.time(now())?);
            let shown: Vec<QueuedJob> = all
                .iter()
                .filter(|job| list.all || !job.state.is_over())
                .cloned()
                .collect();
            let forecast = model::forecast(&all, now);
            let has_worker = has_worker(arguments)?;
            let view = QueueView {
                jobs: &shown,
                forecast: &forecast,
                now_unix: now,
                has_worker,
                health: &[],
            };
            answer.list(&QueueDocument::new(view), list.output, arguments)?;
            return Ok(Exit::Fine);
        }
        Queue::Why { job, output } => {
            let store = Store::open_read_only(&location)?;
            let (job, all, now) = (
                store.queued_job(*job)?,
                store.queued_jobs(Listed::All)?,
                store.time(now())?,
            );
            let view = QueueView {
                jobs: &all,
                forecast: &model::forecast(&all, now),
                now_unix: now,
                has_worker: has_worker(arguments)?,
                health: &store.health()?,
            };
            let document = JobDocument::new(&job, &model::why(&job, &all, now), view)
                .with_batch(batch_line(arguments, &job)?);
            answer.list(&document, *output, arguments)?;
            return Ok(Exit::Fine);
        }
        Queue::Add(add) => added(&new_job(arguments, add)?, &Store::open(&location)?)?,
        Queue::Cancel { job } => {
            // A missing data directory has no jobs; do not create it for the answer.
            drop(Store::open_read_only(&location)?);
            let store = Store::open(&location)?;
            let now = store.time(now())?;
            describe_job(&store.change_job(*job, |job| job.cancel(now))?)
        }
        Queue::Move(to) => {
            drop(Store::open_read_only(&location)?);
            let (store, home) = (Store::open(&location)?, home(arguments.home.as_deref())?);
            // Without a worker here, the jobs that this machine's worker held wait: it was killed.
            if let Ok(_lock) = WorkerLock::acquire(&home) {
                store.take_back_jobs(Some(&worker_name(&home, &location)), store.time(now())?)?;
            }
            move_job(&store, to)?
        }
    };
    answer.write(text)?;
    Ok(Exit::Fine)
}

/// Says what the batch system of marvin.toml does with a job; `None` if it knows no such job.
fn batch_line(arguments: &Arguments, job: &QueuedJob) -> anyhow::Result<Option<String>> {
    let Some(system) = super::via::configured(arguments)?.filter(|_| !job.state.is_over()) else {
        return Ok(None);
    };
    let jobs = match system.list() {
        Ok(all) => service::batch_jobs_of(job, &all),
        Err(error) => return Ok(Some(error.to_string())),
    };
    let name = system.name();
    Ok(jobs.last().map(|one| match one.about.as_str() {
        "" => format!("{name} job {} {}", one.id, one.state.word()),
        about => format!("{name} job {} {}: {about}", one.id, one.state.word()),
    }))
}

fn describe_job(job: &QueuedJob) -> String {
    format!(
        "job {} is {}: {}\n",
        job.number,
        job.state.word(),
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

fn new_job(arguments: &Arguments, add: &QueueAdd) -> anyhow::Result<NewJob> {
    let Chosen {
        suite,
        workloads,
        tools,
    } = choose(known_tools(arguments, &[])?, &add.suite, &add.workload)?;
    let settings = site(arguments)?.settings;
    let kernel = absolute(kernel_name(&add.kernel)?)?;
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
        config: tree.map_or_else(|| "micro".to_owned(), |tree| tree.config.clone()),
        suite: suite.name.to_owned(),
        workloads: Choice { suite, workloads }.words(&tools.rows()),
        seeds: add.seeds,
        machine: queue_machine(&settings, &add.on)?,
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

/// Checks the name of a machine that has jobs in the queue.
fn queue_machine(settings: &LabSettings, name: &str) -> anyhow::Result<String> {
    let known = queue_machines(settings);
    if known.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let guess = did_you_mean(known.iter().map(String::as_str), name);
    let text = format!(
        "no machine `{name}`{guess}: the queue has jobs of exact, and of each [[machine]] in marvin.toml"
    );
    Err(WrongInput(text).into())
}

/// Returns the machines that have jobs in the queue.
fn queue_machines(settings: &LabSettings) -> Vec<String> {
    let servers = settings.servers.iter().map(|server| server.name.clone());
    [USUAL_MACHINE.to_owned()]
        .into_iter()
        .chain(servers)
        .collect()
}

/// Returns the machines whose jobs a worker takes: the named ones, or all.
pub(super) fn worker_machines(
    settings: &LabSettings,
    named: &[String],
) -> anyhow::Result<Vec<String>> {
    if named.is_empty() {
        return Ok(queue_machines(settings));
    }
    named
        .iter()
        .map(|name| queue_machine(settings, name))
        .collect()
}

/// Makes the paths in a name absolute, so that a worker finds them from any directory. Refuses
/// missing files and packages that apt does not offer; without apt, the worker reports a missing
/// package.
fn absolute(name: KernelName) -> anyhow::Result<KernelName> {
    if let KernelName::Deb(query) = &name
        && let Err(error) = kernel::offers(query)
        && matches!(error, KernelError::Unknown { .. })
    {
        return Err(error).with_context(|| format!("cannot queue {name}"));
    }
    let of = |path: &Path| {
        if let Err(error) = std::fs::metadata(path) {
            let text = format!(
                "cannot queue {}: {error}; name an existing file or directory",
                path.display()
            );
            return Err(WrongInput(text).into());
        }
        std::path::absolute(path)
            .with_context(|| format!("{} has no absolute path", path.display()))
    };
    Ok(match name {
        KernelName::Path(path) => KernelName::Path(of(&path)?),
        KernelName::Tree(path) => KernelName::Tree(of(&path)?),
        other => other,
    })
}

fn move_job(store: &Store, to: &QueueMove) -> anyhow::Result<String> {
    let (waiting, now) = (store.queued_jobs(Listed::Open)?, store.time(now())?);
    let others = || {
        waiting
            .iter()
            .filter(|job| job.number != to.job)
            .map(|job| job.new.priority)
    };
    let priority = match to.place.as_str() {
        "first" => others().max().map_or(0, |most| most.saturating_add(1)),
        "last" => others().min().map_or(0, |least| least.saturating_sub(1)),
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
