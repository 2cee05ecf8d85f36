//! Runs apt and dpkg, without root and without changing what is installed.
//!
//! `catalogue` parses their output.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use subprocess::{Program, ProgramError};

use crate::catalogue::{DebFile, Offer, PREFIX};
use crate::{AptError, KernelError, folder};

/// Returns the records of all packages whose names begin like a kernel's, or like that of a
/// kernel's part.
pub(crate) fn records() -> Result<String, KernelError> {
    // `search --full` prints the output of `search` and `show`, in one run of half the time.
    let pattern = format!("^({PREFIX}|linux-(binary|base|modules)-[0-9])");
    let args = ["search", "--names-only", "--full", &pattern];
    run("apt-cache", &args, Path::new("/"))
}

/// Returns the records of all versions of a package.
pub(crate) fn show(package: &str) -> Result<String, KernelError> {
    run("apt-cache", &["show", package], Path::new("/"))
}

/// Downloads a package of an offer into an empty directory and verifies it by apt's lists.
pub(crate) fn download(offer: &Offer, file: &DebFile, into: &Path) -> Result<PathBuf, KernelError> {
    let package = format!("{}={}", file.package, offer.version);
    // As root, apt would drop its privileges and then could not write to `into`; other users have
    // none to drop.
    let sandbox = "APT::Sandbox::User=root";
    run(
        "apt-get",
        &["-qq", "-o", sandbox, "download", &package],
        into,
    )
    .map_err(|error| match error {
        KernelError::Program { detail, .. } => KernelError::Apt(AptError::Download {
            package: package.clone(),
            detail,
        }),
        other => other,
    })?;
    let deb = only_deb(into).map_err(KernelError::io(into))?;
    let got = folder::sha256_of_file(&deb)?;
    if got != file.sha256 {
        return Err(KernelError::Apt(AptError::Checksum {
            package,
            expected: file.sha256.clone(),
            got,
        }));
    }
    Ok(deb)
}

/// apt chooses the file's name; the directory has no other.
fn only_deb(folder: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "deb") {
            return Ok(path);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "apt-get download left no package in it",
    ))
}

/// Unpacks the files of a package, without dpkg's database.
pub(crate) fn unpack(deb: &Path, into: &Path) -> Result<(), KernelError> {
    let folder = deb.parent().unwrap_or(deb);
    let relative = |path: &Path| {
        let path = path.strip_prefix(folder).unwrap_or(path);
        path.display().to_string()
    };
    run("dpkg-deb", &["-x", &relative(deb), &relative(into)], folder).map(drop)
}

/// A needed package, as apt would fetch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needed {
    pub(crate) package: String,
    pub(crate) version: String,
    /// Its file in the archive.
    pub(crate) file: String,
    pub(crate) bytes: u64,
    /// Its hash in apt's lists, with the kind as prefix.
    pub(crate) hash: String,
}

/// Returns packages with all their dependencies, as if none were installed, in the order of their
/// files.
pub(crate) fn closure(packages: &[String], scratch: &Path) -> Result<Vec<Needed>, KernelError> {
    let status = scratch.join("status");
    fs::write(&status, "").map_err(KernelError::io(&status))?;
    let nothing_installed = format!("Dir::State::status={}", status.display());
    let mut args = vec![
        "-qq",
        "--print-uris",
        "--no-install-recommends",
        "-o",
        &nothing_installed,
    ];
    args.extend([
        "-o",
        "Debug::NoLocking=1",
        "-o",
        "Acquire::ForceHash=SHA256",
        "install",
        "--",
    ]);
    args.extend(packages.iter().map(String::as_str));
    let output = run("apt-get", &args, scratch).map_err(|error| match error {
        KernelError::Program { detail, .. } if is_unknown(&detail) => {
            KernelError::Apt(AptError::NoPackage {
                packages: packages.join(", "),
                detail,
            })
        }
        other => other,
    })?;
    let mut needed: Vec<Needed> = output.lines().filter_map(needed).collect();
    needed.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(needed)
}

/// Returns the versions of packages that apt would install; omits unknown packages.
///
/// # Errors
/// If apt fails.
pub fn package_versions(packages: &[&str]) -> Result<BTreeMap<String, String>, KernelError> {
    let args = [&["policy", "--"], packages].concat();
    Ok(candidates(&run("apt-cache", &args, Path::new("/"))?))
}

/// Parses `NAME:` and, indented below it, `Candidate: VERSION`.
fn candidates(policy: &str) -> BTreeMap<String, String> {
    let mut name = None;
    let mut versions = BTreeMap::new();
    for line in policy.lines() {
        if let Some(package) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            name = Some(package.to_owned());
        } else if let Some(version) = line.trim_start().strip_prefix("Candidate: ")
            && version != "(none)"
        {
            versions.extend(name.take().map(|name| (name, version.to_owned())));
        }
    }
    versions
}

/// Returns whether apt reports an unknown package.
fn is_unknown(detail: &str) -> bool {
    [
        "Unable to locate package",
        "has no installation candidate",
        "Couldn't find any package",
    ]
    .iter()
    .any(|words| detail.contains(words))
}

/// Parses `'URI' NAME_VERSION_ARCHITECTURE.deb BYTES HASH`.
fn needed(line: &str) -> Option<Needed> {
    let mut words = line.strip_prefix('\'')?.split_once("' ")?.1.split(' ');
    let file = words.next()?;
    let bytes = words.next()?;
    let hash = words.next()?;
    let mut parts = file.strip_suffix(".deb")?.split('_');
    let package = parts.next()?.to_owned();
    let version = parts.next()?.replace("%3a", ":");
    Some(Needed {
        package,
        version,
        file: file.to_owned(),
        bytes: bytes.parse().ok()?,
        hash: hash.to_owned(),
    })
}

/// Downloads packages into a new directory; apt verifies them.
pub(crate) fn download_all(needed: &[Needed], into: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let words: Vec<String> = needed
        .iter()
        .map(|n| format!("{}={}", n.package, n.version))
        .collect();
    let mut args = vec!["-qq", "-o", "APT::Sandbox::User=root", "download", "--"];
    args.extend(words.iter().map(String::as_str));
    run("apt-get", &args, into).map_err(|error| match error {
        KernelError::Program { detail, .. } => KernelError::Apt(AptError::Download {
            package: words.join(" "),
            detail,
        }),
        other => other,
    })?;
    needed
        .iter()
        .map(|n| {
            let deb = into.join(&n.file);
            let found = fs::metadata(&deb).map_err(KernelError::io(&deb))?.len();
            if found == n.bytes {
                return Ok(deb);
            }
            let expected = format!("{} bytes", n.bytes);
            let got = format!("{found} bytes");
            Err(KernelError::Apt(AptError::Checksum {
                package: format!("{} {}", n.package, n.version),
                expected,
                got,
            }))
        })
        .collect()
}

/// Runs a program of the distribution to its end and returns its output.
fn run(program: &str, args: &[&str], folder: &Path) -> Result<String, KernelError> {
    let run = Program::new(program)
        .args(args)
        .folder(folder)
        .inherit(&subprocess::NETWORK)
        .inherit(&["APT_CONFIG"]);
    let ended = run.run().map_err(|error| match error {
        ProgramError::Missing(program) => KernelError::Apt(AptError::NoApt(program)),
        ProgramError::Deadline { command, seconds } => KernelError::Program {
            command,
            detail: format!("no end within {seconds} s"),
        },
        ProgramError::Io { source, .. } => KernelError::Io {
            path: program.into(),
            source,
        },
    })?;
    if ended.code == Some(0) {
        return Ok(ended.text());
    }
    if ended.stderr.contains("No space left on device") {
        return Err(KernelError::NoSpace {
            folder: folder.to_owned(),
        });
    }
    let detail = reason(&ended.stderr).map_or_else(|| ended.reason(), str::to_owned);
    Err(KernelError::Program {
        command: run.command(),
        detail,
    })
}

/// Picks the important line: apt marks errors with `E: `, other programs end with them.
fn reason(stderr: &str) -> Option<&str> {
    stderr
        .lines()
        .find_map(|line| line.strip_prefix("E: "))
        .or_else(|| stderr.lines().rfind(|line| !line.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{candidates, closure, is_unknown, needed, reason, run};

    #[test]
    fn a_missing_program_means_no_debian() {
        let error = run("apt-nonesuch", &[], Path::new("/")).unwrap_err();
        insta::assert_snapshot!(error, @"no `apt-nonesuch` on this host: deb: names need a Debian host; for an image file, use path:FILE");
    }

    #[test]
    fn a_failing_program_is_quoted() {
        let error = run("dpkg-deb", &["-x", "none.deb", "x"], Path::new("/")).unwrap_err();
        insta::assert_snapshot!(error, @"`dpkg-deb -x none.deb x` failed: dpkg-deb: error: failed to read archive 'none.deb': No such file or directory");
        let error = run("false", &[], Path::new("/")).unwrap_err();
        insta::assert_snapshot!(error, @"`false` failed: exit status 1");
        let full = run(
            "sh",
            &["-c", "head -c 1 /dev/zero > /dev/full"],
            Path::new("/tmp"),
        )
        .unwrap_err();
        insta::assert_snapshot!(full, @"no space left on the device of /tmp: free disk space there and try again");
    }

    #[test]
    fn candidates_are_parsed_from_policy() {
        let policy = "fio:\n  Installed: (none)\n  Candidate: 3.33-3\n  Version table:\n     3.33-3 500\nx:\n  Candidate: (none)\n";
        assert_eq!(
            candidates(policy).into_iter().collect::<Vec<_>>(),
            [("fio".to_owned(), "3.33-3".to_owned())]
        );
    }

    #[test]
    fn planned_downloads_of_apt_are_read() {
        let line = "'http://archive/x/zlib1g_1%3a1.2.13.dfsg-1_amd64.deb' zlib1g_1%3a1.2.13.dfsg-1_amd64.deb 86720 SHA256:d7dd";
        let found = needed(line).unwrap();
        assert_eq!(
            (&*found.package, &*found.version, found.bytes),
            ("zlib1g", "1:1.2.13.dfsg-1", 86_720)
        );
        assert_eq!(found.hash, "SHA256:d7dd");
        for line in ["", "'", "' ", "'x' y 1 z", "'x' a_b_c.deb many z", "E: x"] {
            assert_eq!(needed(line), None, "{line}");
        }
        assert!(is_unknown("Unable to locate package nonesuch"));
    }

    #[test]
    fn package_unknown_to_apt_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let error = closure(&["marvin-nonesuch".to_owned()], scratch.path()).unwrap_err();
        insta::assert_snapshot!(error, @"no userland of marvin-nonesuch: apt says `Unable to locate package marvin-nonesuch`; correct the manifest, or run `sudo apt-get update`");
    }

    #[test]
    fn warnings_are_not_the_reason() {
        let detail =
            "W: Download is performed unsandboxed as root\nE: Version '9' for 'x' was not found\n";
        assert_eq!(reason(detail), Some("Version '9' for 'x' was not found"));
        assert_eq!(reason("\n"), None);
    }
}
