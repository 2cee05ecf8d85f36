//! How well change points are found: by whatever finds them.

use super::{Chance, Noise};

/// Level of a series; its noise has a deviation of 1.
const LEVEL: f64 = 100.0;
/// Points of a series.
const POINTS: usize = 200;
/// A step lies so far from the ends at least.
const EDGE: usize = 40;
/// A change so near a step has found it.
const NEAR: usize = 3;

/// points of a short series.
const SHORT_POINTS: usize = 30;
/// Repeats of each; a point is their median.
const REPEATS: usize = 3;
/// The logarithm of what a step does to the level: -5 %.
const SHORT_STEP: f64 = -0.051_293_3;

/// Noise of short series of points, with a deviation of 1 % for each group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Short {
    /// Repeats are independent.
    Repeats(Noise),
    /// Each point remembers so much of the one before, and repeats add nothing.
    Memory(f64),
}

impl Short {
    /// Those that are measured.
    pub const ALL: [Self; 6] = [
        Self::Repeats(Noise::Normal),
        Self::Repeats(Noise::Outliers),
        Self::Repeats(Noise::Bimodal),
        Self::Memory(0.5),
        Self::Memory(0.7),
        Self::Memory(0.9),
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Repeats(noise) => noise.name().to_owned(),
            Self::Memory(memory) => format!("AR(1) {memory}"),
        }
    }

    fn points(self, chance: &mut Chance) -> Vec<f64> {
        let mut last = chance.normal();
        let mut point = || match self {
            Self::Repeats(noise) => {
                crate::median(&noise.values(REPEATS, chance)).unwrap_or_default()
            }
            Self::Memory(memory) => {
                last = memory * last + (1.0 - memory * memory).sqrt() * chance.normal();
                last
            }
        };
        (0..SHORT_POINTS).map(|_| 0.01 * point()).collect()
    }
}

/// The first place of a visit, and how many there are.
const VISIT_FROM: usize = 8;

/// Series with one step each, and the places of the steps; or without any.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    /// The series.
    pub series: Vec<Vec<f64>>,
    /// The first point after each step; beyond the end where there is none.
    pub steps: Vec<usize>,
}

impl Trials {
    /// Returns series of 200 points around 100 with noise of a kind (deviation 1), each with a step
    /// of a height somewhere from 40 to 160; a height of 0 is no step.
    #[must_use]
    pub fn generate(noise: Noise, height: f64, count: usize, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut trials = Self {
            series: Vec::new(),
            steps: Vec::new(),
        };
        for _ in 0..count {
            let mut points: Vec<f64> = noise
                .values(POINTS, &mut chance)
                .into_iter()
                .map(|v| LEVEL + v)
                .collect();
            let step = EDGE + chance.below(POINTS - 2 * EDGE + 1);
            points[step..].iter_mut().for_each(|point| *point += height);
            trials.series.push(points);
            trials
                .steps
                .push(if height.abs() > 0.0 { step } else { POINTS * 2 });
        }
        trials
    }
}

impl Trials {
    /// Returns series of 30 points, as logarithms, each with a step of -5 % that has so many points
    /// after it; 0 is no step.
    #[must_use]
    pub fn short(noise: Short, after: usize, count: usize, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let series = (0..count).map(|_| {
            let mut points = noise.points(&mut chance);
            points[SHORT_POINTS - after..]
                .iter_mut()
                .for_each(|point| *point += SHORT_STEP);
            points
        });
        let step = if after > 0 {
            SHORT_POINTS - after
        } else {
            SHORT_POINTS * 2
        };
        Self {
            series: series.collect(),
            steps: vec![step; count],
        }
    }
}

impl Trials {
    /// Returns series of 30 points, as logarithms, each with a level of -5 % that begins somewhere
    /// from point 8 to 15, lasts so many points, and ends where the old one returns.
    #[must_use]
    pub fn visits(noise: Short, length: usize, count: usize, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let mut trials = Self {
            series: Vec::new(),
            steps: Vec::new(),
        };
        for _ in 0..count {
            let mut points = noise.points(&mut chance);
            let from = VISIT_FROM + chance.below(VISIT_FROM);
            points[from..from + length]
                .iter_mut()
                .for_each(|point| *point += SHORT_STEP);
            trials.series.push(points);
            trials.steps.push(from);
        }
        trials
    }
}

/// How well steps were found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// Share of the steps that were found within 3 points.
    pub recall: f64,
    /// Share of the changes found that are such a step, each step counted once; 1 where none was
    /// found.
    pub precision: f64,
    /// Changes found for each series: for series without a step, false alarms.
    pub found: f64,
}

impl Quality {
    /// Compares the changes that were found in each series with its step; 3 points beside it is
    /// near enough.
    #[must_use]
    pub fn judge(trials: &Trials, found: &[Vec<usize>]) -> Self {
        Self::within(trials, found, NEAR)
    }

    /// The same with another distance that is near enough.
    #[must_use]
    pub fn within(trials: &Trials, found: &[Vec<usize>], near: usize) -> Self {
        let pairs = trials.steps.iter().zip(found);
        let hits = pairs
            .filter(|(step, found)| found.iter().any(|at| at.abs_diff(**step) <= near))
            .count() as f64;
        let all = found.iter().map(Vec::len).sum::<usize>() as f64;
        let series = trials.steps.len().max(1) as f64;
        Self {
            recall: hits / series,
            precision: if all > 0.0 { hits / all } else { 1.0 },
            found: all / series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Noise, Quality, Trials};

    #[test]
    fn what_is_found_is_held_against_the_steps() {
        let trials = Trials::generate(Noise::Normal, 5.0, 4, 1);
        let steps = &trials.steps;
        let found = [
            vec![steps[0]],
            vec![steps[1] + 3, steps[1] + 20],
            vec![steps[2] + 4],
            vec![],
        ];
        let quality = Quality::judge(&trials, &found);
        assert_eq!(
            quality,
            Quality {
                recall: 0.5,
                precision: 0.5,
                found: 1.0
            }
        );
        let none = Trials::generate(Noise::Normal, 0.0, 2, 1);
        let quality = Quality::judge(&none, &[vec![7], vec![]]);
        assert_eq!(
            quality,
            Quality {
                recall: 0.0,
                precision: 0.0,
                found: 0.5
            }
        );
    }
}
