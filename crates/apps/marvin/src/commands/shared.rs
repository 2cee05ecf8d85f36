//! `marvin profile` on the exact machine with several processors: which lines of memory both
//! kernels move between them.

use std::sync::Arc;

use lab::{Lab, Reuse, Wanted};
use model::{Build, CONTENTION, KernelName, MICRO, Run, Suite};
use profile::transfers::{Shared, SharingDifference, document, json};

use super::measure::{builds, kernel_name, open_on, plan, suite, workloads};
use super::profile::{as_sides, of_both, titles, words};
use crate::answer::Answer;
use crate::cli::{Arguments, Format, Measure, Profile};
use crate::exit::{Exit, WrongInput};
use crate::progress::Progress;

pub(crate) fn profile(
    arguments: &Arguments,
    command: &Profile,
    wanted: &Wanted,
) -> anyhow::Result<Exit> {
    let counted_only = [
        (command.model.is_some(), "--model"),
        (command.no_calls, "--no-calls"),
        (command.folded.is_some(), "--folded"),
        (command.pprof.is_some(), "--pprof"),
    ];
    if let Some((_, option)) = counted_only.into_iter().find(|(given, _)| *given) {
        return Err(WrongInput(format!(
            "{option} needs --on exact: exact-smp follows lines, not calls"
        ))
        .into());
    }
    let names = [kernel_name(&command.base)?, kernel_name(&command.new)?];
    let answer = Answer::open(command.output.as_deref())?;
    let seeds: Vec<u64> = (1..=command.seed_count()).collect();
    let Followed {
        lab,
        builds,
        differences,
        missing,
        ..
    } = follow(arguments, &command.measure, &names, &seeds, wanted)?;
    let [base, new] = titles(&builds);
    let words = words(command, &builds)
        .into_iter()
        .chain(command.on.words(false));
    let command_line = words.collect::<Vec<_>>().join(" ");
    let machine = lab.machine().summary.clone();
    let functions_max = command.lines;
    let shared = Shared {
        base,
        new,
        machine,
        seeds,
        differences,
        missing,
        command: command_line,
        functions_max,
    };
    let text = match command.format {
        Format::Text => document(&shared).text(&answer.styles(arguments.color)),
        Format::Markdown => document(&shared).markdown(),
        Format::Html => document(&shared).html()?,
        Format::Json => json(&shared)?,
    };
    answer.write(&text)?;
    Ok(if shared.differences.is_empty() {
        Exit::Subject
    } else {
        Exit::Fine
    })
}

/// Two kernels whose shared lines were followed.
pub(super) struct Followed {
    pub(super) lab: Lab,
    pub(super) builds: Vec<Build>,
    pub(super) runs: Vec<Vec<Run>>,
    pub(super) differences: Vec<SharingDifference>,
    /// Workloads without one, with the reason.
    pub(super) missing: Vec<(String, String)>,
}

/// Measures what is missing, and compares the lines of both kernels.
pub(super) fn follow(
    arguments: &Arguments,
    measure: &Measure,
    names: &[KernelName],
    seeds: &[u64],
    wanted: &Wanted,
) -> anyhow::Result<Followed> {
    let suite = suite_of(&measure.suite)?;
    let workloads = workloads(suite, &measure.workload)?;
    let lab = open_on(wanted.clone(), arguments, measure, lab::Tools::default())?;
    let progress = Progress::new(arguments.quiet);
    let builds = builds(&lab, names, &progress)?;
    let mut plan = plan(measure, &builds, suite, &workloads, seeds);
    if matches!(builds.as_slice(), [base, new] if base.id == new.id) {
        // Stored runs would be those of both sides.
        plan.reuse = Reuse::Nothing;
    }
    let runs = as_sides(lab.execute(&plan, &|event| progress.event(&event))?);
    let builds = as_sides(builds);
    progress.end();
    let (mut differences, mut missing) = (Vec::new(), Vec::new());
    for workload in workloads {
        let name = &*workload.name;
        match difference(&lab, &runs, name)? {
            Ok(difference) => differences.push(difference),
            Err(why) => missing.push((name.to_owned(), why)),
        }
    }
    Ok(Followed {
        lab,
        builds,
        runs,
        differences,
        missing,
    })
}

/// Returns a suite; the one that is chosen without a word is for one processor.
pub(super) fn suite_of(name: &str) -> anyhow::Result<&'static Arc<Suite>> {
    if name == MICRO.name {
        Ok(&CONTENTION)
    } else {
        suite(name)
    }
}

/// Returns the difference of a workload over the runs of both kernels, or why there is none.
pub(super) fn difference(
    lab: &Lab,
    runs: &[Vec<Run>],
    workload: &str,
) -> anyhow::Result<Result<SharingDifference, String>> {
    let lost = "its lines were not recorded; --force measures again";
    let sides = of_both(&|run| Ok(lab.sharing(run, workload)?), runs, workload, lost)?;
    Ok(sides.and_then(|[base, new]| {
        SharingDifference::new(workload, &base, &new)
            .ok_or_else(|| "it was not measured on both kernels".into())
    }))
}
