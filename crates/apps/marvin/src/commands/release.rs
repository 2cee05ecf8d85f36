//! `marvin release`: ends a reservation.

use clap::Args;
use lab::LabError;
use machine::person;
use model::Reservation;

use crate::completion;
use crate::exit::Exit;
use crate::servers::find_server;
use crate::session::{Session, now};

/// `marvin release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArguments {
    /// Reserved server; the servers of the same reservation are released too
    #[arg(add = completion::server())]
    pub(crate) name: String,

    /// End another user's reservation; that user's measurement stops before its next step
    #[arg(long)]
    pub(crate) force: bool,
}

pub(crate) fn release(session: &Session, command: &ReleaseArguments) -> anyhow::Result<Exit> {
    let server = find_server(session, &command.name)?;
    let store = session.open_store()?;
    let holder = person();
    let answer = session.answer(None)?;
    let ended = store
        .release_machine(&server.name, now(), |one: &Reservation| {
            command.force || one.holder == holder
        })
        .map_err(LabError::from)?;
    let whose = if ended.holder == holder {
        String::new()
    } else {
        format!(", which {} had", ended.holder)
    };
    answer.write(format!("released {}{whose}\n", ended.machines.join(", ")))?;
    Ok(Exit::Fine)
}
