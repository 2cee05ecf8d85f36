//! Comparisons of the same kernels on several machines as one answer: rows matched by name,
//! agreements counted.
//!
//! Only the match: every value and verdict is that of a machine's own [`Comparison`].
//! `render`, `words`, `table` and `json` format it.

mod json;
mod render;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use model::{BuildId, Clock, Direction, Unit, Verdict, Workload};

use crate::comparison::{Comparison, ComparisonCell, ComparisonRow, Conclusion};
use model::sanitize_line;

pub use json::{json, schema};
pub use render::document;
use render::machines;
pub use words::headlines;

/// The same kernels compared on several machines.
#[derive(Debug, Clone, PartialEq)]
pub struct SideBySide {
    columns: Vec<MachineColumn>,
    rows: Vec<MatchedRow>,
}

/// One machine with its comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineColumn {
    /// The machine's name as the user typed it: `exact`, `vm`, `testbox`.
    pub machine: String,
    /// What this machine measured.
    pub comparison: Comparison,
}

/// One workload on the machines that have it.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedRow {
    /// The workload, as the first of these machines declares it.
    pub workload: Arc<Workload>,
    /// For each machine, the position of the workload's row in its comparison.
    pub places: Vec<Option<usize>>,
    /// For each kernel after the base, whether the machines agree.
    pub agreements: Vec<Agreement>,
}

/// Whether machines agree on a workload. Machines are positions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// All have the same clear verdict.
    Agree,
    /// One says better and another says worse.
    Disagree,
    /// These say better or worse, and the others say same.
    ChangedOn(Vec<usize>),
    /// The verdict is unclear on these.
    UnclearOn(Vec<usize>),
    /// Only this one has the row.
    MeasuredOn(usize),
}

/// What usually explains a disagreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explanation {
    /// Fewer instructions, but more time.
    LessWorkMoreTime,
    /// More instructions, but less time.
    MoreWorkLessTime,
    /// Two clocks disagree: seconds of different hosts or guests.
    Times,
    /// Two counts of instructions disagree.
    Work,
    /// Values that are neither instructions nor times disagree.
    Events,
}

/// Comparisons that do not belong beside each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SideBySideError {
    /// There is at most one machine.
    #[error(
        "cannot put comparisons side by side: name at least two machines, such as --on exact,vm"
    )]
    TooFewMachines,
    /// A machine is named twice.
    #[error("cannot put comparisons side by side: machine {} is named twice", sanitize_line(.machine))]
    NamedTwice {
        /// The name that occurs twice.
        machine: String,
    },
    /// Two machines compared different kernels.
    #[error(
        "cannot put comparisons side by side: {} compared {}, {} compared {}",
        sanitize_line(.one), .kernels_of_one, sanitize_line(.other), .kernels_of_other
    )]
    OtherKernels {
        /// The first machine's name.
        one: String,
        /// The titles of its kernels.
        kernels_of_one: String,
        /// The name of the machine that differs.
        other: String,
        /// The titles of its kernels.
        kernels_of_other: String,
    },
}

/// What the values of a row measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// Instructions of the kernel and user code.
    Work,
    /// Seconds of any clock.
    Time,
    /// Anything else: events, bytes, rates.
    Events,
}

/// Puts comparisons of the same kernels beside each other, one for each machine, with the machines'
/// names.
///
/// # Errors
/// If there is only one machine, if a name is used twice, or if the kernels are not the same ones.
pub fn side_by_side(columns: Vec<(String, Comparison)>) -> Result<SideBySide, SideBySideError> {
    let columns: Vec<MachineColumn> = columns
        .into_iter()
        .map(|(machine, comparison)| MachineColumn {
            machine,
            comparison,
        })
        .collect();
    check(&columns)?;
    let mut rows: Vec<MatchedRow> = Vec::new();
    let mut known: HashMap<(String, bool), usize> = HashMap::new();
    for (column, MachineColumn { comparison, .. }) in columns.iter().enumerate() {
        for (place, row) in comparison.rows.iter().enumerate() {
            // Rows of one name and opposite directions are different metrics.
            let is_lower = row.workload.metric.direction == Direction::LowerIsBetter;
            let at = *known
                .entry((row.workload.name.to_string(), is_lower))
                .or_insert_with(|| {
                    let workload = Arc::clone(&row.workload);
                    let places = vec![None; columns.len()];
                    rows.push(MatchedRow {
                        workload,
                        places,
                        agreements: Vec::new(),
                    });
                    rows.len() - 1
                });
            rows[at].places[column] = Some(place);
        }
    }
    let mut side_by_side = SideBySide { columns, rows };
    let kernels = side_by_side
        .columns
        .first()
        .map_or(0, |column| column.comparison.others.len());
    for at in 0..side_by_side.rows.len() {
        let agreements = (0..kernels)
            .map(|kernel| agreement(&side_by_side.cells(at, kernel)))
            .collect();
        side_by_side.rows[at].agreements = agreements;
    }
    Ok(side_by_side)
}

fn check(columns: &[MachineColumn]) -> Result<(), SideBySideError> {
    let [first, others @ ..] = columns else {
        return Err(SideBySideError::TooFewMachines);
    };
    if others.is_empty() {
        return Err(SideBySideError::TooFewMachines);
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|column| !names.insert(&column.machine)) {
        return Err(SideBySideError::NamedTwice {
            machine: twice.machine.clone(),
        });
    }
    let first_builds = builds(first);
    match others.iter().find(|other| builds(other) != first_builds) {
        None => Ok(()),
        Some(other) => Err(SideBySideError::OtherKernels {
            one: first.machine.clone(),
            kernels_of_one: titles(first),
            other: other.machine.clone(),
            kernels_of_other: titles(other),
        }),
    }
}

fn builds(column: &MachineColumn) -> Vec<&BuildId> {
    let kernels = column.comparison.kernels();
    kernels.map(|kernel| &kernel.build.id).collect()
}

fn titles(column: &MachineColumn) -> String {
    let kernels = column.comparison.kernels();
    let titles: Vec<&str> = kernels.map(|kernel| kernel.title.as_str()).collect();
    titles.join(", ")
}

/// Returns whether machines agree, from the cells of one kernel: one for each machine that has the
/// row.
fn agreement(cells: &[(usize, &ComparisonCell)]) -> Agreement {
    let mut better = Vec::new();
    let mut worse = Vec::new();
    let mut same = Vec::new();
    let mut unclear = Vec::new();
    for (machine, cell) in cells {
        match cell.compared.verdict {
            Verdict::Better => better.push(*machine),
            Verdict::Worse => worse.push(*machine),
            Verdict::Same => same.push(*machine),
            Verdict::Unclear(_) => unclear.push(*machine),
        }
    }
    match cells {
        [(machine, _)] => Agreement::MeasuredOn(*machine),
        _ if !better.is_empty() && !worse.is_empty() => Agreement::Disagree,
        _ if !unclear.is_empty() => Agreement::UnclearOn(unclear),
        _ if same.is_empty() || same.len() == cells.len() => Agreement::Agree,
        _ => Agreement::ChangedOn([better, worse].concat()),
    }
}

impl SideBySide {
    /// Returns the machines, in the order of the request.
    #[must_use]
    pub fn columns(&self) -> &[MachineColumn] {
        &self.columns
    }

    /// Returns the rows: in the order of the first machine, then those that only later ones have.
    #[must_use]
    pub fn rows(&self) -> &[MatchedRow] {
        &self.rows
    }

    /// Returns the outcome: the worst of all machines. It determines the exit code.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let conclusions = self
            .columns
            .iter()
            .map(|column| column.comparison.conclusion());
        conclusions.max().unwrap_or(Conclusion::Fine)
    }

    /// Returns the machine's own row.
    #[must_use]
    pub fn row(&self, row: &MatchedRow, machine: usize) -> Option<&ComparisonRow> {
        self.columns[machine]
            .comparison
            .rows
            .get((*row.places.get(machine)?)?)
    }

    /// Returns the cells of one kernel after the base, with the positions of their machines.
    fn cells(&self, at: usize, kernel: usize) -> Vec<(usize, &ComparisonCell)> {
        let row = &self.rows[at];
        (0..self.columns.len())
            .filter_map(|machine| Some((machine, self.row(row, machine)?.cells.get(kernel)?)))
            .collect()
    }

    /// Returns what usually explains that machines disagree on a row; empty if they do not.
    #[must_use]
    pub fn explanations(&self, row: &MatchedRow, kernel: usize) -> BTreeSet<Explanation> {
        let mut better = Vec::new();
        let mut worse = Vec::new();
        for (machine, column) in self.columns.iter().enumerate() {
            let Some(own) = self.row(row, machine) else {
                continue;
            };
            let measure = measure(own, column.comparison.base.machine.capabilities().clock);
            match own.cells.get(kernel).map(|cell| &cell.compared.verdict) {
                Some(Verdict::Better) => better.push(measure),
                Some(Verdict::Worse) => worse.push(measure),
                _ => {}
            }
        }
        better
            .iter()
            .flat_map(|better| worse.iter().map(|worse| explanation(*better, *worse)))
            .collect()
    }
}

fn measure(row: &ComparisonRow, clock: Clock) -> Measure {
    match row.unit {
        Unit::InstructionsPerOperation | Unit::GuestTimePerOperation => Measure::Work,
        Unit::NanosecondsPerOperation => Measure::Time,
        Unit::OperationsPerSecond | Unit::Seconds => match clock {
            Clock::Instructions | Clock::Transfers => Measure::Work,
            Clock::Seconds => Measure::Time,
        },
        Unit::Count | Unit::TransfersPerOperation | Unit::Percent | Unit::Of(_) => Measure::Events,
    }
}

fn explanation(better: Measure, worse: Measure) -> Explanation {
    match (better, worse) {
        (Measure::Work, Measure::Time) => Explanation::LessWorkMoreTime,
        (Measure::Time, Measure::Work) => Explanation::MoreWorkLessTime,
        (Measure::Time, Measure::Time) => Explanation::Times,
        (Measure::Work, Measure::Work) => Explanation::Work,
        (Measure::Events, _) | (_, Measure::Events) => Explanation::Events,
    }
}
