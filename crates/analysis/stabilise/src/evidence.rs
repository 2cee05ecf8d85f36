//! What speaks for a change before it is tried: the functions that it touches beside those that the
//! debts execute, and the words and references of its message.
//!
//! Weights only order the trials. They never decide: each change that is taken was measured.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::Suspicion;

/// Weight of a change about which nothing is known.
const NEUTRAL: f64 = 1.0;
/// All functions that it touches are in the kernel, and the row executes none of them.
const NOT_EXECUTED: f64 = 0.1;
/// It touches a function that the row executes.
const EXECUTED: f64 = 4.0;
/// It touches the functions that account for the whole difference.
const ACCOUNTS: f64 = 40.0;
/// Its message speaks of performance.
const SPEAKS: f64 = 1.5;
/// It names a commit of the history in `Fixes:`.
const FIXES: f64 = 2.0;
/// It names a cause of the row in `Fixes:`, or reverts it.
const FIXES_CAUSE: f64 = 20.0;
/// It touches a function that a cause of the row touches.
const TOUCHES_CAUSE: f64 = 4.0;

/// A change: a commit of the history or a candidate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChangeFacts {
    /// Its commit, if it has one.
    pub commit: Option<String>,
    /// Whether the kernel config compiles something that it changes.
    pub is_compiled: bool,
    /// Functions that it changes.
    pub functions: BTreeSet<String>,
    /// Whether it changes compiled lines outside functions, such as types, macros and data.
    pub is_beyond_functions: bool,
    /// Commits in `Fixes:`, and those that it reverts: full or abbreviated.
    pub repairs: Vec<String>,
    /// Whether its message speaks of performance.
    pub speaks_of_performance: bool,
}

/// What the profiles of a row with a debt show.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DebtFacts {
    /// The index of the row.
    pub row: usize,
    /// Instructions per operation that NEW executes more than BASELINE, by function; 0 for a
    /// function that did not change. Only functions that are executed.
    pub functions: BTreeMap<String, f64>,
}

/// A cause: its commit, the functions that it touches, and the rows that it made worse.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CauseFacts {
    /// The hash of the commit.
    pub commit: String,
    /// Functions that it changes.
    pub functions: BTreeSet<String>,
    /// The rows that the statement is about, by index.
    pub rows: BTreeSet<usize>,
}

/// What is known beside the change itself.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The debts to be repaid.
    pub debts: &'a [DebtFacts],
    /// Functions with code of their own in NEW: others are inlined, and no profile has them. Empty
    /// if not known.
    pub own_code: &'a BTreeSet<String>,
    /// Commits of the history.
    pub history: &'a BTreeSet<String>,
    /// The causes, once they are known.
    pub causes: &'a [CauseFacts],
}

/// Weighs a change for each debt.
#[must_use]
pub fn suspicion(change: &ChangeFacts, known: &Known<'_>) -> Suspicion {
    let weights = known
        .debts
        .iter()
        .map(|debt| weight(change, debt, known))
        .collect();
    Suspicion {
        is_compiled: change.is_compiled,
        weights,
    }
}

fn weight(change: &ChangeFacts, debt: &DebtFacts, known: &Known<'_>) -> f64 {
    let mut weight = by_functions(change, debt, known);
    if change.speaks_of_performance {
        weight *= SPEAKS;
    }
    if change
        .repairs
        .iter()
        .any(|repaired| known.history.iter().any(|commit| is_same(commit, repaired)))
    {
        weight *= FIXES;
    }
    for cause in known
        .causes
        .iter()
        .filter(|cause| cause.rows.contains(&debt.row))
    {
        if change
            .repairs
            .iter()
            .any(|repaired| is_same(&cause.commit, repaired))
        {
            weight *= FIXES_CAUSE;
        }
        if !cause.functions.is_disjoint(&change.functions) {
            weight *= TOUCHES_CAUSE;
        }
    }
    weight
}

/// Weighs the functions that a change touches.
fn by_functions(change: &ChangeFacts, debt: &DebtFacts, known: &Known<'_>) -> f64 {
    let executed: Vec<f64> = change
        .functions
        .iter()
        .filter_map(|function| debt.functions.get(function))
        .copied()
        .collect();
    if executed.is_empty() {
        let mut functions = change.functions.iter();
        let is_elsewhere = !change.functions.is_empty()
            && functions.all(|function| known.own_code.contains(function));
        return if is_elsewhere && !change.is_beyond_functions {
            NOT_EXECUTED
        } else {
            NEUTRAL
        };
    }
    let all: f64 = debt.functions.values().filter(|added| **added > 0.0).sum();
    let here: f64 = executed.into_iter().filter(|added| *added > 0.0).sum();
    EXECUTED
        + if all > 0.0 {
            ACCOUNTS * here / all
        } else {
            0.0
        }
}

/// Returns whether a full commit and one that may be abbreviated are the same.
fn is_same(commit: &str, named: &str) -> bool {
    named.len() >= 8 && commit.starts_with(named)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CauseFacts, ChangeFacts, DebtFacts, Known, suspicion};

    fn names(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Returns the weight in hundredths.
    fn weight(change: &ChangeFacts, causes: &[CauseFacts]) -> u64 {
        let functions = [
            ("handle_mm_fault", 30.0),
            ("schedule", 0.0),
            ("memset", -5.0),
        ];
        let functions = functions
            .map(|(name, added)| (name.to_owned(), added))
            .into_iter()
            .collect();
        let debts = [DebtFacts { row: 7, functions }];
        let own_code = names(&["handle_mm_fault", "pipe_read"]);
        let history = names(&["c0ffee0123456789"]);
        let known = Known {
            debts: &debts,
            own_code: &own_code,
            history: &history,
            causes,
        };
        (100.0 * suspicion(change, &known).weights[0]).round() as u64
    }

    fn touching(functions: &[&str]) -> ChangeFacts {
        ChangeFacts {
            functions: names(functions),
            is_compiled: true,
            ..ChangeFacts::default()
        }
    }

    #[test]
    fn functions_of_the_difference_weigh_most() {
        let order = [
            touching(&["pipe_read"]),
            touching(&["inlined_helper"]),
            touching(&["schedule"]),
            touching(&["handle_mm_fault"]),
        ];
        let weights = order.map(|change| weight(&change, &[]));
        assert_eq!(weights, [10, 100, 400, 4400]);
        let types = ChangeFacts {
            is_beyond_functions: true,
            ..touching(&["pipe_read"])
        };
        assert_eq!(weight(&types, &[]), 100, "a type may change code anywhere");
    }

    #[test]
    fn references_to_causes_weigh_more() {
        let cause = CauseFacts {
            commit: "c0ffee0123456789".to_owned(),
            functions: names(&["pipe_read"]),
            rows: BTreeSet::from([7]),
        };
        let fixes = ChangeFacts {
            repairs: vec!["c0ffee01".to_owned()],
            ..touching(&[])
        };
        assert_eq!(
            (
                weight(&fixes, &[]),
                weight(&fixes, std::slice::from_ref(&cause))
            ),
            (200, 4000)
        );
        let elsewhere = CauseFacts {
            rows: BTreeSet::from([1]),
            ..cause.clone()
        };
        assert_eq!(weight(&fixes, &[elsewhere]), 200);
        assert_eq!(weight(&touching(&["pipe_read"]), &[cause]), 40);
        let short = ChangeFacts {
            repairs: vec!["c0f".to_owned()],
            ..touching(&[])
        };
        assert_eq!(weight(&short, &[]), 100, "three digits name no commit");
    }
}
