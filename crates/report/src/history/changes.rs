//! Where a series changes: kernel against kernel where the seeds agree, levels of a noisy series where they do not.

use model::{Direction, Verdict};
use stats::{Criteria, FollowUp, follow_up};

use super::pair::{Pair, State};
use super::series::{Point, Series};
use crate::difference::difference_percent;

/// What a change rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basis {
    /// All seeds agree that the kernel lies beyond the margin from the first one of the level before.
    EverySeed {
        /// How many.
        seeds: usize,
    },
    /// The medians over the seeds have another level.
    Levels {
        /// Chance of ranks so different without a change.
        p: f64,
    },
}

/// A change of level: points are counted within the series.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The first point that it may have come with.
    pub earliest: usize,
    /// The first point that surely has it.
    pub at: usize,
    /// Better or worse.
    pub verdict: Verdict,
    /// How much, from the old level to the new one; positive is better.
    pub difference_percent: f64,
    /// The levels before and after, on the series' scale.
    pub levels: (f64, f64),
    /// What it rests on.
    pub basis: Basis,
    /// The point at which the old level was there again.
    pub went_away: Option<usize>,
}

/// Returns the changes of a series, in order.
pub(super) fn find(series: &Series) -> Vec<Change> {
    let seen: Vec<usize> = (0..series.points.len()).filter(|n| series.points[*n].value.is_some()).collect();
    let mut changes = steps(series, &seen);
    let levels = levels(series, &seen);
    for change in levels {
        let is_known = |known: &Change| known.earliest <= change.at && change.earliest <= known.at;
        if !changes.iter().any(is_known) {
            changes.push(change);
        }
    }
    changes.sort_by_key(|change| change.at);
    changes
}

/// Walks from kernel to kernel; each is held against the first one of the level that it continues, so that what creeps is
/// found where it passes the margin.
fn steps(series: &Series, seen: &[usize]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let Some(&first) = seen.first() else { return changes };
    let (mut reference, mut same) = (first, first);
    let against =
        |old: usize, new: usize| Pair::of(&series.metric, Some(&series.points[old]), Some(&series.points[new]));
    for &now in &seen[1..] {
        let pair = against(reference, now);
        match pair.state {
            State::Same => same = now,
            State::Better | State::Worse => {
                let back = seen.iter().copied().filter(|later| *later > now);
                let went_away = back.into_iter().find(|later| against(reference, *later).state == State::Same);
                let level = |n: usize| series.points[n].value.unwrap_or_default();
                changes.push(Change {
                    earliest: after(seen, same),
                    at: now,
                    verdict: pair.verdict,
                    difference_percent: pair.difference_percent.unwrap_or_default(),
                    levels: (level(reference), level(now)),
                    basis: Basis::EverySeed { seeds: pair.ratios.len() },
                    went_away,
                });
                (reference, same) = (now, now);
            }
            State::Unclear | State::Failed | State::Missing => {}
        }
    }
    changes
}

/// Returns the point that follows one.
fn after(seen: &[usize], point: usize) -> usize {
    seen.iter().copied().find(|later| *later > point).unwrap_or(point)
}

/// Finds the levels of the medians over the seeds, on a logarithmic scale: a margin is a ratio.
fn levels(series: &Series, seen: &[usize]) -> Vec<Change> {
    let value = |n: &usize| series.points[*n].value.filter(|value| *value > 0.0).map(f64::ln);
    let Some(logs) = seen.iter().map(value).collect::<Option<Vec<f64>>>() else { return Vec::new() };
    let criteria = Criteria { magnitude_min: (series.metric.margin_percent / 100.0).ln_1p(), ..Criteria::default() };
    let found = stats::changes(&logs, &criteria).unwrap_or_default();
    let change = |(place, change): (usize, &stats::Change)| {
        let levels = (change.before.exp(), change.after.exp());
        let difference_percent = difference_percent(series.metric.direction, levels.0, levels.1)?;
        let is_back = |later: &&stats::Change| follow_up(change, later.after) == FollowUp::WentAway;
        Some(Change {
            earliest: seen[change.span.earliest.max(1)],
            at: seen[change.span.latest],
            verdict: if difference_percent > 0.0 { Verdict::Better } else { Verdict::Worse },
            difference_percent,
            levels,
            basis: Basis::Levels { p: change.p },
            went_away: found[place + 1..].iter().find(is_back).map(|later| seen[later.at]),
        })
    };
    found.iter().enumerate().filter_map(change).collect()
}

impl Series {
    /// Returns the point before a change: the last one that surely lacks it.
    #[must_use]
    pub fn before(&self, change: &Change) -> &Point {
        let last = self.points[..change.earliest].iter().rposition(|point| point.value.is_some());
        &self.points[last.unwrap_or_default()]
    }

    /// Returns which way of the numbers is good.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.metric.direction
    }
}
