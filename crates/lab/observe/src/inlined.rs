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
/// Functions at one address that are named.
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
    /// first.
    pub(crate) fn names(&self, address: u64) -> Vec<String> {
        let mut names = Vec::new();
        let found = self.index().map(|index| index.find_frames(address));
        let Some(Ok(mut frames)) = found.map(|found| found.skip_all_loads()) else {
            return names;
        };
        while let (Ok(Some(frame)), true) = (frames.next(), names.len() <= NAMED) {
            let function = frame.function.as_ref();
            let name = function.and_then(|function| function.raw_name().ok());
            names.push(match name {
                Some(name) => demangle(&name),
                None => String::new(),
            });
        }
        // The last one is the function around them.
        names.pop();
        // A member of a template is written without its class where it has no symbol.
        let is_member = |name: &String| {
            let begin = name.split_once('<');
            begin.is_some_and(|(begin, _)| !begin.is_empty() && !begin.contains("::"))
        };
        names.retain(|name| !is_member(name));
        let is_own = |name: &String| {
            !name.is_empty() && !LIBRARIES.iter().any(|begin| name.starts_with(begin))
        };
        names.retain(is_own);
        names
    }
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

    #[test]
    fn inlined_function_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("weigh.c");
        std::fs::write(&source, SOURCE).unwrap();
        let program = folder.path().join("weigh");
        let compiled = Command::new("cc")
            .args(["-O1", "-g", "-o"])
            .args([&program, &source])
            .status();
        assert!(compiled.unwrap().success());
        let bytes = std::fs::read(&program).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let inlined = Inlined::read(&file).unwrap();
        let main = object::ObjectSymbol::address(&file.symbol_by_name("main").unwrap());
        let found = (main..main + 200).any(|address| inlined.names(address) == ["weigh"]);
        assert!(found);
        assert!(inlined.names(0).is_empty());
    }
}
