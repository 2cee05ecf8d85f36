//! SHA-256 of bytes and files, in hexadecimal digits.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    model::hexadecimal(&Sha256::digest(bytes))
}

/// Returns the SHA-256 of a file, without holding it in memory.
///
/// # Errors
/// If it cannot be read.
pub fn sha256_of_file(file: &Path) -> io::Result<String> {
    sha256_of(&mut BufReader::with_capacity(1 << 20, File::open(file)?))
}

/// A reader that hashes what it gives.
pub(crate) struct HashingReader<R> {
    content: R,
    hash: Sha256,
}

impl<R: Read> HashingReader<R> {
    pub(crate) fn new(content: R) -> Self {
        Self {
            content,
            hash: Sha256::new(),
        }
    }

    /// Returns the SHA-256 of what was read.
    pub(crate) fn finish(self) -> String {
        model::hexadecimal(&self.hash.finalize())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.content.read(buffer)?;
        self.hash.update(&buffer[..length]);
        Ok(length)
    }
}

/// Returns the SHA-256 of what a reader still has.
pub(crate) fn sha256_of(content: &mut impl BufRead) -> io::Result<String> {
    let mut hash = Sha256::new();
    loop {
        let piece = content.fill_buf()?;
        let length = piece.len();
        if length == 0 {
            return Ok(model::hexadecimal(&hash.finalize()));
        }
        hash.update(piece);
        content.consume(length);
    }
}
