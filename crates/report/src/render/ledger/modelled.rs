//! What a cost model says, as cells that every rendering of a ledger writes in its own way.

use crate::modelled::{Figure, Finding, ModelDifference, ModelRow};
use crate::render::number;

/// Most functions that are told.
const FUNCTIONS: usize = 8;
/// Width of a number.
const WIDTH: usize = 10;

/// What stands over the table: a model must not be taken for a measurement.
pub(super) const HEAD: &str = "What the model says, per operation of the workload's processes:";
/// What is said of a model wherever there is one.
pub(super) const NOTE: &str = "The model is no measurement: no prefetching, no speculation, one thing after the other. \
Seeds move data and what the branch predictor mixes up, but not the kernel's code in the caches.";
/// What stands over the functions.
pub(super) const BY_FUNCTION: &str = "estimated cycles by function";

/// A row.
pub(super) struct ModelCells {
    pub(super) name: String,
    pub(super) base: String,
    pub(super) new: String,
    /// New by base, where that is more than noise.
    pub(super) ratio: String,
    /// What it comes to.
    pub(super) finding: String,
}

/// Returns the figures of a workload.
pub(super) fn figures(difference: &ModelDifference) -> Vec<ModelCells> {
    difference.rows.iter().map(cells).collect()
}

/// Returns the functions that the model finds to cost more or less, the largest difference first.
pub(super) fn functions(difference: &ModelDifference) -> Vec<ModelCells> {
    difference.functions.iter().take(FUNCTIONS).map(cells).collect()
}

fn cells(row: &ModelRow) -> ModelCells {
    let [base, new] = row.figures;
    let mean = |figure: Figure| number::value(figure.mean, WIDTH);
    let ratio = match row.finding {
        Finding::Unstable | Finding::FewSeeds => String::new(),
        Finding::Same if base.mean.max(new.mean) < 0.01 => String::new(),
        _ if base.mean <= 0.0 => String::new(),
        _ => number::ratio(new.mean / base.mean, 6),
    };
    let finding = match row.finding {
        Finding::Unstable => {
            let half = |figure: Figure| 50.0 * (figure.most - figure.least) / figure.mean.max(f64::MIN_POSITIVE);
            let part = |percent: f64| format!("±{percent:.*}%", usize::from(percent < 1.0));
            format!("unstable {} {}", part(half(base)), part(half(new)))
        }
        finding => finding.word().to_owned(),
    };
    ModelCells { name: row.name.clone(), base: mean(base), new: mean(new), ratio, finding }
}
