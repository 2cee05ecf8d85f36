//! A plan: sides × seeds × workloads, in interleaved order.

use model::{Build, Suite, Workload};

/// Whether results of earlier runs are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// What is there is not measured again.
    Stored,
    /// Everything is measured, whatever is there.
    Nothing,
}

/// Whether memory is kept of kernels that die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dumps {
    /// It is not.
    Drop,
    /// A filtered dump is kept with the run: `WORKLOAD.vmcore`, or `boot.vmcore`.
    Keep,
}

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The builds to be measured; the same one may be there twice, to be measured twice.
    pub sides: Vec<&'a Build>,
    /// The suite.
    pub suite: &'static Suite,
    /// Which of its workloads.
    pub workloads: Vec<&'static Workload>,
    /// The seeds; each perturbs a run in its own way.
    pub seeds: Vec<u64>,
    /// Machines at the same time.
    pub machines: usize,
    /// Whether results of earlier runs are used.
    pub reuse: Reuse,
    /// Whether memory is kept of kernels that die.
    pub dumps: Dumps,
}

/// One job of a unit: a run of one build with one seed is a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// Index of the unit.
    pub(crate) unit: usize,
    /// Index of the job within it.
    pub(crate) job: usize,
}

/// Returns the items in the order in which they are done: units in groups of as many as there are sides (one seed on
/// every side), within a group job by job across the sides, so that a drift of the host meets all sides alike.
pub(crate) fn interleaved(jobs_of_units: &[usize], sides: usize) -> Vec<Item> {
    let mut items = Vec::new();
    for (group, jobs) in jobs_of_units.chunks(sides.max(1)).enumerate() {
        for job in 0..jobs.iter().copied().max().unwrap_or(0) {
            let first = group * sides.max(1);
            items.extend((0..jobs.len()).filter(|&n| job < jobs[n]).map(|n| Item { unit: first + n, job }));
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::interleaved;

    #[test]
    fn sides_take_turns_job_by_job_and_seeds_follow_one_another() {
        let order: Vec<_> = interleaved(&[2, 1, 1, 2], 2).iter().map(|item| (item.unit, item.job)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (0, 1), (2, 0), (3, 0), (3, 1)]);
        assert!(interleaved(&[], 0).is_empty());
    }
}
