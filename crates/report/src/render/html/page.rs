//! The page around the table: what the template shows, as texts that it only has to escape.

use askama::Template;

use crate::comparison::{Comparison, Images, Kernel};
use crate::document::fragment;
use crate::monitors::Monitored;
use crate::plain::{plain, plain_lines};
use crate::render::findings::{self, Unclear};
use crate::render::html::changes::{Changes, changes};
use crate::render::html::rows::{Columns, SeedRow, Table, seed_rows, tables};
use crate::render::number::{self, date};
use crate::render::scale::Beyond;
use crate::render::style::Style;
use crate::render::{RenderError, counted, monitors, words};

/// The page.
#[derive(Debug, Template)]
#[template(path = "comparison.html")]
pub(super) struct Page {
    headlines: Vec<String>,
    warnings: Vec<String>,
    machine: String,
    seeds: String,
    created: Option<String>,
    notes: Vec<String>,
    changes: Vec<Changes>,
    tables: Vec<Table>,
    means: Vec<String>,
    legend: Option<String>,
    no_run_needed: Option<&'static str>,
    honesty: &'static str,
    apart_head: &'static str,
    apart: Vec<(String, Vec<String>)>,
    origins: Vec<String>,
    monitors: Vec<Watched>,
    failures: Vec<Failed>,
    unclear: Vec<Unclear>,
    titles: Vec<String>,
    environment: Vec<Line>,
    environment_rest: String,
    kernels: Vec<Origin>,
    machines: Vec<Described>,
    /// What all machines have in common.
    fingerprint: Vec<(String, String)>,
    command: String,
    seed_numbers: Vec<u64>,
    seed_rows: Vec<SeedRow>,
    runs: Vec<Ran>,
}

/// What the kernels counted meanwhile.
#[derive(Debug)]
struct Watched {
    subject: String,
    blocks: String,
}

/// A failure and the last words on the console.
#[derive(Debug)]
struct Failed {
    sentence: String,
    console: String,
}

/// A named line with a value for each kernel.
#[derive(Debug)]
struct Line {
    name: String,
    /// Each as short as it still tells the difference, and whole.
    values: Vec<(String, String)>,
}

/// Where a kernel came from.
#[derive(Debug)]
struct Origin {
    title: String,
    role: &'static str,
    name: String,
    origin: String,
    build: String,
    image: String,
    config: String,
    machine: String,
}

/// A machine with what only it has of its fingerprint, where there are others.
#[derive(Debug)]
struct Described {
    id: String,
    kind: String,
    summary: String,
    fingerprint: Vec<(String, String)>,
}

/// A run that was used.
#[derive(Debug)]
struct Ran {
    id: String,
    title: String,
    seed: u64,
    started: String,
}

/// Returns the page of a comparison.
pub(super) fn page(comparison: &Comparison) -> Result<Page, RenderError> {
    let (machines, fingerprint) = machines(comparison);
    let machine = &comparison.base.machine;
    let measured = !words::no_run_needed(comparison);
    Ok(Page {
        headlines: words::headlines(comparison),
        warnings: words::alarms(comparison),
        machine: words::machine(comparison),
        seeds: words::seeds(comparison),
        created: comparison.created_unix.map(date),
        notes: words::notes(comparison),
        changes: changes(comparison),
        tables: tables(comparison),
        means: comparison.others.iter().filter_map(|other| words::geometric_mean(comparison, other)).collect(),
        legend: measured.then(|| counted::legend(comparison)),
        no_run_needed: (!measured).then_some(words::NO_RUN_NEEDED),
        honesty: machine.kind.caution(),
        apart_head: counted::HEAD,
        apart: apart(comparison),
        origins: comparison.origins.clone(),
        monitors: comparison.monitors.iter().map(watched).collect::<Result<_, _>>()?,
        failures: failures(comparison),
        unclear: findings::unclear(comparison),
        titles: comparison.kernels().map(|k| k.title.clone()).collect(),
        environment: environment(comparison),
        environment_rest: environment_rest(comparison),
        kernels: kernels(comparison),
        machines,
        fingerprint,
        command: plain(&comparison.command),
        seed_numbers: comparison.seeds.clone(),
        seed_rows: if measured { seed_rows(comparison) } else { Vec::new() },
        runs: runs(comparison),
    })
}

fn watched(monitored: &Monitored) -> Result<Watched, RenderError> {
    let blocks = fragment(&monitors::blocks(monitored, Style::Marvin))?;
    Ok(Watched { subject: plain(&monitored.subject), blocks })
}

fn failures(comparison: &Comparison) -> Vec<Failed> {
    comparison
        .failures
        .iter()
        .map(|failure| Failed {
            sentence: findings::failure(comparison, failure),
            console: plain_lines(&failure.console_tail).join("\n"),
        })
        .collect()
}

fn environment(comparison: &Comparison) -> Vec<Line> {
    comparison
        .environment
        .differences
        .iter()
        .map(|difference| Line {
            name: plain(&difference.name),
            values: findings::values(comparison, difference, 100)
                .into_iter()
                .zip(&difference.values)
                .map(|(short, whole)| (short, plain(whole.as_deref().unwrap_or_default())))
                .collect(),
        })
        .collect()
}

fn environment_rest(comparison: &Comparison) -> String {
    let nothing = if comparison.environment.differences.is_empty() {
        "The kernels' environments do not differ."
    } else {
        "Nothing else differed."
    };
    match findings::silent(comparison) {
        Some(silent) => format!("The environment is {silent}."),
        None => nothing.to_owned(),
    }
}

/// The rows that changed, taken apart: base and new of kernel, user code, and ticks and other tasks.
fn apart(comparison: &Comparison) -> Vec<(String, Vec<String>)> {
    let numbers = |row: &counted::Apart| [row.kernel, row.user, row.elsewhere].into_iter().flatten();
    let rows = counted::apart(comparison).into_iter();
    rows.map(|row| (row.name.clone(), numbers(&row).map(|n| number::value(n, 24)).collect())).collect()
}

fn kernels(comparison: &Comparison) -> Vec<Origin> {
    let mut origins = vec![origin(&comparison.base, "base")];
    origins.extend(comparison.others.iter().map(|other| {
        let role = match other.images {
            Images::Different => "",
            Images::Equal | Images::EqualWithoutRuns => "the base's image",
        };
        origin(&other.kernel, role)
    }));
    origins
}

fn origin(kernel: &Kernel, role: &'static str) -> Origin {
    let build = &kernel.build;
    Origin {
        title: kernel.title.clone(),
        role,
        name: plain(&build.name.to_string()),
        origin: plain(&build.origin.to_string()),
        build: build.id.to_string(),
        image: words::image(build, usize::MAX),
        config: build.config.as_ref().map_or_else(|| "none found".to_owned(), |c| plain(&c.sha256)),
        machine: kernel.machine.id.short(),
    }
}

fn machines(comparison: &Comparison) -> (Vec<Described>, Vec<(String, String)>) {
    let mut found: Vec<&model::Machine> = Vec::new();
    for machine in comparison.kernels().flat_map(Kernel::machines) {
        // Few machines: one for each equipment, unless the user mixes them.
        if !found.iter().any(|m| m.id == machine.id) {
            found.push(machine);
        }
    }
    let is_common = |entry: &&(String, String)| found.iter().all(|machine| machine.fingerprint.contains(entry));
    let shown = |(name, value): &(String, String)| (plain(name), plain(value));
    let first = &comparison.base.machine;
    let common = first.fingerprint.iter().filter(is_common).map(shown).collect();
    let described = found.iter().map(|machine| Described {
        id: machine.id.to_string(),
        kind: machine.kind.to_string(),
        summary: plain(&machine.summary),
        fingerprint: machine.fingerprint.iter().filter(|entry| !is_common(entry)).map(shown).collect(),
    });
    (described.collect(), common)
}

fn runs(comparison: &Comparison) -> Vec<Ran> {
    comparison
        .kernels()
        .flat_map(|kernel| {
            kernel.runs.iter().map(|run| Ran {
                id: run.id.to_string(),
                title: kernel.title.clone(),
                seed: run.seed,
                started: date(run.started_unix),
            })
        })
        .collect()
}
