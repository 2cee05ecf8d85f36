//! The right answer to a world, computed from its plan, and what an oracle would build.
//!
//! The policy:
//!
//! - A set of changes is allowed if it applies, builds and runs on NEW, and no row becomes worse
//!   than NEW beyond the margin.
//! - Candidates come first: the goal is, in each debt, the best that an allowed set of candidates
//!   reaches.
//! - A revert enters only for a cause of which candidates that reach the goal repay less than half
//!   in some debt where the revert on NEW repays more than the margin. "Repay" is measured by the
//!   revert itself: what it brings on NEW, less what it still brings on top of the candidates. The
//!   revert must apply and build, and make no row worse than NEW beyond the margin. The goal is
//!   then the best that allowed sets of candidates and such reverts reach.
//! - The right series is an allowed set of the fewest changes, prerequisites included, that reaches
//!   the goal in each debt. A gain smaller by up to the margin is the same gain. There may be
//!   several, such as with alternatives; each is right. A candidate that a revert makes useless is
//!   left out.

use std::collections::BTreeSet;

use stabilise::{Change, Kernel, Outcome};

use crate::made_up::plan::{Content, Part, Plan};
use crate::made_up::world::MARGIN_PERCENT;

/// A gain this much smaller counts as the same gain. Each part of an effect is larger.
const SAME_PERCENT: f64 = MARGIN_PERCENT;

/// The right answer to a world.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Truth {
    /// Rows in which NEW is worse than BASELINE.
    pub(crate) debts: Vec<usize>,
    /// Points of the history that make a debt worse, against the point before.
    pub(crate) causes: Vec<usize>,
    /// Causes of which a revert may enter.
    pub(crate) reverts: BTreeSet<usize>,
    /// The gain to reach in each debt (percent of NEW).
    pub(crate) goal: Vec<f64>,
    pub(crate) series: Vec<Change>,
    /// Kernels that an oracle builds.
    pub(crate) oracle: usize,
}

/// Brings changes into the order of [`Kernel::With`].
pub(crate) fn in_order(changes: &BTreeSet<Change>) -> Vec<Change> {
    let mut all: Vec<Change> = changes.iter().copied().collect();
    all.sort_by_key(|change| match *change {
        Change::Revert(point) => (0, usize::MAX - point),
        Change::Apply(candidate) => (1, candidate),
    });
    all
}

/// Returns candidates with all that they need to apply and to build.
fn closure(plan: &Plan, candidates: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
    let mut open: Vec<usize> = candidates.into_iter().collect();
    let mut closed = BTreeSet::new();
    while let Some(candidate) = open.pop() {
        if closed.insert(candidate) {
            let it = &plan.candidates[candidate];
            open.extend(it.applies_on.iter().chain(&it.builds_with));
        }
    }
    closed
}

/// The measure of sets of changes.
struct Judge<'a> {
    plan: &'a Plan,
    new: Content,
    debts: Vec<usize>,
}

/// A set of changes with its gain in each debt.
struct Measured {
    changes: BTreeSet<Change>,
    gains: Vec<f64>,
}

impl Judge<'_> {
    fn content(&self, changes: &BTreeSet<Change>) -> Option<Content> {
        let kernel = Kernel::With(in_order(changes));
        let content = self.plan.content(&kernel);
        self.plan
            .failure(&kernel, &content)
            .is_none()
            .then_some(content)
    }

    fn gains(&self, content: &Content) -> Vec<f64> {
        self.debts
            .iter()
            .map(|row| self.plan.percent(&self.new, content, *row))
            .collect()
    }

    /// Returns the rows that changes make worse than NEW beyond the margin.
    fn worse(&self, content: &Content) -> Vec<usize> {
        (0..self.plan.rows.len())
            .filter(|row| self.plan.percent(&self.new, content, *row) < -MARGIN_PERCENT)
            .collect()
    }

    /// Returns the gains of an allowed set, `None` for others.
    fn measure(&self, changes: BTreeSet<Change>) -> Option<Measured> {
        let content = self.content(&changes)?;
        let gains = self.gains(&content);
        self.worse(&content)
            .is_empty()
            .then_some(Measured { changes, gains })
    }

    /// Returns all allowed sets of candidates and reverts: without what has no effect and no
    /// effective one needs.
    fn allowed(&self, reverts: &BTreeSet<usize>) -> Vec<Measured> {
        let parts: Vec<usize> = effective(self.plan).into_iter().collect();
        let reverts: Vec<usize> = reverts.iter().copied().collect();
        let mut sets = BTreeSet::new();
        for bits in 0..1 << (parts.len() + reverts.len()) {
            let candidates = closure(self.plan, chosen(bits, &parts));
            let mut set: BTreeSet<Change> = candidates.into_iter().map(Change::Apply).collect();
            set.extend(
                chosen(bits >> parts.len(), &reverts)
                    .into_iter()
                    .map(Change::Revert),
            );
            sets.insert(set);
        }
        sets.into_iter()
            .filter_map(|set| self.measure(set))
            .collect()
    }

    /// Returns the best gain in each debt, and the smallest of the sets that reach it.
    fn best(&self, allowed: Vec<Measured>) -> (Vec<f64>, BTreeSet<Change>) {
        let goal: Vec<f64> = (0..self.debts.len())
            .map(|at| {
                let gains = allowed.iter().map(|set| set.gains[at]);
                gains.fold(f64::NEG_INFINITY, f64::max)
            })
            .collect();
        let reaching = allowed.into_iter().filter(|set| reaches(&set.gains, &goal));
        match reaching.min_by_key(|set| set.changes.len()) {
            Some(smallest) => (goal, smallest.changes),
            None => panic!(
                "no allowed set reaches the best of all debts: the world has no right answer"
            ),
        }
    }

    /// Returns whether candidates repay less than half of a cause somewhere, and its revert is
    /// worth taking.
    fn needs_revert(&self, cause: usize, series: &BTreeSet<Change>) -> bool {
        let Some(alone) = self.measure([Change::Revert(cause)].into()) else {
            return false;
        };
        let mut both = series.clone();
        both.insert(Change::Revert(cause));
        let Some((without, with)) = self.content(series).zip(self.content(&both)) else {
            return false;
        };
        let without = self.gains(&without);
        let with = self.gains(&with);
        let left = without
            .iter()
            .zip(with)
            .map(|(without, with)| with - without);
        left.zip(alone.gains)
            .any(|(left, alone)| alone > MARGIN_PERCENT && left > alone / 2.0)
    }
}

fn reaches(gains: &[f64], goal: &[f64]) -> bool {
    gains
        .iter()
        .zip(goal)
        .all(|(gain, goal)| *gain >= goal - SAME_PERCENT)
}

/// Returns the candidates that have a part in an effect, but those that apply, build or run
/// nowhere.
fn effective(plan: &Plan) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for effect in plan.effects.iter().filter(|effect| plan.is_notable(effect)) {
        found.extend(
            effect
                .repairs
                .iter()
                .flat_map(|repair| repair.with.iter().chain([&repair.by])),
        );
        found.extend(effect.needs.iter().filter_map(|part| match part {
            Part::Candidate(candidate) => Some(candidate),
            Part::Commit(_) => None,
        }));
    }
    found
        .into_iter()
        .copied()
        .filter(|candidate| plan.candidates[*candidate].flaw.is_none())
        .collect()
}

impl Truth {
    /// Computes the right answer.
    pub(crate) fn compute(plan: &Plan) -> Self {
        let new = plan.content(&Kernel::Point(plan.new_point()));
        let baseline = plan.content(&Kernel::Baseline);
        let debts: Vec<usize> = (0..plan.rows.len())
            .filter(|row| plan.percent(&baseline, &new, *row) < -MARGIN_PERCENT)
            .collect();
        let judge = Judge {
            plan,
            new,
            debts: debts.clone(),
        };
        let causes = steps(plan, &debts);
        let (mut goal, mut series) = judge.best(judge.allowed(&BTreeSet::new()));
        let reverts: BTreeSet<usize> = causes
            .iter()
            .copied()
            .filter(|cause| judge.needs_revert(*cause, &series))
            .collect();
        if !reverts.is_empty() {
            (goal, series) = judge.best(judge.allowed(&reverts));
        }
        let oracle = oracle(plan, &series);
        Self {
            debts,
            causes,
            reverts,
            goal,
            series: in_order(&series),
            oracle,
        }
    }

    /// Checks a series.
    ///
    /// Errors if it is not right, with the difference.
    pub(crate) fn check_series(&self, plan: &Plan, series: &[Change]) -> Result<(), String> {
        let new = plan.content(&Kernel::Point(plan.new_point()));
        let judge = Judge {
            plan,
            new,
            debts: self.debts.clone(),
        };
        let set: BTreeSet<Change> = series.iter().copied().collect();
        let difference = format!("{series:?} instead of {:?}", self.series);
        if in_order(&set) != series {
            return Err(format!("out of order: {difference}"));
        }
        let Some(content) = judge.content(&set) else {
            return Err(format!("no kernel to measure: {difference}"));
        };
        let worse = judge.worse(&content);
        if !worse.is_empty() {
            return Err(format!("makes rows {worse:?} worse: {difference}"));
        }
        let gains = judge.gains(&content);
        if !reaches(&gains, &self.goal) {
            let pairs = self.debts.iter().zip(gains.iter().zip(&self.goal));
            let short: Vec<String> = pairs
                .filter(|(_, (gain, goal))| *gain + SAME_PERCENT < **goal)
                .map(|(row, (gain, goal))| format!("row {row} {gain:.2} of {goal:.2} %"))
                .collect();
            return Err(format!("falls short ({}): {difference}", short.join(", ")));
        }
        if set
            .iter()
            .any(|change| matches!(change, Change::Revert(point) if !self.reverts.contains(point)))
        {
            return Err(format!("reverts what candidates repay: {difference}"));
        }
        if set.len() > self.series.len() {
            return Err(format!("too large: {difference}"));
        }
        Ok(())
    }

    /// Returns the causes that an outcome lacks: none of its causes stands for their points.
    pub(crate) fn missed(&self, outcome: &Outcome) -> Vec<usize> {
        self.causes
            .iter()
            .copied()
            .filter(|point| {
                let mut found = outcome.causes.iter();
                !found.any(|it| (it.first..=it.point).contains(point))
            })
            .collect()
    }

    /// Returns the points of causes of an outcome that stand for no cause.
    pub(crate) fn invented(&self, outcome: &Outcome) -> Vec<usize> {
        outcome
            .causes
            .iter()
            .filter(|it| {
                let mut real = self.causes.iter();
                !real.any(|point| (it.first..=it.point).contains(point))
            })
            .map(|it| it.point)
            .collect()
    }
}

/// Returns those of some numbers whose bit is set.
fn chosen(bits: usize, all: &[usize]) -> Vec<usize> {
    all.iter()
        .enumerate()
        .filter(|(at, _)| bits >> at & 1 == 1)
        .map(|(_, one)| *one)
        .collect()
}

/// Returns the points that make a debt worse beyond the margin.
fn steps(plan: &Plan, debts: &[usize]) -> Vec<usize> {
    (1..=plan.new_point())
        .filter(|point| {
            let [before, after] = [point - 1, *point].map(|at| plan.content(&Kernel::Point(at)));
            debts
                .iter()
                .any(|row| plan.percent(&before, &after, *row) < -MARGIN_PERCENT)
        })
        .collect()
}

/// Returns how many kernels an oracle builds that knows causes and repairs: both ends, each cause
/// reverted, each repair alone with its prerequisites, the series, and the series less each member.
/// As for a search, conflicts are free.
fn oracle(plan: &Plan, series: &BTreeSet<Change>) -> usize {
    let mut kernels = vec![BTreeSet::new(), series.clone()];
    kernels.extend(
        plan.causes
            .iter()
            .map(|point| BTreeSet::from([Change::Revert(*point)])),
    );
    for repair in plan.effects.iter().flat_map(|effect| &effect.repairs) {
        let needed = closure(plan, repair.with.iter().chain([&repair.by]).copied());
        kernels.push(needed.into_iter().map(Change::Apply).collect());
    }
    kernels.extend(series.iter().map(|change| {
        let mut less = series.clone();
        less.remove(change);
        less
    }));
    let mut built = BTreeSet::from([plan.content(&Kernel::Baseline)]);
    for changes in kernels {
        let kernel = Kernel::With(in_order(&changes));
        let content = plan.content(&kernel);
        if !matches!(
            plan.failure(&kernel, &content),
            Some(stabilise::Failure::Conflict { .. })
        ) {
            built.insert(content);
        }
    }
    built.len()
}
