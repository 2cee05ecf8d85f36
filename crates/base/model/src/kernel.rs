//! How a user names a kernel: `deb:6.12`, `deb:6.12+amd64`, `path:/boot/vmlinuz-6.12`, `git:v6.12`,
//! `tree:linux`, `patch:fix.patch@v6.12`, `running:`.
//!
//! This module parses the text only; the `kernel` crate resolves it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The default flavour of `deb:` names: small, fast to boot, made for virtual machines.
const DEFAULT_FLAVOUR: &str = "cloud-amd64";

/// The default revision that a patch applies to.
const HEAD: &str = "HEAD";

/// A kernel as the user named it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelName {
    /// A Debian package, by name or version.
    Deb(DebQuery),
    /// An image file, bzImage or vmlinux.
    Path(PathBuf),
    /// A revision of the configured git tree.
    Git(String),
    /// A patch on top of a revision of that tree.
    Patch {
        /// The patch file.
        file: PathBuf,
        /// The revision; by default `HEAD`, which is what the tree has checked out.
        revision: String,
    },
    /// A source directory as it is.
    Tree(PathBuf),
    /// The newest Debian source package whose upstream version begins with these numbers.
    DebSrc(String),
    /// The kernel that the machine runs; it has no image and cannot be booted.
    Running,
    /// A kernel measured by another suite, by that suite's name for it. It has no image and cannot
    /// be booted.
    Imported(String),
}

/// A request to the Debian archive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DebQuery {
    /// The suite, such as `trixie`, or `trixie@20260101` for a day of the past; `None` for the one
    /// of the settings.
    pub suite: Option<String>,
    /// Which of its kernels.
    pub selection: DebSelection,
}

/// Which kernel of a suite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DebSelection {
    /// The newest kernel whose upstream version begins with these numbers.
    Version {
        /// Upstream version or its beginning: `6.1`, `6.12.117`.
        version: String,
        /// Debian flavour: `cloud-amd64`, `amd64`, `rt-amd64`.
        flavour: String,
    },
    /// One package by its whole name.
    Package(String),
}

/// An invalid kernel name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelNameError {
    /// An unknown source before the colon.
    #[error(
        "`{0}` names no kernel: expected deb:VERSION, deb:PACKAGE, path:FILE, git:REVISION, patch:FILE@REVISION, tree:FOLDER, deb-src:VERSION or running:, for example deb:6.12 or path:/boot/vmlinuz"
    )]
    Source(String),
    /// A version without a source.
    #[error("`{0}` has no source: did you mean deb:{0}?")]
    Bare(String),
    /// A `deb:` name that is neither a version nor a package.
    #[error(
        "`{0}` is neither a version (deb:6.12, deb:6.12.117, deb:6.12+amd64) nor a package (deb:linux-image-…), with or without a suite in front (deb:trixie/6.12, deb:trixie@20260101/6.12)"
    )]
    Deb(String),
    /// `path:` without a path.
    #[error("`path:` needs a file, for example path:/boot/vmlinuz")]
    EmptyPath,
    /// `git:` without a revision.
    #[error("`git:` needs a revision, for example git:v6.12 or git:HEAD~3")]
    EmptyRevision,
    /// `patch:` without a file, or with an @ but no revision.
    #[error(
        "`{0}` needs a file, and behind an @ a revision: for example patch:fix.patch or patch:fix.patch@v6.12"
    )]
    Patch(String),
    /// `tree:` without a directory.
    #[error("`tree:` needs a folder, for example tree:linux")]
    EmptyTree,
    /// `deb-src:` without a version of a series.
    #[error("`{0}` is no version of a source package: expected deb-src:6.12 or deb-src:6.12.117")]
    DebSrc(String),
}

impl FromStr for KernelName {
    type Err = KernelNameError;

    fn from_str(text: &str) -> Result<Self, KernelNameError> {
        match text.split_once(':') {
            Some(("path", "")) => Err(KernelNameError::EmptyPath),
            Some(("path", file)) => Ok(Self::Path(PathBuf::from(file))),
            Some(("git", "")) => Err(KernelNameError::EmptyRevision),
            Some(("git", revision)) => Ok(Self::Git(revision.to_owned())),
            Some(("patch", patch)) => {
                let (file, revision) = patch.rsplit_once('@').unwrap_or((patch, HEAD));
                if file.is_empty() || revision.is_empty() {
                    return Err(KernelNameError::Patch(text.to_owned()));
                }
                Ok(Self::Patch {
                    file: PathBuf::from(file),
                    revision: revision.to_owned(),
                })
            }
            Some(("tree", "")) => Err(KernelNameError::EmptyTree),
            Some(("tree", folder)) => Ok(Self::Tree(PathBuf::from(folder))),
            Some(("deb-src", version)) if is_version(version) && version.contains('.') => {
                Ok(Self::DebSrc(version.to_owned()))
            }
            Some(("deb-src", _)) => Err(KernelNameError::DebSrc(text.to_owned())),
            Some(("running", "")) => Ok(Self::Running),
            Some(("imported", name)) if !name.is_empty() => Ok(Self::Imported(name.to_owned())),
            Some(("deb", query)) => deb_query(query)
                .map(Self::Deb)
                .ok_or_else(|| KernelNameError::Deb(text.to_owned())),
            _ => Err(KernelNameError::Source(text.to_owned())),
        }
    }
}

fn deb_query(query: &str) -> Option<DebQuery> {
    let (suite, selection) = match query.split_once('/') {
        Some((suite, selection)) => (Some(suite), selection),
        None => (None, query),
    };
    if !suite.is_none_or(is_suite) {
        return None;
    }
    Some(DebQuery {
        suite: suite.map(str::to_owned),
        selection: deb_selection(selection)?,
    })
}

fn deb_selection(text: &str) -> Option<DebSelection> {
    if text.starts_with("linux-image-") && is_word(text) {
        return Some(DebSelection::Package(text.to_owned()));
    }
    let (version, flavour) = text.split_once('+').unwrap_or((text, DEFAULT_FLAVOUR));
    (is_version(version) && is_word(flavour)).then(|| DebSelection::Version {
        version: version.to_owned(),
        flavour: flavour.to_owned(),
    })
}

/// Returns whether it may name a suite, `NAME` or `NAME@DATE`.
fn is_suite(text: &str) -> bool {
    let (name, date) = text.split_once('@').unwrap_or((text, "20200101"));
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let date = date.strip_suffix('Z').unwrap_or(date);
    let digits = date.replacen('T', "", 1);
    let is_date = [8, 14].contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    is_name && is_date
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.~".contains(c))
}

/// Returns whether it consists of numbers separated by points.
fn is_version(text: &str) -> bool {
    text.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(file) => write!(f, "path:{}", file.display()),
            Self::Git(revision) => write!(f, "git:{revision}"),
            Self::Patch { file, revision } => write!(f, "patch:{}@{revision}", file.display()),
            Self::Tree(folder) => write!(f, "tree:{}", folder.display()),
            Self::DebSrc(version) => write!(f, "deb-src:{version}"),
            Self::Running => f.write_str("running:"),
            Self::Imported(name) => write!(f, "imported:{name}"),
            Self::Deb(query) => write!(f, "deb:{query}"),
        }
    }
}

impl fmt::Display for DebQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(suite) = &self.suite {
            write!(f, "{suite}/")?;
        }
        match &self.selection {
            DebSelection::Package(package) => f.write_str(package),
            DebSelection::Version { version, flavour } if flavour == DEFAULT_FLAVOUR => {
                f.write_str(version)
            }
            DebSelection::Version { version, flavour } => write!(f, "{version}+{flavour}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KernelName;

    #[test]
    fn names_are_printed_as_they_are_read() {
        for name in [
            "deb:6.1",
            "deb:6.12.117",
            "deb:6.12+amd64",
            "deb:trixie/6.12",
            "deb:trixie-backports/6.19+amd64",
            "deb:sid@20260101T120000Z/linux-image-6.18.3+deb14-cloud-amd64",
            "deb:linux-image-6.12.117+deb12-cloud-amd64",
            "path:/boot/vmlinuz-6.1",
            "path:a:b",
            "git:HEAD~3",
            "patch:a@b/fix.patch@v6.12",
            "tree:../linux",
            "deb-src:6.12",
            "deb-src:6.12.117",
            "imported:mmtests/6.1-vanilla",
        ] {
            assert_eq!(name.parse::<KernelName>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn the_default_flavour_is_not_printed() {
        assert_eq!(
            "deb:6.1+cloud-amd64"
                .parse::<KernelName>()
                .unwrap()
                .to_string(),
            "deb:6.1"
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for name in [
            "",
            "6.1",
            "deb:",
            "deb:six",
            "deb:6..1",
            "deb:6.1+",
            "deb:6.1+-x",
            "path:",
            "rpm:6.1",
            "deb:6.1 -o x",
            "git:",
            "patch:",
            "patch:@v6.12",
            "patch:fix.patch@",
            "tree:",
            "deb-src:6",
            "deb-src:",
            "deb-src:6.12-1",
            "imported:",
        ] {
            assert!(name.parse::<KernelName>().is_err(), "{name}");
        }
    }
}
