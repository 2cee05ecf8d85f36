//! Marks around the measured work, for a tracer that watches from outside: instructions that do
//! nothing on any processor (`nopl` with a displacement that holds `KM`; read by
//! `crates/guest/tracer/src/marks.rs`).

use std::arch::asm;

/// The measured work begins.
#[inline(always)]
pub(crate) fn open() {
    // SAFETY: an 8-byte NOP; it accesses neither memory nor registers.
    unsafe {
        asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00, 0x01, 0x00, 0x4b, 0x4d",
            options(preserves_flags, nostack)
        );
    };
}

/// The measured work ends.
#[inline(always)]
pub(crate) fn close() {
    // SAFETY: as above.
    unsafe {
        asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00, 0xff, 0xff, 0x4b, 0x4d",
            options(preserves_flags, nostack)
        );
    };
}

#[cfg(test)]
mod tests {
    /// The header for programs of users has the same instructions.
    const HEADER: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/marvin-mark.h"
    ));
    const MARKS: &str = include_str!("region.rs");

    #[test]
    fn header_has_the_same_marks() {
        let marks: Vec<&str> = MARKS
            .lines()
            .filter_map(|line| line.trim().strip_prefix("\".byte "))
            .collect();
        assert_eq!(marks.len(), 2);
        for mark in marks {
            let bytes = mark.trim_end_matches("\",");
            assert!(HEADER.contains(bytes), "{bytes}");
        }
    }
}
