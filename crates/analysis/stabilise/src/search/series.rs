//! The series: of all changes that help, the fewest that repay as much without making another row
//! worse.
//!
//! Candidates come first. The revert of a cause is taken only if the candidates leave at least half
//! of what it cost, as a revert also takes away what the commit was made for.

use std::collections::BTreeSet;

use model::Availability;

use super::Debtor;
use super::trials::{Answer, Trials, Values, minus, plus};
use crate::outcome::{Cause, Effect, Outcome, Unit};
use crate::world::{Change, World};

/// Effects add up if their sum is that of the whole but for this share: code that others moved
/// costs a little.
const SLACK: f64 = 0.02;
/// A cause is reverted if the candidates leave this share of its effect.
const UNPAID: f64 = 0.5;

/// The search for the series.
pub(super) struct Series<'t, 'a, W: World> {
    trials: &'t mut Trials<'a, W>,
    debts: &'t [Debtor],
    baseline: &'t Values,
    new: &'t Values,
    rows: Vec<usize>,
}

impl<'t, 'a, W: World> Series<'t, 'a, W> {
    pub(super) fn new(
        trials: &'t mut Trials<'a, W>,
        debts: &'t [Debtor],
        baseline: &'t Values,
        new: &'t Values,
    ) -> Self {
        let rows = new.keys().copied().collect();
        Self {
            trials,
            debts,
            baseline,
            new,
            rows,
        }
    }

    /// Chooses the series from what was tried alone and from the causes.
    pub(super) fn search(&mut self, outcome: &mut Outcome) -> Result<(), W::Error> {
        let mut chosen = self.helpful(&mut outcome.units)?;
        let order = self.order_of_reduction(&chosen, &outcome.units)?;
        self.reduce(&mut chosen, order, &mut outcome.units)?;
        self.add_reverts(&mut chosen, outcome)?;
        let Some(values) = self.values(&changes(&chosen, &outcome.units))? else {
            return Ok(());
        };
        outcome.series = changes(&chosen, &outcome.units);
        outcome.effects = self.trials.effects(self.new, &values);
        outcome.worse = outcome
            .effects
            .iter()
            .copied()
            .filter(|effect| effect.percent < 0.0)
            .collect();
        Ok(())
    }

    /// Returns what the series leaves of a debt (percent); `None` if it was not measured.
    pub(super) fn left(&mut self, series: &[Change], row: usize) -> Result<Option<f64>, W::Error> {
        let kernel = self.trials.with(series.iter().copied());
        if !self.trials.is_known(&kernel) {
            return Ok(None);
        }
        Ok(match self.trials.measure(&kernel, &[row])? {
            Answer::Values(values) => Some(
                self.trials
                    .judge(row, &self.baseline[&row], &values[&row])
                    .percent,
            ),
            Answer::Failed(_) => None,
        })
    }

    /// Returns the values of NEW with changes in all rows; `None` if there is no such kernel, or
    /// the budget is spent.
    fn values(&mut self, changes: &[Change]) -> Result<Option<Values>, W::Error> {
        let kernel = self.trials.with(changes.iter().copied());
        if !self.trials.is_known(&kernel) && self.trials.world.is_spent() {
            return Ok(None);
        }
        Ok(match self.trials.measure(&kernel, &self.rows)? {
            Answer::Values(values) => Some(values),
            Answer::Failed(_) => None,
        })
    }

    fn is_debt(&self, row: usize) -> bool {
        self.debts.iter().any(|debt| debt.row == row)
    }

    fn betters_debt(&self, effects: &[Effect]) -> bool {
        effects
            .iter()
            .any(|effect| effect.percent > 0.0 && self.is_debt(effect.row))
    }

    /// Measures all rows of the units that help, and returns those that can be taken together.
    fn helpful(&mut self, units: &mut [Unit]) -> Result<Vec<usize>, W::Error> {
        let mut good = Vec::new();
        let mut mixed = Vec::new();
        for (place, unit) in units.iter_mut().enumerate() {
            if !self.betters_debt(unit.effects_alone()) {
                continue;
            }
            let Some(values) = self.values(&unit.changes)? else {
                continue;
            };
            let effects = self.trials.effects(self.new, &values);
            let is_worse_somewhere = effects.iter().any(|effect| effect.percent < 0.0);
            unit.alone = Availability::Available(effects);
            if is_worse_somewhere {
                mixed.push(place);
            } else {
                good.push(place);
            }
        }
        let mut chosen = self.compatible(good, units)?;
        for place in mixed {
            let Some(before) = self.values(&changes(&chosen, units))? else {
                break;
            };
            let mut more = chosen.clone();
            more.push(place);
            let Some(after) = self.values(&changes(&more, units))? else {
                continue;
            };
            // What others repay may cover what it costs: that is a loss, too.
            let brings = self.trials.effects(&before, &after);
            let harms = brings.iter().any(|effect| effect.percent < 0.0);
            if !harms && self.betters_debt(&brings) {
                chosen = more;
            }
        }
        Ok(chosen)
    }

    /// Returns units that make a kernel together: all, or else one by one those that do not break
    /// what was taken before.
    fn compatible(&mut self, all: Vec<usize>, units: &[Unit]) -> Result<Vec<usize>, W::Error> {
        if self.values(&changes(&all, units))?.is_some() {
            return Ok(all);
        }
        let mut chosen = Vec::new();
        for place in all {
            let mut more = chosen.clone();
            more.push(place);
            if self.values(&changes(&more, units))?.is_some() {
                chosen = more;
            }
        }
        Ok(chosen)
    }

    /// Leaves out units without which no row is worse, and notes what each of the others brings.
    fn reduce(
        &mut self,
        chosen: &mut Vec<usize>,
        order: Vec<usize>,
        units: &mut [Unit],
    ) -> Result<(), W::Error> {
        let mut is_stale = false;
        let mut noted = Vec::new();
        for place in order {
            // Others need it to apply, or the budget is spent: it stays.
            let Some(brings) = self.brings(place, chosen, units)? else {
                continue;
            };
            if brings.iter().any(|effect| effect.percent > 0.0) {
                units[place].in_series = brings;
                noted.push(place);
            } else {
                units[place].in_series.clear();
                is_stale |= !noted.is_empty();
                chosen.retain(|other| *other != place);
            }
        }
        if is_stale {
            for place in chosen.iter() {
                if let Some(brings) = self.brings(*place, chosen, units)? {
                    units[*place].in_series = brings;
                }
            }
        }
        Ok(())
    }

    /// Returns what the chosen units lose without one of them; `None` if they are no kernel without
    /// it.
    fn brings(
        &mut self,
        place: usize,
        chosen: &[usize],
        units: &[Unit],
    ) -> Result<Option<Vec<Effect>>, W::Error> {
        if self.adds_up(place, chosen, units)? {
            return Ok(units[place].alone.value().cloned());
        }
        let without: Vec<usize> = chosen
            .iter()
            .copied()
            .filter(|other| *other != place)
            .collect();
        let Some(all) = self.values(&changes(chosen, units))? else {
            return Ok(None);
        };
        let Some(rest) = self.values(&changes(&without, units))? else {
            return Ok(None);
        };
        Ok(Some(self.trials.effects(&rest, &all)))
    }

    /// Returns whether the chosen units bring together what they bring alone, summed over the
    /// units, in the rows of one of them. Then no other unit has its effect too, and a kernel
    /// without it would only show what is known: values are exact, so that an overlap cannot
    /// hide.
    fn adds_up(
        &mut self,
        place: usize,
        chosen: &[usize],
        units: &[Unit],
    ) -> Result<bool, W::Error> {
        let Some(all) = self.values(&changes(chosen, units))? else {
            return Ok(false);
        };
        let Some(effects) = units[place].alone.value() else {
            return Ok(false);
        };
        let mut expected = self.new.clone();
        for place in chosen {
            let Some(alone) = self.values(&units[*place].changes)? else {
                return Ok(false);
            };
            for (row, values) in &mut expected {
                *values = plus(values, &minus(&alone[row], &self.new[row]));
            }
        }
        Ok(effects.iter().all(|effect| {
            let row = &effect.row;
            let brings = minus(&all[row], &self.new[row]);
            let sum = minus(&expected[row], &self.new[row]);
            brings
                .iter()
                .zip(&sum)
                .all(|(is, should)| (is - should).abs() <= SLACK * should.abs())
        }))
    }

    /// Returns the units in the order in which to try without them: first those whose effects do
    /// not add up with others', those with the most patches and the smallest effect first.
    fn order_of_reduction(
        &mut self,
        chosen: &[usize],
        units: &[Unit],
    ) -> Result<Vec<usize>, W::Error> {
        let mut keyed: Vec<(bool, usize, f64, usize)> = Vec::new();
        for place in chosen {
            let gain: f64 = units[*place]
                .effects_alone()
                .iter()
                .map(|effect| effect.percent)
                .sum();
            let adds_up = self.adds_up(*place, chosen, units)?;
            keyed.push((
                adds_up,
                usize::MAX - units[*place].changes.len(),
                gain,
                *place,
            ));
        }
        keyed.sort_by(|a, b| {
            (a.0, a.1)
                .cmp(&(b.0, b.1))
                .then(a.2.total_cmp(&b.2))
                .then(a.3.cmp(&b.3))
        });
        Ok(keyed.into_iter().map(|(.., place)| place).collect())
    }

    /// Adds reverts of causes that the candidates do not repay.
    fn add_reverts(
        &mut self,
        chosen: &mut Vec<usize>,
        outcome: &mut Outcome,
    ) -> Result<(), W::Error> {
        for cause in outcome.causes.clone() {
            let Some(before) = self.values(&changes(chosen, &outcome.units))? else {
                return Ok(());
            };
            if !self.is_unpaid(&cause, &before) {
                continue;
            }
            let change = Change::Revert(cause.point);
            let unit = Unit {
                change,
                changes: vec![change],
                alone: Availability::Available(Vec::new()),
                in_series: Vec::new(),
            };
            let place = outcome.units.len();
            outcome.units.push(unit);
            let mut more = chosen.clone();
            more.push(place);
            let kernel = self.trials.with([change]);
            let alone = match self.trials.measure(&kernel, &self.rows)? {
                Answer::Values(values) => {
                    Availability::Available(self.trials.effects(self.new, &values))
                }
                Answer::Failed(failure) => Availability::Unavailable(failure),
            };
            let after = self.values(&changes(&more, &outcome.units))?;
            outcome.units[place].alone = alone;
            let Some(after) = after else { continue };
            let brings = self.trials.effects(&before, &after);
            let harms = brings.iter().any(|effect| effect.percent < 0.0);
            if !harms && self.betters_debt(&brings) {
                outcome.units[place].in_series = brings;
                *chosen = more;
            }
        }
        let mut reverted: BTreeSet<usize> = BTreeSet::new();
        for place in chosen
            .iter()
            .filter(|place| matches!(outcome.units[**place].change, Change::Revert(_)))
        {
            reverted.extend(
                outcome.units[*place]
                    .effects_alone()
                    .iter()
                    .map(|effect| effect.row),
            );
        }
        // Candidates for the same rows may be needed no more.
        let doubtful: Vec<usize> = chosen
            .iter()
            .copied()
            .filter(|place| {
                outcome.units[*place]
                    .effects_alone()
                    .iter()
                    .any(|effect| reverted.contains(&effect.row))
            })
            .collect();
        if doubtful.is_empty() {
            Ok(())
        } else {
            self.reduce(chosen, doubtful, &mut outcome.units)
        }
    }

    /// Returns whether the series leaves so much of a cause's effect that its revert is worth a
    /// trial.
    fn is_unpaid(&self, cause: &Cause, series: &Values) -> bool {
        let Some(Availability::Available(brings)) = &cause.reverted else {
            return false;
        };
        for effect in &cause.effects {
            let row = effect.row;
            let left = self
                .trials
                .judge(row, &self.baseline[&row], &series[&row])
                .percent;
            let helps = brings
                .iter()
                .any(|brings| brings.row == row && brings.percent > 0.0);
            if helps && left <= effect.percent * UNPAID {
                return true;
            }
        }
        false
    }
}

/// Returns the changes of units, in the order in which they are made.
fn changes(chosen: &[usize], units: &[Unit]) -> Vec<Change> {
    let all: BTreeSet<Change> = chosen
        .iter()
        .flat_map(|place| units[*place].changes.iter().copied())
        .collect();
    let (applied, mut reverted): (Vec<Change>, Vec<Change>) = all
        .into_iter()
        .partition(|change| matches!(change, Change::Apply(_)));
    reverted.reverse();
    reverted.extend(applied);
    reverted
}
