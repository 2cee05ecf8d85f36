//! `marvin run`: one kernel through a suite.

use lab::Plan;
use model::Outcome;
use report::render::Shown;

use super::measure::{build, kernel_name, machines, open, reuse, suite, workloads};
use crate::answer::Answer;
use crate::cli::{Arguments, Run};
use crate::exit::Exit;
use crate::progress::Progress;

pub(crate) fn run(arguments: &Arguments, command: &Run) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    let suite = suite(&measure.suite)?;
    let workloads = workloads(suite, &measure.workload)?;
    let name = kernel_name(&command.kernel)?;
    let lab = open(arguments, measure)?;
    let progress = Progress::new(arguments.quiet);
    let build = build(&lab, &name, &progress)?;
    let plan = Plan {
        sides: vec![&build],
        suite,
        workloads,
        seeds: (1..=command.seeds).collect(),
        machines: machines(measure),
        reuse: reuse(measure),
    };
    let runs = lab.carry_out(&plan, &|event| progress.event(&event))?.concat();
    progress.end();
    let answer = Answer::open(None)?;
    let styles = answer.styles(arguments.color);
    let texts: Vec<String> = runs
        .iter()
        .map(|run| report::render::run(&Shown { run, build: &build, machine: lab.machine() }, &styles))
        .collect();
    answer.write(texts.join("\n"))?;
    let failed = runs.iter().flat_map(|run| &run.results).any(|r| matches!(r.outcome, Outcome::Failed(_)));
    Ok(if failed { Exit::Subject } else { Exit::Fine })
}
