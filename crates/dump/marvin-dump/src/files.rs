//! Checks all named files before use: no output may be an input.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use vmcore::DumpError;

/// Size limit of a given VMCOREINFO text (bytes): the kernel has a page for it.
const NOTE_MAX: u64 = 1 << 20;
/// The path of standard input.
const STANDARD_INPUT: &str = "/dev/stdin";

/// Refuses outputs that are an input under any name, equal to another output, or a disk; and inputs
/// without offsets.
///
/// # Errors
/// If there is one; names it.
pub(super) fn check(inputs: &[&Path], outputs: &[PathBuf]) -> Result<(), DumpError> {
    let read: Vec<(&Path, Metadata)> = inputs
        .iter()
        .filter_map(|path| Some((*path, path.metadata().ok()?)))
        .collect();
    let stream =
        |(_, data): &&(&Path, Metadata)| data.file_type().is_fifo() || data.file_type().is_socket();
    if let Some((path, _)) = read.iter().find(stream) {
        return usage(format!(
            "cannot read {}: it is a pipe, and dumps need random access; write it to a file first",
            path.display()
        ));
    }
    let mut written: Vec<(&Path, Metadata)> = Vec::new();
    for path in outputs {
        // A file that does not exist yet cannot be an input.
        let Ok(data) = path.metadata() else { continue };
        if data.file_type().is_fifo() || data.file_type().is_socket() {
            return usage(format!(
                "cannot write {}: it is a pipe, and dumps need random access; use --flattened, which writes to standard output",
                path.display()
            ));
        }
        if data.file_type().is_block_device() {
            return usage(format!(
                "cannot write {}: it is a disk, whose old content would show in the dump; name a file",
                path.display()
            ));
        }
        if let Some((input, _)) = read.iter().find(|(_, other)| is_same(other, &data)) {
            let path = path.display();
            let input = input.display();
            return usage(format!(
                "cannot write {path}: it is the input {input}; name another file"
            ));
        }
        if let Some((other, _)) = written.iter().find(|(_, other)| is_same(other, &data)) {
            return usage(format!(
                "{} and {} are the same file",
                other.display(),
                path.display()
            ));
        }
        written.push((path, data));
    }
    let twice = outputs
        .iter()
        .enumerate()
        .find(|(n, path)| outputs[..*n].contains(path));
    twice.map_or(Ok(()), |(_, path)| {
        usage(format!(
            "{} is named twice as a file to write",
            path.display()
        ))
    })
}

/// Refuses an output that is also standard input.
///
/// # Errors
/// If it is.
pub(super) fn check_stream(output: &Path) -> Result<(), DumpError> {
    let path = Path::new(STANDARD_INPUT);
    let is_file = path.metadata().is_ok_and(|data| data.is_file());
    let inputs: Vec<&Path> = is_file.then_some(path).into_iter().collect();
    check(&inputs, &[output.to_owned()])
}

/// Reads a VMCOREINFO text.
///
/// # Errors
/// If it cannot be read or is too large.
pub(super) fn note(path: &Path) -> Result<Vec<u8>, DumpError> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(DumpError::reading(path, 0))?;
    file.take(NOTE_MAX + 1)
        .read_to_end(&mut text)
        .map_err(DumpError::reading(path, 0))?;
    if text.len() as u64 > NOTE_MAX {
        return usage(format!("{} is too large for VMCOREINFO", path.display()));
    }
    Ok(text)
}

/// Reads a file with data to erase.
///
/// # Errors
/// If it cannot be read, is too large, or is not UTF-8.
pub(super) fn text(path: &Path) -> Result<String, DumpError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(DumpError::reading(path, 0))?;
    file.take(NOTE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(DumpError::reading(path, 0))?;
    if bytes.len() as u64 > NOTE_MAX {
        return usage(format!(
            "{} is too large for a list of data to erase",
            path.display()
        ));
    }
    String::from_utf8(bytes).or_else(|_| usage(format!("{} is not UTF-8", path.display())))
}

/// Returns whether these are the same file. Devices such as /dev/null never are.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino()) && !one.file_type().is_char_device()
}

fn usage<T>(text: String) -> Result<T, DumpError> {
    Err(DumpError::Usage(text))
}

#[cfg(test)]
mod tests {
    use super::{check, note};
    use std::path::{Path, PathBuf};

    #[test]
    fn inputs_are_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("in"), "dump").unwrap();
        std::fs::hard_link(path("in"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("in"), path("symbolic")).unwrap();
        for same in ["in", "link", "symbolic"] {
            let error = check(&[&path("in")], &[path(same)]).unwrap_err();
            assert!(error.to_string().contains("it is the input"), "{same}");
        }
        assert!(check(&[&path("in")], &[path("out")]).is_ok());
        assert!(check(&[], &[path("a"), path("b"), path("a")]).is_err());
        let null = PathBuf::from("/dev/null");
        assert!(check(&[&null], std::slice::from_ref(&null)).is_ok());
        assert!(
            note(Path::new("/dev/zero"))
                .unwrap_err()
                .to_string()
                .contains("too large for VMCOREINFO")
        );
    }
}
