//! Alerts: changes of many series between the same kernels, which may have one cause.

use std::collections::{BTreeMap, HashMap};

use model::{ReleaseLine, UnixTime, Verdict};
use stats::Span;

use super::changes::{Basis, Change};
use super::gather::History;
use super::index::KernelIx;
use super::series::{Key, Series};

/// Changes that may have one cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// Its name: the track and the first kernel that certainly has the change,
    /// The track and the first kernel that shows the changes, `cloud-amd64@6.12.117`: stable, as
    /// triage decisions refer to it.
    pub name: String,
    /// The track of all its members' series.
    pub track: String,
    /// The last kernel without any of its changes.
    pub after: KernelIx,
    /// The first kernel with all of its changes.
    pub at: KernelIx,
    /// The changes, worst first.
    pub members: Vec<Member>,
}

/// One series that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The series that changed.
    pub key: Key,
    /// Better or worse; unclear if a twin of the workload contradicts it.
    pub verdict: Verdict,
    /// The difference; positive is better. `None` if it fails.
    pub difference_percent: Option<f64>,
    /// The levels before and after.
    pub levels: Option<(f64, f64)>,
    /// The kernel that defines the old level, and the first one that certainly has the change.
    pub between: (KernelIx, KernelIx),
    /// The last kernel that was measured without the change, and the first with it: where kernels
    /// between them were not measured, more of them than the alert's may have introduced it.
    pub range: (KernelIx, KernelIx),
    /// The logarithm of the improvement as a factor.
    pub effect: f64,
    /// How the change was proved.
    pub basis: Basis,
    /// The kernel at which the old level returned.
    pub gone: Option<KernelIx>,
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
        let is_gone = |member: &&Member| member.gone.is_some();
        let better = self.members.iter().filter(|m| m.verdict == Verdict::Better);
        (
            self.worse().count(),
            better.filter(|member| member.gone.is_none()).count(),
            self.members.iter().filter(is_gone).count(),
        )
    }

    /// Returns it with the range of its regressions only: a mail about them claims no more than
    /// they show.
    #[must_use]
    pub(crate) fn of_regressions(&self, history: &History) -> Self {
        let after = self.worse().map(|member| member.range.0);
        let at = self.worse().map(|member| member.range.1);
        Self {
            after: after
                .max_by_key(|kernel| history.rank(*kernel))
                .unwrap_or(self.after),
            at: at
                .min_by_key(|kernel| history.rank(*kernel))
                .unwrap_or(self.at),
            ..self.clone()
        }
    }

    /// Describes the range of a member where it is not that of the alert.
    #[must_use]
    pub fn own_range(&self, member: &Member, history: &History) -> Option<String> {
        let (after, at) = member.range;
        (member.range != (self.after, self.at)).then(|| {
            let (after, at) = (history.title(after), history.title(at));
            format!("between {after} and {at}")
        })
    }

    /// Returns whether the kernel does not boot on some machine, where every measurement failed.
    #[must_use]
    pub fn is_boot(&self) -> bool {
        self.worse().any(|member| member.basis == Basis::NoBoot)
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

    /// Returns when the first kernel with its worst change was first measured.
    #[must_use]
    pub fn first_measured(&self, history: &History) -> Option<UnixTime> {
        let member = self.members.first()?;
        let (_, series) = history.series().find(|(key, _)| **key == member.key)?;
        let seeds = &series.point(self.at)?.seeds;
        let started = seeds.iter().map(|seen| history.run(seen.run).started_unix);
        started.min()
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
pub fn alerts(history: &History, line: ReleaseLine) -> Vec<Alert> {
    let p_max = p_max(history);
    let mut found: Vec<Alert> = Vec::new();
    for track in history.tracks() {
        found.extend(alerts_of_track(history, track, line, p_max));
    }
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

fn alerts_of_track(history: &History, track: &str, line: ReleaseLine, p_max: f64) -> Vec<Alert> {
    let kernels = history.kernels_of_track(track, line);
    let positions: HashMap<KernelIx, usize> = (0..).zip(&kernels).map(|(n, k)| (*k, n)).collect();
    let mut spans = Vec::new();
    let mut members = Vec::new();
    let mut creeping: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
    for (key, series) in history.series().filter(|(key, _)| *key.track == *track) {
        for change in &series.changes {
            // The change that was undone covers the return to the old level.
            let is_sure = change.basis.p().is_none_or(|p| p <= p_max);
            if series.is_back(change) || !is_sure {
                continue;
            }
            let position = |point: usize| positions.get(&series.points[point].kernel).copied();
            let before = positions.get(&series.before(change).kernel).copied();
            if let (Basis::Creep { .. }, Some(since)) = (change.basis, position(change.reference)) {
                creeping
                    .entry(since)
                    .or_default()
                    .push(member(history, key, series, change));
            } else if let (Some(before), Some(at)) = (before, position(change.at)) {
                spans.push(Span::new(before + 1, at));
                members.push(member(history, key, series, change));
            }
        }
    }
    let mut found = Vec::new();
    for group in stats::groups(&spans) {
        let at = kernels[group.span.latest];
        let members = group.members.iter().map(|n| members[*n].clone()).collect();
        found.push(Alert {
            name: format!("{track}@{}", history.title(at)),
            track: track.to_owned(),
            after: kernels[group.span.earliest - 1],
            at,
            members,
        });
    }
    for (since, members) in creeping {
        let after = kernels[since];
        let newest = members
            .iter()
            .map(|member| member.between.1)
            .max_by_key(|at| positions.get(at));
        found.push(Alert {
            // Named by the kernel since which it creeps: the alert keeps its name as kernels
            // follow.
            name: format!("{track}@creep-since-{}", history.title(after)),
            track: track.to_owned(),
            after,
            at: newest.unwrap_or(after),
            members,
        });
    }
    for alert in &mut found {
        alert.members.sort_by(|a, b| {
            let by_effect = a.effect.total_cmp(&b.effect);
            by_effect.then_with(|| a.key.cmp(&b.key))
        });
    }
    found
}

fn member(history: &History, key: &Key, series: &Series, change: &Change) -> Member {
    let at = series.points[change.at].kernel;
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
        between: (series.points[change.reference].kernel, at),
        range: (series.before(change).kernel, at),
        basis: change.basis,
        gone: change.went_away.map(|point| series.points[point].kernel),
    }
}
