//! `marvin series`: compares each commit or patch of a series with the one before it, in one table.
//!
//! `input` finds out what the series is, `origins` where differences come from, `lines` which changed
//! lines are executed, `reached` how near workloads come to others; `machines` adds the columns of another machine; `gate` holds it against the budgets of its tree.

mod alone;
pub(crate) mod gate;
mod input;
mod left_out;
mod lines;
mod machines;
mod mailbox;
mod origins;
mod proof;
mod reached;
mod spent;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, ValueEnum};
use compare::{Question, Side};
use history::commit_checks::CommitSource;
use history::commit_formats::SeriesAnswer;
use history::commit_table::{
    ChangedFunction, CommitCell, CommitRow, CommitVerdict, Entered, Reached, SameCode, State, table,
};
use history::hunks_alone::HunksAlone;
use kernel::{BuildCache, FunctionChanges, KernelError, Repository, SourceError, Sources, Widened};
use lab::{ExecutedFunctions, Lab, LabError};
use model::{Build, KernelName, Machine, Run, Verdict, Workload};
use store::Location;

use self::alone::measure_alone;
use self::input::{Entries, Entry, Input, Made};
use self::left_out::Applied;
use self::machines::{Beside, SeriesMachines};
use self::origins::Pair;
use self::proof::{NewProof, ProofOptions, Series};
use self::reached::Near;
use self::spent::Spent;
use crate::commands::compare::side;
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::{open_exact_lab_with, plan_runs, prepare_tools};
use crate::options::{ExitOptions, MeasureOptions, SeedOptions, SourceOptions, margin};
use crate::select::{ChosenWorkloads, choose_workloads_of, measured_sources, source_settings};
use crate::session::{Progress, Session};

const SERIES_EXAMPLES: &str = "Examples:
  marvin series                                       # in a tree: what @{upstream} lacks
  marvin series origin/master..HEAD --tree linux
  marvin series 4 --tree linux --workload fault,fork  # the last four commits
  marvin series v2.mbox --tree linux                  # patches, on the commit they were made on
  marvin series lore:20260101.12345-1-a@example.org --tree linux";

/// `marvin series`.
#[derive(Debug, Args)]
#[command(after_help = SERIES_EXAMPLES)]
pub(crate) struct SeriesArguments {
    /// Commits OLDER..NEWER along first parents, A...B since they parted, REVISION (HEAD~4) or a
    /// number up to HEAD; or patches: a mailbox, a folder, - for standard input, lore:MESSAGE-ID or
    /// its link; none means what HEAD has beyond its upstream
    #[arg(value_name = "SERIES", add = completion::revision())]
    pub(crate) series: Option<String>,

    /// Commit that patches are applied to [default: the one that they state, else the newest that
    /// has the files that they were made from, else HEAD]
    #[arg(long, value_name = "REVISION", add = completion::revision())]
    pub(crate) base: Option<String>,

    /// Take each commit or patch apart: apply and measure one hunk after the other
    #[arg(long)]
    pub(crate) hunks: bool,

    /// Merge patches that do not fit, if the tree has the files that they were made from
    #[arg(long = "3way")]
    pub(crate) three_way: bool,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) on: SeriesMachines,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Threshold in percent: smaller differences count as same [default: that of the metric; 1 for
    /// suite micro]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Write the answer to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = SeriesFormat::Text)]
    pub(crate) format: SeriesFormat,

    /// Address of the whole answer, for --format patchwork
    #[arg(long, value_name = "URL")]
    pub(crate) target_url: Option<String>,

    #[command(flatten)]
    pub(crate) exit: ExitOptions,

    #[command(flatten)]
    pub(crate) proof: ProofOptions,
}

/// Output format of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SeriesFormat {
    /// Table for terminals and mails
    Text,
    /// Table for issue trackers
    Markdown,
    /// All data, for programs
    Json,
    /// One self-contained page
    Html,
    /// Answer to the thread of the patches, as a file for mutt -H or git send-email
    Mail,
    /// Plain text for below --- of a patch, or a cover letter: at most 20 lines
    Note,
    /// One line for each commit or patch
    Trailers,
    /// Results of a check, as `b4 review` reads them
    B4,
    /// JUnit's XML, a test for each commit or patch
    Junit,
    /// Checks as patchwork's API takes them, one for each patch
    Patchwork,
    /// Annotations of GitHub Actions, as workflow commands
    Github,
    /// Report of code quality for GitLab
    Gitlab,
    /// Markdown for one comment that is edited in place: one line if nothing moved
    Comment,
}

/// Seeds of each commit by default.
const SEEDS: u64 = 2;

pub(crate) fn series(session: &Session, command: &SeriesArguments) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    let repository = open_tree(session, &measure.sources, "series")?;
    let beside = command.on.beside_exact(session)?;
    let named = command.series.as_deref();
    let mut input = Input::read(session, &repository, named, command.base.as_deref())?;
    if command.hunks {
        input = input.into_hunks(&repository, named)?;
    }
    let revisions = input.revisions().into_iter().map(KernelName::Git);
    let revisions: Vec<KernelName> = revisions.collect();
    // A series is about anything: its rows reach what configs add, too.
    let suite = measure.suite.as_deref().unwrap_or(model::PATHS.name);
    let chosen = choose_workloads_of(session, measure, suite, &revisions)?;
    let beside = Beside::choose_all(session, command, beside, &chosen)?;
    let settings = measured_sources(session, measure, &chosen.tools)?;
    let answer = session.answer(command.output.as_deref())?;
    let proof = NewProof::open(&command.proof, &chosen)?;
    let mut cache = BuildCache::open(session.home()?, session.archives()?)?;
    cache.set_sources(settings);
    let sources = Sources::open(&cache)?;
    let Entries {
        title,
        base,
        mut entries,
    } = input.entries(&sources, command.three_way)?;
    let title = title + &Beside::describe_all(&beside, command);
    if proof.is_some() {
        // Before anything is built: a merge is no patch.
        proof::patches(&sources, &base, &entries)?;
    }
    let lab = open_exact_lab_with(session, measure, chosen.tools.clone())?;
    let progress = session.progress();
    let older = commit_of(&base).unwrap_or_default();
    let newer = entries.iter().rev().find_map(commit_of).unwrap_or(older);
    let (sources, widened) = sources.widened(older, newer)?;
    notify_widened(&widened, &progress);
    let applied = Applied {
        sources: &sources,
        input: &input,
        three_way: command.three_way,
        progress: &progress,
    };
    let BuiltSeries {
        mut rows,
        builds,
        changes,
        mut spent,
    } = build_all(applied, &base, &mut entries)?;
    let mut alone = None;
    // The answer is not lost with a proof that cannot be written.
    let mut proved = Ok(());
    let measuring = Instant::now();
    if !builds.is_empty() {
        prepare_tools(&lab, &chosen.workloads, &progress)?;
        let twins = session.store_location()?;
        let measured = Measured {
            lab: &lab,
            builds: &builds,
            entries: &entries,
            changes: &changes,
        };
        fill(&measured, command, &chosen, &mut rows, &twins, &progress)?;
        alone = measure_alone(applied, &lab, command, &chosen, &builds)?;
        if let Some(proof) = proof {
            proved = proof.write(&Series {
                title: &title,
                lab: &lab,
                sources: &sources,
                rows: &rows,
                builds: &builds,
                entries: std::iter::once(&base).chain(&entries).collect(),
                patches: proof::patches(&sources, &base, &entries)?,
                chosen: &chosen,
                command,
            });
        }
        // A data directory has one lab at a time.
        drop(lab);
        for beside in &beside {
            beside.fill(session, command, &builds, &mut rows, &progress)?;
        }
    } else if proof.is_some() {
        crate::say("no proof is written: no kernel builds");
    }
    spent.measured(measuring);
    progress.line(&spent.sentence());
    progress.end();
    let of_beside: Vec<String> = beside.iter().flat_map(Beside::names).collect();
    let names = chosen.workloads.iter().map(|workload| &*workload.name);
    let names: Vec<&str> = names.chain(of_beside.iter().map(String::as_str)).collect();
    let series = SeriesAnswer {
        reproduce: reproducer(command, &input),
        title,
        rows: &rows,
        workloads: &names,
        alone: alone.as_ref(),
    };
    answer.write(format(&series, command, &input, &entries)?)?;
    proved?;
    Ok(conclusion(&rows))
}

/// Opens the tree of a command that needs one.
fn open_tree(
    session: &Session,
    sources: &SourceOptions,
    command: &str,
) -> anyhow::Result<Repository> {
    let tree = source_settings(session, sources)?.tree.ok_or_else(|| {
        WrongInput(format!(
            "{command} needs a tree: name its directory with --tree FOLDER"
        ))
    })?;
    Ok(Repository::open(&tree)?)
}

/// The kernels of a series.
#[derive(Debug, Default)]
struct BuiltSeries {
    /// The base, and each commit or patch.
    rows: Vec<CommitRow>,
    /// Those of the rows that are built.
    builds: Vec<Build>,
    /// What the compiler says of each row's changes.
    changes: Vec<FunctionChanges>,
    spent: Spent,
}

/// Builds the base and each commit or patch, those behind one that does not build without it.
fn build_all(
    applied: Applied<'_>,
    base: &Entry,
    entries: &mut Vec<Entry>,
) -> anyhow::Result<BuiltSeries> {
    let Applied {
        sources, progress, ..
    } = applied;
    let mut series = BuiltSeries::default();
    let mut before: Option<String> = None;
    for number in 0..=entries.len() {
        let at = number.checked_sub(1);
        let entry = at.map_or(base, |at| &entries[at]);
        let building = Instant::now();
        let (mut row, mut build) = built(sources, entry, &series.builds, progress)?;
        if let (Some(at), Some(before)) = (at, &before)
            && matches!(row.state, State::Failed(_))
            && let Some(without) = applied.try_without(entries, at, &series, before)?
        {
            let (its_row, its_build) = without.settle(entries, at, &mut series.rows);
            row = its_row;
            build = Some(its_build);
        }
        let looking = series.spent.built(building);
        let entry = at.map_or(base, |at| &entries[at]);
        let mut changed = FunctionChanges::default();
        if let (Some(_), Some(commit)) = (&build, commit_of(entry)) {
            let notify = |step| progress.step(&entry.label, &step);
            if let Some(before) = &before {
                let coverage = sources.coverage(before, commit)?;
                let not_compiled = coverage.not_compiled.iter();
                row.not_compiled = not_compiled.map(ToString::to_string).collect();
                // Until what the workloads execute is known.
                row.executes_the_same = coverage.has_compiled;
                if row.state != State::Equal {
                    changed = sources.function_changes(before, commit, &notify)?;
                }
            }
            let mut behind = entries[number..].iter();
            if let Some(later) = behind.find_map(commit_of) {
                sources.describe_ahead(commit, later, &notify)?;
            }
            before = Some(commit.to_owned());
        }
        series.spent.looked(looking);
        series.rows.push(row);
        series.builds.extend(build);
        series.changes.push(changed);
    }
    shorten_failures(&mut series.rows);
    Ok(series)
}

/// Writes the answer in the format that was asked for.
fn format(
    series: &SeriesAnswer<'_>,
    command: &SeriesArguments,
    input: &Input,
    entries: &[Entry],
) -> anyhow::Result<String> {
    let sources: Vec<CommitSource> = entries.iter().map(|entry| entry.source.clone()).collect();
    let mail = input.answered();
    Ok(match command.format {
        SeriesFormat::Text => format!(
            "{}\n{}Reproduce: {}\n",
            table(&series.title, series.rows, series.workloads),
            alone_text(series),
            series.reproduce
        ),
        SeriesFormat::Markdown => series.markdown(),
        SeriesFormat::Json => series.json()?,
        SeriesFormat::Html => series.html()?,
        SeriesFormat::Mail => series.mail(mail.as_ref(), command.seeds.count(SEEDS) == 1),
        SeriesFormat::Note => series.note(),
        SeriesFormat::Trailers => series.trailers(),
        SeriesFormat::B4 => series.checks()?,
        SeriesFormat::Junit => series.junit(),
        SeriesFormat::Patchwork => series.patchwork(&sources, command.target_url.as_deref())?,
        SeriesFormat::Github => series.github(&sources),
        SeriesFormat::Gitlab => series.gitlab(&sources)?,
        SeriesFormat::Comment => series.comment(),
    })
}

fn alone_text(series: &SeriesAnswer<'_>) -> String {
    let text = series.alone.map(HunksAlone::text);
    text.map_or_else(String::new, |text| text + "\n")
}

/// Returns the command that gives the same answer, with commits by hash.
fn reproducer(command: &SeriesArguments, input: &Input) -> String {
    let mut arguments = vec!["marvin".to_owned(), "series".to_owned()];
    arguments.extend(input.words(command.series.as_deref()));
    if command.three_way {
        arguments.push("--3way".to_owned());
    }
    arguments.extend(command.measure.choice_arguments());
    arguments.extend(source_arguments(&command.measure.sources));
    arguments.extend(command.on.arguments());
    arguments.extend(command.seeds.arguments(SEEDS));
    if let Some(margin) = command.margin {
        arguments.extend(["--margin".into(), margin.to_string()]);
    }
    arguments.extend(command.measure.program.tail());
    arguments.join(" ")
}

/// Returns the words that choose the same kernel config and compiler.
fn source_arguments(sources: &SourceOptions) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(config) = &sources.config {
        arguments.extend(["--config".to_owned(), config.clone()]);
    }
    if let Some(folder) = &sources.build_dir {
        arguments.extend(["--build-dir".to_owned(), folder.display().to_string()]);
    }
    let of_make = sources.make_options_text();
    if !of_make.is_empty() {
        arguments.push(of_make.trim_start().to_owned());
    }
    arguments
}

/// Says an error once: what is behind a patch that does not build has the same.
fn shorten_failures(rows: &mut [CommitRow]) {
    let mut first: Option<(String, String)> = None;
    for row in rows {
        let State::Failed(why) = &mut row.state else {
            first = None;
            continue;
        };
        match &first {
            Some((commit, known)) if known == why => {
                *why = format!("the same error as {commit}, which it follows");
            }
            _ => first = Some((row.commit.clone(), why.clone())),
        }
    }
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

fn commit_of(entry: &Entry) -> Option<&str> {
    match &entry.made {
        Made::Commit(commit) => Some(commit),
        Made::Nothing | Made::Refused(_) => None,
    }
}

/// Builds a commit; a failed build gets a row of its own. `builds` has the builds of earlier
/// commits.
fn built(
    sources: &Sources,
    entry: &Entry,
    builds: &[Build],
    progress: &Progress,
) -> anyhow::Result<(CommitRow, Option<Build>)> {
    let name = &entry.label;
    let row = |state| CommitRow {
        commit: name.clone(),
        subject: entry.subject.clone(),
        state,
        not_compiled: Vec::new(),
        functions: Vec::new(),
        lines: Vec::new(),
        executes_more: false,
        executes_the_same: false,
        origins: Vec::new(),
        same_code: SameCode::default(),
    };
    let commit = match &entry.made {
        Made::Commit(commit) => commit,
        Made::Nothing => return Ok((row(State::AppliedBefore), None)),
        Made::Refused(why) => return Ok((row(State::NotApplied(why.clone())), None)),
    };
    match sources.build(commit, &|step| progress.step(name, &step)) {
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

/// What a series is measured with and of.
#[derive(Debug, Clone, Copy)]
struct Measured<'a> {
    lab: &'a Lab,
    /// Those of the rows that are built.
    builds: &'a [Build],
    entries: &'a [Entry],
    /// What the compiler says of each row's changes.
    changes: &'a [FunctionChanges],
}

/// The distinct images of a series and their runs.
#[derive(Debug)]
struct Images {
    images: Vec<Build>,
    /// Those of each image.
    runs: Vec<Vec<Run>>,
    machines: Vec<Machine>,
    question: Question,
}

impl Images {
    /// Returns the place of a build's image, and it as a side of a comparison.
    fn side(&self, build: &Build) -> Result<(usize, Side<'_>), LabError> {
        let place = self
            .images
            .iter()
            .position(|known| known.id == build.id)
            .ok_or(LabError::Empty("builds"))?;
        Ok((
            place,
            side(&self.images[place], &self.runs[place], &self.machines),
        ))
    }
}

/// Measures all distinct images in one plan; `None` if there is only one.
fn measure_images(
    measured: &Measured<'_>,
    measure: &MeasureOptions,
    seeds: &SeedOptions,
    chosen: &ChosenWorkloads,
    progress: &Progress,
) -> anyhow::Result<Option<Images>> {
    let ChosenWorkloads {
        suite, workloads, ..
    } = chosen;
    let mut images: Vec<Build> = Vec::new();
    for build in measured.builds {
        if images.iter().all(|known| known.id != build.id) {
            images.push(build.clone());
        }
    }
    if images.len() < 2 {
        return Ok(None);
    }
    let lab = measured.lab;
    let seeds: Vec<u64> = (1..=seeds.count(SEEDS)).collect();
    let watched = lines::watched(measured.changes);
    let execute = |images: &[Build], workloads: &[Arc<Workload>]| {
        let plan = plan_runs(measure, images, suite, workloads, &seeds);
        lab.execute_watching(&plan, &watched, &|event| progress.event(&event))
    };
    let functions = reached::changed_functions(measured.entries, measured.changes);
    let runs = if functions.is_empty() {
        execute(&images, workloads)?
    } else {
        // What the first kernel executes says which workloads to measure first on the others.
        let mut runs = execute(&images[..1], workloads)?;
        let ordered = reached::in_order(lab, &runs[0], &functions, workloads)?;
        runs.extend(execute(&images[1..], &ordered)?);
        runs
    };
    let machines = lab.machines(workloads)?;
    let question = Question::about(suite.name, workloads.clone(), seeds);
    Ok(Some(Images {
        images,
        runs,
        machines,
        question,
    }))
}

/// Measures all distinct images, and compares each with the one before it and with twins in a
/// store.
fn fill(
    measured: &Measured<'_>,
    command: &SeriesArguments,
    chosen: &ChosenWorkloads,
    rows: &mut [CommitRow],
    twins: &Location,
    progress: &Progress,
) -> anyhow::Result<()> {
    let Measured {
        lab,
        builds,
        entries,
        changes,
    } = *measured;
    let measured = measure_images(measured, &command.measure, &command.seeds, chosen, progress)?;
    let Some(mut measured) = measured else {
        return Ok(());
    };
    measured.question.margin_percent = command.margin;
    let Images {
        images,
        runs,
        question,
        ..
    } = &measured;
    let executed: Vec<ExecutedFunctions> = runs
        .iter()
        .map(|runs| lab.executed_functions(runs))
        .collect::<Result<_, _>>()?;
    let mut built = rows
        .iter_mut()
        .enumerate()
        .filter(|(_, row)| row.is_built());
    built.next();
    for ((number, row), pair) in built.zip(builds.windows(2)) {
        let (before, base) = measured.side(&pair[0])?;
        let (after, new) = measured.side(&pair[1])?;
        if before != after {
            let mut comparison = compare::compare(&base, &[new], question)?;
            lab::doubt_by_twins(twins.clone(), &mut comparison)?;
            let pair = Pair {
                builds: [&images[before], &images[after]],
                runs: [&runs[before], &runs[after]],
                changes: &changes[number],
            };
            let cells = comparison.rows.iter().map(cell).collect();
            let attributed = pair.attribute(lab, &comparison, cells)?;
            row.state = State::Compared(attributed.cells);
            row.origins = attributed.origins;
            row.same_code = attributed.same_code;
            row.lines = pair.executed_lines(lab, &chosen.workloads)?;
            row.executes_more = pair.has_more(&attributed.changed);
            row.executes_the_same &= attributed.executes_the_same;
            // The base is a row and no entry.
            row.functions = changed_functions(
                &pair.changes.changed(&entries[number - 1].functions),
                lab,
                &pair,
                [&executed[before], &executed[after]],
            );
        }
    }
    Ok(())
}

/// Says of each function whether the workloads execute it, those with the largest part first.
fn changed_functions(
    names: &[String],
    lab: &Lab,
    pair: &Pair<'_>,
    executed: [&ExecutedFunctions; 2],
) -> Vec<ChangedFunction> {
    let [before, after] = executed;
    let asked: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    // A function that the commit removes has code before it.
    let with_code = pair.builds.map(|build| lab.functions_of(build, &asked));
    let mut found: Vec<(f64, ChangedFunction)> = Vec::new();
    for name in names {
        let within = without_own_code(name, pair.changes, after);
        // What only the older kernel has as a function of its own may be inlined now.
        let entered = match after.most(name).or_else(|| before.most(name)) {
            Some(_) if after.most(name).is_none() && matches!(within, Entered::Within { .. }) => {
                within
            }
            Some(most) => {
                let instructions = |side: &ExecutedFunctions| {
                    side.by(name, &most.workload).map(|by| by.instructions)
                };
                Entered::By {
                    workload: most.workload.clone(),
                    calls: most.calls,
                    instructions: instructions(after).unwrap_or(0.0),
                    before: instructions(before),
                }
            }
            None if with_code.iter().any(|code| code.contains(name)) => {
                Entered::Never(Reached::Unknown)
            }
            None => within,
        };
        let part = after.most(name).map_or(0.0, |most| most.part);
        let name = name.clone();
        found.push((part, ChangedFunction { name, entered }));
    }
    let places = |name: &String| match pair.changes.hosts(name) {
        hosts if with_code[1].contains(name) || hosts.is_empty() => vec![name.clone()],
        hosts => hosts,
    };
    let never = found.iter().map(|(_, function)| function);
    let never = never.filter(|function| matches!(function.entered, Entered::Never(_)));
    let never = never.flat_map(|function| places(&function.name)).collect();
    let near = Near::new(lab, pair.builds[1], &never, after);
    for (_, function) in &mut found {
        if let Entered::Never(reached) = &mut function.entered {
            *reached = near.reached(&places(&function.name));
        }
    }
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.into_iter().map(|(_, function)| function).collect()
}

/// Says what is known of a function without code of its own.
fn without_own_code(
    name: &str,
    changes: &FunctionChanges,
    executed: &ExecutedFunctions,
) -> Entered {
    let hosts = changes.hosts(name);
    let entered = hosts
        .iter()
        .filter_map(|host| Some((executed.most(host)?, host)));
    let most = entered.max_by(|(one, _), (other, _)| one.part.total_cmp(&other.part));
    match most {
        Some((most, host)) => Entered::Within {
            host: host.clone(),
            workload: most.workload.clone(),
            calls: most.calls,
        },
        None if !hosts.is_empty() => Entered::Never(Reached::Unknown),
        None if changes.is_compiled(name) == Some(false) => Entered::NotCompiled,
        None => Entered::NoOwnCode,
    }
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
    let has = |wanted: &[CommitVerdict]| rows.iter().any(|row| wanted.contains(&row.verdict()));
    if has(&[CommitVerdict::Failed]) {
        Exit::Subject
    } else if has(&[CommitVerdict::Worse]) {
        Exit::Worse
    } else if has(&[CommitVerdict::Unclear, CommitVerdict::NotMeasured])
        || rows.iter().any(|row| !row.not_compiled.is_empty())
    {
        Exit::Unclear
    } else {
        Exit::Fine
    }
}
