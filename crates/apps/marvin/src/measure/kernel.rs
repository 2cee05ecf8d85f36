//! Measures one kernel on one machine.

use lab::{Lab, Plan, Sampled};
use model::{Build, BuildId, KernelName};

use super::{find_builds, plan_runs, prepare_tools};
use crate::options::MeasureOptions;
use crate::select::ChosenWorkloads;
use crate::session::Progress;

/// Everything to measure of one kernel.
pub(crate) struct KernelMeasurement<'a> {
    pub(crate) measure: &'a MeasureOptions,
    pub(crate) chosen: &'a ChosenWorkloads,
    /// The build that another host has shared under the name; `None` to find it by its name.
    pub(crate) build: Option<BuildId>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) sampled: Sampled,
}

impl KernelMeasurement<'_> {
    /// Measures it on a lab's machine, and leaves the machine as it was.
    pub(crate) fn measure(
        &self,
        lab: &Lab,
        name: &KernelName,
        progress: &Progress,
    ) -> anyhow::Result<(Build, Vec<model::Run>)> {
        let ChosenWorkloads {
            suite, workloads, ..
        } = self.chosen;
        let mut builds = match &self.build {
            Some(id) => vec![lab.fetch(id, name, &|step| progress.step(&name.to_string(), &step))?],
            None => find_builds(lab, std::slice::from_ref(name), progress)?,
        };
        let plan = Plan {
            sampled: self.sampled,
            ..plan_runs(self.measure, &builds, suite, workloads, &self.seeds)
        };
        prepare_tools(lab, workloads, progress)?;
        let runs = lab.execute(&plan, &|event| progress.event(&event));
        // A machine that cannot return to its own kernel is an error, but not the loss of what was
        // measured.
        let closed = lab.close();
        let runs = runs?.concat();
        closed?;
        let Some(build) = builds.pop() else {
            unreachable!("one name gives one build")
        };
        Ok((build, runs))
    }
}
