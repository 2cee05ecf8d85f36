//! Reservations: who has which machines until when, and what is refused. Pure: the time is an
//! argument. The store keeps reservations, and the lab asks before
//! each act on a machine whether it still has it.

use crate::UnixTime;

/// How long a user's reservation can last (s): `--for` takes at most a year.
const MAX_S: u64 = 400 * 86_400;
/// How long a lab's own one can: it is extended step by step, and no step takes days.
const LAB_MAX_S: u64 = 7 * 86_400;

/// A reservation: a lease of machines for one person or measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Its number. A later reservation has a greater one, so that it serves as the fence of the
    /// machines.
    pub number: u64,
    /// Names of the machines, sorted, each once: all are reserved or none.
    pub machines: Vec<String>,
    /// Who has them: `anna@build`.
    pub holder: String,
    /// What the machine is reserved for.
    pub why: String,
    /// Whether a lab made it for a measurement, and extends it step by step.
    pub by_lab: bool,
    /// When it began.
    pub since_unix: UnixTime,
    /// When it ends unless it is extended.
    pub until_unix: UnixTime,
    /// When it was released.
    pub ended_unix: Option<UnixTime>,
}

/// Why a reservation is refused, or a machine may no longer be touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReservationRefusal {
    /// Another user has the machine.
    #[error("{machine} is reserved: {taken}")]
    Taken {
        /// The name of the machine that is not free.
        machine: String,
        /// Who has it, until when.
        taken: Taken,
    },
    /// It is not reserved.
    #[error("{0} is not reserved")]
    Free(String),
    /// The holder released it, or lost it to another.
    #[error("reservation {number} of {machine} is over")]
    Over {
        /// machines.
        number: u64,
        /// The name of a machine that it does not have.
        machine: String,
    },
}

/// Who has a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The user that has it: `user@host`.
    pub holder: String,
    /// What the machine is reserved for.
    pub why: String,
    /// Seconds until the reservation ends unless it is extended.
    pub left_s: u64,
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} has it for {}", self.holder, format_left(self.left_s))?;
        if self.why.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", self.why)
        }
    }
}

/// Says how long something lasts, in whole minutes, rounded up: `3 h 20 min`.
#[must_use]
pub fn format_left(seconds: u64) -> String {
    match seconds.div_ceil(60) {
        minutes @ ..60 => format!("{minutes} min"),
        minutes if minutes % 60 == 0 => format!("{} h", minutes / 60),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

impl Reservation {
    /// Returns whether it holds its machines at a time. One that lasts longer than any can was made
    /// or extended by a clock that was ahead, and holds none: else it would hold them for years.
    #[must_use]
    pub fn is_active(&self, now_unix: UnixTime) -> bool {
        let most_s = if self.by_lab { LAB_MAX_S } else { MAX_S };
        self.ended_unix.is_none()
            && now_unix < self.until_unix
            && self.until_unix <= now_unix.plus_seconds(most_s)
    }

    /// Returns whether it covers a machine.
    #[must_use]
    pub fn has(&self, machine: &str) -> bool {
        self.machines.iter().any(|name| name == machine)
    }

    /// Returns seconds until it ends unless it is extended.
    #[must_use]
    pub fn left_s(&self, now_unix: UnixTime) -> u64 {
        self.until_unix.seconds_since(now_unix).unwrap_or(0)
    }

    /// Refuses one of its machines to others.
    #[must_use]
    pub fn refusal(&self, machine: &str, now_unix: UnixTime) -> ReservationRefusal {
        ReservationRefusal::Taken {
            machine: machine.to_owned(),
            taken: self.taken(now_unix),
        }
    }

    /// Says who has its machines.
    #[must_use]
    pub fn taken(&self, now_unix: UnixTime) -> Taken {
        Taken {
            holder: self.holder.clone(),
            why: self.why.clone(),
            left_s: self.left_s(now_unix),
        }
    }

    /// Makes it last for at least these seconds from now on. `later` are all reservations with a
    /// greater number: while it had run out, one of them may have taken a machine.
    ///
    /// # Errors
    /// If it was released, or one of its machines was reserved since.
    pub fn extend(
        &mut self,
        for_s: u64,
        later: &[Self],
        now_unix: UnixTime,
    ) -> Result<(), ReservationRefusal> {
        self.check(later, now_unix)?;
        self.until_unix = self.until_unix.max(now_unix.plus_seconds(for_s));
        Ok(())
    }

    /// Checks that no other reservation has had any of its machines since it began, which is the
    /// fence: a holder that stalled may have lost them.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn check(&self, later: &[Self], now_unix: UnixTime) -> Result<(), ReservationRefusal> {
        let (Some(machine), number) = (self.machines.first().cloned(), self.number) else {
            return Ok(());
        };
        if self.ended_unix.is_some() {
            return Err(ReservationRefusal::Over { number, machine });
        }
        for other in later.iter().filter(|other| other.number > self.number) {
            let Some(machine) = other.machines.iter().find(|name| self.has(name)).cloned() else {
                continue;
            };
            return Err(match other.is_active(now_unix) {
                true => other.refusal(&machine, now_unix),
                false => ReservationRefusal::Over { number, machine },
            });
        }
        Ok(())
    }
}

/// Returns the reservation that has a machine at a time; `known` are reservations in any order.
#[must_use]
pub fn reservation_of<'a>(
    machine: &str,
    known: &'a [Reservation],
    now_unix: UnixTime,
) -> Option<&'a Reservation> {
    known
        .iter()
        .filter(|one| one.has(machine) && one.is_active(now_unix))
        .max_by_key(|one| one.number)
}

/// Checks that machines may be reserved: that no active reservation has one of them.
///
/// # Errors
/// If one has: the first in the order of `machines`.
pub fn check_free(
    machines: &[String],
    known: &[Reservation],
    now_unix: UnixTime,
) -> Result<(), ReservationRefusal> {
    machines
        .iter()
        .try_for_each(|machine| match reservation_of(machine, known, now_unix) {
            Some(other) => Err(other.refusal(machine, now_unix)),
            None => Ok(()),
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Reservation, check_free, format_left, reservation_of};
    use crate::UnixTime;

    fn reservation(number: u64, machines: &[&str], since: i64, until: i64) -> Reservation {
        Reservation {
            number,
            machines: machines.iter().map(|name| (*name).to_owned()).collect(),
            holder: format!("user{number}@lab"),
            why: "perf hunt".into(),
            by_lab: false,
            since_unix: UnixTime::new(since),
            until_unix: UnixTime::new(until),
            ended_unix: None,
        }
    }

    #[test]
    fn several_machines_are_free_or_none() {
        let known = [reservation(1, &["client", "server"], 0, 7200)];
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let refused =
            check_free(&names(&["other", "server"]), &known, UnixTime::new(100)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "server is reserved: user1@lab has it for 1 h 59 min (perf hunt)"
        );
        assert_eq!(
            check_free(&names(&["other"]), &known, UnixTime::new(100)),
            Ok(())
        );
        assert_eq!(
            check_free(&names(&["server"]), &known, UnixTime::new(7200)),
            Ok(()),
            "it ran out"
        );
        assert_eq!(
            reservation_of("server", &known, UnixTime::new(7199)),
            Some(&known[0])
        );
    }

    #[test]
    fn expired_reservation_lasts_until_another_is_made() {
        let mut first = reservation(1, &["testbox"], 0, 60);
        first.extend(600, &[], UnixTime::new(120)).unwrap();
        assert_eq!(first.until_unix, UnixTime::new(720));
        first.extend(10, &[], UnixTime::new(130)).unwrap();
        assert_eq!(first.until_unix, UnixTime::new(720), "never shorter");
        let second = reservation(2, &["testbox"], 800, 900);
        let refused = first
            .extend(600, std::slice::from_ref(&second), UnixTime::new(810))
            .unwrap_err()
            .to_string();
        assert_eq!(
            refused,
            "testbox is reserved: user2@lab has it for 2 min (perf hunt)"
        );
        let refused = first
            .extend(600, &[second], UnixTime::new(1000))
            .unwrap_err()
            .to_string();
        assert_eq!(
            refused, "reservation 1 of testbox is over",
            "a holder never comes back after another one"
        );
    }

    #[test]
    fn reservation_by_clock_ahead_holds_nothing() {
        const YEAR: i64 = 366 * 86_400;
        let free = |one: &Reservation, now| {
            check_free(&["testbox".to_owned()], std::slice::from_ref(one), now).is_ok()
        };
        let now = UnixTime::new(1_000);
        assert!(!free(
            &reservation(1, &["testbox"], 1_000, 1_000 + YEAR),
            now
        ));
        // Made ten years ahead, and extended there.
        let ahead = reservation(1, &["testbox"], 10 * YEAR, 10 * YEAR + 7_200);
        assert!(free(&ahead, now));
        let mut extended = reservation(1, &["testbox"], 900, 1_800);
        extended.extend(900, &[], UnixTime::new(10 * YEAR)).unwrap();
        assert!(free(&extended, now));
        extended.by_lab = true;
        extended.until_unix = UnixTime::new(YEAR);
        assert!(free(&extended, now), "a killed lab's");
    }

    #[test]
    fn times_are_whole_minutes() {
        let shown = [0, 1, 60, 61, 3599, 3600, 3661].map(format_left);
        assert_eq!(
            shown,
            [
                "0 min",
                "1 min",
                "1 min",
                "2 min",
                "1 h",
                "1 h",
                "1 h 2 min"
            ]
        );
    }

    proptest! {
        /// Whatever is tried in whatever order: at no time do two reservations pass the check for one machine.
        #[test]
        fn one_holder_at_most_passes_the_check(
            acts in prop::collection::vec((0..4_u8, 0..3_u8, 1..100_u64), 1..200),
        ) {
            let mut known: Vec<Reservation> = Vec::new();
            let mut now = UnixTime::default();
            for (act, which, seconds) in acts {
                match act {
                    0 => now = now.plus_seconds(seconds),
                    1 => {
                        let all = ["a", "b", "c"];
                        let machines: Vec<String> = all
                            .iter()
                            .skip(usize::from(which))
                            .take(2)
                            .map(|name| (*name).to_owned())
                            .collect();
                        if check_free(&machines, &known, now).is_ok() {
                            let names: Vec<&str> = machines.iter().map(String::as_str).collect();
                            known.push(reservation(
                                known.len() as u64 + 1,
                                &names,
                                now.seconds(),
                                now.plus_seconds(seconds).seconds(),
                            ));
                        }
                    }
                    2 => {
                        let others = known.clone();
                        let at = usize::from(which) % known.len().max(1);
                        if let Some(one) = known.get_mut(at) {
                            drop(one.extend(seconds, &others, now));
                        }
                    }
                    _ => {
                        let at = usize::from(which) % known.len().max(1);
                        if let Some(one) = known.get_mut(at) {
                            one.ended_unix = Some(now);
                        }
                    }
                }
                for machine in ["a", "b", "c"] {
                    let pass = known
                        .iter()
                        .filter(|one| one.has(machine) && one.check(&known, now).is_ok());
                    prop_assert!(pass.count() <= 1, "{machine} at {now:?}: {known:?}");
                }
            }
        }
    }
}
