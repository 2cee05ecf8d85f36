//! What a workload and a suite are. The workloads themselves are declared in `micro.rs` and `suites/`
//! and live in the agent.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{Equipment, Metric};

/// A workload, declared once: the listing, the documents, the plan and the report are read from here.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name: group first, at most 18 characters, so that a row fits.
    pub name: Cow<'static, str>,
    /// What it stresses, in one line.
    pub stresses: Cow<'static, str>,
    /// What one operation is, in one line.
    pub operation: Cow<'static, str>,
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
    /// How far a small cause goes.
    pub steadiness: Steadiness,
    /// The workload that this is a row of: one job brings both, and this is never run by itself. `None` for a workload of its
    /// own.
    pub row_of: Option<Cow<'static, str>>,
    /// Which older test it is made after, with what of its parameters was kept and what differs. Empty for our own.
    pub source: Cow<'static, str>,
}

/// How far a small cause goes in a workload. The same kernel, machine and seed give the same samples either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Steadiness {
    /// As far as it should: what a workload does not touch does not move it by more than its margin.
    Steady,
    /// Anywhere: which page is reclaimed decides what happens next. Robust, not exact: its cost per operation depends on how
    /// many there are, its margin is wide, and only what holds for all seeds is news.
    Chaotic,
}

impl Workload {
    /// Returns the workload that is run for this one: itself, or the one that it is a row of.
    #[must_use]
    pub fn job(&self) -> Self {
        Self { name: self.row_of.as_ref().unwrap_or(&self.name).clone(), row_of: None, ..self.clone() }
    }

    /// Returns the name of the workload that is run for this one.
    #[must_use]
    pub fn job_name(&self) -> &str {
        self.row_of.as_deref().unwrap_or(&self.name)
    }
}

/// A named list of workloads.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in one line.
    pub purpose: &'static str,
    /// Its workloads, in the order of the report.
    pub workloads: Vec<Arc<Workload>>,
}

impl Suite {
    /// Returns a suite of these workloads.
    #[must_use]
    pub fn of(name: &'static str, purpose: &'static str, workloads: impl IntoIterator<Item = Workload>) -> Arc<Self> {
        Arc::new(Self { name, purpose, workloads: workloads.into_iter().map(Arc::new).collect() })
    }
}
