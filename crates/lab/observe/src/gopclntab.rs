//! Names of a Go program's functions from the table that its runtime has of them (`.gopclntab`): a
//! stripped program has it, too. Of Go 1.18 and later (src/runtime/symtab.go: `pcHeader`,
//! `moduledata`; src/debug/gosym/pclntab.go).

use std::collections::BTreeMap;

use object::{Object as _, ObjectSection as _};

/// The sections that have the table, of programs at a fixed address and of others.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// The sections that may have the module's data, which begin with the table's address.
const MODULES: [&str; 4] = [".go.module", ".noptrdata", ".data", ".data.rel.ro"];
/// How the table begins, of Go 1.18 and of 1.20.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Where the header has the number of functions, the beginning of the code (until Go 1.25), and how
/// far the names and the functions lie behind it (bytes).
const FUNCTIONS: usize = 8;
const TEXT: usize = 24;
const NAMES_AT: usize = 32;
const FUNCTIONS_AT: usize = 64;
/// Where the module's data have the beginning of the code: behind six slices and three words.
const MODULE_TEXT: usize = 176;
/// The letters of a name that are read at most.
const NAME_MAX: usize = 1024;

struct Table<'d> {
    data: &'d [u8],
}

impl Table<'_> {
    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let bytes = self.data.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn offset(&self, at: usize) -> Option<usize> {
        usize::try_from(self.u64(at)?).ok()
    }

    fn name(&self, at: usize) -> Option<&str> {
        let rest = self.data.get(at..)?;
        let rest = &rest[..rest.len().min(NAME_MAX)];
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }

    /// Returns the functions: where each begins behind the beginning of the code, and its name. The
    /// last one has no name and says where the code ends.
    fn functions(&self) -> Option<Vec<(u64, &str)>> {
        // Eight bytes begin the table: the magic, two zeros, the least instruction, a pointer's size.
        let is_known = MAGICS.contains(&self.u32(0)?) && self.data.get(7) == Some(&8);
        if !is_known {
            return None;
        }
        let count = self.offset(FUNCTIONS)?;
        let (names, functions) = (self.offset(NAMES_AT)?, self.offset(FUNCTIONS_AT)?);
        let mut found = Vec::new();
        // Functions of a damaged table may share a name.
        let mut room = self.data.len();
        for index in 0..count {
            let entry = functions.checked_add(index.checked_mul(8)?)?;
            let begin = self.u32(entry)?;
            let function = functions.checked_add(self.u32(entry + 4)? as usize)?;
            // Its beginning, and behind that where its name is.
            let name = names.checked_add(self.u32(function.checked_add(4)?)? as usize)?;
            let name = self.name(name).unwrap_or_default();
            room = room.checked_sub(name.len())?;
            found.push((u64::from(begin), name));
        }
        let end = functions.checked_add(count.checked_mul(8)?)?;
        found.push((u64::from(self.u32(end)?), ""));
        Some(found)
    }
}

/// Returns where the code begins, as the module's data have it.
fn module_text(file: &object::File, table: u64) -> Option<u64> {
    MODULES.iter().find_map(|name| {
        let data = file.section_by_name(name)?.data().ok()?;
        let module = Table { data };
        let mut places = (0..data.len()).step_by(8);
        let at = places.find(|at| module.u64(*at) == Some(table))?;
        module.u64(at + MODULE_TEXT).filter(|text| *text > 0)
    })
}

/// Returns the functions of a program by address: end and name; none if it is not of Go.
pub(crate) fn functions(file: &object::File) -> BTreeMap<u64, (u64, String)> {
    let section = SECTIONS.iter().find_map(|name| file.section_by_name(name));
    let Some((section, data)) = section.and_then(|section| {
        let data = section.data().ok()?;
        Some((section, data))
    }) else {
        return BTreeMap::new();
    };
    let table = Table { data };
    let in_header = table.u64(TEXT).filter(|text| *text > 0);
    let of_section = || file.section_by_name(".text").map(|text| text.address());
    let text = module_text(file, section.address()).or(in_header);
    let (Some(text), Some(found)) = (text.or_else(of_section), table.functions()) else {
        return BTreeMap::new();
    };
    let ends = found.iter().skip(1).map(|(begin, _)| *begin);
    let functions = found
        .iter()
        .zip(ends)
        .filter(|((_, name), _)| !name.is_empty());
    functions
        .map(|((begin, name), end)| {
            let end = text.saturating_add(end);
            (text.saturating_add(*begin), (end, (*name).to_owned()))
        })
        .collect()
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "a skipped check says why")]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    const SOURCE: &str = "package main\n\nimport \"os\"\n\n\
        //go:noinline\nfunc weigh(x int) int { return x*31 + x/7 }\n\n\
        func main() { os.Exit(weigh(len(os.Args)) & 1) }\n";

    /// Builds the program with options of the linker.
    fn build(folder: &std::path::Path, options: &[&str]) -> Option<Vec<u8>> {
        std::fs::write(folder.join("weigh.go"), SOURCE).unwrap();
        let built = Command::new("go")
            .arg("build")
            .args(options)
            .args(["-o", "weigh", "weigh.go"])
            .current_dir(folder)
            .status();
        match built {
            Ok(status) if status.success() => Some(std::fs::read(folder.join("weigh")).unwrap()),
            _ => None,
        }
    }

    #[test]
    fn functions_of_stripped_program_have_names() {
        let folder = tempfile::tempdir().unwrap();
        let Some(whole) = build(folder.path(), &[]) else {
            println!("skipped: this host has no Go");
            return;
        };
        let whole = object::File::parse(&*whole).unwrap();
        let symbols = whole.symbols().filter_map(|symbol| {
            let name = object::ObjectSymbol::name(&symbol).ok()?;
            Some((name.to_owned(), object::ObjectSymbol::address(&symbol)))
        });
        let symbols: BTreeMap<String, u64> = symbols.collect();
        let found = functions(&whole);
        let named: Vec<_> = found
            .iter()
            .filter(|(_, (_, name))| name.starts_with("main."))
            .collect();
        assert!(named.len() >= 2, "{named:?}");
        for (begin, (end, name)) in named {
            assert_eq!(symbols.get(name), Some(begin), "{name}");
            assert!(begin < end);
        }
        for options in [
            &["-ldflags=-s -w"][..],
            &["-ldflags=-s -w", "-buildmode=pie"],
        ] {
            let Some(stripped) = build(folder.path(), options) else {
                println!("skipped: this Go does not build with {options:?}");
                continue;
            };
            let stripped = object::File::parse(&*stripped).unwrap();
            let found = functions(&stripped);
            let text = stripped.section_by_name(".text").unwrap();
            let within = text.address()..text.address() + text.size();
            let weigh = found.iter().find(|(_, (_, name))| name == "main.weigh");
            assert!(
                weigh.is_some_and(|(begin, _)| within.contains(begin)),
                "{options:?}"
            );
        }
    }

    #[test]
    fn shared_long_name_is_refused() {
        let mut data = vec![0_u8; 72 + 8 * 500];
        data[..4].copy_from_slice(&MAGICS[1].to_le_bytes());
        data[7] = 8;
        data[8..16].copy_from_slice(&500_u64.to_le_bytes());
        // Each function is at the end, and has the name there.
        data[64..72].copy_from_slice(&72_u64.to_le_bytes());
        let end = u64::try_from(data.len()).unwrap();
        data[32..40].copy_from_slice(&(end + 8).to_le_bytes());
        for entry in data[72..].chunks_exact_mut(8) {
            entry[4..].copy_from_slice(&4000_u32.to_le_bytes());
        }
        data.extend([0; 8]);
        data.extend([b'a'; 900]);
        data.push(0);
        assert!(Table { data: &data }.functions().is_none());
        let name = data.len() - 6;
        data[32..40].copy_from_slice(&u64::try_from(name).unwrap().to_le_bytes());
        let table = Table { data: &data };
        let found = table.functions().unwrap();
        assert_eq!(found[0].1, "aaaaa");
    }

    proptest! {
        #[test]
        fn any_table_is_read_or_refused(
            magic in prop::sample::select(&MAGICS[..]),
            mut data in prop::collection::vec(any::<u8>(), 0..400),
            words in prop::collection::vec(0_u64..500, 8),
        ) {
            for (index, word) in words.iter().enumerate() {
                let at = 8 + 8 * index;
                if let Some(place) = data.get_mut(at..at + 8) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
            if let Some(begin) = data.get_mut(..8) {
                begin[..4].copy_from_slice(&magic.to_le_bytes());
                begin[7] = 8;
            }
            let table = Table { data: &data };
            if let Some(found) = table.functions() {
                prop_assert!(found.len() <= 1 + data.len());
            }
        }
    }
}
