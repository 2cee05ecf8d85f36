//! Resolves kernel names to bootable builds: Debian packages, files, sources, the build cache.
//!
//! `deb:`, `ubuntu:`, `fedora:` and `arch:` names select from the current lists of a distribution's
//! archive (`archives` fetches them), `installed:` names an image of this host, `path:` a file;
//! `git:`, `tree:`, `deb-src:` and `kernel.org:` name sources, which are built (`source/`). The result is a directory of the build
//! cache, named by the hash of the image. `model` parses names, the callers show progress and
//! choose the data directory, `machine` boots.

mod applied;
mod benchmarks;
mod between;
mod bounded;
mod build_dir;
mod bytes;
mod bzimage;
mod cache;
mod catalogue;
mod changed_lines;
mod code;
mod companion_files;
mod coverage;
mod distributions;
mod elf;
mod error;
mod folder;
mod from_source;
mod function_changes;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod image;
mod installed;
mod maintainers;
mod modules;
mod packages;
mod patch_mail;
mod patches;
mod payload;
mod picking;
mod running;
mod scratch;
mod shared_builds;
mod source;
mod sources;
mod suggestions;
mod tree_file;
mod unified;
mod userland;
mod widen;

pub use applied::{BaseHow, SeriesBase};
pub use benchmarks::{
    Benchmark, BenchmarkKind, ModuleSource, ProgramSource, SourceText, find_benchmarks,
};
pub use between::{ReleaseBetween, releases_between};
pub use cache::{BuildCache, BuildEvent};
pub use catalogue::{Offer, all_offers, offers};
pub use changed_lines::ChangedLines;
pub use code::CodeBytes;
pub use coverage::{Coverage, LinesLeftOut, NotCompiled, WhyNot};
pub use error::{KernelError, PackageError};
pub use from_source::Sources;
pub use function_changes::FunctionChanges;
pub use image::ImageFault;
pub use installed::{InstalledImage, find_installed};
pub use maintainers::{Addressees, addressees_of, plain_address};
pub use modules::{Module, is_built_in, modules, option};
pub use patches::{
    ChangedFile, Cover, DiffFault, FileChange, Fixes, Identifiers, MailHead, Patch, PatchesError,
    Position, TouchedFunction, read_mail_text, read_patches,
};
pub use scratch::Scratch;
pub use source::{
    Authorship, BuildProgress, BuildSeconds, Commit, CommitGraph, Compiled, Configuration,
    FunctionLines, Headline, HostNeeds, LineNeeds, LinePlace, LinePoint, LineSpan, LineTable,
    MakeOptions, MissingNeeds, Picked, RangeError, Repository, SourceError, SourceSettings,
    TreeError,
};
pub use source::{
    commits_touching, config_options, find_missing_needs, is_commit_hash, remote_heads,
    remote_tags, revision_of, tree_with_tag,
};
pub use sources::{Inlines, source_places};
pub use tree_file::TreeFile;
pub use userland::{Resolved, USERLAND_FACTS, Userland, UserlandFile, Wanted};
pub use widen::Widened;
