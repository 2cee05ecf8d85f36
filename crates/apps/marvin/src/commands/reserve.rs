//! `marvin reserve`, `extend`, `release`: who has a server to themselves until when.

use document::number::minute;
use lab::LabError;
use machine::person;
use model::{Reservation, ReservationRefusal, format_left, reservation_of};
use store::{Store, StoreError};

use super::compare::now;
use super::power::named;
use crate::answer::Answer;
use crate::cli::{Arguments, Extend, Release, Reserve};
use crate::exit::{Exit, WrongInput};
use crate::home::store;

/// Most characters of a reason: it stands in one line of a list.
const WHY_MAX: usize = 60;

pub(crate) fn reserve(arguments: &Arguments, command: &Reserve) -> anyhow::Result<Exit> {
    let servers = command
        .names
        .iter()
        .map(|name| named(arguments, name))
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
    let (holder, why) = (person(), model::plain(&command.why));
    let new = Reservation {
        machines,
        holder,
        why,
        ..Reservation::default()
    };
    let answer = Answer::open(None)?;
    let store = open(arguments)?;
    let made = store
        .reserve(&new, command.for_s, now())
        .map_err(LabError::from)?;
    answer.write(format!(
        "reserved {}\n",
        describe(&made, store.time(now())?)
    ))?;
    Ok(Exit::Fine)
}

pub(crate) fn extend(arguments: &Arguments, command: &Extend) -> anyhow::Result<Exit> {
    let server = named(arguments, &command.name)?;
    check_ours(arguments, &server.name)?;
    let reserved = reserved(arguments)?;
    let free = || LabError::from(ReservationRefusal::Free(server.name.clone()));
    let number = reserved.of(&server.name).ok_or_else(free)?.number;
    let answer = Answer::open(None)?;
    let store = open(arguments)?;
    let extended = store
        .extend_reservation(number, command.for_s, now())
        .map_err(LabError::from)?;
    answer.write(format!(
        "reserved {}\n",
        describe(&extended, store.time(now())?)
    ))?;
    Ok(Exit::Fine)
}

pub(crate) fn release(arguments: &Arguments, command: &Release) -> anyhow::Result<Exit> {
    let (server, store, holder) = (named(arguments, &command.name)?, open(arguments)?, person());
    let may = |one: &Reservation| command.force || one.holder == holder;
    let answer = Answer::open(None)?;
    let ended = store
        .release_machine(&server.name, now(), may)
        .map_err(LabError::from)?;
    let whose = if ended.holder == holder {
        String::new()
    } else {
        format!(", which {} had", ended.holder)
    };
    answer.write(format!("released {}{whose}\n", ended.machines.join(", ")))?;
    Ok(Exit::Fine)
}

/// Reservations in force, and the time of their store.
pub(crate) struct Reserved {
    pub(crate) all: Vec<Reservation>,
    pub(crate) now_unix: i64,
}

impl Reserved {
    /// Returns who has a server.
    pub(crate) fn of(&self, name: &str) -> Option<&Reservation> {
        reservation_of(name, &self.all, self.now_unix)
    }
}

/// Reads the reservations in force; a data directory without results has none.
pub(crate) fn reserved(arguments: &Arguments) -> anyhow::Result<Reserved> {
    match Store::open_read_only(store(arguments)?) {
        Err(StoreError::Empty { .. }) => Ok(Reserved {
            all: Vec::new(),
            now_unix: now(),
        }),
        Err(error) => Err(error.into()),
        Ok(store) => Ok(Reserved {
            now_unix: store.time(now())?,
            all: store.reservations(now())?,
        }),
    }
}

/// Refuses what would be done to a server that another user has reserved.
pub(crate) fn check_ours(arguments: &Arguments, name: &str) -> anyhow::Result<()> {
    let reserved = reserved(arguments)?;
    match reserved.of(name) {
        Some(one) if one.holder != person() => {
            Err(LabError::from(one.refusal(name, reserved.now_unix)).into())
        }
        _ => Ok(()),
    }
}

fn open(arguments: &Arguments) -> anyhow::Result<Store> {
    Ok(Store::open(store(arguments)?)?)
}

/// Says what is reserved, and until when: `client, server for 2 h, until 2026-11-24 14:31 UTC`.
fn describe(one: &Reservation, now_unix: i64) -> String {
    let left = format_left(one.left_s(now_unix));
    format!(
        "{} for {left}, until {} UTC",
        one.machines.join(", "),
        minute(one.until_unix)
    )
}
