//! The search itself, over any prober: ends, trunk, merges, and the parents of culprits.

use kernel::History;
use model::Verdict;
use report::{difference_percent, verdict};
use stats::{Pair, SearchCost, Step, Steps, Wanted};

use super::line::{Line, Spot};
use super::log::{BisectionLog, Entry};
use super::{Bisected, BisectionEvent, BisectionQuestion, Change, Culprit, Findings, Probe, Prober, Refused};
use crate::LabError;

/// Share of the whole difference that a step must exceed.
const SHARE: f64 = 0.25;
/// Less than this many percent is beyond what an exact machine tells of a layout.
const MARGIN_LEAST_PERCENT: f64 = 0.02;

/// Searches what made the difference between the ends of a history. What the log knows is not measured again.
///
/// # Errors
/// When the lab fails; what was measured by then is in the log.
pub fn bisect(
    (history, question): (&History, &BisectionQuestion),
    prober: &mut dyn Prober,
    log: &mut BisectionLog,
    notify: &dyn Fn(BisectionEvent<'_>),
) -> Result<Bisected, LabError> {
    let mut search = Search { history, question, prober, log, notify, matters: Vec::new(), margin: 0.0 };
    let (good, bad) = (history.good().to_owned(), history.bad().to_owned());
    let mut ends = Vec::new();
    for commit in [good, bad] {
        match search.probe(&commit, &commit)? {
            Probe::Measured { values, .. } => ends.push(values),
            Probe::Failed(why) => return Ok(Bisected::Refused(Refused::End { commit, why })),
        }
    }
    let total = search.change(&ends[0], &ends[1]);
    let whole = total.percent().unwrap_or(0.0).abs();
    let margin_of_metric = question.metric.margin_percent;
    search.margin =
        question.margin_percent.unwrap_or_else(|| margin_of_metric.min(whole * SHARE).max(MARGIN_LEAST_PERCENT));
    let margin_percent = search.margin;
    if search.judge(&ends[0], &ends[1]) != Pair::Differs {
        let differences_percent = total.differences_percent;
        return Ok(Bisected::Refused(Refused::NoDifference { differences_percent, margin_percent }));
    }
    search.matters = search.prober.matters(history)?;
    let culprits = search.line(&Line::trunk(history, &search.matters))?;
    let commits_kept = (0..history.count()).filter(|commit| search.may_matter(*commit)).count();
    Ok(Bisected::Found(Findings { total, culprits, margin_percent, commits: history.count(), commits_kept }))
}

struct Search<'a> {
    history: &'a History,
    question: &'a BisectionQuestion,
    prober: &'a mut dyn Prober,
    log: &'a mut BisectionLog,
    notify: &'a dyn Fn(BisectionEvent<'_>),
    matters: Vec<bool>,
    margin: f64,
}

impl Search<'_> {
    fn may_matter(&self, commit: usize) -> bool {
        self.matters.get(commit).copied().unwrap_or(true)
    }

    /// Measures a commit that stands for another, or remembers what came of it.
    fn probe(&mut self, commit: &str, of: &str) -> Result<Probe, LabError> {
        let probe = if let Some(known) = self.log.known(commit) {
            known.clone()
        } else {
            (self.notify)(BisectionEvent::Probing(of));
            self.prober.probe(commit)?
        };
        if !self.log.entries().iter().any(|entry| entry.commit == commit) {
            let entry = Entry { commit: commit.to_owned(), of: of.to_owned(), probe: probe.clone() };
            (self.notify)(BisectionEvent::Probed(&entry));
            self.log.note(entry)?;
        }
        Ok(probe)
    }

    fn change(&self, before: &[f64], after: &[f64]) -> Change {
        let direction = self.question.metric.direction;
        let percent = |(old, new): (&f64, &f64)| difference_percent(direction, *old, *new).unwrap_or(f64::NAN);
        Change {
            before: stats::median(before).unwrap_or(f64::NAN),
            after: stats::median(after).unwrap_or(f64::NAN),
            differences_percent: before.iter().zip(after).map(percent).collect(),
        }
    }

    fn judge(&self, before: &[f64], after: &[f64]) -> Pair {
        match verdict(&self.change(before, after).differences_percent, self.margin) {
            Verdict::Better | Verdict::Worse => Pair::Differs,
            Verdict::Same | Verdict::Unclear(_) => Pair::Same,
        }
    }

    /// Searches a line whose ends were measured, first without what cannot matter.
    fn line(&mut self, line: &Line) -> Result<Vec<Culprit>, LabError> {
        let kept = line.kept();
        let places = kept.len() - 1;
        let builds = if places > 1 { (places as f64).log2().ceil() as usize } else { 0 };
        (self.notify)(BisectionEvent::Range { places, commits: self.history.count(), builds });
        let Some(mut steps) = Steps::new(&line.weights(&kept), self.question.intervals) else {
            return Ok(Vec::new());
        };
        let mut values: Vec<Option<Vec<f64>>> = vec![None; kept.len()];
        let cost = |log: &BisectionLog| {
            // What is in the log costs nothing.
            let of = |spot: &usize| line.spots[*spot].commit.as_ref().and_then(|commit| log.known(commit));
            SearchCost {
                place: kept.iter().map(|spot| if of(spot).is_some() { 0.0 } else { 1.0 }).collect(),
                run: 0.01,
            }
        };
        let found = loop {
            let judge = |a: usize, b: usize| match (&values[a], &values[b]) {
                (Some(before), Some(after)) => self.judge(before, after),
                _ => Pair::Same,
            };
            match steps.next(&cost(self.log), &judge) {
                Wanted::Done(found) => break found,
                Wanted::Measure { place, .. } => match self.measure(&line.spots[kept[place]])? {
                    Some(measured) => {
                        values[place] = Some(measured);
                        steps.measured(place);
                    }
                    None => steps.unusable(place),
                },
            }
        };
        let mut culprits = Vec::new();
        for step in found {
            // What a step was found between was measured.
            if let (Some(before), Some(after)) = (&values[step.before], &values[step.last]) {
                culprits.extend(self.step(line, (&kept, step), (before, after))?);
            }
        }
        Ok(culprits)
    }

    /// Returns the values of a spot; nothing where it cannot be measured.
    fn measure(&mut self, spot: &Spot) -> Result<Option<Vec<f64>>, LabError> {
        let Some(commit) = &spot.commit else { return Ok(None) };
        let of = spot.place.as_ref().map_or(self.history.good(), |place| self.history.id(place.commit)).to_owned();
        match self.probe(commit, &of)? {
            Probe::Measured { values, .. } => Ok(Some(values)),
            Probe::Failed(_) => Ok(None),
        }
    }

    /// Looks closer at a step: at what was left out before it, and into a merge.
    fn step(
        &mut self,
        line: &Line,
        (kept, step): (&[usize], Step),
        (before, after): (&[f64], &[f64]),
    ) -> Result<Vec<Culprit>, LabError> {
        let (from, at) = (kept[step.before], kept[step.last]);
        let alone = step.first == step.last;
        let mut base = before.to_vec();
        if alone && at - 1 > from {
            // Its parent was left out: it must be as what was measured before it.
            match self.measure(&line.spots[at - 1])? {
                Some(parent) if self.judge(&parent, after) == Pair::Differs => base = parent,
                Some(_) => {
                    (self.notify)(BisectionEvent::Unpruned(line.spots[at].commit.as_deref().unwrap_or_default()));
                    return self.line(&line.part(from, at));
                }
                // It cannot be measured, or merged: what was measured before it stands for it.
                None => {}
            }
        }
        let id = |spot: usize| line.spots[spot].place.as_ref().map(|place| self.history.id(place.commit).to_owned());
        let is_merge = line.spots[at].place.as_ref().is_some_and(kernel::Place::is_merge);
        if alone
            && is_merge
            && let Some(within) = line.within(at, (self.history, &self.matters), self.prober)?
        {
            (self.notify)(BisectionEvent::Into(id(at).as_deref().unwrap_or_default()));
            let culprits = self.line(&within)?;
            if !culprits.is_empty() {
                return Ok(culprits);
            }
        }
        let candidates: Vec<String> =
            if alone { id(at).into_iter().collect() } else { (from + 1..=at).filter_map(id).collect() };
        let parent = line.spots[if alone { at - 1 } else { from }].commit.clone();
        Ok(vec![Culprit {
            commit: id(at).unwrap_or_default(),
            candidates,
            parent: parent.or_else(|| line.spots[from].commit.clone()).unwrap_or_default(),
            merge: line.merge.clone().filter(|merge| Some(merge) != id(at).as_ref()),
            change: self.change(&base, after),
        }])
    }
}
