//! The part of the command line for what goes on by itself: watching, working, the queue, marvin.toml.

use clap::{Args, Subcommand, value_parser};

/// `marvin config`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Config {
    /// Say whether marvin.toml makes sense; where not, at which line and column
    Check,
    /// Show what it asks
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
    /// Stay, and look again so often: 30m, 1h, 1d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) every: Option<u64>,
}

fn seconds(text: &str) -> Result<u64, String> {
    lab::seconds(text).ok_or_else(|| "expected a time such as 90s, 30m, 2h or 1d".into())
}

/// `marvin work`.
#[derive(Debug, Args)]
pub(crate) struct Work {
    /// End when no job is free
    #[arg(long)]
    pub(crate) once: bool,

    /// Do this one job here, and say in one line what came of it: what a worker starts for each job
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub(crate) carry_out: Option<u64>,
}

/// `marvin queue`.
#[derive(Debug, Subcommand)]
pub(crate) enum Queue {
    /// List what waits and runs, in the order in which it is done
    List(QueueList),
    /// Queue a kernel, or queue it again
    Add(QueueAdd),
    /// Do not do a job; one that runs is ended
    Cancel {
        /// Its number
        job: u64,
    },
    /// Put a job elsewhere in the queue
    Move(QueueMove),
    /// Show one job in full, and why it is where it is
    Why {
        /// Its number
        job: u64,
    },
}

/// `marvin queue list`.
#[derive(Debug, Args)]
pub(crate) struct QueueList {
    /// Also those that are over, the newest first
    #[arg(long)]
    pub(crate) all: bool,
}

const ADD_EXAMPLES: &str = "Examples:
  marvin queue add deb:6.12 --workload fault,fork
  marvin queue add git:v6.12 --tree stable --priority 500";

/// `marvin queue add`.
#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub(crate) struct QueueAdd {
    /// Kernel to measure
    pub(crate) kernel: String,

    /// Tree of marvin.toml that a git: name belongs to
    #[arg(long, value_name = "NAME")]
    pub(crate) tree: Option<String>,

    /// Suite to measure
    #[arg(long, value_name = "SUITE", default_value = "micro")]
    pub(crate) suite: String,

    /// Only these workloads or groups of them, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) workload: Vec<String>,

    /// Seeds, one run each
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,

    /// Jobs of higher priority are done first; plans have 100 unless told
    #[arg(long, value_name = "N", default_value_t = 200, allow_negative_numbers = true)]
    pub(crate) priority: i64,
}

/// `marvin queue move`.
#[derive(Debug, Args)]
pub(crate) struct QueueMove {
    /// Its number
    pub(crate) job: u64,

    /// Where to: first, last, or a priority
    pub(crate) place: String,
}
