//! `marvin profile`: attributes the difference between two kernels to functions.

use std::collections::BTreeSet;
use std::sync::Arc;

use lab::{Lab, Wanted};
use model::{Build, CostModel, KernelName, Outcome, Run, RunId, Workload};
use profile::ledger::{Ledger, Sources};
use profile::render::Profiled;

use super::again::{Followed, Measured, Simulated, follow, simulate};
use super::measure::{builds, kernel_name, machines, named_machines, open, plan, suite, workloads};
use crate::answer::Answer;
use crate::cli::{Arguments, Format, Measure, Profile};
use crate::exit::{Exit, WrongInput};
use crate::progress::Progress;

pub(crate) fn profile(arguments: &Arguments, command: &Profile) -> anyhow::Result<Exit> {
    match named_machines(arguments, &command.on)?.as_slice() {
        [(_, Wanted::Exact)] => counted(arguments, command),
        [(_, wanted @ Wanted::ExactSmp(_))] => super::shared::profile(arguments, command, wanted),
        [(_, wanted)] => super::sampled::profile(arguments, command, wanted),
        _ => Err(WrongInput("a profile shows one machine: give --on one name".to_owned()).into()),
    }
}

/// Counts instructions.
fn counted(arguments: &Arguments, command: &Profile) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    let names = [kernel_name(&command.base)?, kernel_name(&command.new)?];
    let answer = Answer::open(command.output.as_deref())?;
    let file = |option, path: &Option<_>| {
        path.as_deref()
            .map(|path| Answer::file(option, path))
            .transpose()
    };
    let (folded, pprof) = (
        file("--folded", &command.folded)?,
        file("--pprof", &command.pprof)?,
    );
    let progress = Progress::new(arguments.quiet);
    let wanted = Wanting {
        seeds: command.seed_count(),
        calls: !command.no_calls,
        model: command.model.as_ref(),
    };
    let counted = count(arguments, measure, &names, &wanted, &progress)?;
    progress.end();
    let sources = sources(&counted.lab, &counted.builds, &counted.runs)?;
    let Counted {
        lab,
        builds,
        seeds,
        ledgers,
        missing,
        followed,
        simulated,
        ..
    } = counted;
    let Followed {
        calls,
        expanded,
        without,
    } = followed;
    if let Some(file) = folded {
        file.write(profile::calls::folded(&calls))?;
    }
    if let Some(file) = pprof {
        file.write_bytes(&profile::calls::pprof(&calls))?;
    }
    let [base, new] = titles(&builds);
    let profiled = Profiled {
        base,
        new,
        machine: lab.machine().summary.clone(),
        seeds,
        ledgers,
        missing,
        expanded,
        sources,
        calls,
        without_calls: without,
        model: command.model.clone(),
        modelled: simulated.differences,
        without_model: simulated.without,
        command: reproducer(command, &builds),
        lines_max: command.lines,
    };
    let document = profile::render::document(&profiled)?;
    let text = match command.format {
        Format::Text => document.text(&answer.styles(arguments.color)),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => profile::render::json(&profiled)?,
    };
    answer.write(&text)?;
    Ok(if profiled.ledgers.is_empty() {
        Exit::Subject
    } else {
        Exit::Fine
    })
}

/// What to count beside instructions.
pub(super) struct Wanting<'a> {
    /// Seeds whose counts are added up.
    pub(super) seeds: u64,
    /// Whether to follow calls.
    pub(super) calls: bool,
    /// The processor to simulate.
    pub(super) model: Option<&'a CostModel>,
}

/// Two kernels, counted on the exact machine.
pub(super) struct Counted {
    pub(super) lab: Lab,
    pub(super) builds: Vec<Build>,
    pub(super) runs: Vec<Vec<Run>>,
    pub(super) seeds: Vec<u64>,
    pub(super) ledgers: Vec<Ledger>,
    /// Workloads with a ledger.
    pub(super) workloads: Vec<Arc<Workload>>,
    /// Workloads without one, with the reason.
    pub(super) missing: Vec<(String, String)>,
    pub(super) followed: Followed,
    pub(super) simulated: Simulated,
}

/// Returns one kernel as both sides, and two as they are.
pub(super) fn as_sides<T: Clone>(mut kernels: Vec<T>) -> Vec<T> {
    if let [one] = kernels.as_slice() {
        kernels.push(one.clone());
    }
    kernels
}

/// Measures what is missing, and takes everything apart. One kernel is executed once, and is both
/// sides.
pub(super) fn count(
    arguments: &Arguments,
    measure: &Measure,
    names: &[KernelName],
    wanting: &Wanting<'_>,
    progress: &Progress,
) -> anyhow::Result<Counted> {
    let suite = suite(&measure.suite)?;
    let selected = workloads(suite, &measure.workload)?;
    let lab = open(arguments, measure)?;
    let builds = builds(&lab, names, progress)?;
    let seeds: Vec<u64> = (1..=wanting.seeds).collect();
    let plan = plan(measure, &builds, suite, &selected, &seeds);
    let runs = lab.execute(&plan, &|event| progress.event(&event))?;
    let (mut ledgers, mut missing, mut workloads) = (Vec::new(), Vec::new(), Vec::new());
    let both = as_sides(runs.clone());
    for workload in selected {
        match ledger(&lab, &both, &workload.name)? {
            Ok(ledger) => {
                ledgers.push(ledger);
                workloads.push(workload);
            }
            Err(why) => missing.push((workload.name.to_string(), why)),
        }
    }
    let measured = Measured {
        lab: &lab,
        machines: machines(measure),
        builds: &builds,
        runs: &runs,
        workloads: &workloads,
        progress,
    };
    let followed = if wanting.calls {
        follow(measured)?
    } else {
        Followed::default()
    };
    let simulated = wanting
        .model
        .map(|model| simulate(measured, model))
        .transpose()?
        .unwrap_or_default();
    let builds = as_sides(builds);
    Ok(Counted {
        lab,
        builds,
        runs: both,
        seeds,
        ledgers,
        workloads,
        missing,
        followed,
        simulated,
    })
}

/// Returns the titles and origins of both kernels.
pub(crate) fn titles(builds: &[Build]) -> [(String, String); 2] {
    let is_told_by_version = builds[0].version != builds[1].version;
    [&builds[0], &builds[1]].map(|build| {
        let name = build.name.to_string();
        let short = name.rsplit('/').next().unwrap_or_default();
        let title = if is_told_by_version {
            build.version.clone()
        } else {
            short.to_owned()
        };
        (title, build.origin.to_string())
    })
}

/// Returns where the source defines the functions of all profiles.
fn sources(lab: &Lab, builds: &[Build], runs: &[Vec<Run>]) -> anyhow::Result<Sources> {
    let mut places = Vec::new();
    for (build, runs) in builds.iter().zip(runs) {
        let mut symbols = BTreeSet::new();
        for run in runs {
            for result in &run.results {
                let lines = lab
                    .profile(&run.id, &result.workload)?
                    .map(|profile| profile.lines)
                    .unwrap_or_default();
                symbols.extend(lines.into_iter().map(|line| line.symbol));
            }
        }
        places.push(lab.source_places(build, &symbols.iter().map(String::as_str).collect()));
    }
    let [base, new] = places.as_slice() else {
        return Ok(Sources::default());
    };
    Ok(Sources::new(base, new))
}

/// Returns the ledger of a workload over the runs of a baseline and a new kernel, or why there is
/// none.
pub(crate) fn ledger(
    lab: &Lab,
    runs: &[Vec<Run>],
    workload: &str,
) -> anyhow::Result<Result<Ledger, String>> {
    ledger_of(&|run| Ok(lab.profile(run, workload)?), runs, workload)
}

/// The same, with a function that reads the workload's profile in a run.
pub(crate) fn ledger_of(
    read: &dyn Fn(&RunId) -> anyhow::Result<Option<model::Profile>>,
    runs: &[Vec<Run>],
    workload: &str,
) -> anyhow::Result<Result<Ledger, String>> {
    let lost = "its profile was not recorded; --force measures again";
    let sides = of_both(read, runs, workload, lost)?;
    Ok(sides.and_then(|[base, new]| {
        Ledger::new(workload, &base, &new)
            .ok_or_else(|| "it was not measured on both kernels".into())
    }))
}

/// Reads something that runs have of a workload, of both kernels, or says why there is none; `lost`
/// is why a run that completed has none.
pub(super) fn of_both<T>(
    read: &dyn Fn(&RunId) -> anyhow::Result<Option<T>>,
    runs: &[Vec<Run>],
    workload: &str,
    lost: &str,
) -> anyhow::Result<Result<[Vec<T>; 2], String>> {
    let mut sides = [Vec::new(), Vec::new()];
    for (side, runs) in sides.iter_mut().zip(runs) {
        for run in runs {
            let Some(result) = run
                .results
                .iter()
                .find(|result| result.workload == workload)
            else {
                continue;
            };
            match &result.outcome {
                Outcome::Completed => {}
                Outcome::Unsupported(why) => return Ok(Err(format!("unsupported: {why}"))),
                Outcome::Failed(failure) => return Ok(Err(failure.reason.to_string())),
            }
            match read(&run.id)? {
                Some(found) => side.push(found),
                None => return Ok(Err(lost.to_owned())),
            }
        }
    }
    Ok(Ok(sides))
}

/// Returns the words that repeat a profile on any machine: kernels, suite and workloads.
pub(crate) fn words(command: &Profile, builds: &[Build]) -> Vec<String> {
    let mut words = vec!["marvin".to_owned(), "profile".to_owned()];
    words.extend(builds.iter().map(Build::exact_name));
    if command.measure.suite != model::MICRO.name {
        words.extend(["--suite".into(), command.measure.suite.clone()]);
    }
    if !command.measure.workload.is_empty() {
        words.extend(["--workload".into(), command.measure.workload.join(",")]);
    }
    words
}

fn reproducer(command: &Profile, builds: &[Build]) -> String {
    let mut words = words(command, builds);
    if let Some(seeds) = command.seeds {
        words.extend(["--seeds".into(), seeds.to_string()]);
    }
    if let Some(model) = &command.model {
        words.push(format!("--model={}", model.name()));
    }
    if command.no_calls {
        words.push("--no-calls".into());
    }
    words.join(" ")
}
