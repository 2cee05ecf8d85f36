//! `marvin tools`: lists external tools.

use std::path::PathBuf;

use clap::Args;

use crate::exit::Exit;
use crate::session::{Output, Session};
use crate::views::ToolsDocument;

/// `marvin tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArguments {
    /// Also list the external tool of this manifest (docs/tools.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) fn tools(session: &Session, command: &ToolsArguments) -> anyhow::Result<Exit> {
    let answer = session.answer(None)?;
    let known = session.tools(&command.manifest)?;
    let packages: Vec<&str> = known
        .all()
        .filter_map(|tool| tool.packages.first())
        .map(String::as_str)
        .collect();
    // A list is not worth a download: where no list of packages is, it has no versions.
    let debian = session.debian()?.offline();
    let versions = debian.versions(debian.suite(None), &packages);
    let versions = versions.unwrap_or_default();
    let document = ToolsDocument::new(known.all().map(|tool| {
        let package = tool.packages.first();
        let version = package.and_then(|package| versions.get(package));
        (tool, version.map(String::as_str))
    }));
    answer.list(&document, command.output)?;
    Ok(Exit::Fine)
}
