//! The repairs: candidates that better the rows of debts, each with those that it needs.

use std::collections::{BTreeMap, BTreeSet};

use super::Debtor;
use super::chain::{Chain, ChainSearch, Found, sum};
use super::changes::{Changes, Made, only};
use super::trials::{Judgement, Trials, Values, minus, plus};
use crate::outcome::Unit;
use crate::world::{Change, Failure, Suspicion, World};

/// What a part without effect leaves of its members' weights.
const ACQUITTED: f64 = 0.02;
/// A few candidates that bring this share of a step are the ones.
const SHARE: f64 = 0.75;
/// Most candidates that one needs for its effect, beside those that git shows.
const PARTNERS_MAX: usize = 3;

/// Finds the repairs; also returns what applies or builds nowhere.
pub(super) fn repairs<W: World>(
    trials: &mut Trials<'_, W>,
    debts: &[Debtor],
    candidates: &[Suspicion],
    new: &Values,
) -> Result<(Vec<Unit>, BTreeMap<usize, Failure>), W::Error> {
    let mut changes = Changes::default();
    let mut weights: Vec<Suspicion> = candidates.to_vec();
    let stack = stack(trials, &mut changes, debts, &mut weights, new)?;
    let broken = changes.failed.clone();
    let suspicions: Vec<Suspicion> = stack.iter().map(|number| weights[*number].clone()).collect();
    let mut search = ChainSearch::new(trials, &mut changes, Chain::Stack(stack.clone()), debts, &suspicions, new);
    search.search()?;
    let found = search.found.clone();
    let mut units = Vec::new();
    for (position, found) in &found {
        if search.trials.world.is_spent() {
            break;
        }
        search.try_alone(*position)?;
        units.extend(unit_of(&mut search, debts, &stack, *position, found, &suspicions, new)?);
    }
    for (position, alone) in std::mem::take(&mut search.alone) {
        let change = Change::Apply(stack[position - 1]);
        if units.iter().any(|unit: &Unit| unit.change == change) {
            continue;
        }
        let effects = match &alone.values {
            Some(values) => Ok(search.trials.effects(new, values)),
            None => Err(search.changes.failure(change)),
        };
        let changes = alone.changes.into_iter().collect();
        units.push(Unit { change, changes, alone: effects, in_series: Vec::new() });
    }
    let mut failed = BTreeMap::new();
    for (change, failure) in broken {
        if let Change::Apply(number) = change
            && !stack.contains(&number)
        {
            failed.insert(number, failure);
        }
    }
    Ok((units, failed))
}

/// Returns the candidates that can be applied to NEW together, in order. One that breaks the kernel without a trace is found
/// by halves.
fn stack<W: World>(
    trials: &mut Trials<'_, W>,
    changes: &mut Changes,
    debts: &[Debtor],
    weights: &mut [Suspicion],
    new: &Values,
) -> Result<Vec<usize>, W::Error> {
    let rows: Vec<usize> = debts.iter().map(|debt| debt.row).collect();
    let all = (0..weights.len()).filter(|number| weights[*number].is_compiled);
    let mut stack: BTreeSet<Change> = all.map(Change::Apply).collect();
    let mut suspects: BTreeSet<Change> = BTreeSet::new();
    while !stack.is_empty() {
        let mut wanted = if suspects.is_empty() { stack.clone() } else { half_of(&suspects) };
        let asked = wanted.clone();
        match changes.make(trials, &mut wanted, &rows)? {
            Made::Values(_) if suspects.is_empty() => {
                stack = wanted;
                break;
            }
            Made::Values(values) => {
                for (debt, debtor) in debts.iter().enumerate() {
                    let brings = minus(&values[&debtor.row], &new[&debtor.row]);
                    if !betters(trials, debtor, new, &brings) {
                        asked.iter().for_each(|change| weights[number(*change)].weights[debt] *= ACQUITTED);
                    }
                }
                suspects.retain(|change| !asked.contains(change));
                if let Some(last) = only(&suspects) {
                    let failure = Failure::DoesNotRun("the stack of candidates does not run with it".to_owned());
                    changes.failed.insert(last, failure);
                    suspects.clear();
                }
            }
            Made::Nothing if trials.world.is_spent() => return Ok(Vec::new()),
            Made::Nothing => suspects.retain(|change| !asked.contains(change)),
            Made::Broken => {
                if let Some(single) = only(&asked) {
                    // With those that it needs.
                    changes.failed.insert(single, Failure::DoesNotRun("no kernel runs with it".to_owned()));
                }
                suspects = asked;
            }
        }
        stack.retain(|change| !changes.failed.contains_key(change));
        suspects.retain(|change| !changes.failed.contains_key(change));
    }
    Ok(stack.into_iter().map(number).collect())
}

/// Returns the unit of a candidate that was found in the stack: alone if that suffices, else with those that it needs.
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
    let Some(alone) = search.alone.get(&position).cloned() else { return Ok(None) };
    let mut fixed = alone.changes;
    let mut values = alone.values;
    for _ in 0..=PARTNERS_MAX {
        let brings = |debt: usize| match &values {
            Some(values) => sum(&search.added(debt, values)),
            None => 0.0,
        };
        let lacking = found.added.iter().find(|(debt, added)| brings(**debt) / sum(added) < SHARE);
        let Some((debt, added)) = lacking else {
            let values = values.unwrap_or_default();
            let alone = Ok(search.trials.effects(new, &values));
            return Ok(Some(Unit { change, changes: fixed.into_iter().collect(), alone, in_series: Vec::new() }));
        };
        let mut earlier: Vec<usize> = (1..position).collect();
        let weight = |at: &usize| suspicions[*at - 1].weights[*debt];
        earlier.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(b.cmp(a)));
        let others: Vec<Change> = earlier.into_iter().map(|at| Change::Apply(stack[at - 1])).collect();
        let Some(partner) = partner(search, *debt, added, &fixed, &others, &rows)? else { break };
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

/// Returns the first of `others` with which, and with those before it, `fixed` brings its share of a step.
fn partner<W: World>(
    search: &mut ChainSearch<'_, '_, W>,
    debt: usize,
    added: &[f64],
    fixed: &BTreeSet<Change>,
    others: &[Change],
    rows: &[usize],
) -> Result<Option<Change>, W::Error> {
    let others: Vec<Change> = others.iter().copied().filter(|other| !fixed.contains(other)).collect();
    let mut suffices = |count: usize| -> Result<bool, W::Error> {
        let mut wanted: BTreeSet<Change> = fixed.iter().chain(&others[..count]).copied().collect();
        let mut without: BTreeSet<Change> = others[..count].iter().copied().collect();
        let Made::Values(values) = search.changes.make(search.trials, &mut wanted, rows)? else { return Ok(false) };
        if !fixed.is_subset(&wanted) {
            return Ok(false);
        }
        // What the others bring without it does not count.
        without.retain(|change| search.brings_alone(*change, debt).is_some());
        let known: f64 = without.iter().filter_map(|change| search.brings_alone(*change, debt)).sum();
        Ok((sum(&search.added(debt, &values)) - known) / sum(added) >= SHARE)
    };
    let (mut without, mut with, mut step) = (0, None, 1);
    while with.is_none() && without < others.len() {
        let count = (without + step).min(others.len());
        if suffices(count)? {
            with = Some(count)
        } else {
            without = count
        }
        step *= 2;
    }
    let Some(mut with) = with else { return Ok(None) };
    while with - without > 1 {
        let middle = without.midpoint(with);
        if suffices(middle)? { with = middle } else { without = middle }
    }
    Ok(Some(others[with - 1]))
}

fn betters<W: World>(trials: &Trials<'_, W>, debtor: &Debtor, new: &Values, brings: &[f64]) -> bool {
    let before = &new[&debtor.row];
    let judged = trials.judge_beyond(debtor.row, before, &plus(before, brings), debtor.step_percent);
    judged.verdict == Judgement::Better
}

/// Returns the number of a candidate; points of the history do not occur here.
fn number(change: Change) -> usize {
    match change {
        Change::Apply(number) | Change::Revert(number) => number,
    }
}

/// Returns the first half of a set.
fn half_of(set: &BTreeSet<Change>) -> BTreeSet<Change> {
    set.iter().copied().take(set.len().div_ceil(2)).collect()
}
