//! Finds the changes that moved rows along a chain of changes: the commits of the history, or the
//! stack of candidates on NEW. One search for all rows, as a kernel answers for all of them.
//!
//! A measured point of the chain splits it for each row; whatever a change needs comes before it.
//! The next point is the one that separates most for all rows together, by the evidence. A change
//! that is probably the one is tried on NEW alone: that kernel is measured in any case.

use std::collections::{BTreeMap, BTreeSet};

use super::Debtor;
use super::changes::{Changes, Made};
use super::trials::{Answer, Judgement, Trials, Values, minus, plus};
use crate::outcome::Unit;
use crate::world::{Change, Kernel, Suspicion, World};

/// A change that brings so much more than what is not explained shares its effect with others.
const OVERLAP: f64 = 0.05;
/// A failed trial of a change alone is worth less than its bits: the change may need others. Fitted
/// in made-up worlds.
const ALONE: f64 = 0.5;
/// A change explains a row if no other one weighs so much more.
const LIKELY: f64 = 0.5;
/// Least seconds, bits and probabilities in a ratio.
const LEAST: f64 = 1e-6;
/// What a trial without the expected effect leaves of a change's weight.
const ACQUITTED: f64 = 0.001;
/// A change that brings this share of what is not explained alone is one of those that moved the
/// row.
const MOVER_SHARE: f64 = 0.25;

/// The changes of a chain.
pub(super) enum Chain {
    /// Commits up to NEW: a row became worse.
    History,
    /// Candidates applied to NEW one after the other: a row became better.
    Stack(Vec<usize>),
}

/// A change that moved rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Found {
    /// The first position of those that cannot be separated.
    pub(super) first: usize,
    /// What it added per debt, seed by seed.
    pub(super) added: BTreeMap<usize, Vec<f64>>,
}

/// What was tried on NEW alone.
#[derive(Debug, Clone)]
pub(super) struct Alone {
    /// The change and its prerequisites.
    pub(super) changes: BTreeSet<Change>,
    /// `None` if that is no kernel to measure.
    pub(super) values: Option<Values>,
}

/// An interval with a change that moved a row: after position `from`, up to `to`.
struct Open {
    debt: usize,
    from: usize,
    to: usize,
    /// What is not explained between them.
    remainder: Vec<f64>,
}

/// What to do next.
enum Step {
    /// Tries the change of a position alone.
    Alone(usize),
    /// Measures a position.
    Point(usize),
}

/// The search along a chain.
pub(super) struct ChainSearch<'t, 'a, W: World> {
    pub(super) trials: &'t mut Trials<'a, W>,
    pub(super) changes: &'t mut Changes,
    chain: Chain,
    debts: &'t [Debtor],
    rows: Vec<usize>,
    new: &'t Values,
    /// Per position from 1 on, per debt.
    weights: Vec<Vec<f64>>,
    is_possible: Vec<bool>,
    /// Per position: how much its weights count in the open intervals.
    joint: Vec<f64>,
    points: BTreeMap<usize, Values>,
    unusable: BTreeSet<usize>,
    pub(super) alone: BTreeMap<usize, Alone>,
    pub(super) found: BTreeMap<usize, Found>,
}

impl<'t, 'a, W: World> ChainSearch<'t, 'a, W> {
    pub(super) fn new(
        trials: &'t mut Trials<'a, W>,
        changes: &'t mut Changes,
        chain: Chain,
        debts: &'t [Debtor],
        suspicions: &[Suspicion],
        new: &'t Values,
    ) -> Self {
        Self {
            trials,
            changes,
            chain,
            debts,
            rows: debts.iter().map(|debt| debt.row).collect(),
            new,
            weights: suspicions
                .iter()
                .map(|suspicion| suspicion.weights.clone())
                .collect(),
            is_possible: suspicions
                .iter()
                .map(|suspicion| suspicion.is_compiled)
                .collect(),
            joint: vec![1.0; suspicions.len() + 1],
            points: BTreeMap::new(),
            unusable: BTreeSet::new(),
            alone: BTreeMap::new(),
            found: BTreeMap::new(),
        }
    }

    /// Searches until every row is explained.
    pub(super) fn search(&mut self) -> Result<(), W::Error> {
        let last = self.weights.len();
        for end in [0, last] {
            self.probe(end)?;
        }
        if !self.points.contains_key(&0) || !self.points.contains_key(&last) {
            return Ok(());
        }
        while !self.trials.world.is_spent() {
            let open = self.close_enclosed();
            if open.is_empty() {
                break;
            }
            self.weigh(&open);
            match self.next(&open) {
                Some(Step::Alone(position)) => {
                    self.try_alone(position)?;
                    self.account(position, &open);
                }
                Some(Step::Point(position)) => self.probe(position)?,
                None => break,
            }
        }
        Ok(())
    }

    /// Returns the kernel at a position.
    fn kernel(&self, position: usize) -> Kernel {
        match &self.chain {
            Chain::History => Kernel::Point(position),
            Chain::Stack(stack) => self.trials.with(
                stack[..position]
                    .iter()
                    .map(|number| Change::Apply(*number)),
            ),
        }
    }

    /// Returns the change that shows on NEW what a position adds.
    pub(super) fn change(&self, position: usize) -> Change {
        match &self.chain {
            Chain::History => Change::Revert(position),
            Chain::Stack(stack) => Change::Apply(stack[position - 1]),
        }
    }

    /// Returns what changes on NEW show that the chain adds in the row of a debt.
    pub(super) fn added(&self, debt: usize, values: &Values) -> Vec<f64> {
        let row = self.debts[debt].row;
        match self.chain {
            Chain::History => minus(&self.new[&row], &values[&row]),
            Chain::Stack(_) => minus(&values[&row], &self.new[&row]),
        }
    }

    /// Returns whether adding this to the values moves the row in the direction that is searched.
    pub(super) fn moves(&self, debt: usize, before: &[f64], added: &[f64]) -> bool {
        let debtor = &self.debts[debt];
        let judged = self.trials.judge_beyond(
            debtor.row,
            before,
            &plus(before, added),
            debtor.step_percent,
        );
        match self.chain {
            Chain::History => judged.verdict == Judgement::Worse,
            Chain::Stack(_) => judged.verdict == Judgement::Better,
        }
    }

    fn weight(&self, position: usize, debt: usize) -> f64 {
        if self.is_suspect(position, debt) {
            self.weights[position - 1][debt] * self.joint[position]
        } else {
            0.0
        }
    }

    /// Weighs the changes of all open intervals: one that is suspected in several rows that moved
    /// explains them together.
    fn weigh(&mut self, open: &[Open]) {
        let mut most = vec![0.0; self.debts.len()];
        let mut joint = vec![0.0; self.weights.len() + 1];
        for interval in open {
            for position in interval.from + 1..=interval.to {
                most[interval.debt] = f64::max(
                    most[interval.debt],
                    self.weights[position - 1][interval.debt],
                );
            }
        }
        for interval in open {
            for (position, joint) in joint
                .iter_mut()
                .enumerate()
                .take(interval.to + 1)
                .skip(interval.from + 1)
            {
                if self.weights[position - 1][interval.debt] >= 0.5 * most[interval.debt] {
                    *joint += 1.0;
                }
            }
        }
        self.joint = joint
            .into_iter()
            .map(|rows: f64| rows.max(1.0).powi(2))
            .collect();
    }

    fn is_suspect(&self, position: usize, debt: usize) -> bool {
        let is_found = self
            .found
            .get(&position)
            .is_some_and(|found| found.added.contains_key(&debt));
        self.is_possible[position - 1] && !is_found
    }

    fn probe(&mut self, position: usize) -> Result<(), W::Error> {
        let kernel = self.kernel(position);
        match self.trials.measure(&kernel, &self.rows)? {
            Answer::Values(values) => drop(self.points.insert(position, values)),
            Answer::Failed(_) => drop(self.unusable.insert(position)),
        }
        Ok(())
    }

    /// Returns the intervals in which a row moved, beyond what was found.
    fn open(&self) -> Vec<Open> {
        let mut open = Vec::new();
        let points: Vec<usize> = self.points.keys().copied().collect();
        for (debt, debtor) in self.debts.iter().enumerate() {
            for pair in points.windows(2) {
                let from = pair[0];
                let to = pair[1];
                let before = &self.points[&from][&debtor.row];
                let after = &self.points[&to][&debtor.row];
                let mut remainder = minus(after, before);
                for found in self
                    .found
                    .range(from + 1..=to)
                    .filter_map(|(_, found)| found.added.get(&debt))
                {
                    remainder = minus(&remainder, found);
                }
                if self.moves(debt, before, &remainder) {
                    open.push(Open {
                        debt,
                        from,
                        to,
                        remainder,
                    });
                }
            }
        }
        open
    }

    /// Notes the changes that are enclosed, and returns the other intervals.
    fn close_enclosed(&mut self) -> Vec<Open> {
        let mut others = Vec::new();
        for open in self.open() {
            let inside = open.from + 1..=open.to;
            let suspects: Vec<usize> = inside
                .filter(|position| self.is_suspect(*position, open.debt))
                .collect();
            // Every change in it is explained: the effects are no sum.
            let Some((last, earlier)) = suspects.split_last() else {
                continue;
            };
            // Of changes that cannot be separated, the last one stands for all.
            if earlier
                .iter()
                .all(|position| self.unusable.contains(position))
            {
                let first = *suspects.first().unwrap_or(last);
                let found = self.found.entry(*last).or_insert(Found {
                    first,
                    added: BTreeMap::new(),
                });
                found.added.insert(open.debt, open.remainder);
            } else {
                others.push(open);
            }
        }
        others
    }

    /// Returns the most informative step per second. A trial of a change alone costs nothing if it
    /// is the one, as it is measured in any case.
    fn next(&mut self, open: &[Open]) -> Option<Step> {
        let mut best: Option<(f64, Step)> = None;
        let mut offer = |rate: f64, step: Step| {
            if rate > 0.0 && best.as_ref().is_none_or(|(most, _)| rate > *most) {
                best = Some((rate, step));
            }
        };
        if let Some((probability, position)) = self.most_probable(open) {
            let kernel = self.trials.with([self.change(position)]);
            let cost = self.cost(&kernel) * (1.0 - probability).max(LEAST);
            offer(
                ALONE * entropy(probability).max(LEAST) / cost,
                Step::Alone(position),
            );
        }
        for (position, bits) in self.bits_of_points(open).into_iter().enumerate() {
            if bits > 0.0 {
                let kernel = self.kernel(position);
                offer(bits / self.cost(&kernel), Step::Point(position));
            }
        }
        best.map(|(_, step)| step)
    }

    fn cost(&mut self, kernel: &Kernel) -> f64 {
        if self.trials.world.cost_s(kernel) > 0.0 {
            1.0
        } else {
            LEAST
        }
    }

    /// Returns the most probable change of an interval that was not tried alone, with its
    /// probability.
    fn most_probable(&self, open: &[Open]) -> Option<(f64, usize)> {
        let mut best: Option<(f64, usize)> = None;
        for interval in open {
            let inside = interval.from + 1..=interval.to;
            let all: f64 = inside
                .clone()
                .map(|position| self.weight(position, interval.debt))
                .sum();
            for position in inside.filter(|position| !self.alone.contains_key(position)) {
                let probability = self.weight(position, interval.debt) / all;
                if best.is_none_or(|(most, _)| probability > most) {
                    best = Some((probability, position));
                }
            }
        }
        best
    }

    /// Tries a change on NEW alone, unless it was tried.
    pub(super) fn try_alone(&mut self, position: usize) -> Result<(), W::Error> {
        if self.alone.contains_key(&position) {
            return Ok(());
        }
        let change = self.change(position);
        let mut wanted = BTreeSet::from([change]);
        let values = match self.changes.make(self.trials, &mut wanted, &self.rows)? {
            Made::Values(values) if wanted.contains(&change) => Some(values),
            _ => None,
        };
        if values.is_none() {
            wanted = BTreeSet::from([change]);
        }
        self.alone.insert(
            position,
            Alone {
                changes: wanted,
                values,
            },
        );
        Ok(())
    }

    /// Returns whether no other change of an interval is much more suspicious.
    fn is_likely(&self, position: usize, interval: &Open) -> bool {
        let inside = interval.from + 1..=interval.to;
        let most = inside
            .map(|other| self.weight(other, interval.debt))
            .fold(0.0, f64::max);
        self.weight(position, interval.debt) >= LIKELY * most
    }

    /// Notes what a unit that is known brings as what its change adds to the chain.
    pub(super) fn expect(&mut self, position: usize, unit: &Unit) {
        let Some(Alone {
            values: Some(values),
            ..
        }) = self.alone.get(&position).cloned()
        else {
            return;
        };
        let mut found = Found {
            first: position,
            added: BTreeMap::new(),
        };
        for (debt, debtor) in self.debts.iter().enumerate() {
            let effects = unit.effects_alone();
            if effects.iter().any(|effect| effect.row == debtor.row) {
                found.added.insert(debt, self.added(debt, &values));
            }
        }
        self.found.insert(position, found);
    }

    /// Returns what a change that was found brings in a row alone, summed over the seeds; `None` if
    /// it was not found.
    pub(super) fn brings_alone(&self, change: Change, debt: usize) -> Option<f64> {
        let position = self
            .found
            .keys()
            .copied()
            .find(|position| self.change(*position) == change)?;
        let values = self.alone.get(&position)?.values.as_ref()?;
        Some(sum(&self.added(debt, values)))
    }

    /// Notes a change that was tried alone in the intervals that it explains, and acquits it in the
    /// others.
    fn account(&mut self, position: usize, open: &[Open]) {
        let Some(Alone {
            values: Some(values),
            ..
        }) = self.alone.get(&position).cloned()
        else {
            return;
        };
        for interval in open
            .iter()
            .filter(|open| open.from < position && position <= open.to)
        {
            let added = self.added(interval.debt, &values);
            let row = self.debts[interval.debt].row;
            let share = sum(&added) / sum(&interval.remainder);
            let moves = self.moves(interval.debt, &self.new[&row], &added);
            if moves && share > 1.0 + OVERLAP {
                // Others bring some of it, too: only the chain shows what it adds to them.
                continue;
            }
            if moves && !self.is_likely(position, interval) {
                // Another is suspected more: this one may be needed by it, as where two show only
                // together.
                continue;
            }
            if moves && share >= MOVER_SHARE {
                let found = self.found.entry(position).or_insert(Found {
                    first: position,
                    added: BTreeMap::new(),
                });
                found.added.insert(interval.debt, added);
            } else {
                self.weights[position - 1][interval.debt] *= ACQUITTED;
            }
        }
    }

    /// Returns the bits of information in the measurement of each position.
    fn bits_of_points(&self, open: &[Open]) -> Vec<f64> {
        let mut bits = vec![0.0; self.weights.len() + 1];
        for interval in open {
            let all: f64 = (interval.from + 1..=interval.to)
                .map(|at| self.weight(at, interval.debt))
                .sum();
            let mut before = 0.0;
            for (position, bits) in bits
                .iter_mut()
                .enumerate()
                .take(interval.to)
                .skip(interval.from + 1)
            {
                before += self.weight(position, interval.debt);
                if self.is_possible[position - 1] && !self.unusable.contains(&position) {
                    *bits += entropy(before / all);
                }
            }
        }
        bits
    }
}

pub(super) fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// Returns the bits of information in a yes with this probability.
fn entropy(probability: f64) -> f64 {
    let rest = 1.0 - probability;
    plogp(probability) + plogp(rest)
}

fn plogp(p: f64) -> f64 {
    if p > 0.0 && p < 1.0 {
        -p * p.log2()
    } else {
        0.0
    }
}
