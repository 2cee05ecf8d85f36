//! The list on top of the page: the biggest changes, with links to their rows.

use model::Verdict;

use crate::comparison::{Comparison, Row};
use crate::render::html::rows::anchor;
use crate::render::number::signed_percent;

/// How many changes of either sign are worth a reader's first look.
const MOST: usize = 5;

/// The biggest changes of one kernel.
#[derive(Debug)]
pub(super) struct Changes {
    /// The kernel; empty where there is only one to speak of.
    pub(super) title: String,
    /// The worst first.
    pub(super) worse: Vec<Change>,
    /// The best first.
    pub(super) better: Vec<Change>,
}

/// One change.
#[derive(Debug)]
pub(super) struct Change {
    /// The row's id.
    pub(super) anchor: String,
    /// The workload.
    pub(super) name: String,
    /// How much.
    pub(super) percent: String,
}

/// Returns the biggest changes of each of the other kernels that has any.
pub(super) fn changes(comparison: &Comparison) -> Vec<Changes> {
    comparison
        .others
        .iter()
        .enumerate()
        .map(|(position, other)| Changes {
            title: if comparison.others.len() > 1 { other.kernel.title.clone() } else { String::new() },
            worse: biggest(comparison, position, &Verdict::Worse),
            better: biggest(comparison, position, &Verdict::Better),
        })
        .filter(|changes| !changes.worse.is_empty() || !changes.better.is_empty())
        .collect()
}

fn biggest(comparison: &Comparison, position: usize, verdict: &Verdict) -> Vec<Change> {
    let mut found: Vec<(f64, usize, &Row)> = comparison
        .rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.cells[position].compared.verdict == *verdict)
        .filter_map(|(number, row)| {
            row.cells[position].compared.difference_percent.map(|difference| (difference, number, row))
        })
        .collect();
    found.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    found
        .into_iter()
        .take(MOST)
        .map(|(difference, number, row)| Change {
            anchor: anchor(&row.workload, number),
            name: row.workload.name.to_string(),
            percent: signed_percent(difference),
        })
        .collect()
}
