//! The last check of a culprit: BAD without it. Not possible if later commits conflict with the
//! revert.

use stats::Pair;

use super::line::Spot;
use super::log::Stands;
use super::search::Search;
use super::{BisectionEvent, Change, Culprit, Findings, Noise, Probe, Reverted};
use crate::LabError;

/// Share of an effect that the revert must remove.
const SHARE: f64 = 0.5;

impl Search<'_> {
    /// Reverts each culprit on top of BAD.
    pub(super) fn confirm(&mut self, mut findings: Findings) -> Result<Findings, LabError> {
        for culprit in &mut findings.culprits {
            // Among several candidates the culprit is not known.
            if culprit.candidates.len() == 1 {
                culprit.reverted = Some(self.reverted(culprit)?);
            }
        }
        Ok(findings)
    }

    fn reverted(&mut self, culprit: &Culprit) -> Result<Reverted, LabError> {
        (self.notify)(BisectionEvent::Reverting(&culprit.commit));
        let bad = self.history.bad().to_owned();
        let Some(commit) = self.prober.revert(&bad, &culprit.commit)? else {
            return Ok(Reverted::Conflicts);
        };
        let probe = self.probe(&commit, &culprit.commit, Stands::Without, self.seeds())?;
        if let Probe::Failed(why) = probe {
            return Ok(Reverted::Failed(why));
        }
        let bad = Spot {
            place: None,
            commit: Some(bad),
            weight: 1.0,
        };
        let without = Spot {
            place: None,
            commit: Some(commit),
            weight: 1.0,
        };
        let differs = match self.question.noise {
            Noise::Seeds(_) => None,
            // `differ` takes runs until the answer is certain.
            Noise::Runs { .. } => {
                self.differ(&bad, &without, culprit.change.after - culprit.change.before)?
            }
        };
        let (Some(before), Some(after)) = (self.measure(&bad)?, self.measure(&without)?) else {
            return Ok(Reverted::Failed(
                "it does not complete the workload each time".to_owned(),
            ));
        };
        let change = match differs {
            None => self.change(&before, &after),
            Some(_) => self.change(&[mean(&before)], &[mean(&after)]),
        };
        let differs = differs.unwrap_or_else(|| self.judge(&before, &after) == Pair::Differs);
        Ok(if differs && undoes(&change, &culprit.change) {
            Reverted::Undone(change)
        } else {
            Reverted::NotUndone(change)
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns whether `change` reverses `done`.
fn undoes(change: &Change, done: &Change) -> bool {
    let back = change.after - change.before;
    let there = done.after - done.before;
    back * there < 0.0 && back.abs() >= SHARE * there.abs()
}
