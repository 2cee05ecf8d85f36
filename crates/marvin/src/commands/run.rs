//! `marvin run`: runs a suite on one kernel.

use lab::{Plan, Sampled};
use machine::Wanted;
use model::{KernelName, Outcome};
use report::render::Shown;

use super::measure::{
    Chosen, builds, choose_workloads, kernel_name, named_machines, open_on, plan, prepare, replicates,
};
use super::threads::{check_threads, on_machine};
use crate::answer::Answer;
use crate::cli::{Arguments, Run};
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
        failed |= runs.iter().flat_map(|run| &run.results).any(|r| matches!(r.outcome, Outcome::Failed(_)));
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
    let (measure, Chosen { suite, workloads, tools }) = (&command.measure, chosen);
    let lab = open_on(wanted, arguments, measure, tools.clone())?;
    let progress = Progress::new(arguments.quiet);
    let builds = builds(&lab, std::slice::from_ref(name), &progress)?;
    let [build] = &builds[..] else { unreachable!("one name gives one build") };
    let seeds = replicates(lab.machine(), command.seeds, command.on.boots());
    let sampled = if command.sample { Sampled::Yes } else { Sampled::No };
    let plan = Plan { sampled, ..plan(measure, &builds, suite, workloads, &seeds) };
    prepare(&lab, workloads, &progress)?;
    let machines = lab.machines(workloads)?;
    let runs = lab.execute(&plan, &|event| progress.event(&event));
    let closed = lab.close();
    let runs = runs?.concat();
    closed?;
    progress.end();
    let styles = Answer::open(None)?.styles(arguments.color);
    let mut texts = Vec::new();
    for run in &runs {
        let machine = machines.iter().find(|machine| machine.id == run.machine).unwrap_or(lab.machine());
        let shown = Shown { run, build, machine, declared: &tools.suite().workloads, dumps: &lab.dumps(&run.id)? };
        texts.push(report::render::run(&shown, &styles));
    }
    texts.extend(scaling::table(build, lab.machine(), &runs.iter().collect::<Vec<_>>(), &styles));
    Ok((runs, texts))
}
