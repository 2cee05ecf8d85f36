//! The types of the kernel's variables. BTF has the types' layout, but for most kernels only DWARF
//! has the variables' types.

use std::cell::OnceCell;

use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian, Unit, UnitOffset};

use crate::types::{Shape, TypeId, Types};
use crate::vmlinux::Vmlinux;

/// Most indirections: names for names, and pointers to pointers.
const DEPTH_MAX: u32 = 32;
/// The beginning of an address in DWARF: an expression of nine bytes, and the opcode for an
/// address.
const LOCATION: [u8; 2] = [9, 3];

type Bytes<'v> = EndianSlice<'v, LittleEndian>;

/// The type of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A structure or union of BTF.
    Record(TypeId),
    /// Any other type of BTF, unresolved.
    Type(TypeId),
    /// A pointer to an object of another type.
    Pointer(Box<Kind>),
    /// An array with this many elements.
    Array(Box<Kind>, u64),
    /// A character.
    Char,
    /// A number, with its size in bytes.
    Number(u64),
    /// Anything without a size.
    Void,
}

/// Variables of a vmlinux.
pub(crate) struct Variables<'v> {
    vmlinux: &'v Vmlinux,
    types: &'v Types,
    dwarf: OnceCell<Option<Dwarf<Bytes<'v>>>>,
}

impl<'v> Variables<'v> {
    pub(crate) fn new(vmlinux: &'v Vmlinux, types: &'v Types) -> Self {
        Self {
            vmlinux,
            types,
            dwarf: OnceCell::new(),
        }
    }

    /// Returns a named structure, union or other type.
    pub(crate) fn named(&self, name: &str) -> Option<Kind> {
        self.types
            .named(name)
            .map(|id| self.expand(&Kind::Type(id)))
    }

    /// Returns what a type of BTF is.
    pub(crate) fn expand(&self, kind: &Kind) -> Kind {
        let Kind::Type(id) = kind else {
            return kind.clone();
        };
        match self.types.shape(*id) {
            Shape::Number(_) if self.types.is_called(*id, "char") => Kind::Char,
            Shape::Number(size) => Kind::Number(size),
            Shape::Pointer(target) => Kind::Pointer(Box::new(Kind::Type(target))),
            Shape::Array(element, count) => Kind::Array(Box::new(Kind::Type(element)), count),
            Shape::Record(_) => Kind::Record(*id),
            Shape::Void => Kind::Void,
        }
    }

    /// Returns whether it is a structure with this name.
    pub(crate) fn is_named(&self, kind: &Kind, name: &str) -> bool {
        matches!(kind, Kind::Record(id) if self.types.is_called(*id, name))
    }

    /// Returns offset and type of a member.
    pub(crate) fn member(&self, kind: &Kind, name: &str) -> Option<(u64, Kind)> {
        let Kind::Record(id) = kind else { return None };
        let (offset, id) = self.types.member(*id, name)?;
        Some((offset, self.expand(&Kind::Type(id))))
    }

    /// Returns the size of an object in bytes.
    pub(crate) fn size(&self, kind: &Kind) -> Option<u64> {
        match kind {
            Kind::Record(id) | Kind::Type(id) => self.types.size(*id),
            Kind::Pointer(_) => Some(8),
            Kind::Array(element, count) => self.size(element)?.checked_mul(*count),
            Kind::Char => Some(1),
            Kind::Number(size) => Some(*size),
            Kind::Void => None,
        }
    }

    /// Returns the type of the variable at a linked address.
    pub(crate) fn kind(&self, name: &str, address: u64) -> Option<Kind> {
        if let Some(id) = self.types.variable(name) {
            return Some(self.expand(&Kind::Type(id)));
        }
        let dwarf = self.dwarf.get_or_init(|| {
            Dwarf::load(|id| {
                let bytes = self.vmlinux.section(id.name()).unwrap_or_default();
                Ok::<_, ()>(EndianSlice::new(bytes, LittleEndian))
            })
            .ok()
        });
        let dwarf = dwarf.as_ref()?;
        let info = self.vmlinux.section(".debug_info")?;
        let pattern = [&LOCATION[..], &address.to_le_bytes()].concat();
        // An address occurs at its variable, and rarely elsewhere.
        let places = memchr::memmem::find_iter(info, &pattern);
        places.take(16).find_map(|at| self.kind_at(dwarf, name, at))
    }

    /// Returns the type of the variable whose description contains the bytes at `at`.
    fn kind_at(&self, dwarf: &Dwarf<Bytes<'_>>, name: &str, at: usize) -> Option<Kind> {
        let mut headers = dwarf.units();
        let header = loop {
            let header = headers.next().ok()??;
            let start = header.debug_info_offset()?.0;
            if (start..start + header.length_including_self()).contains(&at) {
                break header;
            }
        };
        let unit = dwarf.unit(header).ok()?;
        let start = header.debug_info_offset()?.0;
        let mut entries = unit.entries();
        let mut last = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            if start + entry.offset().0 > at {
                break;
            }
            last = Some(entry.offset());
        }
        let own = Description { dwarf, unit: &unit };
        let defined = last?;
        // If a header declares and a file defines a variable, the declaration has its name, and its
        // type too, unless the definition has more, such as the length of an array.
        let declared = own
            .reference(defined, gimli::DW_AT_specification)
            .unwrap_or(defined);
        if own.name(declared)? != name.as_bytes() {
            return None;
        }
        let kind = own
            .reference(defined, gimli::DW_AT_type)
            .or_else(|| own.reference(declared, gimli::DW_AT_type));
        self.describe_type(&own, kind?, DEPTH_MAX)
    }

    /// Returns a type of DWARF; `None` for an anonymous structure, which cannot be looked up in
    /// BTF.
    fn describe_type(
        &self,
        own: &Description<'_, '_>,
        offset: UnitOffset,
        depth: u32,
    ) -> Option<Kind> {
        let depth = depth.checked_sub(1)?;
        let target = own.reference(offset, gimli::DW_AT_type);
        let entry = own.unit.entry(offset).ok()?;
        match entry.tag() {
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type => self.describe_type(own, target?, depth),
            gimli::DW_TAG_typedef => self
                .describe_type(own, target?, depth)
                .or_else(|| self.type_called(own.name(offset)?)),
            gimli::DW_TAG_pointer_type => {
                let target = target.map_or(Some(Kind::Void), |target| {
                    self.describe_type(own, target, depth)
                });
                target.map(|target| Kind::Pointer(Box::new(target)))
            }
            gimli::DW_TAG_array_type => {
                let element = self.describe_type(own, target?, depth)?;
                let counts = own.counts(offset)?.into_iter().rev();
                Some(counts.fold(element, |element, count| {
                    Kind::Array(Box::new(element), count)
                }))
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type => {
                self.type_called(own.name(offset)?)
            }
            gimli::DW_TAG_base_type if own.name(offset) == Some(b"char") => Some(Kind::Char),
            gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type => {
                let size = entry.attr_value(gimli::DW_AT_byte_size)?.udata_value()?;
                Some(Kind::Number(size))
            }
            _ => Some(Kind::Void),
        }
    }

    /// Returns the type of BTF with a name of DWARF.
    fn type_called(&self, name: &[u8]) -> Option<Kind> {
        self.named(std::str::from_utf8(name).ok()?)
    }
}

/// The descriptions of one unit.
struct Description<'a, 'v> {
    dwarf: &'a Dwarf<Bytes<'v>>,
    unit: &'a Unit<Bytes<'v>>,
}

impl<'v> Description<'_, 'v> {
    /// Returns the entry that an attribute refers to, in the same unit.
    fn reference(&self, offset: UnitOffset, name: gimli::DwAt) -> Option<UnitOffset> {
        match self.unit.entry(offset).ok()?.attr_value(name)? {
            AttributeValue::UnitRef(offset) => Some(offset),
            AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(&self.unit.header),
            _ => None,
        }
    }

    fn name(&self, offset: UnitOffset) -> Option<&'v [u8]> {
        let name = self
            .unit
            .entry(offset)
            .ok()?
            .attr_value(gimli::DW_AT_name)?;
        self.dwarf
            .attr_string(self.unit, name)
            .ok()
            .map(|name| name.slice())
    }

    /// Returns the lengths of an array, one per dimension.
    fn counts(&self, offset: UnitOffset) -> Option<Vec<u64>> {
        let mut tree = self.unit.entries_tree(Some(offset)).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut counts = Vec::new();
        while let Some(child) = children.next().ok()? {
            let entry = child.entry();
            let count = entry
                .attr_value(gimli::DW_AT_count)
                .and_then(|count| count.udata_value());
            let last = entry
                .attr_value(gimli::DW_AT_upper_bound)
                .and_then(|last| last.udata_value());
            // An array without a length has none.
            counts.push(count.or_else(|| last?.checked_add(1)).unwrap_or_default());
        }
        (counts.len() <= DEPTH_MAX as usize).then_some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Variables};
    use crate::vmlinux::Vmlinux;
    use synthetic_dumps::vmlinux;

    const BASE: u64 = 0xffff_ffff_8100_0000;

    /// Abbreviations: code, tag, children, and names and forms of attributes.
    const ABBREVIATIONS: [&[u8]; 11] = [
        &[1, 0x11, 1],
        &[2, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b],
        &[3, 0x0f, 0, 0x49, 0x13],
        &[4, 0x13, 0, 0x03, 0x08],
        &[5, 0x01, 1, 0x49, 0x13],
        &[6, 0x21, 0, 0x37, 0x0b],
        &[7, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18],
        &[8, 0x34, 0, 0x03, 0x08, 0x49, 0x13],
        &[9, 0x34, 0, 0x47, 0x13, 0x02, 0x18],
        &[10, 0x16, 0, 0x03, 0x08, 0x49, 0x13],
        &[11, 0x13, 0],
    ];

    /// Descriptions, one after the other.
    struct Dwarf(Vec<u8>);

    impl Dwarf {
        fn add(&mut self, code: u8, parts: &[&[u8]]) -> [u8; 4] {
            let at = self.0.len() as u32;
            self.0.push(code);
            self.0.extend(parts.concat());
            at.to_le_bytes()
        }

        fn bytes(mut self) -> Vec<u8> {
            self.0.push(0);
            let size = self.0.len() as u32 - 4;
            self.0[..4].copy_from_slice(&size.to_le_bytes());
            self.0
        }
    }

    fn place(n: u64) -> Vec<u8> {
        [&[9, 3][..], &(BASE + n).to_le_bytes()].concat()
    }

    fn sections() -> Vec<(String, u64, Vec<u8>)> {
        let abbreviations: Vec<u8> = ABBREVIATIONS
            .iter()
            .flat_map(|one| [one, &[0, 0][..]].concat())
            .chain([0])
            .collect();
        // Length, version 4, no offset of abbreviations, addresses of eight bytes.
        let mut dwarf = Dwarf(vec![0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8]);
        dwarf.add(1, &[]);
        let char = dwarf.add(2, &[b"char\0", &[1]]);
        let long = dwarf.add(2, &[b"long\0", &[8]]);
        let text = dwarf.add(3, &[&char]);
        let record = dwarf.add(4, &[b"thing\0"]);
        let nameless = dwarf.add(11, &[]);
        let named = dwarf.add(10, &[b"thing_t\0", &nameless]);
        let array = dwarf.add(5, &[&record]);
        dwarf.add(6, &[&[3]]);
        dwarf.add(6, &[&[2]]);
        dwarf.0.push(0);
        dwarf.add(7, &[b"number\0", &long, &place(0)]);
        dwarf.add(7, &[b"text\0", &text, &place(8)]);
        dwarf.add(7, &[b"things\0", &array, &place(16)]);
        let declared = dwarf.add(8, &[b"other\0", &named]);
        dwarf.add(9, &[&declared, &place(24)]);
        dwarf.add(7, &[b"bare\0", &nameless, &place(32)]);
        let mut btf = vmlinux::Btf::default();
        let long = btf.int("long", 8);
        btf.record("thing", 16, &[("a", long, 0), ("b", long, 8)]);
        btf.typedef("thing_t", 2);
        let sections = [
            (".BTF", btf.bytes()),
            (".debug_abbrev", abbreviations),
            (".debug_info", dwarf.bytes()),
        ];
        sections
            .into_iter()
            .map(|(name, bytes)| (name.to_owned(), 0, bytes))
            .collect()
    }

    #[test]
    fn variables_have_the_types_that_dwarf_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinux");
        vmlinux::Vmlinux {
            sections: sections(),
            symbols: Vec::new(),
        }
        .write(&path)
        .unwrap();
        let vmlinux = Vmlinux::open(&path).unwrap();
        let types = vmlinux.types().unwrap();
        let variables = Variables::new(&vmlinux, &types);
        let kind = |name: &str, place: u64| variables.kind(name, BASE + place);
        assert_eq!(kind("number", 0), Some(Kind::Number(8)));
        assert_eq!(kind("text", 8), Some(Kind::Pointer(Box::new(Kind::Char))));
        let things = kind("things", 16).unwrap();
        assert!(
            matches!(&things, Kind::Array(inner, 3) if matches!(**inner, Kind::Array(_, 2))),
            "{things:?}"
        );
        assert_eq!(variables.size(&things), Some(96));
        let other = kind("other", 24).unwrap();
        assert_eq!(variables.member(&other, "b"), Some((8, Kind::Number(8))));
        assert_eq!(kind("bare", 32), None, "it has no name to ask for");
        assert_eq!(kind("number", 8), None, "another one is there");
        assert_eq!(kind("number", 40), None);
    }

    #[test]
    fn no_dwarf_is_too_strange() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinux");
        let good = sections();
        for at in 0..good[2].2.len() {
            let mut sections = good.clone();
            sections[2].2[at] ^= 0x55;
            vmlinux::Vmlinux {
                sections,
                symbols: Vec::new(),
            }
            .write(&path)
            .unwrap();
            let vmlinux = Vmlinux::open(&path).unwrap();
            let types = vmlinux.types().unwrap();
            let variables = Variables::new(&vmlinux, &types);
            for (name, place) in [("things", 16), ("other", 24), ("text", 8)] {
                variables.kind(name, BASE + place);
            }
        }
    }
}
