//! `marvin runs` and `marvin workloads`: lists of runs and workloads.

use std::sync::Arc;

use model::SUITES;
use report::render::Listed;
use store::Store;

use super::measure::suite;
use crate::answer::Answer;
use crate::cli::{Arguments, Runs, Workloads};
use crate::exit::Exit;

pub(crate) fn runs(arguments: &Arguments, command: &Runs) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let store = Store::open_read_only(crate::home::store(arguments)?)?;
    let summaries = store.runs(usize::try_from(command.limit).unwrap_or(usize::MAX))?;
    let runs = summaries.iter().map(|summary| store.run(&summary.id)).collect::<Result<Vec<_>, _>>()?;
    let listed: Vec<Listed<'_>> =
        runs.iter().zip(&summaries).map(|(run, summary)| Listed { run, version: &summary.version }).collect();
    let text = report::render::runs(&listed, &answer.styles(arguments.color));
    answer.write(&text)?;
    Ok(Exit::Fine)
}

pub(crate) fn workloads(arguments: &Arguments, command: &Workloads) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let suites = match &command.suite {
        Some(name) => vec![Arc::clone(suite(name)?)],
        None => SUITES.to_vec(),
    };
    let text = report::render::workloads(&suites, &answer.styles(arguments.color));
    answer.write(&text)?;
    Ok(Exit::Fine)
}
