//! The programs of apt and dpkg, run without root and without touching what is installed.
//!
//! What their output means is `catalogue`'s to say.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::catalogue::{Offer, PREFIX};
use crate::{KernelError, folder};

/// Returns the record of every package whose name begins like a kernel's.
pub(crate) fn records() -> Result<String, KernelError> {
    // `search --full` prints what `search` and `show` would, in one run of half the time.
    let pattern = format!("^{PREFIX}");
    let args = ["search", "--names-only", "--full", &pattern];
    run("apt-cache", &args, Path::new("/"))
}

/// Returns the records of all versions of a package.
pub(crate) fn show(package: &str) -> Result<String, KernelError> {
    run("apt-cache", &["show", package], Path::new("/"))
}

/// Downloads a package into a folder of its own and checks that it is the one apt's lists describe.
pub(crate) fn download(offer: &Offer, into: &Path) -> Result<PathBuf, KernelError> {
    let package = format!("{}={}", offer.package, offer.version);
    // Run by root, apt would give up its rights and then not get into `into`; others have none to give up.
    let sandbox = "APT::Sandbox::User=root";
    run("apt-get", &["-qq", "-o", sandbox, "download", &package], into).map_err(|error| match error {
        KernelError::Program { said, .. } => KernelError::Download { package: offer.origin(), said },
        other => other,
    })?;
    let deb = only_deb(into).map_err(KernelError::at(into))?;
    let got = folder::sha256_of_file(&deb)?;
    if got != offer.sha256 {
        return Err(KernelError::Checksum { package: offer.origin(), expected: offer.sha256.clone(), got });
    }
    Ok(deb)
}

/// Apt chooses the file's name; there is no other in the folder.
fn only_deb(folder: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "deb") {
            return Ok(path);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "apt-get download left no package in it"))
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

/// How long a program of the distribution may take, in seconds: a download over a slow line included.
const DEADLINE_S: &str = "900";

/// Runs a program to its end, or to its deadline, and returns what it printed.
fn run(program: &str, args: &[&str], folder: &Path) -> Result<String, KernelError> {
    let output = Command::new("timeout")
        .args(["--kill-after=5", DEADLINE_S, program])
        .args(args)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => KernelError::NoApt("timeout".to_owned()),
            _ => KernelError::at(Path::new(program))(source),
        })?;
    match output.status.code() {
        Some(0) => return Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        // timeout(1): not found, and cut off by it.
        Some(127) => return Err(KernelError::NoApt(program.to_owned())),
        Some(124 | 137) => {
            let command = [&[program], args].concat().join(" ");
            return Err(KernelError::Program { command, said: format!("no end within {DEADLINE_S} s") });
        }
        _ => {}
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("No space left on device") {
        return Err(KernelError::NoSpace { folder: folder.to_owned() });
    }
    Err(KernelError::Program {
        command: [&[program], args].concat().join(" "),
        said: reason(&said).map_or_else(|| output.status.to_string(), str::to_owned),
    })
}

/// Picks the line that matters: apt marks errors with `E: `, others end with them.
fn reason(said: &str) -> Option<&str> {
    said.lines()
        .find_map(|line| line.strip_prefix("E: "))
        .or_else(|| said.lines().rfind(|line| !line.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{reason, run};

    #[test]
    fn a_missing_program_means_no_debian() {
        let error = run("apt-nonesuch", &[], Path::new("/")).unwrap_err();
        insta::assert_snapshot!(error, @"there is no `apt-nonesuch` on this host: deb: names need a Debian host; an image file can be named with path:FILE");
    }

    #[test]
    fn a_failing_program_is_quoted() {
        let error = run("dpkg-deb", &["-x", "none.deb", "x"], Path::new("/")).unwrap_err();
        insta::assert_snapshot!(error, @"`dpkg-deb -x none.deb x` failed: dpkg-deb: error: failed to read archive 'none.deb': No such file or directory");
        let error = run("false", &[], Path::new("/")).unwrap_err();
        insta::assert_snapshot!(error, @"`false` failed: exit status: 1");
        let full = run("sh", &["-c", "head -c 1 /dev/zero > /dev/full"], Path::new("/tmp")).unwrap_err();
        insta::assert_snapshot!(full, @"no space is left on the device of /tmp: make room there and try again");
    }

    #[test]
    fn warnings_are_not_the_reason() {
        let said = "W: Download is performed unsandboxed as root\nE: Version '9' for 'x' was not found\n";
        assert_eq!(reason(said), Some("Version '9' for 'x' was not found"));
        assert_eq!(reason("\n"), None);
    }
}
