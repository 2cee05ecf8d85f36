//! Noise kinds that disturb groups of two sides that take turns, and how often rules of several
//! tools call equal sides different.
//!
//! Turns are drawn in blocks of two groups of each side: a side and the other, then the reverse,
//! with the first one by chance. Half of the kinds, by a fixed hash of their names, are kept back:
//! nothing is tuned on them.

use super::Chance;
use crate::ratio::FIRST;
use crate::{
    Better, History, Scores, Sequential, Verdict, estimate_neighbours, estimate_ratio, rank_test,
};

/// One unit of noise in logarithms.
const WIDTH: f64 = 0.01;
/// Values in each group, and their deviation beside one of the groups.
const VALUES: usize = 10;
const WITHIN: f64 = 0.5;
/// A margin that nothing lies within.
const NO_MARGIN: f64 = 1e-9;
/// Resamplings of the bootstrap.
const RESAMPLED: usize = 100;

/// A kind of noise. Its unit is 1 % of the value; all have it besides what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbed {
    /// None but that.
    Quiet,
    /// Log-normal tails: the exponential of a normal number.
    LogNormal,
    /// 5 % of the groups at 1.3 times the value.
    Stragglers,
    /// Two modes, three apart, that last for several turns.
    Markov,
    /// Each fourth turn five higher.
    PeriodFour,
    /// The first turns higher, less and less.
    WarmUp,
    /// Rises to three and falls again over the turns.
    Thermal,
    /// Three times as much, shared by the two groups of a pair.
    Common,
    /// A rise seen by a clock of two.
    QuantisedDrift,
    /// One value in twenty is thirty higher.
    OutlierValues,
    /// The second half of the turns lies four higher.
    DayShift,
    /// Each turn remembers 0.7 of the one before.
    MemorySeven,
    /// Each turn remembers 0.9 of the one before.
    MemoryNine,
    /// Student's t of three degrees.
    Heavy,
    /// Exponential.
    Skewed,
    /// Uniform.
    Uniform,
    /// Rises over seven turns and falls at once.
    Sawtooth,
    /// Each turn adds half a step to the one before.
    Walk,
    /// The new side twice as noisy.
    Unequal,
}

/// A rule that calls sides different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The estimate of this crate, without a history.
    Ours,
    /// The same by neighbours: a group and the other side's next to it.
    Neighbours,
    /// Intervals of one standard error that do not overlap, which readers of perf stat -r take.
    PerfStat,
    /// Mann and Whitney's test of all values, as benchstat does.
    Pooled,
    /// A bootstrap of the difference of means of all values, as criterion does.
    Bootstrap,
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Ours,
        Self::Neighbours,
        Self::PerfStat,
        Self::Pooled,
        Self::Bootstrap,
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Neighbours => "neighbours",
            Self::PerfStat => "perf stat",
            Self::Pooled => "benchstat pooled",
            Self::Bootstrap => "criterion",
        }
    }

    /// Returns whether sides differ, of groups of logarithms.
    fn differs(self, sides: &[Vec<Vec<f64>>; 2], chance: &mut Chance) -> bool {
        let means = sides
            .each_ref()
            .map(|side| side.iter().map(|group| mean(group)).collect::<Vec<f64>>());
        let pooled = sides.each_ref().map(|side| side.concat());
        match self {
            Self::Ours => {
                let base = scores(&sides[0]);
                let new = scores(&sides[1]);
                let rating = estimate_ratio(&base, &new, &History::default(), 0.0);
                rating.precision.is_some_and(|found| found.p <= 0.05)
            }
            Self::Neighbours => {
                let rating = estimate_neighbours(&scores(&sides[0]), &scores(&sides[1]), 0.0);
                rating.precision.is_some_and(|found| found.p <= 0.05)
            }
            Self::PerfStat => {
                let errors = means
                    .each_ref()
                    .map(|side| (variance(side) / side.len() as f64).sqrt());
                (mean(&means[0]) - mean(&means[1])).abs() > errors[0] + errors[1]
            }
            Self::Pooled => rank_test(&pooled[0], &pooled[1]).is_some_and(|ranks| ranks.p <= 0.05),
            Self::Bootstrap => {
                let drawn = |side: &[f64], chance: &mut Chance| {
                    let sum: f64 = side.iter().map(|_| side[chance.below(side.len())]).sum();
                    sum / side.len() as f64
                };
                let above = (0..RESAMPLED)
                    .filter(|_| drawn(&pooled[0], chance) > drawn(&pooled[1], chance))
                    .count() as f64
                    / RESAMPLED as f64;
                2.0 * above.min(1.0 - above) <= 0.05
            }
        }
    }
}

impl Disturbed {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Quiet,
        Self::LogNormal,
        Self::Stragglers,
        Self::Markov,
        Self::PeriodFour,
        Self::WarmUp,
        Self::Thermal,
        Self::Common,
        Self::QuantisedDrift,
        Self::OutlierValues,
        Self::DayShift,
        Self::MemorySeven,
        Self::MemoryNine,
        Self::Heavy,
        Self::Skewed,
        Self::Uniform,
        Self::Sawtooth,
        Self::Walk,
        Self::Unequal,
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quiet => "normal",
            Self::LogNormal => "log-normal tails",
            Self::Stragglers => "5 % at 1.3 times",
            Self::Markov => "Markov bimodal",
            Self::PeriodFour => "period 4",
            Self::WarmUp => "warm-up",
            Self::Thermal => "thermal drift",
            Self::Common => "common factor",
            Self::QuantisedDrift => "quantised drift",
            Self::OutlierValues => "outlier values",
            Self::DayShift => "day shift",
            Self::MemorySeven => "AR 0.7",
            Self::MemoryNine => "AR 0.9",
            Self::Heavy => "Student's t of 3",
            Self::Skewed => "exponential",
            Self::Uniform => "uniform",
            Self::Sawtooth => "sawtooth",
            Self::Walk => "random walk",
            Self::Unequal => "unequal",
        }
    }

    /// Returns whether nothing may be tuned on it.
    #[must_use]
    pub fn is_kept_back(self) -> bool {
        // FNV-1a of the name.
        let hash = self
            .name()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        hash.count_ones() % 2 == 1
    }

    /// Returns the share of trials in which a rule calls sides of so many groups different that
    /// differ by `shift` units.
    #[must_use]
    pub fn measure(self, peer: Peer, groups: usize, shift: f64, trials: usize, seed: u64) -> f64 {
        let mut chance = Chance::new(seed);
        let found = (0..trials)
            .filter(|_| {
                let sides = self.sides(groups, shift, &mut chance);
                peer.differs(&sides, &mut chance)
            })
            .count();
        found as f64 / trials.max(1) as f64
    }

    /// Returns the share of plans that call sides different at any look, by neighbours from ten pairs
    /// on or by all groups, where they differ by `shift` units.
    #[must_use]
    pub fn measure_looks(
        self,
        plan: &Sequential,
        by_neighbours: bool,
        shift: f64,
        trials: usize,
        seed: u64,
    ) -> f64 {
        let mut chance = Chance::new(seed);
        let most = plan.groups_max();
        let mut found = 0_usize;
        for _ in 0..trials {
            let sides = self.sides(most, shift, &mut chance);
            let differs = (FIRST..=most).any(|groups| {
                let base = scores(&sides[0][..groups]);
                let new = scores(&sides[1][..groups]);
                let look = if by_neighbours {
                    plan.look_at_neighbours(&base, &new, NO_MARGIN)
                } else {
                    plan.look(&base, &new, NO_MARGIN)
                };
                let rating = look.rating;
                let verdict = rating.verdict(rating.p());
                matches!(verdict, Some(Verdict::Better | Verdict::Worse))
            });
            found += usize::from(differs);
        }
        found as f64 / trials.max(1) as f64
    }

    /// Returns both sides, of groups of logarithms.
    fn sides(self, groups: usize, shift: f64, chance: &mut Chance) -> [Vec<Vec<f64>>; 2] {
        let turns = 2 * groups;
        let path = self.path(turns, chance);
        let mut sides = [Vec::new(), Vec::new()];
        let mut first = 0;
        for (turn, level) in path.into_iter().enumerate() {
            if turn % 4 == 0 {
                first = chance.below(2);
            }
            // A, B, B, A.
            let side = (first + usize::from(matches!(turn % 4, 1 | 2))) % 2;
            let start = level + self.start(side == 1, chance) + shift * side as f64;
            let values = (0..VALUES).map(|_| WIDTH * (start + self.within(chance)));
            sides[side].push(values.collect());
        }
        sides
    }

    /// Returns what the turns add.
    fn path(self, turns: usize, chance: &mut Chance) -> Vec<f64> {
        let mut last = chance.normal();
        let mut is_high = chance.below(2) == 1;
        let phase = chance.below(4);
        let mut levels = Vec::with_capacity(turns);
        for turn in 0..turns {
            let done = turn as f64 / turns as f64;
            levels.push(match self {
                Self::Markov => {
                    is_high ^= chance.uniform() < 0.2;
                    3.0 * f64::from(u8::from(is_high))
                }
                Self::PeriodFour => 5.0 * f64::from(u8::from(turn % 4 == phase)),
                Self::WarmUp => 5.0 * (-(turn as f64) / 2.0).exp(),
                Self::Thermal => 3.0 * (std::f64::consts::PI * done).sin(),
                Self::Common => {
                    if turn % 2 == 0 {
                        last = 3.0 * chance.normal();
                    }
                    last
                }
                Self::QuantisedDrift => (4.0 * done / 2.0).round() * 2.0,
                Self::DayShift => 4.0 * f64::from(u8::from(turn >= turns / 2)),
                Self::MemorySeven | Self::MemoryNine => {
                    let kept = if self == Self::MemorySeven { 0.7 } else { 0.9 };
                    last = kept * last + (1.0_f64 - kept * kept).sqrt() * chance.normal();
                    2.0 * last
                }
                Self::Sawtooth => (turn % 7) as f64 * 0.6,
                Self::Walk => {
                    last += 0.5 * chance.normal();
                    last
                }
                _ => 0.0,
            });
        }
        levels
    }

    /// Returns what a group's start adds.
    fn start(self, is_new: bool, chance: &mut Chance) -> f64 {
        let normal = chance.normal();
        match self {
            Self::LogNormal => normal.exp(),
            Self::Stragglers if chance.uniform() < 0.05 => normal + 1.3_f64.ln() / WIDTH,
            Self::Heavy => {
                let squares: f64 = (0..3).map(|_| chance.normal().powi(2)).sum();
                normal / (squares / 3.0).sqrt()
            }
            Self::Skewed => -(1.0 - chance.uniform()).ln(),
            Self::Uniform => 3.46 * chance.uniform(),
            Self::Unequal if is_new => 2.0 * normal,
            _ => normal,
        }
    }

    /// Returns what a value adds to its group.
    fn within(self, chance: &mut Chance) -> f64 {
        let is_far = self == Self::OutlierValues && chance.uniform() < 0.05;
        WITHIN * chance.normal() + if is_far { 30.0 } else { 0.0 }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn variance(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    squares / (values.len() as f64 - 1.0).max(1.0)
}

#[expect(
    clippy::expect_used,
    reason = "what is made here is finite and above zero; not part of what judges"
)]
fn scores(groups: &[Vec<f64>]) -> Scores {
    let values: Vec<Vec<f64>> = groups
        .iter()
        .map(|group| group.iter().map(|log| log.exp()).collect())
        .collect();
    Scores::new(&values, Better::Higher).expect("values above zero")
}
