//! Commands of continuous operation: `observe_stored`, `work`, `queue`, `config`.

use clap::{Args, Subcommand};

use super::{Output, whole};
use crate::completion;

/// `marvin config`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Config {
    /// Check marvin.toml; print line and column of each mistake
    Check,
    /// Show the settings of marvin.toml
    Show,
    /// Print the JSON schema of marvin.toml, for editors
    Schema,
}

const WATCH_EXAMPLES: &str = "Examples:
  marvin watch
  marvin watch --every 1h
  marvin work --once";

/// `marvin watch`.
#[derive(Debug, Args)]
#[command(after_help = WATCH_EXAMPLES)]
pub(crate) struct Watch {
    /// Keep running and check again every TIME: 30m, 1h, 1d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) every: Option<u64>,
}

/// Parses a time, in seconds.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    lab::seconds(text)
        .ok_or_else(|| "expected a time such as 90s, 30m, 2h or 1d, at most a year".into())
}

const WORK_EXAMPLES: &str = "Examples:
  marvin work
  marvin work --on testbox
  marvin work --via slurm --store postgres://lab@db.lab/marvin";

/// A batch system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Via {
    // Comments and no documentation, which would make the help of all options twice as long. It
    // is [slurm] of marvin.toml.
    Slurm,
    // Another one: [batch] of marvin.toml.
    Batch,
}

/// `marvin work`.
#[derive(Debug, Args)]
#[command(after_help = WORK_EXAMPLES)]
pub(crate) struct Work {
    /// Exit when the queue has no free job
    #[arg(long)]
    pub(crate) once: bool,

    /// Send jobs to this batch system of marvin.toml, and follow them, instead of running them on
    /// this host
    #[arg(long, value_name = "SYSTEM")]
    pub(crate) via: Option<Via>,

    /// Run this one job of the queue as its worker; a batch job does
    #[arg(long, value_name = "NUMBER", hide = true, conflicts_with_all = ["via", "execute"])]
    pub(crate) take: Option<u64>,

    /// Take only jobs of these machines, separated by commas; default: exact and all of
    /// marvin.toml
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) on: Vec<String>,

    /// Run this one job and print one line with its result; a worker starts this for each job
    #[arg(long, alias = "carry-out", value_name = "NUMBER", hide = true)]
    pub(crate) execute: Option<u64>,
}

/// `marvin queue`.
#[derive(Debug, Subcommand)]
pub(crate) enum Queue {
    /// List waiting and running jobs in the order of execution
    List(QueueList),
    /// Queue or requeue a kernel
    Add(QueueAdd),
    /// Cancel a job; Marvin kills a running one
    Cancel {
        /// Job number
        #[arg(add = completion::job())]
        job: u64,
    },
    /// Move a job in the queue
    Move(QueueMove),
    /// Show one job in full and the reason for its position
    Why {
        /// Job number
        #[arg(add = completion::job())]
        job: u64,

        #[command(flatten)]
        output: Output,
    },
}

/// `marvin queue list`.
#[derive(Debug, Args)]
pub(crate) struct QueueList {
    /// Also list finished jobs, newest first
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: Output,
}

const ADD_EXAMPLES: &str = "Examples:
  marvin queue add deb:6.12 --workload fault,fork
  marvin queue add git:v6.12 --tree stable --priority 500
  marvin queue add deb:6.12 --on testbox";

/// `marvin queue add`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub(crate) struct QueueAdd {
    /// Kernel to measure
    #[arg(add = completion::kernel())]
    pub(crate) kernel: String,

    /// Tree of marvin.toml for a git: name
    #[arg(long, value_name = "NAME")]
    pub(crate) tree: Option<String>,

    /// Suite to measure
    #[arg(long, value_name = "SUITE", default_value = "micro", add = completion::suite())]
    pub(crate) suite: String,

    /// Measure only these workloads or groups, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', add = completion::workload())]
    pub(crate) workload: Vec<String>,

    /// Number of seeds, or of boots of a server; each is one run
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<u64>(1, 1000))]
    pub(crate) seeds: u64,

    /// Machine: exact, or one of marvin.toml
    #[arg(long, value_name = "NAME", default_value = "exact")]
    pub(crate) on: String,

    /// Priority: higher runs first; plans have 100 by default
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        allow_negative_numbers = true
    )]
    pub(crate) priority: i64,
}

/// `marvin queue move`.
#[derive(Debug, Args)]
pub(crate) struct QueueMove {
    /// Job number
    #[arg(add = completion::job())]
    pub(crate) job: u64,

    /// New position: first, last, or a priority
    pub(crate) place: String,
}
