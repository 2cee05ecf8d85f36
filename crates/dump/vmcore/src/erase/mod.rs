//! Erases sensitive data, such as keys and passwords, from a dump, as a file in the language of
//! makedumpfile.conf(5) requests.
//!
//! Everything is resolved before writing. A name that cannot be found is an error: a dump with
//! secrets cannot be called back.

#[cfg(feature = "erase")]
mod config;
#[cfg(feature = "erase")]
mod evaluate;

use std::ops::Range;
#[cfg(feature = "erase")]
use std::path::Path;

use crate::bytes::index_from;
#[cfg(feature = "erase")]
use crate::{error::DumpError, reader::Reader, vmlinux::Vmlinux};

/// The replacement of erased bytes.
#[cfg(feature = "erase")]
const ERASED: u8 = b'X';

/// A range of physical memory to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) range: Range<u64>,
    /// The replacement of each byte.
    pub(crate) byte: u8,
}

impl Piece {
    #[cfg(any(test, feature = "erase"))]
    fn with_range(&self, range: Range<u64>) -> Self {
        Self {
            range,
            byte: self.byte,
        }
    }
}

/// The erasures of a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erasure {
    /// By address, without overlaps.
    pieces: Vec<Piece>,
    /// The erase info: a line for each object.
    pub(crate) text: Vec<u8>,
    /// Objects that could not be erased because they are not in memory.
    pub warnings: Vec<String>,
}

impl Erasure {
    /// Returns the erase info of earlier erasures.
    pub(crate) fn of_earlier(text: Vec<u8>) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// Puts the erase info of earlier erasures before this one's.
    pub(crate) fn behind(self, earlier: &Self) -> Self {
        Self {
            text: [&earlier.text[..], &self.text].concat(),
            ..self
        }
    }

    /// Finds everything that a file requests to erase.
    ///
    /// # Errors
    /// If the file is wrong, its names are unknown to the kernel, or the vmlinux is another
    /// kernel's.
    #[cfg(feature = "erase")]
    pub fn find(
        path: &Path,
        text: &str,
        vmlinux: &Vmlinux,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DumpError> {
        let commands = config::parse(text).map_err(|error| error.within(path))?;
        evaluate::run(&commands, vmlinux, reader).map_err(|error| error.within(path))
    }

    /// Adds ranges, in any order. Of those with one start the longest counts, and of others the
    /// later one, as with makedumpfile.
    #[cfg(any(test, feature = "erase"))]
    fn set(&mut self, mut pieces: Vec<Piece>) {
        pieces.sort_by(|one, other| {
            (one.range.start, std::cmp::Reverse(one.range.end))
                .cmp(&(other.range.start, std::cmp::Reverse(other.range.end)))
        });
        pieces.dedup_by_key(|piece| piece.range.start);
        let mut done: Vec<Piece> = Vec::new();
        for piece in pieces.into_iter().filter(|piece| !piece.range.is_empty()) {
            let from = done.partition_point(|other| other.range.end <= piece.range.start);
            let above = done.split_off(from);
            let Range { start, end } = piece.range;
            let before = above
                .iter()
                .map(|other| other.with_range(other.range.start..other.range.end.min(start)));
            done.extend(before.filter(|part| !part.range.is_empty()));
            done.push(piece);
            let behind = above
                .iter()
                .map(|other| other.with_range(other.range.start.max(end)..other.range.end));
            done.extend(behind.filter(|part| !part.range.is_empty()));
        }
        self.pieces = done;
    }

    /// Returns the ranges within an address range.
    pub(crate) fn within(&self, address: u64, length: usize) -> &[Piece] {
        let end = address.saturating_add(length as u64);
        let from = self
            .pieces
            .partition_point(|piece| piece.range.end <= address);
        let count = self.pieces[from..].partition_point(|piece| piece.range.start < end);
        &self.pieces[from..from + count]
    }
}

/// Erases ranges from the bytes at an address.
pub(crate) fn apply(pieces: &[Piece], address: u64, bytes: &mut [u8]) {
    for piece in pieces {
        // A range may begin before these bytes and end behind them.
        let start = index_from(address, piece.range.start.max(address)).min(bytes.len());
        let end = index_from(address, piece.range.end.max(address)).min(bytes.len());
        bytes[start..end].fill(piece.byte);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::{Erasure, Piece, apply};

    proptest! {
        /// For any ranges, each byte becomes what the last range above it says, by start address.
        #[test]
        fn the_later_piece_counts(
            list in prop::collection::vec((0_u64..60, 0_u64..20), 0..10),
            from in 0_u64..80,
        ) {
            let pieces: Vec<Piece> = list
                .iter()
                .enumerate()
                .map(|(n, (start, length))| Piece {
                    range: *start..start + length,
                    byte: n as u8 + 1,
                })
                .collect();
            let mut erasure = Erasure::default();
            erasure.set(pieces.clone());
            let mut bytes = [0; 20];
            apply(erasure.within(from, bytes.len()), from, &mut bytes);
            for (n, byte) in bytes.iter().enumerate() {
                let at = from + n as u64;
                let longest = pieces.iter().filter(|piece| {
                    !pieces.iter().any(|other| {
                        other.range.start == piece.range.start && other.range.end > piece.range.end
                    })
                });
                let above = longest
                    .filter(|piece| piece.range.contains(&at));
                let last = above.map(|piece| piece.range.start).max();
                match last {
                    None => assert_eq!(*byte, 0),
                    Some(start) => assert_eq!(pieces[usize::from(*byte) - 1].range.start, start),
                }
            }
        }
    }
}
