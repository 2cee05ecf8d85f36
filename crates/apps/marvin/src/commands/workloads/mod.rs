//! `marvin workloads`: lists workloads.

mod sensitivity;

use std::sync::Arc;

use clap::Args;
use model::SUITES;

use crate::completion;
use crate::exit::Exit;
use crate::select::find_suite;
use crate::session::{Output, Session};
use crate::views::WorkloadsDocument;

/// `marvin workloads`.
#[derive(Debug, Args)]
pub(crate) struct WorkloadsArguments {
    /// List only this suite
    #[arg(long, value_name = "SUITE", add = completion::suite())]
    pub(crate) suite: Option<String>,

    /// Measure the suite contention on this kernel with other costs of scheduling, and list how
    /// much that changes
    #[arg(long, value_name = "KERNEL", add = completion::kernel())]
    pub(crate) sensitivity: Option<String>,

    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) fn workloads(session: &Session, command: &WorkloadsArguments) -> anyhow::Result<Exit> {
    if let Some(kernel) = &command.sensitivity {
        return sensitivity::sensitivity(session, command, kernel);
    }
    let answer = session.answer(None)?;
    let suites = match &command.suite {
        Some(name) => vec![Arc::clone(find_suite(name)?)],
        None => SUITES.to_vec(),
    };
    answer.list(&WorkloadsDocument::new(&suites), command.output)?;
    Ok(Exit::Fine)
}
