//! `marvin bisect --via`: hosts of the batch system build and measure the commits that the search
//! may ask for next.

use std::cell::RefCell;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, absolute};

use kernel::Sources;
use lab::bisection::short;
use lab::{Elsewhere, Nodes, Pace};
use model::{Steadiness, Workload};
use service::{AheadJobs, DirectJob};

use super::BisectArguments;
use crate::exit::WrongInput;
use crate::queue::BatchTarget;
use crate::session::{Progress, span};

/// Commits on other hosts at once: with the one here, all that a bisection may ask for in three
/// steps.
const NODES: usize = 6;

/// Returns how many hosts are used at once.
pub(super) fn nodes(command: &BisectArguments, via: &BatchTarget<'_>) -> Nodes {
    let asked_for = command.nodes.map(usize::from);
    Nodes {
        count: asked_for.unwrap_or_else(|| NODES.min(via.jobs_max())),
        is_asked_for: asked_for.is_some(),
    }
}

/// The hosts of the batch system.
pub(super) struct Ahead<'a> {
    jobs: AheadJobs<'a>,
    nodes: Nodes,
    sources: &'a Sources,
    measuring_s: f64,
    /// The words that measure a commit, after the commit.
    arguments: Vec<OsString>,
    progress: &'a Progress,
    decision: RefCell<String>,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(
        command: &BisectArguments,
        via: &'a BatchTarget<'a>,
        sources: &'a Sources,
        measuring_s: f64,
        progress: &'a Progress,
    ) -> anyhow::Result<Self> {
        let config = super::configuration(command, sources);
        let config = if Path::new(&config).is_file() {
            absolute(&config)?.into()
        } else {
            OsString::from(config)
        };
        let values: [(&str, OsString); 5] = [
            ("--tree", absolute(sources.repository().folder())?.into()),
            ("--config", config),
            ("--suite", (&command.suite).into()),
            (
                "--workload",
                command.workload.clone().unwrap_or_default().into(),
            ),
            ("--seeds", command.seed_count().to_string().into()),
        ];
        let arguments = values
            .into_iter()
            .flat_map(|(name, value)| [name.into(), value])
            .chain(
                command
                    .sources
                    .make_options()
                    .into_iter()
                    .map(OsString::from),
            )
            .collect::<Vec<OsString>>();
        let mut hasher = DefaultHasher::new();
        (&arguments, &command.good, &command.bad, &via.command).hash(&mut hasher);
        let jobs = AheadJobs::new(via.direct(format!("marvin-bisect-{:016x}-", hasher.finish())));
        let nodes = nodes(command, via);
        let decision = RefCell::default();
        Ok(Self {
            jobs,
            nodes,
            sources,
            measuring_s,
            arguments,
            progress,
            decision,
        })
    }

    fn job(&self, commit: &str) -> DirectJob {
        let first = [
            "--quiet".into(),
            "run".into(),
            format!("git:{commit}").into(),
        ];
        let arguments = first
            .into_iter()
            .chain(self.arguments.iter().cloned())
            .collect();
        DirectJob {
            about: format!("bisect, commit {}", short(commit)),
            arguments,
        }
    }
}

impl Elsewhere for Ahead<'_> {
    fn hosts(&self, commits: usize) -> usize {
        let pace = Pace {
            builds: self.sources.seconds(),
            measuring_s: self.measuring_s,
        };
        let (is_worth_it, text) = self.nodes.decide(pace, commits, &span);
        if self.decision.replace(text.clone()) != text {
            self.progress.say(&text);
        }
        if is_worth_it { self.nodes.count } else { 0 }
    }

    fn measure(&self, commits: &[String]) {
        let jobs: Vec<DirectJob> = commits.iter().map(|commit| self.job(commit)).collect();
        let (current, wanted) = jobs
            .split_first()
            .map_or((None, &jobs[..]), |(first, rest)| (Some(first), rest));
        match self.jobs.want(current, wanted) {
            Ok(sent) => sent
                .iter()
                .for_each(|(job, id)| self.progress.say(&format!("{}: batch job {id}", job.about))),
            Err(error) => self
                .progress
                .say(&format!("{error}; this host goes on alone")),
        }
    }

    fn wait(&self, commit: &str) {
        if let Err(error) = self.jobs.wait(&self.job(commit)) {
            self.progress
                .say(&format!("{error}; this host measures {}", short(commit)));
        }
    }
}

/// Refuses a workload whose results another host does not repeat.
pub(super) fn check(
    command: &BisectArguments,
    workload: &Workload,
    machine: model::Capabilities,
) -> anyhow::Result<()> {
    if command.via.is_none() || (machine.deterministic && workload.steadiness == Steadiness::Steady)
    {
        return Ok(());
    }
    let text = format!(
        "--via needs a workload that gives the same numbers on each host, and {} does not",
        workload.name
    );
    Err(WrongInput(text).into())
}
