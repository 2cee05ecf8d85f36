//! The causes: commits of the history that made rows worse, and what their reverts bring on NEW.

use super::Debtor;
use super::chain::{Chain, ChainSearch};
use super::changes::Changes;
use super::trials::{Trials, Values, minus};
use crate::outcome::{Cause, Effect};
use crate::world::{Suspicion, World};

/// Finds the causes of debts.
pub(super) fn causes<W: World>(
    trials: &mut Trials<'_, W>,
    debts: &[Debtor],
    history: &[Suspicion],
    new: &Values,
) -> Result<Vec<Cause>, W::Error> {
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
    let mut causes = Vec::new();
    for (point, found) in found {
        let mut effects = Vec::new();
        for (debt, added) in &found.added {
            let row = debts[*debt].row;
            let judged = trials.judge(row, &minus(&new[&row], added), &new[&row]);
            effects.push(Effect { row, percent: judged.percent });
        }
        let reverted = alone.get(&point).map(|alone| match &alone.values {
            Some(values) => Ok(trials.effects(new, values)),
            None => Err(changes.failure(crate::world::Change::Revert(point))),
        });
        causes.push(Cause { point, first: found.first, effects, reverted });
    }
    Ok(causes)
}
