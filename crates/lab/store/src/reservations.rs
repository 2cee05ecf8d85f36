//! Reservations of machines. The model defines what is refused; here one process at a time changes
//! them, on a server too, so that hosts that share a store never have one machine at once.

use model::{Reservation, ReservationRefusal, UnixTime, check_free, reservation_of};

use crate::columns::{self, Time, Unsigned};
use crate::database::{Database, Failure, Row, Values};
use crate::{Store, StoreError};

const SELECT: &str =
    "SELECT number, machines, holder, why, by_lab, since_unix, until_unix, ended_unix FROM reservations
     WHERE number >= ?1 OR (ended_unix IS NULL AND until_unix > ?2)
        OR number = (SELECT max(number) FROM reservations) ORDER BY number";
/// Names of machines have no wildcard.
const LATEST: &str =
    "SELECT number, machines, holder, why, by_lab, since_unix, until_unix, ended_unix FROM reservations
     WHERE ' ' || machines || ' ' LIKE ?1 ORDER BY number DESC LIMIT 1";
/// No reservation has this number.
const NONE: u64 = i64::MAX.unsigned_abs();

/// Why reservations were not changed.
#[derive(Debug, thiserror::Error)]
pub enum ReservationError {
    /// Their state does not allow it.
    #[error(transparent)]
    Refused(#[from] ReservationRefusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Returns the time for reservations: a server's own one, since its clients' clocks may differ,
    /// else this one.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn time(&self, own_unix: UnixTime) -> Result<UnixTime, StoreError> {
        match &self.database {
            Database::Sqlite(_) => Ok(own_unix),
            Database::Server(_) => {
                let select = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)";
                self.with(|database| {
                    Ok(database
                        .row(select, &[], |row| columns::time(row, 0))?
                        .unwrap_or(own_unix))
                })
            }
        }
    }

    /// Reserves machines, all or none; number and end of `new` are ignored. It lasts `for_s`
    /// seconds from now on.
    ///
    /// # Errors
    /// If one of them is reserved, or the database cannot be written.
    pub fn reserve(
        &self,
        new: &Reservation,
        for_s: u64,
        own_unix: UnixTime,
    ) -> Result<Reservation, ReservationError> {
        self.change(NONE, own_unix, |database, known, now| {
            check_free(&new.machines, known, now)?;
            let number = known.iter().map(|one| one.number).max().unwrap_or(0) + 1;
            let until_unix = now.plus_seconds(for_s);
            let new = Reservation {
                number,
                since_unix: now,
                until_unix,
                ended_unix: None,
                ..new.clone()
            };
            insert(database, &new)?;
            Ok(new)
        })
    }

    /// Makes a reservation last for at least `for_s` seconds from now on, and proves with it that
    /// its holder still has the machines.
    ///
    /// # Errors
    /// If the holder no longer has them, or the database cannot be written.
    pub fn extend_reservation(
        &self,
        number: u64,
        for_s: u64,
        own_unix: UnixTime,
    ) -> Result<Reservation, ReservationError> {
        self.change(number, own_unix, |database, known, now| {
            let found = known.iter().find(|one| one.number == number).cloned();
            let Some(mut one) = found else {
                return Err(ReservationRefusal::Over {
                    number,
                    machine: "any machine".to_owned(),
                }
                .into());
            };
            let until = one.until_unix;
            one.extend(for_s, known, now)?;
            if one.until_unix != until {
                let values: Values<'_> = &[&Time(one.until_unix), &Unsigned(number)];
                database.execute(
                    "UPDATE reservations SET until_unix = ?1 WHERE number = ?2",
                    values,
                )?;
            }
            Ok(one)
        })
    }

    /// Ends the reservation that has a machine, if `may` allows it, and returns it.
    ///
    /// # Errors
    /// If it is not reserved, `may` refuses, or the database cannot be written.
    pub fn release_machine(
        &self,
        machine: &str,
        own_unix: UnixTime,
        may: impl Fn(&Reservation) -> bool,
    ) -> Result<Reservation, ReservationError> {
        self.change(NONE, own_unix, |database, known, now| {
            let Some(one) = reservation_of(machine, known, now) else {
                return Err(ReservationRefusal::Free(machine.to_owned()).into());
            };
            if !may(one) {
                return Err(one.refusal(machine, now).into());
            }
            database.execute(
                "UPDATE reservations SET ended_unix = ?1 WHERE number = ?2",
                &[&Time(now), &Unsigned(one.number)],
            )?;
            Ok(Reservation {
                ended_unix: Some(now),
                ..one.clone()
            })
        })
    }

    /// Ends a reservation, if it has not ended.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn release_reservation(&self, number: u64, own_unix: UnixTime) -> Result<(), StoreError> {
        let now = self.time(own_unix)?;
        self.with(|database| {
            let transaction = database.write()?;
            let end =
                "UPDATE reservations SET ended_unix = ?1 WHERE number = ?2 AND ended_unix IS NULL";
            database.execute(end, &[&Time(now), &Unsigned(number)])?;
            transaction.commit()
        })
    }

    /// Lists the reservations that have machines now, in the order in which they were made.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn reservations(&self, own_unix: UnixTime) -> Result<Vec<Reservation>, StoreError> {
        let now = self.time(own_unix)?;
        let mut all = self.with(|database| known(database, NONE, now))?;
        all.retain(|one| one.is_active(now));
        Ok(all)
    }

    /// Returns the latest reservation of a machine, which may have ended; `None` without any.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn latest_reservation(&self, machine: &str) -> Result<Option<Reservation>, StoreError> {
        let like = format!("% {machine} %");
        self.with(|database| database.row(LATEST, &[&like], read))
    }

    /// Changes reservations while no other process does: `step` gets those in force, those from
    /// this number on and the latest, and the time.
    fn change<T>(
        &self,
        from: u64,
        own_unix: UnixTime,
        step: impl FnOnce(&Database, &[Reservation], UnixTime) -> Result<T, Stop>,
    ) -> Result<T, ReservationError> {
        // The time of the server is asked within the transaction: waiting for it may have taken
        // long.
        let changed = self.with(|database| {
            let transaction = database.write()?;
            let now = self
                .time(own_unix)
                .map_err(|error| Failure::Silent(error.to_string()))?;
            match step(database, &known(database, from, now)?, now) {
                Ok(value) => transaction.commit().map(|()| Ok(value)),
                Err(Stop::Failed(failure)) => Err(failure),
                Err(Stop::Refused(why)) => Ok(Err(why)),
            }
        })?;
        Ok(changed?)
    }
}

/// Why a step was not taken.
enum Stop {
    Refused(ReservationRefusal),
    Failed(Failure),
}

impl From<ReservationRefusal> for Stop {
    fn from(why: ReservationRefusal) -> Self {
        Self::Refused(why)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A lab asks every few seconds whether it has a server, for years: it reads no more than it needs.
fn known(database: &Database, from: u64, now: UnixTime) -> Result<Vec<Reservation>, Failure> {
    database.rows(SELECT, &[&Unsigned(from), &Time(now)], read)
}

fn read(row: &Row<'_>) -> Result<Reservation, Failure> {
    Ok(Reservation {
        number: row.get::<Unsigned>(0)?.0,
        machines: row
            .get::<String>(1)?
            .split(' ')
            .map(str::to_owned)
            .collect(),
        holder: row.get(2)?,
        why: row.get(3)?,
        by_lab: row.get::<i64>(4)? != 0,
        since_unix: columns::time(row, 5)?,
        until_unix: columns::time(row, 6)?,
        ended_unix: columns::optional_time(row, 7)?,
    })
}

fn insert(database: &Database, one: &Reservation) -> Result<(), Failure> {
    let Reservation {
        number,
        machines,
        holder,
        why,
        by_lab,
        since_unix,
        until_unix,
        ended_unix,
    } = one;
    let insert = "INSERT INTO reservations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let machines = machines.join(" ");
    let number = Unsigned(*number);
    let by_lab = i64::from(*by_lab);
    let since = Time(*since_unix);
    let until = Time(*until_unix);
    let ended = ended_unix.map(Time);
    let values: Values<'_> = &[
        &number, &machines, holder, why, &by_lab, &since, &until, &ended,
    ];
    database.execute(insert, values).map(drop)
}

#[cfg(test)]
mod tests {
    use model::{Reservation, UnixTime};

    use super::ReservationError;
    use crate::testing::{New, again, contract};

    contract!(
        machines_are_reserved_all_or_none,
        stalled_holder_never_gets_the_machine_back,
        processes_never_have_one_machine_at_once,
    );

    fn new(holder: &str, machines: &[&str]) -> Reservation {
        Reservation {
            machines: machines.iter().map(|name| (*name).to_owned()).collect(),
            holder: holder.to_owned(),
            why: "a test".to_owned(),
            ..Reservation::default()
        }
    }

    fn machines_are_reserved_all_or_none(make: New<'_>) {
        let (_home, store) = make();
        let now = UnixTime::new(1_790_000_000);
        let pair = store
            .reserve(&new("anna@lab", &["client", "server"]), 3600, now)
            .unwrap();
        assert_eq!(pair.number, 1);
        let refused = store
            .reserve(&new("ben@lab", &["other", "server"]), 60, now)
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("server is reserved: anna@lab has it for "),
            "{refused}"
        );
        let other = store.reserve(&new("ben@lab", &["other"]), 60, now).unwrap();
        assert_eq!(store.reservations(now).unwrap(), [pair.clone(), other]);
        let of_anna = |one: &Reservation| one.holder == "anna@lab";
        let refused = store.release_machine("other", now, of_anna).unwrap_err();
        assert!(matches!(refused, ReservationError::Refused(_)), "{refused}");
        assert_eq!(
            store
                .release_machine("client", now, of_anna)
                .unwrap()
                .number,
            pair.number
        );
        let free = store
            .release_machine("server", now, of_anna)
            .unwrap_err()
            .to_string();
        assert_eq!(free, "server is not reserved");
        assert_eq!(
            store.latest_reservation("server").unwrap().unwrap().number,
            pair.number
        );
        assert_eq!(store.latest_reservation("serve").unwrap(), None);
        let both = store
            .reserve(&new("cara@lab", &["client", "server"]), 60, now)
            .unwrap();
        assert_eq!(
            store.latest_reservation("server").unwrap(),
            Some(both.clone())
        );
        store.release_reservation(both.number, now).unwrap();
        assert_eq!(store.reservations(now).unwrap().len(), 1);
    }

    fn stalled_holder_never_gets_the_machine_back(make: New<'_>) {
        let (_home, store) = make();
        let now = UnixTime::new(1_790_000_000);
        // It runs out at once, on a server too, whose clock is its own.
        let first = store
            .reserve(&new("anna@lab", &["testbox"]), 0, now)
            .unwrap();
        store.extend_reservation(first.number, 0, now).unwrap();
        let second = store
            .reserve(&new("ben@lab", &["testbox"]), 0, now)
            .unwrap();
        assert!(second.number > first.number);
        let over = store
            .extend_reservation(first.number, 60, now)
            .unwrap_err()
            .to_string();
        assert_eq!(over, "reservation 1 of testbox is over");
        let until = store
            .extend_reservation(second.number, 600, now)
            .unwrap()
            .until_unix;
        assert!(until >= second.until_unix.plus_seconds(600));
        assert!(store.extend_reservation(77, 60, now).is_err());
    }

    fn processes_never_have_one_machine_at_once(make: New<'_>) {
        let (_home, store) = make();
        let won: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|n| {
                    let store = again(&store);
                    scope.spawn(move || {
                        (0..20)
                            .map(|_| {
                                store.reserve(
                                    &new(&format!("user{n}"), &["testbox"]),
                                    600,
                                    UnixTime::new(1_790_000_000),
                                )
                            })
                            .filter(Result::is_ok)
                            .count()
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
    }
}
