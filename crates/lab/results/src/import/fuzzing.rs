//! Fuzzing: one body for each reader, for the crate `fuzz`. A body returns for any bytes.

use super::tree::{FILE_MAX, unpack_from};

/// A file as suites store them, compressed or not.
pub fn file(bytes: &[u8]) {
    for extension in ["gz", "xz"] {
        if let Ok(unpacked) = unpack_from(bytes, Some(extension), FILE_MAX) {
            assert!(unpacked.len() as u64 <= FILE_MAX);
        }
    }
}
