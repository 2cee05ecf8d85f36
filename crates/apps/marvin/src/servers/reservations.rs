//! Reservations of servers: who has a server to themselves until when.

use document::number::minute;
use lab::LabError;
use machine::person;
use model::{Reservation, UnixTime, format_left, reservation_of};
use store::{Store, StoreError};

use crate::session::{Session, now};

/// Reservations in force, and the time of their store.
pub(crate) struct Reserved {
    pub(crate) all: Vec<Reservation>,
    pub(crate) now_unix: UnixTime,
}

impl Reserved {
    /// Returns who has a server.
    pub(crate) fn on_server(&self, name: &str) -> Option<&Reservation> {
        reservation_of(name, &self.all, self.now_unix)
    }
}

/// Reads the reservations in force; a data directory without results has none.
pub(crate) fn reserved(session: &Session) -> anyhow::Result<Reserved> {
    match Store::open_read_only(session.store_location()?) {
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
pub(crate) fn check_ours(session: &Session, name: &str) -> anyhow::Result<()> {
    let reserved = reserved(session)?;
    match reserved.on_server(name) {
        Some(one) if one.holder != person() => {
            Err(LabError::from(one.refusal(name, reserved.now_unix)).into())
        }
        _ => Ok(()),
    }
}

/// Says what is reserved, and until when: `client, server for 2 h, until 2026-11-24 14:31 UTC`.
pub(crate) fn describe_reservation(one: &Reservation, now_unix: UnixTime) -> String {
    let left = format_left(one.left_s(now_unix));
    format!(
        "{} for {left}, until {} UTC",
        one.machines.join(", "),
        minute(one.until_unix)
    )
}
