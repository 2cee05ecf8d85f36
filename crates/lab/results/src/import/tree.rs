//! Directories of other suites: walks them without following links and unpacks files, within
//! limits.
//!
//! An import lists each directory once and reads at most [`ENTRIES_MAX`] names, [`DEPTH_MAX`]
//! levels down. It opens regular files only: a FIFO would block. A file larger than [`FILE_MAX`] is
//! not read, stored or unpacked, nor files of a run beyond [`RUN_MAX`].

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use model::UnixTime;

use super::ImportError;

/// Deepest directory level to search.
const DEPTH_MAX: usize = 12;
/// Most files and directories of an import.
const ENTRIES_MAX: usize = 500_000;
/// Most bytes of one file, as stored and unpacked.
pub(crate) const FILE_MAX: u64 = 64 << 20;
/// Most bytes of all files of one run, unpacked.
pub(crate) const RUN_MAX: u64 = 512 << 20;
/// Most bytes of the xz decoder; `xz -9` needs 65 MiB.
const XZ_MEMORY_MAX: u64 = 80 << 20;

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File,
    Link,
    /// A FIFO, a socket, a device.
    Special,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    /// Its name; bytes that are no text are replaced.
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// A file below a directory.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// Its path below the directory, parts separated by `/`, without the suffix of a compression.
    pub(crate) name: String,
    /// Why it cannot be read.
    pub(crate) fault: Option<&'static str>,
}

/// A walk through the directories of an import.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    entries: usize,
    /// Number of directories that were listed.
    pub(crate) listed: usize,
}

impl Walk {
    /// Lists the entries of a directory, by name.
    ///
    /// # Errors
    /// If it cannot be read, or the import has too many entries.
    pub(crate) fn entries(&mut self, folder: &Path) -> Result<Vec<Entry>, ImportError> {
        self.listed += 1;
        let unreadable = |error: std::io::Error| wrong(folder, format!("cannot be read: {error}"));
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                let what = format!(
                    "Marvin reads at most {ENTRIES_MAX} files of an import: import its directories one by one"
                );
                return Err(wrong(folder, what));
            }
            let kind = match entry.file_type().map_err(unreadable)? {
                kind if kind.is_dir() => Kind::Folder,
                kind if kind.is_file() => Kind::File,
                kind if kind.is_symlink() => Kind::Link,
                _ => Kind::Special,
            };
            entries.push(Entry {
                path: entry.path(),
                name: entry.file_name().to_string_lossy().into_owned(),
                kind,
            });
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Lists the files below a directory that a caller wants by their name, and entries of that
    /// name that are no regular files, sorted.
    ///
    /// # Errors
    /// If a directory cannot be read, or the import has too many entries.
    pub(crate) fn files(
        &mut self,
        top: &Path,
        wants: fn(&str) -> bool,
    ) -> Result<Vec<Found>, ImportError> {
        let mut found = Vec::new();
        let mut waiting = vec![(top.to_owned(), 0)];
        while let Some((folder, depth)) = waiting.pop() {
            for Entry { path, kind, .. } in self.entries(&folder)? {
                let relative = path.strip_prefix(top).unwrap_or(&path);
                let mut fault = relative.to_str().is_none().then_some("its name is no text");
                let name = uncompressed(&relative.to_string_lossy()).to_owned();
                match kind {
                    Kind::Folder if depth < DEPTH_MAX => {
                        waiting.push((path, depth + 1));
                        continue;
                    }
                    Kind::File => {}
                    kind => fault = Some(describe(kind)),
                }
                if wants(&name) || kind == Kind::Folder {
                    found.push(Found { path, name, fault });
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

/// Says why an entry is not read.
pub(crate) fn describe(kind: Kind) -> &'static str {
    match kind {
        Kind::Folder => "more than 12 directories down: Marvin does not search it",
        Kind::File => "not a directory",
        Kind::Link => "a symbolic link: Marvin does not follow it",
        Kind::Special => "a FIFO, socket or device: Marvin does not open it",
    }
}

/// Returns a name without the suffix of a compression.
pub(crate) fn uncompressed(name: &str) -> &str {
    name.strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".xz"))
        .unwrap_or(name)
}

/// Makes an error about a directory or a file.
pub(crate) fn wrong(folder: &Path, what: impl Into<String>) -> ImportError {
    ImportError::Folder {
        folder: folder.to_owned(),
        what: what.into(),
    }
}

/// Returns the time of the last modification; `None` if there is none after 1970.
pub(crate) fn modified_unix(file: &Path) -> Option<UnixTime> {
    let modified = fs::symlink_metadata(file)
        .and_then(|metadata| metadata.modified())
        .ok()?;
    let seconds = modified.duration_since(UNIX_EPOCH).ok()?.as_secs();
    // Archives without dates have 0 or 1.
    let seconds = i64::try_from(seconds).ok().filter(|seconds| *seconds > 1)?;
    Some(UnixTime::new(seconds))
}

/// Reads a regular file and unpacks it according to its suffix.
///
/// # Errors
/// If it is no regular file, cannot be read, was cut, or holds more than `most` bytes, as stored or
/// unpacked.
pub(crate) fn unpack(file: &Path, most: u64) -> Result<Vec<u8>, String> {
    let metadata = fs::symlink_metadata(file).map_err(cannot_read)?;
    if !metadata.is_file() {
        return Err("not a regular file: Marvin does not open it".to_owned());
    }
    let limit = format!("{} MiB: Marvin does not read it", most >> 20);
    if metadata.len() > most {
        return Err(format!("larger than {limit}"));
    }
    let open = File::open(file).map_err(cannot_read)?.take(most);
    unpack_from(
        open,
        file.extension().and_then(|extension| extension.to_str()),
        most,
    )
}

fn cannot_read(error: std::io::Error) -> String {
    format!("cannot be read: {error}")
}

/// Unpacks what a reader has, according to the suffix of its file.
pub(crate) fn unpack_from(
    open: impl Read,
    suffix: Option<&str>,
    most: u64,
) -> Result<Vec<u8>, String> {
    let limit = format!("{} MiB: Marvin does not read it", most >> 20);
    let mut bytes = Vec::new();
    let read = match suffix {
        Some("gz") => read_within(flate2::read::MultiGzDecoder::new(open), most, &mut bytes),
        Some("xz") => {
            let decoder = liblzma::stream::Stream::new_stream_decoder(
                XZ_MEMORY_MAX,
                liblzma::stream::CONCATENATED,
            );
            let decoder = decoder.map_err(|error| format!("cannot be unpacked: {error}"))?;
            read_within(
                liblzma::read::XzDecoder::new_stream(open, decoder),
                most,
                &mut bytes,
            )
        }
        _ => read_within(open, most, &mut bytes),
    };
    match read {
        Err(error) if is_memory_limit(&error) => Err(format!(
            "needs more than {} MiB to unpack",
            XZ_MEMORY_MAX >> 20
        )),
        Err(error) => Err(format!("damaged or cut short: {error}")),
        Ok(false) => Err(format!("unpacks to more than {limit}")),
        Ok(true) => Ok(bytes),
    }
}

fn is_memory_limit(error: &std::io::Error) -> bool {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<liblzma::stream::Error>());
    cause == Some(&liblzma::stream::Error::MemLimit)
}

/// Reads to the end; returns `false` if there is more.
fn read_within(reader: impl Read, most: u64, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
    reader.take(most.saturating_add(1)).read_to_end(bytes)?;
    Ok(bytes.len() as u64 <= most)
}
