//! `marvin runs`: lists stored runs.

use clap::Args;
use model::{Run, UnixTime};
use store::RunSummary;

use crate::exit::Exit;
use crate::options::whole;
use crate::session::{Output, Session};
use crate::views::{ListedRun, RunsDocument};

/// `marvin runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArguments {
    /// List at most N runs
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = whole::<u32>(1, u64::from(u32::MAX)))]
    pub(crate) limit: u32,

    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) fn runs(session: &Session, command: &RunsArguments) -> anyhow::Result<Exit> {
    let answer = session.answer(None)?;
    let store = session.open_store_read_only()?;
    let summaries = store.runs(usize::try_from(command.limit).unwrap_or(usize::MAX))?;
    let runs = summaries.into_iter().map(listed_run).collect();
    answer.list(&RunsDocument::new(runs), command.output)?;
    Ok(Exit::Fine)
}

fn listed_run(run: RunSummary) -> ListedRun {
    ListedRun {
        id: run.id,
        kernel: run.kernel,
        version: run.version,
        build: run.build,
        machine: run.machine,
        suite: run.suite,
        seed: run.seed,
        started_unix: Run::known_start(run.started_unix).map(UnixTime::seconds),
        completed: run.completed,
        unsupported: run.unsupported,
        failed: run.failed,
    }
}
