//! `marvin export`: stored results as a table for notebooks.

use anyhow::Context;
use results::export::{Exported, Rows, csv, json_lines, parquet, table};
use store::Store;

use crate::answer::Answer;
use crate::cli::{Arguments, Export, ExportFormat, ExportRows};
use crate::exit::{Exit, WrongInput};
use crate::home::store;

pub(crate) fn export(arguments: &Arguments, command: &Export) -> anyhow::Result<Exit> {
    let answer = Answer::open(command.output.as_deref())?;
    let store = Store::open_read_only(store(arguments)?)?;
    let of_version = |version: &str| {
        let begins = |word: &String| {
            version
                .strip_prefix(word.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        command.kernel.is_empty() || command.kernel.iter().any(begins)
    };
    let mut summaries = store.runs(usize::MAX)?;
    summaries.retain(|run| {
        of_version(&run.version)
            && command
                .suite
                .as_ref()
                .is_none_or(|suite| *suite == run.suite)
    });
    summaries.truncate(command.limit.unwrap_or(usize::MAX));
    // Oldest first, as notebooks plot them.
    summaries.reverse();
    let mut runs = Vec::with_capacity(summaries.len());
    for summary in summaries {
        runs.push(Exported {
            run: store.run(&summary.id)?,
            kernel: summary.kernel.to_string(),
            version: summary.version,
            machine_kind: store.machine(&summary.machine)?.kind,
        });
    }
    let fits = |name: &str| {
        let meant = |word: &String| word == name || name.split('-').next() == Some(word.as_str());
        command.workload.is_empty() || command.workload.iter().any(meant)
    };
    let rows = match command.rows {
        ExportRows::Runs => Rows::Runs,
        ExportRows::Results => Rows::Results,
        ExportRows::Samples => Rows::Samples,
    };
    let table = table(&runs, rows, fits);
    if table.rows.is_empty() {
        return Err(WrongInput(
            "no stored run matches: `marvin runs` lists stored runs".to_owned(),
        )
        .into());
    }
    match command.format {
        ExportFormat::Csv => answer.write(csv(&table))?,
        ExportFormat::Jsonl => answer.write(json_lines(&table))?,
        ExportFormat::Parquet => {
            answer.write_bytes(&parquet(&table).context("cannot compress the table")?)?;
        }
    }
    Ok(Exit::Fine)
}
