//! A plan: sides × replicates × workloads, and the order in which they are measured.

use std::sync::Arc;

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
    pub suite: &'a Suite,
    /// Which of its workloads.
    pub workloads: Vec<Arc<Workload>>,
    /// The replicates: boots of each side. Where the machine is deterministic they are seeds, each of which perturbs a run
    /// in its own way.
    pub replicates: Vec<u64>,
    /// Machines at the same time.
    pub machines: usize,
    /// Whether results of earlier runs are used.
    pub reuse: Reuse,
    /// Whether memory is kept of kernels that die.
    pub dumps: Dumps,
}

/// One job of a unit: a run of one build with one replicate is a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// Index of the unit.
    pub(crate) unit: usize,
    /// Index of the job within it.
    pub(crate) job: usize,
}

/// How sides take turns, so that a drift of the host meets all of them alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Job by job: all sides of a replicate are booted at the same time.
    Jobs,
    /// Boot by boot, A B B A: each is done with before the next begins.
    Boots,
}

/// Returns the items in the order in which they are done: units in groups of as many as there are sides (one replicate on
/// every side), within a group by turns.
pub(crate) fn interleaved(jobs_of_units: &[usize], sides: usize, turns: Turns) -> Vec<Item> {
    let mut items = Vec::new();
    if turns == Turns::Boots {
        let units: Vec<usize> = (0..jobs_of_units.len()).collect();
        for (group, units) in units.chunks(sides.max(1)).enumerate() {
            let order: Vec<usize> = if group % 2 == 0 { units.to_vec() } else { units.iter().rev().copied().collect() };
            items
                .extend(order.into_iter().flat_map(|unit| (0..jobs_of_units[unit]).map(move |job| Item { unit, job })));
        }
        return items;
    }
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
    use super::{Turns, interleaved};

    fn order(jobs_of_units: &[usize], turns: Turns) -> Vec<(usize, usize)> {
        interleaved(jobs_of_units, 2, turns).iter().map(|item| (item.unit, item.job)).collect()
    }

    #[test]
    fn sides_take_turns_job_by_job_and_replicates_follow() {
        assert_eq!(order(&[2, 1, 1, 2], Turns::Jobs), [(0, 0), (1, 0), (0, 1), (2, 0), (3, 0), (3, 1)]);
        assert!(interleaved(&[], 0, Turns::Jobs).is_empty());
    }

    #[test]
    fn one_boot_at_a_time_goes_there_and_back() {
        let units: Vec<usize> = order(&[1; 6], Turns::Boots).iter().map(|(unit, _)| *unit).collect();
        assert_eq!(units, [0, 1, 3, 2, 4, 5]);
        assert_eq!(order(&[2, 2], Turns::Boots), [(0, 0), (0, 1), (1, 0), (1, 1)]);
    }
}
