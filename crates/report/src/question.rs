//! What is asked: which kernels with which runs, which workloads, which margin. The answer is `comparison.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Build, Machine, MachineId, Run, Workload};

/// One kernel and all runs of it that may answer the question.
#[derive(Debug, Clone)]
pub struct Side<'a> {
    /// What was booted.
    pub build: &'a Build,
    /// Where.
    pub machine: &'a Machine,
    /// The same machine with other equipment, where some of the workloads ask for it.
    pub also: Vec<&'a Machine>,
    /// Its runs, of any seeds. Several runs may hold the same seed with different workloads: their results are put
    /// together. Where two hold the same workload with the same seed, the first is taken.
    pub runs: Vec<&'a Run>,
}

/// Whether runs of different machines may stand side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Machines {
    /// All runs are of one machine; anything else is refused.
    #[default]
    Equal,
    /// The user said that machines may differ; the comparison then opens with a warning.
    Mixed,
}

/// What a comparison is to answer.
#[derive(Debug, Clone)]
pub struct Question {
    /// The suite's name. Runs of other suites are no answer and are passed over.
    pub suite: String,
    /// The rows, in the suite's order.
    pub workloads: Vec<Arc<Workload>>,
    /// The seeds; none stands for all that the runs have.
    pub seeds: Vec<u64>,
    /// A difference up to this many percent is no news; without it each metric's own margin holds.
    pub margin_percent: Option<f64>,
    /// Whether machines may differ.
    pub machines: Machines,
    /// How far runs of other kernels lay apart on these machines, by workload, where runs scatter: what one run of each can be
    /// rated by.
    pub scatters: BTreeMap<String, stats::History>,
    /// The command that reproduces the comparison.
    pub command: String,
    /// When it was asked, in seconds since 1970-01-01 UTC.
    pub created_unix: Option<i64>,
}

impl Side<'_> {
    /// Returns the ids of all its machines, sorted.
    pub(crate) fn machine_ids(&self) -> BTreeSet<&MachineId> {
        std::iter::once(&self.machine).chain(&self.also).map(|machine| &machine.id).collect()
    }
}
