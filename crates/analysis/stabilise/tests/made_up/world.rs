//! A world of arithmetic in place of git, a compiler and the exact machine; it counts what it would
//! have to build.

use std::collections::BTreeSet;
use std::convert::Infallible;

use compare::{Rule, Seeds};
use model::Direction;
use stabilise::{Cause, Change, Evidence, Failure, Kernel, Question, Suspicion, Trial, World};

use crate::made_up::dice::Dice;
use crate::made_up::plan::{Content, Lie, Part, Patch, Plan};

/// The margin of every row (percent).
pub(crate) const MARGIN_PERCENT: f64 = 0.5;

/// Weights of the evidence: a culprit in the debts that it affects, a change to a function that the
/// row executes, one to a function that only other rows execute, one to a function that no row
/// executes.
const AFFECTS: f64 = 20.0;
const EXECUTED: f64 = 4.0;
const UNKNOWN: f64 = 1.0;
const UNTOUCHED: f64 = 0.1;

#[derive(Debug, Clone)]
pub(crate) struct MadeUp {
    pub(crate) plan: Plan,
    /// Kernels whose answer is known.
    tried: BTreeSet<Content>,
    /// Kernels that were built, with those that do not build: what a search costs.
    built: BTreeSet<Content>,
}

impl MadeUp {
    /// Returns the world of a plan.
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            tried: BTreeSet::new(),
            built: BTreeSet::new(),
        }
    }

    /// Returns how many kernels it built.
    pub(crate) fn builds(&self) -> usize {
        self.built.len()
    }

    pub(crate) fn question(&self) -> Question {
        let rule = Rule {
            direction: Direction::LowerIsBetter,
            margin_percent: MARGIN_PERCENT,
            floor: None,
            seeds: Seeds::OnBoth,
        };
        Question {
            rows: vec![rule; self.plan.rows.len()],
            history: self.plan.commits.len(),
            candidates: self.plan.candidates.len(),
            is_ancestor: self.plan.side.is_none(),
        }
    }

    /// Returns the rows that a part makes worse, better, or good again.
    fn affected(&self, part: Part) -> BTreeSet<usize> {
        let notable = self
            .plan
            .effects
            .iter()
            .filter(|effect| self.plan.is_notable(effect));
        notable
            .filter(|effect| effect.is_of(part))
            .map(|effect| effect.row)
            .collect()
    }

    fn suspicion(&self, part: Part, patch: &Patch, debts: &[usize]) -> Suspicion {
        let affected = self.affected(part);
        let is_executed = self
            .plan
            .rows
            .iter()
            .any(|row| row.functions.contains(&patch.function));
        let mut weights: Vec<f64> = debts
            .iter()
            .map(|row| {
                if affected.contains(row) {
                    AFFECTS
                } else if self.plan.rows[*row].functions.contains(&patch.function) {
                    EXECUTED
                } else if is_executed {
                    UNKNOWN
                } else {
                    UNTOUCHED
                }
            })
            .collect();
        match &patch.lie {
            Some(Lie::Hidden) => weights.fill(UNTOUCHED),
            Some(Lie::Accused(picks)) if !debts.is_empty() => {
                picks
                    .iter()
                    .for_each(|pick| weights[pick % debts.len()] = AFFECTS);
            }
            Some(Lie::Accused(_)) | None => {}
        }
        Suspicion {
            is_compiled: patch.is_compiled,
            weights,
        }
    }
}

impl World for MadeUp {
    type Error = Infallible;

    fn trial(&mut self, kernel: &Kernel, rows: &[usize]) -> Result<Trial, Infallible> {
        let content = self.plan.content(kernel);
        let failure = self.plan.failure(kernel, &content);
        self.tried.insert(content.clone());
        if !matches!(failure, Some(Failure::Conflict { .. })) {
            self.built.insert(content.clone());
        }
        if let Some(failure) = failure {
            return Ok(Trial::Failed(failure));
        }
        let values = rows.iter().map(|row| {
            let values = self.plan.values(&content, *row);
            (*row, values.map(|value| value as f64).to_vec())
        });
        Ok(Trial::Measured {
            image: self.plan.image(&content),
            values: values.collect(),
        })
    }

    fn evidence(&mut self, debts: &[usize], _causes: &[Cause]) -> Result<Evidence, Infallible> {
        let mut history = Vec::new();
        let mut candidates = Vec::new();
        for (before, commit) in self.plan.commits.iter().enumerate() {
            history.push(self.suspicion(Part::Commit(before + 1), &commit.patch, debts));
        }
        for (number, candidate) in self.plan.candidates.iter().enumerate() {
            candidates.push(self.suspicion(Part::Candidate(number), &candidate.patch, debts));
        }
        Ok(Evidence {
            history,
            candidates,
        })
    }

    fn prerequisites(
        &mut self,
        candidate: usize,
        _failure: &Failure,
    ) -> Result<Vec<usize>, Infallible> {
        Ok(self.plan.candidates[candidate].shown.clone())
    }

    /// The last candidate that touches the file of the error, as an error shows no more.
    fn at_fault(
        &mut self,
        kernel: &Kernel,
        failure: &Failure,
    ) -> Result<Option<Change>, Infallible> {
        let (Kernel::With(changes), Failure::DoesNotBuild(error)) = (kernel, failure) else {
            return Ok(None);
        };
        let file = error.split(':').next().unwrap_or_default();
        let mut latest_first = changes.iter().rev().copied();
        Ok(latest_first.find(|change| match change {
            Change::Apply(number) => {
                file == format!("kernel/f{}.c", self.plan.candidates[*number].patch.function)
            }
            Change::Revert(_) => false,
        }))
    }

    fn cost_s(&mut self, kernel: &Kernel) -> f64 {
        let content = self.plan.content(kernel);
        if self.tried.contains(&content) {
            return 0.0;
        }
        let lacks = content.lacks.iter().fold(0, mix);
        Dice::new(content.has.iter().fold(lacks ^ 1, mix)).real(0.5, 3.0)
    }

    fn is_spent(&mut self) -> bool {
        false
    }
}

fn mix(sum: u64, number: &usize) -> u64 {
    Dice::new(sum ^ *number as u64).bits()
}
