//! The bytes of a kernel's image by address.

use std::fs;
use std::ops::Range;
use std::path::Path;

use object::LittleEndian;
use object::elf::PT_LOAD;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::elf;

/// The loaded segments of a vmlinux.
#[derive(Debug)]
pub struct CodeBytes {
    bytes: Vec<u8>,
    /// Address, offset in the file, and size there.
    segments: Vec<(u64, u64, u64)>,
    /// Addresses of memory that is loaded, with what is zero at first.
    loaded: Vec<Range<u64>>,
}

impl CodeBytes {
    /// Reads a vmlinux; `None` if it is none.
    #[must_use]
    pub fn open(vmlinux: &Path) -> Option<Self> {
        let bytes = fs::read(vmlinux).ok()?;
        let header = elf::header(&bytes)?;
        let segments = header.program_headers(LittleEndian, &*bytes).ok()?;
        let segments = segments
            .iter()
            .filter(|segment| segment.p_type(LittleEndian) == PT_LOAD);
        let loaded = segments.clone().map(|segment| {
            let start = segment.p_vaddr(LittleEndian);
            start..start.saturating_add(segment.p_memsz(LittleEndian))
        });
        let loaded = loaded.collect();
        let segments = segments
            .map(|segment| {
                let (offset, size) = segment.file_range(LittleEndian);
                (segment.p_vaddr(LittleEndian), offset, size)
            })
            .collect();
        Some(Self {
            bytes,
            segments,
            loaded,
        })
    }

    /// Returns the addresses of memory that is loaded.
    #[must_use]
    pub fn loaded(&self) -> &[Range<u64>] {
        &self.loaded
    }

    /// Returns the addresses of data that is an address: eight bytes, at a multiple of eight.
    pub fn pointers_to(&self, address: u64) -> impl Iterator<Item = u64> {
        let wanted = address.to_le_bytes();
        self.segments.iter().flat_map(move |(start, offset, size)| {
            let from = usize::try_from(*offset).unwrap_or(usize::MAX);
            let to = from.saturating_add(usize::try_from(*size).unwrap_or(usize::MAX));
            let bytes = self.bytes.get(from..to).unwrap_or_default();
            let words = bytes.chunks_exact(wanted.len()).enumerate();
            let found = words.filter(move |(_, word)| **word == wanted);
            found.map(move |(at, _)| start + (at * wanted.len()) as u64)
        })
    }

    /// Returns the bytes between two addresses; `None` if the image does not have all of them.
    #[must_use]
    pub fn between(&self, start: u64, end: u64) -> Option<&[u8]> {
        self.segments.iter().find_map(|(address, offset, size)| {
            let first = start.checked_sub(*address)?;
            let length = end.checked_sub(start)?;
            if first.checked_add(length)? > *size {
                return None;
            }
            let from = usize::try_from(offset.checked_add(first)?).ok()?;
            let to = from.checked_add(usize::try_from(length).ok()?)?;
            self.bytes.get(from..to)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::CodeBytes;
    use crate::elf::tests::write;

    #[test]
    fn files_without_segments_have_no_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vmlinux");
        fs::write(&file, write(18, "6.12.0")).unwrap();
        let code = CodeBytes::open(&file).unwrap();
        assert_eq!(code.between(0, 1 << 40), None);
        assert_eq!(code.between(5, 3), None);
        fs::write(&file, "no kernel").unwrap();
        assert!(CodeBytes::open(&file).is_none());
    }
}
