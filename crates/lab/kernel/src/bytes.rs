//! Little-endian numbers and ranges out of a file held in memory; `None` if the file ends before
//! them.

/// Returns `length` bytes from `at`.
pub(crate) fn range(bytes: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    bytes.get(start..end)
}

/// Returns the 16-bit number at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: u64) -> Option<u16> {
    let number = range(bytes, at, 2)?.try_into().ok()?;
    Some(u16::from_le_bytes(number))
}

/// Returns the 32-bit number at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    let number = range(bytes, at, 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(number))
}
