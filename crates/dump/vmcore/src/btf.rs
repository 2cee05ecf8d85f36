//! BTF, the kernel's compact type information, which its image contains: reads enumerators and
//! offsets of fields.
//!
//! The format is the kernel's `Documentation/bpf/btf.rst`.

use crate::bytes::{size_at, u16_at, u32_at};

/// The magic number of BTF.
pub(crate) const MAGIC: u16 = 0xeb9f;
/// Size of its header, in bytes.
pub(crate) const HEADER: usize = 24;
/// Largest BTF: that of a kernel with everything built in has a tenth of it.
const SIZE_MAX: usize = 64 << 20;

/// Returns the size of BTF by its first bytes; `None` if they are something else.
pub(crate) fn size(start: &[u8]) -> Option<usize> {
    if u16_at(start, 0)? != MAGIC || start.get(2) != Some(&1) || size_at(start, 4)? != HEADER {
        return None;
    }
    let types = size_at(start, 8)?.checked_add(size_at(start, 12)?)?;
    let strings = size_at(start, 16)?.checked_add(size_at(start, 20)?)?;
    let size = types.max(strings).checked_add(HEADER)?;
    (size > HEADER && size <= SIZE_MAX && size_at(start, 16)? == types).then_some(size)
}

#[derive(Debug)]
pub(crate) struct Types {
    bytes: Vec<u8>,
    /// Offsets of the types; the first is number 1, number 0 is `void`.
    starts: Vec<u32>,
    strings: usize,
}

/// A field of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its offset in bytes.
    pub(crate) offset: usize,
    /// Number of its type.
    pub(crate) kind: u32,
}

const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Most visited fields of a search, which ends at types that contain each other.
const FIELDS_MAX: u32 = 1 << 16;

impl Types {
    /// Parses all of BTF; `None` if it is truncated.
    pub(crate) fn new(bytes: Vec<u8>) -> Option<Self> {
        size(&bytes).filter(|size| *size <= bytes.len())?;
        let first = HEADER + size_at(&bytes, 8)?;
        let end = first + size_at(&bytes, 12)?;
        let strings = HEADER + size_at(&bytes, 16)?;
        let mut starts = Vec::new();
        let mut next = first;
        while next + 12 <= end {
            starts.push(u32::try_from(next).ok()?);
            let info = u32_at(&bytes, next + 4)?;
            next = (next + 12).checked_add(behind(info >> 24 & 0x1f, (info & 0xffff) as usize)?)?;
        }
        Some(Self {
            bytes,
            starts,
            strings,
        })
    }

    /// Returns the number of an enumerator, of any enumeration.
    pub(crate) fn enumerator(&self, name: &str) -> Option<u32> {
        self.starts.iter().find_map(|at| {
            let (kind, count) = self.info(*at)?;
            let values = *at as usize + 12;
            let found = (kind == ENUM)
                .then_some(0..count)?
                .find(|n| self.is_named(values + n * 8, name))?;
            u32_at(&self.bytes, values + found * 8 + 4)
        })
    }

    /// Returns the number of a structure.
    pub(crate) fn structure(&self, name: &str) -> Option<u32> {
        let index = self.starts.iter().position(|start| {
            self.info(*start).is_some_and(|(kind, _)| kind == STRUCT)
                && self.is_named(*start as usize, name)
        })?;
        u32::try_from(index + 1).ok()
    }

    /// Returns the size of a structure in bytes.
    pub(crate) fn size(&self, structure: u32) -> Option<usize> {
        let at = self.place(structure)?;
        let (kind, _) = self.info(at)?;
        usize::try_from((kind == STRUCT).then(|| u32_at(&self.bytes, at as usize + 8))??).ok()
    }

    /// Returns a field of a structure, including fields of anonymous members.
    pub(crate) fn member(&self, structure: u32, name: &str) -> Option<Member> {
        self.member_within(structure, name, &mut FIELDS_MAX.clone())
    }

    fn member_within(&self, structure: u32, name: &str, left: &mut u32) -> Option<Member> {
        let at = self.place(structure)?;
        let (kind, count) = self.info(at)?;
        if !matches!(kind, STRUCT | UNION) {
            return None;
        }
        // With bit fields the upper byte of an offset is a size.
        let mask = if u32_at(&self.bytes, at as usize + 4)? >> 31 == 1 {
            0x00ff_ffff
        } else {
            u32::MAX
        };
        for n in 0..count {
            *left = left.checked_sub(1)?;
            let field = at as usize + 12 + n * 12;
            let kind = u32_at(&self.bytes, field + 4)?;
            let offset = (u32_at(&self.bytes, field + 8)? & mask) as usize / 8;
            if self.is_named(field, name) {
                return Some(Member { offset, kind });
            }
            let within = (u32_at(&self.bytes, field)? == 0)
                .then(|| self.member_within(kind, name, left))
                .flatten();
            if let Some(within) = within {
                return Some(Member {
                    offset: offset.checked_add(within.offset)?,
                    kind: within.kind,
                });
            }
        }
        None
    }

    /// Returns the length of an array.
    pub(crate) fn length(&self, array: u32) -> Option<usize> {
        let at = self.place(array)?;
        let (kind, _) = self.info(at)?;
        usize::try_from((kind == ARRAY).then(|| u32_at(&self.bytes, at as usize + 20))??).ok()
    }

    fn place(&self, kind: u32) -> Option<u32> {
        self.starts
            .get(usize::try_from(kind).ok()?.checked_sub(1)?)
            .copied()
    }

    /// Returns the kind of a type and its number of fields or values.
    fn info(&self, at: u32) -> Option<(u32, usize)> {
        let info = u32_at(&self.bytes, at as usize + 4)?;
        Some((info >> 24 & 0x1f, (info & 0xffff) as usize))
    }

    /// Returns whether the name at offset `at` is this one.
    fn is_named(&self, at: usize, name: &str) -> bool {
        let start = u32_at(&self.bytes, at).and_then(|at| usize::try_from(at).ok());
        let text = start
            .and_then(|start| self.bytes.get(self.strings.checked_add(start)?..))
            .unwrap_or_default();
        text.strip_prefix(name.as_bytes())
            .is_some_and(|rest| rest.first() == Some(&0))
    }
}

const ENUM: u32 = 6;

/// Returns the size of the data after the head of a type.
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

    use super::{HEADER, MAGIC, Member, Types, size};

    /// An int (1), an enumeration with two names (2), an array of three (3), an anonymous union (4)
    /// with that array, and a structure with these (5).
    fn small() -> Vec<u8> {
        let types: [u32; 35] = [
            1,
            1 << 24,
            4,
            0x20, // int
            5,
            6 << 24 | 2,
            4,
            9,
            0,
            19,
            7, // enum
            0,
            3 << 24,
            0,
            1,
            1,
            3, // array
            0,
            5 << 24 | 1,
            12,
            31,
            3,
            0, // union { lists }
            37,
            4 << 24 | 2,
            16,
            1,
            1,
            0,
            0,
            4,
            32, // struct zone { int; union }
            0,
            2 << 24,
            5,
        ];
        let strings = b"\0int\0all\0PG_locked\0PG_reserved\0lists\0zone\0";
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0]);
        for number in [
            HEADER as u32,
            0,
            types.len() as u32 * 4,
            types.len() as u32 * 4,
            strings.len() as u32,
        ] {
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
        let types = Types::new(btf).unwrap();
        assert_eq!(types.enumerator("PG_reserved"), Some(7));
        assert_eq!(types.enumerator("PG_locked"), Some(0));
        assert_eq!(types.enumerator("PG_lock"), None);
        assert_eq!(size(b"\x7fELF"), None);
    }

    #[test]
    fn fields_of_anonymous_members_are_found() {
        let types = Types::new(small()).unwrap();
        let zone = types.structure("zone").unwrap();
        assert_eq!(
            types.member(zone, "int"),
            Some(Member { offset: 0, kind: 1 })
        );
        let lists = types.member(zone, "lists").unwrap();
        assert_eq!((lists.offset, types.length(lists.kind)), (4, Some(3)));
        assert_eq!(
            (
                types.member(zone, "list"),
                types.structure("zon"),
                types.length(zone)
            ),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn no_types_are_too_strange(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            at in 0_usize..200,
        ) {
            let mut btf = small();
            for (n, byte) in bytes.iter().enumerate() {
                if let Some(place) = btf.get_mut(at + n) {
                    *place = *byte;
                }
            }
            size(&btf);
            for types in [Types::new(btf), Types::new(bytes)].into_iter().flatten() {
                types.enumerator("PG_reserved");
                if let Some(zone) = types.structure("zone") {
                    types
                        .member(zone, "lists")
                        .map(|lists| types.length(lists.kind));
                }
            }
        }
    }
}
