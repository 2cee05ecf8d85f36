//! The question of a comparison: kernels with their runs, workloads, margin. `comparison.rs` has
//! the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Build, Machine, MachineId, Run, UnixTime, Workload};

/// One kernel and its runs for the question.
#[derive(Debug, Clone)]
pub struct Side<'a> {
    /// The build that was measured.
    pub build: &'a Build,
    /// The machine of its runs; `also` has those with other guest configs.
    pub machine: &'a Machine,
    /// The same machine with other guest configs, if some workloads need them.
    pub also: Vec<&'a Machine>,
    /// Its runs, of any seeds. Several runs may have the same seed with different workloads: their
    /// results are merged. If two have the same workload and seed, the one that began later
    /// counts; of two that began at once, the first here.
    pub runs: Vec<&'a Run>,
}

/// Whether runs of different machines may be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Machines {
    /// All runs must be of one machine.
    #[default]
    Equal,
    /// The user allowed different machines; the comparison then begins with a warning.
    Mixed,
}

/// The question of a comparison.
#[derive(Debug, Clone)]
pub struct Question {
    /// The suite's name. Runs of other suites are ignored.
    pub suite: String,
    /// The rows, in the suite's order.
    pub workloads: Vec<Arc<Workload>>,
    /// The seeds; empty for all that the runs have.
    pub seeds: Vec<u64>,
    /// The margin: a difference up to this many percent counts as same. By default each metric's
    /// own.
    pub margin_percent: Option<f64>,
    /// Whether machines may differ.
    pub machines: Machines,
    /// The noise between runs of other kernels on these machines, by workload, if they are noisy:
    /// it rates single runs.
    pub scatters: BTreeMap<String, stats::History>,
    /// The boots of each side up to which noisy rows are looked at after each boot; `None` if they
    /// are rated once.
    pub looks_max: Option<usize>,
    /// The command that reproduces the comparison.
    pub command: String,
    /// When it was asked.
    pub created_unix: Option<UnixTime>,
}

impl Question {
    /// Asks for these workloads, each with the margin of its metric, on equal machines.
    #[must_use]
    pub fn about(suite: &str, workloads: Vec<Arc<Workload>>, seeds: Vec<u64>) -> Self {
        Self {
            suite: suite.to_owned(),
            workloads,
            seeds,
            margin_percent: None,
            machines: Machines::Equal,
            scatters: BTreeMap::new(),
            looks_max: None,
            command: String::new(),
            created_unix: None,
        }
    }
}

impl Side<'_> {
    /// Returns the ids of all its machines, sorted.
    pub(crate) fn machine_ids(&self) -> BTreeSet<&MachineId> {
        std::iter::once(&self.machine)
            .chain(&self.also)
            .map(|machine| &machine.id)
            .collect()
    }
}
