//! Invents the plan of a world from a seed: 300 commits, of which 5 are causes and 6 repair them.
//!
//! Every world has two causes in one function, a cause that shows only with another, one traded for
//! a gain elsewhere, a repair that repays only a part, one that needs a prerequisite, and one that
//! conflicts trivially. By the seed a world may also have alternatives, a repair with harm, a cause
//! without a repair, gains and losses that have no part in it, points and candidates that do not
//! build, and a BASELINE beside the history.

use std::collections::BTreeSet;

use crate::made_up::dice::Dice;
use crate::made_up::plan::{
    Candidate, Commit, Effect, Flaw, Lie, Part, Patch, Plan, Repair, Row, SEEDS,
};

/// Commits of the history and candidates together.
const COMMITS: usize = 300;
/// Functions that rows execute, and those that they do not.
const EXECUTED: usize = 60;
const FUNCTIONS: usize = 260;
/// Rows that no cause makes worse: one for the gain of the trade, one for harm, one for gains
/// beside it.
const CLEAN: usize = 3;
const TRADED: usize = 0;
const HARMED: usize = 1;
const GAINED: usize = 2;
/// The places of the causes in the list: two in one function, the pair of which the second needs
/// the first, the trade.
const FIRST: usize = 2;
const SECOND: usize = 3;
const TRADE: usize = 4;
const CAUSES: usize = 5;

/// A loss of a cause: a row and its additional instructions.
type Loss = (usize, i64);

/// A cause, before its repairs are known.
struct Draft {
    function: usize,
    losses: Vec<Loss>,
    needs: Vec<Part>,
}

/// A plan that is being made.
struct Inventor {
    dice: Dice,
    plan: Plan,
    /// The causes in the order of their places above.
    causes: Vec<Draft>,
    /// Candidates without a part yet, in random order.
    free: Vec<usize>,
}

/// Invents a plan in which only causes, repairs and a few strangers change values.
pub(crate) fn invent(seed: u64) -> Plan {
    inventor(seed).plan
}

/// Invents a plan in which each change to what a row executes also changes its value by up to 0.02
/// %.
pub(crate) fn invent_with_drift(seed: u64) -> Plan {
    let mut inventor = inventor(seed);
    inventor.add_drift();
    inventor.plan
}

fn inventor(seed: u64) -> Inventor {
    let mut dice = Dice::new(seed);
    let history = dice.between(100, 200);
    let rows = dice.between(8, 36);
    let rows = (0..rows).map(|_| row(&mut dice)).collect();
    let commits = (0..history)
        .map(|_| Commit {
            patch: patch(&mut dice),
            below: None,
        })
        .collect();
    let candidates = (0..COMMITS - history)
        .map(|_| Candidate {
            patch: patch(&mut dice),
            applies_on: Vec::new(),
            builds_with: Vec::new(),
            shown: Vec::new(),
            flaw: None,
        })
        .collect();
    let plan = Plan {
        rows,
        commits,
        candidates,
        effects: Vec::new(),
        breaks: Vec::new(),
        side: None,
        causes: Vec::new(),
    };
    let mut free: Vec<usize> = (0..COMMITS - history).collect();
    dice.shuffle(&mut free);
    let mut inventor = Inventor {
        dice,
        plan,
        causes: Vec::new(),
        free,
    };
    inventor.add_causes();
    inventor.add_reverts();
    inventor.add_repairs();
    inventor.add_strangers();
    inventor.add_flaws();
    inventor.add_lies();
    inventor
}

fn row(dice: &mut Dice) -> Row {
    let base = 10_f64.powf(dice.real(4.0, 7.0)) as i64;
    let spread = base / 1000;
    let base = [0; SEEDS].map(|_| base + (spread as f64 * dice.real(-0.5, 0.5)) as i64);
    let count = dice.between(8, 16);
    Row {
        base,
        functions: (0..count).map(|_| dice.below(EXECUTED)).collect(),
    }
}

/// Returns a patch that does nothing: three of ten touch what rows may execute.
fn patch(dice: &mut Dice) -> Patch {
    let is_executed = dice.below(10) < 3;
    let function = if is_executed {
        dice.below(EXECUTED)
    } else {
        dice.between(EXECUTED, FUNCTIONS - 1)
    };
    Patch {
        function,
        is_compiled: !dice.one_in(4),
        lie: None,
    }
}

impl Inventor {
    /// Returns instructions for a share of a row (percent).
    fn share(&mut self, row: usize, low: f64, high: f64) -> i64 {
        let base = self.plan.rows[row].base[0] as f64;
        (base * self.dice.real(low, high) / 100.0) as i64
    }

    /// Returns a function that some row with causes executes.
    fn executed_function(&mut self) -> usize {
        loop {
            let function = self.dice.below(EXECUTED);
            if self.plan.rows[CLEAN..]
                .iter()
                .any(|row| row.functions.contains(&function))
            {
                return function;
            }
        }
    }

    /// Returns losses of some of the rows that execute a function.
    fn losses(&mut self, function: usize, low: f64) -> Vec<Loss> {
        let all = self.plan.rows.iter().enumerate().skip(CLEAN);
        let mut rows: Vec<usize> = all
            .filter(|(_, row)| row.functions.contains(&function))
            .map(|(at, _)| at)
            .collect();
        self.dice.shuffle(&mut rows);
        rows.truncate(self.dice.between(1, 6));
        rows.into_iter()
            .map(|row| (row, self.share(row, low, 12.0)))
            .collect()
    }

    fn add_causes(&mut self) {
        let mut points: Vec<usize> = (1..=self.plan.new_point()).collect();
        self.dice.shuffle(&mut points);
        points.truncate(CAUSES);
        let shared = self.executed_function();
        for (place, &point) in points.iter().enumerate() {
            let function = if place < FIRST {
                shared
            } else {
                self.executed_function()
            };
            // Losses of the two in one function are large enough to be repaid in parts above the
            // margin.
            let losses = self.losses(function, if place < FIRST { 4.0 } else { 1.1 });
            let needs = match place {
                SECOND => vec![Part::Commit(points[FIRST]), Part::Commit(point)],
                _ => vec![Part::Commit(point)],
            };
            // In every third world the first of the pair does nothing alone.
            let losses = if place == FIRST && self.dice.one_in(3) {
                Vec::new()
            } else {
                losses
            };
            let patch = &mut self.plan.commits[point - 1].patch;
            (patch.function, patch.is_compiled) = (function, true);
            self.causes.push(Draft {
                function,
                losses,
                needs,
            });
        }
        self.plan.causes = points;
        self.add_trade();
        for _ in 0..self.dice.below(4) {
            let from = self.dice.between(1, self.plan.new_point() - 3);
            let to = from + self.dice.between(1, 3);
            self.plan.breaks.push((from, to));
        }
    }

    /// The trade also makes a row better: in every fourth world one that another cause makes worse,
    /// which hides a part.
    fn add_trade(&mut self) {
        let lost = self.causes[0].losses[0].0;
        let is_lost_twice = self.causes[TRADE].losses.iter().any(|loss| loss.0 == lost);
        let row = if self.dice.one_in(4) && !is_lost_twice {
            lost
        } else {
            TRADED
        };
        let instructions = -self.share(row, 1.1, 6.0);
        let needs = self.causes[TRADE].needs.clone();
        self.plan.effects.push(Effect {
            row,
            instructions,
            needs,
            repairs: Vec::new(),
        });
    }

    /// A third of the reverts conflict with a later commit; that of the first in one function often
    /// with the second.
    fn add_reverts(&mut self) {
        let end = self.plan.new_point();
        for point in 1..end {
            if self.dice.one_in(3) {
                self.plan.commits[point - 1].below =
                    Some(self.dice.between(point + 1, end.min(point + 30)));
            }
        }
        let one = self.plan.causes[0];
        let other = self.plan.causes[1];
        if self.dice.one_in(2) {
            self.plan.commits[one.min(other) - 1].below = Some(one.max(other));
        }
    }

    fn take(&mut self) -> usize {
        match self.free.pop() {
            Some(candidate) => candidate,
            None => panic!("there are more parts to play than candidates"),
        }
    }

    /// Takes two candidates, the earlier first.
    fn take_two(&mut self) -> (usize, usize) {
        let one = self.take();
        let other = self.take();
        (one.min(other), one.max(other))
    }

    /// Has a candidate change a function.
    fn aim(&mut self, candidate: usize, function: usize) {
        let patch = &mut self.plan.candidates[candidate].patch;
        (patch.function, patch.is_compiled) = (function, true);
    }

    /// Has a candidate repair a cause: mostly in the cause's function, else in one of a row that it
    /// affects.
    fn aim_at_cause(&mut self, candidate: usize, cause: usize) {
        let mut function = self.causes[cause].function;
        if self.dice.one_in(4) {
            let row = self.causes[cause].losses[0].0;
            let functions: Vec<usize> = self.plan.rows[row].functions.iter().copied().collect();
            function = self.dice.pick(&functions);
        }
        self.aim(candidate, function);
    }

    fn add_repairs(&mut self) {
        // Of the two in one function, one is repaired partly. The other, or the trade, has no
        // repair in every fifth world.
        let partly = self.dice.below(FIRST);
        let unrepaired = self
            .dice
            .one_in(5)
            .then(|| self.dice.pick(&[1 - partly, TRADE]));
        let mut repairable: Vec<usize> = (0..CAUSES)
            .filter(|cause| Some(*cause) != unrepaired)
            .collect();
        repairable.retain(|cause| !self.causes[*cause].losses.is_empty());
        self.dice.shuffle(&mut repairable);
        let mut repairs = vec![Vec::new(); CAUSES];
        for (order, &cause) in repairable.iter().enumerate() {
            let repair = match order {
                0 => self.needy_repair(cause),
                1 => self.repair_in_conflict(cause),
                _ => self.repair(cause),
            };
            repairs[cause].push(repair);
        }
        if let Some(cause) = unrepaired.filter(|_| self.dice.one_in(2)) {
            // It would repair it, but applies to no kernel.
            let repair = self.repair(cause);
            self.plan.candidates[repair.by].flaw = Some(Flaw::Conflict);
            repairs[cause].push(repair);
        }
        if self.causes[FIRST].losses.is_empty() {
            let repair = self.repair(SECOND);
            repairs[SECOND].push(repair);
        }
        let mut rest = Vec::new();
        // The sixth: the rest of what is repaired partly, or another repair of all of some cause.
        if self.dice.one_in(2) {
            rest.push(self.repair(partly));
        } else {
            self.add_alternative(&mut repairs, &mut rest, partly, repairable[0]);
        }
        if self.dice.one_in(4) {
            self.add_alternative(&mut repairs, &mut rest, partly, repairable[1]);
        }
        if self.dice.one_in(3) {
            let cause = unrepaired.unwrap_or(repairable[2]);
            let by = self.add_alternative(&mut repairs, &mut rest, partly, cause);
            // In every fourth world the harm is within the margin, and so no reason against it.
            let (low, high) = if self.dice.one_in(4) {
                (0.2, 0.35)
            } else {
                (1.1, 4.0)
            };
            self.add_effect_of(Part::Candidate(by), HARMED, low, high);
        }
        self.settle(&repairs, &rest, partly);
    }

    fn repair(&mut self, cause: usize) -> Repair {
        let by = self.take();
        self.aim_at_cause(by, cause);
        Repair {
            by,
            with: Vec::new(),
        }
    }

    /// Returns a repair that needs an earlier candidate: to apply, to build, or to do anything.
    fn needy_repair(&mut self, cause: usize) -> Repair {
        let (before, by) = self.take_two();
        self.aim_at_cause(by, cause);
        self.aim(before, self.causes[cause].function);
        let kind = self.dice.below(4);
        let is_shown = kind < 2 || !self.dice.one_in(3);
        let mut with = Vec::new();
        let candidate = &mut self.plan.candidates[by];
        match kind {
            0 | 1 => candidate.applies_on.push(before),
            2 => candidate.builds_with.push(before),
            _ => with.push(before),
        }
        if is_shown {
            candidate.shown.push(before);
        }
        Repair { by, with }
    }

    /// Returns a repair that conflicts with the lines of an earlier candidate, which is without
    /// effect.
    fn repair_in_conflict(&mut self, cause: usize) -> Repair {
        let (before, by) = self.take_two();
        self.aim_at_cause(by, cause);
        // In every fourth world the earlier one has a conflict of the same kind.
        if let (true, Some(at)) = (
            self.dice.one_in(4),
            self.free.iter().position(|free| *free < before),
        ) {
            let first = self.free.swap_remove(at);
            let candidate = &mut self.plan.candidates[before];
            candidate.applies_on.push(first);
            candidate.shown.push(first);
        }
        let candidate = &mut self.plan.candidates[by];
        candidate.applies_on.push(before);
        candidate.shown.push(before);
        Repair {
            by,
            with: Vec::new(),
        }
    }

    /// Adds a candidate that repairs all of a cause.
    fn add_alternative(
        &mut self,
        repairs: &mut [Vec<Repair>],
        rest: &mut Vec<Repair>,
        partly: usize,
        cause: usize,
    ) -> usize {
        let repair = self.repair(cause);
        let by = repair.by;
        if cause == partly {
            rest.push(repair.clone());
        }
        repairs[cause].push(repair);
        by
    }

    /// Turns the losses and their repairs into effects. Of one cause, a part of each loss, or all
    /// of some, has other repairs than the rest: shares keep away from one half, which decides
    /// on its revert.
    fn settle(&mut self, repairs: &[Vec<Repair>], rest: &[Repair], partly: usize) {
        let is_by_rows = self.dice.one_in(3) && self.causes[partly].losses.len() > 1;
        let share = if self.dice.one_in(2) {
            self.dice.real(0.3, 0.45)
        } else {
            self.dice.real(0.55, 0.7)
        };
        for (cause, draft) in self.causes.iter().enumerate() {
            for (order, &(row, loss)) in draft.losses.iter().enumerate() {
                let repaid = match (cause == partly, is_by_rows) {
                    (false, _) => loss,
                    (true, true) => loss * i64::from(order % 2 == 0),
                    (true, false) => (loss as f64 * share) as i64,
                };
                for (instructions, repairs) in
                    [(repaid, repairs[cause].as_slice()), (loss - repaid, rest)]
                {
                    if instructions != 0 {
                        let needs = draft.needs.clone();
                        let repairs = repairs.to_vec();
                        self.plan.effects.push(Effect {
                            row,
                            instructions,
                            needs,
                            repairs,
                        });
                    }
                }
            }
        }
    }

    /// Has a part change a row; a negative share is a gain.
    fn add_effect_of(&mut self, part: Part, row: usize, low: f64, high: f64) {
        let instructions = self.share(row, low, high);
        let functions: Vec<usize> = self.plan.rows[row].functions.iter().copied().collect();
        let function = self.dice.pick(&functions);
        let patch = match part {
            Part::Commit(point) => &mut self.plan.commits[point - 1].patch,
            Part::Candidate(candidate) => &mut self.plan.candidates[candidate].patch,
        };
        // What already has a function for another effect keeps it.
        if !self
            .plan
            .effects
            .iter()
            .any(|effect| effect.needs.contains(&part))
        {
            (patch.function, patch.is_compiled) = (function, true);
        }
        self.plan.effects.push(Effect {
            row,
            instructions,
            needs: vec![part],
            repairs: Vec::new(),
        });
    }

    /// Adds gains and losses that have no part in the debts, and a BASELINE beside the history.
    fn add_strangers(&mut self) {
        if self.dice.one_in(4) {
            let candidate = self.take();
            self.add_effect_of(Part::Candidate(candidate), GAINED, -6.0, -1.1);
        }
        if self.dice.one_in(4) {
            let candidate = self.take();
            self.add_effect_of(Part::Candidate(candidate), HARMED, 1.1, 3.0);
        }
        if self.dice.one_in(4) {
            let point = self.dice.between(1, self.plan.new_point());
            if !self.plan.causes.contains(&point) {
                self.add_effect_of(Part::Commit(point), GAINED, -6.0, -1.1);
            }
        }
        if self.dice.one_in(10) {
            let row = self.dice.between(GAINED, self.plan.rows.len() - 1);
            self.plan.side = Some((row, self.share(row, 1.1, 3.0)));
        }
    }

    /// Some of the other candidates need an earlier one, which git shows; a few apply, build or run
    /// nowhere.
    fn add_flaws(&mut self) {
        let mut bad = self.dice.below(4);
        for candidate in self.free.clone() {
            let is_based = candidate > 0 && self.dice.one_in(10);
            let other = self.dice.below(candidate.max(1));
            let applies = !self.dice.one_in(20);
            let it = &mut self.plan.candidates[candidate];
            if is_based {
                it.applies_on.push(other);
                it.shown.push(other);
            }
            if !applies {
                it.flaw = Some(Flaw::Conflict);
            } else if bad > 0 && it.patch.is_compiled {
                bad -= 1;
                it.flaw = Some(if bad == 1 { Flaw::Boot } else { Flaw::Compiler });
            }
        }
    }

    /// Has each compiled change to what a row executes change the row's value a little, far below
    /// the margin.
    fn add_drift(&mut self) {
        let commits = self
            .plan
            .commits
            .iter()
            .enumerate()
            .map(|(at, it)| (Part::Commit(at + 1), &it.patch));
        let candidates = self
            .plan
            .candidates
            .iter()
            .enumerate()
            .map(|(at, it)| (Part::Candidate(at), &it.patch));
        let compiled = commits
            .chain(candidates)
            .filter(|(_, patch)| patch.is_compiled);
        let parts: Vec<(Part, usize)> = compiled
            .map(|(part, patch)| (part, patch.function))
            .collect();
        for (part, function) in parts {
            for row in 0..self.plan.rows.len() {
                if self.plan.rows[row].functions.contains(&function) {
                    let instructions = self.share(row, -0.02, 0.02);
                    self.plan.effects.push(Effect {
                        row,
                        instructions,
                        needs: vec![part],
                        repairs: Vec::new(),
                    });
                }
            }
        }
    }

    /// The evidence misleads for a fifth: it hides what matters, and accuses what does not.
    fn add_lies(&mut self) {
        let mut matters = BTreeSet::new();
        for effect in &self.plan.effects {
            matters.extend(effect.needs.iter().copied());
            for repair in &effect.repairs {
                matters.extend(
                    repair
                        .with
                        .iter()
                        .chain([&repair.by])
                        .copied()
                        .map(Part::Candidate),
                );
            }
        }
        for point in 1..=self.plan.new_point() {
            let lie = self.lie(matters.contains(&Part::Commit(point)));
            self.plan.commits[point - 1].patch.lie = lie;
        }
        for candidate in 0..self.plan.candidates.len() {
            let lie = self.lie(matters.contains(&Part::Candidate(candidate)));
            self.plan.candidates[candidate].patch.lie = lie;
        }
    }

    fn lie(&mut self, matters: bool) -> Option<Lie> {
        if !self.dice.one_in(5) {
            return None;
        }
        if matters {
            return Some(Lie::Hidden);
        }
        let count = self.dice.between(1, 2);
        Some(Lie::Accused(
            (0..count).map(|_| self.dice.below(COMMITS)).collect(),
        ))
    }
}
