//! How a user names a kernel: `deb:6.12`, `deb:6.12+amd64`, `path:/boot/vmlinuz-6.12`, `git:v6.12`,
//! `tree:linux`, `patch:fix.patch@v6.12`, `ubuntu:6.8`, `installed:6.1.0-42-amd64`, `running:`.
//!
//! This module parses the text only; the `kernel` crate resolves it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::BuildChanges;

/// The default revision that a patch applies to.
const HEAD: &str = "HEAD";

/// A kernel as the user named it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelName {
    /// A package of a distribution, by name or version.
    Package(PackageQuery),
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
    /// The newest source of kernel.org whose version begins with these numbers.
    KernelOrg(String),
    /// A kernel that Marvin builds otherwise than the settings say.
    Changed {
        /// The source.
        kernel: Box<KernelName>,
        /// How its build differs from the settings.
        changes: BuildChanges,
    },
    /// An image that this host has installed.
    Installed(InstalledQuery),
    /// The kernel that the machine runs; it has no image and cannot be booted.
    Running,
    /// A kernel measured by another suite, by that suite's name for it. It has no image and cannot
    /// be booted.
    Imported(String),
}

/// A distribution with kernels in packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distribution {
    /// Its archive has suites, such as bookworm.
    Debian,
    /// In Debian's layout.
    Ubuntu,
    /// Its archive has numbered releases with RPM packages.
    Fedora,
    /// Its archive has the newest packages only.
    Arch,
}

impl Distribution {
    /// All of them, Debian first.
    pub const ALL: [Self; 4] = [Self::Debian, Self::Ubuntu, Self::Fedora, Self::Arch];

    /// Returns the prefix of its kernel names, without the colon.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Debian => "deb",
            Self::Ubuntu => "ubuntu",
            Self::Fedora => "fedora",
            Self::Arch => "arch",
        }
    }

    /// Returns the flavour of names that have none. Debian's is small, fast to boot, and made for
    /// virtual machines.
    #[must_use]
    pub const fn default_flavour(self) -> &'static str {
        match self {
            Self::Debian => "cloud-amd64",
            Self::Ubuntu => "generic",
            Self::Fedora => "core",
            Self::Arch => "arch",
        }
    }

    /// Returns the prefix of its packages with kernels.
    #[must_use]
    pub const fn package_prefix(self) -> &'static str {
        match self {
            Self::Debian | Self::Ubuntu => "linux-image-",
            Self::Fedora => "kernel",
            Self::Arch => "linux",
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debian => "Debian",
            Self::Ubuntu => "Ubuntu",
            Self::Fedora => "Fedora",
            Self::Arch => "Arch Linux",
        })
    }
}

/// A request to the archive of a distribution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageQuery {
    /// Whose archive.
    pub distribution: Distribution,
    /// The suite, such as `trixie`, or `trixie@20260101` for a day of the past; `None` for the one
    /// of the settings.
    pub suite: Option<String>,
    /// Which of its kernels.
    pub selection: PackageSelection,
}

/// Which kernel of a suite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PackageSelection {
    /// The newest kernel whose upstream version begins with these numbers.
    Version {
        /// Upstream version or its beginning: `6.1`, `6.12.117`.
        version: String,
        /// The distribution's flavour: `cloud-amd64`, `amd64`, `generic`.
        flavour: String,
    },
    /// One package by its whole name.
    Package(String),
}

/// Which image of this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstalledQuery {
    /// All of them: a list, not one kernel.
    All,
    /// That of the kernel which runs.
    Running,
    /// That of a release, `6.1.0-42-amd64`, or the newest whose release begins with these numbers.
    Release(String),
}

/// An invalid kernel name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelNameError {
    /// An unknown source before the colon.
    #[error(
        "`{0}` names no kernel: expected deb:VERSION, deb:PACKAGE, ubuntu:VERSION, fedora:VERSION, arch:VERSION, installed:RELEASE, path:FILE, git:REVISION, patch:FILE@REVISION, tree:FOLDER, deb-src:VERSION, kernel.org:VERSION or running:, for example deb:6.12 or path:/boot/vmlinuz"
    )]
    Source(String),
    /// A `deb:` name that is neither a version nor a package.
    #[error(
        "`{0}` is neither a version (deb:6.12, deb:6.12.117, deb:6.12+amd64) nor a package (deb:linux-image-…), with or without a suite in front (deb:trixie/6.12, deb:trixie@20260101/6.12)"
    )]
    Deb(String),
    /// A name of another distribution's package that is neither a version nor a package.
    #[error(
        "`{0}` is neither a version ({1}:6.12, {1}:6.12.117) nor a package ({1}:{2}…): docs/hosts.md has examples"
    )]
    Distribution(String, &'static str, &'static str),
    /// `installed:` with something that is no release.
    #[error(
        "`{0}` names no release: expected installed:RELEASE, for example installed:6.1.0-42-amd64, or installed:running; `marvin kernels installed:` lists them"
    )]
    Installed(String),
    /// `kernel.org:` without a version of a series.
    #[error("`{0}` is no version of kernel.org: expected kernel.org:6.12 or kernel.org:6.12.3")]
    KernelOrg(String),
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
    /// A change to the build that is none.
    #[error("cannot build `{name}` that way: {detail}")]
    Changes {
        /// The whole name.
        name: String,
        /// What is wrong with the change.
        detail: String,
    },
    /// A change to the build of a kernel that Marvin does not build.
    #[error(
        "`{0}` is built already: @config:, @cc: and @make: are for kernels that Marvin builds (git:, patch:, tree:, deb-src:, kernel.org:)"
    )]
    Prebuilt(String),
    /// A change to the boot of a kernel that no machine boots.
    #[error(
        "`{0}`: Marvin does not boot this kernel, so @cmdline:, @sysctl:, @sysfs: and @memory: mean nothing"
    )]
    NotBooted(String),
}

/// What precedes the track in the name of an imported kernel. No suite's name has a comma.
const TRACK: &str = ",track=";

impl KernelName {
    /// Returns the name of a kernel that another suite measured, on a track of its own if one is
    /// given.
    #[must_use]
    pub fn imported(suite: &str, kernel: &str, track: Option<&str>) -> Self {
        let track = track.map(|track| format!("{TRACK}{track}"));
        Self::Imported(format!("{suite}/{kernel}{}", track.unwrap_or_default()))
    }

    /// Returns the track that an imported kernel was given.
    #[must_use]
    pub fn imported_track(&self) -> Option<&str> {
        let Self::Imported(name) = self else {
            return None;
        };
        name.rsplit_once(TRACK).map(|(_, track)| track)
    }

    /// Returns the kernel without the changes to its build.
    #[must_use]
    pub fn source(&self) -> &Self {
        match self {
            Self::Changed { kernel, .. } => kernel,
            other => other,
        }
    }

    /// Returns the words that the kernel's command line gets, empty if none.
    #[must_use]
    pub fn boot_parameters(&self) -> String {
        match self {
            Self::Changed { changes, .. } => changes.boot_parameters(),
            _ => String::new(),
        }
    }

    /// Returns the kernel as it is built, without changes to its boot.
    #[must_use]
    pub fn as_built(&self) -> Self {
        match self {
            Self::Changed { kernel, changes } if changes.is_boot_only() => (**kernel).clone(),
            Self::Changed { kernel, changes } => Self::Changed {
                kernel: kernel.clone(),
                changes: changes.without_boot(),
            },
            other => other.clone(),
        }
    }

    /// Returns whether Marvin builds a kernel of such a name.
    #[must_use]
    pub fn is_built(&self) -> bool {
        matches!(
            self.source(),
            Self::Git(_)
                | Self::Patch { .. }
                | Self::Tree(_)
                | Self::DebSrc(_)
                | Self::KernelOrg(_)
        )
    }
}

impl FromStr for KernelName {
    type Err = KernelNameError;

    fn from_str(text: &str) -> Result<Self, KernelNameError> {
        // A file may have any name, unless that says how to boot it.
        if let Some((plain, changes)) = BuildChanges::split(text)?
            && (!text.starts_with("path:") || changes.is_boot_only())
        {
            let kernel: Self = plain.parse()?;
            if !kernel.is_built() && !changes.is_boot_only() {
                return Err(KernelNameError::Prebuilt(text.to_owned()));
            }
            if matches!(kernel, Self::Running | Self::Imported(_)) {
                return Err(KernelNameError::NotBooted(text.to_owned()));
            }
            return Ok(Self::Changed {
                kernel: Box::new(kernel),
                changes,
            });
        }
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
            Some(("kernel.org", version)) if is_kernel_org_version(version) => {
                Ok(Self::KernelOrg(version.to_owned()))
            }
            Some(("kernel.org", _)) => Err(KernelNameError::KernelOrg(text.to_owned())),
            Some(("installed", release)) => installed_query(release)
                .map(Self::Installed)
                .ok_or_else(|| KernelNameError::Installed(text.to_owned())),
            Some(("running", "")) => Ok(Self::Running),
            Some(("imported", name)) if !name.is_empty() => Ok(Self::Imported(name.to_owned())),
            Some((scheme, query)) => {
                let distribution = Distribution::ALL
                    .into_iter()
                    .find(|distribution| distribution.scheme() == scheme)
                    .ok_or_else(|| KernelNameError::Source(text.to_owned()))?;
                package_query(distribution, query)
                    .map(Self::Package)
                    .ok_or_else(|| match distribution {
                        Distribution::Debian => KernelNameError::Deb(text.to_owned()),
                        other => KernelNameError::Distribution(
                            text.to_owned(),
                            other.scheme(),
                            other.package_prefix(),
                        ),
                    })
            }
            None => Err(KernelNameError::Source(text.to_owned())),
        }
    }
}

fn installed_query(release: &str) -> Option<InstalledQuery> {
    match release {
        "" => Some(InstalledQuery::All),
        "running" => Some(InstalledQuery::Running),
        release if is_word(release) => Some(InstalledQuery::Release(release.to_owned())),
        _ => None,
    }
}

fn package_query(distribution: Distribution, query: &str) -> Option<PackageQuery> {
    let (suite, selection) = match query.split_once('/') {
        Some((suite, selection)) => (Some(suite), selection),
        None => (None, query),
    };
    let fits = |suite| match distribution {
        Distribution::Debian | Distribution::Ubuntu => is_suite(suite),
        // A release of Fedora is a number, or `rawhide`.
        Distribution::Fedora => is_word(suite),
        Distribution::Arch => false,
    };
    if !suite.is_none_or(fits) {
        return None;
    }
    Some(PackageQuery {
        distribution,
        suite: suite.map(str::to_owned),
        selection: package_selection(distribution, selection)?,
    })
}

fn package_selection(distribution: Distribution, text: &str) -> Option<PackageSelection> {
    if text.starts_with(distribution.package_prefix()) && is_word(text) {
        return Some(PackageSelection::Package(text.to_owned()));
    }
    let (version, flavour) = text
        .split_once('+')
        .unwrap_or((text, distribution.default_flavour()));
    // Ubuntu's kernels have an ABI number behind the version: `6.8.0-31`.
    let numbers = match (distribution, version.split_once('-')) {
        (Distribution::Ubuntu, Some((numbers, abi))) if !abi.contains('.') && is_version(abi) => {
            numbers
        }
        _ => version,
    };
    (is_version(numbers) && is_word(flavour)).then(|| PackageSelection::Version {
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

/// Returns whether it may be a version of kernel.org: `6.12` or `6.12.3`; release candidates are not signed.
fn is_kernel_org_version(text: &str) -> bool {
    text.contains('.') && is_version(text)
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(file) => write!(f, "path:{}", file.display()),
            Self::Git(revision) => write!(f, "git:{revision}"),
            Self::Patch { file, revision } => write!(f, "patch:{}@{revision}", file.display()),
            Self::Tree(folder) => write!(f, "tree:{}", folder.display()),
            Self::DebSrc(version) => write!(f, "deb-src:{version}"),
            Self::Changed { kernel, changes } => write!(f, "{kernel}{changes}"),
            Self::Running => f.write_str("running:"),
            Self::Imported(name) => write!(f, "imported:{name}"),
            Self::KernelOrg(version) => write!(f, "kernel.org:{version}"),
            Self::Installed(query) => write!(f, "installed:{query}"),
            Self::Package(query) => write!(f, "{}:{query}", query.distribution.scheme()),
        }
    }
}

impl fmt::Display for PackageQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(suite) = &self.suite {
            write!(f, "{suite}/")?;
        }
        match &self.selection {
            PackageSelection::Package(package) => f.write_str(package),
            PackageSelection::Version { version, flavour }
                if flavour == self.distribution.default_flavour() =>
            {
                f.write_str(version)
            }
            PackageSelection::Version { version, flavour } => write!(f, "{version}+{flavour}"),
        }
    }
}

impl fmt::Display for InstalledQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Running => f.write_str("running"),
            Self::Release(release) => f.write_str(release),
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
            "ubuntu:6.8",
            "ubuntu:6.8.0-31",
            "ubuntu:noble/6.8+lowlatency",
            "ubuntu:noble@20240601/linux-image-6.8.0-31-generic",
            "fedora:6.12",
            "fedora:42/6.14.0",
            "fedora:rawhide/kernel-rt-core",
            "arch:6.18",
            "arch:6.12+lts",
            "arch:linux-zen",
            "installed:",
            "installed:running",
            "installed:6.1.0-42-amd64",
            "installed:6.12.35+deb13-amd64",
            "kernel.org:6.12",
            "kernel.org:6.12.3",
            "path:/boot/vmlinuz-6.1",
            "path:a:b",
            "git:HEAD~3",
            "patch:a@b/fix.patch@v6.12",
            "patch:fix.patch@v6.12@config:MEMCG=y",
            "git:HEAD@config:micro,MEMCG=y@cc:clang-14@make:KCFLAGS=-O3",
            "path:a@config:b",
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
            "arch:core/6.1",
            "ubuntu:42/6.1",
            "ubuntu:six",
            "ubuntu:6.8.0-31.2",
            "fedora:../42/6.1",
            "installed:../x",
            "installed:a/b",
            "kernel.org:",
            "kernel.org:6",
            "kernel.org:v6.12",
            "kernel.org:6.12-rc1",
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
