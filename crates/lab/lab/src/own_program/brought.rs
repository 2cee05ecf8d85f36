//! The files that `--with` names: all of a directory, or an error that says why not. A part of it
//! would make a benchmark of something else.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::OwnProgramError;
use super::files::{FILES_MAX, KERNEL_FOLDERS};

/// Most files and directories below one named directory.
const ENTRIES_MAX: usize = 100_000;

/// What a directory has.
#[derive(Debug, Default)]
pub(super) struct Brought {
    pub(super) files: BTreeSet<String>,
    /// Paths that a guest cannot get: devices, FIFOs, sockets, links to nowhere, names that are not
    /// UTF-8.
    pub(super) left_out: BTreeSet<String>,
    bytes: u64,
    entries: usize,
    /// Real directories that were entered: links may go in a circle.
    entered: BTreeSet<(u64, u64)>,
}

/// Finds the files at or below a path. Directories that are links are entered, once each.
pub(super) fn list(named: &Path) -> Result<Brought, OwnProgramError> {
    let about = fs::metadata(named).map_err(|_| OwnProgramError::no_file(named))?;
    if is_kernels(named) {
        return Err(OwnProgramError::Kernels {
            path: named.to_owned(),
        });
    }
    if !about.is_file() && !about.is_dir() {
        return Err(OwnProgramError::Special {
            path: named.to_owned(),
        });
    }
    // Walking a whole host would only show the same later.
    if named == Path::new("/") {
        return Err(refuse_large(named));
    }
    let mut brought = Brought::default();
    let mut open = vec![(named.to_owned(), about)];
    while let Some((path, about)) = open.pop() {
        if about.is_dir() {
            open.extend(brought.enter(&path, &about)?);
        } else {
            brought.add(&path, &about);
        }
        if brought.bytes > FILES_MAX || brought.entries > ENTRIES_MAX {
            return Err(refuse_large(named));
        }
    }
    Ok(brought)
}

fn refuse_large(named: &Path) -> OwnProgramError {
    OwnProgramError::LargeDirectory {
        path: named.to_owned(),
        bytes_max: FILES_MAX,
        entries_max: ENTRIES_MAX,
    }
}

fn is_kernels(path: &Path) -> bool {
    KERNEL_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

impl Brought {
    fn add(&mut self, path: &Path, about: &Metadata) {
        match path.to_str() {
            Some(text) if about.is_file() => {
                self.bytes += about.len();
                self.files.insert(text.to_owned());
            }
            _ => self.leave_out(path),
        }
    }

    fn leave_out(&mut self, path: &Path) {
        self.left_out.insert(path.to_string_lossy().into_owned());
    }

    /// Returns what a directory has, without what is the kernel's.
    fn enter(
        &mut self,
        folder: &Path,
        about: &Metadata,
    ) -> Result<Vec<(PathBuf, Metadata)>, OwnProgramError> {
        let mut found = Vec::new();
        if is_kernels(folder) || !self.entered.insert((about.dev(), about.ino())) {
            return Ok(found);
        }
        for entry in fs::read_dir(folder).map_err(OwnProgramError::read(folder))? {
            let path = entry.map_err(OwnProgramError::read(folder))?.path();
            self.entries += 1;
            match fs::metadata(&path) {
                Ok(about) => found.push((path, about)),
                Err(_) => self.leave_out(&path),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use super::list;

    fn names(paths: &std::collections::BTreeSet<String>, folder: &Path) -> Vec<String> {
        let start = format!("{}/", folder.display());
        paths.iter().map(|path| path.replace(&start, "")).collect()
    }

    #[test]
    fn directory_is_whole_and_circles_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("a/deep")).unwrap();
        fs::create_dir(at("aside")).unwrap();
        fs::write(at("a/deep/file"), "x").unwrap();
        fs::write(at("aside/more"), "x").unwrap();
        symlink("../../a", at("a/deep/circle")).unwrap();
        symlink("../aside", at("a/other")).unwrap();
        symlink("nowhere", at("a/lost")).unwrap();
        let _socket = UnixListener::bind(at("a/socket")).unwrap();
        let found = list(&at("a")).unwrap();
        assert_eq!(
            names(&found.files, folder.path()),
            ["a/deep/file", "a/other/more"]
        );
        assert_eq!(
            names(&found.left_out, folder.path()),
            ["a/lost", "a/socket"]
        );
    }

    #[test]
    fn unfit_paths_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = fs::File::create(folder.path().join("large")).unwrap();
        file.set_len(10 << 30).unwrap();
        let refused = |path: &Path| {
            let text = list(path).unwrap_err().to_string();
            text.replace(&folder.path().display().to_string(), "DIR")
        };
        insta::assert_snapshot!(refused(folder.path()), @"--with DIR: it has more than 1024 MiB or 100000 files: name what the program needs of it");
        insta::assert_snapshot!(refused(Path::new("/")), @"--with /: it has more than 1024 MiB or 100000 files: name what the program needs of it");
        insta::assert_snapshot!(refused(Path::new("/dev/null")), @"/dev/null is the kernel's: the guest has its own; copy it to a file first to bring this host's");
        insta::assert_snapshot!(refused(Path::new("/proc/cpuinfo")), @"/proc/cpuinfo is the kernel's: the guest has its own; copy it to a file first to bring this host's");
        insta::assert_snapshot!(refused(&folder.path().join("none")), @"there is no DIR/none");
    }
}
