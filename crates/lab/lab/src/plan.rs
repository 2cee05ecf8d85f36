//! A plan: sides × replicates × workloads, and the order of measurement.

use std::sync::Arc;

use model::{Build, Suite, Workload};

/// Whether to use results of earlier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    Stored,
    Nothing,
}

/// Whether to dump the memory of kernels that die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dumps {
    Drop,
    /// Store a filtered dump with the run: `WORKLOAD.vmcore`, or `boot.vmcore`.
    Keep,
}

/// Whether to sample where the processors are, on machines that can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    No,
    /// Repeat each workload after its measurement, sample it, and store the profile with the run:
    /// `WORKLOAD.samples`.
    Yes,
}

#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The builds; one may appear twice, to be measured twice.
    pub sides: Vec<&'a Build>,
    pub suite: &'a Suite,
    /// The selected workloads of the suite.
    pub workloads: Vec<Arc<Workload>>,
    /// The replicates: boots of each side. On a deterministic machine they are seeds, each with
    /// its own perturbation.
    pub replicates: Vec<u64>,
    /// Machines that run in parallel.
    pub machines: usize,
    /// Whether to use results of earlier runs.
    pub reuse: Reuse,
    /// Whether to dump the memory of kernels that die.
    pub dumps: Dumps,
    pub sampled: Sampled,
}

/// One job of a run in progress: one build with one replicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// Index of the run.
    pub(crate) run: usize,
    /// Index of the job within the run.
    pub(crate) job: usize,
}

/// How sides alternate, so that drift of the host affects all of them equally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Job by job: all sides of a replicate are booted at the same time.
    Jobs,
    /// Boot by boot, A B B A: each completes before the next begins.
    Boots,
}

/// Returns the items in their order of execution: runs in groups of one replicate on every side,
/// alternating within a group.
pub(crate) fn interleave(jobs_of_runs: &[usize], sides: usize, turns: Turns) -> Vec<Item> {
    let mut items = Vec::new();
    if turns == Turns::Boots {
        let runs: Vec<usize> = (0..jobs_of_runs.len()).collect();
        for (group, runs) in runs.chunks(sides.max(1)).enumerate() {
            let order: Vec<usize> = if group % 2 == 0 {
                runs.to_vec()
            } else {
                runs.iter().rev().copied().collect()
            };
            items.extend(
                order
                    .into_iter()
                    .flat_map(|run| (0..jobs_of_runs[run]).map(move |job| Item { run, job })),
            );
        }
        return items;
    }
    for (group, jobs) in jobs_of_runs.chunks(sides.max(1)).enumerate() {
        for job in 0..jobs.iter().copied().max().unwrap_or(0) {
            let first = group * sides.max(1);
            items.extend((0..jobs.len()).filter(|&n| job < jobs[n]).map(|n| Item {
                run: first + n,
                job,
            }));
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::{Turns, interleave};

    fn order(jobs_of_runs: &[usize], turns: Turns) -> Vec<(usize, usize)> {
        interleave(jobs_of_runs, 2, turns)
            .iter()
            .map(|item| (item.run, item.job))
            .collect()
    }

    #[test]
    fn sides_alternate_by_job_within_a_replicate() {
        assert_eq!(
            order(&[2, 1, 1, 2], Turns::Jobs),
            [(0, 0), (1, 0), (0, 1), (2, 0), (3, 0), (3, 1)]
        );
        assert!(interleave(&[], 0, Turns::Jobs).is_empty());
    }

    #[test]
    fn single_boots_alternate_in_both_directions() {
        let runs: Vec<usize> = order(&[1; 6], Turns::Boots)
            .iter()
            .map(|(run, _)| *run)
            .collect();
        assert_eq!(runs, [0, 1, 3, 2, 4, 5]);
        assert_eq!(
            order(&[2, 2], Turns::Boots),
            [(0, 0), (0, 1), (1, 0), (1, 1)]
        );
    }
}
