//! How often searches for steps are right, and what they cost: played on a made-up line with seeded
//! noise.

use super::Chance;
use crate::search::{
    Cost, Criteria, ExactSearch, LevelEstimates, MultiStepMeasurement, MultiStepSearch,
    NextMeasurement, NoisySearch, Tolerance, Wanted,
};

/// Places of a line, the first end not counted.
pub const PLACES: usize = 1024;
/// Making a place ready costs as much as so many runs.
const READY: f64 = 5.0;
/// Intervals at the start of a search for several steps.
const INTERVALS: usize = 16;

/// What the values of a line are made of; the deviation of a run is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Height of the step; 0 for none.
    pub height: f64,
    /// Deviation between starts of the same place.
    pub bias: f64,
    /// Whether each run has a fresh start, or a place one for all its runs.
    pub start: Start,
}

/// When a place is started anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// For each run.
    EachRun,
    /// Once.
    Once,
    /// Once, and the search believes that it is for each run.
    OnceUntold,
}

/// What came of many searches for one step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Singles {
    /// How many there were.
    pub trials: usize,
    /// The step was named, and no other place with it.
    pub right: usize,
    /// Sum of the chances that the answers claimed.
    pub claimed: f64,
    /// The test of the endpoints refused.
    pub refused: usize,
    /// Runs in all.
    pub runs: usize,
    /// Places made ready in all.
    pub places: usize,
}

/// How several steps are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Neighbours that a judge finds to differ are divided.
    Halves,
    /// Within stretches that differ by the posterior of one step.
    Posterior,
}

/// Steps smaller than this are not looked for.
const EFFECT_MIN: f64 = 3.0;

/// What came of many searches for several steps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Severals {
    /// Steps there were.
    pub steps: usize,
    /// Steps that were named exactly.
    pub hits: usize,
    /// Places that were named.
    pub named: usize,
    /// Searches.
    pub trials: usize,
    /// Runs in all.
    pub runs: usize,
    /// Places made ready in all.
    pub places: usize,
}

impl Severals {
    /// Returns the share of the steps that were found.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.hits as f64 / self.steps.max(1) as f64
    }

    /// Returns the share of what was named that is a step; 1 where nothing was.
    #[must_use]
    pub fn precision(&self) -> f64 {
        if self.named == 0 {
            1.0
        } else {
            self.hits as f64 / self.named as f64
        }
    }
}

/// The values of a line.
struct Oracle<'a> {
    line: Line,
    steps: &'a [(usize, f64)],
    starts: Vec<Option<f64>>,
    chance: Chance,
}

impl Oracle<'_> {
    fn values(&mut self, place: usize, runs: usize) -> Vec<f64> {
        let level: f64 = self
            .steps
            .iter()
            .filter(|(at, _)| *at <= place)
            .map(|(_, height)| height)
            .sum();
        let Self {
            line,
            starts,
            chance,
            ..
        } = self;
        let once = *starts[place].get_or_insert_with(|| line.bias * chance.normal());
        let mut value = |_| {
            let start = if line.start == Start::EachRun {
                line.bias * chance.normal()
            } else {
                once
            };
            100.0 + level + start + chance.normal()
        };
        (0..runs).map(&mut value).collect()
    }

    fn ready(&self) -> usize {
        self.starts.iter().flatten().count()
    }
}

fn cost() -> Cost {
    Cost {
        place: vec![READY; PLACES + 1],
        run: 1.0,
    }
}

impl Singles {
    /// Plays searches for a step that lies anywhere.
    ///
    /// # Panics
    /// Never: there is more than one place.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "the line has two places; not part of what judges"
    )]
    pub fn play(line: Line, trials: usize, seed: u64) -> Self {
        let mut sum = Self {
            trials,
            ..Self::default()
        };
        let cost = cost();
        let mut seeds = Chance::new(seed);
        for _ in 0..trials {
            let mut chance = Chance::new(seeds.bits());
            let at = 1 + chance.below(PLACES);
            let steps = [(at, line.height)];
            let mut oracle = Oracle {
                line,
                steps: &steps,
                starts: vec![None; PLACES + 1],
                chance,
            };
            let bias = if line.start == Start::Once {
                line.bias * line.bias
            } else {
                0.0
            };
            let criteria = Criteria {
                bias,
                ..Criteria::default()
            };
            let mut search = NoisySearch::new(&[1.0; PLACES + 1], criteria).expect("two places");
            loop {
                match search.next(&cost) {
                    NextMeasurement::Measure { place, runs } => {
                        let values = oracle.values(place, runs);
                        search.record(place, &values);
                    }
                    NextMeasurement::Found(found) => {
                        sum.claimed += found.chance;
                        sum.right += usize::from(found.first == at && found.last == at);
                        break;
                    }
                    NextMeasurement::Refused(_) => {
                        sum.refused += 1;
                        break;
                    }
                }
            }
            sum.runs += search.runs();
            sum.places += oracle.ready();
        }
        sum
    }
}

impl Severals {
    /// Plays searches for so many steps of 4 or 6 up or 4 down that lie anywhere.
    #[must_use]
    pub fn play(count: usize, by: By, trials: usize, seed: u64) -> Self {
        let mut sum = Self {
            trials,
            ..Self::default()
        };
        let line = Line {
            height: 0.0,
            bias: 0.0,
            start: Start::EachRun,
        };
        let mut seeds = Chance::new(seed);
        for _ in 0..trials {
            let mut chance = Chance::new(seeds.bits());
            let mut steps: Vec<(usize, f64)> = Vec::new();
            while steps.len() < count {
                let at = 1 + chance.below(PLACES);
                if steps.iter().all(|(other, _)| *other != at) {
                    steps.push((at, [4.0, 6.0, -4.0][chance.below(3)]));
                }
            }
            let mut oracle = Oracle {
                line,
                steps: &steps,
                starts: vec![None; PLACES + 1],
                chance,
            };
            let (found, runs) = match by {
                By::Halves => by_halves(&mut oracle),
                By::Posterior => by_posterior(&mut oracle),
            };
            sum.steps += count;
            sum.runs += runs;
            sum.named += found.len();
            sum.hits += found
                .iter()
                .filter(|found| steps.iter().any(|(at, _)| at == *found))
                .count();
            sum.places += oracle.ready();
        }
        sum
    }
}

/// Returns the places that were named, and the runs.
#[expect(
    clippy::expect_used,
    reason = "the line has two places; not part of what judges"
)]
fn by_halves(oracle: &mut Oracle<'_>) -> (Vec<usize>, usize) {
    let tolerance = Tolerance {
        effect_min: EFFECT_MIN,
        bias: 0.0,
        runs: 6,
        runs_max: 60,
    };
    let cost = cost();
    let mut sum = 0;
    let mut levels = LevelEstimates::new(PLACES + 1, tolerance);
    let mut search = ExactSearch::new(&[1.0; PLACES + 1], INTERVALS).expect("two places");
    loop {
        match search.next(&cost, &|a, b| levels.judge(a, b)) {
            Wanted::Measure { place, runs } => {
                let runs = if runs == 0 { tolerance.runs } else { runs };
                levels.record(place, &oracle.values(place, runs));
                search.measured(place);
                sum += runs;
            }
            Wanted::Done(found) => return (found.iter().map(|found| found.last).collect(), sum),
        }
    }
}

/// Returns the places that were named, and the runs.
#[expect(
    clippy::expect_used,
    reason = "the line has two places; not part of what judges"
)]
fn by_posterior(oracle: &mut Oracle<'_>) -> (Vec<usize>, usize) {
    let criteria = Criteria {
        effect_min: EFFECT_MIN,
        ..Criteria::default()
    };
    let cost = cost();
    let mut search =
        MultiStepSearch::new(&[1.0; PLACES + 1], criteria, INTERVALS).expect("two places");
    loop {
        match search.next(&cost) {
            MultiStepMeasurement::Measure { place, runs } => {
                search.record(place, &oracle.values(place, runs));
            }
            MultiStepMeasurement::Refused(_) => return (Vec::new(), search.runs()),
            MultiStepMeasurement::Done(found) => {
                return (
                    found.iter().map(|found| found.last).collect(),
                    search.runs(),
                );
            }
        }
    }
}
