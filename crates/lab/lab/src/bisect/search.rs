//! The search itself, over any prober: ends, trunk, merges, and the parents of culprits.

use std::collections::BTreeSet;

use compare::{Given, Replicate, Rule, Scale, Seeds, SideComparison, compare_sides};
use kernel::CommitGraph;
use model::{Availability, Floor, Uncertainty, Verdict};
use stats::{ExactSearch, Pair, SearchCost, Step, Wanted};

use super::line::{Line, Spot};
use super::log::{BisectionLog, Entry, Stands};
use super::{
    Bisected, BisectionEvent, BisectionQuestion, Change, Confirm, Culprit, Findings, Noise, Probe,
    Prober, RebuildCost, Refused,
};
use crate::LabError;

/// Share of the whole difference that a step must exceed.
const SHARE: f64 = 0.25;
/// Cost of measuring beside the build, in links: a few seeds of a workload.
const RUN: f64 = 0.01;
/// Smallest margin (percent): code layout alone moves values by up to this, even on an exact
/// machine.
const MARGIN_LEAST_PERCENT: f64 = 0.02;

/// Searches the commits that made the difference between the ends of a history. Reuses the log's
/// measurements.
///
/// # Errors
/// If the lab fails; earlier measurements are in the log.
pub fn bisect(
    history: &CommitGraph,
    question: &BisectionQuestion,
    prober: &mut dyn Prober,
    log: &mut BisectionLog,
    notify: &dyn Fn(BisectionEvent<'_>),
) -> Result<Bisected, LabError> {
    let mut search = Search {
        history,
        question,
        prober,
        log,
        notify,
        rebuild_cost: RebuildCost::everything(0),
        margin: 0.0,
        scale: None,
        built: None,
        requested: BTreeSet::new(),
    };
    let ends = match search.ends()? {
        Availability::Available(ends) => ends,
        Availability::Unavailable(refused) => {
            search.prober.foresee(&[]);
            return Ok(Bisected::Refused(refused));
        }
    };
    let bisected = match question.noise {
        Noise::Seeds(_) => search.certain(&ends)?,
        Noise::Runs { .. } => search.search_noisy()?,
    };
    search.prober.foresee(&[]);
    match (bisected, question.confirm) {
        (Bisected::Found(findings), Confirm::Revert) => {
            Ok(Bisected::Found(search.confirm(findings)?))
        }
        (bisected, _) => Ok(bisected),
    }
}

pub(super) struct Search<'a> {
    pub(super) history: &'a CommitGraph,
    pub(super) question: &'a BisectionQuestion,
    pub(super) prober: &'a mut dyn Prober,
    pub(super) log: &'a mut BisectionLog,
    pub(super) notify: &'a dyn Fn(BisectionEvent<'_>),
    pub(super) rebuild_cost: RebuildCost,
    pub(super) margin: f64,
    /// Whether the first measurement was counted or timed: all others must match.
    scale: Option<Scale>,
    /// The commit that was built last.
    built: Option<String>,
    requested: BTreeSet<String>,
}

impl Search<'_> {
    fn ends(&mut self) -> Result<Availability<[Vec<f64>; 2], Refused>, LabError> {
        let mut ends = [Vec::new(), Vec::new()];
        let commits = [
            self.history.good().to_owned(),
            self.history.bad().to_owned(),
        ];
        if commits
            .iter()
            .all(|commit: &String| !self.has_values(commit, self.seeds()))
            && self.prober.hosts(self.history.count()) > 0
        {
            self.prober.foresee(&commits);
        }
        for (end, commit) in ends.iter_mut().zip(commits) {
            match self.probe(&commit, &commit, Stands::Itself, self.seeds())? {
                Probe::Measured { values, .. } => *end = values,
                Probe::Failed(why) => {
                    return Ok(Availability::Unavailable(Refused::End { commit, why }));
                }
            }
        }
        Ok(Availability::Available(ends))
    }

    /// Returns the number of seeds for the first measurement of a commit.
    pub(super) fn seeds(&self) -> usize {
        match self.question.noise {
            Noise::Seeds(seeds) => usize::try_from(seeds).unwrap_or(usize::MAX),
            Noise::Runs { .. } => super::noisy::RUNS,
        }
    }

    /// Searches with values in which every step is certain.
    fn certain(&mut self, ends: &[Vec<f64>; 2]) -> Result<Bisected, LabError> {
        let total = self.change(&ends[0], &ends[1]);
        let whole = total.percent().unwrap_or(0.0).abs();
        let margin_of_metric = self.question.metric.margin_percent;
        let requested = self.question.margin_percent;
        self.margin = requested.unwrap_or_else(|| {
            margin_of_metric
                .min(whole * SHARE)
                .max(MARGIN_LEAST_PERCENT)
        });
        // Few seeds do not resolve differences below the floor. A step is a share of the ends'
        // difference, which is already shown, so the margin is enough between the ends.
        match self
            .compare(&ends[0], &ends[1], self.question.floor)
            .verdict
        {
            Verdict::Better | Verdict::Worse => {}
            other => {
                let reason = match other {
                    Verdict::Unclear(
                        why @ (Uncertainty::BelowFloor { .. } | Uncertainty::Layouts { .. }),
                    ) => Some(why.to_string()),
                    _ => None,
                };
                let differences_percent = total.differences_percent;
                let margin_percent = self.margin;
                return Ok(Bisected::Refused(Refused::NoDifference {
                    differences_percent,
                    margin_percent,
                    reason,
                }));
            }
        }
        self.rebuild_cost = self.prober.rebuild_cost(self.history)?;
        let culprits = self.line(&Line::trunk(self.history, &self.rebuild_cost))?;
        Ok(Bisected::Found(self.findings(total, culprits)))
    }

    pub(super) fn findings(&self, total: Change, culprits: Vec<Culprit>) -> Findings {
        let commits = self.history.count();
        let commits_kept = (0..commits)
            .filter(|commit| self.rebuild_cost.matters(*commit))
            .count();
        let scale = self.scale.unwrap_or(Scale::Counted);
        Findings {
            total,
            culprits,
            scale,
            margin_percent: self.margin,
            commits,
            commits_kept,
        }
    }

    /// Measures `commit`, which stands for `of`, with `seeds` seeds, or returns it from the log.
    /// May return more values.
    pub(super) fn probe(
        &mut self,
        commit: &str,
        of: &str,
        stands: Stands,
        seeds: usize,
    ) -> Result<Probe, LabError> {
        let noted = self
            .log
            .entries()
            .iter()
            .find(|entry| entry.commit == commit);
        let (of, stands) = noted.map_or((of.to_owned(), stands), |entry| {
            (entry.of.clone(), entry.stands)
        });
        let known = self.log.known(commit).cloned();
        let had = count_values(known.as_ref(), seeds);
        let probe = if let (Some(known), true) = (&known, had >= seeds) {
            known.clone()
        } else {
            (self.notify)(BisectionEvent::Probing(&of));
            let probe = self.prober.probe(commit, had as u64 + 1..=seeds as u64)?;
            join(known, probe)
        };
        let probe = self.on_scale(probe);
        if self.requested.insert(commit.to_owned()) {
            // Also for a commit from the log, so that a repeated search takes the same steps.
            self.built = Some(commit.to_owned());
        }
        let is_new = self
            .log
            .entries()
            .iter()
            .all(|entry| entry.commit != commit || entry.probe != probe);
        if is_new {
            let entry = Entry {
                commit: commit.to_owned(),
                of,
                stands,
                probe: probe.clone(),
            };
            (self.notify)(BisectionEvent::Probed(&entry));
            self.log.note(entry)?;
        }
        Ok(probe)
    }

    /// Turns values of another scale than the first commit's into a failure.
    fn on_scale(&mut self, probe: Probe) -> Probe {
        match probe {
            Probe::Measured { scale, .. } if *self.scale.get_or_insert(scale) != scale => {
                Probe::Failed(
                    "it has counted instructions and other commits have none, or the reverse"
                        .to_owned(),
                )
            }
            probe => probe,
        }
    }

    /// Compares the values of two commits by seed.
    fn compare(&self, before: &[f64], after: &[f64], floor: Option<Floor>) -> SideComparison {
        let scale = self.scale.unwrap_or(Scale::Counted);
        let replicates = |values: &[f64]| -> Vec<Replicate> {
            (1..)
                .zip(values)
                .map(|(seed, value)| Replicate {
                    seed,
                    given: Given::Value {
                        value: *value,
                        scale,
                        operations: 0,
                        cycles: None,
                        deferred: 0.0,
                    },
                })
                .collect()
        };
        let direction = self.question.metric.direction;
        let margin_percent = self.margin;
        let rule = Rule {
            direction,
            margin_percent,
            floor,
            seeds: Seeds::OnBoth,
        };
        compare_sides(&replicates(before), &replicates(after), &rule)
    }

    pub(super) fn change(&self, before: &[f64], after: &[f64]) -> Change {
        let compared = self.compare(before, after, None);
        Change {
            before: stats::median(before).unwrap_or(f64::NAN),
            after: stats::median(after).unwrap_or(f64::NAN),
            differences_percent: compared
                .differences
                .iter()
                .map(|difference| difference.percent)
                .collect(),
        }
    }

    pub(super) fn judge(&self, before: &[f64], after: &[f64]) -> Pair {
        match self.compare(before, after, None).verdict {
            Verdict::Better | Verdict::Worse => Pair::Differs,
            Verdict::Same | Verdict::Unclear(_) => Pair::Same,
        }
    }

    /// Searches a line whose ends are measured, first without commits that cannot matter.
    ///
    /// A difference in all seeds is also one in the first, so few seeds find every step; each
    /// culprit is then measured with all seeds.
    fn line(&mut self, line: &Line) -> Result<Vec<Culprit>, LabError> {
        let all = self.seeds();
        for seeds in [self.question.seeds_first.clamp(1, all), all] {
            if let Some(culprits) = self.line_with(line, seeds)? {
                return Ok(culprits);
            }
        }
        Ok(Vec::new())
    }

    /// Searches a line with `seeds` seeds per spot; `None` if a found step does not hold in all
    /// seeds.
    fn line_with(&mut self, line: &Line, seeds: usize) -> Result<Option<Vec<Culprit>>, LabError> {
        let remaining = line.remaining();
        let places = remaining.len() - 1;
        let builds = if places > 1 {
            (places as f64).log2().ceil() as usize
        } else {
            0
        };
        (self.notify)(BisectionEvent::Range {
            places,
            commits: self.history.count(),
            builds,
        });
        let Some(mut steps) = ExactSearch::new(&line.weights(&remaining), self.question.intervals)
        else {
            return Ok(Some(Vec::new()));
        };
        let mut values: Vec<Option<Vec<f64>>> = vec![None; remaining.len()];
        let hosts = self.prober.hosts(places);
        let found = loop {
            let judge = |a: usize, b: usize| match (&values[a], &values[b]) {
                (Some(before), Some(after)) => self.judge(before, after),
                _ => Pair::Same,
            };
            let cost = SearchCost {
                place: self.costs(line, &remaining),
                run: RUN,
            };
            match steps.next(&cost, &judge) {
                Wanted::Done(found) => break found,
                Wanted::Measure { place, .. } => {
                    let commit = line.spots[remaining[place]].commit.as_ref();
                    if hosts > 0 && !commit.is_some_and(|commit| self.has_values(commit, seeds)) {
                        let next = self.foresee(line, &remaining, &steps, &judge, hosts + 1);
                        self.prober.foresee(&next);
                    }
                    match self.measure_with(&line.spots[remaining[place]], seeds)? {
                        Some(measured) => {
                            values[place] = Some(measured);
                            steps.measured(place);
                        }
                        None => steps.unusable(place),
                    }
                }
            }
        };
        let mut culprits = Vec::new();
        for step in found {
            let ends = [step.before, step.last].map(|place| &line.spots[remaining[place]]);
            let (Some(before), Some(after)) = (self.measure(ends[0])?, self.measure(ends[1])?)
            else {
                return Ok(None);
            };
            if self.judge(&before, &after) != Pair::Differs {
                return Ok(None);
            }
            culprits.extend(self.step(line, &remaining, step, &before, &after)?);
        }
        Ok(Some(culprits))
    }

    /// Returns up to `count` commits that the search may measure next, the most probable first.
    /// Other hosts lack the merges that Marvin makes in its workshop, so these are left out.
    fn foresee(
        &self,
        line: &Line,
        remaining: &[usize],
        steps: &ExactSearch,
        judge: &dyn Fn(usize, usize) -> Pair,
        count: usize,
    ) -> Vec<String> {
        let cost = |last: Option<usize>| {
            // As `probe` does: a commit that was asked for before is not built again.
            let last = last
                .and_then(|place: usize| line.spots[remaining[place]].commit.as_deref())
                .filter(|commit| !self.requested.contains(*commit));
            SearchCost {
                place: self.costs_after(line, remaining, last.or(self.built.as_deref())),
                run: RUN,
            }
        };
        let ahead = steps.ahead(&cost, judge, count).into_iter();
        let spots = ahead
            .map(|ahead| &line.spots[remaining[ahead.place]])
            .filter(|spot| self.is_of_tree(spot));
        let commits = spots.filter_map(|spot| spot.commit.clone());
        commits
            .filter(|commit| self.log.known(commit).is_none())
            .collect()
    }

    /// Returns whether a spot's commit is one of the tree.
    fn is_of_tree(&self, spot: &Spot) -> bool {
        let place = spot.place.as_ref();
        place.is_some_and(|place| spot.commit.as_deref() == Some(self.history.id(place.commit)))
    }

    /// Returns whether the log has so many values of a commit, or that it cannot be measured.
    fn has_values(&self, commit: &str, seeds: usize) -> bool {
        count_values(self.log.known(commit), seeds) >= seeds
    }

    /// Returns the current build cost of each spot in links; spots in the log cost 0.
    pub(super) fn costs(&self, line: &Line, remaining: &[usize]) -> Vec<f64> {
        self.costs_after(line, remaining, self.built.as_deref())
    }

    /// Returns the build cost of each spot if `built` was built last.
    fn costs_after(&self, line: &Line, remaining: &[usize], built: Option<&str>) -> Vec<f64> {
        let costs = line.costs(built, &self.rebuild_cost);
        let known = |spot: usize| {
            line.spots[spot]
                .commit
                .as_ref()
                .is_some_and(|commit| self.log.known(commit).is_some())
        };
        remaining
            .iter()
            .map(|spot| if known(*spot) { 0.0 } else { costs[*spot] })
            .collect()
    }

    /// Returns the values of a spot; `None` if it cannot be measured.
    pub(super) fn measure(&mut self, spot: &Spot) -> Result<Option<Vec<f64>>, LabError> {
        self.measure_with(spot, self.seeds())
    }

    /// Returns at least `seeds` values of a spot; `None` if it cannot be measured.
    pub(super) fn measure_with(
        &mut self,
        spot: &Spot,
        seeds: usize,
    ) -> Result<Option<Vec<f64>>, LabError> {
        let Some(commit) = &spot.commit else {
            return Ok(None);
        };
        let of = spot
            .place
            .as_ref()
            .map_or(self.history.good(), |place| self.history.id(place.commit))
            .to_owned();
        let stands = if of == *commit {
            Stands::Itself
        } else {
            Stands::Merged
        };
        match self.probe(commit, &of, stands, seeds)? {
            Probe::Measured { values, .. } => Ok(Some(values)),
            Probe::Failed(_) => Ok(None),
        }
    }

    /// Examines a step: the commits dropped before it, and the commits of a merge.
    fn step(
        &mut self,
        line: &Line,
        remaining: &[usize],
        step: Step,
        before: &[f64],
        after: &[f64],
    ) -> Result<Vec<Culprit>, LabError> {
        let from = remaining[step.before];
        let at = remaining[step.last];
        let alone = step.first == step.last;
        let mut base = before.to_vec();
        if alone && at - 1 > from {
            // The search dropped its parent: check that it equals the commit measured before.
            match self.measure(&line.spots[at - 1])? {
                Some(parent) if self.judge(&parent, after) == Pair::Differs => base = parent,
                Some(_) => {
                    (self.notify)(BisectionEvent::Unpruned(
                        line.spots[at].commit.as_deref().unwrap_or_default(),
                    ));
                    return self.line(&line.part(from, at));
                }
                // The parent cannot be measured or merged: the commit measured before stands for
                // it.
                None => {}
            }
        }
        if alone && let Some(within) = self.brought_by(line, at)? {
            let culprits = self.line(&within)?;
            if !culprits.is_empty() {
                return Ok(culprits);
            }
        }
        Ok(vec![self.culprit(
            line,
            if alone { at - 1 } else { from },
            at,
            self.change(&base, after),
        )])
    }

    /// Returns the commits of a merge at a spot, if it is one.
    pub(super) fn brought_by(&mut self, line: &Line, at: usize) -> Result<Option<Line>, LabError> {
        let Some(place) = line.spots[at]
            .place
            .as_ref()
            .filter(|place| place.is_merge())
        else {
            return Ok(None);
        };
        let within = line.within(at, self.history, &self.rebuild_cost, self.prober)?;
        if within.is_some() {
            (self.notify)(BisectionEvent::Into(self.history.id(place.commit)));
        }
        Ok(within)
    }

    /// Builds the culprit for a change between two spots.
    pub(super) fn culprit(&self, line: &Line, from: usize, at: usize, change: Change) -> Culprit {
        let id = |spot: usize| {
            line.spots[spot]
                .place
                .as_ref()
                .map(|place| self.history.id(place.commit).to_owned())
        };
        let mut parents = line.spots[..=from]
            .iter()
            .rev()
            .filter_map(|spot| spot.commit.clone());
        Culprit {
            commit: id(at).unwrap_or_default(),
            candidates: (from + 1..=at).filter_map(id).collect(),
            parent: parents.next().unwrap_or_default(),
            merge: line
                .merge
                .clone()
                .filter(|merge| Some(merge) != id(at).as_ref()),
            change,
            certainty: None,
            reverted: None,
        }
    }
}

/// Returns how many values a measurement has; a failure is all.
fn count_values(known: Option<&Probe>, seeds: usize) -> usize {
    match known {
        Some(Probe::Measured { values, .. }) => values.len(),
        Some(Probe::Failed(_)) => seeds,
        None => 0,
    }
}

/// Joins a known measurement with a new one. If the image changed, only the new values count.
fn join(known: Option<Probe>, probe: Probe) -> Probe {
    match (known, probe) {
        (
            Some(Probe::Measured {
                build,
                values: mut all,
                scale,
            }),
            Probe::Measured {
                build: again,
                values,
                scale: other,
            },
        ) if build == again && scale == other => {
            all.extend(values);
            Probe::Measured {
                build,
                values: all,
                scale,
            }
        }
        (_, probe) => probe,
    }
}
