//! Two groups, one of each side, by the values within them.
//!
//! Values within a group share its start, so that they cannot tell how much starts differ. This
//! rating takes starts to differ as much as single values do, and its verdict is of a kind of its
//! own: callers never mix it with those of several groups.

use super::precision::{beyond, student_upper};
use super::resolution::Resolution;
use super::scores::trimmed_at_each_end;
use super::{RatioEstimate, Verdict};
use crate::distribution::student_upper_quantile;

/// Fewest values of a group: fewer do not show how they scatter.
const VALUES_MIN: usize = 3;

/// What the values within two groups say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WithinEstimate {
    /// Logarithm of the ratio: above 0 is better.
    pub effect: f64,
    /// Standard error of it, with starts that differ as much as values do.
    pub error: f64,
    /// Its degrees of freedom.
    pub degrees: f64,
    /// Chance of an effect at least so large if the true one is within the margin.
    pub p_margin: f64,
    margin: f64,
    coarse: f64,
}

/// What the values of one group tell of its mean, as the rating has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupMean {
    /// Squared standard error of the trimmed mean (Yuen 1974).
    square: f64,
    degrees: f64,
    values: f64,
    /// What its values tell of the clock.
    resolution: Resolution,
}

impl GroupMean {
    /// As many numbers hold one.
    pub const NUMBERS: usize = 3 + Resolution::NUMBERS;

    /// Computes it; `None` for values that have no logarithm, and for fewer than three.
    #[must_use]
    pub fn compute(values: &[f64]) -> Option<Self> {
        let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        if logs.len() < VALUES_MIN || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        logs.sort_by(f64::total_cmp);
        let cut = trimmed_at_each_end(logs.len());
        let (low, high) = (logs[cut], logs[logs.len() - 1 - cut]);
        let pulled: Vec<f64> = logs.iter().map(|log| log.clamp(low, high)).collect();
        let all = logs.len() as f64;
        let mean = pulled.iter().sum::<f64>() / all;
        let squares: f64 = pulled.iter().map(|log| (log - mean).powi(2)).sum();
        let kept = (logs.len() - 2 * cut) as f64;
        Some(Self {
            square: squares / (kept * (kept - 1.0)),
            degrees: kept - 1.0,
            values: all,
            resolution: Resolution::read(values),
        })
    }

    /// Returns the numbers that [`from_numbers`](Self::from_numbers) makes it of again.
    #[must_use]
    pub fn to_numbers(self) -> [f64; Self::NUMBERS] {
        let [gap, ties, place, mean, deviation] = self.resolution.to_numbers();
        let Self {
            square,
            degrees,
            values,
            ..
        } = self;
        [square, degrees, values, gap, ties, place, mean, deviation]
    }

    /// Makes it of numbers.
    #[must_use]
    pub fn from_numbers(numbers: [f64; Self::NUMBERS]) -> Self {
        let [square, degrees, values, steps @ ..] = numbers;
        Self {
            square,
            degrees,
            values,
            resolution: Resolution::from_numbers(steps),
        }
    }

    /// Returns the squared error with one more value's variance, for the start.
    fn with_start(self) -> f64 {
        self.square * (1.0 + self.values)
    }
}

/// Rates the values of one group against those of another, where a rating has no precision: each
/// side has one group, and there is no history. The effect is the rating's.
///
/// The error is that of Welch's t over the values, by the trimmed means that the effect is of (Yuen
/// 1974), with one more value's variance on each side for the start: without trimming
/// `sqrt(s1² (1 + 1/n1) + s2² (1 + 1/n2))`.
///
/// `None` for values that do not scatter, and for a rating that has a precision.
#[must_use]
pub fn estimate_within(
    rating: &RatioEstimate,
    base: &GroupMean,
    new: &GroupMean,
    margin: f64,
) -> Option<WithinEstimate> {
    let is_alone = rating.groups == (1, 1) && rating.precision.is_none();
    if !(is_alone && margin.is_finite() && margin > 0.0) {
        return None;
    }
    let coarse = base.resolution.coarse(new.resolution).difference;
    let squares = [*base, *new].map(GroupMean::with_start);
    let error = (squares[0] + squares[1]).sqrt();
    let parts = squares[0].powi(2) / base.degrees + squares[1].powi(2) / new.degrees;
    let degrees = (squares[0] + squares[1]).powi(2) / parts;
    if !(error > 0.0 && error.is_finite() && degrees.is_finite()) {
        return None;
    }
    let effect = rating.effect;
    let margin = margin.ln_1p();
    let p_margin = beyond(effect, margin + coarse, |difference| {
        student_upper(difference / error, degrees)
    });
    Some(WithinEstimate {
        effect,
        error,
        degrees,
        p_margin,
        margin,
        coarse,
    })
}

impl WithinEstimate {
    /// Returns what the values come to; `None` where they do not decide. `q` is
    /// [`p_margin`](Self::p_margin), or what became of it among many.
    #[must_use]
    pub fn verdict(&self, q: f64) -> Option<Verdict> {
        let is_beyond = self.effect.abs() > self.margin;
        if is_beyond && (0.0..=super::estimate::Q_MAX).contains(&q) {
            return Some(if self.effect > 0.0 {
                Verdict::Better
            } else {
                Verdict::Worse
            });
        }
        let half = student_upper_quantile(0.05, self.degrees)? * self.error + self.coarse;
        (self.effect.abs() + half < self.margin).then_some(Verdict::Same)
    }
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "rates for --nocapture")]
mod tests {
    use super::super::{Better, History, Scores, Verdict, estimate_ratio};
    use super::{GroupMean, WithinEstimate, estimate_within};
    use crate::synthetic::Chance;

    const MARGIN: f64 = 0.02;

    fn within(base: &[f64], new: &[f64]) -> Option<WithinEstimate> {
        let side = |values: &[f64]| Scores::new(&[values], Better::Lower).unwrap();
        let rating = estimate_ratio(&side(base), &side(new), &History::default(), MARGIN);
        let [base, new] = [base, new].map(GroupMean::compute);
        estimate_within(&rating, &base?, &new?, MARGIN)
    }

    fn verdict(base: &[f64], new: &[f64]) -> Option<Verdict> {
        within(base, new).and_then(|found| found.verdict(found.p_margin))
    }

    #[test]
    fn doubled_time_is_worse_within_runs() {
        let base = [40.0, 40.2, 40.1];
        assert_eq!(verdict(&base, &base.map(|v| v * 2.0)), Some(Verdict::Worse));
        assert_eq!(
            verdict(&base, &base.map(|v| v / 2.0)),
            Some(Verdict::Better)
        );
        assert_eq!(verdict(&base, &[40.1, 40.15, 40.0]), Some(Verdict::Same));
        assert_eq!(verdict(&[40.0, 44.0, 36.0], &[42.0, 47.0, 38.0]), None);
        // One cold value does not hide the difference of the others.
        let cold = [160.0, 40.0, 40.2, 40.1, 40.3];
        assert_eq!(verdict(&cold, &cold.map(|v| v * 2.0)), Some(Verdict::Worse));
    }

    #[test]
    fn few_or_constant_values_do_not_decide() {
        assert_eq!(within(&[1.0, 1.1], &[2.0, 2.1, 2.2]), None);
        assert_eq!(verdict(&[1.0; 5], &[2.0; 5]), None);
        assert!(GroupMean::compute(&[0.0, 1.0, 2.0]).is_none());
    }

    #[test]
    fn rated_sides_are_not_judged_by_their_values() {
        let side = |values: &[[f64; 1]]| Scores::new(values, Better::Lower).unwrap();
        let base = side(&[[40.0], [40.1]]);
        let new = side(&[[80.0], [80.1]]);
        let rating = estimate_ratio(&base, &new, &History::default(), MARGIN);
        let group = GroupMean::compute(&[40.0, 40.1, 40.2]).unwrap();
        assert_eq!(estimate_within(&rating, &group, &group, MARGIN), None);
    }

    #[test]
    fn groups_written_as_numbers_stay_the_same() {
        for values in [
            &[40.0, 40.2, 40.1][..],
            &[40.0, 40.0, 41.0],
            &[7.0; 6],
            &[1.0 / 3.0, 1.0 / 3.0, 2.0 / 7.0, 0.1],
        ] {
            let group = GroupMean::compute(values).unwrap();
            assert_eq!(GroupMean::from_numbers(group.to_numbers()), group);
        }
    }

    /// How values of one run come about: 1 % of scatter within it.
    #[derive(Debug, Clone, Copy)]
    struct Noise {
        /// Deviation between starts, in that of values.
        between: f64,
        /// What a value remembers of the one before.
        memory: f64,
        /// How far the first value lies above the others, in percent.
        cold: f64,
    }

    impl Noise {
        fn run(self, level: f64, count: usize, chance: &mut Chance) -> Vec<f64> {
            let start = self.between * chance.normal();
            let mut last = chance.normal();
            let mut values = Vec::new();
            for place in 0..count {
                let fresh = (1.0 - self.memory * self.memory).sqrt() * chance.normal();
                last = self.memory * last + fresh;
                let cold = if place == 0 { self.cold } else { 0.0 };
                values.push(level * (0.01 * (start + last + cold)).exp());
            }
            values
        }

        /// Returns the share of pairs of runs of levels that differ so much with a verdict of better
        /// or worse.
        fn share(self, ratio: f64, count: usize) -> f64 {
            const TRIALS: u16 = 2000;
            let mut chance = Chance::new(48);
            let mut decided = 0_u16;
            for _ in 0..TRIALS {
                let base = self.run(100.0, count, &mut chance);
                let new = self.run(100.0 * ratio, count, &mut chance);
                let found = verdict(&base, &new);
                decided += u16::from(matches!(found, Some(Verdict::Better | Verdict::Worse)));
            }
            f64::from(decided) / f64::from(TRIALS)
        }
    }

    #[test]
    fn starts_like_values_raise_few_false_alarms() {
        // A true rate of 5 %, and two deviations of 2000 trials.
        const MOST: f64 = 0.06;
        let still = Noise {
            between: 0.0,
            memory: 0.0,
            cold: 0.0,
        };
        let kinds = [
            ("starts do not differ", still, MOST),
            (
                "starts differ half as much as values",
                Noise {
                    between: 0.5,
                    ..still
                },
                MOST,
            ),
            (
                "starts differ as much as values",
                Noise {
                    between: 1.0,
                    ..still
                },
                MOST,
            ),
            (
                "values remember a half",
                Noise {
                    memory: 0.5,
                    ..still
                },
                MOST,
            ),
            (
                "the first value is 5 % above",
                Noise { cold: 5.0, ..still },
                MOST,
            ),
            // What such a verdict cannot know: printed, and not promised.
            (
                "starts differ three times as much",
                Noise {
                    between: 3.0,
                    ..still
                },
                1.0,
            ),
            (
                "starts differ ten times as much",
                Noise {
                    between: 10.0,
                    ..still
                },
                1.0,
            ),
        ];
        println!("false alarms at the margin's edge (a true difference of 2 %), and +10 % found");
        for (name, noise, most) in kinds {
            for count in [3, 5, 10, 30] {
                let alarms = noise.share(1.0 + MARGIN, count);
                let found = noise.share(1.1, count);
                println!("{name}, {count} values: {alarms:.3}, {found:.2}");
                assert!(alarms <= most, "{name}, {count} values: {alarms}");
            }
        }
        assert!(still.share(1.1, 5) > 0.8);
    }
}
