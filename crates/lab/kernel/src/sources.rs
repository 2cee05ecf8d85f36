//! Source locations of a kernel's functions, from the debug information (DWARF) of its vmlinux.

use std::path::Path;

use addr2line::Loader;
use model::SourceLocation;

fn source_place(loader: &Loader, address: u64) -> Option<SourceLocation> {
    // The function itself, not a function inlined at its beginning.
    let mut frames = loader.find_frames(address).ok()?;
    let mut location = None;
    while let Some(frame) = frames.next().ok()? {
        location = frame.location;
    }
    let location = location?;
    Some(SourceLocation {
        file: straight(location.file?),
        line: location.line.unwrap_or(0),
    })
}

/// Returns the source location of each address, with file names relative to the source tree.
/// Unknown ones are `None`: all, if the file is unreadable or has no debug information.
#[must_use]
pub fn source_places(vmlinux: &Path, addresses: &[u64]) -> Vec<Option<SourceLocation>> {
    let Ok(loader) = Loader::new(vmlinux) else {
        return vec![None; addresses.len()];
    };
    let mut places: Vec<Option<SourceLocation>> = addresses
        .iter()
        .map(|address| source_place(&loader, *address))
        .collect();
    let files: Vec<&str> = places
        .iter()
        .flatten()
        .map(|place| place.file.as_str())
        .collect();
    let top = common_folder(&files).len();
    for place in places.iter_mut().flatten() {
        place.file.drain(..top);
    }
    places
}

/// The functions of a vmlinux with the functions inlined into them.
pub struct Inlines {
    loader: Loader,
}

impl std::fmt::Debug for Inlines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inlines").finish_non_exhaustive()
    }
}

impl Inlines {
    /// Reads the debug information of a vmlinux. `None` if it has none for the code at an address.
    #[must_use]
    pub fn open(vmlinux: &Path, known: u64) -> Option<Self> {
        let inlines = Self {
            loader: Loader::new(vmlinux).ok()?,
        };
        inlines.function(known).is_some().then_some(inlines)
    }

    /// Returns the function whose source the code at an address comes from, inlined or not.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<String> {
        let innermost = self.loader.find_frames(address).ok()?.next().ok()??;
        Some(innermost.function?.raw_name().ok()?.into_owned())
    }
}

/// Returns a path without `.` and `..`.
fn straight(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "..")) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the common directory of all files, with a trailing slash.
fn common_folder<'a>(files: &[&'a str]) -> &'a str {
    let Some((first, others)) = files.split_first() else {
        return "";
    };
    let length = others
        .iter()
        .map(|other| common_prefix(first, other))
        .min()
        .unwrap_or(first.len());
    first
        .get(..length)
        .and_then(|start| start.rfind('/'))
        .map_or("", |slash| &first[..=slash])
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::{Inlines, common_folder, source_places, straight};
    use std::path::Path;

    #[test]
    fn files_are_named_relative_to_the_source_tree() {
        assert_eq!(
            straight("/build/linux/./mm/../mm/memory.c"),
            "/build/linux/mm/memory.c"
        );
        assert_eq!(
            common_folder(&[
                "/b/linux/mm/memory.c",
                "/b/linux/mm/mmap.c",
                "/b/linux/fs/pipe.c"
            ]),
            "/b/linux/"
        );
        assert_eq!(common_folder(&["mm/memory.c", "fs/pipe.c"]), "");
        assert_eq!(common_folder(&[]), "");
    }

    #[test]
    fn file_without_debug_information_has_no_locations() {
        assert_eq!(
            source_places(Path::new("/nonexistent"), &[1, 2]),
            [None, None]
        );
        let plain = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(plain.path(), "no program").unwrap();
        assert_eq!(source_places(plain.path(), &[1]), [None]);
        assert!(Inlines::open(plain.path(), 1).is_none());
    }

    /// This test's own debug information; its symbols are relative to its load address.
    #[test]
    fn debug_information_tells_file_and_line() {
        let program = std::env::current_exe().unwrap();
        let address = source_places as *const () as u64 - loaded_at(&program);
        let place = source_places(&program, &[address]).remove(0).unwrap();
        assert_eq!(place.file, "sources.rs", "one file is its own top");
        assert!(place.line > 5 && place.line < 40, "{place:?}");
        let inlines = Inlines::open(&program, address).unwrap();
        assert!(inlines.function(address).unwrap().contains("source_places"));
    }

    fn loaded_at(program: &Path) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps
            .lines()
            .find(|line| line.ends_with(program.to_str().unwrap()))
            .unwrap();
        u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap()
    }
}
