//! `marvin run`: one kernel through a suite.

use model::Outcome;
use report::render::Shown;

use super::measure::{build, kernel_name, open, plan, suite, workloads};
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
    let builds = [build(&lab, &name, &progress)?];
    let [build] = &builds;
    let seeds: Vec<u64> = (1..=command.seeds).collect();
    let plan = plan(measure, (&builds, suite), &workloads, &seeds);
    let machines = lab.machines(&workloads)?;
    let runs = lab.carry_out(&plan, &|event| progress.event(&event))?.concat();
    progress.end();
    let answer = Answer::open(None)?;
    let styles = answer.styles(arguments.color);
    let mut texts = Vec::new();
    for run in &runs {
        let machine = machines.iter().find(|machine| machine.id == run.machine).unwrap_or(lab.machine());
        let shown = Shown { run, build, machine, dumps: &lab.dumps(&run.id)? };
        texts.push(report::render::run(&shown, &styles));
    }
    answer.write(texts.join("\n"))?;
    let failed = runs.iter().flat_map(|run| &run.results).any(|r| matches!(r.outcome, Outcome::Failed(_)));
    Ok(if failed { Exit::Subject } else { Exit::Fine })
}
