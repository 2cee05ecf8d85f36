//! The clearest single step of a stretch: what is left to find where too few points lie on one side
//! for ranks to tell.
//!
//! Least squares give the place; Student's t tells how clear it is, with the memory that is left
//! around the two levels paid for; ranks must be as far apart as their number allows. That makes
//! the newest point of a series visible: one point far from thirty has no rank that could tell, but
//! a distance in deviations.

use super::level::{MEMORY_MAX, WINDOW_NARROW, running_middles};
use super::search::Series;
use crate::distribution::{fisher_upper, student_two_sided};
use crate::rank_test::rank_sum;
use crate::ratio::KnownScatter;

/// Fewest points of a stretch: below, nothing is known of how they scatter.
const POINTS_MIN: usize = 6;
/// Fewer points on one side must lie wholly apart from the other, and its wild points count in
/// full.
const RANKED_MIN: usize = 3;
/// Free numbers of a step: two levels and a place.
const FITTED: f64 = 3.0;
/// A rarer step is held against what the clock can tell.
const DOUBTED: f64 = 0.05;
/// Chance of a larger variance from which on points scatter as is known of them. With a larger one,
/// fewer series whose repeats share what disturbs them raise false alarms, and fewer steps of ten
/// points are found (`tests/detection.rs`).
const AGREES: f64 = 0.2;
/// Least square of a deviation, in squares of the scale's: above what rounding makes of equal
/// points.
const VARIANCE_MIN: f64 = 1e-6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// The first point after it.
    pub(crate) at: usize,
    /// Chance of a step as clear anywhere in the stretch without one, two-sided; at most 1.
    pub(crate) p: f64,
}

/// A stretch of a series, on its scale.
#[derive(Debug)]
pub(crate) struct Stretch {
    /// With wild points pulled in, but for the newest of the series.
    pub(crate) tame: Vec<f64>,
    pub(crate) wild: Vec<f64>,
    known: Option<KnownScatter>,
}

impl Stretch {
    pub(crate) fn new(series: &Series<'_>, begin: usize, end: usize) -> Self {
        let raw = &series.raw[begin..end];
        let scale = series.scale;
        let wild: Vec<f64> = raw.iter().map(|point| scale.wild(*point)).collect();
        // Two points alike at an end are two of four: as good a middle as the other two.
        let running = running_middles(raw, 0, WINDOW_NARROW);
        let mut tame: Vec<f64> = raw
            .iter()
            .zip(&running)
            .map(|(point, middles)| scale.tame_between(*point, *middles))
            .collect();
        // The newest point is judged as it is: what follows will tell whether it was wild.
        if let (true, Some(last), Some(point)) =
            (end == series.raw.len(), tame.last_mut(), wild.last())
        {
            *last = *point;
        }
        Self {
            tame,
            wild,
            known: series.known,
        }
    }
}

/// Returns the clearest step of a stretch.
///
/// With levels `a` and `b` of `n` and `m` points, `t = (b - a) / (s sqrt(V(n) / n + V(m) / m))`,
/// where `V(k)` is how many times larger memory `r` makes the variance of a mean of `k` points
/// (Bartlett 1946), `s²` the squares around the levels over `n + m - V(n) - V(m)`, and `(n + m - 2)
/// (1 - r²) / (1 + r²)` its degrees of freedom. `r` is the autocorrelation around the two levels,
/// freed of what fitting them takes away (Kendall 1954). p is Student's, times the number of places
/// (Bonferroni).
///
/// None for fewer than six points and for equal ones.
///
/// `first` and `last` are the places in question.
pub(crate) fn clearest(stretch: &Stretch, first: usize, last: usize) -> Option<Step> {
    if stretch.tame.len() < POINTS_MIN {
        return None;
    }
    let at = least_squares(&stretch.tame, first, last)?;
    Some(Step {
        at,
        p: clearness(stretch, at)?,
    })
}

/// Returns the chance of a step as clear as that at a place, anywhere in a stretch without one;
/// none for what remembers too much to have levels.
pub(crate) fn clearness(stretch: &Stretch, at: usize) -> Option<f64> {
    let Stretch { tame, wild, known } = stretch;
    let places = tame.len() as f64;
    let mut fitted = Fitted::fit(tame, at, *known)?;
    let mut p = fitted.p(&tame[..at], &tame[at..]);
    if p * places <= DOUBTED {
        fitted.variance_min = VARIANCE_MIN.max(least_gap(wild).powi(2) / 12.0);
        p = fitted.p(&tame[..at], &tame[at..]);
    }
    if at.min(tame.len() - at) < RANKED_MIN {
        let (left, right) = wild.split_at(at);
        p = if are_apart(left, right) {
            p.max(fitted.p_wild(left, right))
        } else {
            1.0
        };
    }
    Some((p * places).min(1.0))
}

/// Returns whether ranks of two sides are as rare as a limit, or as their numbers allow.
pub(crate) fn ranks_agree(left: &[f64], right: &[f64], p_max: f64) -> bool {
    are_apart(left, right) || rank_sum(left, right).p() <= p_max
}

/// Returns the cut that leaves least squares; none where all points are equal.
fn least_squares(points: &[f64], first: usize, last: usize) -> Option<usize> {
    let total: f64 = points.iter().sum();
    let mut sum = 0.0;
    let mut best = (0.0, None);
    for (n, point) in points.iter().enumerate().take(points.len() - 1) {
        sum += point;
        let before = (n + 1) as f64;
        let after = (points.len() - n - 1) as f64;
        let gain = (sum / before - (total - sum) / after).powi(2) * before * after;
        if n + 1 >= first && n < last && gain > best.0 {
            best = (gain, Some(n + 1));
        }
    }
    best.1
}

/// Returns the least distance of two points that are not equal: what coarse clocks count in; 0 for
/// equal points.
pub(crate) fn least_gap(points: &[f64]) -> f64 {
    let mut sorted = points.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let gaps = sorted
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|gap| *gap > 0.0);
    gaps.min_by(f64::total_cmp).unwrap_or_default()
}

/// What two levels leave of a stretch.
#[derive(Debug, Clone, Copy)]
struct Fitted {
    memory: f64,
    /// Least variance of a point: a twelfth of the square of what its clock counts in.
    variance_min: f64,
    known: Option<KnownScatter>,
}

/// A variance and its degrees of freedom.
#[derive(Debug, Clone, Copy)]
struct Spread {
    variance: f64,
    degrees: f64,
}

impl Spread {
    /// Returns how well it agrees with what is known, from 0 to 1: it does wholly if one in five
    /// variances were larger.
    fn agreement(self, known: KnownScatter) -> f64 {
        let part = self.variance / known.variance;
        let agreement = fisher_upper(part, self.degrees, known.degrees) / AGREES;
        if agreement.is_finite() {
            agreement.min(1.0)
        } else {
            0.0
        }
    }

    /// Adds what is known as far as it agrees: `(w d0 s0² + d s²) / (w d0 + d)` (Smyth 2004).
    fn moderate(self, known: Option<KnownScatter>) -> Self {
        let Some(known) = known else {
            return self;
        };
        let beside = known.degrees * self.agreement(known);
        let degrees = beside + self.degrees;
        Self {
            variance: (beside * known.variance + self.degrees * self.variance) / degrees,
            degrees,
        }
    }
}

impl Fitted {
    /// None where what is left remembers too much to be a level. What is known explains scatter
    /// without memory.
    fn fit(points: &[f64], at: usize, known: Option<KnownScatter>) -> Option<Self> {
        let (left, right) = points.split_at(at);
        let one = Side::new(left);
        let other = Side::new(right);
        let squares = one.squares + other.squares;
        let seen = if squares > 0.0 {
            (one.products + other.products) / squares
        } else {
            0.0
        };
        let count = points.len() as f64;
        let memory = (seen + (1.0 + 3.0 * seen) * FITTED / count).max(0.0);
        let scatter = Spread {
            variance: squares / (count - 2.0).max(1.0),
            degrees: (count - 2.0).max(1.0),
        };
        let unexplained = 1.0 - known.map_or(0.0, |known| scatter.agreement(known));
        let memory = memory * unexplained;
        (memory < MEMORY_MAX).then_some(Self {
            memory,
            variance_min: VARIANCE_MIN,
            known,
        })
    }

    /// How many times larger memory makes the variance of a mean of so many points.
    fn inflation(self, count: f64) -> f64 {
        let r = self.memory;
        (1.0 + r) / (1.0 - r) - 2.0 * r * (1.0 - r.powf(count)) / (count * (1.0 - r).powi(2))
    }

    /// Degrees of freedom that memory leaves of some.
    fn degrees(self, count: f64) -> f64 {
        (count * (1.0 - self.memory.powi(2)) / (1.0 + self.memory.powi(2))).max(1.0)
    }

    fn p(self, left: &[f64], right: &[f64]) -> f64 {
        let one = Side::new(left);
        let other = Side::new(right);
        let count = one.count + other.count;
        let v = self.inflation(one.count);
        let w = self.inflation(other.count);
        let variance =
            ((one.squares + other.squares) / (count - v - w).max(1.0)).max(self.variance_min);
        let Spread { variance, degrees } = Spread {
            variance,
            degrees: self.degrees(count - 2.0),
        }
        .moderate(self.known);
        let error = (variance * (v / one.count + w / other.count)).sqrt();
        student_two_sided((other.mean - one.mean) / error, degrees)
    }

    /// The same of the larger side's own scatter, its wild points in full: what was wild before may
    /// be so at the end.
    fn p_wild(self, left: &[f64], right: &[f64]) -> f64 {
        let (few, many) = if left.len() < right.len() {
            (left, right)
        } else {
            (right, left)
        };
        let few = Side::new(few);
        let many = Side::new(many);
        let v = self.inflation(few.count);
        let w = self.inflation(many.count);
        let Spread { variance, degrees } = Spread {
            variance: (many.squares / (many.count - 1.0)).max(self.variance_min),
            degrees: self.degrees(many.count - 1.0),
        }
        .moderate(self.known);
        let error = (variance * (v / few.count + w / many.count)).sqrt();
        student_two_sided((few.mean - many.mean) / error, degrees)
    }
}

/// Sums of one side of a step.
#[derive(Debug, Clone, Copy)]
struct Side {
    count: f64,
    mean: f64,
    /// Of distances from the mean.
    squares: f64,
    products: f64,
}

impl Side {
    fn new(points: &[f64]) -> Self {
        let count = points.len() as f64;
        let mean = points.iter().sum::<f64>() / count;
        let squares = points.iter().map(|point| (point - mean).powi(2)).sum();
        let products = points
            .windows(2)
            .map(|pair| (pair[0] - mean) * (pair[1] - mean))
            .sum();
        Self {
            count,
            mean,
            squares,
            products,
        }
    }
}

/// Tells whether each point of one side lies beyond each of the other.
pub(crate) fn are_apart(left: &[f64], right: &[f64]) -> bool {
    let (low, high) = range(left);
    let (other_low, other_high) = range(right);
    high < other_low || other_high < low
}

fn range(points: &[f64]) -> (f64, f64) {
    (
        points.iter().copied().fold(f64::INFINITY, f64::min),
        points.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    )
}
