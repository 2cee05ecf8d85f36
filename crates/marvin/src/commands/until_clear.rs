//! `marvin compare --until-clear`: one boot of each kernel after the other, and a look at the rows after each, until no
//! row is unclear, the boots are used up, or the time is. `stats::Sequential` keeps the false alarms of all looks to
//! those of one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Uncertainty, Verdict, Workload};
use report::Comparison;

/// A boot that shows no scatter: the first look comes after the second.
const FIRST: u64 = 2;

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Most boots of each kernel.
    pub(crate) boots: u64,
    /// When no further boot begins.
    pub(crate) end: Option<Instant>,
}

impl Limits {
    /// Starts the clock.
    pub(crate) fn begin(boots: u64, budget: Option<Duration>) -> Self {
        Self { boots, end: budget.and_then(|budget| Instant::now().checked_add(budget)) }
    }

    fn allow(&self, boots: u64) -> bool {
        boots <= self.boots && self.end.is_none_or(|end| Instant::now() < end)
    }
}

/// Measures and looks until the end; returns the last comparison. `measure` measures these workloads on so many boots and
/// compares all that was measured.
pub(crate) fn until_clear(
    workloads: &[Arc<Workload>],
    limits: Limits,
    mut measure: impl FnMut(&[Arc<Workload>], u64) -> anyhow::Result<Comparison>,
    say: impl Fn(&str),
) -> anyhow::Result<Comparison> {
    let mut open = workloads.to_vec();
    let mut boots = FIRST;
    loop {
        let comparison = measure(&open, boots)?;
        let unclear = unclear(&comparison);
        open.retain(|workload| unclear.contains(&*workload.name));
        if open.is_empty() || !limits.allow(boots + 1) {
            return Ok(comparison);
        }
        boots += 1;
        say(&format!("boot {boots} of at most {}: {} of {} rows unclear", limits.boots, open.len(), workloads.len()));
    }
}

/// Returns the workloads that more boots may decide.
fn unclear(comparison: &Comparison) -> BTreeSet<&str> {
    let may_help =
        |verdict: &Verdict| matches!(verdict, Verdict::Unclear(Uncertainty::Noise { .. } | Uncertainty::TooNoisy));
    let rows = comparison.rows.iter().filter(|row| row.cells.iter().any(|cell| may_help(&cell.compared.verdict)));
    rows.map(|row| &*row.workload.name).collect()
}
