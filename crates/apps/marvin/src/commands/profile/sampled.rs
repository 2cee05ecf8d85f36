//! `marvin profile` on machines that measure time: samples both kernels in several boots, and
//! compares the functions' costs. Kernels of this host cannot boot here at will: their profiles
//! were stored by `marvin run --sample`.

use std::collections::BTreeMap;

use lab::Wanted;
use model::{Build, KernelName, Run, RunId, Workload};
use profile::sampled::{Counted, SampledDifference, SampledProfiles, document, json};
use store::Store;

use super::{ProfileArguments, kernel_words};
use crate::exit::{Exit, WrongInput};
use crate::measure::{SampledKernels, kernel_titles, profiles, sample_kernels, stored_ledger};
use crate::select::{NamedRuns, RunChoice, find_runs, find_suite, select_workloads};
use crate::session::{Answer, Format, Session};

pub(crate) fn profile(
    session: &Session,
    command: &ProfileArguments,
    wanted: &Wanted,
) -> anyhow::Result<Exit> {
    let exact_only = [
        (command.model.is_some(), "--model"),
        (command.seeds.given().is_some(), "--seeds"),
        (command.no_calls, "--no-calls"),
    ];
    if let Some((_, option)) = exact_only.into_iter().find(|(given, _)| *given) {
        let text = format!("{option} needs --on exact: other machines sample, and have --boots");
        return Err(WrongInput(text).into());
    }
    let answer = session.answer(command.output.as_deref())?;
    let folded = Answer::optional_file("--folded", command.folded.as_deref())?;
    let pprof = Answer::optional_file("--pprof", command.pprof.as_deref())?;
    let firefox = Answer::optional_file("--firefox", command.firefox.as_deref())?;
    let named = [&command.base, &command.new];
    let SampledKernels {
        builds,
        machine,
        found,
        ..
    } = match wanted {
        Wanted::Local
            if !named
                .iter()
                .all(|word| word.parse() == Ok(KernelName::Running)) =>
        {
            stored_samples(session, command)?
        }
        wanted => {
            let names = command.kernel_names()?;
            sample_kernels(
                session,
                &command.measure,
                command.on.noisy.boots(),
                &names,
                wanted,
            )?
        }
    };
    let mut differences = Vec::new();
    let mut missing = Vec::new();
    let store = session.open_store_read_only()?;
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
        file.write(profile::calls::folded(&calls, command.folded_side.into()))?;
    }
    if let Some(file) = pprof {
        file.write_bytes(&profile::calls::pprof(&calls))?;
    }
    let [base, new] = kernel_titles(&builds);
    if let Some(file) = firefox {
        file.write(profile::calls::firefox(&calls, [&base.0, &new.0]).to_string())?;
    }
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
        Format::Text => document.text(&answer.styles()),
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

/// Finds the runs of two kernels, each with its samples, in the store.
fn stored_samples(session: &Session, command: &ProfileArguments) -> anyhow::Result<SampledKernels> {
    let store = session.open_store_read_only()?;
    let named = [command.base.clone(), command.new.clone()];
    let choice = RunChoice {
        suite: None,
        mixed_machines: false,
    };
    let NamedRuns { runs: ids, .. } = find_runs(&store, &named, choice)?;
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
    let workloads = select_workloads(find_suite(&first.suite)?, &command.measure.workload)?;
    let read = |run: &RunId, workload: &Workload| Ok(lab::sampled_profile(&store, run, workload)?);
    let machine = store.machine(&first.machine)?.summary;
    let runs = vec![base, new];
    let found = profiles(&workloads, &runs, &BTreeMap::new(), &read)?;
    Ok(SampledKernels {
        builds,
        machine,
        found,
        runs,
    })
}

/// Finds what the exact machine counted for both kernels, if that is stored.
fn counted(store: &Store, builds: &[Build], workload: &str) -> anyhow::Result<Option<Counted>> {
    Ok(stored_ledger(store, builds, workload)?.map(|(ledger, _)| Counted::from_ledger(&ledger)))
}

fn reproducer(command: &ProfileArguments, builds: &[Build]) -> String {
    let mut arguments = kernel_words(command, builds);
    arguments.extend(command.on.arguments(false));
    arguments.join(" ")
}
