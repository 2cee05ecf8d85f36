//! The command line of `marvin explain`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use model::CostModel;

use super::{Format, Measure, On, whole};
use crate::completion;

pub(crate) const EXPLAIN_EXAMPLES: &str = "Examples:
  marvin explain -- ./benchmark --threads 8
  marvin explain --verify --rate rec/s -- ./benchmark
  marvin explain --pid 4711 --seconds 5
  marvin explain deb:6.12 --workload fault-anon
  marvin explain deb:6.1 deb:6.12 --workload fault-anon";

/// How long a process is observed (s).
pub(crate) const SECONDS: u32 = 30;

/// Returns the number of seeds that counting needs: a model depends on the layout of memory.
pub(crate) fn seeds_for(model: Option<&CostModel>) -> u64 {
    if model.is_some() { 4 } else { 1 }
}

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct Explain {
    /// One kernel: where the time of a workload goes; two: why the second is slower or faster
    #[arg(add = completion::kernel(), num_args = 0..=2, value_name = "KERNEL", conflicts_with_all = ["pid", "command"])]
    pub(crate) kernels: Vec<String>,

    /// Command to run and observe; its output goes to standard error
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// Observe a running process and its children
    #[arg(long, conflicts_with = "command")]
    pub(crate) pid: Option<u32>,

    /// Observe for at most N seconds, and end a command that runs longer [default: a command to
    /// its end, a process 30]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 86400))]
    pub(crate) seconds: Option<u32>,

    /// If the suspect can be switched off, run the command with and without it, in turns
    #[arg(long)]
    pub(crate) verify: bool,

    /// With --verify: compare the number before TEXT in the command's output, such as rec/s,
    /// instead of its duration
    #[arg(long, value_name = "TEXT", requires = "verify")]
    pub(crate) rate: Option<String>,

    /// With kernels, on the exact machine: also simulate a processor, as `marvin profile --model`
    /// does
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = CostModel::NAME,
          value_parser = CostModel::parse, requires = "kernels")]
    pub(crate) model: Option<CostModel>,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) on: On,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
