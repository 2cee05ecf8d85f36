//! Checksums (CRC-32) of kdump files, where no reader looks: that of the headers at the end of the
//! first 4 KiB, the smallest block; before the bitmaps that of the notes and that of the bitmaps;
//! and one in each page's descriptor, in a field in which other writers have zeros (`page_flags`).
//!
//! Each has a mark. A file with one of the marks has all of them, so that a damaged mark is found
//! too.

use std::ops::Range;

use crate::bytes::{put, u32_or_zero};
use crate::kdump::{DESCRIPTOR, INCOMPLETE, field};

/// Size of a mark and its checksum, in bytes.
pub(crate) const SUM: usize = 16;
/// At [`HEADS`]: see [`heads_sum`].
const HEADS_MARK: &[u8; 12] = b"MARVIN HEADS";
/// Offset of the mark of the headers in the file.
const HEADS: usize = FIRST - SUM;
/// The last bytes before the bitmaps: these, then a checksum of both bitmaps.
pub(crate) const SUM_MARK: &[u8; 12] = b"MARVIN CRC32";
/// The bytes before those: these, then a checksum of the notes.
pub(crate) const NOTES_MARK: &[u8; 12] = b"MARVIN NOTES";
/// The bytes before those: descriptors have checksums, see [`seal`].
pub(crate) const PAGES_MARK: &[u8; SUM] = b"MARVIN PAGES CRC";
/// Bytes of all marks before the bitmaps.
pub(crate) const MARKS: usize = 3 * SUM;
/// Offset of the checksum in a descriptor.
pub(crate) const SEAL: usize = 16;
/// Bytes before the second header, at least.
const FIRST: usize = 4096;

/// What the checksums say of a file's headers and notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Checks {
    /// The headers are not those that were written.
    pub(crate) are_heads_damaged: bool,
    /// The notes are not.
    pub(crate) are_notes_damaged: bool,
    /// Each descriptor has a checksum.
    pub(crate) are_pages_sealed: bool,
}

impl Checks {
    /// Verifies all bytes before the bitmaps; `notes` are in them, and `erased` is elsewhere in the
    /// file.
    pub(crate) fn make(heads: &[u8], notes: Range<usize>, erased: &[u8]) -> Self {
        let before = |number: usize| {
            let start = heads.len().checked_sub(number * SUM)?;
            (start >= FIRST).then(|| &heads[start..start + SUM])
        };
        let sum_of_notes = before(2).and_then(|mark| mark.strip_prefix(NOTES_MARK));
        let sum = heads
            .get(HEADS..FIRST)
            .and_then(|mark| mark.strip_prefix(HEADS_MARK));
        let marks = [
            sum.is_some(),
            before(1).is_some_and(|mark| mark.starts_with(SUM_MARK)),
            sum_of_notes.is_some(),
            before(3).is_some_and(|mark| mark == PAGES_MARK),
        ];
        let is_own = marks.contains(&true);
        let found = heads_sum(heads, notes.clone(), erased).to_le_bytes();
        let found_of_notes = crc32fast::hash(heads.get(notes).unwrap_or_default()).to_le_bytes();
        Self {
            are_heads_damaged: is_own
                && (marks.contains(&false) || sum.is_none_or(|sum| sum != found)),
            are_notes_damaged: sum_of_notes.is_some_and(|sum| sum != found_of_notes),
            are_pages_sealed: is_own,
        }
    }
}

/// Returns the checksum of all bytes before the bitmaps, and of the text on what was erased.
///
/// Not in it are the notes and the bitmaps, which have their own, and whether the writer finished:
/// a file is read at any time, also after its writer was killed.
fn heads_sum(heads: &[u8], notes: Range<usize>, erased: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    let status = u32_or_zero(heads, field::STATUS) & !INCOMPLETE;
    let end = heads.len().saturating_sub(SUM);
    let notes = match notes.is_empty() {
        true => FIRST..FIRST,
        false => notes,
    };
    let parts = [
        heads.get(..field::STATUS),
        Some(&status.to_le_bytes()[..]),
        heads.get(field::STATUS + 4..HEADS),
        heads.get(FIRST..notes.start),
        heads.get(notes.end..end),
        Some(erased),
    ];
    // A part that is not there is of a damaged file, or of another writer's.
    parts.iter().flatten().for_each(|part| sum.update(part));
    sum.finalize()
}

/// Writes the mark of the headers, when all else before the bitmaps is final; the notes are at
/// `at`.
pub(crate) fn mark_heads(heads: &mut [u8], at: usize, notes: &[u8], erased: &[u8]) {
    let sum = heads_sum(heads, at..at + notes.len(), erased);
    put(heads, HEADS, *HEADS_MARK);
    put(heads, HEADS + HEADS_MARK.len(), sum.to_le_bytes());
}

/// Returns the checksum of a page's stored bytes.
pub(crate) fn content_sum(packed: &[u8]) -> u32 {
    crc32fast::hash(packed)
}

/// Returns what a descriptor has at [`SEAL`]: the sum of the content, and above it a checksum of
/// the rest, of that sum and of the page's number: the descriptor of another page is wrong too.
pub(crate) fn seal(descriptor: &[u8; DESCRIPTOR], page: u64, content: u32) -> u64 {
    let mut bytes = [0; SEAL + 12];
    bytes[..SEAL].copy_from_slice(&descriptor[..SEAL]);
    put(&mut bytes, SEAL, page.to_le_bytes());
    put(&mut bytes, SEAL + 8, content.to_le_bytes());
    u64::from(crc32fast::hash(&bytes)) << 32 | u64::from(content)
}
