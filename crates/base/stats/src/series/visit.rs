//! The clearest visit of a stretch: a short level that ends where the old one returns.
//!
//! One step explains a short level badly, from whichever side: the few points after its first step
//! lie between two long stretches that are alike. So the points within are compared with all others
//! at once.

use super::level::MEMORY_MAX;
use super::scan::{Stretch, are_apart, least_gap};
use crate::distribution::student_two_sided;
use crate::rank_test::rank_sum;

/// Most points: longer levels are found by their steps.
const POINTS_MAX: usize = 12;
/// Fewest points before a visit, and in the rest of the stretch.
const BEFORE_MIN: usize = 4;
const OTHERS_MIN: usize = 8;
/// Free numbers: three levels and two places.
const FITTED: f64 = 5.0;
/// The levels among them.
const LEVELS: f64 = 3.0;
/// Least square of a deviation, in squares of the scale's: above what rounding makes of equal
/// points.
const VARIANCE_MIN: f64 = 1e-6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Visit {
    /// The first point of it, and the first after it.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Chance of a visit as clear anywhere in the stretch without one, two-sided; at most 1.
    pub(crate) p: f64,
}

/// What counts as a visit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Fewest points of it, and after it.
    pub(crate) points_min: usize,
    pub(crate) after_min: usize,
    /// Largest chance of its ranks, of all places together.
    pub(crate) p_max: f64,
}

/// Sums over the points before each.
struct Sums(Vec<[f64; 2]>);

impl Sums {
    fn new(points: &[f64]) -> Self {
        let mut sums = vec![[0.0; 2]];
        for point in points {
            let [sum, squares] = sums[sums.len() - 1];
            sums.push([sum + point, squares + point * point]);
        }
        Self(sums)
    }

    /// Returns count, mean and squares around the mean of the points from one to before another.
    fn side(&self, from: usize, to: usize) -> [f64; 3] {
        let [sum, squares] = [0, 1].map(|n| self.0[to][n] - self.0[from][n]);
        let count = (to - from) as f64;
        let mean = if to > from { sum / count } else { 0.0 };
        [count, mean, (squares - sum * mean).max(0.0)]
    }
}

/// Returns the clearest visit of a stretch; none where the points before and after it do not lie on
/// one side of it, by ranks too.
///
/// Student's t of the points within against all others, with the scatter around the three levels
/// and its memory `r`: the variance of a mean counts `(1 + r) / (1 - r)` times, and `(n - 5) (1 -
/// r²) / (1 + r²)` are the degrees of freedom. p is Student's or that of both jumps, whichever is less, twice and times the
/// number of places and lengths (Bonferroni).
pub(crate) fn clearest(stretch: &Stretch, rule: &Rule) -> Option<Visit> {
    let Rule {
        points_min,
        after_min,
        p_max,
    } = *rule;
    let points = &stretch.tame;
    let count = points.len();
    if points_min == 0
        || points_min > POINTS_MAX
        || count < BEFORE_MIN + points_min + after_min.max(1)
    {
        return None;
    }
    let variance_min = VARIANCE_MIN.max(least_gap(&stretch.wild).powi(2) / 12.0);
    let sums = Sums::new(points);
    let mut best: Option<(f64, usize, usize)> = None;
    let mut tried = 0_usize;
    for from in BEFORE_MIN..count - points_min {
        for to in (from + points_min..=count - after_min.max(1)).take(POINTS_MAX + 1 - points_min) {
            tried += 1;
            if count - (to - from) < OTHERS_MIN {
                continue;
            }
            let [before, within, after] = [
                sums.side(0, from),
                sums.side(from, to),
                sums.side(to, count),
            ];
            let is_one_sided = (within[1] - before[1]) * (within[1] - after[1]) > 0.0;
            let others = before[0] + after[0];
            let mean = (before[0] * before[1] + after[0] * after[1]) / others;
            let squares = (before[2] + within[2] + after[2]).max(variance_min * count as f64);
            let clear = (within[1] - mean).powi(2) / (squares * (1.0 / within[0] + 1.0 / others));
            if is_one_sided && best.is_none_or(|(known, ..)| clear > known) {
                best = Some((clear, from, to));
            }
        }
    }
    let (clear, from, to) = best?;
    // What remembers too much to have levels may still jump.
    let levels = chance(points, clear, from, to).unwrap_or(1.0);
    let jumps = chance_of_jumps(&stretch.wild, from, to, variance_min);
    let p = (2.0 * levels.min(jumps) * tried as f64).min(1.0);
    let others: Vec<f64> = [&stretch.wild[..from], &stretch.wild[to..]].concat();
    let within = &stretch.wild[from..to];
    let agrees =
        are_apart(&others, within) || rank_sum(&others, within).p() * count as f64 <= p_max;
    agrees.then_some(Visit { from, to, p })
}

/// Returns the chance that points which need have no level, but scatter from one to the next as
/// these do, jump so far at both places, away and back: that of the smaller jump, twice.
///
/// A few points tell little of their memory, and then a level is never clear; a jump of many
/// deviations is, whatever they remember.
fn chance_of_jumps(points: &[f64], from: usize, to: usize, variance_min: f64) -> f64 {
    let mut squares = 0.0;
    let mut count = 0.0;
    for (at, pair) in points.windows(2).enumerate() {
        if at + 1 != from && at + 1 != to {
            squares += (pair[1] - pair[0]).powi(2);
            count += 1.0;
        }
    }
    let away = points[from] - points[from - 1];
    let back = points[to - 1] - points[to];
    if away * back <= 0.0 || count < 1.0 {
        return 1.0;
    }
    let jump = away.abs().min(back.abs());
    let deviation = (squares / count).max(2.0 * variance_min).sqrt();
    // The jumps go the same way, whichever it is.
    student_two_sided(jump / deviation, count).powi(2) / 2.0
}

/// Returns the chance of a visit at this place; none for what remembers too much to have levels.
fn chance(points: &[f64], clear: f64, from: usize, to: usize) -> Option<f64> {
    let count = points.len() as f64;
    let mut squares = 0.0;
    let mut products = 0.0;
    for side in [&points[..from], &points[from..to], &points[to..]] {
        let mean = side.iter().sum::<f64>() / side.len().max(1) as f64;
        squares += side.iter().map(|point| (point - mean).powi(2)).sum::<f64>();
        products += side
            .windows(2)
            .map(|pair| (pair[0] - mean) * (pair[1] - mean))
            .sum::<f64>();
    }
    let seen = if squares > 0.0 {
        products / squares
    } else {
        0.0
    };
    // Means fitted to the same points make neighbours look less alike (Kendall 1954).
    let memory = (seen + (1.0 + 3.0 * seen) * LEVELS / count).max(0.0);
    if memory >= MEMORY_MAX {
        return None;
    }
    let free = (count - FITTED).max(1.0);
    let t = (clear * free * (1.0 - memory) / (1.0 + memory)).sqrt();
    Some(student_two_sided(
        t,
        (free * (1.0 - memory.powi(2)) / (1.0 + memory.powi(2))).max(1.0),
    ))
}
