//! The experiment on reverse mappings for several kernels: costs over a grid of processes and
//! mappings, power laws fitted to them, and memory use. Numbers only; `render` and `json`
//! format them.

mod fit;
#[cfg(test)]
pub(crate) mod fixtures;
mod json;
mod render;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{RmapCase, RmapCell, RmapMeasured, RmapOperation, RmapOutcome, RmapSpace};

pub use fit::PowerLaw;
use fit::{FitPoint, power_law};
pub use json::{json, schema};
pub use render::document;

/// A law is poor if it misses a cell by more than this ratio.
pub const POOR_RATIO: f64 = 1.25;

/// The parameters and results of the experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Rmap {
    /// The kernels' labels, base first.
    pub kernels: Vec<String>,
    /// The machine, in one line.
    pub machine: String,
    /// The seed of all boots.
    pub seed: u64,
    /// The command that reproduces it.
    pub command: String,
    /// Cases, in the order of the report.
    pub cases: Vec<RmapCase>,
    /// Numbers of processes, ascending.
    pub processes: Vec<u32>,
    /// Numbers of mappings, ascending.
    pub mappings: Vec<u32>,
    /// The result of each cell, by kernel.
    pub outcomes: BTreeMap<(usize, RmapCell), RmapOutcome>,
}

/// A cost, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellCost<'a> {
    /// Guest nanoseconds for one entry or page.
    Cost(f64),
    /// The guest has too little memory.
    NoRoom,
    /// The kernel does not support it; the text gives the reason.
    Unsupported(&'a str),
    /// The kernel failed; the text gives the reason.
    Failed(&'a str),
    /// It was not requested.
    Missing,
}

impl CellCost<'_> {
    /// Returns the cost in nanoseconds, if it was measured.
    #[must_use]
    pub fn cost(self) -> Option<f64> {
        if let Self::Cost(cost) = self {
            Some(cost)
        } else {
            None
        }
    }
}

/// The laws for a kernel's costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Laws {
    /// Fitted to all cells.
    pub all: PowerLaw,
    /// If that one is poor: fitted to the cells without the fewest processes and without the
    /// fewest mappings, where fixed costs of processes and calls weigh less.
    pub large: Option<PowerLaw>,
}

/// Returns whether a law misses a cell by much.
#[must_use]
pub fn is_poor(law: &PowerLaw) -> bool {
    law.worst_ratio > POOR_RATIO
}

impl Rmap {
    /// Returns all cells of a case.
    pub fn cells(&self, case: RmapCase) -> impl Iterator<Item = RmapCell> {
        self.processes.iter().flat_map(move |&processes| {
            self.mappings.iter().map(move |&mappings| RmapCell {
                case,
                processes,
                mappings,
            })
        })
    }

    fn measured(&self, kernel: usize, cell: RmapCell) -> Option<&RmapMeasured> {
        match self.outcomes.get(&(kernel, cell)) {
            Some(RmapOutcome::Measured(measured)) => Some(measured),
            _ => None,
        }
    }

    /// Returns a kernel's cost of an operation in a cell.
    #[must_use]
    pub fn value(&self, kernel: usize, cell: RmapCell, operation: RmapOperation) -> CellCost<'_> {
        match self.outcomes.get(&(kernel, cell)) {
            None => CellCost::Missing,
            Some(RmapOutcome::DoesNotFit { .. }) => CellCost::NoRoom,
            Some(RmapOutcome::Unsupported(why)) => CellCost::Unsupported(why),
            Some(RmapOutcome::Failed(how)) => CellCost::Failed(how),
            Some(RmapOutcome::Measured(measured)) => {
                match measured.costs.iter().find(|(known, _)| *known == operation) {
                    Some((_, Ok(cost))) => cost.each().map_or(CellCost::Missing, CellCost::Cost),
                    Some((_, Err(why))) => CellCost::Unsupported(why),
                    None => CellCost::Missing,
                }
            }
        }
    }

    /// Returns the laws of an operation's costs on a kernel; `None` if there are too few cells.
    #[must_use]
    pub fn laws(&self, kernel: usize, case: RmapCase, operation: RmapOperation) -> Option<Laws> {
        let all = self.law_above(kernel, case, operation, [0, 0])?;
        let fewest = |numbers: &[u32]| numbers.first().copied().unwrap_or(0);
        let large = if is_poor(&all) {
            let fewest = [fewest(&self.processes), fewest(&self.mappings)];
            self.law_above(kernel, case, operation, fewest)
        } else {
            None
        };
        Some(Laws { all, large })
    }

    /// Fits the cells with more processes and mappings than these.
    fn law_above(
        &self,
        kernel: usize,
        case: RmapCase,
        operation: RmapOperation,
        [processes, mappings]: [u32; 2],
    ) -> Option<PowerLaw> {
        let mut points = Vec::new();
        for cell in self.cells(case) {
            if cell.processes > processes
                && cell.mappings > mappings
                && let Some(cost) = self.value(kernel, cell, operation).cost()
            {
                points.push(FitPoint {
                    variables: [f64::from(cell.processes), f64::from(cell.mappings)],
                    result: cost,
                });
            }
        }
        power_law(&points)
    }

    /// Returns the largest cell of a case that all kernels have measured, with the memory of its
    /// mappings.
    #[must_use]
    pub fn space(&self, case: RmapCase) -> Option<(RmapCell, Vec<&RmapSpace>)> {
        let cells = self.cells(case).filter_map(|cell| {
            let spaces = (0..self.kernels.len())
                .map(|kernel| Some(&self.measured(kernel, cell)?.space))
                .collect::<Option<Vec<_>>>()?;
            Some((cell, spaces))
        });
        cells.max_by_key(|(cell, _)| {
            (
                u64::from(cell.processes) * u64::from(cell.mappings),
                cell.mappings,
            )
        })
    }

    /// Returns whether any kernel has a measurement.
    #[must_use]
    pub fn has_anything(&self) -> bool {
        self.outcomes
            .values()
            .any(|outcome| matches!(outcome, RmapOutcome::Measured(_)))
    }
}
