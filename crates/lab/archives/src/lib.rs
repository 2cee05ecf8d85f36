//! Package archives of distributions: fetches their signed lists and packages over HTTP, verifies
//! them, and unpacks packages without root.
//!
//! An installed apt or dpkg is not needed. `kernel` knows which package is a kernel, `machine`
//! which ones make its QEMU; the callers choose the data directory and say what time it is.

mod address;
mod ar;
mod arch;
mod collect;
mod connection;
mod cpio;
mod debian;
mod error;
mod fedora;
mod fetch;
mod fresh;
mod hashing;
mod http;
mod kernel_org;
mod keyring;
mod layout;
mod linked;
mod lists;
mod maintainer;
mod notices;
mod openpgp;
mod packed;
mod packets;
mod proxy;
mod release;
mod repodata;
mod resolve;
mod root;
mod rpm;
mod sources;
mod stanza;
mod tar;
mod unpack;
mod version;
mod zstd_tar;

pub use arch::Arch;
pub use collect::{Collected, collect};
pub use debian::{Debian, KnownPackage, Package, Stanzas};
pub use error::ArchiveError;
pub use fedora::Fedora;
pub use fetch::fetch_file;
pub use hashing::{sha256, sha256_of_file};
pub use kernel_org::{KernelOrg, SourceVersion, Tarball};
pub use linked::{Linked, parse_linking};
pub use maintainer::package_maintainer;
pub use notices::ListNotice;
pub use packed::{PackedFile, Packer, open_packed, pack};
pub use resolve::Needed;
pub use root::Root;
pub use sources::Archives;
pub use stanza::field;
pub use tar::{Archive, Entry, EntryKind, Paths};
pub use unpack::{unpack, unpack_deb};
pub use version::{Key, debian_version, key, numbers, upstream};
pub use zstd_tar::{open_zstd, pack_zstd};
