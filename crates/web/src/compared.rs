//! The runs of two kernels, and what is asked about them: everything that both have.

use std::collections::{BTreeMap, BTreeSet};

use model::{Build, Declared, LKP, MMTESTS, MachineId, MachineKind, Run, Workload, imported_metric, imported_workload};
use report::{Machines, Question};
use store::{Store, StoreError};

/// What runs of several suites together are called.
const ALL_SUITES: &str = "all suites";

/// Returns all runs of a build on a machine with all its equipments, the newest first.
pub(crate) fn all_runs(store: &Store, build: &Build, machines: &[&MachineId]) -> Result<Vec<Run>, StoreError> {
    let mut runs = Vec::new();
    for suite in model::SUITES.iter().map(|suite| suite.name).chain([MMTESTS, LKP]) {
        for machine in machines {
            runs.extend(store.runs_of(&build.id, machine, suite)?);
        }
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.started_unix));
    Ok(runs)
}

/// Asks about the seeds and workloads that both have; none where there are none. Where runs scatter their numbers pair nothing,
/// and all of them count.
pub(crate) fn asked_of(kind: MachineKind, [old, new]: [&[Run]; 2], command: String) -> Option<Question> {
    let seeds = match kind {
        MachineKind::Exact => {
            let of = |runs: &[Run]| runs.iter().map(|run| run.seed).collect::<BTreeSet<u64>>();
            let both: Vec<u64> = of(old).intersection(&of(new)).copied().collect();
            if both.is_empty() {
                return None;
            }
            both
        }
        MachineKind::Imported => Vec::new(),
    };
    let has = |runs: &[Run], name: &str| runs.iter().flat_map(|run| &run.results).any(|result| result.workload == name);
    let known = match kind {
        MachineKind::Exact => model::workloads(),
        MachineKind::Imported => imported(new),
    };
    let workloads: Vec<&'static Workload> =
        known.into_iter().filter(|workload| has(old, workload.name) && has(new, workload.name)).collect();
    (!workloads.is_empty()).then(|| Question {
        suite: ALL_SUITES.to_owned(),
        workloads,
        seeds,
        margin_percent: None,
        machines: Machines::Equal,
        scatters: BTreeMap::new(),
        command,
        created_unix: None,
    })
}

/// Returns the rows of imported runs of which it is known which way they are good.
fn imported(runs: &[Run]) -> Vec<&'static Workload> {
    let mut found: BTreeMap<&str, Declared> = BTreeMap::new();
    for run in runs {
        for result in &run.results {
            let known = imported_metric(&run.suite, &result.workload);
            found.entry(&result.workload).or_insert_with(|| result.declared.map_or(known, |then| then.or(known)));
        }
    }
    found.into_iter().filter_map(|(name, declared)| imported_workload(name, &declared)).collect()
}

/// Makes runs of several suites runs of one: a workload's samples are its own, whatever suite it was measured with.
pub(crate) fn as_one_suite(runs: &mut [Run]) {
    runs.iter_mut().for_each(|run| ALL_SUITES.clone_into(&mut run.suite));
}
