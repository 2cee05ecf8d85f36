//! Alerts: changes of many series between the same kernels, which may have one cause.

use std::collections::{BTreeMap, HashMap};

use model::{Line, Verdict};
use stats::Span;

use super::changes::{Basis, Change};
use super::gather::History;
use super::series::{Key, Series};

/// Changes that may have one cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// Its name: the track and the first kernel that certainly has the change,
    /// `cloud-amd64@6.12.117`.
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
    /// Better or worse; unclear if a twin of the workload contradicts it.
    pub verdict: Verdict,
    /// The difference; positive is better. `None` if it fails.
    pub difference_percent: Option<f64>,
    /// The levels before and after.
    pub levels: Option<(f64, f64)>,
    /// The kernel that defines the old level, and the first one that certainly has the change.
    pub between: (usize, usize),
    /// The last kernel that was measured without the change, and the first with it: where kernels
    /// between them were not measured, more of them than the alert's may have introduced it.
    pub range: (usize, usize),
    /// The logarithm of the improvement as a factor.
    pub effect: f64,
    /// Its evidence.
    pub basis: Basis,
    /// The kernel at which the old level returned.
    pub gone: Option<usize>,
}

impl Member {
    /// Returns whether one seed only shows it, so that the memory layout may be the cause.
    #[must_use]
    pub fn rests_on_one_seed(&self) -> bool {
        self.basis == Basis::EverySeed { seeds: 1 }
    }
}

impl Alert {
    /// Returns the regressions that persist.
    pub fn worse(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(|member| member.verdict == Verdict::Worse && member.gone.is_none())
    }

    /// Returns the number of persistent regressions, of improvements, and of changes that were
    /// undone.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let better = |member: &&Member| member.verdict == Verdict::Better && member.gone.is_none();
        let gone = self
            .members
            .iter()
            .filter(|member| member.gone.is_some())
            .count();
        (
            self.worse().count(),
            self.members.iter().filter(better).count(),
            gone,
        )
    }

    /// Returns it with the range of its regressions only: a mail about them claims no more than
    /// they show.
    #[must_use]
    pub(crate) fn of_regressions(&self, history: &History) -> Self {
        let rank = |kernel: &usize| history.rank(*kernel);
        let after = self
            .worse()
            .map(|member| member.range.0)
            .max_by_key(rank)
            .unwrap_or(self.after);
        let at = self
            .worse()
            .map(|member| member.range.1)
            .min_by_key(rank)
            .unwrap_or(self.at);
        Self {
            after,
            at,
            ..self.clone()
        }
    }

    /// Describes the range of a member where it is not that of the alert.
    #[must_use]
    pub fn own_range(&self, member: &Member, history: &History) -> Option<String> {
        let title = |kernel: usize| &history.kernel(kernel).title;
        let (after, at) = member.range;
        (member.range != (self.after, self.at))
            .then(|| format!("between {} and {}", title(after), title(at)))
    }

    /// Returns whether the kernel does not boot on some machine, where every measurement failed.
    #[must_use]
    pub fn is_boot(&self) -> bool {
        self.worse().any(|member| member.basis == Basis::NoBoot)
    }

    /// Returns whether every regression rests on one seed, so that the memory layout may be the
    /// cause.
    #[must_use]
    pub fn rests_on_one_seed(&self) -> bool {
        self.worse().all(Member::rests_on_one_seed)
    }

    /// Returns the regressions that rest on one seed where others rest on several: a mail to a list
    /// leaves them out.
    pub fn of_one_seed(&self) -> impl Iterator<Item = &Member> {
        let are_others = !self.rests_on_one_seed();
        self.worse()
            .filter(move |member| are_others && member.rests_on_one_seed())
    }

    /// Returns it without what rests on one seed, unless nothing else is worse.
    #[must_use]
    pub(crate) fn of_several_seeds(&self) -> Self {
        let mut several = self.clone();
        if !self.rests_on_one_seed() {
            several.members.retain(|member| !member.rests_on_one_seed());
        }
        several
    }

    /// Returns whether it is a level that creeps: more kernels make its range wider.
    #[must_use]
    pub fn is_creep(&self) -> bool {
        self.members
            .iter()
            .any(|member| matches!(member.basis, Basis::Creep { .. }))
    }

    /// Returns the name under which decisions about it are kept: those about a creeping level do
    /// not cover steps.
    #[must_use]
    pub fn decision_track(&self) -> String {
        if self.is_creep() {
            format!("{} creep", self.track)
        } else {
            self.track.clone()
        }
    }

    /// Returns the sum of all regressions, by which alerts are ordered.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.worse().map(|member| -member.effect).sum()
    }
}

/// False discovery rate among the changes of level that a whole lab shows as alerts. Calibrated:
/// `noisy_labs.rs`.
const Q_MAX: f64 = 0.001;

/// Returns the alerts for the kernels of a line, latest kernels first.
///
/// Each change of a series belongs to one alert; the changes of an alert have the same range of
/// kernels. Regressions and improvements of the same kernels are one alert, as they may be one
/// trade-off. Levels that creep since the same kernel are an alert of their own. Changes of level
/// by chance are kept rare among all series of the lab together (Benjamini and Hochberg 1995), so
/// that the false alarms do not grow with it.
#[must_use]
pub fn alerts(history: &History, line: Line) -> Vec<Alert> {
    let p_max = p_max(history);
    let of_track = |track| of_track(history, track, line, p_max);
    let mut found: Vec<Alert> = history.tracks().into_iter().flat_map(of_track).collect();
    found.sort_by_key(|alert| std::cmp::Reverse(history.rank(alert.at)));
    found
}

/// Returns the largest p of a change of level that is an alert.
fn p_max(history: &History) -> f64 {
    let mut all: Vec<f64> = Vec::new();
    for (_, series) in history.series() {
        let before = all.len();
        all.extend(series.changes.iter().filter_map(|change| change.basis.p()));
        if all.len() == before {
            all.push(1.0);
        }
    }
    let q = stats::benjamini_hochberg(&all).unwrap_or_default();
    all.into_iter()
        .zip(q)
        .filter(|(_, q)| *q <= Q_MAX)
        .map(|(p, _)| p)
        .fold(0.0, f64::max)
}

fn of_track(history: &History, track: &str, line: Line, p_max: f64) -> Vec<Alert> {
    let kernels = history.of_track(track, line);
    let place: HashMap<usize, usize> = kernels
        .iter()
        .enumerate()
        .map(|(place, kernel)| (*kernel, place))
        .collect();
    let mut spans = Vec::new();
    let mut members = Vec::new();
    let mut creeping: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
    for (key, series) in history.series().filter(|(key, _)| *key.track == *track) {
        // The change that was undone covers the return to the old level.
        let is_sure = |change: &&Change| change.basis.p().is_none_or(|p| p <= p_max);
        for change in series
            .changes
            .iter()
            .filter(|change| !series.is_back(change))
            .filter(is_sure)
        {
            let kernel = |point: usize| place.get(&series.points[point].kernel).copied();
            let before = place.get(&series.before(change).kernel).copied();
            if let (Basis::Creep { .. }, Some(since)) = (change.basis, kernel(change.reference)) {
                creeping
                    .entry(since)
                    .or_default()
                    .push(member(history, key, series, change));
            } else if let (Some(before), Some(at)) = (before, kernel(change.at)) {
                spans.push(Span::new(before + 1, at));
                members.push(member(history, key, series, change));
            }
        }
    }
    let alert = |name: String, (after, at): (usize, usize), mut members: Vec<Member>| {
        members.sort_by(|a, b| {
            a.effect
                .total_cmp(&b.effect)
                .then_with(|| a.key.cmp(&b.key))
        });
        Alert {
            name,
            track: track.to_owned(),
            after,
            at,
            members,
        }
    };
    let title = |kernel: usize| &history.kernel(kernel).title;
    let stepped = stats::groups(&spans).into_iter().map(|group| {
        let after = kernels[group.span.earliest - 1];
        let at = kernels[group.span.latest];
        let members = group.members.iter().map(|n| members[*n].clone()).collect();
        alert(format!("{track}@{}", title(at)), (after, at), members)
    });
    // Named by the kernel since which it creeps: the alert keeps its name as kernels follow.
    let crept = creeping.into_iter().map(|(since, members)| {
        let after = kernels[since];
        let at = members
            .iter()
            .map(|member| member.between.1)
            .max_by_key(|at| place.get(at))
            .unwrap_or(after);
        alert(
            format!("{track}@creep-since-{}", title(after)),
            (after, at),
            members,
        )
    });
    stepped.chain(crept).collect()
}

fn member(history: &History, key: &Key, series: &Series, change: &Change) -> Member {
    let kernel = |point: usize| series.points[point].kernel;
    // The verdict's sign already accounts for the metric's direction. A change without a ratio,
    // because it fails or costs nothing, weighs as much as a factor of e.
    let ratio = change
        .levels
        .filter(|(before, after)| *before > 0.0 && *after > 0.0)
        .map(|(before, after)| after / before);
    let size = ratio.map_or(1.0, |ratio| ratio.ln().abs());
    Member {
        key: key.clone(),
        effect: if change.verdict == Verdict::Worse {
            -size
        } else {
            size
        },
        // A layout state is no regression of the kernel, and no improvement.
        verdict: history.qualified(key, series, change),
        difference_percent: change.difference_percent,
        levels: change.levels,
        between: (kernel(change.reference), kernel(change.at)),
        range: (series.before(change).kernel, kernel(change.at)),
        basis: change.basis,
        gone: change.went_away.map(kernel),
    }
}
