//! Alerts: changes of many series between the same kernels, which may have one cause.

use std::collections::HashMap;

use model::{Line, Verdict};
use stats::Span;

use super::changes::{Basis, Change};
use super::gather::History;
use super::series::{Key, Series};

/// Changes that may have one cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// Its name: the track and the first kernel that certainly has the change, `cloud-amd64@6.12.117`.
    pub name: String,
    /// The track.
    pub track: String,
    /// The last kernel without any of its changes.
    pub after: usize,
    /// The first kernel with all of its changes.
    pub at: usize,
    /// The changes, worst first.
    pub members: Vec<Member>,
}

/// One series that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The series.
    pub key: Key,
    /// Better or worse.
    pub verdict: Verdict,
    /// The difference; positive is better. `None` if it fails.
    pub difference_percent: Option<f64>,
    /// The levels before and after.
    pub levels: Option<(f64, f64)>,
    /// The kernel that defines the old level, and the first one that certainly has the change.
    pub between: (usize, usize),
    /// The logarithm of the improvement as a factor.
    pub effect: f64,
    /// Its evidence.
    pub basis: Basis,
    /// The kernel at which the old level returned.
    pub gone: Option<usize>,
}

impl Alert {
    /// Returns the regressions that persist.
    pub fn worse(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.verdict == Verdict::Worse && member.gone.is_none())
    }

    /// Returns the number of persistent regressions, of improvements, and of changes that were undone.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let better = |member: &&Member| member.verdict == Verdict::Better && member.gone.is_none();
        let gone = self.members.iter().filter(|member| member.gone.is_some()).count();
        (self.worse().count(), self.members.iter().filter(better).count(), gone)
    }

    /// Returns whether the kernel does not boot on some machine, where every measurement failed.
    #[must_use]
    pub fn is_boot(&self) -> bool {
        self.worse().any(|member| member.basis == Basis::NoBoot)
    }

    /// Returns whether every regression rests on one seed, so that the memory layout may be the cause.
    #[must_use]
    pub fn rests_on_one_seed(&self) -> bool {
        self.worse().all(|member| member.basis == Basis::EverySeed { seeds: 1 })
    }

    /// Returns the sum of all regressions, by which alerts are ordered.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.worse().map(|member| -member.effect).sum()
    }
}

/// Returns the alerts for the kernels of a line, latest kernels first.
///
/// Each change of a series belongs to one alert; the changes of an alert have the same range of kernels. Regressions
/// and improvements of the same kernels are one alert, as they may be one trade-off.
#[must_use]
pub fn alerts(history: &History, line: Line) -> Vec<Alert> {
    let mut found: Vec<Alert> = history.tracks().into_iter().flat_map(|track| of_track(history, track, line)).collect();
    found.sort_by_key(|alert| std::cmp::Reverse(history.rank(alert.at)));
    found
}

fn of_track(history: &History, track: &str, line: Line) -> Vec<Alert> {
    let kernels = history.of_track(track, line);
    let place: HashMap<usize, usize> = kernels.iter().enumerate().map(|(place, kernel)| (*kernel, place)).collect();
    let mut spans = Vec::new();
    let mut members = Vec::new();
    for (key, series) in history.series().filter(|(key, _)| *key.track == *track) {
        // The change that was undone covers the return to the old level.
        for change in series.changes.iter().filter(|change| !series.is_back(change)) {
            let kernel = |point: usize| place.get(&series.points[point].kernel).copied();
            let before = place.get(&series.before(change).kernel).copied();
            if let (Some(before), Some(at)) = (before, kernel(change.at)) {
                spans.push(Span::new(before + 1, at));
                members.push(member(key, series, change));
            }
        }
    }
    let alert = |group: stats::Group| {
        let mut members: Vec<Member> = group.members.iter().map(|n| members[*n].clone()).collect();
        members.sort_by(|a, b| a.effect.total_cmp(&b.effect).then_with(|| a.key.cmp(&b.key)));
        let (after, at) = (kernels[group.span.earliest - 1], kernels[group.span.latest]);
        Alert { name: format!("{track}@{}", history.kernel(at).title), track: track.to_owned(), after, at, members }
    };
    stats::groups(&spans).into_iter().map(alert).collect()
}

fn member(key: &Key, series: &Series, change: &Change) -> Member {
    let kernel = |point: usize| series.points[point].kernel;
    // The verdict's sign already accounts for the metric's direction. A change without a ratio, because it fails or
    // costs nothing, weighs as much as a factor of e.
    let ratio =
        change.levels.filter(|(before, after)| *before > 0.0 && *after > 0.0).map(|(before, after)| after / before);
    let size = ratio.map_or(1.0, |ratio| ratio.ln().abs());
    Member {
        key: key.clone(),
        effect: if change.verdict == Verdict::Worse { -size } else { size },
        verdict: change.verdict.clone(),
        difference_percent: change.difference_percent,
        levels: change.levels,
        between: (kernel(change.reference), kernel(change.at)),
        basis: change.basis,
        gone: change.went_away.map(kernel),
    }
}
