//! Commands on stored results: `export`, `gc` and `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Output, whole};
use crate::completion;

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
pub(crate) struct Export {
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

const GC_HELP: &str = "A run is superseded when a later run of the same build, machine, suite and seed has all its
workloads. Runs that a report, a comparison or a triage decision refers to are always kept, and so
are imported runs. An image of a distribution is unused when no server runs it and it is not the newest of an [[image]] in
marvin.toml.

Examples:
  marvin gc --dry-run
  marvin gc --older-than 90 --artefacts-older-than 365";

/// `marvin gc`.
#[derive(Debug, Args)]
#[command(after_help = GC_HELP)]
pub(crate) struct Gc {
    /// List what gc would delete, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Delete superseded runs older than DAYS days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = whole::<u32>(0, 36_500))]
    pub(crate) older_than: u32,

    /// Delete artifacts (consoles, profiles, monitor copies) of runs older than DAYS days
    #[arg(long, value_name = "DAYS", value_parser = whole::<u32>(0, 36_500))]
    pub(crate) artefacts_older_than: Option<u32>,

    /// Delete artifacts of the oldest runs until all artifacts take at most MIB MiB
    #[arg(long, value_name = "MIB")]
    pub(crate) artefacts_mib: Option<u32>,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// `marvin store`.
#[derive(Debug, Subcommand)]
pub(crate) enum Stored {
    /// Upgrade a store on a server to this Marvin's schema; older programs cannot use it any more
    /// then
    Upgrade,
}
