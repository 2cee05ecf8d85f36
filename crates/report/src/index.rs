//! The results of one side, found by workload and seed in one step: every comparison is linear because of it.

use std::collections::{HashMap, HashSet};

use model::{Run, WorkloadResult};

use crate::question::Side;

/// The results of one side.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    results: HashMap<(&'a str, u64), &'a WorkloadResult>,
    seeds: HashSet<u64>,
    /// The runs that count: of the suite and of the seeds asked for, in the order given.
    pub(crate) runs: Vec<&'a Run>,
    /// Workload and seed of which two runs tell different things.
    disagreements: HashSet<(&'a str, u64)>,
}

impl<'a> Index<'a> {
    /// Takes in the runs of a side that are of the suite and of one of the seeds.
    pub(crate) fn new(side: &Side<'a>, suite: &str, seeds: &[u64]) -> Self {
        let wanted: HashSet<u64> = seeds.iter().copied().collect();
        let runs: Vec<&'a Run> =
            side.runs.iter().copied().filter(|run| run.suite == suite && wanted.contains(&run.seed)).collect();
        let mut index = Self {
            results: HashMap::with_capacity(runs.iter().map(|r| r.results.len()).sum()),
            seeds: runs.iter().map(|run| run.seed).collect(),
            disagreements: HashSet::new(),
            runs,
        };
        for run in index.runs.clone() {
            for result in &run.results {
                index.take(run.seed, result, side.machine.capabilities().deterministic);
            }
        }
        index
    }

    fn take(&mut self, seed: u64, result: &'a WorkloadResult, deterministic: bool) {
        let key = (result.workload.as_str(), seed);
        let first = *self.results.entry(key).or_insert(result);
        // Only here must two runs agree to the last bit.
        if deterministic && !repeats(first, result) {
            self.disagreements.insert(key);
        }
    }

    /// Returns the result of a workload with a seed.
    pub(crate) fn result(&self, workload: &'a str, seed: u64) -> Option<&'a WorkloadResult> {
        self.results.get(&(workload, seed)).copied()
    }

    /// Returns whether there is any run of that seed.
    pub(crate) fn has_run(&self, seed: u64) -> bool {
        self.seeds.contains(&seed)
    }

    /// Returns whether two runs told different things.
    pub(crate) fn disagrees(&self, workload: &'a str, seed: u64) -> bool {
        self.disagreements.contains(&(workload, seed))
    }
}

/// Returns whether a result is the first one's again. The last words on a console are no result, and other operations
/// are another experiment.
fn repeats(first: &WorkloadResult, again: &WorkloadResult) -> bool {
    let bits = |r: &WorkloadResult| r.samples.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
    first.operations != again.operations
        || (std::mem::discriminant(&first.outcome) == std::mem::discriminant(&again.outcome)
            && bits(first) == bits(again)
            && (first.counted.is_empty() || again.counted.is_empty() || first.counted == again.counted))
}
