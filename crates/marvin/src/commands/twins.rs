//! Looks up what twins of a comparison's rows say: workloads of other suites that do the same operation, if the store has them
//! of the same kernels and machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Build, Machine, Run, Workload};
use report::{Comparison, Machines, Question, Side};
use store::Store;

use crate::cli::Arguments;

/// Makes rows unclear that their twins contradict.
pub(crate) fn doubt(arguments: &Arguments, comparison: &mut Comparison) -> anyhow::Result<()> {
    let mut suites: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
    for twin in comparison.twins_wanted() {
        if let Some(suite) = model::suite_of(twin).filter(|suite| suite.name != comparison.suite) {
            suites.entry(suite.name).or_default().insert(twin);
        }
    }
    if suites.is_empty() {
        return Ok(());
    }
    let store = Store::open_read_only(crate::home::store(arguments)?)?;
    let mut found = Vec::new();
    for (suite, twins) in suites {
        found.extend(compare(&store, comparison, suite, &twins)?);
    }
    comparison.doubt(&found);
    Ok(())
}

/// Compares the same kernels in a suite; `None` unless each was measured there.
fn compare(
    store: &Store,
    comparison: &Comparison,
    suite: &str,
    twins: &BTreeSet<&'static str>,
) -> anyhow::Result<Option<Comparison>> {
    let mut kernels: Vec<(&Build, &Machine, Vec<Run>)> = Vec::new();
    for kernel in comparison.kernels() {
        // Twins need no guest config.
        let runs = store.runs_of(&kernel.build.id, &kernel.machine.id, suite)?;
        if runs.is_empty() {
            return Ok(None);
        }
        kernels.push((&kernel.build, &kernel.machine, runs));
    }
    let sides: Vec<Side<'_>> = kernels
        .iter()
        .map(|(build, machine, runs)| Side { build, machine, also: Vec::new(), runs: runs.iter().collect() })
        .collect();
    let workloads: Vec<Arc<Workload>> = twins.iter().filter_map(|twin| model::find_workload(twin)).collect();
    let question = Question {
        suite: suite.to_owned(),
        workloads,
        seeds: Vec::new(),
        margin_percent: None,
        machines: Machines::Equal,
        scatters: BTreeMap::new(),
        looks_max: None,
        command: String::new(),
        created_unix: None,
    };
    // What cannot be compared contradicts nothing.
    Ok(report::compare(&sides[0], &sides[1..], &question).ok())
}
