//! Functions that the compiler put into others (DWARF 5, section 3.3.8.2), of programs that have their
//! DWARF: on the stack there is only the one around them.

use std::cell::OnceCell;
use std::sync::Arc;

use addr2line::Context;
use gimli::{DwarfSections, EndianArcSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection as _};

use crate::names::demangle;

/// What is read of a program's DWARF (bytes).
const DWARF_MAX: u64 = 64 << 20;
/// Functions at one address that are looked at, and how many of them are named.
const LOOKED_AT: usize = 64;
const NAMED: usize = 8;
/// How names of libraries of C++ and Rust begin: those are part of the function that uses them.
const LIBRARIES: [&str; 8] = [
    "std::",
    "core::",
    "alloc::",
    "hashbrown::",
    "__gnu_cxx::",
    "operator",
    "<",
    "_",
];

/// Where sources of libraries lie: of C and C++, and of Rust as its distributions are built.
const SYSTEM: [&str; 4] = [
    "/usr/include/",
    "/usr/lib/",
    "/usr/local/include/",
    "/rustc/",
];

type Reader = EndianArcSlice<LittleEndian>;

/// Which functions are within others. The index takes long, and is made when it is first asked for:
/// not while a program is observed.
pub(crate) struct Inlined {
    sections: DwarfSections<Arc<[u8]>>,
    index: OnceCell<Option<Context<Reader>>>,
}

impl std::fmt::Debug for Inlined {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Inlined")
    }
}

impl Inlined {
    /// Reads a program's DWARF; `None` without any, or with very much.
    pub(crate) fn read(file: &object::File) -> Option<Self> {
        let size_of = |id: SectionId| {
            let section = file.section_by_name(id.name());
            let compressed = section.map(|section| section.compressed_data().ok());
            compressed
                .flatten()
                .map_or(0, |data| data.uncompressed_size)
        };
        let wanted = [
            SectionId::DebugInfo,
            SectionId::DebugStr,
            SectionId::DebugLine,
            SectionId::DebugRngLists,
            SectionId::DebugRanges,
        ];
        let size: u64 = wanted.map(size_of).iter().sum();
        if size_of(SectionId::DebugInfo) == 0 || size > DWARF_MAX {
            return None;
        }
        let load = |id: SectionId| -> Result<Arc<[u8]>, object::Error> {
            let section = file.section_by_name(id.name());
            let data = section.map(|section| section.uncompressed_data());
            Ok(data.transpose()?.map_or_else(|| Arc::from([]), Arc::from))
        };
        Some(Self {
            sections: DwarfSections::load(load).ok()?,
            index: OnceCell::new(),
        })
    }

    fn index(&self) -> Option<&Context<Reader>> {
        let index = self.index.get_or_init(|| {
            let read = |bytes: &Arc<[u8]>| Reader::new(Arc::clone(bytes), LittleEndian);
            Context::from_dwarf(self.sections.borrow(read)).ok()
        });
        index.as_ref()
    }

    /// Returns the functions of the program that are within the one around an address, innermost
    /// first, with the function of a library that each of them calls, if that calls one itself: it says
    /// what the callee is for.
    pub(crate) fn names(&self, address: u64, is_called_from: bool) -> Vec<String> {
        let found = self.index().map(|index| index.find_frames(address));
        let Some(Ok(mut frames)) = found.map(|found| found.skip_all_loads()) else {
            return Vec::new();
        };
        let mut all = Vec::new();
        while let (Ok(Some(frame)), true) = (frames.next(), all.len() < LOOKED_AT) {
            let function = frame.function.as_ref();
            let name = function.and_then(|function| function.raw_name().ok());
            let file = frame.location.and_then(|location| location.file);
            let is_system = file.is_none_or(|file| SYSTEM.iter().any(|at| file.starts_with(at)));
            let name = name.map_or_else(String::new, |name| demangle(&name));
            all.push(name_of(name, is_system));
        }
        // The last one is the function around them.
        all.pop();
        let mut names = Vec::new();
        for (index, name) in all.iter().enumerate() {
            let next = all.get(index + 1);
            let calls = is_called_from || !names.is_empty();
            let is_entry = calls && !name.is_empty() && next.is_none_or(|next| is_own(next));
            if is_own(name) || is_entry {
                names.push(name.clone());
            }
        }
        names.truncate(NAMED);
        names
    }
}

/// Returns the name of a function; empty if it does not say whose it is. A member of a template is
/// written without its class where it has no symbol: one of a library could be any.
fn name_of(name: String, is_system: bool) -> String {
    let (begin, _) = name.split_once('<').unwrap_or((&name, ""));
    let is_member = begin.len() < name.len() && !begin.is_empty() && !begin.contains("::");
    match is_member {
        false => name,
        true if is_system => String::new(),
        true => begin.to_owned(),
    }
}

fn is_own(name: &str) -> bool {
    !name.is_empty() && !LIBRARIES.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SOURCE: &str = "
static inline __attribute__((always_inline)) int weigh(int x) { return x * 31 + x / 7; }
int main(int count, char **words) { int sum = 0;
    for (int i = 0; i < 1000 * count; i++) sum += weigh(i);
    return sum & 1; }
";

    const TEMPLATE: &str = "
#include <cstring>
namespace { template <typename T> struct Shelf { T items[64];
    void put(const T *from) { std::memcpy(items, from, sizeof items); } }; }
int main(int count, char **words) { Shelf<int> shelf, *other = new Shelf<int>[2];
    for (int i = 0; i < 1000 * count; i++) shelf.put(other[i % 2].items);
    return shelf.items[count]; }
";

    /// Compiles a program, and returns the names within each address of its main function.
    fn names_of(compiler: &str, source: &str, is_called_from: bool) -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let language = if compiler == "cc" { "c" } else { "c++" };
        let [file, program] = ["source", "program"].map(|name| folder.path().join(name));
        std::fs::write(&file, source).unwrap();
        let compiled = Command::new(compiler)
            .args(["-O1", "-g", "-x", language, "-o"])
            .args([&program, &file])
            .status();
        assert!(compiled.unwrap().success());
        let bytes = std::fs::read(&program).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let inlined = Inlined::read(&file).unwrap();
        assert!(inlined.names(0, true).is_empty());
        let main = object::ObjectSymbol::address(&file.symbol_by_name("main").unwrap());
        let within = main..main + 200;
        within
            .map(|address| inlined.names(address, is_called_from))
            .collect()
    }

    #[test]
    fn inlined_function_is_named() {
        let names = names_of("cc", SOURCE, false);
        assert!(names.contains(&vec!["weigh".to_owned()]), "{names:?}");
    }

    #[test]
    fn member_of_own_template_is_named() {
        let names = names_of("c++", TEMPLATE, false);
        let has = |names: &[Vec<String>], part: &str| {
            let mut all = names.iter().flatten();
            all.any(|name| name.contains(part))
        };
        assert!(has(&names, "put"), "{names:?}");
        // The same function of a library has no class, and could be any.
        assert_eq!(name_of("push_back<int>".into(), true), "");
        assert_eq!(name_of("push_back<int>".into(), false), "push_back");
        assert_eq!(
            name_of("std::vector<int>::erase".into(), true),
            "std::vector<int>::erase"
        );
    }
}
