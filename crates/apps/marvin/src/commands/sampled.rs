//! `marvin profile` on machines that measure time: samples both kernels in several boots, and
//! compares the functions' costs. Kernels of this host cannot boot here at will: their profiles
//! were stored by `marvin run --sample`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use lab::{Event, Reuse, Sampled, Wanted};
use model::{Build, KernelName, MachineId, Outcome, Run, RunId, SampledProfile, Workload};
use profile::ledger::Ledger;
use profile::sampled::{Counted, SampledDifference, SampledProfiles, document, json};
use store::{RunSummary, Store};

use super::measure::{builds, kernel_name, open_on, plan, replicates, suite, workloads};
use super::profile::{as_sides, ledger_of, titles, words};
use super::stored::{Choice, Named};
use super::tools::known_tools;
use crate::answer::Answer;
use crate::cli::{Arguments, Format, Measure, Profile};
use crate::exit::{Exit, WrongInput};
use crate::progress::Progress;

/// The profiles of a workload: of the base's boots and of the new kernel's, or why there are none.
pub(super) type Found = Result<[Vec<SampledProfile>; 2], String>;

/// What both sides are, and the profiles of each workload.
pub(super) struct Taken {
    pub(super) builds: Vec<Build>,
    pub(super) machine: String,
    pub(super) found: Vec<(String, Found)>,
    pub(super) runs: Vec<Vec<Run>>,
}

pub(crate) fn profile(
    arguments: &Arguments,
    command: &Profile,
    wanted: &Wanted,
) -> anyhow::Result<Exit> {
    let exact_only = [
        (command.model.is_some(), "--model"),
        (command.seeds.is_some(), "--seeds"),
        (command.no_calls, "--no-calls"),
    ];
    if let Some((_, option)) = exact_only.into_iter().find(|(given, _)| *given) {
        let text = format!("{option} needs --on exact: other machines sample, and have --boots");
        return Err(WrongInput(text).into());
    }
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
    let words = [&command.base, &command.new];
    let is_running = |word: &&String| word.parse() == Ok(KernelName::Running);
    let Taken {
        builds,
        machine,
        found,
        ..
    } = match wanted {
        Wanted::Local if !words.iter().all(is_running) => stored(arguments, command)?,
        wanted => {
            let names = [kernel_name(&command.base)?, kernel_name(&command.new)?];
            measure(
                arguments,
                &command.measure,
                command.on.noisy.boots(),
                &names,
                wanted,
            )?
        }
    };
    let (mut differences, mut missing) = (Vec::new(), Vec::new());
    let store = Store::open_read_only(crate::home::store(arguments)?)?;
    for (workload, found) in found {
        match found.and_then(|[base, new]| SampledDifference::new(&workload, &base, &new)) {
            Ok(difference) => {
                let counted = counted(&store, &builds, &workload)?;
                differences.push(SampledDifference {
                    counted,
                    ..difference
                });
            }
            Err(why) => missing.push((workload, why)),
        }
    }
    let calls: Vec<_> = differences
        .iter()
        .map(|difference| difference.calls.clone())
        .collect();
    if let Some(file) = folded {
        file.write(profile::calls::folded(&calls))?;
    }
    if let Some(file) = pprof {
        file.write_bytes(&profile::calls::pprof(&calls))?;
    }
    let [base, new] = titles(&builds);
    let command_line = reproducer(command, &builds);
    let profiles = SampledProfiles {
        base,
        new,
        machine,
        differences,
        missing,
        command: command_line,
        lines_max: command.lines,
    };
    let document = document(&profiles)?;
    let text = match command.format {
        Format::Text => document.text(&answer.styles(arguments.color)),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => json(&profiles)?,
    };
    answer.write(&text)?;
    Ok(if profiles.differences.is_empty() {
        Exit::Subject
    } else {
        Exit::Fine
    })
}

/// Boots one kernel or two, and measures and samples the workloads in each boot. One kernel is both
/// sides.
pub(super) fn measure(
    arguments: &Arguments,
    measure: &Measure,
    boots: u64,
    names: &[KernelName],
    wanted: &Wanted,
) -> anyhow::Result<Taken> {
    let suite = suite(&measure.suite)?;
    let workloads = workloads(suite, &measure.workload)?;
    let lab = open_on(
        wanted.clone(),
        arguments,
        measure,
        known_tools(arguments, &[])?,
    )?;
    if !lab.machine().capabilities().sampling {
        return Err(WrongInput(format!("{} cannot sample", lab.machine().summary)).into());
    }
    let progress = Progress::new(arguments.quiet);
    let builds = builds(&lab, names, &progress)?;
    let boots = replicates(lab.machine(), 1, boots);
    let mut plan = plan(measure, &builds, suite, &workloads, &boots);
    plan.sampled = Sampled::Yes;
    if matches!(builds.as_slice(), [base, new] if base.id == new.id) {
        // Stored runs would be those of both sides.
        plan.reuse = Reuse::Nothing;
    }
    let refused: Mutex<BTreeMap<String, String>> = Mutex::default();
    let runs = as_sides(lab.execute(&plan, &|event| {
        if let Event::NoProfile {
            workload: Some(workload),
            why,
            ..
        } = &event
        {
            refused
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(workload.clone(), why.clone());
        }
        progress.event(&event);
    })?);
    let builds = as_sides(builds);
    progress.end();
    let refused = refused.into_inner().unwrap_or_else(PoisonError::into_inner);
    let read = |run: &RunId, workload: &Workload| Ok(lab.sampled(run, workload)?);
    let found = profiles(&workloads, &runs, &refused, &read)?;
    Ok(Taken {
        builds,
        machine: lab.machine().summary.clone(),
        found,
        runs,
    })
}

/// Finds the runs of two kernels, each with its samples, in the store.
fn stored(arguments: &Arguments, command: &Profile) -> anyhow::Result<Taken> {
    let store = Store::open_read_only(crate::home::store(arguments)?)?;
    let words = [command.base.clone(), command.new.clone()];
    let choice = Choice {
        suite: None,
        mixed_machines: false,
    };
    let Named { runs: ids, .. } = super::stored::runs(&store, &words, choice)?;
    let runs = ids
        .iter()
        .map(|id| store.run(id))
        .collect::<Result<Vec<_>, _>>()?;
    let first = &runs[0];
    let (base, new): (Vec<Run>, Vec<Run>) = runs
        .iter()
        .cloned()
        .partition(|run| run.build == first.build);
    let Some(other) = new.first() else {
        return Err(WrongInput("both are runs of one kernel: name two".to_owned()).into());
    };
    let builds = vec![store.build(&first.build)?, store.build(&other.build)?];
    let workloads = workloads(suite(&first.suite)?, &command.measure.workload)?;
    let read = |run: &RunId, workload: &Workload| Ok(lab::sampled_profile(&store, run, workload)?);
    let machine = store.machine(&first.machine)?.summary;
    let runs = vec![base, new];
    let found = profiles(&workloads, &runs, &BTreeMap::new(), &read)?;
    Ok(Taken {
        builds,
        machine,
        found,
        runs,
    })
}

/// Collects the profiles of each workload that one of the runs measured.
fn profiles(
    workloads: &[Arc<Workload>],
    runs: &[Vec<Run>],
    refused: &BTreeMap<String, String>,
    read: &dyn Fn(&RunId, &Workload) -> anyhow::Result<Option<SampledProfile>>,
) -> anyhow::Result<Vec<(String, Found)>> {
    let mut all = Vec::new();
    for workload in workloads {
        let mut sides = [Vec::new(), Vec::new()];
        let mut why = refused.get(workload.job_name()).cloned();
        let mut is_measured = false;
        for (side, run) in runs
            .iter()
            .enumerate()
            .flat_map(|(side, runs)| runs.iter().map(move |run| (side, run)))
        {
            let Some(result) = run
                .results
                .iter()
                .find(|result| result.workload == workload.name)
            else {
                continue;
            };
            is_measured = true;
            match &result.outcome {
                Outcome::Completed => sides[side.min(1)].extend(read(&run.id, workload)?),
                Outcome::Unsupported(reason) => {
                    why = why.or(Some(format!("unsupported: {reason}")));
                }
                Outcome::Failed(failure) => why = why.or(Some(failure.reason.to_string())),
            }
        }
        if is_measured {
            let are_there = sides.iter().all(|side| !side.is_empty());
            let missing = || {
                why.unwrap_or_else(|| "one of the kernels was measured without samples".to_owned())
            };
            all.push((
                workload.name.to_string(),
                if are_there { Ok(sides) } else { Err(missing()) },
            ));
        }
    }
    Ok(all)
}

/// Finds what the exact machine counted for both kernels, if that is stored.
fn counted(store: &Store, builds: &[Build], workload: &str) -> anyhow::Result<Option<Counted>> {
    Ok(stored_ledger(store, builds, workload)?.map(|(ledger, _)| Counted::of(&ledger)))
}

/// Finds the ledger of a workload on both kernels, with its runs, if it is stored: of the newest
/// machine that counted both.
pub(super) fn stored_ledger(
    store: &Store,
    builds: &[Build],
    workload: &str,
) -> anyhow::Result<Option<(Ledger, Vec<Vec<Run>>)>> {
    let all = builds
        .iter()
        .map(|build| store.runs_of_build(&build.id))
        .collect::<Result<Vec<_>, _>>()?;
    let mut seen: Vec<&MachineId> = Vec::new();
    for machine in all.iter().flatten().map(|run| &run.machine) {
        if seen.contains(&machine) {
            continue;
        }
        seen.push(machine);
        if !store.machine(machine)?.capabilities().deterministic {
            continue;
        }
        let of_side = |side: &Vec<RunSummary>| -> anyhow::Result<Vec<Run>> {
            let ids = side
                .iter()
                .filter(|run| run.machine == *machine)
                .map(|run| &run.id);
            let runs = ids.map(|id| store.run(id)).collect::<Result<Vec<_>, _>>()?;
            let mut replicates = BTreeSet::new();
            let mut has_it = |run: &Run| {
                run.results.iter().any(|result| result.workload == workload)
                    && replicates.insert(run.seed)
            };
            Ok(runs.into_iter().filter(|run| has_it(run)).collect())
        };
        let runs = all
            .iter()
            .map(of_side)
            .collect::<anyhow::Result<Vec<_>>>()?;
        let read = |run: &RunId| Ok(lab::counted_profile(store, run, workload)?);
        if let Ok(ledger) = ledger_of(&read, &runs, workload)? {
            return Ok(Some((ledger, runs)));
        }
    }
    Ok(None)
}

fn reproducer(command: &Profile, builds: &[Build]) -> String {
    let mut words = words(command, builds);
    words.extend(command.on.words(false));
    words.join(" ")
}
