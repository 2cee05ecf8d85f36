//! What a search found.

use std::collections::BTreeMap;

use model::Availability;

use crate::world::{Change, Failure};

/// A row in which NEW is worse than BASELINE.
#[derive(Debug, Clone, PartialEq)]
pub struct Debt {
    /// The index of the row.
    pub row: usize,
    /// From BASELINE to NEW (percent), negative.
    pub percent: f64,
    /// The share of it that the causes explain (percent).
    pub explained_percent: f64,
    /// From BASELINE to NEW with the series (percent); `None` if that was not measured.
    pub left_percent: Option<f64>,
}

/// A difference in one row (percent), positive for better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The index of the row.
    pub row: usize,
    /// The difference in percent; positive is better.
    pub percent: f64,
}

/// A commit that made rows worse.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Its point in the history.
    pub point: usize,
    /// Its first candidate point: smaller than `point` if kernels between could not be measured.
    pub first: usize,
    /// The rows that it changed, against the point before it.
    pub effects: Vec<Effect>,
    /// What reverting it on NEW brings; `Err` if that is no kernel to measure, `None` if it was
    /// not tried.
    pub reverted: Option<Availability<Vec<Effect>, Failure>>,
}

/// Changes that were tried together: a candidate with its prerequisites, or a revert.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The change that was tried.
    pub change: Change,
    /// All changes, with `change`, in the order in which they are applied.
    pub changes: Vec<Change>,
    /// What they bring on NEW alone, in all measured rows, or why that is no kernel to
    /// measure.
    pub alone: Availability<Vec<Effect>, Failure>,
    /// What the series loses without `change` (percent, positive if it is needed); empty if it is
    /// not in the series. If the effects of all units add up, this is what it brings alone: no
    /// kernel without it was measured.
    pub in_series: Vec<Effect>,
}

impl Unit {
    /// Returns what they bring on NEW alone; nothing if that is no kernel to measure.
    #[must_use]
    pub fn effects_alone(&self) -> &[Effect] {
        self.alone.value().map_or(&[], Vec::as_slice)
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Why an end of the history cannot be measured: then there is nothing else.
    pub ends: Option<Failure>,
    /// The debts, in the order of rows.
    pub debts: Vec<Debt>,
    /// The causes, oldest first.
    pub causes: Vec<Cause>,
    /// What was tried alone, in order.
    pub units: Vec<Unit>,
    /// The smallest set of changes with the effect of all that help, in the order in which they
    /// are applied.
    pub series: Vec<Change>,
    /// What the series brings against NEW, in all rows.
    pub effects: Vec<Effect>,
    /// Rows that the series makes worse than NEW.
    pub worse: Vec<Effect>,
    /// Candidates that apply nowhere, with the reason.
    pub failed: BTreeMap<usize, Failure>,
    /// Steps of the series, counted from 1, after which there is no kernel to measure.
    pub broken_steps: BTreeMap<usize, Failure>,
    /// Whether the budget ended the search.
    pub is_cut: bool,
}
