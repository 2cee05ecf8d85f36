//! Workloads and suites. `micro.rs` and `suites/` declare the workloads; the agent contains the programs.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{GuestConfig, Metric};

/// A workload, declared once for listings, documents, plans and reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name: group first, at most 18 characters to fit a row.
    pub name: Cow<'static, str>,
    /// What it stresses, in one line.
    pub stresses: Cow<'static, str>,
    /// What one operation is, in one line.
    pub operation: Cow<'static, str>,
    /// Operations in one iteration.
    pub operations: u64,
    /// Measured iterations.
    pub iterations: u32,
    /// Iterations before those, not reported.
    pub warm_up: u32,
    /// Kernel functions that it exercises: it must enter at least one function of each group (names change between
    /// kernels). Empty if it stays in user space.
    pub exercises: &'static [&'static [&'static str]],
    /// Its metric.
    pub metric: Metric,
    /// Its guest config.
    pub guest_config: GuestConfig,
    /// Whether small causes have large effects.
    pub steadiness: Steadiness,
    /// The workload whose job yields this row; this one never runs by itself. `None` if it has its own job.
    pub row_of: Option<Cow<'static, str>>,
    /// The older test that it follows, with the parameters that were kept or changed. Empty for Marvin's own.
    pub source: Cow<'static, str>,
}

/// Whether small causes have large effects in a workload. Either way, the same kernel, machine and seed give the same
/// samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Steadiness {
    /// Steady: changes outside the measured path move it by less than its margin.
    Steady,
    /// Chaotic: which page is reclaimed decides what happens next. Its cost per operation depends on their number, its
    /// margin is wide, and only differences in all seeds count.
    Chaotic,
}

impl Workload {
    /// Returns the workload to run for this one: itself, or the one that it is a row of.
    #[must_use]
    pub fn job(&self) -> Self {
        Self { name: self.row_of.as_ref().unwrap_or(&self.name).clone(), row_of: None, ..self.clone() }
    }

    /// Returns the name of the workload to run for this one.
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
    /// Its purpose, in one line.
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
