//! Fuzzing: one body for each reader, for the crate `fuzz`. A body returns for any bytes.

use crate::artefacts;

/// A packed artefact, behind its size in four bytes.
pub fn artefact(bytes: &[u8]) {
    if let Some((size, packed)) = bytes.split_first_chunk() {
        artefacts::unpacked(packed, u32::from_le_bytes(*size) as usize);
    }
}
