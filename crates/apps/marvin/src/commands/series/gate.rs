//! `marvin gate`: holds a change against the budgets of its tree, and measures only what it touches.
//!
//! The budgets are those of the commit, never of the work tree: a review sees them with the change.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};
use compare::{Comparison, ComparisonRow, Failure};
use config::{BUDGETS_FILE, BUDGETS_MAX, budgets, write_budgets};
use history::commit_table::State;
use history::gate::{Fit, GateAnswer, GateMeasured, GateRow, GateVerdict, RowVerdict, fit};
use history::gate_rows::{edits, touched};
use kernel::{BuildCache, Sources, TreeFile};
use lab::Lab;
use lab::bisection::short;
use model::{Budget, Build, KERNEL_PARTS, KernelPart, Limit, PATHS, Stage, Verdict};
use store::Location;

use super::input::{Entries, Entry, Input, Made};
use super::{Images, Measured, built, measure_images, notify_widened, open_tree, source_arguments};
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::measure::open_exact_lab_with;
use crate::options::{MeasureOptions, SeedOptions};
use crate::select::{ChosenWorkloads, choose_workloads_of, measured_sources};
use crate::session::{Progress, Session};

const GATE_EXAMPLES: &str = "Examples:
  marvin gate                            # in a tree: what @{upstream} lacks
  marvin gate origin/master..HEAD --tree linux
  marvin gate v2.mbox --tree linux       # patches
  marvin gate --propose > .marvin.toml   # budgets for twelve subsystems

Exit codes: 1 if a row exceeds its budget, 3 if the measurements do not decide.";

/// Options that belong to other commands.
const FOREIGN: [&str; 14] = [
    "suite",
    "workload",
    "manifest",
    "program",
    "with",
    "env",
    "stdin",
    "setup",
    "value",
    "accept_status",
    "repeat",
    "time_limit",
    "guest_memory",
    "marks",
];

/// `marvin gate`.
#[derive(Debug, Args)]
#[command(after_help = GATE_EXAMPLES, mut_args(hide_foreign))]
pub(crate) struct GateArguments {
    /// The change, as in marvin series: commits OLDER..NEWER, A...B, REVISION or a number up to
    /// HEAD; or patches: a mailbox, a folder, - for standard input, lore:MESSAGE-ID or its link;
    /// none means what HEAD has beyond its upstream
    #[arg(value_name = "SERIES", add = completion::revision())]
    pub(crate) series: Option<String>,

    /// Print budgets for twelve subsystems, those that a tree without .marvin.toml has, and measure
    /// nothing
    #[arg(long, conflicts_with_all = ["series", "base", "three_way", "format"])]
    pub(crate) propose: bool,

    /// Commit that patches are applied to [default: as in marvin series]
    #[arg(long, value_name = "REVISION", add = completion::revision())]
    pub(crate) base: Option<String>,

    /// Merge patches that do not fit, if the tree has the files that they were made from
    #[arg(long = "3way")]
    pub(crate) three_way: bool,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) seeds: SeedOptions,

    /// Write the answer to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = GateFormat::Text)]
    pub(crate) format: GateFormat,
}

/// Hides the options that choose what is measured: the budgets do.
fn hide_foreign(argument: Arg) -> Arg {
    let is_foreign = FOREIGN.contains(&argument.get_id().as_str());
    argument.hide(is_foreign)
}

/// Output format of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateFormat {
    /// One line if nothing moved, else a table
    Text,
    /// All data, for programs
    Json,
}

pub(crate) fn gate(session: &Session, command: &GateArguments) -> anyhow::Result<Exit> {
    let measure = &command.measure;
    if measure.suite.is_some() || !measure.workload.is_empty() || measure.program.is_given() {
        let text = "gate measures the rows of the tree's budgets: --suite, --workload and programs belong to marvin series";
        return Err(WrongInput(text.into()).into());
    }
    if command.propose {
        let answer = session.answer(command.output.as_deref())?;
        answer.write(proposal())?;
        return Ok(Exit::Fine);
    }
    let repository = open_tree(session, &measure.sources, "gate")?;
    let named = command.series.as_deref();
    let input = Input::read(session, &repository, named, command.base.as_deref())?;
    let chosen = choose_workloads_of(session, measure, PATHS.name, &[])?;
    let settings = measured_sources(session, measure, &chosen.tools)?;
    let output = session.answer(command.output.as_deref())?;
    let mut cache = BuildCache::open(session.home()?, session.archives()?)?;
    cache.set_sources(settings);
    let sources = Sources::open(&cache)?;
    let entries = input.entries(&sources, command.three_way)?;
    let progress = session.progress();
    let mut change = Change::read(&sources, entries, &progress)?;
    let is_measured = change.answer.failure.is_none() && !change.answer.touched.is_empty();
    if is_measured {
        change.measure(session, command, chosen, &sources, &progress)?;
    }
    progress.end();
    let mut answer = change.answer;
    answer.details = details(command, &input, &answer.rows);
    output.write(match command.format {
        GateFormat::Text => answer.text(),
        GateFormat::Json => answer.json()?,
    })?;
    Ok(match answer.verdict() {
        GateVerdict::NotTouched | GateVerdict::Holds | GateVerdict::Edited => Exit::Fine,
        GateVerdict::Exceeds => Exit::Worse,
        GateVerdict::Undecided => Exit::Unclear,
        GateVerdict::Failed => Exit::Subject,
    })
}

/// The budgets of trees without a file, as a file.
fn proposal() -> String {
    format!(
        "# Budgets of this tree for `marvin gate` (docs/gate.md): how much worse the rows of a part may be\n\
         # after a change to its paths. A limit is a percentage, or a count of instructions per operation:\n\
         #\n\
         #   [budget.limits]\n\
         #   fault-anon = 2150\n\
         #   mem-mmap = \"0.5 %\"\n\n{}",
        write_budgets(&usual_budgets())
    )
}

fn usual_budgets() -> Vec<Budget> {
    KERNEL_PARTS.iter().map(KernelPart::budget).collect()
}

/// The budgets of a commit; `None` if it has no file.
fn read_budgets(sources: &Sources, commit: &str) -> anyhow::Result<Option<Vec<Budget>>> {
    let wrong = |why: &str| WrongInput(format!("{BUDGETS_FILE} of {}: {why}", short(commit)));
    match sources.file_of(commit, BUDGETS_FILE, BUDGETS_MAX)? {
        TreeFile::Absent => Ok(None),
        TreeFile::Refused(why) => Err(wrong(&why).into()),
        TreeFile::Text(text) => match budgets(&text) {
            Ok(budgets) => Ok(Some(budgets)),
            Err(error) => Err(wrong(&error.to_string()).into()),
        },
    }
}

/// A change: the commit before it, the last one, and what is known of it.
#[derive(Debug)]
struct Change {
    base: Entry,
    last: Entry,
    /// Those that its diffs name.
    functions: BTreeSet<String>,
    answer: GateAnswer,
}

impl Change {
    /// Finds out which budgets a change touches. Nothing is built.
    fn read(sources: &Sources, entries: Entries, progress: &Progress) -> anyhow::Result<Self> {
        let Entries {
            title,
            base,
            entries,
        } = entries;
        let mut failure = None;
        let mut last = base.clone();
        let mut functions = BTreeSet::new();
        for entry in entries {
            functions.extend(entry.functions.iter().cloned());
            match &entry.made {
                Made::Commit(_) => last = entry,
                Made::Nothing => {}
                Made::Refused(why) => {
                    failure = failure.or(Some(format!("{} does not apply: {why}", entry.label)));
                }
            }
        }
        let [older, newer] =
            [&base, &last].map(|entry| super::commit_of(entry).unwrap_or_default());
        let files = sources.files_between(older, newer)?;
        let after = read_budgets(sources, newer)?;
        let before = read_budgets(sources, older).unwrap_or_else(|error| {
            // A change may repair the file.
            progress.line(&format!("without the budgets before the change: {error}"));
            None
        });
        let of = short(newer);
        let source = match (&before, &after) {
            (None, None) => format!("proposed budgets, as {of} has no {BUDGETS_FILE}"),
            (Some(_), None) => format!("proposed budgets, as the change removes {BUDGETS_FILE}"),
            (None, Some(_)) => format!("budgets of {BUDGETS_FILE} at {of}, which the change adds"),
            (Some(_), Some(_)) => format!("budgets of {BUDGETS_FILE} at {of}"),
        };
        let edits = match (&before, &after) {
            (Some(before), after) => edits(before, after.as_deref().unwrap_or_default()),
            _ => Vec::new(),
        };
        let before = match after {
            None => before.or_else(|| Some(usual_budgets())),
            Some(_) => before,
        };
        let after = after.unwrap_or_else(usual_budgets);
        let touched = touched(&files, before.as_deref(), &after);
        let answer = GateAnswer {
            title,
            source,
            files,
            touched: touched.budgets,
            rows: touched.rows,
            equal_images: false,
            not_compiled: Vec::new(),
            entered: 0,
            not_entered: Vec::new(),
            failure,
            edits,
            details: String::new(),
        };
        Ok(Self {
            base,
            last,
            functions,
            answer,
        })
    }

    /// Builds both kernels, and measures the rows of the touched budgets.
    fn measure(
        &mut self,
        session: &Session,
        command: &GateArguments,
        mut chosen: ChosenWorkloads,
        sources: &Sources,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let rows = &self.answer.rows;
        let is_row = |name: &str| rows.iter().any(|row| row.workload == name);
        chosen.workloads.retain(|workload| is_row(&workload.name));
        let lab = open_exact_lab_with(session, &command.measure, chosen.tools.clone())?;
        let [older, newer] =
            [&self.base, &self.last].map(|entry| super::commit_of(entry).unwrap_or_default());
        let (sources, widened) = sources.widened(older, newer)?;
        notify_widened(&widened, progress);
        let mut builds: Vec<Build> = Vec::new();
        for entry in [&self.base, &self.last] {
            let (row, build) = built(&sources, entry, &builds, progress)?;
            if let State::Failed(why) = row.state {
                self.answer.failure = Some(format!("{} does not build: {why}", row.commit));
                return Ok(());
            }
            builds.extend(build);
        }
        let not_compiled = sources.coverage(older, newer)?.not_compiled;
        self.answer.not_compiled = not_compiled.iter().map(ToString::to_string).collect();
        let measured = Measured {
            lab: &lab,
            builds: &builds,
            entries: &[],
            changes: &[],
        };
        let images = measure_images(
            &measured,
            &command.measure,
            &command.seeds,
            &chosen,
            progress,
        )?;
        let Some(mut images) = images else {
            self.answer.equal_images = true;
            return Ok(());
        };
        self.look_for_functions(&lab, &images)?;
        let twins = session.store_location()?;
        let mut margins: Vec<Option<f64>> = vec![None];
        for limit in self.answer.rows.iter().flat_map(limits_of) {
            if !margins.contains(&margin_of(limit)) {
                margins.push(margin_of(limit));
            }
        }
        let mut compared = Vec::new();
        for margin in margins {
            compared.push((margin, images.compare_ends(&builds, margin, &twins)?));
        }
        self.answer.failure = compared.first().and_then(|(_, usual)| failure_in(usual));
        for row in &mut self.answer.rows {
            let usual = row_of(&compared, None, &row.workload);
            row.measured = usual.map(|usual| GateMeasured {
                before: usual.base.value,
                after: usual.cells[0].measured.value,
                difference_percent: usual.cells[0].compared.difference_percent,
                moved: usual.cells[0].compared.verdict != Verdict::Same,
                fit_before: row
                    .limit_before
                    .and_then(|limit| fit_of(&compared, row, limit)),
                fit: row.limit.and_then(|limit| fit_of(&compared, row, limit)),
            });
        }
        Ok(())
    }
}

impl Change {
    /// Finds out which of the functions with code the rows enter.
    fn look_for_functions(&mut self, lab: &Lab, images: &Images) -> anyhow::Result<()> {
        let (Some(build), Some(runs)) = (images.images.last(), images.runs.last()) else {
            return Ok(());
        };
        let executed = lab.executed_functions(runs)?;
        let asked = self.functions.iter().map(String::as_str).collect();
        for function in lab.functions_of(build, &asked) {
            if executed.most(&function).is_some() {
                self.answer.entered += 1;
            } else {
                self.answer.not_entered.push(function);
            }
        }
        Ok(())
    }
}

/// Says which kernel does not boot or does not survive a workload. A workload that fails before the
/// change says nothing about it.
fn failure_in(comparison: &Comparison) -> Option<String> {
    let is_of_change = |failure: &&Failure| failure.kernel > 0 || failure.stage < Stage::Workload;
    let failure = comparison.failures.iter().find(is_of_change)?;
    let when = if failure.kernel == 0 {
        "before"
    } else {
        "with"
    };
    let workloads: Vec<&str> = failure
        .occurrences
        .iter()
        .map(|one| &*one.workload)
        .collect();
    let workload = workloads.first().copied().unwrap_or("every workload");
    let reason = &failure.reason;
    Some(format!(
        "the kernel {when} the change fails in {workload}: {reason}"
    ))
}

/// Comparisons of the same runs with these margins; `None` for that of each metric.
type Compared = [(Option<f64>, Comparison)];

fn limits_of(row: &GateRow) -> impl Iterator<Item = Limit> {
    [row.limit_before, row.limit].into_iter().flatten()
}

/// Returns the margin with which a limit is decided.
fn margin_of(limit: Limit) -> Option<f64> {
    match limit {
        Limit::Percent(percent) => Some(percent),
        Limit::Count(_) => None,
    }
}

fn fit_of(compared: &Compared, row: &GateRow, limit: Limit) -> Option<Fit> {
    let found = row_of(compared, margin_of(limit), &row.workload)?;
    Some(fit(found, limit))
}

fn row_of<'a>(
    compared: &'a Compared,
    margin: Option<f64>,
    workload: &str,
) -> Option<&'a ComparisonRow> {
    let (_, comparison) = compared.iter().find(|(known, _)| *known == margin)?;
    let mut rows = comparison.rows.iter();
    rows.find(|row| row.workload.name == workload)
}

impl Images {
    /// Compares the last build with the first one.
    fn compare_ends(
        &mut self,
        builds: &[Build],
        margin: Option<f64>,
        twins: &Location,
    ) -> anyhow::Result<Comparison> {
        self.question.margin_percent = margin;
        let (_, base) = self.side(&builds[0])?;
        let (_, new) = self.side(&builds[builds.len() - 1])?;
        let mut comparison = compare::compare(&base, &[new], &self.question)?;
        lab::doubt_by_twins(twins.clone(), &mut comparison)?;
        Ok(comparison)
    }
}

/// Returns the command that measures the rows over their budget commit by commit; without such
/// rows, all.
fn details(command: &GateArguments, input: &Input, rows: &[GateRow]) -> String {
    let mut words = vec!["marvin".to_owned(), "series".to_owned()];
    words.extend(input.words(command.series.as_deref()));
    if command.three_way {
        words.push("--3way".to_owned());
    }
    let exceeding = |row: &&GateRow| row.verdict() == RowVerdict::Exceeds;
    let is_any = rows.iter().any(|row| exceeding(&row));
    let mut named: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| !is_any || exceeding(row)) {
        if !named.contains(&&*row.workload) {
            named.push(&row.workload);
        }
    }
    if !named.is_empty() {
        words.extend(["--workload".to_owned(), named.join(",")]);
    }
    words.extend(source_arguments(&command.measure.sources));
    words.extend(command.seeds.arguments(super::SEEDS));
    words.join(" ")
}
