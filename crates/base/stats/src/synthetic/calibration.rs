//! How often ratings are wrong, how often they find what is there, and whether their forecasts
//! hold.

use super::Chance;
use crate::{Better, History, RatioEstimate, Scores, Unclear, Verdict, estimate_ratio};

/// One unit of noise in logarithms: 1 % of the value.
const WIDTH: f64 = 0.01;
/// A value of the base.
const LEVEL: f64 = 100.0;
/// Groups by which the deviation of scores is found.
const GROUPS_MANY: usize = 4000;
/// Deviation within a group where the noise is between groups.
const WITHIN: f64 = 0.3;
/// What drifts moves by so much from one group to the next.
const DRIFT: f64 = 0.2;
/// Margin of the forecasts, in deviations of a score.
const FORECAST_MARGIN: f64 = 1.5;

/// Where the noise of values comes from. Its unit is 1 % of the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Normal, from within the groups.
    Normal,
    /// As much again, normal, from the groups' fresh starts.
    Between,
    /// Student's t of three degrees, within the groups.
    HeavyWithin,
    /// The same from the groups' starts.
    HeavyBetween,
    /// One in five values six higher.
    ModesWithin,
    /// One in five groups six higher.
    ModesBetween,
    /// Each value of a group remembers so much of the one before.
    Memory(f64),
    /// Groups grow by a fifth each; both sides take turns.
    Drift,
    /// The same, one side measured after the other: no rule can tell that from a difference.
    DriftApart,
    /// Normal from the groups' starts, seen by a clock with steps of so many percent of the value.
    Steps(f64),
    /// Exponential, from the groups' starts.
    Skewed,
    /// Normal from the groups' starts; the new side has three times the deviation, the history has
    /// the base's.
    Unequal,
    /// The same with equal sides; the new side's second group lies eleven off.
    OneOff,
}

impl Kind {
    /// The kinds by which ratings are calibrated.
    pub const ALL: [Self; 16] = [
        Self::Normal,
        Self::Between,
        Self::HeavyWithin,
        Self::HeavyBetween,
        Self::ModesWithin,
        Self::ModesBetween,
        Self::Memory(0.5),
        Self::Memory(0.7),
        Self::Memory(0.9),
        Self::Drift,
        Self::DriftApart,
        Self::Steps(1.0),
        Self::Steps(10.0),
        Self::Skewed,
        Self::Unequal,
        Self::OneOff,
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Normal => "normal within".to_owned(),
            Self::Between => "normal between".to_owned(),
            Self::HeavyWithin => "t3 within".to_owned(),
            Self::HeavyBetween => "t3 between".to_owned(),
            Self::ModesWithin => "80/20 within".to_owned(),
            Self::ModesBetween => "80/20 between".to_owned(),
            Self::Memory(memory) => format!("AR(1) {memory}"),
            Self::Drift => "drift, ABAB".to_owned(),
            Self::DriftApart => "drift, AABB".to_owned(),
            Self::Steps(percent) => format!("clock of {percent} %"),
            Self::Skewed => "exponential".to_owned(),
            Self::Unequal => "3 × deviation".to_owned(),
            Self::OneOff => "one group off".to_owned(),
        }
    }

    /// Returns one value of a fresh start above 0, in parts of the level.
    pub fn value(self, chance: &mut Chance) -> f64 {
        let place = Place {
            is_new: false,
            number: 0,
            turn: 0.0,
        };
        self.seen((WIDTH * self.group(place, 1, chance)[0]).exp())
    }

    fn group(self, place: Place, count: usize, chance: &mut Chance) -> Vec<f64> {
        let start = match self {
            Self::HeavyBetween => heavy(chance),
            Self::ModesBetween => modes(chance),
            Self::Skewed => -(1.0 - chance.uniform()).ln(),
            Self::Unequal if place.is_new => 3.0 * chance.normal(),
            Self::OneOff if place.is_new && place.number == 1 => chance.normal() + 11.0,
            Self::Drift | Self::DriftApart => chance.normal() + DRIFT * place.turn,
            Self::Between | Self::Unequal | Self::OneOff | Self::Steps(_) => chance.normal(),
            Self::Normal | Self::HeavyWithin | Self::ModesWithin | Self::Memory(_) => 0.0,
        };
        let mut last = chance.normal();
        let mut value = || match self {
            Self::Normal | Self::Between => chance.normal(),
            Self::HeavyWithin => heavy(chance),
            Self::ModesWithin => modes(chance),
            Self::Memory(memory) => {
                last = memory * last + (1.0 - memory * memory).sqrt() * chance.normal();
                last
            }
            _ => WITHIN * chance.normal(),
        };
        (0..count).map(|_| start + value()).collect()
    }

    /// What a clock with steps of a hundredth makes of a value: the base lies a third of a step
    /// beside a step.
    fn seen(self, value: f64) -> f64 {
        match self {
            Self::Steps(percent) => (value / percent + 1.0 / 3.0).round() / 100.0,
            _ => value,
        }
    }
}

/// Where a group stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    is_new: bool,
    number: usize,
    /// How many groups were measured before it.
    turn: f64,
}

fn heavy(chance: &mut Chance) -> f64 {
    let squares: f64 = (0..3).map(|_| chance.normal().powi(2)).sum();
    chance.normal() / squares.sqrt()
}

fn modes(chance: &mut Chance) -> f64 {
    chance.normal() + if chance.uniform() < 0.2 { 6.0 } else { 0.0 }
}

/// What is compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Design {
    /// Groups of the base and of the new side.
    pub groups: (usize, usize),
    /// Values in each group.
    pub values: usize,
    /// Sets of two groups in the history.
    pub history: usize,
}

impl Design {
    /// The designs by which ratings are calibrated, with ten values in each group.
    pub const ALL: [Self; 12] = [
        Self::new(3, 3, 0),
        Self::new(5, 5, 0),
        Self::new(12, 12, 0),
        Self::new(3, 10, 0),
        Self::new(2, 1, 0),
        Self::new(1, 1, 30),
        Self::new(3, 1, 30),
        Self::new(3, 3, 10),
        Self::new(3, 3, 30),
        Self::new(5, 5, 30),
        Self::new(10, 3, 30),
        Self::new(3, 10, 30),
    ];

    const fn new(base: usize, new: usize, history: usize) -> Self {
        Self {
            groups: (base, new),
            values: 10,
            history,
        }
    }

    /// Returns its name in tables: `10 v 3, 30`.
    #[must_use]
    pub fn name(self) -> String {
        format!("{} v {}, {}", self.groups.0, self.groups.1, self.history)
    }
}

/// Shares of trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// How many trials.
    pub trials: usize,
    /// Equal sides with p of at most 5 %.
    pub false_alarms: f64,
    /// Sides that differ by the margin, said to differ by more.
    pub beyond: f64,
    /// The interval of 95 % holds the true ratio.
    pub coverage: f64,
    /// Sides that differ by 3 deviations of a score, with p of at most 5 %.
    pub power: f64,
    /// Sides that differ by the margin, said to be the same.
    pub false_same: f64,
    /// Equal sides that get a clear verdict with as many groups more as was forecast, a chance of
    /// 80 % being promised; none where a hundredth of the trials had no forecast.
    pub forecast: Option<f64>,
}

fn p_of(rating: &RatioEstimate) -> f64 {
    rating.precision.map_or(1.0, |precision| precision.p)
}

/// What makes scores of one kind and design.
struct Maker {
    kind: Kind,
    design: Design,
    chance: Chance,
}

impl Maker {
    #[expect(
        clippy::expect_used,
        reason = "what is made here is finite and above zero; not part of what judges"
    )]
    fn scores(values: &[Vec<f64>]) -> Scores {
        Scores::new(values, Better::Higher).expect("values above zero")
    }

    fn groups(&mut self, is_new: bool, count: usize, shift: f64) -> Vec<Vec<f64>> {
        let (base, new) = self.design.groups;
        let mut group = |number: usize| {
            let turn = match (self.kind, is_new) {
                (Kind::DriftApart, true) => (base + number) as f64,
                (Kind::DriftApart, false) => number as f64,
                // Spread over the whole time, whatever the sides' sizes.
                _ => {
                    (number as f64 + 0.5) / if is_new { new } else { base } as f64
                        * (base + new) as f64
                }
            };
            let place = Place {
                is_new,
                number,
                turn,
            };
            let noise = self
                .kind
                .group(place, self.design.values, &mut self.chance)
                .into_iter();
            noise
                .map(|value| self.kind.seen(LEVEL * (WIDTH * value + shift).exp()))
                .collect()
        };
        (0..count).map(&mut group).collect()
    }

    /// Returns the scores of groups and of so many more.
    fn with_more(&mut self, groups: Vec<Vec<f64>>, is_new: bool, more: usize) -> Scores {
        // Numbers go on: only one group is off.
        let more = self
            .groups(is_new, groups.len() + more, 0.0)
            .split_off(groups.len());
        let all: Vec<Vec<f64>> = groups.into_iter().chain(more).collect();
        Self::scores(&all)
    }

    fn side(&mut self, is_new: bool, shift: f64) -> Scores {
        let (base, new) = self.design.groups;
        let groups = self.groups(is_new, if is_new { new } else { base }, shift);
        Self::scores(&groups)
    }

    /// One set of equal groups, of the base's kind and at one time.
    fn set(&mut self, count: usize) -> Scores {
        let groups: Vec<Vec<f64>> = (0..count)
            .flat_map(|_| self.groups(false, 1, 0.0))
            .collect();
        Self::scores(&groups)
    }
}

impl Calibration {
    /// Rates sides of a kind and a design.
    ///
    /// # Panics
    /// When the design has no groups or no values.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "what is made here is finite and above zero; not part of what judges"
    )]
    pub fn measure(kind: Kind, design: Design, trials: usize, seed: u64) -> Self {
        let mut maker = Maker {
            kind,
            design,
            chance: Chance::new(seed),
        };
        let mut many = History::default();
        many.add(&maker.set(GROUPS_MANY));
        let deviation = many.variance().expect("many groups").sqrt();
        let step = 3.0 * deviation;
        let margin = FORECAST_MARGIN * deviation;
        let mut counts = [0_usize; 5];
        let mut forecasts = 0_usize;
        let mut fulfilled = 0_usize;
        for _ in 0..trials {
            let mut history = History::default();
            (0..design.history).for_each(|_| history.add(&maker.set(2)));
            let base = maker.groups(false, design.groups.0, 0.0);
            let new = maker.groups(true, design.groups.1, 0.0);
            let base_scores = Maker::scores(&base);
            let new_scores = Maker::scores(&new);
            let by = |other: &Scores, margin: f64| {
                estimate_ratio(&base_scores, other, &history, margin.exp_m1())
            };
            let equal = by(&new_scores, margin);
            let other = by(&maker.side(true, step), 0.0);
            let edge = by(&maker.side(true, step), step);
            let holds = equal
                .interval()
                .is_some_and(|ends| ends.low <= 1.0 && 1.0 <= ends.high);
            let seen = [
                p_of(&equal) <= 0.05,
                edge.verdict(edge.p()) == Some(Verdict::Better),
                holds,
                p_of(&other) <= 0.05,
                edge.verdict(edge.p()) == Some(Verdict::Same),
            ];
            counts
                .iter_mut()
                .zip(seen)
                .for_each(|(count, seen)| *count += usize::from(seen));
            if let Some(Verdict::Unclear(Unclear::MoreGroups(more))) = equal.verdict(equal.p()) {
                let base = maker.with_more(base, false, more);
                let new = maker.with_more(new, true, more);
                let then = estimate_ratio(&base, &new, &history, margin.exp_m1());
                forecasts += 1;
                fulfilled += usize::from(then.verdict(then.p()) == Some(Verdict::Same));
            }
        }
        let [false_alarms, beyond, coverage, power, false_same] =
            counts.map(|count| count as f64 / trials.max(1) as f64);
        let forecast =
            (forecasts * 100 >= trials).then(|| fulfilled as f64 / forecasts.max(1) as f64);
        Self {
            trials,
            false_alarms,
            beyond,
            coverage,
            power,
            false_same,
            forecast,
        }
    }

    /// Returns the standard error of a share that is 5 % in truth.
    #[must_use]
    pub fn error(&self) -> f64 {
        (0.05 * 0.95 / self.trials.max(1) as f64).sqrt()
    }
}
