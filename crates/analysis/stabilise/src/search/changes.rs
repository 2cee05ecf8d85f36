//! Makes kernels of changes to NEW: adds what a candidate needs, and leaves out what does not apply
//! or build.

use std::collections::{BTreeMap, BTreeSet};

use super::trials::{Answer, Trials, Values};
use crate::world::{Change, Failure, Kernel, World};

/// Changes made to NEW together.
pub(super) enum Made {
    /// The kernel with the changes that are left was measured.
    Values(Values),
    /// No change is left, or the budget is spent.
    Nothing,
    /// One of them breaks the kernel, and nothing shows which.
    Broken,
}

/// Changes and what is known of their failures.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Prerequisites that were asked for, by candidate and by whether it conflicts or does not
    /// build.
    needs: BTreeMap<(usize, bool), Vec<usize>>,
    /// The last failure of each change that is left out without a remedy.
    pub(super) failed: BTreeMap<Change, Failure>,
    /// Changes that are not made: what needs them is left out.
    pub(super) banned: BTreeSet<Change>,
}

impl Changes {
    /// Makes changes to NEW and measures rows. Adds prerequisites to `wanted`, and removes what
    /// does not apply or build.
    ///
    /// A failed build shows a file, and the last change to it is a guess: if the same error stays
    /// without that change, the change is made again once the culprit is found.
    pub(super) fn make<W: World>(
        &mut self,
        trials: &mut Trials<'_, W>,
        wanted: &mut BTreeSet<Change>,
        rows: &[usize],
    ) -> Result<Made, W::Error> {
        let mut culprits: BTreeSet<Change> = BTreeSet::new();
        loop {
            let mut made_of: BTreeSet<Change> = wanted.difference(&culprits).copied().collect();
            let mut accused: Vec<(Change, Failure)> = Vec::new();
            let made = self.attempt(trials, &mut made_of, rows, &mut accused)?;
            if accused
                .windows(2)
                .all(|pair| !is_same_error(&pair[0].1, &pair[1].1))
            {
                *wanted = made_of;
                return Ok(made);
            }
            for (place, (change, failure)) in accused.iter().enumerate() {
                if accused
                    .get(place + 1)
                    .is_some_and(|(_, next)| is_same_error(next, failure))
                {
                    self.failed.remove(change);
                } else {
                    culprits.insert(*change);
                }
            }
        }
    }

    /// Makes changes, and notes those that are left out as the guess of a failed build.
    fn attempt<W: World>(
        &mut self,
        trials: &mut Trials<'_, W>,
        wanted: &mut BTreeSet<Change>,
        rows: &[usize],
        accused: &mut Vec<(Change, Failure)>,
    ) -> Result<Made, W::Error> {
        let mut left_out = self.banned.clone();
        loop {
            if wanted.is_empty() || trials.world.is_spent() {
                return Ok(Made::Nothing);
            }
            let kernel = trials.with(wanted.iter().copied());
            let failure = match trials.measure(&kernel, rows)? {
                Answer::Values(values) => return Ok(Made::Values(values)),
                Answer::Failed(failure) => failure,
            };
            let at_fault = at_fault(trials, &kernel, &failure)?.or(only(wanted));
            let Some(change) = at_fault.filter(|change| wanted.contains(change)) else {
                return Ok(Made::Broken);
            };
            let missing = self.missing(trials, change, &failure, wanted)?;
            if missing.iter().any(|need| left_out.contains(need)) {
                wanted.remove(&change);
                left_out.insert(change);
            } else if missing.is_empty() {
                wanted.remove(&change);
                if matches!(failure, Failure::DoesNotBuild(_)) {
                    accused.push((change, failure.clone()));
                }
                self.failed.insert(change, failure);
            } else {
                wanted.extend(missing);
            }
        }
    }

    /// Returns why a change is no kernel to measure.
    pub(super) fn failure(&self, change: Change) -> Failure {
        let unknown = Failure::DoesNotBuild("it needs other changes".to_owned());
        self.failed.get(&change).cloned().unwrap_or(unknown)
    }

    /// Returns what a change that failed needs in addition.
    fn missing<W: World>(
        &mut self,
        trials: &mut Trials<'_, W>,
        change: Change,
        failure: &Failure,
        wanted: &BTreeSet<Change>,
    ) -> Result<Vec<Change>, W::Error> {
        let Change::Apply(candidate) = change else {
            return Ok(Vec::new());
        };
        let is_conflict = matches!(failure, Failure::Conflict { .. });
        let needs = match self.needs.get(&(candidate, is_conflict)) {
            Some(needs) => needs.clone(),
            None => trials.world.prerequisites(candidate, failure)?,
        };
        self.needs.insert((candidate, is_conflict), needs.clone());
        let needs = needs.into_iter().map(Change::Apply);
        Ok(needs
            .filter(|need| !wanted.contains(need) && !self.failed.contains_key(need))
            .collect())
    }
}

/// Returns whether two builds failed by the same error, wherever its lines are by now.
fn is_same_error(one: &Failure, other: &Failure) -> bool {
    let one = error_without_position(one);
    one.is_some() && one == error_without_position(other)
}

/// Returns a compiler's error without line and column.
fn error_without_position(failure: &Failure) -> Option<String> {
    let Failure::DoesNotBuild(error) = failure else {
        return None;
    };
    let parts = error
        .split(':')
        .filter(|part| part.trim().parse::<u64>().is_err());
    Some(parts.collect::<Vec<_>>().join(":"))
}

/// Returns the change at fault, as far as a failure shows it.
fn at_fault<W: World>(
    trials: &mut Trials<'_, W>,
    kernel: &Kernel,
    failure: &Failure,
) -> Result<Option<Change>, W::Error> {
    match failure {
        Failure::Conflict { change, .. } => Ok(Some(*change)),
        Failure::DoesNotBuild(_) | Failure::DoesNotRun(_) => trials.world.at_fault(kernel, failure),
    }
}

/// Returns the element of a set that has only one.
pub(super) fn only<T: Copy + Ord>(set: &BTreeSet<T>) -> Option<T> {
    if set.len() == 1 {
        set.first().copied()
    } else {
        None
    }
}
