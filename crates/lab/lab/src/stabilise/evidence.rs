//! Gathers what speaks for each change: profiles of the ends, functions of the image, and what the
//! changes touch.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{BuildEvent, Compiled};
use model::{Profile, Run, Share};
use profile::ledger::Ledger;
use stabilise::evidence::{CauseFacts, ChangeFacts, DebtFacts, Known, suspicion};
use stabilise::{Cause, Evidence, Kernel};

use super::TreeWorld;
use crate::{Event, Lab, LabError};

impl<S: Fn(BuildEvent), E: Fn(Event) + Sync> TreeWorld<'_, S, E> {
    /// Weighs all changes for the debts.
    pub(super) fn gather(
        &self,
        debts: &[usize],
        causes: &[Cause],
        compiled: &Compiled,
    ) -> Result<Evidence, LabError> {
        let new_kernel = Kernel::Point(self.subject.trunk.len());
        let base = self
            .ends
            .get(&Kernel::Baseline)
            .or_else(|| self.ends.get(&Kernel::Point(0)));
        let mut facts = Vec::new();
        for row in debts {
            let ends = base.zip(self.ends.get(&new_kernel));
            let functions = match ends {
                Some(((_, base), (_, new))) => {
                    functions_of(self.lab, [base, new], &self.rows[*row].name)?
                }
                None => BTreeMap::new(),
            };
            facts.push(DebtFacts {
                row: *row,
                functions,
            });
        }
        let all = self.subject.points.iter().chain(
            self.subject
                .candidates
                .iter()
                .map(|candidate| &candidate.facts),
        );
        let touched: BTreeSet<&str> = all
            .flat_map(|facts| facts.functions.iter().map(String::as_str))
            .collect();
        let own_code = self
            .ends
            .get(&new_kernel)
            .map_or_else(BTreeSet::new, |(build, _)| {
                self.lab.functions_of(build, &touched)
            });
        let commits = (0..self.subject.history.count())
            .map(|commit| self.subject.history.id(commit).to_owned());
        let history: BTreeSet<String> = commits.collect();
        let mut cause_facts = Vec::new();
        for cause in causes {
            cause_facts.push(CauseFacts {
                commit: self.subject.point(cause.point).to_owned(),
                functions: self.subject.points[cause.point - 1].functions.clone(),
                rows: cause.effects.iter().map(|effect| effect.row).collect(),
            });
        }
        let known = Known {
            debts: &facts,
            own_code: &own_code,
            history: &history,
            causes: &cause_facts,
        };
        let mut points = Vec::new();
        for (place, facts) in self.subject.trunk.iter().zip(&self.subject.points) {
            let is_compiled = place
                .brings
                .iter()
                .any(|commit| self.rebuild_cost.matters(*commit));
            points.push(suspicion(
                &ChangeFacts {
                    is_compiled,
                    ..facts.clone()
                },
                &known,
            ));
        }
        let mut candidates = Vec::new();
        for candidate in &self.subject.candidates {
            let reads_some = candidate.files.iter().any(|file| compiled.may_use(file));
            let is_compiled = candidate.files.is_empty() || candidate.creates_header || reads_some;
            candidates.push(suspicion(
                &ChangeFacts {
                    is_compiled,
                    ..candidate.facts.clone()
                },
                &known,
            ));
        }
        Ok(Evidence {
            history: points,
            candidates,
        })
    }
}

/// Returns how many instructions per operation NEW executes more, by function of the kernel.
fn functions_of(
    lab: &Lab,
    ends: [&Vec<Run>; 2],
    workload: &str,
) -> Result<BTreeMap<String, f64>, LabError> {
    let mut sides: [Vec<Profile>; 2] = [Vec::new(), Vec::new()];
    for (side, runs) in sides.iter_mut().zip(ends) {
        for run in runs {
            side.extend(lab.profile(&run.id, workload)?);
        }
    }
    let Some(ledger) = Ledger::new(workload, &sides[0], &sides[1]) else {
        return Ok(BTreeMap::new());
    };
    let lines = ledger
        .lines
        .iter()
        .filter(|line| line.share == Share::Kernel);
    Ok(lines
        .map(|line| (line.function.clone(), ledger.line_added(line)))
        .collect())
}
