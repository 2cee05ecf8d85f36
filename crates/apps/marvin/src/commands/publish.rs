//! `marvin publish`: the dashboard as files.

use std::path::PathBuf;

use clap::Args;
use web::Site;

use crate::exit::Exit;
use crate::measure::explain_stored_or_none;
use crate::session::Session;

/// `marvin publish`.
#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    /// Directory to write to: new, empty, or written by an earlier publish
    pub(crate) folder: PathBuf,
}

pub(crate) fn publish(session: &Session, command: &PublishArguments) -> anyhow::Result<Exit> {
    let location = session.store_location()?;
    let site =
        Site::of_files(&location, session.read_history()?).with_explain(explain_stored_or_none);
    let published = web::publish(&site, &command.folder)?;
    session.answer(None)?.write(format!(
        "{} files, {} bytes\n",
        published.files, published.bytes
    ))?;
    Ok(Exit::Fine)
}
