//! Looks up what twins of a comparison's rows say: workloads of other suites that do the same
//! operation, if the store has them of the same kernels and machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compare::{Comparison, Question, Side};
use model::{Build, Machine, Run, Workload};
use store::{Location, Store, StoreError};

/// Makes rows unclear that their twins contradict, by the results of a store.
///
/// # Errors
/// If the store cannot be read.
pub fn doubt_by_twins(
    location: impl Into<Location>,
    comparison: &mut Comparison,
) -> Result<(), StoreError> {
    let mut suites: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
    for twin in comparison.twins_wanted() {
        if let Some(suite) = model::suite_of(twin).filter(|suite| suite.name != comparison.suite) {
            suites.entry(suite.name).or_default().insert(twin);
        }
    }
    if suites.is_empty() {
        return Ok(());
    }
    let store = Store::open_read_only(location)?;
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
) -> Result<Option<Comparison>, StoreError> {
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
        .map(|(build, machine, runs)| Side {
            build,
            machine,
            also: Vec::new(),
            runs: runs.iter().collect(),
        })
        .collect();
    let workloads: Vec<Arc<Workload>> = twins
        .iter()
        .filter_map(|twin| model::find_workload(twin))
        .collect();
    let question = Question::about(suite, workloads, Vec::new());
    // What cannot be compared contradicts nothing.
    Ok(compare::compare(&sides[0], &sides[1..], &question).ok())
}

#[cfg(test)]
mod tests {
    use model::{
        BuildFile, BuildId, MachineId, Origin, Outcome, RunId, UnixTime, Verdict, WorkloadResult,
    };

    use super::*;

    fn build(digit: char) -> Build {
        Build {
            id: BuildId::from_hex(&digit.to_string().repeat(64)).unwrap(),
            name: "deb:6.12".parse().unwrap(),
            version: format!("6.1{digit}"),
            origin: Origin::Described(String::new()),
            image: BuildFile {
                path: "/vmlinuz".into(),
                sha256: "00".into(),
            },
            vmlinux: None,
            config: None,
            symbols: None,
            modules: None,
        }
    }

    fn run(number: u8, build: &Build, suite: &str, (workload, cost): (&str, f64)) -> Run {
        let result = WorkloadResult {
            workload: workload.to_owned(),
            operations: 1200,
            declared: None,
            outcome: Outcome::Completed,
            samples: vec![cost; 3],
            counted: Vec::new(),
        };
        Run {
            id: RunId::from_hex(&format!("{number:016x}")).unwrap(),
            build: build.id.clone(),
            machine: machine().id,
            suite: suite.to_owned(),
            seed: 1,
            started_unix: UnixTime::new(1),
            environment: Vec::new(),
            results: vec![result],
        }
    }

    fn machine() -> Machine {
        let id = MachineId::from_hex(&"a".repeat(64)).unwrap();
        Machine {
            id,
            kind: "exact".parse().unwrap(),
            summary: String::new(),
            fingerprint: Vec::new(),
        }
    }

    #[test]
    fn stored_twin_makes_a_row_unclear() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let old = build('1');
        let new = build('2');
        let on = machine();
        store.save_machine(&on).unwrap();
        [&old, &new]
            .iter()
            .for_each(|build| store.save_build(build).unwrap());
        let micro = [
            run(1, &old, "micro", ("mem-mmap", 100.0)),
            run(2, &new, "micro", ("mem-mmap", 189.84)),
        ];
        let scale = [
            run(3, &old, "scale", ("mmap-thr-1", 100.0)),
            run(4, &new, "scale", ("mmap-thr-1", 101.75)),
        ];
        let side = |build, run| Side {
            build,
            machine: &on,
            also: Vec::new(),
            runs: vec![run],
        };
        let workloads = vec![model::find_workload("mem-mmap").unwrap()];
        let question = Question::about("micro", workloads, Vec::new());
        let mut comparison =
            compare::compare(&side(&old, &micro[0]), &[side(&new, &micro[1])], &question).unwrap();
        micro
            .iter()
            .for_each(|run| store.save_run(run, &[]).unwrap());
        doubt_by_twins(home.path(), &mut comparison).unwrap();
        assert_eq!(
            comparison.rows[0].cells[0].compared.verdict,
            Verdict::Worse,
            "no twin is there"
        );
        scale
            .iter()
            .for_each(|run| store.save_run(run, &[]).unwrap());
        doubt_by_twins(home.path(), &mut comparison).unwrap();
        let Verdict::Unclear(why) = &comparison.rows[0].cells[0].compared.verdict else {
            panic!("{comparison:?}")
        };
        assert!(why.to_string().starts_with("its twin mmap-thr-1"), "{why}");
    }
}
