//! Options for commands that search among many kernels.

use clap::Args;

use super::whole;

/// Options for how a search measures kernels.
#[derive(Debug, Args)]
pub(crate) struct SearchOptions {
    /// Measure again, even if results exist
    #[arg(long)]
    pub(crate) force: bool,

    /// Run up to N machines in parallel [default: 2, or 1 on a host with one processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 64))]
    pub(crate) jobs: Option<u16>,
}
