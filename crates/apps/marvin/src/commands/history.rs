//! `marvin history`: shows a workload's results over many kernels.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use history::{History, Key, Series, history_document, history_json, history_text};
use model::ReleaseLine;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::LINE_HELP;
use crate::select::did_you_mean;
use crate::session::Session;

/// `marvin history`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LINE_HELP}Examples:
  marvin history fault-anon
  marvin history fault:cost --line 6.12 --format html -o fault.html"))]
pub(crate) struct HistoryArguments {
    /// Workload or group, with an optional metric: fault-anon, fault, fault-anon:cost
    #[arg(value_name = "WORKLOAD[:METRIC]", add = completion::workload())]
    pub(crate) what: String,

    /// Show only kernels of this line of releases
    #[arg(long, value_name = "LINE", default_value_t = ReleaseLine::All)]
    pub(crate) line: ReleaseLine,

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
    let what = command
        .what
        .strip_prefix(model::TOOL)
        .unwrap_or(&command.what);
    let (workload, metric) = match what.split_once(':') {
        Some((workload, metric)) => (workload, Some(metric)),
        None => (what, None),
    };
    let reader = session.history_reader()?;
    let history = &reader.read_only(|name| is_or_contains(workload, name))?;
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
