//! The dynamic linking of an ELF file: its dynamic linker, libraries and search path.
//!
//! Total and bounded: the files come from packages.

use object::LittleEndian;
use object::elf::{DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_STRTAB, PT_LOAD};
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// Most parsed entries of a dynamic section, and longest name.
const ENTRIES_MAX: usize = 4096;
const NAME_MAX: usize = 1024;

/// The needs of a program or library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Linked {
    pub interpreter: Option<String>,
    pub needed: Vec<String>,
    /// Directories to search first, with `$ORIGIN` unexpanded.
    pub folders: Vec<String>,
    /// Whether it is a file of 32 bits: a library must be one too.
    pub is_32_bit: bool,
}

/// Returns the needs of a file; `None` if it is damaged or no little-endian ELF file.
#[must_use]
pub fn parse_linking(bytes: &[u8]) -> Option<Linked> {
    if let Ok(header) = FileHeader64::<LittleEndian>::parse(bytes) {
        return parse_header(header, bytes);
    }
    parse_header(FileHeader32::<LittleEndian>::parse(bytes).ok()?, bytes)
}

fn parse_header<Elf: FileHeader<Endian = LittleEndian>>(
    header: &Elf,
    bytes: &[u8],
) -> Option<Linked> {
    let segments = header.program_headers(LittleEndian, bytes).ok()?;
    let mut linked = Linked {
        is_32_bit: !header.is_class_64(),
        ..Linked::default()
    };
    let mut entries = None;
    for segment in segments {
        if let Some(path) = segment.interpreter(LittleEndian, bytes).ok()? {
            linked.interpreter = text(path);
        }
        if let Some(found) = segment.dynamic(LittleEndian, bytes).ok()? {
            entries = Some(found);
        }
    }
    let Some(entries) = entries else {
        return Some(linked);
    };
    let entries: Vec<_> = entries
        .iter()
        .take(ENTRIES_MAX)
        .map(|entry| (entry.tag(LittleEndian), entry.val(LittleEndian)))
        .take_while(|(tag, _)| *tag != DT_NULL)
        .collect();
    let (_, address) = entries.iter().find(|(tag, _)| *tag == DT_STRTAB)?;
    // The entry has an address of the loaded program.
    let strings = segments
        .iter()
        .filter(|segment| segment.p_type(LittleEndian) == PT_LOAD)
        .find_map(|segment| {
            let begin = address.checked_sub(segment.p_vaddr(LittleEndian).into())?;
            let content = segment.data(LittleEndian, bytes).ok()?;
            content.get(usize::try_from(begin).ok()?..)
        })?;
    for (tag, offset) in entries {
        let offset = usize::try_from(offset).ok();
        let Some(text) = offset.and_then(|offset| name(strings.get(offset..)?)) else {
            continue;
        };
        match tag {
            DT_NEEDED => linked.needed.push(text),
            DT_RPATH | DT_RUNPATH => linked.folders.extend(text.split(':').map(str::to_owned)),
            _ => {}
        }
    }
    Some(linked)
}

/// Returns text up to its terminator.
fn name(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().take(NAME_MAX).position(|&byte| byte == 0)?;
    text(&bytes[..end])
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse_linking;

    /// This test's program, which is linked dynamically.
    fn own() -> Vec<u8> {
        std::fs::read("/proc/self/exe").unwrap()
    }

    #[test]
    fn a_program_names_its_linker_and_libraries() {
        let linked = parse_linking(&own()).unwrap();
        assert_eq!(
            linked.interpreter.as_deref(),
            Some("/lib64/ld-linux-x86-64.so.2")
        );
        assert!(
            linked.needed.iter().any(|name| name == "libc.so.6"),
            "{linked:?}"
        );
    }

    #[test]
    fn non_elf_file_has_no_libraries() {
        assert_eq!(parse_linking(b"#!/bin/sh\n"), None);
        assert_eq!(parse_linking(b""), None);
        let whole = own();
        assert_eq!(parse_linking(&whole[..80]), None);
    }

    proptest! {
        #[test]
        fn any_damage_can_be_read(
            damage in prop::collection::vec((0_usize..4096, any::<u8>()), 1..40),
        ) {
            let mut bytes = own();
            for (at, byte) in damage {
                bytes[at] = byte;
            }
            drop(parse_linking(&bytes));
        }
    }
}
