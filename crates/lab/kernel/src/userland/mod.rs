//! Userlands: programs of Debian packages with their libraries, for the root of a guest.
//!
//! Made without root: packages are downloaded with their dependencies, unpacked, and only needed
//! files are taken. `machine` writes the archive, `lab` keeps it.

mod packages;

use std::collections::BTreeMap;
use std::path::Path;

use archives::{ArchiveError, Needed, Root, collect, unpack_deb};

use crate::folder::sha256;
use crate::scratch::Scratch;
use crate::{BuildCache, BuildEvent, KernelError};

/// Limit of a userland's files, in bytes.
const USERLAND_MAX: u64 = 1 << 30;
/// Files of every userland: names of users and of this host, for programs that look them up.
pub const USERLAND_FACTS: [(&str, &str); 4] = [
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
    (
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
    ),
    (
        "/etc/passwd",
        "root:x:0:0:root:/run:/bin/sh\nnobody:x:65534:65534:nobody:/run:/bin/sh\n",
    ),
];
/// Raise it if the same packages give other files.
const MADE: &str = "userland 1";

/// The content of a userland.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub packages: Vec<String>,
    /// Paths of programs, and of other files or directories, in these packages.
    pub paths: Vec<String>,
}

/// The packages of a userland.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    wanted: Wanted,
    /// Packages with their versions.
    packages: Vec<Needed>,
}

/// A file of a userland.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserlandFile {
    /// Its path, from `/`.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// The files of a userland.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Userland {
    /// Its files, in the order of their paths.
    pub files: Vec<UserlandFile>,
    /// Requested or linked files that no package contains.
    pub missing: Vec<String>,
}

impl Resolved {
    /// Returns a hash of everything that the userland's content depends on.
    #[must_use]
    pub fn key(&self) -> String {
        let packages = self
            .packages
            .iter()
            .map(|needed| format!("{} SHA256:{}\n", needed.file, needed.package.sha256));
        let paths = self.wanted.paths.iter().map(|path| format!("{path}\n"));
        sha256(
            format!(
                "{MADE}\n{}{}",
                packages.collect::<String>(),
                paths.collect::<String>()
            )
            .as_bytes(),
        )
    }

    /// Returns the version of one of the packages.
    #[must_use]
    pub fn version(&self, package: &str) -> Option<&str> {
        self.packages
            .iter()
            .find(|needed| needed.package.package == package)
            .map(|needed| needed.version.as_str())
    }
}

impl BuildCache {
    /// Determines the packages of a userland: the requested ones and their dependencies.
    ///
    /// # Errors
    /// If the lists cannot be had, or lack one.
    pub fn resolve_userland(&self, wanted: &Wanted) -> Result<Resolved, KernelError> {
        let suite = self.archives.debian.suite(None);
        let packages = self.archives.debian.closure(suite, &wanted.packages)?;
        Ok(Resolved {
            wanted: wanted.clone(),
            packages,
        })
    }

    /// Returns the userland's files; downloads missing packages.
    ///
    /// # Errors
    /// If a package cannot be downloaded or unpacked, or the files exceed the limit.
    pub fn userland(
        &self,
        resolved: &Resolved,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Userland, KernelError> {
        self.notify_of_lists(notify);
        let what = resolved.wanted.packages.join(", ");
        let packages = self.packages(&resolved.packages, &what, notify)?;
        notify(BuildEvent::Unpacking { what });
        let scratch = Scratch::new(self.downloads())?;
        let root = scratch.path().join("root");
        for package in packages {
            unpack_deb(&package, &root)?;
        }
        userland_of(&root, &resolved.wanted.paths)
    }
}

/// Copies the requested files and their libraries from a root, beside the files of every userland.
fn userland_of(root: &Path, wanted: &[String]) -> Result<Userland, KernelError> {
    let bytes_max = USERLAND_MAX;
    let collected = collect(&Root(root), wanted, &[], bytes_max).map_err(|error| match error {
        ArchiveError::Large { bytes_max } => KernelError::LargeUserland { bytes_max },
        other => KernelError::Archive(other),
    })?;
    let mut files: BTreeMap<String, Vec<u8>> = USERLAND_FACTS
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect();
    for (path, bytes) in collected.files {
        files.entry(path).or_insert(bytes);
    }
    let files = files
        .into_iter()
        .map(|(path, bytes)| UserlandFile { path, bytes })
        .collect();
    Ok(Userland {
        files,
        missing: collected.missing,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::userland_of;

    #[test]
    fn programs_bring_libraries_and_missing_files_are_named() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("usr/bin")).unwrap();
        fs::create_dir_all(at("lib64")).unwrap();
        fs::create_dir_all(at("usr/lib/x86_64-linux-gnu")).unwrap();
        fs::copy("/proc/self/exe", at("usr/bin/tool")).unwrap();
        fs::write(at("lib64/ld-linux-x86-64.so.2"), "linker").unwrap();
        fs::write(at("usr/lib/x86_64-linux-gnu/libc.so.6"), "libc").unwrap();
        let wanted = ["/usr/bin/tool", "/usr/bin/none"].map(str::to_owned);
        let userland = userland_of(root.path(), &wanted).unwrap();
        let paths: Vec<&str> = userland
            .files
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(
            paths,
            [
                "/etc/group",
                "/etc/hosts",
                "/etc/nsswitch.conf",
                "/etc/passwd",
                "/lib64/ld-linux-x86-64.so.2",
                "/usr/bin/tool",
                "/usr/lib/x86_64-linux-gnu/libc.so.6",
            ]
        );
        assert!(
            userland.missing.contains(&"/usr/bin/none".to_owned()),
            "{:?}",
            userland.missing
        );
        assert_eq!(userland_of(root.path(), &wanted).unwrap(), userland);
    }
}
