//! The lab as a prober: builds commits from source and measures them on the lab's machine.

use std::ops::RangeInclusive;
use std::sync::Arc;

use compare::{NOT_COUNTED, Scale, run_value};
use kernel::{BuildEvent, CommitGraph, Compiled, KernelError, SourceError, Sources};
use model::{Capabilities, Run, Suite, Workload};

use super::{Elsewhere, Probe, Prober, RebuildCost};
use crate::{Dumps, Event, Lab, LabError, Plan, Reuse, Sampled};

/// What to measure of each commit, and with what.
pub struct LabProber<'a, S: Fn(BuildEvent), E: Fn(Event) + Sync> {
    pub lab: &'a Lab,
    /// The tree with the commits.
    pub sources: &'a Sources,
    /// The suite with the workload.
    pub suite: &'a Suite,
    pub workload: Arc<Workload>,
    /// Machines that run in parallel.
    pub machines: usize,
    /// Whether to use results of earlier runs.
    pub reuse: Reuse,
    /// Hosts that measure commits ahead.
    pub elsewhere: Option<&'a dyn Elsewhere>,
    /// Receives the steps of a build.
    pub step: S,
    /// Receives the events of a measurement.
    pub event: E,
}

impl<S: Fn(BuildEvent), E: Fn(Event) + Sync> Prober for LabProber<'_, S, E> {
    fn probe(&mut self, commit: &str, seeds: RangeInclusive<u64>) -> Result<Probe, LabError> {
        // Its build and its results are then where this host looks for them.
        if let Some(elsewhere) = self.elsewhere {
            elsewhere.wait(commit);
        }
        let build = match self.sources.build(commit, &self.step) {
            Ok(build) => build,
            Err(KernelError::Source(SourceError::DoesNotBuild { first_error, .. })) => {
                return Ok(Probe::Failed(format!("does not build: {first_error}")));
            }
            // Such as a vmlinux that cannot boot: also the fault of the commit.
            Err(KernelError::Image { fault, .. }) => {
                return Ok(Probe::Failed(format!("no kernel: {fault}")));
            }
            Err(error) => return Err(error.into()),
        };
        let plan = Plan {
            sides: vec![&build],
            suite: self.suite,
            workloads: vec![Arc::clone(&self.workload)],
            replicates: seeds.clone().collect(),
            machines: self.machines,
            reuse: self.reuse,
            dumps: Dumps::Drop,
            sampled: Sampled::No,
        };
        let runs = self.lab.execute(&plan, &self.event)?.concat();
        Ok(
            match values_of(
                &runs,
                seeds,
                &self.workload.name,
                self.lab.machine().capabilities(),
            ) {
                Ok((values, scale)) => Probe::Measured {
                    build: build.id.short(),
                    values,
                    scale,
                },
                Err(why) => Probe::Failed(why),
            },
        )
    }

    fn merge(&mut self, ours: &str, theirs: &str) -> Result<Option<String>, LabError> {
        Ok(self.sources.merge(ours, theirs)?)
    }

    fn revert(&mut self, tip: &str, commit: &str) -> Result<Option<String>, LabError> {
        Ok(self.sources.revert(tip, commit)?)
    }

    fn rebuild_cost(&mut self, history: &CommitGraph) -> Result<RebuildCost, LabError> {
        let mut compiled = Compiled::default();
        for end in [history.good(), history.bad()] {
            let Some(of_end) = self.sources.compiled(end)? else {
                return Ok(RebuildCost::everything(history.count()));
            };
            compiled.join(of_end);
        }
        Ok(RebuildCost::estimate(
            history,
            &self.sources.changed_files(history)?,
            &compiled,
        ))
    }

    fn hosts(&self, commits: usize) -> usize {
        self.elsewhere
            .map_or(0, |elsewhere| elsewhere.hosts(commits))
    }

    fn foresee(&mut self, commits: &[String]) {
        if let Some(elsewhere) = self.elsewhere {
            elsewhere.measure(commits);
        }
    }
}

impl<S: Fn(BuildEvent), E: Fn(Event) + Sync> std::fmt::Debug for LabProber<'_, S, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LabProber")
            .field("workload", &self.workload.name)
            .finish_non_exhaustive()
    }
}

/// Returns the value of each seed as all other comparisons compute it ([`compare::run_value`]), and
/// its scale.
///
/// # Errors
/// If a seed has no value, or some are counted and others timed; the text says why.
pub fn values_of(
    runs: &[Run],
    seeds: RangeInclusive<u64>,
    workload: &str,
    machine: Capabilities,
) -> Result<(Vec<f64>, Scale), String> {
    let value = |seed: u64| {
        let results = runs
            .iter()
            .filter(|run| run.seed == seed)
            .flat_map(|run| &run.results);
        let result = results
            .into_iter()
            .find(|result| result.workload == workload);
        run_value(result.ok_or("does not boot")?, machine).map_err(|none| none.to_string())
    };
    let values = seeds.map(value).collect::<Result<Vec<_>, _>>()?;
    let scale = Scale::common(values.iter().map(|value| value.scale));
    if values.iter().any(|value| value.scale != scale) {
        return Err(NOT_COUNTED.to_owned());
    }
    Ok((values.into_iter().map(|value| value.value).collect(), scale))
}
