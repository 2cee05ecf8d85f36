//! The origin of a build: one line for people, which stores keep and only this module parses.

use std::fmt;

use crate::{KernelName, UnixTime};

/// The origin of a build.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A package of a distribution.
    Package {
        /// The package's name: `linux-image-6.12.117+deb12-cloud-amd64`.
        name: String,
        /// The package's version: `6.12.117-1`.
        version: String,
    },
    /// Marvin built it from source.
    Built {
        /// The source that it was built from.
        source: SourceOrigin,
        /// The name of the kernel config: `micro`.
        configuration: String,
        /// The compiler and linker, with their versions.
        compiler: String,
        /// When its source was committed: later than all that it descends from. `None` for what
        /// is no commit, and for builds that an earlier Marvin stored.
        committed_unix: Option<UnixTime>,
    },
    /// An image file, or another suite's description of its kernel.
    Described(String),
}

/// The source of a build.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SourceOrigin {
    /// A commit of a git tree.
    Commit {
        /// The commit's hash, abbreviated.
        commit: String,
        /// The directory of the repository.
        tree: String,
    },
    /// An imported source package of Debian.
    DebianSource {
        /// Its tag in the imported repository.
        tag: String,
    },
    /// Another source, such as a working tree, or a patch on a commit.
    Described(String),
}

impl SourceOrigin {
    /// Returns the commit that it is, or that a patch is applied to, abbreviated.
    #[must_use]
    pub fn commit(&self) -> Option<&str> {
        let words = match self {
            Self::Commit { commit, .. } => return Some(commit),
            Self::DebianSource { .. } => return None,
            Self::Described(words) => words,
        };
        // `FILE on commit HASH of TREE`: a file may be called so, too, and hashes come last.
        let (_, rest) = words.rsplit_once(" on commit ")?;
        let (commit, _) = rest.split_once(" of ")?;
        let is_hash = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then_some(commit)
    }
}

const COMMIT: &str = "commit ";
const DEBIAN_SOURCE: &str = "linux-source ";
/// At the end of the line, where earlier versions of Marvin read it as part of the compiler.
const COMMITTED: &str = ", committed ";
/// Between an image file and the compiler that its build directory names.
const BUILT_BY: &str = ", built by ";

impl Origin {
    /// Parses the stored line. A line that does not fit this kernel name is kept as it is.
    #[must_use]
    pub fn of_line(line: &str, name: &KernelName) -> Self {
        let read = match name.source() {
            KernelName::Package(_) => line.split_once(' ').map(|(name, version)| Self::Package {
                name: name.to_owned(),
                version: version.to_owned(),
            }),
            KernelName::Git(_)
            | KernelName::Patch { .. }
            | KernelName::Tree(_)
            | KernelName::DebSrc(_)
            | KernelName::KernelOrg(_) => parse_built(line),
            KernelName::Path(_)
            | KernelName::Installed(_)
            | KernelName::Running
            | KernelName::Changed { .. }
            | KernelName::Imported(_) => None,
        };
        read.unwrap_or_else(|| Self::Described(line.to_owned()))
    }

    /// Describes an image file in a build directory, which names its compiler.
    #[must_use]
    pub fn of_build_dir(file: &str, compiler: &str) -> Self {
        Self::Described(format!("{file}{BUILT_BY}{compiler}"))
    }

    /// Returns the compiler, linker and variables of make, as far as they are known.
    #[must_use]
    pub fn compiler(&self) -> Option<&str> {
        match self {
            Self::Built { compiler, .. } => Some(compiler),
            Self::Described(line) => Some(line.split_once(BUILT_BY)?.1),
            Self::Package { .. } => None,
        }
    }
}

fn parse_built(line: &str) -> Option<Origin> {
    let dated = line
        .rsplit_once(COMMITTED)
        .and_then(|(rest, date)| Some((rest, UnixTime::parse_date(date)?)));
    let (line, committed_unix) = dated.map_or((line, None), |(rest, unix)| (rest, Some(unix)));
    let mut parts = line.splitn(3, ", ").map(str::to_owned);
    let source = parts.next()?;
    let configuration = parts.next()?;
    let compiler = parts.next()?;
    let source = parse_source(&source).unwrap_or_else(|| SourceOrigin::Described(source.clone()));
    Some(Origin::Built {
        source,
        configuration,
        compiler,
        committed_unix,
    })
}

/// Parses a commit of a tree, or a Debian source package.
fn parse_source(source: &str) -> Option<SourceOrigin> {
    if let Some(tag) = source.strip_prefix(DEBIAN_SOURCE) {
        return Some(SourceOrigin::DebianSource {
            tag: tag.to_owned(),
        });
    }
    let (commit, tree) = source.strip_prefix(COMMIT)?.split_once(" of ")?;
    Some(SourceOrigin::Commit {
        commit: commit.to_owned(),
        tree: tree.to_owned(),
    })
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package { name, version } => write!(f, "{name} {version}"),
            Self::Built {
                source,
                configuration,
                compiler,
                committed_unix,
            } => {
                write!(f, "{source}, {configuration}, {compiler}")?;
                committed_unix.map_or(Ok(()), |time| write!(f, "{COMMITTED}{}", time.date()))
            }
            Self::Described(line) => f.write_str(line),
        }
    }
}

impl fmt::Display for SourceOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit { commit, tree } => write!(f, "{COMMIT}{commit} of {tree}"),
            Self::DebianSource { tag } => write!(f, "{DEBIAN_SOURCE}{tag}"),
            Self::Described(what) => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Origin, SourceOrigin};
    use crate::{KernelName, UnixTime};

    fn of_line(line: &str, name: &str) -> Origin {
        let read = Origin::of_line(line, &name.parse::<KernelName>().unwrap());
        assert_eq!(read.to_string(), line, "nothing is lost");
        read
    }

    #[test]
    fn origin_lines_are_read_as_they_are_written() {
        let commit = SourceOrigin::Commit {
            commit: "111111111111".into(),
            tree: "/src/linux".into(),
        };
        let built_at = |source, committed_unix| Origin::Built {
            source,
            configuration: "micro".into(),
            compiler: "gcc 12.2, ld 2.40".into(),
            committed_unix,
        };
        let built = |source| built_at(source, None);
        let line = "commit 111111111111 of /src/linux, micro, gcc 12.2, ld 2.40";
        assert_eq!(of_line(line, "git:HEAD"), built(commit.clone()));
        let dated = format!("{line}, committed 2026-11-26T14:05:22Z");
        assert_eq!(
            of_line(&dated, "git:HEAD"),
            built_at(commit, Some(UnixTime::new(1_795_701_922)))
        );
        let debian = SourceOrigin::DebianSource {
            tag: "6.12.117-1".into(),
        };
        assert_eq!(
            of_line(
                "linux-source 6.12.117-1, micro, gcc 12.2, ld 2.40",
                "deb-src:6.12"
            ),
            built(debian)
        );
        let folder = SourceOrigin::Described("/src/linux as it stands".into());
        assert_eq!(
            of_line(
                "/src/linux as it stands, micro, gcc 12.2, ld 2.40",
                "tree:/src/linux"
            ),
            built(folder)
        );
        let package = Origin::Package {
            name: "linux-image-6.1.0-9-amd64".into(),
            version: "6.1.27-1".into(),
        };
        assert_eq!(
            of_line("linux-image-6.1.0-9-amd64 6.1.27-1", "deb:6.1"),
            package
        );
    }

    #[test]
    fn compiler_is_known_of_built_kernels() {
        let compiler = |line: &str, name: &str| of_line(line, name).compiler().map(str::to_owned);
        assert_eq!(
            compiler(
                "/a as it stands, micro, gcc 12, ld 2.40, make A=1",
                "tree:/a"
            )
            .as_deref(),
            Some("gcc 12, ld 2.40, make A=1")
        );
        let image = Origin::of_build_dir("/b/arch/x86/boot/bzImage", "clang 14").to_string();
        assert_eq!(compiler(&image, "path:/b").as_deref(), Some("clang 14"));
        assert_eq!(compiler("/b/vmlinux", "path:/b/vmlinux"), None);
        assert_eq!(
            compiler("linux-image-6.1.0-9-amd64 6.1.27-1", "deb:6.1"),
            None
        );
    }

    #[test]
    fn invalid_origin_line_is_kept() {
        for (line, name) in [
            ("x", "deb:6.1"),
            ("commit 1 of a", "git:HEAD"),
            ("/a b, c, d", "path:/a"),
            ("", "git:HEAD"),
        ] {
            assert_eq!(of_line(line, name), Origin::Described(line.into()));
        }
    }
}
