//! The command line of what is done with results as they are kept: taking them elsewhere, and letting go of them.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};

use crate::export::Rows;

const EXPORT_EXAMPLES: &str = "Examples:
  marvin export --format parquet -o samples.parquet
  marvin export --rows results --workload fault --kernel 6.12 > faults.csv

docs/export.md has the columns with their types and units.";

/// `marvin export`.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct Export {
    /// What a row is of
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Rows::Samples)]
    pub(crate) rows: Rows,

    /// How the table is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ExportFormat::Csv)]
    pub(crate) format: ExportFormat,

    /// Write it to a file rather than to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Only these workloads or groups of them, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) workload: Vec<String>,

    /// Only kernels of these versions, or whose versions begin so up to a dot, separated by commas
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    pub(crate) kernel: Vec<String>,

    /// Only runs of this suite
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<String>,

    /// Only the newest runs, at most so many of those that fit
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Comma-separated, as in RFC 4180
    Csv,
    /// JSON, one object a line
    Jsonl,
    /// Apache Parquet
    Parquet,
}

const GC_HELP: &str =
    "A run is replaced when a later one of the same build, machine, suite and seed did all that it did. What a report,
a comparison or a decision about an alert refers to is always kept.

Examples:
  marvin gc --dry-run
  marvin gc --older-than 90 --artefacts-older-than 365";

/// `marvin gc`.
#[derive(Debug, Args)]
#[command(after_help = GC_HELP)]
pub(crate) struct Gc {
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Replaced runs go that began more than so many days ago
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = value_parser!(u32).range(0..=36_500))]
    pub(crate) older_than: u32,

    /// Artefacts (consoles, profiles, copies of monitors) go of runs that began more than so many days ago
    #[arg(long, value_name = "DAYS", value_parser = value_parser!(u32).range(0..=36_500))]
    pub(crate) artefacts_older_than: Option<u32>,

    /// Artefacts of the oldest runs go until all take at most so many MiB
    #[arg(long, value_name = "MIB")]
    pub(crate) artefacts_mib: Option<u32>,
}
