//! Sets of pages as bits, sixty-four per word, lowest first: as in the bitmaps of a kdump file.

use std::ops::Range;

/// Sets the bits of `range` that are within the words.
pub(crate) fn set(words: &mut [u64], range: Range<usize>) {
    change(words, range, u64::MAX);
}

/// Clears the bits of `range` that are within the words.
pub(crate) fn clear(words: &mut [u64], range: Range<usize>) {
    change(words, range, 0);
}

/// Sets the bits of `range` to `value`.
fn change(words: &mut [u64], range: Range<usize>, value: u64) {
    let end = range.end.min(words.len() * 64);
    let mut at = range.start;
    while at < end {
        let word = at / 64;
        let bit = at % 64;
        if bit == 0 && end - at >= 64 {
            words[word..end / 64].fill(value);
            at = end - end % 64;
            continue;
        }
        let count = (64 - bit).min(end - at);
        let mask = mask(bit, count);
        words[word] = words[word] & !mask | value & mask;
        at += count;
    }
}

/// Returns a word with `count` bits from `bit` on; at least one, and at most all from there.
pub(crate) fn mask(bit: usize, count: usize) -> u64 {
    (u64::MAX >> (64 - count)) << bit
}

/// Returns whether a bit is set.
pub(crate) fn has(words: &[u64], bit: usize) -> bool {
    words
        .get(bit / 64)
        .is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

/// Counts the bits that are set.
pub(crate) fn count(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Counts the bits that are set before a bit.
pub(crate) fn count_before(words: &[u64], bit: usize) -> u64 {
    let rest = words.get(bit / 64).map_or(0, |word| {
        u64::from((word & !(u64::MAX << (bit % 64))).count_ones())
    });
    count(&words[..(bit / 64).min(words.len())]) + rest
}

/// Sorts ranges and merges adjacent ones.
pub(crate) fn merge(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let meets = next.start <= last.end;
        if meets {
            last.end = last.end.max(next.end);
        }
        meets
    });
    ranges
}

/// Sets the bits of the numbers from `first` within `ranges`, which are sorted.
pub(crate) fn set_ranges(
    words: &mut [u64],
    first: u64,
    ranges: impl IntoIterator<Item = Range<u64>>,
) {
    let end = first + words.len() as u64 * 64;
    let ranges = ranges.into_iter().skip_while(|range| range.end <= first);
    for range in ranges.take_while(|range| range.start < end) {
        let within =
            |number: u64| usize::try_from(number.clamp(first, end) - first).unwrap_or(usize::MAX);
        set(words, within(range.start)..within(range.end));
    }
}

/// Returns runs of set bits, in order.
pub(crate) fn runs(words: &[u64]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = next(words, at, |word| word)?;
        let end = next(words, start, |word| !word).unwrap_or(words.len() * 64);
        at = end;
        Some(start..end)
    })
}

/// Returns the first bit from `from` that is set in `view` of its word.
fn next(words: &[u64], from: usize, view: impl Fn(u64) -> u64) -> Option<usize> {
    let mut word = from / 64;
    let mut value = view(*words.get(word)?) & (u64::MAX << (from % 64));
    while value == 0 {
        word += 1;
        value = view(*words.get(word)?);
    }
    Some(word * 64 + value.trailing_zeros() as usize)
}

/// Appends words as bytes.
pub(crate) fn append_bytes(words: &[u64], bytes: &mut Vec<u8>) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// Reads words from bytes; missing bytes are zero.
pub(crate) fn from_bytes(bytes: &[u8], words: &mut [u64]) {
    words.fill(0);
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::{clear, count, count_before, has, runs, set, set_ranges};

    proptest! {
        #[test]
        fn ranges_are_bits(
            ranges in prop::collection::vec(
                (0_usize..300, 0_usize..300, proptest::bool::ANY),
                0..10,
            ),
        ) {
            let mut words = [0; 4];
            let mut plain = [false; 256];
            for (start, end, on) in ranges {
                if on {
                    set(&mut words, start..end);
                } else {
                    clear(&mut words, start..end);
                }
                if let Some(bits) = plain.get_mut(start..end.min(256)) {
                    bits.fill(on);
                }
            }
            for (bit, on) in plain.iter().enumerate() {
                assert_eq!(has(&words, bit), *on);
            }
            assert_eq!(count(&words), plain.iter().filter(|on| **on).count() as u64);
            for bit in 0..=256 {
                assert_eq!(
                    count_before(&words, bit),
                    plain[..bit].iter().filter(|on| **on).count() as u64
                );
            }
            let mut again = [0; 4];
            let mut last = None;
            for run in runs(&words) {
                assert!(last.is_none_or(|end| end < run.start) && run.start < run.end);
                last = Some(run.end);
                set(&mut again, run);
            }
            assert_eq!(again, words);
        }
    }

    #[test]
    fn ranges_are_cut_to_the_words() {
        let mut words = [0; 2];
        set_ranges(
            &mut words,
            1000,
            [0..10, 990..1001, 1003..1004, 1100..5000, 6000..7000],
        );
        assert_eq!(runs(&words).collect::<Vec<_>>(), [0..1, 3..4, 100..128]);
    }
}
