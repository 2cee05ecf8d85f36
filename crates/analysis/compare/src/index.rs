//! The results of one side, indexed by workload and seed, which keeps comparisons linear.

use std::collections::{HashMap, HashSet};

use model::{Run, RunId, WorkloadResult};

use crate::question::Side;

/// The results of one side.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    results: HashMap<(&'a str, u64), (&'a Run, &'a WorkloadResult)>,
    seeds: HashSet<u64>,
    /// The used runs: of the suite and of the requested seeds, in the given order.
    pub(crate) runs: Vec<&'a Run>,
    /// Workload and seed with two runs that disagree.
    disagreements: HashSet<(&'a str, u64)>,
    /// Runs with a result that one of a newer run replaces.
    superseded: HashSet<&'a RunId>,
}

impl<'a> Index<'a> {
    /// Adds the runs of a side that are of the suite and of one of the seeds.
    pub(crate) fn new(side: &Side<'a>, suite: &str, seeds: &[u64]) -> Self {
        let wanted: HashSet<u64> = seeds.iter().copied().collect();
        let runs: Vec<&'a Run> = side
            .runs
            .iter()
            .copied()
            .filter(|run| run.suite == suite && wanted.contains(&run.seed))
            .collect();
        let mut index = Self {
            results: HashMap::with_capacity(runs.iter().map(|r| r.results.len()).sum()),
            seeds: runs.iter().map(|run| run.seed).collect(),
            disagreements: HashSet::new(),
            superseded: HashSet::new(),
            runs,
        };
        for run in index.runs.clone() {
            for result in &run.results {
                index.take(run, result, side.machine.capabilities().deterministic);
            }
        }
        index
    }

    /// Takes a result, unless a newer run has one: as the history does, and garbage collection
    /// relies on it.
    fn take(&mut self, run: &'a Run, result: &'a WorkloadResult, deterministic: bool) {
        let key = (result.workload.as_str(), run.seed);
        let Some((known, first)) = self.results.insert(key, (run, result)) else {
            return;
        };
        // Only here must two runs agree bit by bit.
        if deterministic && !repeats(first, result) {
            self.disagreements.insert(key);
        }
        if run.started_unix > known.started_unix {
            self.superseded.insert(&known.id);
        } else {
            self.superseded.insert(&run.id);
            self.results.insert(key, (known, first));
        }
    }

    /// Returns the result of a workload with a seed.
    pub(crate) fn result(&self, workload: &'a str, seed: u64) -> Option<&'a WorkloadResult> {
        self.results
            .get(&(workload, seed))
            .map(|(_, result)| *result)
    }

    /// Returns whether there is any run of that seed.
    pub(crate) fn has_run(&self, seed: u64) -> bool {
        self.seeds.contains(&seed)
    }

    /// Returns how many runs have results that newer ones replace.
    pub(crate) fn superseded(&self) -> usize {
        self.superseded.len()
    }

    /// Returns whether two runs disagree.
    pub(crate) fn disagrees(&self, workload: &'a str, seed: u64) -> bool {
        self.disagreements.contains(&(workload, seed))
    }
}

/// Returns whether a result repeats the first one. The console's last words are no part of the
/// result, and other operations are another experiment.
fn repeats(first: &WorkloadResult, again: &WorkloadResult) -> bool {
    let samples = first.samples.iter().map(|sample| sample.to_bits());
    let is_same = || samples.eq(again.samples.iter().map(|sample| sample.to_bits()));
    first.operations != again.operations
        || (std::mem::discriminant(&first.outcome) == std::mem::discriminant(&again.outcome)
            && is_same()
            && (first.counted.is_empty()
                || again.counted.is_empty()
                || first.counted == again.counted))
}
