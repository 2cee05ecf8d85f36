//! Rules of the program's own work.

use std::collections::BTreeMap;

use crate::budget::View;
use crate::finding::{Finding, percent};

/// The least share of the time in user mode (reference: 70 %).
const USER: f64 = 0.7;
/// The least share of one function in it.
const FUNCTION: f64 = 0.5;

pub(super) fn one_function(view: &View) -> Option<Finding> {
    if view.budget.user < USER {
        return None;
    }
    let samples = view.facts.samples.as_ref()?;
    let mut by_function: BTreeMap<&str, u64> = BTreeMap::new();
    let mut all = 0;
    for stack in samples
        .stacks
        .iter()
        .filter(|stack| stack.kernel.is_empty())
    {
        all += stack.samples;
        if let Some(function) = stack.user.first() {
            *by_function.entry(function).or_default() += stack.samples;
        }
    }
    let (function, count) = by_function.into_iter().max_by_key(|(_, count)| *count)?;
    let of_user = count as f64 / all.max(1) as f64;
    (of_user >= FUNCTION).then(|| {
        Finding::new(format!("it computes, and most of that in {function}"), view.budget.user * of_user)
            .with(
                format!("{} in user mode", percent(view.budget.user)),
                "/proc/TID/stat",
                "70 %",
                "the kernel, waiting",
            )
            .with(
                format!("{count} of {all} samples in {function}"),
                "cpu-clock",
                "50 %",
                "work that is spread over many functions",
            )
            .advise("Look at this function. Without a PMU nothing tells cache misses and false sharing from work.")
            .look("perf stat -d -p PID")
    })
}
