//! `marvin workloads`: lists workloads.

mod sensitivity;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use model::SUITES;

use crate::completion;
use crate::exit::Exit;
use crate::select::{find_suite, find_tree_folder, open_tree};
use crate::session::{Output, Session};
use crate::views::{BenchmarksDocument, WorkloadsDocument};

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

    /// List the benchmarks of this kernel tree instead, usable as --workload tree:NAME: KUnit,
    /// modules that measure, perf bench, selftests (docs/tree-benchmarks.md)
    #[arg(long, value_name = "TREE", conflicts_with_all = ["suite", "sensitivity"])]
    pub(crate) tree: Option<PathBuf>,

    /// Revision of that tree [default: HEAD, or the directory as it stands if it has no git]
    #[arg(long, value_name = "REVISION", requires = "tree")]
    pub(crate) revision: Option<String>,

    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) fn workloads(session: &Session, command: &WorkloadsArguments) -> anyhow::Result<Exit> {
    if let Some(kernel) = &command.sensitivity {
        return sensitivity::sensitivity(session, command, kernel);
    }
    let answer = session.answer(None)?;
    if let Some(tree) = &command.tree {
        let folder = find_tree_folder(session, tree)?;
        let source = open_tree(&folder, command.revision.as_deref())?;
        let found = kernel::find_benchmarks(&source)?;
        let (_, commit) = source.place();
        let document = BenchmarksDocument::new(tree.display().to_string(), commit, found);
        answer.list(&document, command.output)?;
        return Ok(Exit::Fine);
    }
    let suites = match &command.suite {
        Some(name) => vec![Arc::clone(find_suite(name)?)],
        None => SUITES.to_vec(),
    };
    answer.list(&WorkloadsDocument::new(&suites), command.output)?;
    Ok(Exit::Fine)
}
