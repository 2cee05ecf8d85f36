//! Alerts: changes of many series that came with the same kernels, and so may have one cause.

use std::collections::HashMap;

use model::{Line, Verdict};
use stats::Span;

use super::changes::{Basis, Change};
use super::gather::History;
use super::series::{Key, Series};

/// Changes that may have one cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// What it is called: the track and the first kernel that surely has the change, `cloud-amd64@6.12.117`.
    pub name: String,
    /// Whose kernels follow each other.
    pub track: String,
    /// The last kernel that none of its changes had.
    pub after: usize,
    /// The first kernel that has all of its changes.
    pub at: usize,
    /// The changes, the worst first.
    pub members: Vec<Member>,
}

/// One series that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Which.
    pub key: Key,
    /// Better or worse.
    pub verdict: Verdict,
    /// How much; positive is better. `None` if it fails.
    pub difference_percent: Option<f64>,
    /// The levels before and after, which the difference is between.
    pub levels: Option<(f64, f64)>,
    /// The kernel that the old level is taken from, and the first one that surely has the change.
    pub between: (usize, usize),
    /// The logarithm of how many times better.
    pub effect: f64,
    /// What it rests on.
    pub basis: Basis,
    /// The kernel at which the old level was there again.
    pub gone: Option<usize>,
}

impl Alert {
    /// Returns the changes for the worse that are still there.
    pub fn worse(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.verdict == Verdict::Worse && member.gone.is_none())
    }

    /// Returns how many changes are for the worse and still there, for the better, and gone again.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let better = |member: &&Member| member.verdict == Verdict::Better && member.gone.is_none();
        let gone = self.members.iter().filter(|member| member.gone.is_some()).count();
        (self.worse().count(), self.members.iter().filter(better).count(), gone)
    }

    /// Returns whether the kernel does not boot on some machine: all that was to be measured there failed.
    #[must_use]
    pub fn is_boot(&self) -> bool {
        self.worse().any(|member| member.basis == Basis::NoBoot)
    }

    /// Returns whether no change for the worse rests on more than one seed: it may be the layout of memory.
    #[must_use]
    pub fn rests_on_one_seed(&self) -> bool {
        self.worse().all(|member| member.basis == Basis::EverySeed { seeds: 1 })
    }

    /// Returns how much worse all of it is together: what alerts are ordered by.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.worse().map(|member| -member.effect).sum()
    }
}

/// Returns the alerts over the kernels of a line, the latest kernels first.
///
/// Each series that changed is in one alert for each of its changes; those of an alert share the kernels that their change
/// may have come with. What better and what worse became with the same kernels is one alert: it may be one trade-off.
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
        // What is back at its old level is said by the change that went away.
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
    // The sign is the verdict's: which way of the numbers is good is no matter any more. What has no ratio, because it fails
    // or costs nothing, weighs as much as a factor of e.
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
