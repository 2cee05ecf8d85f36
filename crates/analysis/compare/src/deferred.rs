//! What a row defers: the work of interrupts, with the softirqs at their end, and of kernel threads
//! beside a counted value, and what it makes of a verdict. `value.rs` counts it.

use model::{Direction, Uncertainty, Verdict};

use crate::difference::difference_percent;
use crate::verdict::is_contradicted;

/// The values of a seed on both sides, each with the deferred work beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DeferredPair {
    /// The values of the row.
    pub(crate) values: [f64; 2],
    /// Deferred work per operation.
    pub(crate) deferred: [f64; 2],
}

impl DeferredPair {
    /// Returns the difference with deferred work, in percent; positive is better.
    fn percent(&self) -> Option<f64> {
        let [old, new] = [0, 1].map(|side| self.values[side] + self.deferred[side]);
        difference_percent(Direction::LowerIsBetter, old, new)
    }
}

/// Returns the difference of costs with deferred work: the median over the seeds; `None` if none was
/// counted.
pub(crate) fn with_deferred_percent(seeds: &[DeferredPair]) -> Option<f64> {
    let counts = |pair: &DeferredPair| pair.deferred.iter().any(|count| *count > 0.0);
    if !seeds.iter().any(counts) {
        return None;
    }
    let percents: Option<Vec<f64>> = seeds.iter().map(DeferredPair::percent).collect();
    stats::median(&percents?)
}

/// Returns the verdict with what deferred work says to it. It is mixed if with that work the middle
/// of the seeds says the opposite of better or worse, or if all say more than the margin of what is
/// the same.
pub(crate) fn weigh(
    verdict: Verdict,
    counted_percent: Option<f64>,
    seeds: &[DeferredPair],
    margin_percent: f64,
) -> Verdict {
    let (Some(counted_percent), Some(with_deferred_percent)) =
        (counted_percent, with_deferred_percent(seeds))
    else {
        return verdict;
    };
    let percents: Vec<f64> = seeds.iter().filter_map(DeferredPair::percent).collect();
    let Some(ends) = stats::spread(&percents) else {
        return verdict;
    };
    if !is_contradicted(&verdict, ends, margin_percent) {
        return verdict;
    }
    let deferred = [0, 1].map(|side| {
        let counts: Vec<f64> = seeds.iter().map(|pair| pair.deferred[side]).collect();
        stats::median(&counts).unwrap_or_default()
    });
    Verdict::Unclear(Uncertainty::Deferred {
        counted_percent,
        with_deferred_percent,
        deferred,
    })
}
