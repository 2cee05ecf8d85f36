//! How often ratings are wrong, and how much they find, beside histories that are right and wrong.

use super::Chance;
use crate::{Better, History, Scores, estimate_ratio};

/// Deviation of a group, as a logarithm: 1 %.
const WIDTH: f64 = 0.01;
/// The difference that is looked for, in deviations.
const STEP: f64 = 3.0;
/// Sets of two groups of a history.
const SETS: usize = 30;

/// Most groups of a side that are tried.
const MOST: usize = 12;

/// What a history shows beside the sides, which scatter by one deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// There is none.
    None,
    /// It scatters as the sides do.
    Right,
    /// The same; one group of one set is ten times as high.
    Wild,
    /// It scatters 2.5 times as much as the sides.
    Louder,
    /// One set in five scatters three times as much.
    Mixed,
    /// Deviations vary by 40 % from set to set and from side to side.
    Varying,
    /// Both sides scatter 2.5 times as much as it.
    Quieter,
    /// The base scatters twice as much as it.
    LoudBase,
    /// The base scatters three times as much as it.
    LouderBase,
}

/// Shares of trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PastShares {
    /// Equal sides with p of at most 5 %.
    pub false_alarms: f64,
    /// Sides that differ by 3 deviations, with p of at most 5 %.
    pub power: f64,
}

impl Past {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Right,
        Self::Wild,
        Self::Louder,
        Self::Mixed,
        Self::Varying,
        Self::Quieter,
        Self::LoudBase,
        Self::LouderBase,
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no history",
            Self::Right => "right",
            Self::Wild => "one group × 10",
            Self::Louder => "2.5 × louder",
            Self::Mixed => "a fifth 3 × louder",
            Self::Varying => "varies by 40 %",
            Self::Quieter => "sides 2.5 × noisier",
            Self::LoudBase => "base 2 × noisier",
            Self::LouderBase => "base 3 × noisier",
        }
    }

    /// Rates sides of so many groups beside such a history.
    #[must_use]
    pub fn measure(self, groups: (usize, usize), trials: usize, seed: u64) -> PastShares {
        let mut chance = Chance::new(seed);
        let mut alarms = 0_usize;
        let mut found = 0_usize;
        for _ in 0..trials {
            let history = self.history(&mut chance);
            let (base, new) = self.sides(&mut chance);
            let base = scores(&noise(groups.0, base, &mut chance));
            let mut logs = noise(groups.1, new, &mut chance);
            let is_alarm = p(&base, &scores(&logs), &history) <= 0.05;
            logs.iter_mut().for_each(|log| *log += WIDTH * STEP);
            let is_found = p(&base, &scores(&logs), &history) <= 0.05;
            alarms += usize::from(is_alarm);
            found += usize::from(is_found);
        }
        PastShares {
            false_alarms: alarms as f64 / trials.max(1) as f64,
            power: found as f64 / trials.max(1) as f64,
        }
    }

    /// Returns how many groups of each side find a difference of 3 deviations with a chance of 80 %,
    /// with the line between the two numbers around it; `None` for more than twelve.
    #[must_use]
    pub fn groups_to_find(self, trials: usize, seed: u64) -> Option<f64> {
        const WANTED: f64 = 0.8;
        let mut before = 0.0;
        for groups in 1..=MOST {
            let power = self.measure((groups, groups), trials, seed).power;
            if power >= WANTED {
                return Some(groups as f64 - (power - WANTED) / (power - before));
            }
            before = power;
        }
        None
    }

    fn history(self, chance: &mut Chance) -> History {
        let mut history = History::default();
        let count = if self == Self::None { 0 } else { SETS };
        for number in 0..count {
            let deviation = match self {
                Self::Louder => 2.5,
                Self::Mixed if number % 5 == 0 => 3.0,
                Self::Varying => (0.4 * chance.normal()).exp(),
                _ => 1.0,
            };
            let wild = if self == Self::Wild && number == 0 {
                std::f64::consts::LN_10
            } else {
                0.0
            };
            let mut logs = noise(2, deviation, chance);
            logs[0] += wild;
            history.add(&scores(&logs));
        }
        history
    }

    /// Returns the deviations of both sides.
    fn sides(self, chance: &mut Chance) -> (f64, f64) {
        match self {
            Self::Quieter => (2.5, 2.5),
            Self::LoudBase => (2.0, 1.0),
            Self::LouderBase => (3.0, 1.0),
            Self::Varying => {
                let base = (0.4 * chance.normal()).exp();
                (base, (0.4 * chance.normal()).exp())
            }
            _ => (1.0, 1.0),
        }
    }
}

fn noise(count: usize, deviation: f64, chance: &mut Chance) -> Vec<f64> {
    (0..count)
        .map(|_| WIDTH * deviation * chance.normal())
        .collect()
}

#[expect(
    clippy::expect_used,
    reason = "what is made here is finite and above zero; not part of what judges"
)]
fn scores(logs: &[f64]) -> Scores {
    let groups: Vec<[f64; 1]> = logs.iter().map(|log| [100.0 * log.exp()]).collect();
    Scores::new(&groups, Better::Higher).expect("values above zero")
}

fn p(base: &Scores, new: &Scores, history: &History) -> f64 {
    let rating = estimate_ratio(base, new, history, 0.0);
    rating.precision.map_or(1.0, |precision| precision.p)
}
