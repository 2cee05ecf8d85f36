//! A kernel's vmlinux: its sections, symbols, and linked contents.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::bytes::{u16_at, u16_or_zero, u32_at, u32_or_zero, u64_at, u64_or_zero};
use crate::error::DumpError;
use crate::machine::Machine;
use crate::note;
use crate::types::Types;

/// Bytes of a section header and of a symbol.
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// Type of a section without bytes in the file.
const NO_BITS: u32 = 8;
/// Flag of a compressed section.
const COMPRESSED: u64 = 0x800;
/// Type of the note with the build id (`NT_GNU_BUILD_ID`).
const BUILD_ID: u32 = 3;

/// An open vmlinux.
#[derive(Debug)]
pub struct Vmlinux {
    path: PathBuf,
    map: Mmap,
    machine: Machine,
    sections: Vec<Section>,
    symbols: HashMap<Vec<u8>, Symbol>,
}

/// A section with bytes in the file.
#[derive(Debug)]
struct Section {
    name: Vec<u8>,
    address: u64,
    bytes: Range<usize>,
    compressed: bool,
}

/// The location of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) address: u64,
    pub(crate) size: u64,
}

impl Vmlinux {
    /// Opens a vmlinux.
    ///
    /// # Errors
    /// If it cannot be read or is no vmlinux.
    pub fn open(path: &Path) -> Result<Self, DumpError> {
        let file = File::open(path).map_err(DumpError::reading(path, 0))?;
        // SAFETY: the mapping is read-only, and its bytes are numbers and names that are checked on
        // use; any values are valid, even if another process changes the file.
        let map = unsafe { Mmap::map(&file) }.map_err(DumpError::reading(path, 0))?;
        let kind = u16_or_zero(&map, 16);
        if !map.starts_with(b"\x7fELF\x02\x01") || ![2, 3].contains(&kind) {
            let what = "is no vmlinux: not a 64-bit little-endian ELF program";
            return Err(DumpError::Usage(format!(
                "{} {what}; name the uncompressed one",
                path.display()
            )));
        }
        let machine = Machine::from_elf(u16_or_zero(&map, 18));
        let machine = machine.ok_or_else(|| {
            DumpError::Usage(format!("{} is of no known machine", path.display()))
        })?;
        let mut vmlinux = Self {
            path: path.to_owned(),
            map,
            machine,
            sections: Vec::new(),
            symbols: HashMap::new(),
        };
        vmlinux.read_sections();
        vmlinux.read_symbols();
        Ok(vmlinux)
    }

    fn read_sections(&mut self) {
        let map = &self.map;
        let names = self
            .section_header(usize::from(u16_or_zero(map, 62)))
            .and_then(|header| self.section_bytes(header))
            .unwrap_or_default();
        let mut found = Vec::new();
        for n in 0..usize::from(u16_or_zero(map, 60)) {
            let Some(header) = self.section_header(n) else {
                continue;
            };
            let Some(bytes) = self.section_bytes(header) else {
                continue;
            };
            let name = names.start.saturating_add(u32_or_zero(header, 0) as usize);
            found.push(Section {
                name: text(map, name).to_vec(),
                address: u64_or_zero(header, 16),
                bytes,
                compressed: u64_or_zero(header, 8) & COMPRESSED != 0,
            });
        }
        self.sections = found;
    }

    /// Returns the header of the `n`th section; `None` beyond the file.
    fn section_header(&self, n: usize) -> Option<&[u8]> {
        let table = usize::try_from(u64_or_zero(&self.map, 40)).ok()?;
        self.map
            .get(table.checked_add(n * SECTION)?..)?
            .get(..SECTION)
    }

    /// Returns the location of a section's bytes; `None` if the file does not have them.
    fn section_bytes(&self, header: &[u8]) -> Option<Range<usize>> {
        let start = u64_at(header, 24)?;
        let end = start.checked_add(u64_at(header, 32)?)?;
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        (u32_at(header, 4)? != NO_BITS && range.end <= self.map.len()).then_some(range)
    }

    fn read_symbols(&mut self) {
        let mut found = HashMap::new();
        let (Some(table), Some(names)) = (self.section(".symtab"), self.section(".strtab")) else {
            return;
        };
        for symbol in table.chunks_exact(SYMBOL) {
            let name = text(names, u32_at(symbol, 0).unwrap_or_default() as usize);
            let address = u64_at(symbol, 8).unwrap_or_default();
            let size = u64_at(symbol, 16).unwrap_or_default();
            // Skip undefined symbols; of equal names the global one counts.
            if name.is_empty() || u16_at(symbol, 6) == Some(0) {
                continue;
            }
            let global = symbol[4] >> 4 != 0;
            if global || !found.contains_key(name) {
                found.insert(name.to_vec(), Symbol { address, size });
            }
        }
        self.symbols = found;
    }

    pub(crate) fn machine(&self) -> Machine {
        self.machine
    }

    /// Returns the bytes of a section; `None` if it is missing or compressed.
    pub(crate) fn section(&self, name: &str) -> Option<&[u8]> {
        let section = self
            .sections
            .iter()
            .find(|section| section.name == name.as_bytes() && !section.compressed)?;
        self.map.get(section.bytes.clone())
    }

    pub(crate) fn symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name.as_bytes()).copied()
    }

    /// Returns the bytes from a linked address to the end of its section.
    pub(crate) fn linked(&self, address: u64) -> Option<&[u8]> {
        let section = self.sections.iter().find(|section| {
            section.address != 0
                && section.address <= address
                && address - section.address < section.bytes.len() as u64
        })?;
        let skip = usize::try_from(address - section.address).ok()?;
        self.map.get(section.bytes.start + skip..section.bytes.end)
    }

    /// Returns the kernel's release, as `uname -r` prints it.
    pub(crate) fn release(&self) -> Option<String> {
        let banner = text(self.linked(self.symbol("linux_banner")?.address)?, 0);
        let words = std::str::from_utf8(banner)
            .ok()?
            .strip_prefix("Linux version ")?;
        words.split(' ').next().map(str::to_owned)
    }

    /// Returns the build id, in hexadecimal.
    pub(crate) fn build_id(&self) -> Option<String> {
        let bytes = self.section(".notes")?;
        let note = note::notes(bytes)
            .into_iter()
            .find(|note| note.owner == "GNU" && note.kind == BUILD_ID)?;
        Some(
            bytes[note.content]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }

    /// Returns the kernel's types.
    ///
    /// # Errors
    /// If it has none.
    pub fn types(&self) -> Result<Types, DumpError> {
        let types = self
            .section(".BTF")
            .and_then(|bytes| Types::new(bytes.to_vec()));
        types.ok_or_else(|| {
            DumpError::Usage(format!(
                "{} has no types (section .BTF): name the vmlinux of a kernel that was built with CONFIG_DEBUG_INFO_BTF",
                self.path.display()
            ))
        })
    }
}

/// Returns the text at `at`, up to its terminator.
fn text(bytes: &[u8], at: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    &rest[..memchr::memchr(0, rest).unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{Symbol, Vmlinux};
    use synthetic_dumps::vmlinux;

    fn small() -> vmlinux::Vmlinux {
        vmlinux::Vmlinux {
            sections: vec![(
                ".rodata".to_owned(),
                0x1000,
                b"....Linux version 6.12.0 (x)\n\0".to_vec(),
            )],
            symbols: vec![
                ("linux_banner".to_owned(), 0x1004, 26),
                ("other".to_owned(), 0x9000, 8),
            ],
        }
    }

    #[test]
    fn sections_symbols_and_release_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinux");
        small().write(&path).unwrap();
        let vmlinux = Vmlinux::open(&path).unwrap();
        assert_eq!(
            vmlinux.symbol("other"),
            Some(Symbol {
                address: 0x9000,
                size: 8
            })
        );
        assert_eq!(vmlinux.symbol("another"), None);
        assert_eq!(vmlinux.release().as_deref(), Some("6.12.0"));
        assert_eq!(vmlinux.linked(0x9000), None);
        assert!(
            vmlinux
                .types()
                .unwrap_err()
                .to_string()
                .contains("has no types")
        );
        std::fs::write(&path, "text").unwrap();
        assert!(
            Vmlinux::open(&path)
                .unwrap_err()
                .to_string()
                .contains("is no vmlinux")
        );
    }

    proptest! {
        #[test]
        fn no_vmlinux_is_too_strange(
            noise in prop::collection::vec(any::<u8>(), 0..40),
            at in 0_usize..700,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("vmlinux");
            small().write(&path).unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            for (n, byte) in noise.iter().enumerate() {
                if let Some(place) = bytes.get_mut(at + n) {
                    *place = *byte;
                }
            }
            std::fs::write(&path, bytes).unwrap();
            if let Ok(vmlinux) = Vmlinux::open(&path) {
                vmlinux.release();
                vmlinux.build_id();
            }
        }
    }
}
