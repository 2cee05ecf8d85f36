//! The reference QEMU in one file, as a release has it, and how it gets from a release into a data
//! directory.
//!
//! Nothing in a release is trusted: a file counts only if it is one of the reference QEMU's, by
//! path, size and hash (`bundle::files`).

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use archives::{ArchiveError, PackedFile, fetch_file, open_packed, pack};
use model::Fault;

use super::bundle::{self, KnownFile, NAME};
use crate::MachineError;

/// Most bytes of the packed file: five times what it has.
const PACKED_MAX: u64 = 64 << 20;

/// Why a release gave no QEMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseProblem {
    /// There is no such file.
    Missing { place: String },
    /// The network or the server failed.
    Unreachable {
        url: String,
        detail: String,
        /// What to do; `None` if nothing special.
        hint: Option<&'static str>,
    },
    /// The file is there and cannot be read.
    Unreadable { place: String, detail: String },
    /// The file is cut short or no archive.
    Damaged { place: String, detail: String },
    /// The file has another machine, or files of no machine.
    Other { place: String, detail: String },
}

impl std::error::Error for ReleaseProblem {}

impl fmt::Display for ReleaseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { place } => write!(
                f,
                "there is no {place}\nhint: name the folder or the address of a release, with the file {}",
                file_name()
            ),
            Self::Unreachable { url, detail, hint } => {
                let hint = hint.unwrap_or("check the network, or name a folder with --from");
                write!(f, "cannot fetch {url}: {detail}\nhint: {hint}")
            }
            Self::Unreadable { place, detail } => write!(
                f,
                "cannot read {place}: {detail}\nhint: give this user the right to read the file and to enter its folders, or copy it"
            ),
            Self::Damaged { place, detail } => write!(
                f,
                "{place} is damaged: {detail}; nothing of it was kept\nhint: compare it with SHA256SUMS of the release, and copy \
                 or fetch it again"
            ),
            Self::Other { place, detail } => write!(
                f,
                "{place} has another machine than this Marvin: {detail}; nothing of it was kept\nhint: take program and \
                 machine from the same release"
            ),
        }
    }
}

impl ReleaseProblem {
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Missing { .. } | Self::Unreadable { .. } => Fault::User,
            _ => Fault::Lab,
        }
    }
}

/// Returns the name of the file in a release.
fn file_name() -> String {
    format!("machine-{NAME}.tar.xz")
}

/// Packs the reference QEMU of a data directory into a directory, and returns the file. The bytes
/// depend on nothing else.
///
/// # Errors
/// If it is not there or damaged, or the file cannot be written.
pub fn pack_setup(home: &Path, into: &Path) -> Result<PathBuf, MachineError> {
    let folder = bundle::folder(home);
    if let Some(detail) = bundle::damage(&folder, bundle::files()) {
        let place = folder.display().to_string();
        return Err(ReleaseProblem::Damaged { place, detail }.into());
    }
    fs::create_dir_all(into).map_err(MachineError::io("create", into))?;
    let file = into.join(file_name());
    let part = into.join(format!("{}.part", file_name()));
    let mut contents = Vec::new();
    for known in bundle::files() {
        let path = folder.join(known.path);
        let content = fs::read(&path).map_err(MachineError::io("read", &path))?;
        contents.push((known, content));
    }
    let files = contents.iter().map(|(known, content)| PackedFile {
        path: known.path,
        is_program: known.is_program(),
        content,
    });
    if let Err(error) = pack(&part, files) {
        drop(fs::remove_file(&part));
        return Err(error.into());
    }
    fs::rename(&part, &file).map_err(MachineError::io("rename", &file))?;
    Ok(file)
}

/// Returns whether a release is at an address, not in a directory.
fn is_address(release: &str) -> bool {
    release.starts_with("http://") || release.starts_with("https://")
}

/// Unpacks the QEMU of a release into a new directory; what is fetched goes to `scratch`.
pub(super) fn take(release: &str, scratch: &Path, new: &Path) -> Result<(), MachineError> {
    let name = file_name();
    if !is_address(release) {
        return take_file(Path::new(release), new);
    }
    let url = format!("{}/{name}", release.trim_end_matches('/'));
    let file = scratch.join(&name);
    fetch_file(&url, PACKED_MAX, &file).map_err(|error| match error {
        ArchiveError::Absent { url, .. } => ReleaseProblem::Missing { place: url }.into(),
        ArchiveError::Fetch { url, detail, hint } => {
            ReleaseProblem::Unreachable { url, detail, hint }.into()
        }
        ArchiveError::Forbidden { url, status } => ReleaseProblem::Unreachable {
            url,
            detail: format!("the server answers with status {status}"),
            hint: None,
        }
        .into(),
        other => MachineError::Archive(other),
    })?;
    unpack(&file, &url, new, bundle::files())
}

/// Unpacks the QEMU of a release in a directory, or of its file, into a new directory.
fn take_file(release: &Path, new: &Path) -> Result<(), MachineError> {
    let file = match fs::metadata(release) {
        Ok(found) if found.is_file() => release.to_owned(),
        _ => release.join(file_name()),
    };
    let place = file.display().to_string();
    // A directory opens too, and cannot be read.
    let opened = fs::File::open(&file).and_then(|mut open| open.read(&mut [0]));
    match opened {
        Ok(_) => unpack(&file, &place, new, bundle::files()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(ReleaseProblem::Missing { place }.into())
        }
        Err(error) => {
            let detail = error.to_string();
            Err(ReleaseProblem::Unreadable { place, detail }.into())
        }
    }
}

/// Unpacks a file, all of whose files must be known, and which must have all of those.
fn unpack(
    file: &Path,
    place: &str,
    new: &Path,
    mut known: impl Iterator<Item = KnownFile<'static>> + Clone,
) -> Result<(), MachineError> {
    let place = place.to_owned();
    let damaged = |error: io::Error| {
        let detail = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
            _ => error.to_string(),
        };
        let place = place.clone();
        MachineError::from(ReleaseProblem::Damaged { place, detail })
    };
    let mut archive = open_packed(file)?;
    let mut written = 0;
    while let Some(entry) = archive.next_entry().map_err(damaged)? {
        let found = known.clone().find(|one| one.path == entry.path);
        let is_that = found
            .as_ref()
            .filter(|one| one.sha256 == archives::sha256(&entry.content));
        let Some(one) = is_that else {
            let detail = match found {
                Some(one) => format!(
                    "{} has SHA-256 {}, not {}",
                    one.path,
                    archives::sha256(&entry.content),
                    one.sha256
                ),
                None => format!("{} is no file of it", entry.path),
            };
            return Err(ReleaseProblem::Other { place, detail }.into());
        };
        bundle::write_file(new, one, &entry.content)?;
        written += 1;
    }
    if let Some(absent) = known.find(|one| !new.join(one.path).is_file()) {
        let detail = format!(
            "of {} files, {written} are there: {} is not",
            bundle::files().count(),
            absent.path
        );
        return Err(ReleaseProblem::Other { place, detail }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use archives::{PackedFile, pack, sha256};

    use super::super::bundle::KnownFile;
    use super::{ReleaseProblem, take, unpack};
    use crate::MachineError;

    /// Two files that stand for those of the QEMU.
    fn known() -> [KnownFile<'static>; 2] {
        ["one", "other"].map(|path| KnownFile {
            path,
            sha256: Box::leak(sha256(path.as_bytes()).into_boxed_str()),
            bytes: path.len() as u64,
        })
    }

    /// Packs files whose content is given, and returns what unpacking them says.
    fn unpacked(
        files: &[(&str, &str)],
        change: fn(Vec<u8>) -> Vec<u8>,
    ) -> Result<(), ReleaseProblem> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.tar.xz");
        let files = files.iter().map(|(path, content)| PackedFile {
            path,
            is_program: false,
            content: content.as_bytes(),
        });
        pack(&file, files).unwrap();
        fs::write(&file, change(fs::read(&file).unwrap())).unwrap();
        let new = folder.path().join("new");
        match unpack(&file, "FILE", &new, known().into_iter()) {
            Ok(()) => Ok(()),
            Err(MachineError::Release(problem)) => Err(problem),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn only_known_files_are_taken() {
        let whole: fn(Vec<u8>) -> Vec<u8> = |bytes| bytes;
        assert_eq!(
            unpacked(&[("one", "one"), ("other", "other")], whole),
            Ok(())
        );
        for files in [
            vec![("one", "one")],
            vec![("one", "two"), ("other", "other")],
            vec![("one", "one"), ("other", "other"), ("third", "third")],
            vec![],
        ] {
            let problem = unpacked(&files, whole).unwrap_err();
            assert!(matches!(problem, ReleaseProblem::Other { .. }), "{problem}");
        }
    }

    #[test]
    fn file_that_is_cut_short_is_damaged() {
        let problem = unpacked(&[("one", "one"), ("other", "other")], |mut bytes| {
            bytes.truncate(bytes.len() / 2);
            bytes
        });
        let problem = problem.unwrap_err().to_string();
        assert!(
            problem.starts_with("FILE is damaged: it is cut short; nothing"),
            "{problem}"
        );
        let problem = unpacked(&[("one", "one")], |_| b"hello".to_vec()).unwrap_err();
        assert!(
            matches!(problem, ReleaseProblem::Damaged { .. }),
            "{problem}"
        );
    }

    #[test]
    fn folder_without_a_machine_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let release = folder.path().display().to_string();
        let error = take(
            &release,
            Path::new("/nonexistent"),
            Path::new("/nonexistent"),
        );
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("there is no {release}/machine-")),
            "{error}"
        );
    }

    #[test]
    fn release_that_cannot_be_read_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |release: &Path| {
            let error = take(
                &release.display().to_string(),
                Path::new("/nonexistent"),
                Path::new("/nonexistent"),
            );
            error.unwrap_err().to_string()
        };
        // A folder in place of the file, a file in place of the folder above it, a link to itself.
        let file = folder.path().join(super::file_name());
        fs::create_dir(&file).unwrap();
        let error = refused(folder.path());
        assert!(error.contains("Is a directory"), "{error}");
        fs::remove_dir(&file).unwrap();
        std::os::unix::fs::symlink(super::file_name(), &file).unwrap();
        let error = refused(folder.path());
        assert!(error.starts_with("cannot read /"), "{error}");
        fs::remove_file(&file).unwrap();
        fs::write(&file, "x").unwrap();
        let error = refused(&file.join("below"));
        assert!(error.contains("Not a directory"), "{error}");
        // The file itself is as good as its folder.
        let error = refused(&file);
        assert!(error.contains("is damaged"), "{error}");
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        fs::set_permissions(&file, closed).unwrap();
        // Root may read it all the same.
        if fs::File::open(&file).is_err() {
            let error = refused(folder.path());
            assert!(error.contains("ermission denied"), "{error}");
        }
    }
}
