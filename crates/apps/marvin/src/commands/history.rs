//! `marvin history`: shows a workload's results over many kernels.

use std::collections::BTreeSet;

use history::{History, Key, Series, history_document, history_json, history_text};
use results::{HistoryReader, HistorySnapshot};

use crate::answer::Answer;
use crate::cli::{self, Arguments, HistoryFormat};
use crate::exit::{Exit, WrongInput};
use crate::home::{home, store};

pub(crate) fn history(arguments: &Arguments, command: &cli::History) -> anyhow::Result<Exit> {
    let answer = Answer::open(command.output.as_deref())?;
    let snapshot = read(arguments)?;
    let history = &snapshot.history;
    let what = command
        .what
        .strip_prefix(model::TOOL)
        .unwrap_or(&command.what);
    let (workload, metric) = match what.split_once(':') {
        Some((workload, metric)) => (workload, Some(metric)),
        None => (what, None),
    };
    let is_named = |key: &Key| is_or_contains(workload, &key.workload);
    let has_it = |series: &Series| metric.is_none_or(|metric| series.metric.name == metric);
    let named: Vec<(&Key, &Series)> = history.series().filter(|(key, _)| is_named(key)).collect();
    let meant: Vec<Key> = named
        .iter()
        .filter(|(_, series)| has_it(series))
        .map(|(key, _)| (*key).clone())
        .collect();
    if meant.is_empty() {
        return Err(WrongInput(describe_unknown(history, workload, metric, &named)).into());
    }
    let fits = |key: &Key| meant.contains(key);
    let text = match command.format {
        HistoryFormat::Text => {
            history_text(history, command.line, fits, &answer.styles(arguments.color))
        }
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

/// Reads everything that the store has.
pub(crate) fn read(arguments: &Arguments) -> anyhow::Result<HistorySnapshot> {
    let mut source = HistoryReader::open(store(arguments)?)?;
    source.add_bisections_of(home(arguments.home.as_deref())?);
    source.refresh()?;
    Ok(source.snapshot(1))
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
    let guess =
        super::measure::did_you_mean(names.iter().map(AsRef::as_ref).chain(groups), workload);
    format!("no results of a workload or group `{workload}`{guess}; `marvin run` measures")
}
