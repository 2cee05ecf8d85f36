//! `marvin run`: runs a suite on one kernel.

use compare::render::Shown;
use lab::{Lab, Plan, Sampled, Wanted};
use model::{Build, BuildId, KernelName, Outcome};

use super::measure::{
    Chosen, builds, choose_workloads, kernel_name, named_machines, open_on, plan, prepare,
    replicates,
};
use super::threads::{check_threads, on_machine};
use crate::answer::Answer;
use crate::cli::{Arguments, Measure, Run};
use crate::exit::Exit;
use crate::progress::Progress;

pub(crate) fn run(arguments: &Arguments, command: &Run) -> anyhow::Result<Exit> {
    let chosen = choose_workloads(arguments, &command.measure)?;
    let name = kernel_name(&command.kernel)?;
    let answer = Answer::open(None)?;
    let mut texts = Vec::new();
    let mut failed = false;
    let machines = named_machines(arguments, &command.on)?;
    check_threads(&command.tasks, &chosen, &machines)?;
    for (_, wanted) in machines {
        let chosen = on_machine(&command.tasks, &command.measure, &chosen, &wanted);
        let (runs, shown) = run_on(wanted, arguments, command, &chosen, &name)?;
        failed |= runs
            .iter()
            .flat_map(|run| &run.results)
            .any(|r| matches!(r.outcome, Outcome::Failed(_)));
        texts.extend(shown);
    }
    answer.write(texts.join("\n"))?;
    Ok(if failed { Exit::Subject } else { Exit::Fine })
}

/// Runs the suite on one machine; returns the runs, and each as text.
fn run_on(
    wanted: Wanted,
    arguments: &Arguments,
    command: &Run,
    chosen: &Chosen,
    name: &KernelName,
) -> anyhow::Result<(Vec<model::Run>, Vec<String>)> {
    let lab = open_on(wanted, arguments, &command.measure, chosen.tools.clone())?;
    let progress = Progress::new(arguments.quiet);
    let sampled = if command.sample {
        Sampled::Yes
    } else {
        Sampled::No
    };
    let seeds = match command.part.seed {
        Some(seed) => vec![seed],
        None => replicates(lab.machine(), command.seeds, command.on.noisy.boots()),
    };
    let build = command
        .part
        .build
        .as_deref()
        .map(BuildId::from_hex)
        .transpose()?;
    let whole = Whole {
        measure: &command.measure,
        chosen,
        build,
        seeds,
        sampled,
    };
    let (build, runs) = whole.measure(&lab, name, &progress)?;
    let machines = lab.machines(&chosen.workloads)?;
    progress.end();
    let styles = Answer::open(None)?.styles(arguments.color);
    let mut texts = Vec::new();
    for run in &runs {
        let machine = machines
            .iter()
            .find(|machine| machine.id == run.machine)
            .unwrap_or(lab.machine());
        let declared = &chosen.tools.suite().workloads;
        let shown = Shown {
            run,
            build: &build,
            machine,
            declared,
            dumps: &lab.dumps(&run.id)?,
        };
        texts.push(compare::render::run(&shown, &styles));
    }
    texts.extend(compare::scaling::table(
        &build,
        lab.machine(),
        &runs.iter().collect::<Vec<_>>(),
        &styles,
    ));
    Ok((runs, texts))
}

/// Everything to measure of one kernel.
pub(crate) struct Whole<'a> {
    pub(crate) measure: &'a Measure,
    pub(crate) chosen: &'a Chosen,
    /// The build that another host has shared under the name; `None` to find it by its name.
    pub(crate) build: Option<BuildId>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) sampled: Sampled,
}

impl Whole<'_> {
    /// Measures it on a lab's machine, and leaves the machine as it was.
    pub(crate) fn measure(
        &self,
        lab: &Lab,
        name: &KernelName,
        progress: &Progress,
    ) -> anyhow::Result<(Build, Vec<model::Run>)> {
        let Chosen {
            suite, workloads, ..
        } = self.chosen;
        let mut builds = match &self.build {
            Some(id) => vec![lab.fetch(id, name, &|step| progress.step(&name.to_string(), &step))?],
            None => builds(lab, std::slice::from_ref(name), progress)?,
        };
        let plan = Plan {
            sampled: self.sampled,
            ..plan(self.measure, &builds, suite, workloads, &self.seeds)
        };
        prepare(lab, workloads, progress)?;
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
