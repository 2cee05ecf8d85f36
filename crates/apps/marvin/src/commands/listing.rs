//! `marvin runs` and `marvin workloads`: lists of runs and workloads.

use std::sync::Arc;

use model::{Run, SUITES};
use store::{RunSummary, Store};

use super::measure::suite;
use crate::answer::Answer;
use crate::cli::{Arguments, Runs, Workloads};
use crate::exit::Exit;
use lists::{ListedRun, RunsDocument, WorkloadsDocument};

pub(crate) fn runs(arguments: &Arguments, command: &Runs) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let store = Store::open_read_only(crate::home::store(arguments)?)?;
    let summaries = store.runs(usize::try_from(command.limit).unwrap_or(usize::MAX))?;
    let runs = summaries.into_iter().map(listed_run).collect();
    answer.list(&RunsDocument::new(runs), command.output, arguments)?;
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
        started_unix: Run::known_start(run.started_unix),
        completed: run.completed,
        unsupported: run.unsupported,
        failed: run.failed,
    }
}

pub(crate) fn workloads(arguments: &Arguments, command: &Workloads) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let suites = match &command.suite {
        Some(name) => vec![Arc::clone(suite(name)?)],
        None => SUITES.to_vec(),
    };
    answer.list(&WorkloadsDocument::new(&suites), command.output, arguments)?;
    Ok(Exit::Fine)
}
