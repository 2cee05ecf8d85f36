//! Where a kernel keeps its records of memory, for the tracer
//! (`crates/guest/tracer/src/smp/memory.rs`), and what the fields of its structures are called:
//! from the types in its image (BTF), and its symbols. A kernel without types has no names for
//! dynamic memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use subprocess::Shared;

use ingest::{Object, Symbols};
use vmcore::{TypeId, Types, Vmlinux};

/// Offsets of fields, by the name that the tracer knows; where a field moved, the places that it
/// was at, the newest first.
const FIELDS: [(&str, &[&str]); 7] = [
    ("page.compound_head", &["page.compound_head"]),
    // `__folio_mapping`: Linux 6.16 (include/linux/mm_types.h).
    ("page.mapping", &["page.mapping", "page.__folio_mapping"]),
    // `struct slab`: Linux 5.17 (mm/slab.h).
    ("slab.slab_cache", &["slab.slab_cache", "page.slab_cache"]),
    ("kmem_cache.list", &["kmem_cache.list"]),
    ("kmem_cache.name", &["kmem_cache.name"]),
    ("kmem_cache.size", &["kmem_cache.size"]),
    ("kmem_cache.red_left_pad", &["kmem_cache.red_left_pad"]),
];
const VARIABLES: [&str; 8] = [
    "node_data",
    "slab_caches",
    "vmemmap_base",
    "page_offset_base",
    "__per_cpu_offset",
    "__per_cpu_start",
    "__per_cpu_end",
    "pcpu_unit_size",
];

/// Fields of locks and atomic numbers (include/linux/spinlock_types.h,
/// include/asm-generic/qspinlock_types.h, include/linux/types.h).
const WITHIN: [&str; 5] = [
    ".counter",
    ".raw_lock.val",
    ".raw_lock.cnts",
    ".rlock",
    ".refs",
];

/// The types of a kernel, if its image has them.
#[derive(Debug)]
pub(crate) struct Records {
    types: Option<Types>,
    /// What was asked for.
    known: Shared<BTreeMap<String, Option<TypeId>>>,
}

impl Records {
    /// Reads a vmlinux; other images have no types.
    pub(crate) fn read(image: &Path) -> Self {
        Self {
            types: Vmlinux::open(image)
                .and_then(|vmlinux| vmlinux.types())
                .ok(),
            known: Shared::default(),
        }
    }

    /// Returns the tracer's marks: `place NAME NUMBER` for each that the kernel has.
    pub(crate) fn marks(&self, symbols: &Symbols) -> String {
        let mut marks = String::new();
        let mut place = |name: &str, number: Option<u64>| {
            if let Some(number) = number {
                writeln!(marks, "place {name} {number:x}").unwrap_or_default();
            }
        };
        for name in VARIABLES {
            place(name, symbols.data_address(name));
        }
        if let Some(types) = &self.types {
            for structure in ["page", "pglist_data"] {
                place(
                    structure,
                    types.named(structure).and_then(|id| types.size(id)),
                );
            }
            for (name, paths) in FIELDS {
                place(
                    name,
                    paths
                        .iter()
                        .find_map(|path| types.path(path))
                        .map(|(offset, _)| offset),
                );
            }
        }
        marks
    }

    /// Returns the field that is so many bytes into something.
    pub(crate) fn field(&self, of: Object<'_>, offset: u64) -> Option<String> {
        let types = self.types.as_ref()?;
        let mut known = self.known.lock();
        let id = *known.entry(format!("{of:?}")).or_insert_with(|| match of {
            Object::Structure(name) => types.named(name),
            Object::PerCpu(name) => types.variable(name),
        });
        let field = types.member_at(id?, offset)?;
        // What is within a lock or an atomic number says nothing more.
        let mut short = field.as_str();
        while let Some(shorter) = WITHIN.iter().find_map(|last| short.strip_suffix(last)) {
            short = shorter;
        }
        Some(short.to_owned())
    }
}
