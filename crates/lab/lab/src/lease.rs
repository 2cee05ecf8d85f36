//! The reservation under which a lab uses a server: its user's, or one of its own for as long as it
//! measures; and the switching off of an idle server, which is done under a reservation that even
//! its user's measurements respect.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use machine::{MachineError, person};
use model::{Reservation, ServerSettings, UnixTime, reservation_of};
use server::Permit;
use store::{Location, ReservationError, Store};
use subprocess::Shared;

use crate::LabError;

/// How long a lab's own reservation lasts before its first step (s): a killed lab keeps others away
/// no longer.
const FIRST_S: u64 = 900;
/// What a lab's own reservation is for.
const WHY: &str = "a measurement";
/// What it is for that switches an idle server off, and what its holder's name begins with: as its
/// user's it would be used by measurements that begin meanwhile.
const OFF: (&str, &str) = ("it is idle and switched off now", "idle_off of ");

#[derive(Debug)]
pub(crate) struct Lease {
    store: Shared<Store>,
    number: u64,
    /// Whether it ends with the lab.
    is_own: bool,
}

impl Lease {
    /// Uses the reservation that this user has of a server, or makes one.
    ///
    /// # Errors
    /// If another user has the server reserved, or the store cannot be used.
    pub(crate) fn take(at: Location, server: &str) -> Result<Self, LabError> {
        // The lock of a data directory excludes its other labs: one that made a reservation there
        // was killed.
        let is_alone = matches!(at, Location::Home(_));
        let store = Store::open(at)?;
        let holder = person();
        let known = store.reservations(now())?;
        let (number, is_own) = match reservation_of(server, &known, store.time(now())?) {
            Some(one) if one.holder == holder => (one.number, one.by_lab && is_alone),
            _ => {
                let machines = vec![server.to_owned()];
                let why = WHY.to_owned();
                let new = Reservation {
                    machines,
                    holder,
                    why,
                    by_lab: true,
                    ..Reservation::default()
                };
                (store.reserve(&new, FIRST_S, now())?.number, true)
            }
        };
        Ok(Self {
            store: Shared::new(store),
            number,
            is_own,
        })
    }

    /// Makes a reservation for switching a server off.
    ///
    /// # Errors
    /// If any user has it reserved, this one too, or the store cannot be used.
    fn to_switch_off(at: Location, server: &str) -> Result<Self, LabError> {
        let store = Store::open(at)?;
        let why = OFF.0.to_owned();
        let holder = format!("{}{}", OFF.1, person());
        let new = Reservation {
            machines: vec![server.to_owned()],
            holder,
            why,
            by_lab: true,
            ..Reservation::default()
        };
        let number = store.reserve(&new, FIRST_S, now())?.number;
        Ok(Self {
            store: Shared::new(store),
            number,
            is_own: true,
        })
    }

    fn store<T>(&self, ask: impl FnOnce(&Store) -> T) -> T {
        ask(&self.store.lock())
    }
}

impl Permit for Lease {
    fn renew(&self, for_s: u64) -> Result<(), String> {
        let renewed = self.store(|store| store.extend_reservation(self.number, for_s, now()));
        renewed.map(drop).map_err(|error| match error {
            ReservationError::Refused(why) => format!("{why}; it was left as it is"),
            ReservationError::Store(error) => error.to_string(),
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_own {
            // It runs out anyway.
            drop(self.store(|store| store.release_reservation(self.number, now())));
        }
    }
}

/// Shuts a server down and switches it off, if no user has it reserved and no other lab holds it.
/// `home` is the lab's data directory.
///
/// # Errors
/// If one has it, it does not answer, or its power does not follow.
pub fn switch_off(at: Location, server: &ServerSettings, home: &Path) -> Result<(), LabError> {
    let permit = Arc::new(Lease::to_switch_off(at, &server.name)?);
    Ok(server::switch_off(server, home, crate::AGENT, permit).map_err(MachineError::from)?)
}

/// Returns the time of this host.
fn now() -> UnixTime {
    UnixTime::from(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use machine::person;
    use model::Reservation;
    use server::Permit;
    use store::{Location, Store};

    use super::{Lease, now};

    #[test]
    fn stalled_lab_loses_the_server() {
        let home = tempfile::tempdir().unwrap();
        let at = || Location::from(home.path());
        let lease = Lease::take(at(), "testbox").unwrap();
        lease.renew(60).unwrap();
        let store = Store::open(at()).unwrap();
        let other = Reservation {
            machines: vec!["testbox".into()],
            holder: "ben@lab".into(),
            ..Reservation::default()
        };
        assert!(store.reserve(&other, 60, now()).is_err(), "it is measuring");
        // Another host asks after the lease ran out, which this one does not notice: its clock
        // stood still.
        store
            .reserve(&other, 7200, now().plus_seconds(1000))
            .unwrap();
        let lost = lease.renew(60).unwrap_err();
        assert!(
            lost.starts_with("testbox is reserved: ben@lab has it for 2 h"),
            "{lost}"
        );
        drop(lease);
        assert_eq!(
            store.reservations(now().plus_seconds(1000)).unwrap()[0].holder,
            "ben@lab",
            "not ended by who lost it"
        );
    }

    #[test]
    fn server_is_switched_off_under_its_own_reservation() {
        let home = tempfile::tempdir().unwrap();
        let at = || Location::from(home.path());
        let lease = Lease::to_switch_off(at(), "testbox").unwrap();
        let refused = Lease::take(at(), "testbox").unwrap_err().to_string();
        assert!(
            refused.starts_with("testbox is reserved: idle_off of "),
            "{refused}"
        );
        drop(lease);
        let measures = Lease::take(at(), "testbox").unwrap();
        assert!(
            Lease::to_switch_off(at(), "testbox").is_err(),
            "its user measures"
        );
        drop(measures);
    }

    #[test]
    fn labs_use_their_users_reservation() {
        let home = tempfile::tempdir().unwrap();
        let at = || Location::from(home.path());
        let store = Store::open(at()).unwrap();
        let mine = Reservation {
            machines: vec!["testbox".into()],
            holder: person(),
            ..Reservation::default()
        };
        let number = store.reserve(&mine, 60, now()).unwrap().number;
        let lease = Lease::take(at(), "testbox").unwrap();
        lease.renew(600).unwrap();
        drop(lease);
        let stored = store.reservations(now().plus_seconds(500)).unwrap();
        assert_eq!(
            stored.iter().map(|one| one.number).collect::<Vec<_>>(),
            [number],
            "extended, and not ended"
        );
        let other = Lease::take(at(), "other").unwrap();
        std::mem::forget(Lease::take(at(), "other").unwrap());
        assert_eq!(store.reservations(now()).unwrap().len(), 2);
        drop(other);
        assert_eq!(
            store.reservations(now()).unwrap().len(),
            1,
            "its own one ended with it, also that of a killed lab"
        );
    }
}
