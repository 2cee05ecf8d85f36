//! `marvin series`: compares each commit of a series with its parent, in one table.

use anyhow::Context;
use compare::{Machines, Question, Side};
use kernel::{BuildCache, KernelError, SourceError, Sources};
use lab::{Lab, LabError};
use model::{Build, Verdict};
use store::Location;

use super::measure::{Chosen, choose_workloads, open_with, plan, prepare};
use super::tree::settings;
use crate::answer::Answer;
use crate::cli::{Arguments, Series};
use crate::exit::{Exit, WrongInput};
use crate::home::{home, store};
use crate::progress::Progress;
use history::commit_table::{Cell, Row, State, table};
use lab::bisection::short;

/// Limit on commits of a series.
const COMMITS_MAX: usize = 500;

pub(crate) fn series(arguments: &Arguments, command: &Series) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    let chosen = choose_workloads(arguments, measure)?;
    let settings = settings(arguments, &measure.sources)?;
    if settings.tree.is_none() {
        return Err(WrongInput(
            "series needs a tree: name its directory with --tree FOLDER".into(),
        )
        .into());
    }
    let answer = Answer::open(command.output.as_deref())?;
    let mut cache = BuildCache::open(&home(arguments.home.as_deref())?)?;
    cache.set_sources(settings);
    let sources = Sources::open(&cache)?;
    let (older, newer) = sources.repository().range(&command.range)?;
    let history = sources.repository().history(&older, &newer)?;
    let commits: Vec<String> = history
        .trunk()
        .iter()
        .map(|place| history.id(place.commit).to_owned())
        .collect();
    if commits.len() > COMMITS_MAX {
        let text = format!(
            "{} has {} commits; a series has at most {COMMITS_MAX}",
            command.range,
            commits.len()
        );
        return Err(WrongInput(text).into());
    }
    let lab = open_with(arguments, measure, chosen.tools.clone())?;
    let progress = Progress::new(arguments.quiet);
    let mut rows = Vec::new();
    let mut builds = Vec::new();
    let mut before: Option<&String> = None;
    for commit in std::iter::once(&older).chain(&commits) {
        let (mut row, build) = built(&sources, commit, &builds, &progress)?;
        if build.is_some() {
            if let Some(before) = before {
                let not_compiled = sources.not_compiled(before, commit)?;
                row.not_compiled = not_compiled.iter().map(ToString::to_string).collect();
            }
            before = Some(commit);
        }
        rows.push(row);
        builds.extend(build);
    }
    if !builds.is_empty() {
        prepare(&lab, &chosen.workloads, &progress)?;
        let twins = store(arguments)?;
        fill(
            &lab, command, &builds, &chosen, &mut rows, &twins, &progress,
        )?;
    }
    progress.end();
    let names: Vec<&str> = chosen
        .workloads
        .iter()
        .map(|workload| &*workload.name)
        .collect();
    let plural = if commits.len() == 1 { "" } else { "s" };
    let title = format!(
        "{}..{}, {} commit{plural}",
        short(&older),
        short(&newer),
        commits.len()
    );
    answer.write(table(&title, &rows, &names))?;
    Ok(conclusion(&rows))
}

/// Builds a commit; a failed build gets a row of its own. `builds` has the builds of earlier
/// commits.
fn built(
    sources: &Sources,
    commit: &str,
    builds: &[Build],
    progress: &Progress,
) -> anyhow::Result<(Row, Option<Build>)> {
    let name = short(commit);
    let subject = sources.headline(commit)?.subject;
    let row = |state| Row {
        commit: name.clone(),
        subject: subject.clone(),
        state,
        not_compiled: Vec::new(),
    };
    match sources.build(commit, &|step| progress.step(&name, &step)) {
        Ok(build) => {
            let state = match builds.last() {
                None => State::Base,
                Some(before) if before.id == build.id => State::Equal,
                Some(_) => State::Compared(Vec::new()),
            };
            Ok((row(state), Some(build)))
        }
        Err(KernelError::Source(SourceError::DoesNotBuild { first_error, .. })) => {
            Ok((row(State::Failed(first_error)), None))
        }
        Err(KernelError::Image { fault, .. }) => Ok((row(State::Failed(fault.to_string())), None)),
        Err(error) => Err(error).with_context(|| format!("cannot get the kernel git:{name}")),
    }
}

/// Measures all distinct images in one plan, and compares each with the one before it and with
/// twins in a store.
fn fill(
    lab: &Lab,
    command: &Series,
    builds: &[Build],
    chosen: &Chosen,
    rows: &mut [Row],
    twins: &Location,
    progress: &Progress,
) -> anyhow::Result<()> {
    let Chosen {
        suite, workloads, ..
    } = chosen;
    let mut images: Vec<Build> = Vec::new();
    for build in builds {
        if images.iter().all(|known| known.id != build.id) {
            images.push(build.clone());
        }
    }
    if images.len() < 2 {
        return Ok(());
    }
    let seeds: Vec<u64> = (1..=command.seeds).collect();
    let plan = plan(&command.measure, &images, suite, workloads, &seeds);
    let runs = lab.execute(&plan, &|event| progress.event(&event))?;
    let machines = lab.machines(workloads)?;
    let question = Question {
        scatters: std::collections::BTreeMap::new(),
        looks_max: None,
        suite: suite.name.to_owned(),
        workloads: workloads.clone(),
        seeds,
        margin_percent: command.margin,
        machines: Machines::Equal,
        command: String::new(),
        created_unix: None,
    };
    let side = |build: &Build| {
        let place = images
            .iter()
            .position(|known| known.id == build.id)
            .ok_or(LabError::Empty("builds"))?;
        let also = machines[1..].iter().collect();
        Ok::<_, LabError>((
            place,
            Side {
                build: &images[place],
                machine: &machines[0],
                also,
                runs: runs[place].iter().collect(),
            },
        ))
    };
    let mut built = rows
        .iter_mut()
        .filter(|row| !matches!(row.state, State::Failed(_)));
    built.next();
    for (row, pair) in built.zip(builds.windows(2)) {
        let ((before, base), (after, new)) = (side(&pair[0])?, side(&pair[1])?);
        if before != after {
            let mut comparison = compare::compare(&base, &[new], &question)?;
            lab::doubt_by_twins(twins.clone(), &mut comparison)?;
            row.state = State::Compared(comparison.rows.iter().map(cell).collect());
        }
    }
    Ok(())
}

fn cell(row: &compare::Row) -> Cell {
    let percent = row.cells[0].compared.difference_percent.unwrap_or(0.0);
    match &row.cells[0].compared.verdict {
        Verdict::Same => Cell::Same,
        Verdict::Better => Cell::Better(percent),
        Verdict::Worse => Cell::Worse(percent),
        Verdict::Unclear(_) => Cell::Unclear,
    }
}

fn conclusion(rows: &[Row]) -> Exit {
    let cells = || {
        rows.iter().flat_map(|row| match &row.state {
            State::Compared(cells) => cells.as_slice(),
            State::Base | State::Equal | State::Failed(_) => &[],
        })
    };
    if rows.iter().any(|row| matches!(row.state, State::Failed(_))) {
        Exit::Subject
    } else if cells().any(|cell| matches!(cell, Cell::Worse(_))) {
        Exit::Worse
    } else if cells().any(|cell| *cell == Cell::Unclear)
        || rows.iter().any(|row| !row.not_compiled.is_empty())
    {
        Exit::Unclear
    } else {
        Exit::Fine
    }
}
