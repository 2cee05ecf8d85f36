//! `marvin history`: shows a workload's results over many kernels.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use history::{
    History, Key, Series, chain_arguments, history_document, history_json, history_text,
};
use model::ReleaseLine;

use crate::commands::compare::{CompareArguments, compare};
use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::LINE_HELP;
use crate::select::did_you_mean;
use crate::session::Session;

/// `marvin history`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINE_HELP}Examples:
  marvin history fault-anon
  marvin history fault-anon --chain
  marvin history fault:cost --line 6.12 --format html -o fault.html"))]
pub(crate) struct HistoryArguments {
    /// Workload or group, with an optional metric: fault-anon, fault, fault-anon:cost
    #[arg(value_name = "WORKLOAD[:METRIC]", add = completion::workload())]
    pub(crate) what: String,

    /// Show only kernels of this line of releases
    #[arg(long, value_name = "LINE", default_value_t = ReleaseLine::All)]
    pub(crate) line: ReleaseLine,

    /// First measure the releases between the two kernels of each change, as far as it takes to
    /// name the one that it came with, as `marvin compare --chain`; text only
    #[arg(long, conflicts_with_all = ["format", "output"])]
    pub(crate) chain: bool,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = HistoryFormat::Text)]
    pub(crate) format: HistoryFormat,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Output format of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// Tables of at most 80 columns
    Text,
    /// One self-contained page
    Html,
    /// All data with units, for programs
    Json,
}

pub(crate) fn history(session: &Session, command: &HistoryArguments) -> anyhow::Result<Exit> {
    let answer = session.answer(command.output.as_deref())?;
    let (workload, metric) = workload_and_metric(&command.what);
    let mut reader = session.history_reader()?;
    let mut history = reader.read_only(|name| is_or_contains(workload, name))?;
    let mut meant = find(&history, workload, metric)?;
    if command.chain {
        measure_between(session, command, &history, &meant)?;
        reader = session.history_reader()?;
        history = reader.read_only(|name| is_or_contains(workload, name))?;
        meant = find(&history, workload, metric)?;
    }
    let history = &history;
    let fits = |key: &Key| meant.contains(key);
    let text = match command.format {
        HistoryFormat::Text => history_text(history, command.line, fits, &answer.styles()),
        HistoryFormat::Json => {
            history_json(&history_document(history, command.line, usize::MAX, fits))?
        }
        HistoryFormat::Html => web::history_page(history, command.line, fits)?,
    };
    answer.write(&text)?;
    // Dropped results make the answer incomplete: the exit code says so.
    let is_mixed = history
        .series()
        .any(|(key, series)| fits(key) && series.aside().next().is_some());
    Ok(if is_mixed { Exit::Unclear } else { Exit::Fine })
}

fn workload_and_metric(what: &str) -> (&str, Option<&str>) {
    let what = what.strip_prefix(model::TOOL).unwrap_or(what);
    match what.split_once(':') {
        Some((workload, metric)) => (workload, Some(metric)),
        None => (what, None),
    }
}

/// Returns the series that are meant.
fn find(history: &History, workload: &str, metric: Option<&str>) -> anyhow::Result<Vec<Key>> {
    let named: Vec<(&Key, &Series)> = history
        .series()
        .filter(|(key, _)| is_or_contains(workload, &key.workload))
        .collect();
    let meant: Vec<Key> = named
        .iter()
        .filter(|(_, series)| metric.is_none_or(|metric| series.metric.name == metric))
        .map(|(key, _)| (*key).clone())
        .collect();
    if meant.is_empty() {
        return Err(WrongInput(describe_unknown(history, workload, metric, &named)).into());
    }
    Ok(meant)
}

/// Measures the releases between the kernels of each change.
fn measure_between(
    session: &Session,
    command: &HistoryArguments,
    history: &History,
    meant: &[Key],
) -> anyhow::Result<()> {
    let mut chains: BTreeSet<Vec<String>> = BTreeSet::new();
    for (key, series) in history.series().filter(|(key, _)| meant.contains(key)) {
        let series = series.of_line(command.line, |kernel| &history.kernel(kernel).release);
        let of_series = series.changes.iter();
        chains
            .extend(of_series.filter_map(|change| chain_arguments(history, key, &series, change)));
    }
    if chains.is_empty() {
        crate::say("no change lies between packages of two series that the exact machine measured");
    }
    for words in &chains {
        let arguments = CompareArguments::of_words(words.iter().map(String::as_str))?;
        compare(session, &arguments)?;
    }
    Ok(())
}

/// Returns whether a word is a workload's name, or its group: the part before a hyphen or, in names
/// of other suites, before a slash.
fn is_or_contains(word: &str, name: &str) -> bool {
    name.strip_prefix(word)
        .is_some_and(|rest| !word.is_empty() && (rest.is_empty() || rest.starts_with(['-', '/'])))
}

fn describe_unknown(
    history: &History,
    workload: &str,
    metric: Option<&str>,
    named: &[(&Key, &Series)],
) -> String {
    let known: BTreeSet<&str> = named
        .iter()
        .map(|(_, series)| &*series.metric.name)
        .collect();
    if let (Some(metric), false) = (metric, known.is_empty()) {
        let known: Vec<&str> = known.into_iter().collect();
        return format!(
            "`{workload}` has no metric `{metric}`, only {}",
            known.join(", ")
        );
    }
    let names = history.workloads();
    let groups = names
        .iter()
        .filter_map(|name| Some(name.split_once(['-', '/'])?.0));
    let guess = did_you_mean(names.iter().map(AsRef::as_ref).chain(groups), workload);
    format!("no results of a workload or group `{workload}`{guess}; `marvin run` measures")
}
