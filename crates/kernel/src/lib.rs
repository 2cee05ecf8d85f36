//! From the name of a kernel to a build of it that can be booted: Debian packages, files, sources, the build cache.
//!
//! `deb:` names stand for what apt offers at the moment, `path:` names for a file; `git:`, `tree:` and `deb-src:` names for
//! sources, which are built (`source/`). Either ends in a folder of the
//! build cache whose name is the hash of what is booted. How a name is written is `model`'s work, drawing progress
//! and choosing the home folder is the callers', booting is `machine`'s.

mod apt;
mod beside;
mod bytes;
mod bzimage;
mod cache;
mod catalogue;
mod elf;
mod error;
mod folder;
mod from_source;
mod image;
mod modules;
mod nearest;
mod payload;
mod scratch;
mod source;
mod sources;
mod userland;
mod version;

pub use apt::package_versions;
pub use cache::{BuildCache, Step};
pub use catalogue::{DebFile, Offer, all_offers, offers};
pub use error::KernelError;
pub use from_source::Sources;
pub use image::ImageFault;
pub use modules::{Module, is_built_in, modules};
pub use source::{
    BuildSeconds, Commit, CommitGraph, Compiled, Configuration, Headline, LinePoint, Repository, SourceError,
    SourceSettings,
};
pub use source::{remote_tags, tree_with_tag};
pub use sources::{Inlines, source_places};
pub use userland::{Resolved, Userland, UserlandFile, Wanted};
