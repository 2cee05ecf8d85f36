//! Fetches a file into a directory, checks it by its hash, and writes small ones whole.
//!
//! `http` speaks the protocol; the callers know which hash a signed list has.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use crate::address::without_login;
use crate::error::PORTAL_HINT;
use crate::http::{self, Answer, HttpError, Receiver, Request};
use crate::{ArchiveError, hashing};

/// Waits for so long.
pub(crate) type Pause = fn(Duration);

/// How much of a file tells whether it is a web page.
const PAGE_START: u64 = 2048;
/// Largest web page that is named as such in place of a smaller file.
const PAGE_MAX: u64 = 1 << 20;

/// A file that is received.
struct Download {
    file: File,
}

impl Receiver for Download {
    fn restart(&mut self) -> io::Result<()> {
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
/// If it cannot be fetched, or is a web page: then nothing is left.
pub fn fetch_file(url: &str, bytes_max: u64, file: &Path) -> Result<(), ArchiveError> {
    let wanted = Wanted {
        url,
        hint: "is the address right?",
        pause: std::thread::sleep,
    };
    wanted.fetch(None, bytes_max, file)?;
    let checked = refuse_web_page(url, file);
    if checked.is_err() {
        drop(fs::remove_file(file));
    }
    checked
}

/// A file to fetch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) url: &'a str,
    /// What to do if it is not there.
    pub(crate) hint: &'static str,
    /// Waits between tries.
    pub(crate) pause: Pause,
}

impl Wanted<'_> {
    /// Fetches a file of at most so many bytes; `since` is a date as an answer gave it.
    pub(crate) fn fetch(
        &self,
        since: Option<&str>,
        bytes_max: u64,
        file: &Path,
    ) -> Result<Answer, ArchiveError> {
        let mut download = Download {
            file: File::create(file).map_err(ArchiveError::io(file))?,
        };
        let request = Request {
            url: self.url,
            since: since.filter(|date| !date.is_empty()),
            bytes_max,
            pause: self.pause,
        };
        http::get(&request, &mut download).map_err(|error| {
            drop(fs::remove_file(file));
            self.failure(error, file)
        })
    }

    fn failure(&self, error: HttpError, file: &Path) -> ArchiveError {
        let failed = |detail: String, hint: Option<&'static str>| ArchiveError::Fetch {
            url: without_login(self.url),
            detail,
            hint,
        };
        match error {
            HttpError::Status(404 | 410) => ArchiveError::Absent {
                url: without_login(self.url),
                hint: self.hint,
            },
            HttpError::Status(status @ (401 | 403)) => ArchiveError::Forbidden {
                url: without_login(self.url),
                status,
            },
            HttpError::Status(511) => failed(
                "the network asks for a login (511)".to_owned(),
                Some(PORTAL_HINT),
            ),
            HttpError::Status(status) | HttpError::Throttled { status, .. } => {
                failed(format!("the server answers with status {status}"), None)
            }
            HttpError::Passing(detail) | HttpError::Silent(detail) => failed(detail, None),
            HttpError::Network { detail, hint } => failed(detail, hint),
            HttpError::Receiver(source) => ArchiveError::io(file)(source),
        }
    }

    /// Fetches a file whose size and hash are known; leaves nothing if it is another one.
    pub(crate) fn fetch_known(
        &self,
        bytes: u64,
        sha256: &str,
        file: &Path,
    ) -> Result<(), ArchiveError> {
        // A web page may be larger than the file; it is to be named.
        self.fetch(None, bytes.max(PAGE_MAX), file)?;
        let checked = check(self.url, file, bytes, sha256);
        if checked.is_err() {
            drop(fs::remove_file(file));
        }
        checked
    }
}

/// Errors if a file is a web page.
pub(crate) fn refuse_web_page(url: &str, file: &Path) -> Result<(), ArchiveError> {
    let mut start = Vec::new();
    File::open(file)
        .and_then(|file| file.take(PAGE_START).read_to_end(&mut start))
        .map_err(ArchiveError::io(file))?;
    if !is_web_page(&start) {
        return Ok(());
    }
    Err(ArchiveError::WebPage {
        url: without_login(url),
    })
}

/// Returns whether a file that begins so is a web page, whatever its server says that it is.
fn is_web_page(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('<') && (text.contains("<!doctype html") || text.contains("<html"))
}

/// Checks that a file is the one that a list names.
fn check(url: &str, file: &Path, bytes: u64, sha256: &str) -> Result<(), ArchiveError> {
    let length = fs::metadata(file).map_err(ArchiveError::io(file))?.len();
    let got = hashing::sha256_of_file(file).map_err(ArchiveError::io(file))?;
    if length == bytes && got == sha256 {
        return Ok(());
    }
    refuse_web_page(url, file)?;
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

#[cfg(test)]
mod tests {
    use super::is_web_page;

    #[test]
    fn web_pages_are_known_by_their_start() {
        for page in [
            "<!DOCTYPE html><title>Log in</title>",
            "\u{feff}\n <HTML lang=en>",
            "<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0\">",
            "<!-- portal --><html>",
        ] {
            assert!(is_web_page(page.as_bytes()), "{page}");
        }
        for other in [
            "-----BEGIN PGP SIGNED MESSAGE-----\n<html>",
            "<?xml version=\"1.0\"?>\n<repomd>",
            "",
            "\u{1f}\u{8b}<html>",
        ] {
            assert!(!is_web_page(other.as_bytes()), "{other}");
        }
    }
}
