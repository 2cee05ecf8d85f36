//! Trials and their answers: asks the world nothing twice, and judges the values of two kernels.

use std::collections::BTreeMap;

use compare::{Given, Replicate, Rule, Scale, Seeds, compare_sides};
use model::Verdict;

use crate::outcome::Effect;
use crate::world::{Failure, Kernel, Trial, World};

/// A step of a debt must exceed this share of it.
const DEBT_SHARE: f64 = 0.25;
/// Smallest margin (percent): code layout alone moves values by up to this, even on an exact
/// machine.
const MARGIN_LEAST_PERCENT: f64 = 0.02;

/// Values of rows: one per seed.
pub(super) type Values = BTreeMap<usize, Vec<f64>>;

/// The answer to a trial.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Values(Values),
    Failed(Failure),
}

/// The difference of two kernels in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    pub(super) verdict: Judgement,
    pub(super) percent: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    Better,
    Worse,
    /// Within the margin, or seeds disagree.
    Same,
}

/// All trials of a search.
pub(super) struct Trials<'a, W: World> {
    pub(super) world: &'a mut W,
    rules: &'a [Rule],
    /// The last point of the history.
    new: usize,
    known: BTreeMap<Kernel, Answer>,
}

impl<'a, W: World> Trials<'a, W> {
    pub(super) fn new(world: &'a mut W, rules: &'a [Rule], new: usize) -> Self {
        Self {
            world,
            rules,
            new,
            known: BTreeMap::new(),
        }
    }

    pub(super) fn new_kernel(&self) -> Kernel {
        Kernel::Point(self.new)
    }

    /// Returns NEW with changes.
    pub(super) fn with(&self, changes: impl IntoIterator<Item = crate::world::Change>) -> Kernel {
        Kernel::with(changes, self.new)
    }

    /// Measures rows of a kernel, or builds it only if there are none. All of them must have
    /// values.
    pub(super) fn measure(&mut self, kernel: &Kernel, rows: &[usize]) -> Result<Answer, W::Error> {
        let answer = self.measure_end(kernel, rows)?;
        if let Answer::Values(values) = &answer
            && rows.iter().any(|row| !values.contains_key(row))
        {
            return Ok(Answer::Failed(Failure::DoesNotRun(
                "a row has no value".to_owned(),
            )));
        }
        Ok(answer)
    }

    /// Measures rows of a kernel, some of which may have no values.
    pub(super) fn measure_end(
        &mut self,
        kernel: &Kernel,
        rows: &[usize],
    ) -> Result<Answer, W::Error> {
        let missing: Vec<usize> = match self.known.get(kernel) {
            Some(Answer::Failed(failure)) => return Ok(Answer::Failed(failure.clone())),
            Some(Answer::Values(values)) => rows
                .iter()
                .copied()
                .filter(|row| !values.contains_key(row))
                .collect(),
            None => rows.to_vec(),
        };
        if !missing.is_empty() || !self.known.contains_key(kernel) {
            let answer = match self.world.trial(kernel, &missing)? {
                Trial::Measured { values, .. } => match self.known.remove(kernel) {
                    Some(Answer::Values(mut all)) => {
                        all.extend(values);
                        Answer::Values(all)
                    }
                    _ => Answer::Values(values),
                },
                Trial::Failed(failure) => Answer::Failed(failure),
            };
            self.known.insert(kernel.clone(), answer);
        }
        Ok(self.known[kernel].clone())
    }

    /// Returns whether a kernel was tried.
    pub(super) fn is_known(&self, kernel: &Kernel) -> bool {
        self.known.contains_key(kernel)
    }

    /// Judges a row as a comparison does: few seeds do not resolve differences below the floor of
    /// the row.
    pub(super) fn judge(&self, row: usize, before: &[f64], after: &[f64]) -> Judged {
        judge_by(&self.rules[row], before, after)
    }

    /// Judges a step of a row: a share of a difference that was seen needs no floor.
    pub(super) fn judge_beyond(
        &self,
        row: usize,
        before: &[f64],
        after: &[f64],
        margin_percent: f64,
    ) -> Judged {
        let rule = Rule {
            margin_percent,
            seeds: Seeds::OnBoth,
            floor: None,
            ..self.rules[row]
        };
        judge_by(&rule, before, after)
    }

    /// Returns the smallest step that counts in a row with a debt (percent).
    pub(super) fn step_margin(&self, row: usize, debt_percent: f64) -> f64 {
        self.rules[row]
            .margin_percent
            .min(debt_percent.abs() * DEBT_SHARE)
            .max(MARGIN_LEAST_PERCENT)
    }
    /// Returns the rows that differ between two kernels.
    pub(super) fn effects(&self, before: &Values, after: &Values) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (row, values) in after {
            let Some(old) = before.get(row) else { continue };
            let judged = self.judge(*row, old, values);
            if judged.verdict != Judgement::Same {
                effects.push(Effect {
                    row: *row,
                    percent: judged.percent,
                });
            }
        }
        effects
    }
}

fn judge_by(rule: &Rule, before: &[f64], after: &[f64]) -> Judged {
    let compared = compare_sides(&replicates(before), &replicates(after), rule);
    let verdict = match compared.verdict {
        Verdict::Better => Judgement::Better,
        Verdict::Worse => Judgement::Worse,
        Verdict::Same | Verdict::Unclear(_) => Judgement::Same,
    };
    Judged {
        verdict,
        percent: compared.difference_percent.unwrap_or(0.0),
    }
}

/// Returns `after` minus `before`, seed by seed.
pub(super) fn minus(after: &[f64], before: &[f64]) -> Vec<f64> {
    after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .collect()
}

/// Returns the sum, seed by seed.
pub(super) fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn replicates(values: &[f64]) -> Vec<Replicate> {
    let mut replicates = Vec::new();
    for (seed, value) in (1..).zip(values) {
        let given = Given::Value {
            value: *value,
            scale: Scale::Counted,
            operations: 0,
            cycles: None,
            deferred: 0.0,
        };
        replicates.push(Replicate { seed, given });
    }
    replicates
}
