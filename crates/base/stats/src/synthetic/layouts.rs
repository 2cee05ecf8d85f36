//! How often paired differences are called better or worse where chance alone arranges both sides,
//! and how often a difference is found, by number of pairs.
//!
//! Each side's value scatters by one floor, drawn anew for each pair and side. The floor that the
//! rule knows was measured before, with five values.

use super::Chance;
use crate::{KnownScatter, Verdict, estimate_pairs};

/// The floor, as a logarithm: 5 %.
const FLOOR: f64 = 0.05;
/// The difference that is looked for.
const STEP: f64 = 0.05;
/// The margin where differences are looked for.
const MARGIN: f64 = 0.01;
/// Values by which a floor is measured beforehand.
const VALUES: usize = 5;

/// How values of one subject are distributed over arrangements, with a deviation of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layouts {
    /// Normal.
    Normal,
    /// Two modes: 30 % lie six deviations of the rest higher.
    Modes,
    /// Exponential: many low ones, few high ones.
    Skewed,
    /// Student's t of four degrees.
    Heavy,
}

/// What decides about paired differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairRule {
    /// All must lie beyond the margin, and their median beyond the floor below five pairs.
    Unanimous,
    /// The moderated estimate, with this many degrees for the floor.
    Moderated(f64),
}

/// Shares of trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairShares {
    /// Equal sides without a margin that are called better or worse.
    pub false_alarms: f64,
    /// Sides that differ by the margin, of one floor, that are called better or worse by more, or
    /// the same.
    pub beyond: f64,
    /// See above.
    pub false_same: f64,
    /// Sides that differ by 5 %, found beyond a margin of 1 %.
    pub found: f64,
}

impl Layouts {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Normal, Self::Modes, Self::Skewed, Self::Heavy];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Modes => "70/30",
            Self::Skewed => "exponential",
            Self::Heavy => "t4",
        }
    }

    fn value(self, chance: &mut Chance) -> f64 {
        match self {
            Self::Normal => chance.normal(),
            Self::Modes => {
                let high = if chance.uniform() < 0.3 { 3.0 } else { 0.0 };
                (high - 0.9 + 0.5 * chance.normal()) / 2.14_f64.sqrt()
            }
            Self::Skewed => -(1.0 - chance.uniform()).ln() - 1.0,
            Self::Heavy => {
                let squares: f64 = (0..4).map(|_| chance.normal().powi(2)).sum();
                chance.normal() / (squares / 4.0).sqrt() / 2.0_f64.sqrt()
            }
        }
    }

    /// Judges sides of so many pairs.
    #[must_use]
    pub fn measure(self, pairs: usize, rule: PairRule, trials: usize, seed: u64) -> PairShares {
        let mut chance = Chance::new(seed);
        let mut counts = [0_usize; 4];
        for _ in 0..trials {
            let floor = FLOOR * self.measured(&mut chance);
            let differences: Vec<f64> = (0..pairs)
                .map(|_| FLOOR * (self.value(&mut chance) - self.value(&mut chance)))
                .collect();
            let judge = |shift: f64, margin: f64| {
                let shifted: Vec<f64> = differences.iter().map(|one| one + shift).collect();
                rule.judge(&shifted, floor, margin)
            };
            let differs = |found: Verdict| matches!(found, Verdict::Better | Verdict::Worse);
            let edge = judge(FLOOR, FLOOR);
            let seen = [
                differs(judge(0.0, 0.0)),
                edge == Verdict::Better,
                edge == Verdict::Same,
                judge(STEP, MARGIN) == Verdict::Better,
            ];
            for (count, seen) in counts.iter_mut().zip(seen) {
                *count += usize::from(seen);
            }
        }
        let [false_alarms, beyond, false_same, found] =
            counts.map(|count| count as f64 / trials.max(1) as f64);
        PairShares {
            false_alarms,
            beyond,
            false_same,
            found,
        }
    }

    /// Returns the deviation of five values.
    fn measured(self, chance: &mut Chance) -> f64 {
        let values: Vec<f64> = (0..VALUES).map(|_| self.value(chance)).collect();
        let mean = values.iter().sum::<f64>() / VALUES as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (VALUES - 1) as f64).sqrt()
    }
}

impl PairRule {
    /// That of chaotic rows. The five values by which the floor was measured have four degrees; with
    /// four, one pair is wrong in 9 % of the cases where values are skewed, with three in 7 %.
    pub const CHOSEN: Self = Self::Moderated(2.5);

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Unanimous => "all agree".to_owned(),
            Self::Moderated(degrees) => format!("d0 = {degrees}"),
        }
    }

    fn judge(self, differences: &[f64], floor: f64, margin: f64) -> Verdict {
        let unclear = Verdict::Unclear(crate::Unclear::TooNoisy);
        match self {
            Self::Moderated(degrees) => {
                let known = KnownScatter {
                    variance: 2.0 * floor * floor,
                    degrees,
                };
                estimate_pairs(differences, known, margin)
                    .and_then(|found| found.clear())
                    .unwrap_or(unclear)
            }
            Self::Unanimous => {
                let all = |is: &dyn Fn(f64) -> bool| differences.iter().all(|one| is(*one));
                let size = crate::median(differences).map_or(0.0, f64::abs);
                if all(&|one| one.abs() <= margin) {
                    Verdict::Same
                } else if differences.len() < VALUES && size < floor {
                    unclear
                } else if all(&|one| one > margin) {
                    Verdict::Better
                } else if all(&|one| one < -margin) {
                    Verdict::Worse
                } else {
                    unclear
                }
            }
        }
    }
}
