//! The kernel's types, from BTF: sizes, members with their offsets, enumerators. BTF has no
//! addresses.
//!
//! The format is the kernel's `Documentation/bpf/btf.rst`.

use std::cell::Cell;

use crate::btf::{self, HEADER};
use crate::bytes::{size_at, u32_at, u32_or_zero};

mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const POINTER: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FLOAT: u32 = 16;
    pub(super) const VARIABLE: u32 = 14;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// Most indirections: typedefs of typedefs, arrays of arrays, structures in structures.
const DEPTH_MAX: u32 = 32;
/// Most visited members of a search.
const MEMBERS_MAX: u32 = 1 << 16;

/// The number of a type; 0 is `void`.
pub type TypeId = u32;

/// A type without typedefs and qualifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A number, enumeration or float, with its size in bytes.
    Number(u64),
    /// To another type.
    Pointer(TypeId),
    /// An array with this many elements.
    Array(TypeId, u64),
    /// A structure or union, with its size in bytes.
    Record(u64),
    /// Anything without a size.
    Void,
}

/// All types.
#[derive(Debug)]
pub struct Types {
    bytes: Vec<u8>,
    /// The offset of each type, by its number less one.
    starts: Vec<usize>,
    /// The offset of names.
    strings: usize,
}

/// The first words of a type.
struct Head {
    name: u32,
    kind: u32,
    count: usize,
    /// The flag for bit-field offsets, or for signs.
    flag: bool,
    /// Size or number of another type.
    third: u32,
    /// The offset of the rest.
    rest: usize,
}

impl Types {
    /// Parses BTF; `None` if it is invalid.
    pub(crate) fn new(bytes: Vec<u8>) -> Option<Self> {
        if btf::size(&bytes)? > bytes.len() {
            return None;
        }
        let mut at = HEADER.checked_add(size_at(&bytes, 8)?)?;
        let end = at.checked_add(size_at(&bytes, 12)?)?;
        let strings = HEADER.checked_add(size_at(&bytes, 16)?)?;
        let mut types = Self {
            bytes,
            starts: Vec::new(),
            strings,
        };
        while at.checked_add(12)? <= end {
            types.starts.push(at);
            let head = types.head_at(at)?;
            at = head.rest.checked_add(btf::behind(head.kind, head.count)?)?;
        }
        Some(types)
    }

    fn head_at(&self, at: usize) -> Option<Head> {
        let info = u32_at(&self.bytes, at + 4)?;
        Some(Head {
            name: u32_at(&self.bytes, at)?,
            kind: info >> 24 & 0x1f,
            count: (info & 0xffff) as usize,
            flag: info >> 31 == 1,
            third: u32_at(&self.bytes, at + 8)?,
            rest: at + 12,
        })
    }

    fn head(&self, id: TypeId) -> Option<Head> {
        let n = usize::try_from(id.checked_sub(1)?).ok()?;
        self.head_at(*self.starts.get(n)?)
    }

    fn name(&self, at: u32) -> &[u8] {
        let start = usize::try_from(at)
            .ok()
            .and_then(|at| at.checked_add(self.strings));
        let rest = start
            .and_then(|start| self.bytes.get(start..))
            .unwrap_or_default();
        &rest[..memchr::memchr(0, rest).unwrap_or_default()]
    }

    /// Returns a structure, union or typedef by its name; structures first.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<TypeId> {
        self.first_named(name, &[kind::STRUCT, kind::UNION])
            .or_else(|| self.first_named(name, &[kind::TYPEDEF]))
    }

    fn first_named(&self, name: &str, kinds: &[u32]) -> Option<TypeId> {
        (1..).zip(&self.starts).find_map(|(id, at)| {
            let head = self.head_at(*at)?;
            (kinds.contains(&head.kind) && self.name(head.name) == name.as_bytes()).then_some(id)
        })
    }

    /// Returns the type of a variable, if BTF has it: for most kernels it has only per-processor
    /// variables.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<TypeId> {
        self.starts.iter().find_map(|at| {
            let head = self
                .head_at(*at)
                .filter(|head| head.kind == kind::VARIABLE)?;
            (self.name(head.name) == name.as_bytes()).then_some(head.third)
        })
    }

    /// Returns whether a type has a name, apart from typedefs and qualifiers.
    #[cfg(feature = "erase")]
    pub(crate) fn is_called(&self, id: TypeId, name: &str) -> bool {
        self.plain(id)
            .is_some_and(|(_, head)| self.name(head.name) == name.as_bytes())
    }

    /// Returns the type without typedefs and qualifiers.
    fn plain(&self, mut id: TypeId) -> Option<(TypeId, Head)> {
        for _ in 0..DEPTH_MAX {
            let head = self.head(id)?;
            match head.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = head.third;
                }
                _ => return Some((id, head)),
            }
        }
        None
    }

    /// Returns the kind of a type.
    pub(crate) fn shape(&self, id: TypeId) -> Shape {
        let Some((_, head)) = self.plain(id) else {
            return Shape::Void;
        };
        match head.kind {
            kind::INT | kind::ENUM | kind::ENUM64 | kind::FLOAT => {
                Shape::Number(u64::from(head.third))
            }
            kind::POINTER => Shape::Pointer(head.third),
            kind::STRUCT | kind::UNION => Shape::Record(u64::from(head.third)),
            kind::ARRAY => {
                let element = u32_or_zero(&self.bytes, head.rest);
                let count = u32_or_zero(&self.bytes, head.rest + 8);
                Shape::Array(element, u64::from(count))
            }
            _ => Shape::Void,
        }
    }

    /// Returns the size of a type in bytes.
    #[must_use]
    pub fn size(&self, id: TypeId) -> Option<u64> {
        let mut id = id;
        let mut factor = 1_u64;
        for _ in 0..DEPTH_MAX {
            match self.shape(id) {
                Shape::Number(size) | Shape::Record(size) => return factor.checked_mul(size),
                Shape::Pointer(_) => return factor.checked_mul(8),
                Shape::Array(element, count) => {
                    (id, factor) = (element, factor.checked_mul(count)?);
                }
                Shape::Void => return None,
            }
        }
        None
    }

    /// Returns offset (in bytes) and type of a member, including members of anonymous structures;
    /// bit fields have none.
    pub(crate) fn member(&self, id: TypeId, name: &str) -> Option<(u64, TypeId)> {
        self.member_within(id, name.as_bytes(), DEPTH_MAX, &Cell::new(MEMBERS_MAX))
    }

    fn member_within(
        &self,
        id: TypeId,
        name: &[u8],
        depth: u32,
        budget: &Cell<u32>,
    ) -> Option<(u64, TypeId)> {
        let (_, head) = self
            .plain(id)
            .filter(|(_, head)| [kind::STRUCT, kind::UNION].contains(&head.kind))?;
        for n in 0..head.count {
            budget.set(budget.get().checked_sub(1)?);
            let at = head.rest + n * 12;
            let own = u32_at(&self.bytes, at)?;
            let kind = u32_at(&self.bytes, at + 4)?;
            let place = u32_at(&self.bytes, at + 8)?;
            let (bits, width) = if head.flag {
                (place & 0xff_ffff, place >> 24)
            } else {
                (place, 0)
            };
            let offset = u64::from(bits / 8);
            let own = self.name(own);
            if own == name {
                return (width == 0 && bits % 8 == 0).then_some((offset, kind));
            }
            if own.is_empty() && depth > 0 {
                let found = self.member_within(kind, name, depth - 1, budget);
                if let Some((within, kind)) = found {
                    return Some((offset + within, kind));
                }
            }
        }
        None
    }

    /// Returns offset (in bytes) and type of a member of a named type, such as `page.flags`.
    #[must_use]
    pub fn path(&self, path: &str) -> Option<(u64, TypeId)> {
        let (name, members) = path.split_once('.')?;
        members
            .split('.')
            .try_fold((0, self.named(name)?), |(offset, id), member| {
                let (within, id) = self.member(id, member)?;
                Some((offset + within, id))
            })
    }

    /// Returns the member that is so many bytes into a type, such as `mmap_lock.count.counter`; of
    /// a union the first that is there, and nothing between members.
    #[must_use]
    pub fn member_at(&self, id: TypeId, offset: u64) -> Option<String> {
        let mut id = id;
        let mut offset = offset;
        let mut path = String::new();
        for _ in 0..DEPTH_MAX {
            match self.shape(id) {
                Shape::Record(_) => {
                    let (start, member, name) = self.member_over(id, offset)?;
                    if !name.is_empty() {
                        let name = String::from_utf8_lossy(name);
                        path = if path.is_empty() {
                            name.into_owned()
                        } else {
                            format!("{path}.{name}")
                        };
                    }
                    (id, offset) = (member, offset - start);
                }
                Shape::Array(element, _) => {
                    let size = self.size(element).filter(|size| *size > 0)?;
                    path = format!("{path}[{}]", offset / size);
                    (id, offset) = (element, offset % size);
                }
                _ => break,
            }
        }
        (!path.is_empty()).then_some(path)
    }

    /// Returns the member of a structure over an offset: where it begins, its type and its name.
    fn member_over(&self, id: TypeId, offset: u64) -> Option<(u64, TypeId, &[u8])> {
        let (_, head) = self.plain(id)?;
        (0..head.count).find_map(|n| {
            let at = head.rest + n * 12;
            let name = u32_at(&self.bytes, at)?;
            let kind = u32_at(&self.bytes, at + 4)?;
            let place = u32_at(&self.bytes, at + 8)?;
            let bits = if head.flag { place & 0xff_ffff } else { place };
            let start = u64::from(bits / 8);
            let end = start.checked_add(self.size(kind)?)?;
            (start..end)
                .contains(&offset)
                .then(|| (start, kind, self.name(name)))
        })
    }

    /// Returns the number of an enumerator of a named enumeration.
    pub(crate) fn enumerator(&self, enumeration: &str, name: &str) -> Option<i64> {
        self.starts.iter().find_map(|at| {
            let head = self.head_at(*at).filter(|head| head.kind == kind::ENUM)?;
            if self.name(head.name) != enumeration.as_bytes() {
                return None;
            }
            (0..head.count).find_map(|n| {
                let own = u32_at(&self.bytes, head.rest + n * 8)?;
                let value = u32_at(&self.bytes, head.rest + n * 8 + 4)?;
                let value = if head.flag {
                    i64::from(value.cast_signed())
                } else {
                    i64::from(value)
                };
                (self.name(own) == name.as_bytes()).then_some(value)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{Shape, Types};
    use synthetic_dumps::vmlinux::Btf;

    fn bytes() -> Vec<u8> {
        let mut btf = Btf::default();
        let long = btf.int("long", 8);
        let char = btf.int("char", 1);
        let name = btf.array(char, 65);
        let inner = btf.record("", 16, &[("first", long, 0), ("second", long, 8)]);
        let alias = btf.typedef("alias_t", inner);
        let pointer = btf.pointer(char);
        btf.record(
            "thing",
            100,
            &[
                ("head", long, 0),
                ("", alias, 8),
                ("text", name, 24),
                ("more", pointer, 92),
            ],
        );
        btf.enumeration("colours", &[("RED", 3), ("GREEN", 5)]);
        btf.bytes()
    }

    #[test]
    fn sizes_places_and_enumerators_are_found() {
        let types = Types::new(bytes()).unwrap();
        let thing = types.named("thing").unwrap();
        assert_eq!(types.size(thing), Some(100));
        assert_eq!(types.path("thing.second").map(|found| found.0), Some(16));
        let (at, text) = types.member(thing, "text").unwrap();
        assert_eq!((at, types.size(text)), (24, Some(65)));
        assert!(matches!(types.shape(text), Shape::Array(_, 65)));
        assert!(matches!(
            types.shape(types.member(thing, "more").unwrap().1),
            Shape::Pointer(_)
        ));
        assert_eq!(types.size(types.named("alias_t").unwrap()), Some(16));
        assert_eq!(types.path("thing.third"), None);
        assert_eq!(types.path("thing"), None);
        assert_eq!((types.size(0), types.size(1000)), (None, None));
        assert_eq!(types.enumerator("colours", "GREEN"), Some(5));
        for (offset, member) in [
            (0, Some("head")),
            (20, Some("second")),
            (25, Some("text[1]")),
            (90, None),
            (95, Some("more")),
            (100, None),
        ] {
            assert_eq!(
                types.member_at(thing, offset).as_deref(),
                member,
                "{offset}"
            );
        }
        assert_eq!(types.enumerator("flowers", "GREEN"), None);
    }

    #[test]
    fn structures_within_themselves_end() {
        let mut btf = Btf::default();
        // Two anonymous members, both of the structure's own type.
        btf.record("loop", 8, &[("", 1, 0), ("", 1, 0)]);
        btf.typedef("again", 2);
        let types = Types::new(btf.bytes()).unwrap();
        assert_eq!(types.path("loop.x"), None);
        assert_eq!(types.size(2), None);
    }

    proptest! {
        #[test]
        fn no_types_are_too_strange(
            noise in prop::collection::vec(any::<u8>(), 0..60),
            at in 0_usize..400,
        ) {
            let mut bytes = bytes();
            for (n, byte) in noise.iter().enumerate() {
                if let Some(place) = bytes.get_mut(at + n) {
                    *place = *byte;
                }
            }
            if let Some(types) = Types::new(bytes) {
                let _: (_, _) = (
                    types.path("thing.second"),
                    types.enumerator("colours", "GREEN"),
                );
                for id in 0..20 {
                    let _: (_, _, _) = (
                        types.size(id),
                        types.member(id, "text"),
                        types.member_at(id, 9),
                    );
                }
            }
        }
    }
}
