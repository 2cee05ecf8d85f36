//! Directories of other suites: walks them without following links and unpacks files, within limits.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use ingest::{Content, TreeFile};

use crate::ImportError;

/// Deepest directory level to search.
const DEPTH_MAX: usize = 12;
/// Most files and directories.
const ENTRIES_MAX: usize = 200_000;
/// Most bytes of one file, unpacked.
const FILE_MAX: u64 = 64 << 20;
/// Most bytes of all files of one run, unpacked.
const RUN_MAX: u64 = 512 << 20;

/// Lists files below a directory, as sorted relative paths. Does not follow links.
///
/// # Errors
/// If a directory cannot be read, or a limit is exceeded.
pub(crate) fn files(top: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let mut found = Vec::new();
    let mut waiting = vec![(top.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = waiting.pop() {
        for entry in entries(&folder)? {
            seen += 1;
            if seen > ENTRIES_MAX {
                return Err(wrong(top, format!("more than {ENTRIES_MAX} files: name a folder further in")));
            }
            let kind = entry.file_type().map_err(|error| wrong(&entry.path(), error.to_string()))?;
            if kind.is_dir() && depth < DEPTH_MAX {
                waiting.push((entry.path(), depth + 1));
            } else if kind.is_file() {
                found.extend(entry.path().strip_prefix(top).map(Path::to_owned));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Lists the entries of a directory, by name.
pub(crate) fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, ImportError> {
    let read = || -> std::io::Result<Vec<fs::DirEntry>> { fs::read_dir(folder)?.collect() };
    let mut entries = read().map_err(|error| wrong(folder, format!("cannot be read: {error}")))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

/// Makes an error about a directory or a file.
pub(crate) fn wrong(folder: &Path, what: impl Into<String>) -> ImportError {
    ImportError::Folder { folder: folder.to_owned(), what: what.into() }
}

/// Opens the files of a run that a parser reads.
pub(crate) fn read(top: &Path, reads: fn(&str) -> bool) -> Result<Vec<TreeFile>, ImportError> {
    let mut room = RUN_MAX;
    let mut all = Vec::new();
    for file in files(top)? {
        let Some(name) = file.to_str() else {
            let path = file.to_string_lossy().into_owned();
            all.push(TreeFile { path, content: Content::Damaged("its name is no text".to_owned()) });
            continue;
        };
        let path = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".xz")).unwrap_or(name).to_owned();
        let content = if reads(&path) {
            match unpack(&top.join(&file), room.min(FILE_MAX)) {
                Ok(bytes) => {
                    room -= bytes.len() as u64;
                    Content::Bytes(bytes)
                }
                Err(why) => Content::Damaged(why),
            }
        } else {
            Content::Closed
        };
        all.push(TreeFile { path, content });
    }
    Ok(all)
}

/// Reads a file and unpacks it according to its suffix.
///
/// # Errors
/// If it cannot be read, was cut, or holds more than `most` bytes.
pub(crate) fn unpack(file: &Path, most: u64) -> Result<Vec<u8>, String> {
    let open = File::open(file).map_err(|error| format!("cannot be read: {error}"))?;
    let limit = most.saturating_add(1);
    let mut bytes = Vec::new();
    let read = match file.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => flate2::read::MultiGzDecoder::new(open).take(limit).read_to_end(&mut bytes),
        Some("xz") => liblzma::read::XzDecoder::new_multi_decoder(open).take(limit).read_to_end(&mut bytes),
        _ => open.take(limit).read_to_end(&mut bytes),
    };
    match read {
        Err(error) => Err(format!("damaged or cut short: {error}")),
        Ok(_) if bytes.len() as u64 > most => Err(format!("holds more than {} MiB", most >> 20)),
        Ok(_) => Ok(bytes),
    }
}

/// Reads a result file, with or without `.gz`; `None` if there is none.
pub(crate) fn document(folder: &Path, name: &str) -> Option<Result<Vec<u8>, String>> {
    let candidates = [folder.join(name), folder.join(format!("{name}.gz")), folder.join(format!("{name}.xz"))];
    candidates.iter().find(|file| file.is_file()).map(|file| unpack(file, FILE_MAX))
}
