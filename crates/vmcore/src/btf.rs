//! BTF, the kernel's types in short form, as the kernel carries them in its own image: here, numbers of enumerators.
//!
//! The format is the kernel's `Documentation/bpf/btf.rst`.

use crate::bytes::{u16_at, u32_at};

/// What BTF begins with.
pub(crate) const MAGIC: u16 = 0xeb9f;
/// Size of its header, in bytes.
pub(crate) const HEADER: usize = 24;
/// Most bytes of BTF: that of a kernel with everything built in has a tenth of it.
const SIZE_MAX: usize = 64 << 20;

/// Returns the size of BTF by its first bytes; nothing where they are something else.
pub(crate) fn size(start: &[u8]) -> Option<usize> {
    let number = |at| u32_at(start, at).and_then(|number| usize::try_from(number).ok());
    if u16_at(start, 0)? != MAGIC || start.get(2) != Some(&1) || number(4)? != HEADER {
        return None;
    }
    let types = number(8)?.checked_add(number(12)?)?;
    let strings = number(16)?.checked_add(number(20)?)?;
    let size = types.max(strings).checked_add(HEADER)?;
    (size > HEADER && size <= SIZE_MAX && number(16)? == types).then_some(size)
}

/// Returns the number of an enumerator, of any enumeration.
pub(crate) fn enumerator(btf: &[u8], name: &str) -> Option<u32> {
    let number = |at| u32_at(btf, at).and_then(|number| usize::try_from(number).ok());
    let types = HEADER.checked_add(number(8)?)?;
    let end = types.checked_add(number(12)?)?;
    let strings = btf.get(HEADER.checked_add(number(16)?)?..)?;
    let is_named = |at: u32| {
        let text = usize::try_from(at).ok().and_then(|at| strings.get(at..)).unwrap_or_default();
        text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    };
    let mut at = types;
    while at.checked_add(12)? <= end {
        let info = u32_at(btf, at + 4)?;
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        at += 12;
        if kind == ENUM {
            for n in 0..count {
                if is_named(u32_at(btf, at + n * 8)?) {
                    return u32_at(btf, at + n * 8 + 4);
                }
            }
        }
        at = at.checked_add(behind(kind, count)?)?;
    }
    None
}

const ENUM: u32 = 6;

/// Returns how many bytes follow the head of a type.
pub(crate) fn behind(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Int, variable, tag of a declaration.
        1 | 14 | 17 => 4,
        // Array.
        3 => 12,
        // Structure, union, 64-bit enumeration, data section.
        4 | 5 | 15 | 19 => count * 12,
        // Enumeration, prototype of a function.
        ENUM | 13 => count * 8,
        // Pointer, forward, typedef, volatile, const, restrict, function, float, tag of a type.
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{HEADER, MAGIC, enumerator, size};

    /// An int, then an enumeration with two names.
    fn small() -> Vec<u8> {
        let types: [u32; 11] = [1, 1 << 24, 4, 0x20, 5, 6 << 24 | 2, 4, 9, 0, 19, 7];
        let strings = b"\0int\0all\0PG_locked\0PG_reserved\0";
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0]);
        for number in [HEADER as u32, 0, types.len() as u32 * 4, types.len() as u32 * 4, strings.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(types.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn enumerators_are_found_by_their_whole_names() {
        let btf = small();
        assert_eq!(size(&btf), Some(btf.len()));
        assert_eq!(enumerator(&btf, "PG_reserved"), Some(7));
        assert_eq!(enumerator(&btf, "PG_locked"), Some(0));
        assert_eq!(enumerator(&btf, "PG_lock"), None);
        assert_eq!(size(b"\x7fELF"), None);
    }

    proptest! {
        #[test]
        fn no_types_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0_usize..90) {
            let mut btf = small();
            for (n, byte) in bytes.iter().enumerate() {
                if let Some(place) = btf.get_mut(at + n) {
                    *place = *byte;
                }
            }
            size(&btf);
            enumerator(&btf, "PG_reserved");
            enumerator(&bytes, "PG_reserved");
        }
    }
}
