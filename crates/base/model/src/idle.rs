//! When an idle server is switched off, and what switches it on. Pure: the time is an argument.

use crate::{Reservation, UnixTime};

/// What is known of the use of a server that is on.
#[derive(Debug, Clone, Copy)]
pub struct ServerUse<'a> {
    /// Since when it is known to be on: a user may have switched it on without a reservation.
    pub on_since_unix: UnixTime,
    /// Whether the queue has a job for it that waits or runs.
    pub has_job: bool,
    /// Its latest reservation. A measurement has one, too.
    pub reservation: Option<&'a Reservation>,
}

impl ServerUse<'_> {
    /// Returns for how long it is idle (s); `None` while a job or a reservation needs it.
    #[must_use]
    pub fn idle_s(&self, now_unix: UnixTime) -> Option<u64> {
        if self.has_job || self.reservation.is_some_and(|one| one.is_active(now_unix)) {
            return None;
        }
        let since = self.reservation.map_or(self.on_since_unix, |one| {
            let used_until = one
                .ended_unix
                .map_or(one.until_unix, |ended| ended.min(one.until_unix));
            used_until.max(self.on_since_unix)
        });
        now_unix.seconds_since(since)
    }

    /// Returns whether it is to be switched off: it was idle for at least so long (s).
    #[must_use]
    pub fn is_over(&self, idle_off_s: u64, now_unix: UnixTime) -> bool {
        self.idle_s(now_unix)
            .is_some_and(|idle_s| idle_s >= idle_off_s)
    }
}

/// Says what switches a server on that is off.
#[must_use]
pub fn describe_off(name: &str) -> String {
    format!("a measurement switches it on, or: marvin power {name} on")
}

#[cfg(test)]
mod tests {
    use super::ServerUse;
    use crate::{Reservation, UnixTime};

    const FREE: ServerUse<'_> = ServerUse {
        on_since_unix: UnixTime::new(1_000),
        has_job: false,
        reservation: None,
    };

    #[test]
    fn server_is_idle_since_it_is_on() {
        assert_eq!(FREE.idle_s(UnixTime::new(1_060)), Some(60));
        assert!(!FREE.is_over(61, UnixTime::new(1_060)) && FREE.is_over(60, UnixTime::new(1_060)));
        assert_eq!(
            FREE.idle_s(UnixTime::new(900)),
            None,
            "the clock was set back"
        );
    }

    #[test]
    fn jobs_and_reservations_keep_a_server_on() {
        let busy = ServerUse {
            has_job: true,
            ..FREE
        };
        assert_eq!(busy.idle_s(UnixTime::new(9_000)), None);
        let mut one = Reservation {
            until_unix: UnixTime::new(5_000),
            ..Reservation::default()
        };
        let idle = |one: &Reservation, now| {
            ServerUse {
                reservation: Some(one),
                ..FREE
            }
            .idle_s(UnixTime::new(now))
        };
        assert_eq!(
            (idle(&one, 4_999), idle(&one, 5_000)),
            (None, Some(0)),
            "it ran out"
        );
        one.ended_unix = Some(UnixTime::new(4_000));
        assert_eq!(idle(&one, 4_999), Some(999), "it was released");
        one.ended_unix = Some(UnixTime::new(6_000));
        assert_eq!(
            idle(&one, 7_000),
            Some(2_000),
            "released after it had run out"
        );
        one.ended_unix = Some(UnixTime::new(500));
        assert_eq!(
            idle(&one, 1_001),
            Some(1),
            "a user switched it on since then"
        );
    }
}
