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
    /// Boot by boot, in the order of [`BootOrder`]: each completes before the next begins.
    Boots,
}

/// The order of the sides' boots: blocks of two replicates, the second one in the reverse order of
/// the first, so that what drifts evenly favours no side; which order is first is drawn for each
/// block, so that nothing that comes every few boots hits one side only.
///
/// What is drawn depends on the names of what is measured alone: the same comparison has the same
/// order again, also when a boot is added at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BootOrder {
    seed: u64,
}

impl BootOrder {
    pub(crate) fn new(names: impl Iterator<Item = String>) -> Self {
        // FNV-1a (Fowler, Noll and Vo 1991), with an end for each name.
        let mut seed = 0xcbf2_9ce4_8422_2325_u64;
        for name in names {
            for byte in name.bytes().chain([0xff]) {
                seed = (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        Self { seed }
    }

    /// Returns the order of so many sides in a replicate.
    pub(crate) fn of(self, replicate: u64, sides: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..sides).collect();
        let mut state = self.seed ^ replicate.div_ceil(2).wrapping_mul(0xd6e8_feb8_6659_fd93);
        // Fisher and Yates 1938, in the form of Durstenfeld 1964.
        for last in (1..sides).rev() {
            order.swap(last, (next(&mut state) % (last as u64 + 1)) as usize);
        }
        // Replicates are counted from 1.
        if replicate.is_multiple_of(2) {
            order.reverse();
        }
        order
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A run that is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) replicate: u64,
    pub(crate) jobs: usize,
}

/// Returns the items in their order of execution: runs in groups of one replicate on every side,
/// alternating within a group.
pub(crate) fn interleave(
    runs: &[Waiting],
    sides: usize,
    turns: Turns,
    order: BootOrder,
) -> Vec<Item> {
    let mut items = Vec::new();
    for (group, runs) in runs.chunks(sides.max(1)).enumerate() {
        let first = group * sides.max(1);
        if turns == Turns::Boots {
            let replicate = runs.first().map_or(0, |run| run.replicate);
            for side in order.of(replicate, runs.len()) {
                for job in 0..runs[side].jobs {
                    items.push(Item {
                        run: first + side,
                        job,
                    });
                }
            }
            continue;
        }
        for job in 0..runs.iter().map(|run| run.jobs).max().unwrap_or(0) {
            items.extend(
                (0..runs.len())
                    .filter(|&n| job < runs[n].jobs)
                    .map(|n| Item {
                        run: first + n,
                        job,
                    }),
            );
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::{BootOrder, Turns, Waiting, interleave};

    fn order(jobs_of_runs: &[usize], turns: Turns) -> Vec<(usize, usize)> {
        let mut runs = Vec::new();
        for (run, jobs) in jobs_of_runs.iter().enumerate() {
            runs.push(Waiting {
                replicate: run as u64 / 2 + 1,
                jobs: *jobs,
            });
        }
        interleave(&runs, 2, turns, of_names("deb:6.1"))
            .iter()
            .map(|item| (item.run, item.job))
            .collect()
    }

    fn of_names(name: &str) -> BootOrder {
        BootOrder::new([name, "deb:6.12", "micro"].map(str::to_owned).into_iter())
    }

    #[test]
    fn sides_alternate_by_job_within_a_replicate() {
        assert_eq!(
            order(&[2, 1, 1, 2], Turns::Jobs),
            [(0, 0), (1, 0), (0, 1), (2, 0), (3, 0), (3, 1)]
        );
        assert!(interleave(&[], 0, Turns::Jobs, of_names("")).is_empty());
    }

    #[test]
    fn boots_of_a_block_mirror_each_other() {
        for replicate in [1, 3, 41] {
            for sides in 1..5 {
                let mut there = of_names("deb:6.1").of(replicate, sides);
                let back = of_names("deb:6.1").of(replicate + 1, sides);
                there.reverse();
                assert_eq!(there, back);
                there.sort_unstable();
                assert_eq!(there, (0..sides).collect::<Vec<_>>());
            }
        }
        // A side completes its jobs before the next begins.
        let items = order(&[2, 2], Turns::Boots);
        assert_eq!((items[0].0, items[2].0), (items[1].0, items[3].0));
    }

    #[test]
    fn names_draw_either_order_equally_often() {
        let mut first = 0;
        let mut changes = 0;
        for name in 0..200 {
            let order = of_names(&format!("deb:6.{name}"));
            let blocks: Vec<usize> = (0..10).map(|block| order.of(2 * block + 1, 2)[0]).collect();
            first += blocks.iter().filter(|side| **side == 0).count();
            changes += blocks.windows(2).filter(|pair| pair[0] != pair[1]).count();
        }
        assert!((900..1100).contains(&first), "{first} of 2000");
        assert!((800..1000).contains(&changes), "{changes} of 1800");
    }
}
