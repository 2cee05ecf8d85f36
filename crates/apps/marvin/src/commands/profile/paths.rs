//! `marvin profile --path`: where the executed instructions of two kernels part.

use std::collections::BTreeMap;

use lab::{Lab, Measurement};
use model::{
    Availability, Build, ExecutedPath, PathInstruction, Profile, Run, SourceLocation, Workload,
};
use profile::paths::{Iteration, Next, Parted, PathDifference, document, json};

use super::{ProfileArguments, kernel_words};
use crate::exit::{Exit, WrongInput};
use crate::measure::{CountOptions, CountedKernels, count_kernels, kernel_titles, machine_summary};
use crate::session::{Format, Progress, Session};

/// The seed whose runs are followed.
const SEED: u64 = 1;

pub(super) fn profile(session: &Session, command: &ProfileArguments) -> anyhow::Result<Exit> {
    refuse_others(command)?;
    let names = command.kernel_names()?;
    let answer = session.answer(command.output.as_deref())?;
    let progress = session.progress();
    let wanted = CountOptions {
        seeds: SEED,
        calls: false,
        model: None,
    };
    let counted = count_kernels(session, &command.measure, &names, &wanted, &progress)?;
    let CountedKernels {
        lab,
        builds,
        runs,
        workloads,
        mut missing,
        ..
    } = counted;
    let machine = machine_summary(&lab, &workloads)?;
    let mut differences = Vec::new();
    for workload in &workloads {
        match follow(&lab, &builds, &runs, workload, &progress)? {
            Availability::Available(difference) => differences.push(difference),
            Availability::Unavailable(why) => missing.push((workload.name.to_string(), why)),
        }
    }
    progress.end();
    let lines = lines(&lab, &builds, &differences);
    let line_of = |side: usize, instruction: &PathInstruction| {
        let lines: &BTreeMap<u64, SourceLocation> = lines.get(side)?;
        lines.get(&instruction.address).cloned()
    };
    let [base, new] = kernel_titles(&builds);
    let arguments = kernel_words(command, &builds)
        .into_iter()
        .chain(["--path".to_owned()])
        .chain(command.measure.program.tail());
    let parted = Parted {
        base,
        new,
        machine,
        differences,
        missing,
        command: lab
            .machine()
            .exact_cpu()
            .repeat(arguments.collect::<Vec<_>>().join(" ")),
        places_max: command.lines,
    };
    let text = match command.format {
        Format::Text => document(&parted, &line_of).text(&answer.styles()),
        Format::Markdown => document(&parted, &line_of).markdown(),
        Format::Html => document(&parted, &line_of).html()?,
        Format::Json => json(&parted, &line_of)?,
    };
    answer.write(&text)?;
    Ok(if parted.differences.is_empty() {
        Exit::Subject
    } else {
        Exit::Fine
    })
}

fn refuse_others(command: &ProfileArguments) -> anyhow::Result<()> {
    if command.seeds.given().is_some_and(|seeds| seeds > 1) {
        return Err(WrongInput(
            "--path follows one iteration of one seed: leave out --seeds".to_owned(),
        )
        .into());
    }
    Ok(())
}

/// Follows an iteration of a workload on both kernels.
fn follow(
    lab: &Lab,
    builds: &[Build],
    runs: &[Vec<Run>],
    workload: &Workload,
    progress: &Progress,
) -> anyhow::Result<Availability<PathDifference>> {
    let mut profiles: Vec<Profile> = Vec::new();
    for runs in runs {
        let mut of_seed = runs.iter().filter(|run| run.seed == SEED);
        let measured = of_seed.find(|run| {
            let mut results = run.results.iter();
            results.any(|result| result.workload == *workload.name)
        });
        if let Some(run) = measured {
            profiles.extend(lab.profile(&run.id, &workload.name)?);
        }
    }
    let [base, new] = profiles.as_slice() else {
        return Ok(Availability::Unavailable(
            "it was not measured on both kernels".to_owned(),
        ));
    };
    let Some(iteration) = Iteration::nearest(&workload.name, [base, new], SEED) else {
        return Ok(Availability::Unavailable(
            "the kernels have other iterations".to_owned(),
        ));
    };
    progress.again("following the instructions of", builds.len());
    let mut paths: Vec<ExecutedPath> = Vec::new();
    for (build, stored) in builds.iter().zip([base, new]) {
        let measurement = Measurement {
            build,
            workload,
            replicate: SEED,
        };
        match lab.follow_path(measurement, stored, iteration.number.0 as u64)? {
            Availability::Available(path) => paths.push(path),
            Availability::Unavailable(why) => {
                return Ok(Availability::Unavailable(format!("{}: {why}", build.name)));
            }
        }
        progress.one_more(&format!("{} {}", build.version, workload.name));
    }
    let [base, new] = paths.as_slice() else {
        return Ok(Availability::Unavailable("no path".to_owned()));
    };
    Ok(PathDifference::new(iteration, [base, new])
        .map_err(|error| error.to_string())
        .into())
}

/// Returns the source lines of what is shown, on each side.
fn lines(
    lab: &Lab,
    builds: &[Build],
    differences: &[PathDifference],
) -> Vec<BTreeMap<u64, SourceLocation>> {
    let mut addresses = [Vec::new(), Vec::new()];
    for divergence in differences.iter().flat_map(|one| &one.divergences) {
        for (side, of_side) in addresses.iter_mut().enumerate() {
            let behind = divergence.behind.as_ref();
            let point = behind.and_then(|point| point.sides[side].as_ref());
            of_side.extend(point.map(|instruction| instruction.address));
            for next in [&divergence.next[side], &divergence.meet[side]] {
                if let Next::Instruction(instruction) = next {
                    of_side.push(instruction.address);
                }
            }
        }
    }
    let sides = builds.iter().zip(&addresses);
    sides
        .map(|(build, addresses)| lab.source_lines(build, addresses))
        .collect()
}
