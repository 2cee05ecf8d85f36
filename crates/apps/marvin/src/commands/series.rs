//! `marvin series`: compares each commit of a series with its parent, in one table.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use compare::{Machines, Question, Side};
use history::commit_table::{CommitCell, CommitRow, State, table};
use kernel::{BuildCache, KernelError, SourceError, Sources, Widened};
use lab::bisection::short;
use lab::{Lab, LabError};
use model::{Build, KernelName, Verdict};
use store::Location;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{open_exact_lab_with, plan_runs, prepare_tools};
use crate::options::{MeasureOptions, SeedOptions, margin};
use crate::select::{ChosenWorkloads, choose_workloads_of, measured_sources};
use crate::session::{Progress, Session};

const SERIES_EXAMPLES: &str = "Examples:
  marvin series origin/master..HEAD --tree linux
  marvin series v6.12^..v6.12 --tree linux --workload fault,fork";

/// `marvin series`.
#[derive(Debug, Args)]
#[command(after_help = SERIES_EXAMPLES)]
pub(crate) struct SeriesArguments {
    /// Commits OLDER..NEWER, along first parents; A^..B includes A
    #[arg(value_name = "RANGE", add = completion::revision())]
    pub(crate) range: String,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Threshold in percent: smaller differences count as same [default: that of the metric; 1 for
    /// suite micro]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Write the table to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Limit on commits of a series.
const COMMITS_MAX: usize = 500;

/// Seeds of each commit by default.
const SEEDS: u64 = 2;

pub(crate) fn series(session: &Session, command: &SeriesArguments) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    // A series is about anything: its rows reach what configs add, too.
    let suite = measure.suite.as_deref().unwrap_or(model::PATHS.name);
    let chosen = choose_workloads_of(session, measure, suite, &ends_of(&command.range))?;
    let settings = measured_sources(session, measure, &chosen.tools)?;
    if settings.tree.is_none() {
        return Err(WrongInput(
            "series needs a tree: name its directory with --tree FOLDER".into(),
        )
        .into());
    }
    let answer = session.answer(command.output.as_deref())?;
    let mut cache = BuildCache::open(session.home()?, session.archives()?)?;
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
    let lab = open_exact_lab_with(session, measure, chosen.tools.clone())?;
    let progress = session.progress();
    let (sources, widened) = sources.widened(&older, &newer)?;
    notify_widened(&widened, &progress);
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
        prepare_tools(&lab, &chosen.workloads, &progress)?;
        let twins = session.store_location()?;
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

/// Says which options the series needed, and which of them the kernels do not get.
fn notify_widened(widened: &Widened, progress: &Progress) {
    if !widened.switched_on.is_empty() {
        progress.line(&format!(
            "switched on, as the series changes code that needs it: {}",
            widened.switched_on.join(", ")
        ));
    }
    if !widened.left_off.is_empty() {
        progress.line(&format!(
            "stays off, and code of the series needs it: {}; --config +OPTION=y adds what these depend on",
            widened.left_off.join(", ")
        ));
    }
}

/// Returns the ends of a range as kernels, as far as it is one; opening the tree says what is wrong.
fn ends_of(range: &str) -> Vec<KernelName> {
    let Some((older, newer)) = range.split_once("..") else {
        return Vec::new();
    };
    let newer = if newer.is_empty() { "HEAD" } else { newer };
    [older, newer]
        .map(|revision| KernelName::Git(revision.to_owned()))
        .to_vec()
}

/// Builds a commit; a failed build gets a row of its own. `builds` has the builds of earlier
/// commits.
fn built(
    sources: &Sources,
    commit: &str,
    builds: &[Build],
    progress: &Progress,
) -> anyhow::Result<(CommitRow, Option<Build>)> {
    let name = short(commit);
    let subject = sources.headline(commit)?.subject;
    let row = |state| CommitRow {
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
    command: &SeriesArguments,
    builds: &[Build],
    chosen: &ChosenWorkloads,
    rows: &mut [CommitRow],
    twins: &Location,
    progress: &Progress,
) -> anyhow::Result<()> {
    let ChosenWorkloads {
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
    let seeds: Vec<u64> = (1..=command.seeds.count(SEEDS)).collect();
    let plan = plan_runs(&command.measure, &images, suite, workloads, &seeds);
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
        let (before, base) = side(&pair[0])?;
        let (after, new) = side(&pair[1])?;
        if before != after {
            let mut comparison = compare::compare(&base, &[new], &question)?;
            lab::doubt_by_twins(twins.clone(), &mut comparison)?;
            row.state = State::Compared(comparison.rows.iter().map(cell).collect());
        }
    }
    Ok(())
}

fn cell(row: &compare::ComparisonRow) -> CommitCell {
    let percent = row.cells[0].compared.difference_percent.unwrap_or(0.0);
    match &row.cells[0].compared.verdict {
        Verdict::Same => CommitCell::Same,
        Verdict::Better => CommitCell::Better(percent),
        Verdict::Worse => CommitCell::Worse(percent),
        Verdict::Unclear(_) => CommitCell::Unclear,
    }
}

fn conclusion(rows: &[CommitRow]) -> Exit {
    let mut cells = rows.iter().flat_map(|row| match &row.state {
        State::Compared(cells) => cells.as_slice(),
        State::Base | State::Equal | State::Failed(_) => &[],
    });
    if rows.iter().any(|row| matches!(row.state, State::Failed(_))) {
        Exit::Subject
    } else if cells
        .clone()
        .any(|cell| matches!(cell, CommitCell::Worse(_)))
    {
        Exit::Worse
    } else if cells.any(|cell| *cell == CommitCell::Unclear)
        || rows.iter().any(|row| !row.not_compiled.is_empty())
    {
        Exit::Unclear
    } else {
        Exit::Fine
    }
}
