//! Tries each of some candidates alone on NEW, and each step of a series.

use std::collections::BTreeSet;

use model::Availability;

use super::Question;
use super::changes::{Changes, Made};
use super::trials::{Answer, Trials};
use crate::outcome::{Effect, Outcome};
use crate::world::{Change, Failure, Kernel, Trial, World};

/// What candidates bring alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Checked {
    /// NEW cannot be measured.
    NoEnd(Failure),
    /// Each candidate that the kernel config compiles, with the rows that it changes, or why that is
    /// no kernel to measure.
    Candidates(Vec<(usize, Availability<Vec<Effect>, Failure>)>),
}

/// Tries candidates alone, with those that they need to apply or build.
///
/// # Errors
/// If the world fails.
pub fn check<W: World>(
    question: &Question,
    candidates: &[usize],
    world: &mut W,
) -> Result<Checked, W::Error> {
    let mut trials = Trials::new(world, &question.rows, question.history);
    let rows: Vec<usize> = (0..question.rows.len()).collect();
    let new_kernel = trials.new_kernel();
    let new = match trials.measure_end(&new_kernel, &rows)? {
        Answer::Values(values) => values,
        Answer::Failed(failure) => return Ok(Checked::NoEnd(failure)),
    };
    let rows: Vec<usize> = new.keys().copied().collect();
    let evidence = trials.world.evidence(&[], &[])?;
    let mut checked = Vec::new();
    for number in candidates {
        if !evidence
            .candidates
            .get(*number)
            .is_some_and(|candidate| candidate.is_compiled)
        {
            continue;
        }
        if trials.world.is_spent() {
            break;
        }
        let change = Change::Apply(*number);
        let mut wanted = BTreeSet::from([change]);
        // What failed for another candidate says nothing of this one.
        let mut changes = Changes::default();
        let result = match changes.make(&mut trials, &mut wanted, &rows)? {
            Made::Values(values) if wanted.contains(&change) => {
                // What it needs is not its own.
                wanted.remove(&change);
                let without = trials.with(wanted);
                let before = match trials.measure(&without, &rows)? {
                    Answer::Values(before) => before,
                    Answer::Failed(_) => new.clone(),
                };
                Availability::Available(trials.effects(&before, &values))
            }
            _ if trials.world.is_spent() => break,
            _ => Availability::Unavailable(changes.failure(change)),
        };
        checked.push((*number, result));
    }
    Ok(Checked::Candidates(checked))
}

/// Builds NEW with each beginning of the series, and notes the steps that give no kernel. The last
/// point of the history is `new`.
///
/// # Errors
/// If the world fails.
pub fn check_steps<W: World>(
    outcome: &mut Outcome,
    new: usize,
    world: &mut W,
) -> Result<(), W::Error> {
    for end in 1..outcome.series.len() {
        if world.is_spent() {
            outcome.is_cut = true;
            break;
        }
        let kernel = Kernel::with(outcome.series[..end].iter().copied(), new);
        if let Trial::Failed(failure) = world.trial(&kernel, &[])? {
            outcome.broken_steps.insert(end, failure);
        }
    }
    Ok(())
}
