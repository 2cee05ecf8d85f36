//! Estimates the rest of some work on a shared host: the parts cost processor seconds, and the host delivers a varying number of
//! these per second.

/// Time after which a delivery has a weight of 1/e (seconds).
const MEMORY_S: f64 = 20.0;
/// Weight of the first rate (seconds).
const FIRST_S: f64 = 5.0;
/// Weight of the expected costs (processor seconds).
const TRUST_S: f64 = 5.0;
/// Lower limit of the rate (processor seconds per second), so that no estimate is endless.
const RATE_MIN: f64 = 0.001;

/// Work in progress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remaining {
    /// Expected processor seconds of the unfinished parts.
    left_s: f64,
    /// Expected and actual processor seconds of the finished parts.
    done: [f64; 2],
    /// Delivered processor seconds, and the seconds they took; both fade.
    seen: [f64; 2],
}

impl Remaining {
    /// Returns work of `work_s` processor seconds on a host that is expected to deliver `rate` per second.
    #[must_use]
    pub fn new(work_s: f64, rate: f64) -> Self {
        Self { left_s: sound(work_s), done: [0.0; 2], seen: [sound(rate) * FIRST_S, FIRST_S] }
    }

    /// Adds processor seconds that the host delivered within `elapsed_s` seconds. Later deliveries have more weight.
    pub fn delivered(&mut self, processor_s: f64, elapsed_s: f64) {
        let now = [processor_s, elapsed_s].map(sound);
        let kept = (-now[1] / MEMORY_S).exp();
        self.seen = [0, 1].map(|n| kept * self.seen[n] + now[n]);
    }

    /// Finishes a part that was expected to cost `expected_s` and cost `processor_s` processor seconds.
    pub fn finish(&mut self, expected_s: f64, processor_s: f64) {
        self.skip(expected_s);
        self.done[0] += sound(expected_s);
        self.done[1] += sound(processor_s);
    }

    /// Removes a part without doing it.
    pub fn skip(&mut self, expected_s: f64) {
        self.left_s = (self.left_s - sound(expected_s)).max(0.0);
    }

    /// Returns the seconds that the rest takes: its expected processor seconds, corrected by the finished parts, at the recent rate.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let [expected_s, took_s] = self.done;
        let [delivered_s, elapsed_s] = self.seen;
        let rate = if elapsed_s > 0.0 { delivered_s / elapsed_s } else { 0.0 };
        self.left_s * (TRUST_S + took_s) / (TRUST_S + expected_s) / rate.max(RATE_MIN)
    }
}

/// Returns the processor seconds per second that a fair host delivers to `lanes` threads while `others` compete; at most one
/// processor each.
#[must_use]
pub fn fair_rate(lanes: usize, others: f64, processors: usize) -> f64 {
    let (lanes, processors) = (lanes.max(1) as f64, processors.max(1) as f64);
    lanes * (processors / (lanes + sound(others))).min(1.0)
}

/// Replaces NaN and infinite values by zero and limits the rest to 0..1e12.
fn sound(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, 1e12) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Remaining, fair_rate};

    /// Simulates parts of equal cost at a constant rate; returns the estimated and the true rest before each part.
    fn work(mut remaining: Remaining, parts: u32, [expected_s, cost_s]: [f64; 2], rate: f64) -> Vec<(f64, f64)> {
        let step = |part| {
            let said = (remaining.seconds(), f64::from(parts - part) * cost_s / rate);
            remaining.delivered(cost_s, cost_s / rate);
            remaining.finish(expected_s, cost_s);
            said
        };
        (0..parts).map(step).collect()
    }

    #[test]
    fn remaining_on_a_busy_host_is_corrected() {
        // 200 processor seconds were to take 100 s on two processors; others take three quarters of the host.
        let said = work(Remaining::new(200.0, 2.0), 100, [2.0, 2.0], 0.5);
        assert_eq!(said[0], (100.0, 400.0));
        let half = said[50];
        assert!((half.0 / half.1 - 1.0).abs() < 0.01, "{half:?}");
        assert!((said[5].0 / said[5].1 - 1.0).abs() < 0.35, "{:?}", said[5]);
    }

    #[test]
    fn remaining_follows_a_wrong_guess_of_costs() {
        let said = work(Remaining::new(300.0, 1.0), 100, [3.0, 0.5], 1.0);
        let half = said[50];
        assert!(half.0 < 1.5 * half.1, "{half:?}");
    }

    #[test]
    fn skipped_parts_leave_nothing() {
        let mut remaining = Remaining::new(10.0, 1.0);
        remaining.skip(4.0);
        assert!((remaining.seconds() - 6.0).abs() < 1e-9);
        remaining.skip(40.0);
        assert!(remaining.seconds().abs() < 1e-9);
    }

    #[test]
    fn lanes_share_a_busy_host() {
        let shared = [(2, 0.0, 2), (2, 2.0, 2), (4, 0.0, 2), (1, 0.0, 8), (0, 0.0, 0)];
        let rates = shared.map(|(lanes, others, processors)| format!("{:.1}", fair_rate(lanes, others, processors)));
        assert_eq!(rates, ["2.0", "1.0", "2.0", "1.0", "1.0"]);
    }

    proptest! {
        #[test]
        fn rate_is_at_most_the_host(lanes in 1_usize..64, others in 0.0_f64..1e4, processors in 1_usize..512) {
            let rate = fair_rate(lanes, others, processors);
            prop_assert!(rate > 0.0 && rate <= lanes.min(processors) as f64 + 1e-9);
            prop_assert!(fair_rate(lanes, others + 1.0, processors) <= rate);
        }

        #[test]
        fn exact_expectations_give_exact_times(parts in 1_u32..200, cost_s in 0.01_f64..100.0, rate in 0.05_f64..16.0) {
            let all = Remaining::new(f64::from(parts) * cost_s, rate);
            for (said, left) in work(all, parts, [cost_s; 2], rate) {
                prop_assert!((said - left).abs() <= 1e-6 * (1.0 + left), "{said} and {left}");
            }
        }

        #[test]
        fn remaining_is_a_time_whatever_happens(
            start in any::<[f64; 2]>(),
            steps in proptest::collection::vec(any::<([f64; 2], u8)>(), 0..40),
        ) {
            let mut remaining = Remaining::new(start[0], start[1]);
            for ([one, two], what) in steps {
                let before = remaining.seconds();
                match what % 3 {
                    0 => remaining.delivered(one, two),
                    1 => remaining.finish(one, two),
                    _ => {
                        remaining.skip(one);
                        prop_assert!(remaining.seconds() <= before);
                    }
                }
                prop_assert!(remaining.seconds().is_finite() && remaining.seconds() >= 0.0);
            }
        }
    }
}
