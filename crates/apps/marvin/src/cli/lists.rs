//! Commands that list what there is, and their output formats.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Measure, Noisy, whole};
use crate::completion;

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For terminals and mails
    Text,
    /// All data, for programs
    Json,
}

/// Output options of a list.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ListFormat::Text)]
    pub(crate) format: ListFormat,
}

/// `marvin runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// List at most N runs
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = whole::<u32>(1, u64::from(u32::MAX)))]
    pub(crate) limit: u32,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// `marvin doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `marvin machines`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Machines {
    #[command(subcommand)]
    pub(crate) command: Option<MachinesCommand>,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// A subcommand of `marvin machines`.
#[derive(Debug, Subcommand)]
pub(crate) enum MachinesCommand {
    /// Check whether a machine can measure, and print what to mend and how much its boots scatter
    Check(Box<MachinesCheck>),
}

/// `marvin machines check`.
#[derive(Debug, Args)]
pub(crate) struct MachinesCheck {
    /// Its name: vm, local, or a [[machine]] of marvin.toml
    pub(crate) name: String,

    /// Kernel to measure --boots times first; without it the boots count that are stored
    #[arg(add = completion::kernel())]
    pub(crate) kernel: Option<String>,

    /// Accept the changed hardware of a server: from now on it is what it is now
    #[arg(long, conflicts_with = "kernel")]
    pub(crate) accept: bool,

    #[command(flatten)]
    pub(crate) measure: Measure,

    #[command(flatten)]
    pub(crate) noisy: Noisy,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// `marvin kernels`.
#[derive(Debug, Args)]
#[command(after_help = super::KERNELS.trim_end())]
pub(crate) struct Kernels {
    /// Kernel name to look up, such as deb:6.1; without it all kernels that apt offers
    #[arg(add = completion::kernel())]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// `marvin workloads`.
#[derive(Debug, Args)]
pub(crate) struct Workloads {
    /// List only this suite
    #[arg(long, value_name = "SUITE", add = completion::suite())]
    pub(crate) suite: Option<String>,

    /// Measure the suite contention on this kernel with other costs of scheduling, and list how
    /// much that changes
    #[arg(long, value_name = "KERNEL", add = completion::kernel())]
    pub(crate) sensitivity: Option<String>,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// `marvin tools`.
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Also list the external tool of this manifest (docs/tools.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output,
}
