//! `marvin compare --until-clear`: one boot of each kernel after the other, and a look at the rows
//! after each, until no row is unclear, the boots are used up, or the time is. `stats::Sequential`
//! keeps the false alarms of all looks to those of one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use compare::Comparison;
use model::{Uncertainty, Verdict, Workload};

/// One boot shows no scatter: the first look comes after the second.
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
    pub(crate) fn begin(boots: u64, budget: Option<Duration>) -> Self {
        Self {
            boots,
            end: budget.and_then(|budget| Instant::now().checked_add(budget)),
        }
    }

    fn allow(&self, boots: u64) -> bool {
        boots <= self.boots && self.end.is_none_or(|end| Instant::now() < end)
    }
}

/// Measures and looks until the end; returns the last answer. `measure` measures these workloads on
/// so many boots and compares all that was measured, `unclear` names the rows of an answer that
/// more boots may decide.
pub(crate) fn until_clear<T>(
    workloads: &[Arc<Workload>],
    limits: Limits,
    mut measure: impl FnMut(&[Arc<Workload>], u64) -> anyhow::Result<T>,
    unclear: impl Fn(&T) -> BTreeSet<String>,
    say: impl Fn(&str),
) -> anyhow::Result<T> {
    let mut open = workloads.to_vec();
    let mut boots = FIRST;
    loop {
        let answer = measure(&open, boots)?;
        let unclear = unclear(&answer);
        // Rows share one rate of false discoveries: one that was clear may be unclear again beside
        // the others.
        open = workloads
            .iter()
            .filter(|workload| unclear.contains(&*workload.name))
            .cloned()
            .collect();
        if open.is_empty() || !limits.allow(boots + 1) {
            return Ok(answer);
        }
        boots += 1;
        say(&format!(
            "boot {boots} of at most {}: {} of {} rows unclear",
            limits.boots,
            open.len(),
            workloads.len()
        ));
    }
}

/// Returns the workloads that more boots may decide.
pub(crate) fn unclear(comparison: &Comparison) -> BTreeSet<String> {
    let may_help = |verdict: &Verdict| {
        matches!(
            verdict,
            Verdict::Unclear(
                Uncertainty::Noise { .. } | Uncertainty::NoisyHistory | Uncertainty::TooNoisy
            )
        )
    };
    let rows = comparison.rows.iter().filter(|row| {
        row.cells
            .iter()
            .any(|cell| may_help(&cell.compared.verdict))
    });
    rows.map(|row| row.workload.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    use model::Workload;

    use super::{Limits, until_clear};

    /// Goes on with two workloads; `unclear` says which are after so many boots. Returns what was
    /// measured.
    fn measured(limits: Limits, unclear: impl Fn(u64) -> Vec<&'static str>) -> Vec<(u64, String)> {
        let names = ["getppid", "signal"];
        let workloads: Vec<Arc<Workload>> = model::workloads()
            .into_iter()
            .filter(|workload| names.contains(&&*workload.name))
            .cloned()
            .collect();
        let measured_rows = RefCell::new(Vec::new());
        let measure = |open: &[Arc<Workload>], boots: u64| {
            let names: Vec<&str> = open.iter().map(|workload| &*workload.name).collect();
            measured_rows.borrow_mut().push((boots, names.join(" ")));
            Ok(unclear(boots)
                .into_iter()
                .map(str::to_owned)
                .collect::<BTreeSet<String>>())
        };
        until_clear(&workloads, limits, measure, BTreeSet::clone, |_| {}).unwrap();
        measured_rows.into_inner()
    }

    #[test]
    fn only_unclear_rows_go_on_until_decided() {
        let unclear = |boots| match boots {
            2 => vec!["getppid", "signal"],
            3 => vec!["signal"],
            // Clear at one look, and unclear again beside the others.
            4 => vec!["getppid"],
            _ => vec![],
        };
        let measured_rows = measured(Limits::begin(30, None), unclear);
        let expected = [
            (2, "getppid signal"),
            (3, "getppid signal"),
            (4, "signal"),
            (5, "getppid"),
        ];
        assert_eq!(
            measured_rows,
            expected.map(|(boots, names)| (boots, names.to_owned()))
        );
    }

    #[test]
    fn boots_and_budget_end_the_looks() {
        let never = |_| vec!["getppid"];
        assert_eq!(measured(Limits::begin(4, None), never).len(), 3);
        assert_eq!(
            measured(Limits::begin(30, Some(Duration::ZERO)), never).len(),
            1
        );
    }
}
