//! What follows from an outcome: which debts are repaid, what each change of the series is for, and
//! why others were not taken.

use std::collections::BTreeSet;

use model::Availability;

use super::words::effect_on;
use super::{Dropped, Report};
use crate::outcome::{Cause, Debt, Effect, Unit};
use crate::world::{Change, Failure};

/// What the series does for a debt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repayment {
    /// What is left is within the margin of the row.
    Repaid,
    /// It is better, but still worse than BASELINE.
    Partly,
    /// It is as it was.
    Unpaid,
    /// The series was not measured.
    Unknown,
}

/// A change that was tried or could not be, and is not in the series.
#[derive(Debug)]
pub(super) struct NotTaken<'a> {
    pub(super) change: Change,
    /// What was tried alone, if it was.
    pub(super) unit: Option<&'a Unit>,
    /// Why it was not taken.
    pub(super) why: WhyNot<'a>,
}

/// Why a change is not in the series.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WhyNot<'a> {
    /// It helps a debt and makes other rows worse.
    Harms(Vec<Effect>),
    /// It helps a debt, but no more than the series does.
    NoMore,
    /// It helps a debt, but the budget was spent before it was tried with the series.
    Budget,
    /// It moves rows, but betters no debt.
    BettersNoDebt,
    /// There is no kernel to measure.
    Failed(&'a Failure),
    /// It moves no row.
    NoEffect,
}

/// How many candidates were not considered, and how many were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CandidateCounts {
    pub(super) all: usize,
    pub(super) not_compiled: usize,
    pub(super) in_new: usize,
    pub(super) dropped_otherwise: usize,
    /// Apply or build nowhere.
    pub(super) failed: usize,
    /// Tried on NEW alone.
    pub(super) tried: usize,
}

impl<'a> Report<'a> {
    /// Returns what the series does for a debt.
    pub(super) fn repayment(&self, debt: &Debt) -> Repayment {
        let Some(left) = debt.left_percent else {
            return Repayment::Unknown;
        };
        let margin = self
            .rows
            .get(debt.row)
            .map_or(0.0, |row| row.margin_percent);
        let is_better =
            effect_on(&self.outcome.effects, debt.row).is_some_and(|percent| percent > 0.0);
        if left >= -margin {
            Repayment::Repaid
        } else if is_better {
            Repayment::Partly
        } else {
            Repayment::Unpaid
        }
    }

    /// Returns how many debts the series repays like this.
    pub(super) fn count_repaid(&self, like: Repayment) -> usize {
        self.outcome
            .debts
            .iter()
            .filter(|debt| self.repayment(debt) == like)
            .count()
    }

    /// Returns whether a row has a debt.
    pub(super) fn is_debt(&self, row: usize) -> bool {
        self.outcome.debts.iter().any(|debt| debt.row == row)
    }

    /// Returns the causes of a row, the largest effect first.
    pub(super) fn causes_of(&self, row: usize) -> Vec<&'a Cause> {
        let mut causes: Vec<(f64, &Cause)> = Vec::new();
        for cause in &self.outcome.causes {
            causes.extend(effect_on(&cause.effects, row).map(|percent| (percent, cause)));
        }
        causes.sort_by(|a, b| a.0.total_cmp(&b.0));
        causes.into_iter().map(|(_, cause)| cause).collect()
    }

    /// Returns the debts, those with the same main cause together; those without one last.
    pub(super) fn debts_by_cause(&self) -> Vec<&'a Debt> {
        let mut order: Vec<Option<usize>> = Vec::new();
        for cause in self.outcome.debts.iter().map(|debt| self.main_cause(debt)) {
            if cause.is_some() && !order.contains(&cause) {
                order.push(cause);
            }
        }
        let mut debts: Vec<&Debt> = self.outcome.debts.iter().collect();
        debts.sort_by_key(|debt| {
            let cause = self.main_cause(debt);
            order
                .iter()
                .position(|known| *known == cause)
                .unwrap_or(order.len())
        });
        debts
    }

    fn main_cause(&self, debt: &Debt) -> Option<usize> {
        self.causes_of(debt.row).first().map(|cause| cause.point)
    }

    /// Returns what was tried alone of a change of the series.
    pub(super) fn unit_in_series(&self, change: Change) -> Option<&'a Unit> {
        self.outcome.units.iter().find(|unit| {
            let mut needed = unit.changes.iter();
            unit.change == change && needed.all(|needed| self.outcome.series.contains(needed))
        })
    }

    /// Returns the numbers in the series, from 1, of those that need a change.
    pub(super) fn needed_by(&self, change: Change) -> Vec<usize> {
        let mut numbers = Vec::new();
        for (number, other) in (1..).zip(&self.outcome.series) {
            let unit = self.unit_in_series(*other);
            if *other != change && unit.is_some_and(|unit| unit.changes.contains(&change)) {
                numbers.push(number);
            }
        }
        numbers
    }

    /// Returns the numbers in the series, from 1, of those that a change needs.
    pub(super) fn needs(&self, change: Change) -> Vec<usize> {
        let Some(unit) = self.unit_in_series(change) else {
            return Vec::new();
        };
        let numbered = (1..).zip(&self.outcome.series);
        numbered
            .filter(|(_, other)| **other != change && unit.changes.contains(other))
            .map(|(number, _)| number)
            .collect()
    }

    /// Returns whether a change of the series is there for others only.
    pub(super) fn is_only_needed(&self, change: Change) -> bool {
        let is_for_itself = self
            .unit_in_series(change)
            .is_some_and(|unit| !unit.in_series.is_empty());
        !is_for_itself && !self.needed_by(change).is_empty()
    }

    /// Returns the rows that a change of the series moves, alone or in the series: those with debts
    /// first.
    pub(super) fn rows_moved(&self, change: Change) -> Vec<usize> {
        let Some(unit) = self.unit_in_series(change) else {
            return Vec::new();
        };
        let alone = unit.effects_alone();
        let rows: BTreeSet<usize> = alone
            .iter()
            .chain(&unit.in_series)
            .map(|effect| effect.row)
            .collect();
        let (debts, others): (Vec<usize>, Vec<usize>) =
            rows.into_iter().partition(|row| self.is_debt(*row));
        [debts, others].concat()
    }

    /// Returns what is not in the series: first what helps, then what fails, last what has no
    /// effect.
    pub(super) fn not_taken(&self) -> Vec<NotTaken<'a>> {
        let outcome = self.outcome;
        let mut all = Vec::new();
        for unit in outcome
            .units
            .iter()
            .filter(|unit| !outcome.series.contains(&unit.change))
        {
            all.push(NotTaken {
                change: unit.change,
                unit: Some(unit),
                why: self.why_not(unit),
            });
        }
        for (number, failure) in &outcome.failed {
            let change = Change::Apply(*number);
            if !outcome.series.contains(&change)
                && !all
                    .iter()
                    .any(|other: &NotTaken<'_>| other.change == change)
            {
                all.push(NotTaken {
                    change,
                    unit: None,
                    why: WhyNot::Failed(failure),
                });
            }
        }
        all.sort_by_key(|not_taken| not_taken.why.rank());
        all
    }

    fn why_not(&self, unit: &'a Unit) -> WhyNot<'a> {
        let effects = match &unit.alone {
            Availability::Available(effects) => effects,
            Availability::Unavailable(failure) => return WhyNot::Failed(failure),
        };
        if effects.is_empty() {
            return WhyNot::NoEffect;
        }
        let harms: Vec<Effect> = effects
            .iter()
            .copied()
            .filter(|effect| effect.percent < 0.0)
            .collect();
        let helps = effects
            .iter()
            .any(|effect| effect.percent > 0.0 && self.is_debt(effect.row));
        match helps {
            false => WhyNot::BettersNoDebt,
            true if !harms.is_empty() => WhyNot::Harms(harms),
            true if self.outcome.is_cut => WhyNot::Budget,
            true => WhyNot::NoMore,
        }
    }

    /// Returns how many candidates were not considered, and how many were tried.
    pub(super) fn candidate_counts(&self) -> CandidateCounts {
        let mut counts = CandidateCounts {
            all: self.candidates.len(),
            ..CandidateCounts::default()
        };
        for candidate in &self.candidates {
            match &candidate.dropped {
                None => {}
                Some(Dropped::NotCompiled) => counts.not_compiled += 1,
                Some(Dropped::InNew) => counts.in_new += 1,
                Some(Dropped::Other(_)) => counts.dropped_otherwise += 1,
            }
        }
        for number in self.outcome.failed.keys() {
            let candidate = self.candidates.get(*number);
            if candidate.is_none_or(|candidate| candidate.dropped.is_none()) {
                counts.failed += 1;
            }
        }
        for unit in &self.outcome.units {
            counts.tried += usize::from(matches!(unit.change, Change::Apply(_)));
        }
        counts
    }
}

impl WhyNot<'_> {
    fn rank(&self) -> usize {
        match self {
            Self::Harms(_) => 0,
            Self::NoMore | Self::Budget => 1,
            Self::BettersNoDebt => 2,
            Self::Failed(_) => 3,
            Self::NoEffect => 4,
        }
    }
}
