//! The time of a thread by parts of the observation.

use explain::facts::Period;

/// Parts of the observation that a thread's timeline has at most; they are merged when there are
/// more.
const PERIODS: usize = 64;

/// Periods of a thread, of equally many rounds each, and never more than a program that runs for
/// hours needs.
#[derive(Debug)]
pub(crate) struct Timeline {
    periods: Vec<Period>,
    /// Rounds in a period.
    stride: usize,
    /// Rounds in the last one.
    filled: usize,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self {
            periods: Vec::new(),
            stride: 1,
            filled: 1,
        }
    }

    pub(crate) fn push(&mut self, period: Period) {
        if self.filled < self.stride
            && let Some(last) = self.periods.last_mut()
        {
            *last = sum(&[*last, period]);
            self.filled += 1;
            return;
        }
        if self.periods.len() == 2 * PERIODS {
            self.periods = self.periods.chunks(2).map(sum).collect();
            self.stride *= 2;
        }
        self.periods.push(period);
        self.filled = 1;
    }

    /// Returns at most `PERIODS` parts.
    pub(crate) fn parts(&self) -> Vec<Period> {
        let size = self.periods.len().div_ceil(PERIODS).max(1);
        self.periods.chunks(size).map(sum).collect()
    }
}

pub(crate) fn sum(periods: &[Period]) -> Period {
    periods
        .iter()
        .fold(Period::default(), |sum, period| Period {
            user_s: sum.user_s + period.user_s,
            system_s: sum.system_s + period.system_s,
            waiting_s: sum.waiting_s + period.waiting_s,
            blocked_s: sum.blocked_s + period.blocked_s,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeline_of_hours_stays_short() {
        let mut timeline = Timeline::new();
        for _ in 0..100_000 {
            timeline.push(Period {
                user_s: 0.05,
                ..Period::default()
            });
        }
        let parts = timeline.parts();
        assert!(
            timeline.periods.len() <= 2 * PERIODS && (PERIODS / 2..=PERIODS).contains(&parts.len())
        );
        assert!((sum(&parts).user_s - 5000.0).abs() < 1e-6);
        let [first, second] = [parts[0].user_s, parts[parts.len() - 2].user_s];
        assert!(
            (first - second).abs() < 1e-6,
            "parts are of equal time: {first} and {second}"
        );
    }
}
