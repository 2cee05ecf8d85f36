//! `marvin run`: runs a suite on one kernel.

use std::sync::Arc;

use model::Outcome;
use report::render::Shown;

use super::measure::{Chosen, builds, choose_workloads, kernel_name, open_with, plan, prepare};
use crate::answer::Answer;
use crate::cli::{Arguments, Run};
use crate::exit::Exit;
use crate::progress::Progress;

pub(crate) fn run(arguments: &Arguments, command: &Run) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    let Chosen { suite, workloads, tools } = choose_workloads(arguments, measure)?;
    let name = kernel_name(&command.kernel)?;
    let of_tools = Arc::clone(tools.suite());
    let lab = open_with(arguments, measure, tools)?;
    let progress = Progress::new(arguments.quiet);
    let builds = builds(&lab, std::slice::from_ref(&name), &progress)?;
    let [build] = &builds[..] else { unreachable!("one name gives one build") };
    let seeds: Vec<u64> = (1..=command.seeds).collect();
    let plan = plan(measure, &builds, &suite, &workloads, &seeds);
    prepare(&lab, &workloads, &progress)?;
    let machines = lab.machines(&workloads)?;
    let runs = lab.execute(&plan, &|event| progress.event(&event))?.concat();
    progress.end();
    let answer = Answer::open(None)?;
    let styles = answer.styles(arguments.color);
    let mut texts = Vec::new();
    for run in &runs {
        let machine = machines.iter().find(|machine| machine.id == run.machine).unwrap_or(lab.machine());
        let shown = Shown { run, build, machine, declared: &of_tools.workloads, dumps: &lab.dumps(&run.id)? };
        texts.push(report::render::run(&shown, &styles));
    }
    answer.write(texts.join("\n"))?;
    let failed = runs.iter().flat_map(|run| &run.results).any(|r| matches!(r.outcome, Outcome::Failed(_)));
    Ok(if failed { Exit::Subject } else { Exit::Fine })
}
