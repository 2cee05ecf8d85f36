//! Options for kernels that Marvin builds.

use std::path::PathBuf;

use clap::Args;

use crate::completion;

/// Options for kernels that Marvin builds.
#[derive(Debug, Args)]
pub(crate) struct SourceOptions {
    /// Git tree for git: and patch: names: a directory, or a tree's name in marvin.toml [default:
    /// the only directory there]
    #[arg(long, value_name = "TREE", add = completion::tree_name())]
    pub(crate) tree: Option<PathBuf>,

    /// Kernel config for kernels that Marvin builds: default, tiny, smp, small, defconfig, running, or
    /// a file with a .config or lines on top of tinyconfig; more on top with +: tiny+debug.config+MEMCG=y
    /// [default: that of the tree in marvin.toml, or default]
    #[arg(long, value_name = "CONFIG", add = completion::configuration())]
    pub(crate) config: Option<String>,

    /// Take the .config of a directory that make built a kernel in; Marvin only reads there
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub(crate) build_dir: Option<PathBuf>,

    /// Compiler for kernels that Marvin builds: gcc-12, clang-19 or a path [default: gcc]
    #[arg(long, value_name = "COMPILER")]
    pub(crate) cc: Option<String>,

    /// Variables for make: 'LLVM=1 KCFLAGS="-O3 -g"'; after those of marvin.toml
    #[arg(long, value_name = "VARIABLE=VALUE", allow_hyphen_values = true)]
    pub(crate) make_args: Vec<String>,
}

impl SourceOptions {
    /// Returns the kernel config as the user named it.
    pub(crate) fn named_config(&self) -> Option<String> {
        let of_build_dir = self
            .build_dir
            .as_ref()
            .map(|folder| folder.join(".config").display().to_string());
        self.config.clone().or(of_build_dir)
    }

    /// Returns the options that choose compiler and variables, for another command.
    pub(crate) fn make_options(&self) -> Vec<String> {
        let cc = self.cc.iter().map(|cc| ("--cc", cc));
        let arguments = self.make_args.iter().map(|words| ("--make-args", words));
        cc.chain(arguments)
            .flat_map(|(option, value)| [option.to_owned(), value.clone()])
            .collect()
    }

    /// Returns the same for a shell, with a space before each.
    pub(crate) fn make_options_text(&self) -> String {
        self.make_options()
            .iter()
            .map(|word| {
                if word.contains([' ', '"', '\'']) {
                    format!(" '{}'", word.replace('\'', "'\\''"))
                } else {
                    format!(" {word}")
                }
            })
            .collect()
    }
}
