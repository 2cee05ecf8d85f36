//! The repairs: candidates that better the rows of debts, each with those that it needs.

use std::collections::{BTreeMap, BTreeSet};

use model::Availability;

use super::Debtor;
use super::chain::{Chain, ChainSearch, Found, sum};
use super::changes::{Changes, Made};
use super::trials::{Answer, Judgement, Trials, Values, minus, plus};
use crate::outcome::Unit;
use crate::world::{Change, Failure, Phase, Suspicion, World};

/// A candidate with this weight is tried alone if it conflicts with others.
const SUSPECT: f64 = 4.0;
/// A few candidates that bring this share of a step are the ones.
const STEP_SHARE: f64 = 0.75;
/// Most candidates that one needs for its effect, beside those that git shows.
const PARTNERS_MAX: usize = 3;

/// Candidates that were tried alone, and those that apply or build nowhere.
#[derive(Debug, Default)]
pub(super) struct Tried {
    pub(super) units: Vec<Unit>,
    pub(super) failed: BTreeMap<usize, Failure>,
}

pub(super) fn repairs<W: World>(
    trials: &mut Trials<'_, W>,
    debts: &[Debtor],
    candidates: &[Suspicion],
    new: &Values,
) -> Result<Tried, W::Error> {
    let mut changes = Changes::default();
    trials.world.begin(Phase::Stack);
    let stack = stack(trials, &mut changes, debts, candidates)?;
    let mut failed = BTreeMap::new();
    for (change, failure) in &changes.failed {
        if !stack.contains(&number(*change)) {
            failed.insert(number(*change), failure.clone());
        }
    }
    let mut repairs = Repairs {
        trials,
        changes,
        debts,
        weights: candidates,
        new,
        units: Vec::new(),
    };
    repairs.trials.world.begin(Phase::Repairs);
    repairs.search(&stack, debts)?;
    repairs.trials.world.begin(Phase::Alternatives);
    repairs.search_alternatives(&stack)?;
    repairs.try_left_out(&mut failed)?;
    Ok(Tried {
        units: repairs.units,
        failed,
    })
}

/// The search for repairs.
struct Repairs<'t, 'a, W: World> {
    trials: &'t mut Trials<'a, W>,
    changes: Changes,
    debts: &'t [Debtor],
    weights: &'t [Suspicion],
    new: &'t Values,
    units: Vec<Unit>,
}

impl<W: World> Repairs<'_, '_, W> {
    /// Finds the candidates of a stack that better the rows of debts.
    fn search(&mut self, stack: &[usize], debts: &[Debtor]) -> Result<(), W::Error> {
        let mut suspicions = Vec::new();
        for number in stack {
            let all = &self.weights[*number];
            let mut weights = Vec::new();
            for debt in debts {
                let place = self
                    .debts
                    .iter()
                    .position(|other| other.row == debt.row)
                    .unwrap_or(0);
                weights.push(all.weights[place]);
            }
            suspicions.push(Suspicion {
                weights,
                ..all.clone()
            });
        }
        let chain = Chain::Stack(stack.to_vec());
        let mut search = ChainSearch::new(
            self.trials,
            &mut self.changes,
            chain,
            debts,
            &suspicions,
            self.new,
        );
        for (place, number) in stack.iter().enumerate() {
            let change = Change::Apply(*number);
            if let Some(unit) = self
                .units
                .iter()
                .find(|unit| unit.change == change && unit.changes.len() == 1)
            {
                search.try_alone(place + 1)?;
                search.expect(place + 1, unit);
            }
        }
        search.search()?;
        let found = search.found.clone();
        let mut units = Vec::new();
        for (position, found) in &found {
            if search.trials.world.is_spent() {
                break;
            }
            search.try_alone(*position)?;
            units.extend(unit_of(
                &mut search,
                debts,
                stack,
                *position,
                found,
                &suspicions,
                self.new,
            )?);
        }
        for (position, alone) in std::mem::take(&mut search.alone) {
            let change = Change::Apply(stack[position - 1]);
            if units.iter().any(|unit: &Unit| unit.change == change) {
                continue;
            }
            let effects = match &alone.values {
                Some(values) => Availability::Available(search.trials.effects(self.new, values)),
                None => Availability::Unavailable(search.changes.failure(change)),
            };
            let changes = alone.changes.into_iter().collect();
            units.push(Unit {
                change,
                changes,
                alone: effects,
                in_series: Vec::new(),
            });
        }
        for unit in units {
            if self.units.iter().all(|known| known.change != unit.change) {
                self.units.push(unit);
            }
        }
        Ok(())
    }

    /// Tries suspects alone that conflict with others of the stack: they may apply to NEW.
    fn try_left_out(&mut self, failed: &mut BTreeMap<usize, Failure>) -> Result<(), W::Error> {
        let rows: Vec<usize> = self.debts.iter().map(|debt| debt.row).collect();
        self.changes = Changes::default();
        for number in failed.keys().copied().collect::<Vec<_>>() {
            let is_suspect = self.weights[number]
                .weights
                .iter()
                .any(|weight| *weight >= SUSPECT);
            if !is_suspect
                || !matches!(failed[&number], Failure::Conflict { .. })
                || self.trials.world.is_spent()
            {
                continue;
            }
            let change = Change::Apply(number);
            let mut wanted = BTreeSet::from([change]);
            let Made::Values(values) = self.changes.make(self.trials, &mut wanted, &rows)? else {
                continue;
            };
            if wanted.contains(&change) {
                failed.remove(&number);
                let alone = Availability::Available(self.trials.effects(self.new, &values));
                let changes = wanted.into_iter().collect();
                self.units.push(Unit {
                    change,
                    changes,
                    alone,
                    in_series: Vec::new(),
                });
            }
        }
        Ok(())
    }

    /// Looks for other candidates in place of those that need others or make a row worse: the stack
    /// without all of them loses less than they bring if there are any.
    fn search_alternatives(&mut self, stack: &[usize]) -> Result<(), W::Error> {
        let mut stack = stack.to_vec();
        let mut examined = 0;
        while examined < self.units.len() && !self.trials.world.is_spent() {
            let units = self.units[examined..].to_vec();
            examined = self.units.len();
            let mut doubtful: BTreeSet<Change> = BTreeSet::new();
            let mut expected: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
            for unit in units {
                let Some(values) = self.doubtful(&unit)? else {
                    continue;
                };
                doubtful.insert(unit.change);
                for debt in self.debts {
                    let brings = minus(&values[&debt.row], &self.new[&debt.row]);
                    expected
                        .entry(debt.row)
                        .and_modify(|sum| *sum = plus(sum, &brings))
                        .or_insert(brings);
                }
            }
            if doubtful.is_empty() {
                continue;
            }
            let rows: Vec<usize> = self.debts.iter().map(|debt| debt.row).collect();
            let whole = self.trials.with(stack.iter().copied().map(Change::Apply));
            let Answer::Values(whole) = self.trials.measure(&whole, &rows)? else {
                continue;
            };
            let mut wanted: BTreeSet<Change> = stack.iter().copied().map(Change::Apply).collect();
            wanted.retain(|change| !doubtful.contains(change));
            self.changes.banned = doubtful;
            let made = self.changes.make(self.trials, &mut wanted, &rows);
            self.changes.banned.clear();
            let Made::Values(without) = made? else {
                continue;
            };
            let mut open = Vec::new();
            for debt in self.debts {
                let kept = plus(&without[&debt.row], &expected[&debt.row]);
                let judged =
                    self.trials
                        .judge_beyond(debt.row, &whole[&debt.row], &kept, debt.step_percent);
                if judged.verdict == Judgement::Better {
                    open.push(*debt);
                }
            }
            if !open.is_empty() {
                stack = wanted.into_iter().map(number).collect();
                self.search(&stack.clone(), &open)?;
            }
        }
        Ok(())
    }

    /// Returns the values of a unit that helps and for which another one would be better: it needs
    /// others, or makes a row worse.
    fn doubtful(&mut self, unit: &Unit) -> Result<Option<Values>, W::Error> {
        let helps = unit.effects_alone().iter().any(|effect| {
            effect.percent > 0.0 && self.debts.iter().any(|debt| debt.row == effect.row)
        });
        if !helps {
            return Ok(None);
        }
        let all: Vec<usize> = self.new.keys().copied().collect();
        let kernel = self.trials.with(unit.changes.iter().copied());
        let Answer::Values(values) = self.trials.measure(&kernel, &all)? else {
            return Ok(None);
        };
        let harms = self
            .trials
            .effects(self.new, &values)
            .iter()
            .any(|effect| effect.percent < 0.0);
        Ok((unit.changes.len() > 1 || harms).then_some(values))
    }
}

/// Returns the candidates that can be applied to NEW together, in order. One that breaks the kernel
/// without a trace is found by halves: the first candidates up to a place are a position of the
/// chain, so that the search for repairs uses each kernel that runs.
fn stack<W: World>(
    trials: &mut Trials<'_, W>,
    changes: &mut Changes,
    debts: &[Debtor],
    weights: &[Suspicion],
) -> Result<Vec<usize>, W::Error> {
    let rows: Vec<usize> = debts.iter().map(|debt| debt.row).collect();
    let all = (0..weights.len()).filter(|number| weights[*number].is_compiled);
    let mut stack: BTreeSet<Change> = all.map(Change::Apply).collect();
    // So many of the first candidates run together.
    let mut running = 0;
    loop {
        let made = changes.make(trials, &mut stack, &rows)?;
        match made {
            Made::Values(_) => return Ok(stack.into_iter().map(number).collect()),
            Made::Nothing => return Ok(Vec::new()),
            Made::Broken => {}
        }
        let order: Vec<Change> = stack.iter().copied().collect();
        let mut broken = order.len();
        running = running.min(broken - 1);
        while broken - running > 1 {
            let middle = running.midpoint(broken);
            let mut first: BTreeSet<Change> = order[..middle].iter().copied().collect();
            match changes.make(trials, &mut first, &rows)? {
                Made::Broken => broken = middle,
                Made::Values(_) | Made::Nothing => running = middle,
            }
            // Among few, the failure shows which one it is: it is noted, and the kernel was one
            // without it.
            if order[..middle]
                .iter()
                .any(|change| changes.failed.contains_key(change))
            {
                break;
            }
        }
        if order
            .iter()
            .all(|change| !changes.failed.contains_key(change))
        {
            let failure =
                Failure::DoesNotRun("the stack of candidates does not run with it".to_owned());
            changes.failed.insert(order[broken - 1], failure);
        } else {
            running = 0;
        }
        stack.retain(|change| !changes.failed.contains_key(change));
    }
}

/// Returns the unit of a candidate that was found in the stack: alone if that suffices, else with
/// those that it needs.
fn unit_of<W: World>(
    search: &mut ChainSearch<'_, '_, W>,
    debts: &[Debtor],
    stack: &[usize],
    position: usize,
    found: &Found,
    suspicions: &[Suspicion],
    new: &Values,
) -> Result<Option<Unit>, W::Error> {
    let rows: Vec<usize> = debts.iter().map(|debt| debt.row).collect();
    let change = search.change(position);
    let Some(alone) = search.alone.get(&position).cloned() else {
        return Ok(None);
    };
    let mut fixed = alone.changes;
    let mut values = alone.values;
    for _ in 0..=PARTNERS_MAX {
        let lacking = found.added.iter().find(|(debt, added)| {
            let brings = match &values {
                Some(values) => sum(&search.added(**debt, values)),
                None => 0.0,
            };
            brings / sum(added) < STEP_SHARE
        });
        let Some((debt, added)) = lacking else {
            let values = values.unwrap_or_default();
            let alone = Availability::Available(search.trials.effects(new, &values));
            return Ok(Some(Unit {
                change,
                changes: fixed.into_iter().collect(),
                alone,
                in_series: Vec::new(),
            }));
        };
        let mut earlier: Vec<usize> = (1..position).collect();
        let weight = |at: &usize| suspicions[*at - 1].weights[*debt];
        earlier.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(b.cmp(a)));
        let others: Vec<(Change, f64)> = earlier
            .into_iter()
            .map(|at| (Change::Apply(stack[at - 1]), weight(&at)))
            .collect();
        let Some(partner) = partner(search, *debt, added, &fixed, &others, &rows)? else {
            break;
        };
        fixed.insert(partner);
        let mut wanted = fixed.clone();
        values = match search.changes.make(search.trials, &mut wanted, &rows)? {
            Made::Values(values) if fixed.is_subset(&wanted) => Some(values),
            _ => None,
        };
        if values.is_some() {
            fixed = wanted;
        }
    }
    Ok(None)
}

/// Returns how many of at least two changes have half of their weight: at least one, and not all.
fn half_by_weight(weights: &[f64]) -> usize {
    let half = 0.5 * weights.iter().sum::<f64>();
    let mut before = 0.0;
    for (count, weight) in weights.iter().enumerate().skip(1) {
        before += weights[count - 1];
        if before + 0.5 * weight >= half {
            return count;
        }
    }
    weights.len() - 1
}

/// Returns the first of `others`, with their weights, with which, and with those before it, `fixed`
/// brings its share of a step.
fn partner<W: World>(
    search: &mut ChainSearch<'_, '_, W>,
    debt: usize,
    added: &[f64],
    fixed: &BTreeSet<Change>,
    others: &[(Change, f64)],
    rows: &[usize],
) -> Result<Option<Change>, W::Error> {
    let others = others
        .iter()
        .copied()
        .filter(|(other, _)| !fixed.contains(other));
    let (others, weights): (Vec<Change>, Vec<f64>) = others.unzip();
    let mut suffices = |count: usize| -> Result<bool, W::Error> {
        let mut wanted: BTreeSet<Change> = fixed.iter().chain(&others[..count]).copied().collect();
        let mut without: BTreeSet<Change> = others[..count].iter().copied().collect();
        let Made::Values(values) = search.changes.make(search.trials, &mut wanted, rows)? else {
            return Ok(false);
        };
        if !fixed.is_subset(&wanted) {
            return Ok(false);
        }
        // What the others bring without it does not count.
        without.retain(|change| search.brings_alone(*change, debt).is_some());
        let known: f64 = without
            .iter()
            .filter_map(|change| search.brings_alone(*change, debt))
            .sum();
        Ok((sum(&search.added(debt, &values)) - known) / sum(added) >= STEP_SHARE)
    };
    let mut without = 0;
    let mut with = others.len();
    // All of them together suffice, as the stack has the effect: that is measured only if no part
    // does.
    while with - without > 1 {
        let middle = without + half_by_weight(&weights[without..with]);
        if suffices(middle)? {
            with = middle;
        } else {
            without = middle;
        }
    }
    if with == others.len() && (others.is_empty() || !suffices(with)?) {
        return Ok(None);
    }
    Ok(Some(others[with - 1]))
}

/// Returns the number of a candidate; points of the history do not occur here.
fn number(change: Change) -> usize {
    match change {
        Change::Apply(number) | Change::Revert(number) => number,
    }
}
