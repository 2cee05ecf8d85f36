//! Errors between an archive's address and a file from it, each with what to do.

use std::io;
use std::path::{Path, PathBuf};

use model::Fault;

const NETWORK_HINT: &str = "check the network, or set another `mirror` in marvin.toml";
/// What to do when something between this host and the server answers.
pub(crate) const PORTAL_HINT: &str = "open the address in a browser and log in to the network, set http_proxy if there is a proxy, or set another `mirror` in marvin.toml";

/// Why an archive did not give a file.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The network, a proxy or the server failed.
    #[error("cannot fetch {url}: {detail}\nhint: {}", .hint.unwrap_or(NETWORK_HINT))]
    Fetch {
        url: String,
        detail: String,
        /// What to do; `None` if nothing special.
        hint: Option<&'static str>,
    },
    /// The server does not give a file to this host.
    #[error(
        "cannot fetch {url}: the server answers with status {status}: it gives that to others only\nhint: set another `mirror` in marvin.toml; Marvin sends mirrors no login"
    )]
    Forbidden { url: String, status: u16 },
    /// A portal or a proxy answered in place of the server.
    #[error(
        "{url} is a web page (of a portal of the network, or of a proxy), not the file: nothing of it was kept\nhint: {PORTAL_HINT}"
    )]
    WebPage { url: String },
    /// The server has no such file.
    #[error("the archive has no {url}: it was removed or never there\nhint: {hint}")]
    Absent { url: String, hint: &'static str },
    /// A file is not the one that its signed list names.
    #[error(
        "{url} has SHA-256 {got}, but the archive's list says {expected}: the mirror is broken or lies, and nothing was kept\nhint: set another `mirror` in marvin.toml"
    )]
    Checksum {
        url: String,
        /// The hash in the list.
        expected: String,
        got: String,
    },
    /// A list that no trusted key has signed.
    #[error(
        "{url} is not signed by a key of {keyring}: {detail}\nhint: set another `mirror`, or the archive's own `keyring`, in marvin.toml"
    )]
    Signature {
        url: String,
        keyring: String,
        detail: String,
    },
    /// A signature by a key that is no longer valid.
    #[error(
        "{url} is signed by the key {key}, which expired on {ended}\nhint: {keyring} is old: set a newer `keyring` in marvin.toml; is this host's date right?"
    )]
    ExpiredKey {
        url: String,
        keyring: String,
        key: String,
        /// When its validity ended.
        ended: String,
    },
    /// A list of another suite, signed all the same.
    #[error(
        "{url} is the list of another suite: `{requested}` was requested, and it says {names}\nhint: name the suite as the archive does, or set another `mirror` in marvin.toml"
    )]
    OtherSuite {
        url: String,
        requested: String,
        /// Its own names.
        names: String,
    },
    /// A list that was made in the future.
    #[error(
        "{url} was signed at {made}, and this host's clock shows {now}\nhint: set this host's clock: `timedatectl`, or `date --set`"
    )]
    Early {
        url: String,
        made: String,
        now: String,
    },
    /// A list whose validity has ended, or that is older than one that was seen.
    #[error(
        "{url} is out of date: {detail}\nhint: the mirror may be stale or replayed by someone: set another address in marvin.toml (`mirror`, or `security`); is this host's date right?"
    )]
    Stale {
        url: String,
        detail: String,
        /// When it was valid last; `None` if it is only older than another one.
        ended: Option<String>,
    },
    /// A list or a package that is damaged.
    #[error("{what} is damaged: {detail}\nhint: try again, or set another `mirror` in marvin.toml")]
    Damaged { what: String, detail: String },
    /// A list or a package in a form that Marvin does not read.
    #[error(
        "cannot read {what}: {detail}\nhint: set another `mirror` in marvin.toml, or unpack the package with the image and name that: path:FILE"
    )]
    Unsupported { what: String, detail: String },
    /// There is no suite of this name.
    #[error("no suite `{suite}`: name one of {known}")]
    Suite {
        suite: String,
        /// Some that there are.
        known: &'static str,
    },
    /// An archive without suites.
    #[error(
        "cannot use {url}: it is {layout}, and Marvin reads archives with suites below dists/ only\nhint: download the packages with the image and the modules, unpack them into one folder (`dpkg-deb -x FILE.deb FOLDER`, or `ar x FILE.deb` and `tar -xf data.tar.*`), and name the image: path:FOLDER/boot/vmlinuz-VERSION"
    )]
    Layout { url: String, layout: &'static str },
    /// An archive whose keys Marvin does not have.
    #[error(
        "cannot verify {what}: no keys are set\nhint: set `keyring` below {table} in marvin.toml: {example}"
    )]
    NoKeyring {
        what: &'static str,
        table: &'static str,
        /// Where the keys are.
        example: &'static str,
    },
    /// A package that is signed, but is another one than the list says.
    #[error(
        "{url} is another package: the list says {expected}, and its signed content {found}; nothing was kept\nhint: set another `mirror` in marvin.toml"
    )]
    OtherPackage {
        url: String,
        expected: String,
        found: String,
    },
    /// A version of which kernel.org has no tarball.
    #[error("kernel.org has no linux-{version}.tar.xz; its newest: {listed}")]
    NoTarball {
        version: String,
        /// The newest versions of the list.
        listed: String,
    },
    /// Packages that no list has.
    #[error("no package {packages} in {suites}: correct the name")]
    NoPackage { packages: String, suites: String },
    /// Files that exceed a limit.
    #[error("the files have more than {bytes_max} bytes")]
    Large { bytes_max: u64 },
    /// The disk is full.
    #[error("no space left on the device of {}: free disk space there and try again", folder.display())]
    NoSpace { folder: PathBuf },
    /// A file of the cache could not be read or written.
    #[error("{} could not be used: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Returns the error for a file that is not what it should be, or packed in an unknown way.
pub(crate) fn damaged(file: &Path, error: &io::Error) -> ArchiveError {
    if error.kind() == io::ErrorKind::Unsupported {
        return ArchiveError::Unsupported {
            what: file.display().to_string(),
            detail: error.to_string(),
        };
    }
    ArchiveError::Damaged {
        what: file.display().to_string(),
        detail: error.to_string(),
    }
}

impl ArchiveError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull => Self::NoSpace {
                folder: path.parent().unwrap_or(&path).to_owned(),
            },
            _ => Self::Io { path, source },
        }
    }

    /// Returns whether the server cannot be reached now, so that old lists may serve.
    pub(crate) fn is_away(&self) -> bool {
        matches!(
            self,
            Self::Fetch { .. } | Self::Forbidden { .. } | Self::WebPage { .. }
        )
    }

    /// Returns who has to act on it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::NoKeyring { .. }
            | Self::Layout { .. }
            | Self::NoTarball { .. }
            | Self::Suite { .. }
            | Self::NoPackage { .. } => Fault::User,
            _ => Fault::Lab,
        }
    }
}
