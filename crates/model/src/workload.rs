//! What a workload and a suite are. The workloads themselves are declared in `micro.rs` and `suites/`
//! and live in the agent.

use crate::{Equipment, Metric};

/// A workload, declared once: the listing, the documents, the plan and the report are read from here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Its name: group first, at most 18 characters, so that a row fits.
    pub name: &'static str,
    /// What it stresses, in one line.
    pub stresses: &'static str,
    /// What one operation is, in one line.
    pub operation: &'static str,
    /// Operations in one iteration.
    pub operations: u64,
    /// Iterations that are measured.
    pub iterations: u32,
    /// Iterations before that, not reported.
    pub warm_up: u32,
    /// Kernel functions it is meant to exercise: each group needs at least one of its names (names change between
    /// kernels) to be entered. Empty when the workload stays in user space.
    pub exercises: &'static [&'static [&'static str]],
    /// What it reports.
    pub metric: Metric,
    /// What its guest needs beyond a kernel.
    pub equipment: Equipment,
    /// Which older test it is made after, with what of its parameters was kept and what differs. Empty for our own.
    pub source: &'static str,
}

/// A named list of workloads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in one line.
    pub purpose: &'static str,
    /// Its workloads, in the order of the report.
    pub workloads: &'static [Workload],
}
