//! `marvin reserve`: reserves servers for one user.

use clap::Args;
use lab::LabError;
use machine::person;
use model::Reservation;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::seconds;
use crate::servers::{describe_reservation, find_server};
use crate::session::{Session, now};

/// `marvin reserve`.
#[derive(Debug, Args)]
pub(crate) struct ReserveArguments {
    /// Servers: names of [[machine]] tables in marvin.toml; Marvin reserves all of them or none
    #[arg(required = true, add = completion::server())]
    pub(crate) names: Vec<String>,

    /// Duration: 30m, 2h, 3d
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    pub(crate) for_s: u64,

    /// Purpose, shown to other users
    #[arg(long)]
    pub(crate) why: String,
}

/// Most characters of a reason: it stands in one line of a list.
const WHY_MAX: usize = 60;

pub(crate) fn reserve(session: &Session, command: &ReserveArguments) -> anyhow::Result<Exit> {
    let servers = command
        .names
        .iter()
        .map(|name| find_server(session, name))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut machines: Vec<String> = servers.into_iter().map(|server| server.name).collect();
    machines.sort();
    machines.dedup();
    if command.why.chars().count() > WHY_MAX {
        return Err(WrongInput(format!(
            "--why has more than {WHY_MAX} characters; it stands in one line"
        ))
        .into());
    }
    let holder = person();
    let why = model::sanitize_line(&command.why);
    let new = Reservation {
        machines,
        holder,
        why,
        ..Reservation::default()
    };
    let answer = session.answer(None)?;
    let store = session.open_store()?;
    let made = store
        .reserve(&new, command.for_s, now())
        .map_err(LabError::from)?;
    answer.write(format!(
        "reserved {}\n",
        describe_reservation(&made, store.time(now())?)
    ))?;
    Ok(Exit::Fine)
}
