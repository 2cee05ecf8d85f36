//! The dynamic linking of an ELF file: its dynamic linker, libraries and search path.
//!
//! Layout: elf(5). Total and bounded: the files come from packages.

use crate::bytes::{range, u16_at, u32_at, u64_at};

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PROGRAM_HEADER: u64 = 56;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// Most parsed entries of a dynamic section, and longest name.
const ENTRIES_MAX: u64 = 4096;
const NAME_MAX: usize = 1024;

/// The needs of a program or library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Linked {
    pub(crate) interpreter: Option<String>,
    pub(crate) needed: Vec<String>,
    /// Directories to search first, with `$ORIGIN` unexpanded.
    pub(crate) folders: Vec<String>,
}

/// Returns the needs of a file; `None` if it is damaged or no ELF file of 64 bits.
pub(crate) fn parse_linking(bytes: &[u8]) -> Option<Linked> {
    if range(bytes, 0, 6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = u64_at(bytes, 32)?;
    let count = u64::from(u16_at(bytes, 56)?);
    let mut linked = Linked::default();
    let mut loads = Vec::new();
    let mut dynamic = None;
    for number in 0..count {
        let header = range(
            bytes,
            table.checked_add(number * PROGRAM_HEADER)?,
            PROGRAM_HEADER,
        )?;
        let kind = u32_at(header, 0)?;
        let offset = u64_at(header, 8)?;
        let address = u64_at(header, 16)?;
        let size = u64_at(header, 32)?;
        match kind {
            PT_LOAD => loads.push((address, offset, size)),
            PT_DYNAMIC => dynamic = Some((offset, size)),
            PT_INTERP => linked.interpreter = name(range(bytes, offset, size)?),
            _ => {}
        }
    }
    let Some((offset, size)) = dynamic else {
        return Some(linked);
    };
    let entries: Vec<(u64, u64)> = (0..(size / 16).min(ENTRIES_MAX))
        .map_while(|number| {
            let entry = range(bytes, offset.checked_add(number * 16)?, 16)?;
            Some((u64_at(entry, 0)?, u64_at(entry, 8)?)).filter(|(tag, _)| *tag != 0)
        })
        .collect();
    let strings = entries
        .iter()
        .find(|(tag, _)| *tag == DT_STRTAB)
        .map(|(_, address)| *address)?;
    let (begin, offset, _) = loads
        .iter()
        .find(|(at, _, size)| (*at..at.saturating_add(*size)).contains(&strings))?;
    let strings = offset.checked_add(strings - begin)?;
    let text = |at: u64| name(bytes.get(usize::try_from(strings.checked_add(at)?).ok()?..)?);
    for (tag, value) in entries {
        match tag {
            DT_NEEDED => linked.needed.extend(text(value)),
            DT_RPATH | DT_RUNPATH => {
                linked.folders.extend(
                    text(value)
                        .iter()
                        .flat_map(|all| all.split(':'))
                        .map(str::to_owned),
                );
            }
            _ => {}
        }
    }
    Some(linked)
}

/// Reads text up to its terminator.
fn name(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().take(NAME_MAX).position(|&byte| byte == 0)?;
    std::str::from_utf8(&bytes[..end])
        .ok()
        .filter(|name| !name.is_empty())
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
            parse_linking(&bytes);
        }
    }
}
