//! Fuzzing: one body for each reader, for the crate `fuzz`. A body returns for any bytes.

use crate::artifacts;

/// A packed artifact, behind its size in four bytes.
pub fn artifact(bytes: &[u8]) {
    if let Some((size, packed)) = bytes.split_first_chunk() {
        artifacts::unpacked(packed, u32::from_le_bytes(*size) as usize);
    }
}
