//! `marvin extend`: makes a reservation last longer.

use clap::Args;
use lab::LabError;
use model::ReservationRefusal;

use crate::completion;
use crate::exit::Exit;
use crate::options::seconds;
use crate::servers::{check_ours, describe_reservation, find_server, reserved};
use crate::session::{Session, now};

/// `marvin extend`.
#[derive(Debug, Args)]
pub(crate) struct ExtendArguments {
    /// Reserved server; the servers of the same reservation are extended too
    #[arg(add = completion::server())]
    pub(crate) name: String,

    /// Duration from now on: 30m, 2h, 3d
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    pub(crate) for_s: u64,
}

pub(crate) fn extend(session: &Session, command: &ExtendArguments) -> anyhow::Result<Exit> {
    let server = find_server(session, &command.name)?;
    check_ours(session, &server.name)?;
    let reserved = reserved(session)?;
    let reservation = reserved
        .on_server(&server.name)
        .ok_or_else(|| LabError::from(ReservationRefusal::Free(server.name.clone())))?;
    let number = reservation.number;
    let answer = session.answer(None)?;
    let store = session.open_store()?;
    let extended = store
        .extend_reservation(number, command.for_s, now())
        .map_err(LabError::from)?;
    answer.write(format!(
        "reserved {}\n",
        describe_reservation(&extended, store.time(now())?)
    ))?;
    Ok(Exit::Fine)
}
