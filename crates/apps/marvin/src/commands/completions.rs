//! `marvin completions`: writes the script that completes words in a shell.

use crate::exit::Exit;
use crate::session::Session;

pub(crate) fn completions(session: &Session, shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    session
        .answer(None)?
        .write_bytes(&crate::completion::script(shell)?)?;
    Ok(Exit::Fine)
}
