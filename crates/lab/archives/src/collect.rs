//! Programs of an unpacked directory with the libraries that they need.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::linked::parse_linking;
use crate::{ArchiveError, Root};

/// The dynamic linker's default search path: of Debian, of other distributions, and of programs of
/// 32 bits.
const LIBRARY_FOLDERS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/lib/i386-linux-gnu",
    "/usr/lib/i386-linux-gnu",
];
/// The byte of an ELF file that says whether it has 32 or 64 bits, and its value for 32.
const CLASS: (usize, u8) = (4, 1);

/// Files of a root, by their paths in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collected {
    pub files: BTreeMap<String, Vec<u8>>,
    /// Requested or linked files that the root has not, in order.
    pub missing: Vec<String>,
}

/// Copies the requested files and their libraries from a root. A directory stands for its files.
/// Libraries are searched in `folders` before the dynamic linker's own.
///
/// # Errors
/// If a file cannot be read, or all together have more than `bytes_max` bytes.
pub fn collect(
    root: &Root<'_>,
    wanted: &[String],
    folders: &[String],
    bytes_max: u64,
) -> Result<Collected, ArchiveError> {
    let mut collected = Collected::default();
    let mut room = bytes_max;
    let mut open: Vec<String> = Vec::new();
    for path in wanted {
        let found = root.files(path);
        if found.is_empty() {
            collected.missing.push(path.clone());
        }
        open.extend(found);
    }
    while let Some(path) = open.pop() {
        if collected.files.contains_key(&path) {
            continue;
        }
        let Some(place) = root.file(&path) else {
            collected.missing.push(path);
            continue;
        };
        let size = fs::metadata(&place)
            .map_err(ArchiveError::io(&place))?
            .len();
        room = room
            .checked_sub(size)
            .ok_or(ArchiveError::Large { bytes_max })?;
        let bytes = fs::read(&place).map_err(ArchiveError::io(&place))?;
        if let Some(linked) = parse_linking(&bytes) {
            open.extend(linked.interpreter);
            let origin = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let folders: Vec<String> = linked
                .folders
                .iter()
                .map(|folder| at_origin(folder, origin))
                .chain(folders.iter().cloned())
                .collect();
            for name in linked.needed {
                match library(root, &name, &folders, linked.is_32_bit) {
                    Some(path) => open.push(path),
                    None => collected.missing.push(name),
                }
            }
        }
        collected.files.insert(path, bytes);
    }
    collected.missing.sort();
    collected.missing.dedup();
    Ok(collected)
}

fn at_origin(folder: &str, origin: &str) -> String {
    folder
        .replace("${ORIGIN}", origin)
        .replace("$ORIGIN", origin)
}

/// Returns the path of a library, as the dynamic linker finds it.
fn library(root: &Root<'_>, name: &str, folders: &[String], is_32_bit: bool) -> Option<String> {
    if name.contains('/') {
        return root.file(name).map(|_| name.to_owned());
    }
    let folders = folders.iter().map(String::as_str).chain(LIBRARY_FOLDERS);
    folders
        .filter_map(|folder| PathBuf::from(folder).join(name).to_str().map(str::to_owned))
        .find(|path| {
            root.find(path)
                .is_some_and(|found| found.is_file() && fits(&found, is_32_bit))
        })
}

/// Returns whether a library has the bits of the program; true if it is no ELF file.
fn fits(library: &Path, is_32_bit: bool) -> bool {
    let mut head = [0; 5];
    let read = File::open(library).and_then(|mut file| file.read_exact(&mut head));
    read.is_err() || !head.starts_with(b"\x7fELF") || (head[CLASS.0] == CLASS.1) == is_32_bit
}
