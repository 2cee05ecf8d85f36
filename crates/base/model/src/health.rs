//! The health of a machine that has jobs: after failures of the lab in a row it is quarantined, and
//! tries one job again from time to time until one ends well. Pure: the time is an argument.

use crate::UnixTime;

/// After so many failures in a row a machine is quarantined: one job may be at fault for the first
/// ones.
const FAILURES: u32 = 3;
/// Seconds until a quarantined machine tries a job again.
const TRY_S: u64 = 600;

/// What is known of a machine's health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// The machine's name in marvin.toml.
    pub machine: String,
    /// Attempts in a row in which the lab failed.
    pub failures: u32,
    /// How the last of them failed; empty without any.
    pub reason: String,
    /// Since when it is quarantined; `None` if it is not.
    pub quarantined_unix: Option<UnixTime>,
    /// When it may try a job again, if it is quarantined.
    pub next_unix: UnixTime,
}

impl Health {
    /// Returns whether it may be given a job.
    #[must_use]
    pub fn takes_jobs(&self, now_unix: UnixTime) -> bool {
        self.quarantined_unix.is_none() || self.next_unix <= now_unix
    }

    /// Gives a quarantined machine one job to try.
    pub fn try_one(&mut self, now_unix: UnixTime) {
        if self.quarantined_unix.is_some() {
            self.next_unix = now_unix.plus_seconds(TRY_S);
        }
    }

    /// Records an attempt in which the lab failed.
    pub fn fail(&mut self, reason: &str, now_unix: UnixTime) {
        self.failures = self.failures.saturating_add(1);
        reason.clone_into(&mut self.reason);
        if self.failures >= FAILURES {
            self.quarantined_unix.get_or_insert(now_unix);
            self.next_unix = now_unix.plus_seconds(TRY_S);
        }
    }

    /// Records an attempt that ended well, or with a failure of the kernel.
    pub fn recover(&mut self) {
        *self = Self {
            machine: std::mem::take(&mut self.machine),
            ..Self::default()
        };
    }
}

/// Returns the health of a machine that is quarantined; `None` for others.
#[must_use]
pub fn quarantine_of<'a>(machine: &str, all: &'a [Health]) -> Option<&'a Health> {
    all.iter()
        .find(|health| health.machine == machine && health.quarantined_unix.is_some())
}

#[cfg(test)]
mod tests {
    use super::{FAILURES, Health, TRY_S};
    use crate::UnixTime;

    #[test]
    fn machine_is_quarantined_until_a_job_succeeds() {
        let mut health = Health {
            machine: "testbox".into(),
            ..Health::default()
        };
        for _ in 1..FAILURES {
            health.fail("no power", UnixTime::new(100));
        }
        assert!(health.takes_jobs(UnixTime::new(100)) && health.quarantined_unix.is_none());
        health.recover();
        assert_eq!(
            health,
            Health {
                machine: "testbox".into(),
                ..Health::default()
            }
        );
        for _ in 0..FAILURES {
            health.fail("no power", UnixTime::new(200));
        }
        let later = UnixTime::new(200).plus_seconds(TRY_S);
        assert!(!health.takes_jobs(later.minus_seconds(1)) && health.takes_jobs(later));
        health.try_one(later);
        assert!(!health.takes_jobs(later), "one job at a time");
        health.fail("no power", later.plus_seconds(5));
        assert_eq!(health.quarantined_unix, Some(UnixTime::new(200)));
        health.recover();
        assert!(health.takes_jobs(later.plus_seconds(6)));
    }
}
