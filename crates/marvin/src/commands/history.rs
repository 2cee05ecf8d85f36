//! `marvin history`: workloads over many kernels.

use report::history::{Key, Series, documents, history_json, history_text};
use web::{Snapshot, Source};

use crate::answer::Answer;
use crate::cli::{Arguments, History, HistoryFormat};
use crate::exit::{Exit, WrongInput};
use crate::home::store;

pub(crate) fn history(arguments: &Arguments, command: &History) -> anyhow::Result<Exit> {
    let answer = Answer::open(command.output.as_deref())?;
    let snapshot = read(arguments)?;
    let history = &snapshot.history;
    let (workload, metric) = match command.what.split_once(':') {
        Some((workload, metric)) => (workload, Some(metric)),
        None => (command.what.as_str(), None),
    };
    let is_meant = |key: &Key, series: &Series| {
        let is_named = *key.workload == *workload || key.workload.split('-').next() == Some(workload);
        is_named && metric.is_none_or(|metric| series.metric.name == metric)
    };
    let meant: Vec<Key> = history.series().filter(|(key, s)| is_meant(key, s)).map(|(key, _)| key.clone()).collect();
    if meant.is_empty() {
        return Err(WrongInput(unknown(&snapshot, (workload, metric))).into());
    }
    let fits = |key: &Key| meant.contains(key);
    let text = match command.format {
        HistoryFormat::Text => history_text(history, command.line, fits, &answer.styles(arguments.color)),
        HistoryFormat::Json => history_json(&documents(history, command.line, fits))?,
        HistoryFormat::Html => web::history_page(history, command.line, fits)?,
    };
    answer.write(&text)?;
    Ok(Exit::Fine)
}

/// Reads everything that the home holds.
pub(crate) fn read(arguments: &Arguments) -> anyhow::Result<Snapshot> {
    let mut source = Source::open(store(arguments)?)?;
    source.refresh()?;
    Ok(source.snapshot(1))
}

fn unknown(snapshot: &Snapshot, (workload, metric): (&str, Option<&str>)) -> String {
    let names = snapshot.history.workloads();
    let guess = super::measure::did_you_mean(names.iter().map(AsRef::as_ref), workload);
    let metric = metric.map_or_else(String::new, |metric| format!(" with a metric `{metric}`"));
    format!("nothing was measured of a workload or group `{workload}`{metric}{guess}; `marvin run` measures")
}
