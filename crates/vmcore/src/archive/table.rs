//! The table of an archive's block: the pages in it, and where their bytes are.
//!
//! Runs of pages, as numbers with seven bits per byte: the number of pages skipped before the run; its length times
//! four, plus the kind; then, for each page that equals another one, the distance to that.

use crate::archive::Head;

/// Most pages of a block's table.
const PAGES_MAX: u32 = 1 << 16;
/// Kinds of runs.
const DATA: u64 = 0;
const ZERO: u64 = 1;
const TWIN: u64 = 2;

/// The location of a page's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// This index among the pages in the block's data.
    Data(u32),
    /// None: all are zero.
    Zero,
    /// The bytes of another page, which has data.
    Twin(u64),
}

impl Slot {
    fn kind(self) -> u64 {
        match self {
            Self::Data(_) => DATA,
            Self::Zero => ZERO,
            Self::Twin(_) => TWIN,
        }
    }
}

/// A page of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) page: u64,
    pub(crate) slot: Slot,
}

/// Returns the bytes of a table; the entries are in the order of their pages.
pub(crate) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = entries.first().map_or(0, |entry| entry.page);
    for run in entries.chunk_by(|one, other| one.page + 1 == other.page && one.slot.kind() == other.slot.kind()) {
        number(&mut bytes, run[0].page - at);
        number(&mut bytes, (run.len() as u64) << 2 | run[0].slot.kind());
        at = run[0].page + run.len() as u64;
        for entry in run {
            if let Slot::Twin(other) = entry.slot {
                // The sign is the lowest bit.
                let far = other.cast_signed() - entry.page.cast_signed();
                number(&mut bytes, (far << 1 ^ far >> 63).cast_unsigned());
            }
        }
    }
    bytes
}

/// Returns the entries of a table; `None` if they contradict the head.
pub(crate) fn decode(mut bytes: &[u8], head: &Head) -> Option<Vec<Entry>> {
    if head.pages > PAGES_MAX {
        return None;
    }
    let (mut entries, mut at, mut data) = (Vec::new(), head.first, 0);
    while !bytes.is_empty() {
        let first = at.checked_add(take(&mut bytes)?)?;
        let run = take(&mut bytes)?;
        at = first.checked_add(run >> 2)?;
        if at > head.end || (run >> 2) + entries.len() as u64 > u64::from(head.pages) || run >> 2 == 0 {
            return None;
        }
        for page in first..at {
            let slot = match run & 3 {
                DATA => {
                    data += 1;
                    Slot::Data(data - 1)
                }
                ZERO => Slot::Zero,
                TWIN => {
                    let far = take(&mut bytes)?;
                    let far = (far >> 1).cast_signed() ^ -(far & 1).cast_signed();
                    Slot::Twin(page.checked_add_signed(far)?)
                }
                _ => return None,
            };
            entries.push(Entry { page, slot });
        }
    }
    (at == head.end && data == head.data && entries.len() as u64 == u64::from(head.pages)).then_some(entries)
}

/// Appends a number, seven bits per byte, lowest first; all bytes but the last have the highest bit set.
fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number; `None` if the bytes end within it, or it is too large.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{Entry, Slot, decode, encode};
    use crate::archive::Head;
    use crate::compress::Codec;

    fn head(entries: &[Entry]) -> Head {
        Head {
            first: entries.first().map_or(0, |entry| entry.page),
            end: entries.last().map_or(0, |entry| entry.page + 1),
            pages: entries.len() as u32,
            data: entries.iter().filter(|entry| matches!(entry.slot, Slot::Data(_))).count() as u32,
            table: 0,
            packed: 0,
            codec: Codec::None,
            sum: 0,
        }
    }

    proptest! {
        #[test]
        fn written_data_reads_back(
            pages in prop::collection::vec((1_u64..300, 0_u8..3, 0_u64..1 << 35), 1..50), start in 0_u64..1 << 35,
        ) {
            let (mut page, mut data, mut entries) = (start, 0, Vec::new());
            for (gap, kind, twin) in pages {
                page += if gap > 200 { gap } else { 1 };
                let slot = match kind {
                    0 => { data += 1; Slot::Data(data - 1) }
                    1 => Slot::Zero,
                    _ => Slot::Twin(twin),
                };
                entries.push(Entry { page, slot });
            }
            let (bytes, head) = (encode(&entries), head(&entries));
            assert_eq!(decode(&bytes, &head), Some(entries));
            for length in 0..bytes.len() {
                assert_eq!(decode(&bytes[..length], &head), None);
            }
        }

        #[test]
        fn no_table_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..100), pages in 0_u32..1000) {
            let head = Head { pages, data: pages / 2, end: u64::MAX, ..head(&[]) };
            decode(&bytes, &head);
        }
    }
}
