//! Compares the runs of two kernels in every workload that both have.

use std::collections::BTreeSet;
use std::sync::Arc;

use compare::Question;
use model::{
    Build, Capabilities, IMPORTED_SUITES, MachineId, Run, Suite, Workload, imported_declarations,
    imported_workload,
};
use store::{Store, StoreError};

/// The name of several suites together.
const ALL_SUITES: &str = "all suites";

/// Returns all runs of a build on a machine with any guest config, newest first.
pub(crate) fn all_runs(
    store: &Store,
    build: &Build,
    machines: &[&MachineId],
) -> Result<Vec<Run>, StoreError> {
    let mut runs = Vec::new();
    for suite in model::SUITES
        .iter()
        .map(|suite| suite.name)
        .chain(IMPORTED_SUITES)
    {
        for machine in machines {
            runs.extend(store.runs_of(&build.id, machine, suite)?);
        }
    }
    // Of two that began at once, the one that was saved later counts.
    runs.reverse();
    runs.sort_by_key(|run| std::cmp::Reverse(run.started_unix));
    Ok(runs)
}

/// Builds the comparison of the seeds and workloads that both have; `None` if they have none in
/// common. `command` compares the two kernels; the suite, workloads and seeds are appended. Runs of
/// a noisy machine are not paired by number, so all of them count.
pub(crate) fn common_question(
    machine: Capabilities,
    [old, new]: [&[Run]; 2],
    command: String,
) -> Option<Question> {
    let mut seeds = Vec::new();
    if machine.deterministic {
        seeds = seeds_of(old)
            .intersection(&seeds_of(new))
            .copied()
            .collect();
        if seeds.is_empty() {
            return None;
        }
    }
    let known = if machine.foreign {
        imported_rows(new)
    } else {
        own_rows(new)
    };
    let workloads: Vec<Arc<Workload>> = known
        .into_iter()
        .filter(|workload| has_result(old, &workload.name) && has_result(new, &workload.name))
        .collect();
    let command = if machine.foreign {
        command
    } else {
        measuring(&command, &workloads, &seeds)
    };
    (!workloads.is_empty()).then(|| Question {
        command,
        ..Question::about(ALL_SUITES, workloads, seeds)
    })
}

fn seeds_of(runs: &[Run]) -> BTreeSet<u64> {
    runs.iter().map(|run| run.seed).collect()
}

fn has_result(runs: &[Run], workload: &str) -> bool {
    runs.iter()
        .flat_map(|run| &run.results)
        .any(|result| result.workload == workload)
}

/// Returns how many of these workloads a suite has.
fn count_in(suite: &Suite, names: &BTreeSet<&str>) -> usize {
    names
        .iter()
        .filter(|name| suite.find(name).is_some())
        .count()
}

/// Returns the commands that measure workloads with these seeds: one for each suite.
fn measuring(command: &str, workloads: &[Arc<Workload>], seeds: &[u64]) -> String {
    let count = seeds.iter().max().copied().unwrap_or(1);
    let mut left: BTreeSet<&str> = workloads.iter().map(|workload| &*workload.name).collect();
    let mut commands = Vec::new();
    while !left.is_empty() {
        // Among suites with the most workloads take the first: the last two only select from the
        // others.
        let Some(suite) = model::SUITES
            .iter()
            .rev()
            .max_by_key(|suite| count_in(suite, &left))
            .filter(|suite| count_in(suite, &left) > 0)
        else {
            break;
        };
        let named: Vec<&str> = workloads
            .iter()
            .map(|workload| &*workload.name)
            .filter(|name| left.contains(name) && suite.find(name).is_some())
            .collect();
        let some = if named.len() < suite.workloads.len() {
            format!(" --workload {}", named.join(","))
        } else {
            String::new()
        };
        let command_line = format!("{command} --suite {} --seeds {count}{some}", suite.name);
        left.retain(|name| !named.contains(name));
        commands.push(command_line);
    }
    commands.join(" && ")
}

/// Returns all declared workloads, and those of the runs with other numbers of tasks.
fn own_rows(runs: &[Run]) -> Vec<Arc<Workload>> {
    let results = runs.iter().flat_map(|run| &run.results);
    let tasks = results
        .filter_map(|result| model::SCALE.find(&result.workload)?.tasks)
        .chain([1]);
    let counts: Vec<u32> = tasks.collect::<BTreeSet<_>>().into_iter().collect();
    model::in_tasks(
        &model::workloads().into_iter().cloned().collect::<Vec<_>>(),
        &[],
        &counts,
    )
}

/// Returns the rows of imported runs whose direction is known.
fn imported_rows(runs: &[Run]) -> Vec<Arc<Workload>> {
    imported_declarations(runs.iter())
        .into_iter()
        .filter_map(|(name, declared)| imported_workload(name, &declared))
        .collect()
}

/// Turns runs of several suites into runs of one: a workload's samples do not depend on the suite.
pub(crate) fn as_one_suite(runs: &mut [Run]) {
    runs.iter_mut()
        .for_each(|run| ALL_SUITES.clone_into(&mut run.suite));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::measuring;

    #[test]
    fn commands_repeat_the_measurement() {
        assert_eq!(
            measuring("compare A B", &model::SEEDS.workloads, &[1, 2, 5]),
            "compare A B --suite seeds --seeds 5"
        );
        let scaling =
            ["fault-thr-1", "fault-thr-2"].map(|name| model::find_workload(name).unwrap());
        assert_eq!(
            measuring("compare A B", &scaling, &[1]),
            "compare A B --suite scale --seeds 1 --workload fault-thr-1,fault-thr-2"
        );
        let named = |names: &[&str]| -> Vec<Arc<model::Workload>> {
            model::workloads()
                .into_iter()
                .filter(|workload| names.contains(&&*workload.name))
                .cloned()
                .collect()
        };
        assert_eq!(
            measuring(
                "compare A B",
                &named(&["getppid", "reclaim-slow", "reclaim-anon"]),
                &[1]
            ),
            "compare A B --suite reclaim --seeds 1 --workload reclaim-anon,reclaim-slow && \
             compare A B --suite micro --seeds 1 --workload getppid"
        );
    }
}
