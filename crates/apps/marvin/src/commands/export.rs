//! `marvin export`: stored results as a table for notebooks.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use results::export::{Exported, Rows, csv, json_lines, parquet, table};

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::session::Session;

const EXPORT_EXAMPLES: &str = "Examples:
  marvin export --format parquet -o samples.parquet
  marvin export --rows results --workload fault --kernel 6.12 > faults.csv

docs/export.md has the columns with their types and units.";

/// What a row of an export has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportRows {
    /// A run
    Runs,
    /// A workload of a run
    Results,
    /// An iteration of a workload
    Samples,
}

/// `marvin export`.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArguments {
    /// Row content
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = ExportRows::Samples)]
    pub(crate) rows: ExportRows,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ExportFormat::Csv)]
    pub(crate) format: ExportFormat,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Export only these workloads or groups, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    /// Export only these kernel versions, separated by commas; 6.12 includes 6.12.1
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    pub(crate) kernel: Vec<String>,

    /// Export only runs of this suite
    #[arg(long, value_name = "SUITE", add = completion::suite())]
    pub(crate) suite: Option<String>,

    /// Export at most N runs, the newest
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Output format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Comma-separated, as in RFC 4180
    Csv,
    /// JSON, one object a line
    Jsonl,
    /// Apache Parquet
    Parquet,
}

impl ExportArguments {
    /// Returns whether `--kernel` selects a version: by all of it, or its beginning up to a dot.
    fn has_kernel(&self, version: &str) -> bool {
        let mut kernels = self.kernel.iter();
        self.kernel.is_empty()
            || kernels.any(|word| {
                version
                    .strip_prefix(word.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
    }

    /// Returns whether `--workload` selects a workload, by its name or its group.
    fn has_workload(&self, name: &str) -> bool {
        let group = name.split('-').next();
        let mut workloads = self.workload.iter();
        self.workload.is_empty()
            || workloads.any(|word| word == name || group == Some(word.as_str()))
    }
}

pub(crate) fn export(session: &Session, command: &ExportArguments) -> anyhow::Result<Exit> {
    let answer = session.answer(command.output.as_deref())?;
    let store = session.open_store_read_only()?;
    let mut summaries = store.runs(usize::MAX)?;
    summaries.retain(|run| {
        command.has_kernel(&run.version)
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
    let rows = match command.rows {
        ExportRows::Runs => Rows::Runs,
        ExportRows::Results => Rows::Results,
        ExportRows::Samples => Rows::Samples,
    };
    let table = table(&runs, rows, |name| command.has_workload(name));
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
