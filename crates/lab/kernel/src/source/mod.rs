//! From a source to an image: git trees, working trees, Debian's source packages, and make.

mod cherry_pick;
mod commit_graph;
#[cfg(test)]
mod commit_order_tests;
mod compile_progress;
mod compiled;
mod condition;
mod conditional;
mod config;
pub(crate) mod deb_src;
mod described;
mod error;
mod git;
mod kbuild;
mod kernel_org;
mod line_table;
mod make;
pub(crate) mod module_folder;
mod needs;
mod program;
mod remote;
mod toolchain;
mod touching;
mod translation_unit;
mod work_tree;

pub use cherry_pick::{Authorship, Picked};
pub use commit_graph::{Commit, CommitGraph, LinePoint};
pub use compile_progress::BuildProgress;
pub use compiled::Compiled;
pub use conditional::LineNeeds;
pub(crate) use conditional::{CodeLine, LeftOutLines, code_lines, left_out};
pub use config::{Configuration, options as config_options};
pub(crate) use deb_src::{SourceFolders, import};
pub(crate) use described::Description;
pub use error::{RangeError, SourceError, TreeError};
pub(crate) use git::git as program;
#[cfg(test)]
pub(crate) use git::run_git;
pub use git::{Headline, Repository};
pub(crate) use kbuild::{module_of, options_of};
pub(crate) use kernel_org::import_tarball;
pub use line_table::{FunctionLines, LinePlace, LineSpan, LineTable};
pub use make::{BuildSeconds, SourceSettings};
pub(crate) use make::{MakeStep, Objects, first_error};
pub(crate) use needs::missing_for_options;
pub use needs::{HostNeeds, MissingNeeds, find_missing_needs};
pub(crate) use program::Program;
pub use remote::{is_commit_hash, remote_heads, remote_tags, tree_with_tag};
pub use toolchain::MakeOptions;
pub(crate) use toolchain::{Toolchain, X86};
pub use touching::{commits_touching, revision_of};
pub(crate) use work_tree::WorkTree;
