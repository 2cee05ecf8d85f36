//! Reads little-endian numbers from bytes; `None` if the bytes end before them.

/// Returns `N` bytes from `at`.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Returns the 16-bit number at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

/// Returns the 32-bit number at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// Returns the 64-bit number at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// Returns the 16-bit number at `at`; 0 beyond the end, as for a field that an old file lacks.
pub(crate) fn u16_or_zero(bytes: &[u8], at: usize) -> u16 {
    u16_at(bytes, at).unwrap_or_default()
}

/// Returns the 32-bit number at `at`; 0 beyond the end.
pub(crate) fn u32_or_zero(bytes: &[u8], at: usize) -> u32 {
    u32_at(bytes, at).unwrap_or_default()
}

/// Returns the 64-bit number at `at`; 0 beyond the end.
pub(crate) fn u64_or_zero(bytes: &[u8], at: usize) -> u64 {
    u64_at(bytes, at).unwrap_or_default()
}

/// Returns the 32-bit number at `at`, as a size.
pub(crate) fn size_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, at)?).ok()
}

/// Returns how far `to` is behind `from`, as an index; `usize::MAX` if no index is so large.
pub(crate) fn index_from(from: u64, to: u64) -> usize {
    usize::try_from(to - from).unwrap_or(usize::MAX)
}

/// Writes a number at `at`, within the buffer.
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, number: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..at + N) {
        place.copy_from_slice(&number);
    }
}

/// Returns whether all bytes are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    // Most other pages differ in their first bytes.
    let (first, rest) = bytes.split_at(bytes.len().min(64));
    first.iter().all(|byte| *byte == 0)
        && rest
            .chunks(512)
            .all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::{is_zero, u16_at, u32_at, u64_at};

    #[test]
    fn numbers_end_with_their_bytes() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(u16_at(&bytes, 7), Some(0x0908));
        assert_eq!(u16_at(&bytes, 8), None);
        assert_eq!(u32_at(&bytes, 5), Some(0x0908_0706));
        assert_eq!(u32_at(&bytes, usize::MAX), None);
        assert_eq!(u64_at(&bytes, 1), Some(0x0908_0706_0504_0302));
        assert_eq!(u64_at(&bytes, 2), None);
    }

    #[test]
    fn one_bit_anywhere_is_not_zero() {
        for at in [0, 63, 64, 575, 576, 4095] {
            let mut page = [0; 4096];
            assert!(is_zero(&page));
            page[at] = 1;
            assert!(!is_zero(&page), "{at}");
        }
    }
}
