//! Fetches a file into a directory, checks it by its hash, and writes small ones whole.
//!
//! `http` speaks the protocol; the callers know which hash a signed list has.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::http::{self, Answer, HttpError, Receiver};
use crate::{ArchiveError, hashing};

/// A file that is received.
struct Download {
    file: File,
}

impl Receiver for Download {
    fn restart(&mut self) -> io::Result<()> {
        use std::io::Seek;
        self.file.set_len(0)?;
        self.file.rewind()
    }

    fn receive(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }
}

/// Fetches a file of at most so many bytes, which the caller verifies.
///
/// # Errors
/// If it cannot be fetched: then nothing is left.
pub fn fetch_file(url: &str, bytes_max: u64, file: &Path) -> Result<(), ArchiveError> {
    fetch(url, None, bytes_max, file, "is the address right?").map(drop)
}

/// Fetches a file of at most so many bytes; `hint` is for one that is not there.
pub(crate) fn fetch(
    url: &str,
    since: Option<&str>,
    bytes_max: u64,
    file: &Path,
    hint: &'static str,
) -> Result<Answer, ArchiveError> {
    let mut download = Download {
        file: File::create(file).map_err(ArchiveError::io(file))?,
    };
    let since = since.filter(|date| !date.is_empty());
    http::get(url, since, bytes_max, &mut download).map_err(|error| {
        drop(fs::remove_file(file));
        let url = url.to_owned();
        match error {
            HttpError::Status(404 | 410) => ArchiveError::Absent { url, hint },
            HttpError::Status(407) => ArchiveError::Fetch {
                url,
                detail: "the proxy asks for a login (407), and Marvin sends none".to_owned(),
            },
            HttpError::Status(status) => ArchiveError::Fetch {
                url,
                detail: format!("the server answers with status {status}"),
            },
            HttpError::Network(detail) => ArchiveError::Fetch { url, detail },
            HttpError::Receiver(source) => ArchiveError::io(file)(source),
        }
    })
}

/// Fetches a file whose size and hash are known; leaves nothing if it is another one.
pub(crate) fn fetch_known(
    url: &str,
    bytes: u64,
    sha256: &str,
    file: &Path,
    hint: &'static str,
) -> Result<(), ArchiveError> {
    fetch(url, None, bytes, file, hint)?;
    let checked = check(url, file, bytes, sha256);
    if checked.is_err() {
        drop(fs::remove_file(file));
    }
    checked
}

/// Checks that a file is the one that a list names.
fn check(url: &str, file: &Path, bytes: u64, sha256: &str) -> Result<(), ArchiveError> {
    let length = fs::metadata(file).map_err(ArchiveError::io(file))?.len();
    let got = hashing::sha256_of_file(file).map_err(ArchiveError::io(file))?;
    if length == bytes && got == sha256 {
        return Ok(());
    }
    Err(ArchiveError::Checksum {
        url: url.to_owned(),
        expected: sha256.to_owned(),
        got,
    })
}

/// Reads a whole file.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, ArchiveError> {
    fs::read(file).map_err(ArchiveError::io(file))
}

/// Writes a file completely or not at all.
pub(crate) fn write(file: &Path, content: &[u8]) -> Result<(), ArchiveError> {
    let new = file.with_extension("part");
    subprocess::replace_file(file, &new, content).map_err(ArchiveError::io(file))
}

/// Returns a name for the file of an address, which need not be one of a file.
pub(crate) fn file_name(url: &str) -> String {
    let name = url.rsplit('/').next().unwrap_or_default();
    name.replace(
        |c: char| !c.is_ascii_alphanumeric() && !"._+~-%".contains(c),
        "_",
    )
}
