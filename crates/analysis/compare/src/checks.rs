//! Preconditions of a comparison: a valid question, runs on the right side, one machine.

use std::sync::Arc;

use model::Workload;

use crate::comparison::Warning;
use crate::environment::{Difference, Pairs, differing};
use crate::error::CompareError;
use crate::question::{Machines, Question, Side};
use document::label::Label;
use model::sanitize_line;

/// Refuses an invalid question.
pub(crate) fn check_question(
    question: &Question,
    workloads: &[Arc<Workload>],
    labels: &[Label],
) -> Result<(), CompareError> {
    let margins = question
        .margin_percent
        .into_iter()
        .chain(workloads.iter().map(|w| w.metric.margin_percent));
    if let Some(percent) = margins.into_iter().find(|m| !(0.0..100.0).contains(m)) {
        return Err(CompareError::Margin { percent });
    }
    if workloads.is_empty() {
        return Err(CompareError::NoWorkload {
            suite: sanitize_line(&question.suite),
        });
    }
    if labels.len() < 2 {
        return Err(CompareError::NoOther {
            base: labels[0].title.clone(),
        });
    }
    Ok(())
}

/// Refuses runs of another kernel or machine than their side.
pub(crate) fn check_runs(sides: &[&Side<'_>], labels: &[Label]) -> Result<(), CompareError> {
    for (side, label) in sides.iter().zip(labels) {
        for run in &side.runs {
            let (found, expected) = if run.build != side.build.id {
                (run.build.short(), side.build.id.short())
            } else if !side.machine_ids().contains(&run.machine) {
                (run.machine.short(), side.machine.id.short())
            } else {
                continue;
            };
            return Err(CompareError::ForeignRun {
                run: run.id.short(),
                kernel: label.title.clone(),
                found,
                expected,
            });
        }
    }
    Ok(())
}

/// Refuses different machines, or warns if the user allowed them.
pub(crate) fn check_machines(
    sides: &[&Side<'_>],
    labels: &[Label],
    machines: Machines,
) -> Result<Option<Warning>, CompareError> {
    let base = sides[0];
    let Some(strange) = sides
        .iter()
        .position(|s| s.machine_ids() != base.machine_ids())
    else {
        return Ok(None);
    };
    match machines {
        Machines::Mixed => Ok(Some(Warning::MixedMachines(fingerprints(sides)))),
        Machines::Equal => Err(CompareError::DifferentMachines {
            base: labels[0].title.clone(),
            base_machine: base.machine.id.short(),
            other: labels[strange].title.clone(),
            other_machine: sides[strange].machine.id.short(),
            differences: fingerprints(&[base, sides[strange]]),
        }),
    }
}

/// Warns of exact machines whose numbers are not the reference machine's.
pub(crate) fn other_qemus(sides: &[&Side<'_>]) -> Option<Warning> {
    let mut versions: Vec<String> = sides
        .iter()
        .filter_map(|side| side.machine.another_qemu())
        .map(sanitize_line)
        .collect();
    versions.dedup();
    (!versions.is_empty()).then_some(Warning::AnotherQemu(versions))
}

fn fingerprints(sides: &[&Side<'_>]) -> Vec<Difference> {
    let pairs: Vec<Pairs<'_>> = sides
        .iter()
        .map(|side| {
            side.machine
                .fingerprint
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect()
        })
        .collect();
    differing(&pairs).differences
}
