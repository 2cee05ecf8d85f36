//! The causes: commits of the history that made rows worse, and what their reverts bring on NEW.

use std::collections::BTreeMap;

use model::Availability;

use super::Debtor;
use super::chain::{Chain, ChainSearch, sum};
use super::changes::Changes;
use super::trials::{Answer, Trials, Values, minus};
use crate::outcome::{Cause, Effect};
use crate::world::{Change, Suspicion, World};

/// The causes of debts.
pub(super) struct Causes {
    pub(super) causes: Vec<Cause>,
    /// The share of each debt that they explain (percent), by row.
    pub(super) explained_percent: BTreeMap<usize, f64>,
}

/// Finds the causes of debts.
pub(super) fn find_causes<W: World>(
    trials: &mut Trials<'_, W>,
    debts: &[Debtor],
    history: &[Suspicion],
    baseline: &Values,
    new: &Values,
) -> Result<Causes, W::Error> {
    let mut changes = Changes::default();
    let mut search = ChainSearch::new(trials, &mut changes, Chain::History, debts, history, new);
    search.search()?;
    let found = search.found.clone();
    for point in found.keys() {
        if !search.trials.world.is_spent() {
            search.try_alone(*point)?;
        }
    }
    let alone = std::mem::take(&mut search.alone);
    let rows: Vec<usize> = new.keys().copied().collect();
    let mut causes = Vec::new();
    let mut explained_percent = BTreeMap::new();
    for (point, found) in found {
        let mut effects = Vec::new();
        for (debt, added) in &found.added {
            let row = debts[*debt].row;
            let judged = trials.judge(row, &minus(&new[&row], added), &new[&row]);
            effects.push(Effect {
                row,
                percent: judged.percent,
            });
            let share = 100.0 * sum(added) / sum(&minus(&new[&row], &baseline[&row]));
            *explained_percent.entry(row).or_insert(0.0) += share;
        }
        let reverted = match alone.get(&point) {
            // In all rows: a revert may cost elsewhere.
            Some(alone) if alone.values.is_some() => {
                let kernel = trials.with([Change::Revert(point)]);
                match trials.measure(&kernel, &rows)? {
                    Answer::Values(values) => {
                        Some(Availability::Available(trials.effects(new, &values)))
                    }
                    Answer::Failed(failure) => Some(Availability::Unavailable(failure)),
                }
            }
            Some(_) => {
                let failure = changes.failure(Change::Revert(point));
                Some(Availability::Unavailable(failure))
            }
            None => None,
        };
        causes.push(Cause {
            point,
            first: found.first,
            effects,
            reverted,
        });
    }
    Ok(Causes {
        causes,
        explained_percent,
    })
}
