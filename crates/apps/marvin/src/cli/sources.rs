//! Commands that build kernels from source: `build`, `bisect`, `series`.

use std::path::PathBuf;

use clap::Args;

use super::{EXACT_SMP, KERNELS, Measure, Output, Via, margin, whole};
use crate::completion;

/// Options for kernels that Marvin builds.
#[derive(Debug, Args)]
pub(crate) struct SourceWords {
    /// Git tree for git: and patch: names: a directory, or a tree's name in marvin.toml [default:
    /// the only directory there]
    #[arg(long, value_name = "TREE")]
    pub(crate) tree: Option<PathBuf>,

    /// Kernel config for kernels that Marvin builds: micro, smp, small, or a file with a .config
    /// or lines on top of tinyconfig [default: that of the tree in marvin.toml, or micro]
    #[arg(long, value_name = "CONFIG")]
    pub(crate) config: Option<String>,
}

/// Options for one comparison on several hosts.
#[derive(Debug, Args)]
pub(crate) struct Spread {
    /// Boot each kernel and seed in a job of this batch system of marvin.toml, instead of all on
    /// this host
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) via: Option<Via>,
}

/// The part of a comparison that another host has asked for.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// Use the build of this hash that hosts share
    #[arg(long, value_name = "HASH", hide = true)]
    pub(crate) build: Option<String>,

    /// Run this seed
    #[arg(long, value_name = "N", hide = true, conflicts_with = "seeds")]
    pub(crate) seed: Option<u64>,
}

/// `marvin build`.
#[derive(Debug, Args)]
#[command(after_help = KERNELS.trim_end())]
pub(crate) struct Build {
    /// Kernel to build or fetch
    #[arg(add = completion::kernel())]
    pub(crate) kernel: String,

    #[command(flatten)]
    pub(crate) sources: SourceWords,

    /// Run up to N compilers in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 1024))]
    pub(crate) jobs: Option<u16>,

    #[command(flatten)]
    pub(crate) output: Output,
}

const BISECT_EXAMPLES: &str = "Examples:
  marvin bisect v6.12.115 v6.12.117 --tree linux --workload fault-anon
  marvin bisect HEAD~20 HEAD --tree linux --workload pipe --mail regression.txt";

/// `marvin bisect`.
#[derive(Debug, Args)]
#[command(after_help = BISECT_EXAMPLES)]
pub(crate) struct Bisect {
    /// Older commit, without the change
    pub(crate) good: String,

    /// Newer commit, with the change; may be better or worse
    pub(crate) bad: String,

    /// Workload that shows the change
    #[arg(long, value_name = "NAME", add = completion::workload())]
    pub(crate) workload: String,

    /// Suite of the workload
    #[arg(long, value_name = "SUITE", default_value = "micro", add = completion::suite())]
    pub(crate) suite: String,

    /// Machine to measure on: exact, or exact-smp for the suite contention
    #[arg(long, value_name = "MACHINE", default_value = "exact", value_parser = ["exact", EXACT_SMP])]
    pub(crate) on: String,

    /// Processors of exact-smp [default: 2]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2, 4))]
    pub(crate) cpus: Option<u32>,

    #[command(flatten)]
    pub(crate) sources: SourceWords,

    /// Number of seeds per commit; a commit is a culprit only if all seeds show a difference
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<u64>(1, 100))]
    pub(crate) seeds: u64,

    /// Threshold in percent: ignore smaller steps [default: a quarter of the difference, at most
    /// the metric's threshold]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Measure N parts of the range first, to find steps that cancel each other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u16>(1, 1024))]
    pub(crate) parts: u16,

    /// Run a noisy workload at most N times in total; Marvin stops earlier when the result is
    /// certain enough
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = whole::<u16>(20, 50_000))]
    pub(crate) runs: u16,

    /// Variance between builds of a noisy workload, as a share of the variance between runs
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(crate) build_variance: f64,

    /// Do not revert culprits on top of BAD to confirm them
    #[arg(long)]
    pub(crate) no_revert: bool,

    /// Print the commits to search and the estimated cost, and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Measure again, even if results exist
    #[arg(long)]
    pub(crate) force: bool,

    /// Run up to N machines in parallel [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 64))]
    pub(crate) jobs: Option<u16>,

    /// Have jobs of this batch system of marvin.toml build and measure the commits that may come
    /// next
    #[arg(long, value_name = "SYSTEM", conflicts_with = "force")]
    pub(crate) via: Option<Via>,

    /// Measure up to N commits in the batch system at once [default: 6 if that makes the bisection
    /// shorter, else none]
    #[arg(long, value_name = "N", requires = "via", value_parser = whole::<u16>(1, 64))]
    pub(crate) nodes: Option<u16>,

    /// Also write a mail for the kernel's lists, if the workload regressed
    #[arg(long, value_name = "FILE")]
    pub(crate) mail: Option<PathBuf>,

    /// Write the report to a file instead of standard output
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
    /// Commits OLDER..NEWER, along first parents; A^..B includes A
    #[arg(value_name = "RANGE")]
    pub(crate) range: String,

    #[command(flatten)]
    pub(crate) measure: Measure,

    /// Number of boots with different seeds; a seed perturbs layout and timing, to show what
    /// depends on them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<u64>(1, 1000))]
    pub(crate) seeds: u64,

    /// Threshold in percent: smaller differences count as same [default: that of the metric; 1 for
    /// suite micro]
    #[arg(long, value_name = "PERCENT", value_parser = margin, allow_negative_numbers = true)]
    pub(crate) margin: Option<f64>,

    /// Write the table to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1000.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1000".into()),
    }
}
