//! The changes of a series: between kernels if the seeds agree, between levels of a noisy series if
//! not, and kernels that begin to fail.

use compare::difference_percent;
use model::{Direction, Floor, Verdict};
use stats::{Criteria, FollowUp, KnownScatter, follow_up};

use super::pair::{Pair, Ruler, State};
use super::series::{MissingKind, Point, Series};

/// The evidence of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basis {
    /// For all seeds the kernel differs by more than the margin from the first kernel of the level
    /// before.
    EverySeed {
        /// The number of seeds.
        seeds: usize,
    },
    /// The medians over the seeds have a new level.
    Levels {
        /// The probability of such ranks without a change.
        p: f64,
    },
    /// The level of the medians moves a little with every kernel.
    Creep {
        /// Chance of a slope so steep without a change.
        p: f64,
    },
    /// The kernel does not boot.
    NoBoot,
    /// The workload fails with the new kernel, and succeeded with the one before.
    Fails,
}

impl Basis {
    /// Returns the chance of such a change without one; `None` where kernels are compared directly.
    pub(super) fn p(self) -> Option<f64> {
        match self {
            Self::Levels { p } | Self::Creep { p } => Some(p),
            Self::EverySeed { .. } | Self::NoBoot | Self::Fails => None,
        }
    }
}

/// A change of level; points are indices into the series.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The first point that may have it.
    pub earliest: usize,
    /// The first point that certainly has it.
    pub at: usize,
    /// The point that defines the old level; for a level of medians, its last point.
    pub reference: usize,
    /// Better or worse, by the metric's direction.
    pub verdict: Verdict,
    /// The difference between the levels; positive is better. `None` if it fails.
    pub difference_percent: Option<f64>,
    /// The levels before and after, on the series' scale.
    pub levels: Option<(f64, f64)>,
    /// How the change was proved.
    pub basis: Basis,
    /// The point at which the old level returned.
    pub went_away: Option<usize>,
}

/// Returns the changes of a series, in order.
pub(super) fn find(series: &Series) -> Vec<Change> {
    let seen: Vec<usize> = (0..series.points.len())
        .filter(|n| series.points[*n].value.is_some())
        .collect();
    // With noisy runs, single comparisons of neighbours prove nothing, least of all when repeated
    // many times.
    let mut changes = if series.scatters {
        Vec::new()
    } else {
        steps(series, &seen)
    };
    let levels = levels(series, &seen);
    let creep = series
        .scatters
        .then(|| creep(series, &seen, levels.last().map_or(0, |last| last.at)))
        .flatten();
    for change in levels {
        let mut known = changes.iter();
        if !known.any(|known| known.earliest <= change.at && change.earliest <= known.at) {
            changes.push(change);
        }
    }
    changes.extend(creep);
    changes.extend(failures(series));
    changes.sort_by_key(|change| change.at);
    changes
}

/// Finds kernels that fail, with any seed, at a workload that an earlier kernel completed.
fn failures(series: &Series) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut good = None;
    let mut is_failing = false;
    for (n, point) in series.points.iter().enumerate() {
        match (point.failure(), good) {
            (Some(_), None) => {}
            (Some(_), Some(_)) if is_failing => {}
            (Some(absent), Some(good)) => {
                is_failing = true;
                changes.push(Change {
                    earliest: good + 1,
                    at: n,
                    reference: good,
                    verdict: Verdict::Worse,
                    difference_percent: None,
                    levels: None,
                    basis: if absent.missing == MissingKind::NotBooted {
                        Basis::NoBoot
                    } else {
                        Basis::Fails
                    },
                    went_away: None,
                });
            }
            (None, _) if point.value.is_some() => {
                if let Some(open) = changes.last_mut().filter(|_| is_failing) {
                    open.went_away = Some(n);
                }
                (good, is_failing) = (Some(n), false);
            }
            (None, _) => {}
        }
    }
    changes
}

/// Compares each kernel with the first one of the current level, so that a creeping change is found
/// where it exceeds the margin.
fn steps(series: &Series, seen: &[usize]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let Some(&first) = seen.first() else {
        return changes;
    };
    let mut reference = first;
    let mut same = first;
    let ruler = Ruler::for_kernels(series, &[]);
    for &now in &seen[1..] {
        let pair = compare_points(series, &ruler, reference, now);
        match pair.state {
            State::Same => same = now,
            State::Better | State::Worse => {
                let went_away = seen
                    .iter()
                    .copied()
                    .filter(|later| *later > now)
                    .find(|later| {
                        compare_points(series, &ruler, reference, *later).state == State::Same
                    });
                let level = |n: usize| series.points[n].value.unwrap_or_default();
                changes.push(Change {
                    earliest: after(seen, same),
                    at: now,
                    reference,
                    verdict: pair.compared.verdict,
                    difference_percent: pair.compared.difference_percent,
                    levels: Some((level(reference), level(now))),
                    basis: Basis::EverySeed {
                        seeds: pair.compared.differences.len(),
                    },
                    went_away,
                });
                (reference, same) = (now, now);
            }
            State::Unclear
            | State::Unrated
            | State::WithinRun(_)
            | State::Failed
            | State::Missing => {}
        }
    }
    changes
}

/// Compares two points of a series, by number.
fn compare_points(series: &Series, ruler: &Ruler, old: usize, new: usize) -> Pair {
    Pair::rate(ruler, Some(&series.points[old]), Some(&series.points[new]))
}

/// Returns the next point.
fn after(seen: &[usize], point: usize) -> usize {
    seen.iter()
        .copied()
        .find(|later| *later > point)
        .unwrap_or(point)
}

/// Finds the levels of the medians over the seeds.
///
/// Where seeds can be paired, one kernel against the next is the better judge of a short level:
/// only changes between levels of four kernels and more count there, and only if they exceed the
/// floor.
fn levels(series: &Series, seen: &[usize]) -> Vec<Change> {
    let Some(logs) = logarithms(series, seen) else {
        return Vec::new();
    };
    let criteria = criteria(series);
    let known = known_scatter(series, seen);
    let mut found = stats::changes_beside(&logs, known, &criteria).unwrap_or_default();
    if !series.scatters {
        let floor = (series.floor.map_or(0.0, Floor::percent) / 100.0).ln_1p();
        found.retain(|change| {
            let is_long =
                change.at >= criteria.segment_min && change.at + criteria.segment_min <= logs.len();
            is_long && (change.after - change.before).abs() >= floor
        });
    }
    if series.scatters {
        let chances: Vec<f64> = (0..found.len())
            .map(|place| chance(series, seen, &found, place))
            .collect();
        found
            .iter_mut()
            .zip(chances)
            .for_each(|(change, p)| change.p = p);
        found.retain(|change| change.p <= criteria.p_max);
    }
    let mut changes = Vec::new();
    for (place, change) in found.iter().enumerate() {
        let levels = (change.before.exp(), change.after.exp());
        let Some(difference_percent) =
            difference_percent(series.metric.direction, levels.0, levels.1)
        else {
            continue;
        };
        let went_away = found[place + 1..]
            .iter()
            .find(|later| follow_up(change, later.after) == FollowUp::WentAway);
        changes.push(Change {
            earliest: seen[change.span.earliest.max(1)],
            at: seen[change.span.latest],
            reference: seen[change.span.earliest.max(1) - 1],
            verdict: if difference_percent > 0.0 {
                Verdict::Better
            } else {
                Verdict::Worse
            },
            difference_percent: Some(difference_percent),
            levels: Some(levels),
            basis: Basis::Levels { p: change.p },
            went_away: went_away.map(|later| seen[later.at]),
        });
    }
    changes
}

/// Finds the level that creeps since the last change, which came with a point.
fn creep(series: &Series, seen: &[usize], since: usize) -> Option<Change> {
    let level: Vec<usize> = seen.iter().copied().filter(|n| *n >= since).collect();
    let logs = logarithms(series, &level)?;
    let found = stats::creep(&logs, &criteria(series))?;
    let levels = (found.before.exp(), found.after.exp());
    let difference_percent = difference_percent(series.metric.direction, levels.0, levels.1)?;
    Some(Change {
        earliest: *level.get(1)?,
        at: *level.last()?,
        reference: *level.first()?,
        verdict: if difference_percent > 0.0 {
            Verdict::Better
        } else {
            Verdict::Worse
        },
        difference_percent: Some(difference_percent),
        levels: Some(levels),
        basis: Basis::Creep { p: found.p },
        went_away: None,
    })
}

fn criteria(series: &Series) -> Criteria {
    let magnitude_min = (series.metric.margin_percent / 100.0).ln_1p();
    // Where seeds can be paired, short levels are found kernel by kernel.
    let visit_min = if series.scatters {
        Criteria::default().visit_min
    } else {
        0
    };
    Criteria {
        magnitude_min,
        visit_min,
        ..Criteria::default()
    }
}

/// Returns the medians over the seeds on a logarithmic scale, as a margin is a ratio; `None` if one
/// has no logarithm. Medians of noisy runs too: the search for levels expects points that no single
/// run moves.
fn logarithms(series: &Series, seen: &[usize]) -> Option<Vec<f64>> {
    let middle =
        |n: &usize| stats::median(&series.values(&series.points[*n])).filter(|value| *value > 0.0);
    seen.iter().map(|n| middle(n).map(f64::ln)).collect()
}

/// Returns how much the medians of some points scatter by what the runs of each kernel show, of
/// the usual number of runs.
fn known_scatter(series: &Series, seen: &[usize]) -> Option<KnownScatter> {
    if !series.scatters {
        return None;
    }
    let mut counts = Vec::with_capacity(seen.len());
    for n in seen {
        counts.push(series.values(&series.points[*n]).len());
    }
    counts.sort_unstable();
    let usual = counts.get(counts.len() / 2)?;
    series.scatter(&[]).scatter_of_medians(*usual)
}

/// Points on each side of a change whose runs are compared.
const NEAR: usize = 20;

/// Returns the chance of a change of a noisy series: that of its medians, unless runs before and
/// after overlap. Then it is at least that of the runs' ranks, since medians of runs with two modes
/// or long tails jump without a change.
fn chance(series: &Series, seen: &[usize], found: &[stats::Change], place: usize) -> f64 {
    let change = &found[place];
    let start = place
        .checked_sub(1)
        .map_or(0, |last| found[last].at)
        .max(change.at.saturating_sub(NEAR));
    let end = found
        .get(place + 1)
        .map_or(seen.len(), |next| next.at)
        .min(change.at + NEAR);
    let before = values_of_points(series, &seen[start..change.at]);
    let after = values_of_points(series, &seen[change.at..end]);
    let are_apart = stats::spread(&before)
        .zip(stats::spread(&after))
        .is_some_and(|(before, after)| before.max < after.min || after.max < before.min);
    if are_apart {
        change.p
    } else {
        stats::rank_test(&before, &after).map_or(1.0, |ranks| ranks.p.max(change.p))
    }
}

/// Returns the values of all runs of some points, by number.
fn values_of_points(series: &Series, points: &[usize]) -> Vec<f64> {
    points
        .iter()
        .flat_map(|n| series.values(&series.points[*n]))
        .collect()
}

/// The fewest kernels over which a change of a noisy series can be found if two levels are
/// perfectly separated.
const NOISY_MIN: usize = 6;

impl Series {
    /// Returns how many kernels have a value, and how many a change needs to be found.
    #[must_use]
    pub fn kernels_to_tell(&self) -> (usize, usize) {
        let seen = self
            .points
            .iter()
            .filter(|point| point.value.is_some())
            .count();
        (seen, if self.scatters { NOISY_MIN } else { 2 })
    }

    /// Returns the point before a change: the last one that certainly lacks it.
    #[must_use]
    pub fn before(&self, change: &Change) -> &Point {
        let last = self.points[..change.earliest]
            .iter()
            .rposition(|point| point.value.is_some());
        &self.points[last.unwrap_or_default()]
    }

    /// Returns whether a change only undoes an earlier one.
    #[must_use]
    pub fn is_back(&self, change: &Change) -> bool {
        change.levels.is_some()
            && self
                .changes
                .iter()
                .any(|other| other.levels.is_some() && other.went_away == Some(change.at))
    }

    /// Returns the good direction.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.metric.direction
    }
}

#[cfg(test)]
mod tests {
    use stats::Criteria;

    use super::NOISY_MIN;

    #[test]
    fn noisy_step_of_fewest_kernels_is_found() {
        let any_cut = |kernels: usize| {
            (1..kernels).any(|cut| (2..5).any(|period| is_step_found(kernels, cut, period)))
        };
        assert_eq!((2..40).find(|kernels| any_cut(*kernels)), Some(NOISY_MIN));
    }

    /// Returns whether a step after `cut` kernels is found beside noise with a period.
    fn is_step_found(kernels: usize, cut: usize, period: usize) -> bool {
        let points: Vec<f64> = (0..kernels)
            .map(|n| (n % period) as f64 * 0.001 + if n < cut { 0.0 } else { 5.0 })
            .collect();
        stats::changes(&points, &Criteria::default()).is_some_and(|found| !found.is_empty())
    }
}
