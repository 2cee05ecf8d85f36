//! What measured rows say of single functions: which execute more or less than before, and which
//! of those that they execute have other code.

use std::collections::BTreeSet;

use compare::LockBeside;
use model::{Availability, Run, Share};
use profile::ledger::CodeChange;

use super::OnMachine;
use crate::measure::{line_difference, locks_beside, read_ledger};

/// Fewer transfers per operation are none.
const TRANSFERS_LEAST: f64 = 0.005;
/// Of two kernels that one commit parts, at most one of so many functions of a row has other code.
const CHANGED_SHARE: usize = 10;

/// What a row says of functions, by their names without a module or a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RowFunctions {
    /// The row.
    pub(crate) workload: String,
    /// The cause that leads its sentence.
    pub(crate) leading: Option<String>,
    /// Functions in which it executes more or less, or moves more or fewer lines.
    pub(crate) differing: BTreeSet<String>,
    /// Those of its functions whose code differs; none if too many do for one commit.
    pub(crate) changed: BTreeSet<String>,
    /// Whether so few of its functions have other code that one commit may lie between the kernels.
    pub(crate) is_of_one_commit: bool,
    /// Its locks that are held for longer or shorter.
    pub(crate) locks: Vec<LockBeside>,
}

/// Returns what the rows of two kernels say; nothing of rows that were not measured.
pub(super) fn row_functions(
    on: &OnMachine<'_>,
    runs: &[Vec<Run>],
) -> anyhow::Result<Vec<RowFunctions>> {
    let ([base, new], [_, _]) = (&on.builds[..], runs) else {
        return Ok(Vec::new());
    };
    let mut rows = Vec::new();
    for workload in &on.chosen.workloads {
        let name = &*workload.name;
        let has_lines = on.lab.machine().capabilities().sharing;
        let (mut row, executed) = if has_lines {
            let Availability::Available(lines) = line_difference(&on.lab, runs, name)? else {
                continue;
            };
            let (row, executed) = of_lines(&lines.functions);
            let locks = locks_beside(&on.lab, runs, name)?;
            (RowFunctions { locks, ..row }, executed)
        } else {
            let ledger = read_ledger(&on.lab, [base, new], runs, name)?;
            let Availability::Available(ledger) = ledger else {
                continue;
            };
            let of_kernel = ledger.lines.iter().filter(|line| line.share != Share::User);
            let visible = of_kernel.clone().filter(|line| ledger.is_visible(line));
            let row = RowFunctions {
                leading: ledger.leading_cause(),
                differing: visible.map(|line| plain(&line.function)).collect(),
                ..RowFunctions::default()
            };
            (row, of_kernel.map(|line| line.function.clone()).collect())
        };
        let executed: BTreeSet<&str> = executed.iter().map(String::as_str).collect();
        let code = on.lab.code_changes(base, new, &executed);
        let changed = code
            .iter()
            .filter(|(_, code)| **code == CodeChange::Differs);
        let changed: BTreeSet<String> = changed.map(|(function, _)| plain(function)).collect();
        row.is_of_one_commit = changed.len() * CHANGED_SHARE <= code.len();
        if row.is_of_one_commit {
            row.changed = changed;
        }
        name.clone_into(&mut row.workload);
        rows.push(row);
    }
    Ok(rows)
}

/// Reads transfers by function, the largest difference first; returns all functions too.
fn of_lines(functions: &[(String, [f64; 2])]) -> (RowFunctions, BTreeSet<String>) {
    let differs = |[base, new]: [f64; 2]| (new - base).abs() >= TRANSFERS_LEAST;
    let differing = || functions.iter().filter(|(_, sides)| differs(*sides));
    let row = RowFunctions {
        leading: differing()
            .next()
            .map(|(function, [base, new])| format!("{function} {:+.2} lines", new - base)),
        differing: differing().map(|(function, _)| plain(function)).collect(),
        ..RowFunctions::default()
    };
    let all = functions.iter().map(|(function, _)| function.clone());
    (row, all.collect())
}

/// Returns a function's name without the module or the file behind it, and without what compilers
/// append.
fn plain(function: &str) -> String {
    let name = function.split(' ').next().unwrap_or(function);
    model::without_suffix(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{of_lines, plain};

    #[test]
    fn lines_that_move_alike_do_not_differ() {
        let functions = [
            ("release_pages.part.0".to_owned(), [4.0, 1.0]),
            ("do_fault".to_owned(), [2.0, 2.001]),
        ];
        let (row, all) = of_lines(&functions);
        assert_eq!(row.leading.unwrap(), "release_pages.part.0 -3.00 lines");
        assert_eq!(Vec::from_iter(row.differing), ["release_pages"]);
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn names_lose_modules_and_parts() {
        assert_eq!(plain("xfs_inactive [xfs]"), "xfs_inactive");
        assert_eq!(plain("do_pollfd.isra.0"), "do_pollfd");
    }
}
