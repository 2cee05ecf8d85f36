//! How often ratings are wrong, and how often they find what is there.

use super::{Chance, Noise};
use crate::{Better, History, Scores, Verdict, rate};

/// Deviation of the noise in logarithms: 1 % of the value.
const WIDTH: f64 = 0.01;
/// A value of the base.
const LEVEL: f64 = 100.0;
/// Groups by which the deviation of scores is found.
const GROUPS_MANY: usize = 4000;

/// Where the noise of values comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All of it from within the groups.
    Within(Noise),
    /// As much again, normal, from the groups' fresh starts.
    Between,
}

impl Kind {
    /// The five kinds by which ratings are calibrated.
    pub const ALL: [Self; 5] = [
        Self::Within(Noise::Normal),
        Self::Within(Noise::Outliers),
        Self::Within(Noise::Bimodal),
        Self::Within(Noise::Autocorrelated),
        Self::Between,
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Within(noise) => noise.name(),
            Self::Between => "between groups",
        }
    }

    fn group(self, count: usize, chance: &mut Chance) -> Vec<f64> {
        match self {
            Self::Within(noise) => noise.values(count, chance),
            Self::Between => {
                let start = chance.normal();
                Noise::Normal.values(count, chance).into_iter().map(|value| value + start).collect()
            }
        }
    }
}

/// What is compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Design {
    /// Groups on each side.
    pub groups: usize,
    /// Values in each group.
    pub values: usize,
    /// Sets of two groups in the history.
    pub history: usize,
}

/// Shares of trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// How many trials.
    pub trials: usize,
    /// Equal sides with p of at most 5 %.
    pub false_alarms: f64,
    /// The interval of 95 % holds the true ratio.
    pub coverage: f64,
    /// Sides that differ by 3 deviations of a score, with p of at most 5 %.
    pub power: f64,
    /// Sides that differ by the margin, said to be the same.
    pub false_same: f64,
    /// Equal sides said to be the same, with a margin of 3 deviations of a score.
    pub same: f64,
}

impl Calibration {
    /// Rates sides of a kind and a design.
    ///
    /// # Panics
    /// When the design has no groups or no values.
    #[must_use]
    #[expect(clippy::expect_used, reason = "what is made here is finite and above zero; not part of what judges")]
    pub fn measure(kind: Kind, design: Design, trials: usize, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut scores = |groups: usize, shift: f64| {
            let group = |chance: &mut Chance| {
                let noise = kind.group(design.values, chance).into_iter();
                noise.map(|value| LEVEL * (WIDTH * value + shift).exp()).collect::<Vec<f64>>()
            };
            let groups: Vec<Vec<f64>> = (0..groups).map(|_| group(&mut chance)).collect();
            Scores::of(&groups, Better::Higher).expect("values above zero")
        };
        let mut many = History::default();
        many.add(&scores(GROUPS_MANY, 0.0));
        let step = 3.0 * many.variance().expect("many groups").sqrt();
        let mut counts = [0_usize; 5];
        for _ in 0..trials {
            let mut history = History::default();
            (0..design.history).for_each(|_| history.add(&scores(2, 0.0)));
            let base = scores(design.groups, 0.0);
            let equal = rate(&base, &scores(design.groups, 0.0), &history);
            let other = rate(&base, &scores(design.groups, step), &history);
            let p = |rating: &crate::Rating| rating.precision.map_or(1.0, |precision| precision.p);
            let holds = equal.interval(0.95).is_some_and(|ends| ends.low <= 1.0 && 1.0 <= ends.high);
            let same = |rating: &crate::Rating| rating.verdict(step.exp_m1(), 1.0) == Some(Verdict::Same);
            let seen = [p(&equal) <= 0.05, holds, p(&other) <= 0.05, same(&other), same(&equal)];
            counts.iter_mut().zip(seen).for_each(|(count, seen)| *count += usize::from(seen));
        }
        let [false_alarms, coverage, power, false_same, same] = counts.map(|count| count as f64 / trials.max(1) as f64);
        Self { trials, false_alarms, coverage, power, false_same, same }
    }

    /// Returns the standard error of a share that is 5 % in truth.
    #[must_use]
    pub fn error(&self) -> f64 {
        (0.05 * 0.95 / self.trials.max(1) as f64).sqrt()
    }
}
