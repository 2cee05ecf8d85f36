//! Commands that build kernels from their sources: `build`, `bisect`, `series`.

use std::path::PathBuf;

use clap::{Args, value_parser};

use super::{KERNELS, Measure, SourceWords, margin};

/// `marvin build`.
#[derive(Debug, Args)]
#[command(after_help = KERNELS.trim_end())]
pub(crate) struct Build {
    /// Kernel to build, or to fetch
    pub(crate) kernel: String,

    #[command(flatten)]
    pub(crate) sources: SourceWords,

    /// Compilers at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

const BISECT_EXAMPLES: &str = "Examples:
  marvin bisect v6.12.115 v6.12.117 --tree linux --workload fault-anon
  marvin bisect HEAD~20 HEAD --tree linux --workload pipe --mail regression.txt";

/// `marvin bisect`.
#[derive(Debug, Args)]
#[command(after_help = BISECT_EXAMPLES)]
pub(crate) struct Bisect {
    /// Older commit, before the change
    pub(crate) good: String,

    /// Newer commit, after it; better or worse
    pub(crate) bad: String,

    /// Workload that shows it, one
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: String,

    /// Suite that the workload is of
    #[arg(long, value_name = "SUITE", default_value = "micro")]
    pub(crate) suite: String,

    #[command(flatten)]
    pub(crate) sources: SourceWords,

    /// Seeds with which each commit is measured; all must agree that a commit made a difference
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,

    /// A step up to this many percent is none [default: a quarter of the difference, at most the metric's own margin]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Measure this many parts of the range first, to see steps that cancel each other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) parts: u16,

    /// Most runs of a chaotic workload in all: of these each seed is a run, and as many are taken as it needs to be sure
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = value_parser!(u16).range(20..=50_000))]
    pub(crate) runs: u16,

    /// How much builds of one source differ in a chaotic workload whatever is run: variance, in variances of a run
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(crate) build_variance: f64,

    /// Do not take what is found back on top of BAD to confirm it
    #[arg(long)]
    pub(crate) no_revert: bool,

    /// Only say what there is to be searched, and what it may cost
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Measure again what was measured already
    #[arg(long)]
    pub(crate) force: bool,

    /// Machines at the same time [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) jobs: Option<u16>,

    /// Also write a mail for the list, if something became worse
    #[arg(long, value_name = "FILE")]
    pub(crate) mail: Option<PathBuf>,

    /// Write the report to a file rather than to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

const SERIES_EXAMPLES: &str = "Examples:
  marvin series origin/master..HEAD --tree linux
  marvin series v6.12^..v6.12 --tree linux --workload fault,fork";

/// `marvin series`.
#[derive(Debug, Args)]
#[command(after_help = SERIES_EXAMPLES)]
pub(crate) struct Series {
    /// Commits, OLDER..NEWER: those that NEWER has and OLDER has not; A^..B has A too. Merges count as one
    #[arg(value_name = "RANGE")]
    pub(crate) range: String,

    #[command(flatten)]
    pub(crate) measure: Measure,

    /// Seeds: boots and runs that are disturbed on purpose, to see what depends on layout or timing
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,

    /// Differences up to this many percent are no news [default: each metric's own, 1 for the micro suite]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Write the table to a file rather than to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1000.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1000".into()),
    }
}
