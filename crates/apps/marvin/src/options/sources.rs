//! Options for kernels that Marvin builds.

use std::path::PathBuf;

use clap::Args;

/// Options for kernels that Marvin builds.
#[derive(Debug, Args)]
pub(crate) struct SourceOptions {
    /// Git tree for git: and patch: names: a directory, or a tree's name in marvin.toml [default:
    /// the only directory there]
    #[arg(long, value_name = "TREE")]
    pub(crate) tree: Option<PathBuf>,

    /// Kernel config for kernels that Marvin builds: micro, smp, small, or a file with a .config
    /// or lines on top of tinyconfig [default: that of the tree in marvin.toml, or micro]
    #[arg(long, value_name = "CONFIG")]
    pub(crate) config: Option<String>,
}
