//! The flattened format: a header, then records with the file offset of their bytes.
//!
//! It lets a file written out of order go through a pipe. All its numbers are big-endian. It is
//! read in place, without reassembling the file: an index locates each byte.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::DumpError;
use crate::storage::Storage;

/// The signature of a flattened file.
pub(crate) const SIGNATURE: &[u8; 16] = b"makedumpfile\0\0\0\0";
/// Size of its header, in bytes.
pub(crate) const HEADER: u64 = 4096;
/// Size of the head of a record, in bytes: offset and size.
const RECORD: u64 = 16;
/// Most pieces of an index: more would need more memory than a capture kernel has.
const PIECES_MAX: usize = 4 << 20;

/// Returns whether a file is flattened.
pub(crate) fn is_flattened(storage: &Storage) -> Result<bool, DumpError> {
    let mut start = [0; 16];
    if storage.size() < HEADER {
        return Ok(false);
    }
    storage.fill_raw(0, &mut start)?;
    Ok(start == *SIGNATURE)
}

/// The index of a flattened file.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Offset in the original file, to length and location in the flattened one. Without overlaps.
    pieces: BTreeMap<u64, (u64, u64)>,
    /// Whether the end mark was found.
    ended: bool,
}

/// A part of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its range within the request.
    pub(crate) within: Range<usize>,
    /// Its location in the flattened file; `None` if no record has it.
    pub(crate) at: Option<u64>,
}

impl Index {
    /// Reads the heads of all records.
    pub(crate) fn read(storage: &Storage) -> Result<Self, DumpError> {
        let end = storage.size();
        let mut index = Self::default();
        let mut at = HEADER;
        loop {
            let Some(head) = head(storage, at)? else {
                // Without an end mark, the existing records are usable, and readers detect missing
                // ones.
                return Ok(index);
            };
            let (Ok(offset), Ok(size)) = (u64::try_from(head.0), u64::try_from(head.1)) else {
                if head == (-1, -1) {
                    index.ended = true;
                    return Ok(index);
                }
                return Err(DumpError::malformed(
                    storage.path(),
                    at,
                    strange(head.0, head.1),
                ));
            };
            let data = at + RECORD;
            if offset.checked_add(size).is_none() {
                return Err(DumpError::malformed(
                    storage.path(),
                    at,
                    "a record that ends beyond all numbers",
                ));
            }
            index.insert(offset, size.min(end - data), data);
            if index.pieces.len() > PIECES_MAX {
                return Err(DumpError::malformed(
                    storage.path(),
                    at,
                    "too many records: rearrange it with -R first",
                ));
            }
            if size >= end - data {
                // The end mark is missing.
                return Ok(index);
            }
            at = data + size;
        }
    }

    /// Inserts a record; it replaces earlier ones.
    fn insert(&mut self, offset: u64, length: u64, at: u64) {
        if length == 0 {
            return;
        }
        // Writers come back to what they wrote: the header without the mark of an incomplete file is
        // among the last records.
        let end = offset + length;
        let covered: Vec<u64> = self
            .pieces
            .range(..end)
            .rev()
            .take_while(|(start, piece)| *start + piece.0 > offset)
            .map(|p| *p.0)
            .collect();
        for start in covered {
            let Some((old, place)) = self.pieces.remove(&start) else {
                continue;
            };
            if start < offset {
                self.pieces.insert(start, (offset - start, place));
            }
            if start + old > end {
                self.pieces
                    .insert(end, (start + old - end, place + (end - start)));
            }
        }
        self.pieces.insert(offset, (length, at));
    }

    /// Returns whether its end mark was found: no record is missing.
    pub(crate) fn has_end_mark(&self) -> bool {
        self.ended
    }

    /// Returns the size of the original file in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.pieces
            .last_key_value()
            .map_or(0, |(start, piece)| start + piece.0)
    }

    /// Returns the locations of `length` bytes from `offset`, in order and without gaps.
    pub(crate) fn pieces(&self, offset: u64, length: usize) -> Vec<Piece> {
        let mut found = Vec::new();
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let rest = (length - done) as u64;
            let holder = self
                .pieces
                .range(..=at)
                .next_back()
                .filter(|(start, piece)| *start + piece.0 > at);
            let (count, place) = match holder {
                Some((start, (size, place))) => {
                    ((start + size - at).min(rest), Some(place + (at - start)))
                }
                None => {
                    let next = self
                        .pieces
                        .range(at..)
                        .next()
                        .map_or(rest, |(start, _)| start - at);
                    (next.min(rest), None)
                }
            };
            // At most `length`, which is a usize.
            let count = usize::try_from(count).unwrap_or(length - done);
            found.push(Piece {
                within: done..done + count,
                at: place,
            });
            done += count;
        }
        found
    }
}

/// Returns offset and size of the record at `at`; `None` if the file ends before it.
fn head(storage: &Storage, at: u64) -> Result<Option<(i64, i64)>, DumpError> {
    if at
        .checked_add(RECORD)
        .is_none_or(|end| end > storage.size())
    {
        return Ok(None);
    }
    let mut bytes = [0; 16];
    storage.fill_raw(at, &mut bytes)?;
    let both = u128::from_be_bytes(bytes);
    Ok(Some(((both >> 64) as i64, both as i64)))
}

/// Describes the fault of a record's head that is no end mark.
pub(crate) fn strange(offset: i64, size: i64) -> String {
    format!(
        "the record there says that it has {size} bytes for offset {offset:#x} of the file it stands for"
    )
}

/// Returns the header of a flattened file.
pub(crate) fn header() -> Vec<u8> {
    let mut bytes = vec![0; HEADER as usize];
    bytes[..16].copy_from_slice(SIGNATURE);
    bytes[16..24].copy_from_slice(&1_i64.to_be_bytes());
    bytes[24..32].copy_from_slice(&1_i64.to_be_bytes());
    bytes
}

/// Returns the head of a record.
pub(crate) fn record(offset: i64, size: i64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&offset.to_be_bytes());
    bytes[8..].copy_from_slice(&size.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::Index;

    proptest! {
        /// The index gives the same bytes as writing the records in order.
        #[test]
        fn later_records_win(records in prop::collection::vec((0_u64..200, 0_u64..40), 0..30)) {
            let mut file = [0_u64; 256];
            let mut index = Index::default();
            let mut at = 1000;
            for (offset, length) in records {
                index.insert(offset, length, at);
                for n in 0..length {
                    file[usize::try_from(offset + n).unwrap()] = at + n;
                }
                at += length;
            }
            let mut seen = vec![0; 256];
            for piece in index.pieces(0, 256) {
                for (n, place) in piece.within.enumerate() {
                    seen[place] = piece.at.map_or(0, |at| at + n as u64);
                }
            }
            assert_eq!(&seen[..], &file[..]);
        }
    }
}
