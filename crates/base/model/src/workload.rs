//! Workloads and suites. `micro.rs` and `suites/` declare the workloads; the agent contains the
//! programs.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{GuestConfig, Metric};

/// Most tasks of a workload: names have room for four digits.
pub const TASKS_MAX: u32 = 4096;

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
    /// Iterations whose samples are reported.
    pub iterations: u32,
    /// Iterations before those, not reported.
    pub warm_up: u32,
    /// Kernel functions that it exercises: it must enter at least one function of each group
    /// (names change between kernels). Empty if it stays in user space.
    pub exercises: &'static [&'static [&'static str]],
    /// What its values measure.
    pub metric: Metric,
    /// What its guest needs.
    pub guest_config: GuestConfig,
    /// Whether small causes have large effects.
    pub steadiness: Steadiness,
    /// How many tasks do its operations at the same time, each all of them: the last word of its
    /// name. `None` if that is no parameter of it.
    pub tasks: Option<u32>,
    /// Which processors it uses where the agent is one process of many.
    pub processors: Processors,
    /// The workload whose job yields this row; this one never runs by itself. `None` if it has its
    /// own job.
    pub row_of: Option<Cow<'static, str>>,
    /// The older test that it follows, with the parameters that were kept or changed. Empty for
    /// Marvin's own.
    pub source: Cow<'static, str>,
}

/// Whether small causes have large effects in a workload. Either way, the same kernel, machine and
/// seed give the same samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Steadiness {
    /// Steady: changes outside the measured path move it by less than its margin.
    Steady,
    /// Chaotic: which page is reclaimed decides what happens next. Its cost per operation depends
    /// on their number, its margin is wide, and only differences in all seeds count.
    Chaotic,
}

/// Which processors of a job a workload uses. Guests of our own have no other work, and there the
/// scheduler always decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Processors {
    /// The last one: it is one process, or processes that take turns. With a number of tasks, one
    /// for each.
    One,
    /// All: it has several processes or threads at a time, and they run where the scheduler puts
    /// them.
    All,
}

impl Workload {
    /// Returns it with all processors.
    #[must_use]
    pub fn on_all_processors(self) -> Self {
        Self {
            processors: Processors::All,
            ..self
        }
    }

    /// Returns the workload to run for this one: itself, or the one that it is a row of.
    #[must_use]
    pub fn job(&self) -> Self {
        Self {
            name: self.row_of.as_ref().unwrap_or(&self.name).clone(),
            row_of: None,
            ..self.clone()
        }
    }

    /// Returns its name without the number of tasks.
    #[must_use]
    pub fn series(&self) -> &str {
        let series = self.name.rsplit_once('-').filter(|_| self.tasks.is_some());
        series.map_or(&self.name, |(series, _)| series)
    }

    /// Returns it with so many tasks; `None` if that is no parameter of it.
    #[must_use]
    pub fn with_tasks(&self, tasks: u32) -> Option<Self> {
        self.tasks?;
        Some(Self {
            name: format!("{}-{tasks}", self.series()).into(),
            tasks: Some(tasks),
            ..self.clone()
        })
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
    /// The suite's name on the command line.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub purpose: &'static str,
    /// Its workloads, in the order of the report.
    pub workloads: Vec<Arc<Workload>>,
}

impl Suite {
    /// Returns a suite of these workloads.
    #[must_use]
    pub fn new(
        name: &'static str,
        purpose: &'static str,
        workloads: impl IntoIterator<Item = Workload>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            purpose,
            workloads: workloads.into_iter().map(Arc::new).collect(),
        })
    }

    /// Finds a workload by its name, with any number of tasks.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<Workload>> {
        if let Some(declared) = self.workloads.iter().find(|workload| workload.name == name) {
            return Some(Arc::clone(declared));
        }
        let (series, tasks) = name.rsplit_once('-')?;
        let tasks = tasks
            .parse()
            .ok()
            .filter(|tasks| (1..=TASKS_MAX).contains(tasks))?;
        let declared = self
            .workloads
            .iter()
            .find(|workload| workload.series() == series)?;
        // `-04` is no name.
        declared
            .with_tasks(tasks)
            .filter(|found| found.name == name)
            .map(Arc::new)
    }
}
