//! Estimates the rest of some work on a shared host, or says that it cannot.
//!
//! The parts of the work are expected to cost processor seconds; how many of these pass in a second
//! depends on what else the host does and on how wrong the expectations are. Neither is known
//! before, and a rest that is off by more than a factor of two is worse than none: so there is one
//! only late, after stretches of the work that all took about as long.

/// The work is divided into so many stretches of equal expectation.
const STRETCHES: f64 = 20.0;
/// Fewest finished stretches, where single parts are longer than one.
const STRETCHES_MIN: usize = 10;
/// Share of the work that must be done.
const DONE_MIN: f64 = 0.75;
/// Share of the work below which the rest is too little: a single part decides.
const LEFT_MIN: f64 = 1.0 / STRETCHES;
/// Largest ratio of the slowest and the fastest stretch: whatever follows at such a pace is within
/// a factor of 1.42.
const RATIO_MAX: f64 = 2.0;

/// The time that work in progress still takes, by the pace of its finished parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remaining {
    /// Expected processor seconds of all parts, and of the unfinished ones.
    total_s: f64,
    left_s: f64,
    /// Seconds that passed, and expected processor seconds of the parts finished, in the stretch
    /// that is not finished.
    stretch: [f64; 2],
    /// Least and most seconds for each expected processor second, by stretch.
    paces: [f64; 2],
    stretches: usize,
}

impl Remaining {
    /// Returns work of `work_s` expected processor seconds.
    #[must_use]
    pub fn new(work_s: f64) -> Self {
        let work_s = sound(work_s);
        Self {
            total_s: work_s,
            left_s: work_s,
            stretch: [0.0; 2],
            paces: [f64::INFINITY, 0.0],
            stretches: 0,
        }
    }

    /// Adds seconds that passed.
    pub fn elapse(&mut self, seconds: f64) {
        self.stretch[0] += sound(seconds);
    }

    /// Finishes a part that was expected to cost so many processor seconds.
    pub fn finish(&mut self, expected_s: f64) {
        self.left_s = (self.left_s - sound(expected_s)).max(0.0);
        self.stretch[1] += sound(expected_s);
        let [passed_s, done_s] = self.stretch;
        if done_s > 0.0 && done_s >= self.total_s / STRETCHES {
            let pace = passed_s / done_s;
            self.paces = [self.paces[0].min(pace), self.paces[1].max(pace)];
            self.stretch = [0.0; 2];
            self.stretches += 1;
        }
    }

    /// Removes a part without doing it.
    pub fn skip(&mut self, expected_s: f64) {
        self.left_s = (self.left_s - sound(expected_s)).max(0.0);
        self.total_s = (self.total_s - sound(expected_s)).max(0.0);
    }

    /// Returns the seconds that the rest takes; `None` until three quarters are done, for the last
    /// twentieth, and where one stretch took more than twice as long as another.
    ///
    /// It is within a factor of two if the rest is neither slower nor faster than any stretch was.
    /// Load that comes and goes several times is seen and silences it; load that comes first in
    /// the last quarter cannot be known.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        let [least, most] = self.paces;
        let is_late = self.left_s <= (1.0 - DONE_MIN) * self.total_s
            && self.left_s >= LEFT_MIN * self.total_s;
        let is_steady = self.stretches >= STRETCHES_MIN && most > 0.0 && most <= RATIO_MAX * least;
        let seconds = self.left_s * (least * most).sqrt();
        (is_late && is_steady && self.left_s > 0.0 && seconds.is_finite()).then_some(seconds)
    }
}

/// Returns the processor seconds per second that a fair host delivers to `lanes` threads while
/// `others` compete; at most one processor each.
#[must_use]
pub fn fair_rate(lanes: usize, others: f64, processors: usize) -> f64 {
    let lanes = lanes.max(1) as f64;
    let processors = processors.max(1) as f64;
    lanes * (processors / (lanes + sound(others))).min(1.0)
}

/// Replaces NaN and infinite values by zero and limits the rest to 0..1e12.
fn sound(value: f64) -> f64 {
    if value.is_finite() {
        value.clamp(0.0, 1e12)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Remaining, fair_rate};
    use crate::synthetic::Chance;

    /// Replays 304 parts, whose costs scatter and were expected with errors, on a host that
    /// delivers `busy` per second while others have it, for about `period` of the run at a
    /// time, and 1 else. Returns each estimate with the true rest.
    fn replay(chance: &mut Chance, [busy, period]: [f64; 2]) -> Vec<(f64, f64)> {
        const PARTS: usize = 304;
        let costs: Vec<f64> = (0..PARTS).map(|_| (0.4 * chance.normal()).exp()).collect();
        let expected: Vec<f64> = costs
            .iter()
            .map(|cost| 7.0 * cost * (0.2 * chance.normal()).exp())
            .collect();
        let mean_span = period * PARTS as f64;
        let mut now = 0.0;
        let mut is_busy = chance.uniform() < 0.5;
        let mut until = exponential(chance, mean_span);
        let mut ends = Vec::new();
        for cost in costs {
            let mut left = cost;
            while left > 0.0 {
                let rate = if is_busy { busy } else { 1.0 };
                let step = (left / rate).min(until - now);
                (left, now) = (left - step * rate, now + step);
                if now >= until - 1e-9 {
                    (is_busy, until) = (!is_busy, now + exponential(chance, mean_span));
                }
                left = if left < 1e-9 { 0.0 } else { left };
            }
            ends.push(now);
        }
        let mut remaining = Remaining::new(expected.iter().sum());
        let mut estimates = Vec::new();
        let mut last = 0.0;
        for (end, expected_s) in ends.iter().zip(expected) {
            remaining.elapse(end - last);
            remaining.finish(expected_s);
            last = *end;
            estimates.extend(remaining.seconds().map(|seconds| (seconds, now - end)));
        }
        estimates
    }

    fn exponential(chance: &mut Chance, mean: f64) -> f64 {
        -(1.0 - chance.uniform()).ln() * mean
    }

    #[test]
    fn estimates_under_changing_load_are_within_two() {
        let mut chance = Chance::new(1);
        let mut count = 0;
        for busy in [0.5, 0.25, 0.1] {
            for period in [0.02, 0.05, 0.1] {
                for run in 0..50 {
                    for (predicted, left) in replay(&mut chance, [busy, period]) {
                        assert!(
                            (0.5..=2.0).contains(&(predicted / left)),
                            "{busy} {period} {run}: {predicted} of {left}"
                        );
                        count += 1;
                    }
                }
            }
        }
        assert!(count > 1000, "{count}");
    }

    #[test]
    fn quiet_host_gets_estimates_of_its_last_quarter() {
        let mut chance = Chance::new(2);
        for _ in 0..50 {
            let predicted = replay(&mut chance, [1.0, 1.0]);
            assert!(predicted.len() > 40, "{}", predicted.len());
            assert!(
                predicted
                    .iter()
                    .all(|(predicted, left)| (0.6..1.7).contains(&(predicted / left))),
                "{predicted:?}"
            );
        }
    }

    /// Returns the estimate after some of 20 parts.
    fn after(paces: &[f64]) -> Option<f64> {
        let mut remaining = Remaining::new(20.0);
        for pace in paces {
            remaining.elapse(*pace);
            remaining.finish(1.0);
        }
        remaining.seconds()
    }

    #[test]
    fn few_or_uneven_parts_get_no_estimate() {
        assert_eq!(after(&[1.0; 14]), None, "too early");
        assert_eq!(after(&[1.0; 16]), Some(4.0));
        assert_eq!(after(&[1.0; 20]), None, "nothing is left");
        let mut uneven = [1.0; 16];
        uneven[3] = 2.1;
        assert_eq!(after(&uneven), None);
        let mut few = Remaining::new(8.0);
        (0..7).for_each(|_| {
            few.elapse(1.0);
            few.finish(1.0);
        });
        assert_eq!(few.seconds(), None);
    }

    #[test]
    fn skipped_parts_leave_nothing() {
        let mut remaining = Remaining::new(40.0);
        remaining.skip(20.0);
        for _ in 0..18 {
            remaining.elapse(2.0);
            remaining.finish(1.0);
        }
        assert_eq!(remaining.seconds(), Some(4.0));
        remaining.skip(400.0);
        assert_eq!(remaining.seconds(), None);
    }

    #[test]
    fn lanes_share_a_busy_host() {
        let shared = [
            (2, 0.0, 2),
            (2, 2.0, 2),
            (4, 0.0, 2),
            (1, 0.0, 8),
            (0, 0.0, 0),
        ];
        let rates = shared.map(|(lanes, others, processors)| {
            format!("{:.1}", fair_rate(lanes, others, processors))
        });
        assert_eq!(rates, ["2.0", "1.0", "2.0", "1.0", "1.0"]);
    }

    proptest! {
        #[test]
        fn rate_is_at_most_the_host(
            lanes in 1_usize..64,
            others in 0.0_f64..1e4,
            processors in 1_usize..512,
        ) {
            let rate = fair_rate(lanes, others, processors);
            prop_assert!(rate > 0.0 && rate <= lanes.min(processors) as f64 + 1e-9);
            prop_assert!(fair_rate(lanes, others + 1.0, processors) <= rate);
        }

        #[test]
        fn remaining_is_a_time_whatever_happens(
            start in any::<f64>(),
            steps in proptest::collection::vec(any::<(f64, u8)>(), 0..40),
        ) {
            let mut remaining = Remaining::new(start);
            for (seconds, what) in steps {
                match what % 3 {
                    0 => remaining.elapse(seconds),
                    1 => remaining.finish(seconds),
                    _ => remaining.skip(seconds),
                }
                prop_assert!(
                    remaining
                        .seconds()
                        .is_none_or(|seconds| seconds.is_finite() && seconds > 0.0)
                );
            }
        }
    }
}
