//! How often looks after each further group are wrong, how often they find what is there, and how
//! soon.

use super::Chance;
use crate::distribution::{normal_two_sided, normal_upper_quantile};
use crate::ratio::{FIRST, bounds};
use crate::{Better, History, Scores, Sequential, Unclear, Verdict, estimate_ratio};

/// One unit of noise in logarithms: 1 % of the value.
const WIDTH: f64 = 0.01;
/// A value of the base.
const LEVEL: f64 = 100.0;
/// Groups of each side at which forecasts are taken.
const ASKED: usize = 3;

/// Noise between groups of one value. Its deviation is 1 % of the value. Sides take turns: A B B A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Between {
    /// Normal.
    Normal,
    /// Student's t of three degrees.
    Heavy,
    /// The logarithm of the noise is normal, with a deviation of 0.8.
    Lognormal,
    /// One in five groups six of the others' deviations higher.
    Modes,
    /// Each group remembers so much of the one before, of whichever side.
    Memory(f64),
    /// Normal; the new side's second group lies eleven off.
    OneOff,
    /// Normal; the new side has three times the deviation.
    Unequal,
    /// Each group remembers so much of the one before of its own side: no rule can tell that from a
    /// difference.
    MemoryApart(f64),
}

impl Between {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Normal,
        Self::Heavy,
        Self::Lognormal,
        Self::Modes,
        Self::Memory(0.7),
        Self::OneOff,
        Self::Unequal,
        Self::MemoryApart(0.7),
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Normal => "normal".to_owned(),
            Self::Heavy => "t3".to_owned(),
            Self::Lognormal => "lognormal".to_owned(),
            Self::Modes => "80/20".to_owned(),
            Self::Memory(memory) => format!("AR(1) {memory}"),
            Self::OneOff => "one group off".to_owned(),
            Self::Unequal => "3 × deviation".to_owned(),
            Self::MemoryApart(memory) => format!("AR(1) {memory} apart"),
        }
    }

    /// Returns the noise of so many groups of the base and of the new side.
    fn sides(self, groups: usize, chance: &mut Chance) -> [Vec<f64>; 2] {
        let mut sides = [Vec::with_capacity(groups), Vec::with_capacity(groups)];
        let mut last = [chance.normal(), chance.normal()];
        for (number, turn) in (0..groups).flat_map(|number| [(number, 0), (number, 1)]) {
            let side = (number + turn) % 2;
            sides[side].push(match self {
                Self::Normal => chance.normal(),
                Self::Heavy => {
                    let squares: f64 = (0..3).map(|_| chance.normal().powi(2)).sum();
                    chance.normal() / squares.sqrt()
                }
                Self::Lognormal => {
                    // Less its mean, through its deviation.
                    let variance = 0.64_f64;
                    let mean = (variance / 2.0).exp();
                    ((0.8 * chance.normal()).exp() / mean - 1.0) / variance.exp_m1().sqrt()
                }
                Self::Modes => {
                    let high = if chance.uniform() < 0.2 { 6.0 } else { 0.0 };
                    (chance.normal() + high - 1.2) / (1.0 + 36.0 * 0.16_f64).sqrt()
                }
                Self::Memory(memory) => remember(&mut last[0], memory, chance),
                Self::MemoryApart(memory) => remember(&mut last[side], memory, chance),
                Self::OneOff => chance.normal() + if side == 1 && number == 1 { 11.0 } else { 0.0 },
                Self::Unequal => chance.normal() * if side == 1 { 3.0 } else { 1.0 },
            });
        }
        sides
    }
}

/// The share of new noise keeps the deviation at 1.
fn remember(last: &mut f64, memory: f64, chance: &mut Chance) -> f64 {
    *last = memory * *last + (1.0 - memory * memory).sqrt() * chance.normal();
    *last
}

/// When verdicts are sought.
#[derive(Debug, Clone)]
pub enum Rule {
    /// After each further group.
    Looks(Sequential),
    /// Once, with so many groups of each side.
    Once(usize),
}

impl Rule {
    /// Looks with bounds like those of O'Brien and Fleming (Lan and DeMets 1983).
    #[must_use]
    pub fn fleming(groups_max: usize) -> Self {
        Self::spending(groups_max, |chance, share| {
            let z = normal_upper_quantile(chance / 4.0).unwrap_or_default();
            2.0 * normal_two_sided(z / share.sqrt())
        })
    }

    /// Looks with bounds like Pocock's (Lan and DeMets 1983).
    #[must_use]
    pub fn pocock(groups_max: usize) -> Self {
        Self::spending(groups_max, |chance, share| {
            chance * (1.0 + (std::f64::consts::E - 1.0) * share).ln()
        })
    }

    fn spending(groups_max: usize, spent: impl Fn(f64, f64) -> f64) -> Self {
        Self::Looks(Sequential::with_bounds(groups_max, |chance| {
            bounds(FIRST, groups_max, |share| spent(chance, share))
        }))
    }

    /// Looks without end: a normal mixture (Robbins 1970), tightest at some ten groups.
    #[must_use]
    pub fn mixture(groups_max: usize) -> Self {
        Self::Looks(Sequential::with_bounds(groups_max, |chance| {
            (FIRST..=groups_max)
                .map(|groups| mixture_bound(chance, groups as f64))
                .collect()
        }))
    }

    fn groups_max(&self) -> usize {
        match self {
            Self::Looks(plan) => plan.groups_max(),
            Self::Once(groups) => *groups,
        }
    }
}

/// Returns the bound of a normal mixture after so many groups.
fn mixture_bound(chance: f64, groups: f64) -> f64 {
    /// Makes the bound tightest at some ten groups.
    const MIXED: f64 = 1.2;
    let all = groups + MIXED;
    (all / groups * (all / MIXED / (chance * chance)).ln())
        .max(0.0)
        .sqrt()
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    /// The noise.
    pub noise: Between,
    /// How much better the new side is, in deviations.
    pub shift: f64,
    /// The margin in deviations: above zero.
    pub margin: f64,
}

/// Trials by their verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ends {
    /// How many trials.
    pub trials: usize,
    /// Said to be better.
    pub better: usize,
    /// Said to be worse.
    pub worse: usize,
    /// Said to be the same.
    pub same: usize,
    /// Groups of each side that the verdicts took, all trials together.
    pub groups: usize,
    /// Trials that were unclear at three groups, and expected to be the same within the plan.
    pub expected: usize,
    /// Of these, the same with as many groups as was forecast.
    pub fulfilled: usize,
}

impl Course {
    /// Plays a course again and again.
    ///
    /// # Panics
    /// When the rule has no groups.
    #[must_use]
    pub fn play(self, rule: &Rule, trials: usize, seed: u64) -> Ends {
        let mut chance = Chance::new(seed);
        let mut ends = Ends {
            trials,
            ..Ends::default()
        };
        (0..trials).for_each(|_| self.play_once(rule, &mut ends, &mut chance));
        ends
    }

    fn play_once(self, rule: &Rule, ends: &mut Ends, chance: &mut Chance) {
        let most = rule.groups_max();
        let sides = self.noise.sides(most, chance);
        let margin = (WIDTH * self.margin).exp_m1();
        let mut forecast = None;
        let first = if matches!(rule, Rule::Once(_)) {
            most
        } else {
            FIRST
        };
        for groups in first..=most {
            let base = scores(&sides[0][..groups], 0.0);
            let new = scores(&sides[1][..groups], self.shift);
            let rating = match rule {
                Rule::Looks(plan) => plan.look(&base, &new, margin).rating,
                Rule::Once(_) => estimate_ratio(&base, &new, &History::default(), margin),
            };
            let verdict = rating.verdict(rating.p());
            match verdict {
                Some(Verdict::Better) => ends.better += 1,
                Some(Verdict::Worse) => ends.worse += 1,
                Some(Verdict::Same) => {
                    ends.same += 1;
                    ends.fulfilled += usize::from(forecast.is_some_and(|by| groups <= by));
                }
                Some(Verdict::Unclear(Unclear::MoreGroups(more)))
                    if groups == ASKED && groups + more <= most =>
                {
                    forecast = Some(groups + more);
                    ends.expected += 1;
                }
                Some(Verdict::Unclear(_)) | None => {}
            }
            if groups == most || !matches!(verdict, Some(Verdict::Unclear(_)) | None) {
                ends.groups += groups;
                return;
            }
        }
    }
}

#[expect(
    clippy::expect_used,
    reason = "what is made here is finite and above zero; not part of what judges"
)]
fn scores(noise: &[f64], shift: f64) -> Scores {
    let values: Vec<[f64; 1]> = noise
        .iter()
        .map(|noise| [LEVEL * (WIDTH * (noise + shift)).exp()])
        .collect();
    Scores::new(&values, Better::Higher).expect("values above zero")
}

impl Ends {
    /// Returns the share of a count among the trials.
    #[must_use]
    pub fn share(&self, count: usize) -> f64 {
        count as f64 / self.trials.max(1) as f64
    }

    /// Returns the groups of each side that a verdict took, the mean.
    #[must_use]
    pub fn groups_mean(&self) -> f64 {
        self.groups as f64 / self.trials.max(1) as f64
    }

    /// Returns the most that a share of 5 % may show: two standard errors more.
    #[must_use]
    pub fn most(&self) -> f64 {
        0.05 + 2.0 * (0.05 * 0.95 / self.trials.max(1) as f64).sqrt()
    }
}
