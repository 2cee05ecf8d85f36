//! Files that readers see whole or not at all. The caller knows that it is the only writer.

use std::io;
use std::path::Path;

/// Writes a file completely or not at all: `part` first, in the same directory, which then becomes
/// the file.
///
/// # Errors
/// If either cannot be written.
pub fn replace_file(file: &Path, part: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let written = std::fs::write(part, content).and_then(|()| std::fs::rename(part, file));
    if written.is_err() {
        // On a full disk the part of a large file would leave no room for anything else.
        drop(std::fs::remove_file(part));
    }
    written
}
