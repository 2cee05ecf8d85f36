//! The notes of a dump, especially VMCOREINFO: lines of KEY=VALUE with the kernel's layout.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::bytes::{u32_at, u64_at};
use crate::error::DumpError;

/// Type of the notes with a processor's registers (`include/uapi/linux/elf.h`).
const NT_PRSTATUS: u32 = 1;

/// Largest VMCOREINFO: the kernel has a page for it.
const INFO_MAX: usize = 1 << 20;

/// Owner and type of the note with pages that were not excluded.
pub(crate) const MARK: (&str, u32) = ("MARVIN-DUMP", 2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note<'a> {
    /// Its name, which says who defined it.
    pub(crate) owner: &'a str,
    /// Its type, for that owner.
    pub(crate) kind: u32,
    /// The range of its content in the bytes of all notes.
    pub(crate) content: Range<usize>,
}

/// Returns a size with the padding that follows in a note.
fn padded(size: u32) -> Option<usize> {
    usize::try_from(size).ok()?.checked_next_multiple_of(4)
}

/// Returns the notes in `bytes`, up to the first invalid one.
pub(crate) fn notes(bytes: &[u8]) -> Vec<Note<'_>> {
    let mut found = Vec::new();
    let mut at = 0_usize;
    while let (Some(name), Some(size), Some(kind)) = (
        u32_at(bytes, at),
        u32_at(bytes, at + 4),
        u32_at(bytes, at + 8),
    ) {
        let start = at + 12;
        let Some(content) = padded(name).and_then(|length| start.checked_add(length)) else {
            break;
        };
        let Some(end) = usize::try_from(size)
            .ok()
            .and_then(|size| content.checked_add(size))
        else {
            break;
        };
        let owner = start
            .checked_add(name as usize)
            .and_then(|end| bytes.get(start..end));
        let (Some(owner), Some(_)) = (owner, bytes.get(content..end)) else {
            break;
        };
        let owner = std::str::from_utf8(owner)
            .unwrap_or_default()
            .trim_end_matches('\0');
        // The kernel leaves zeros for a processor that did not save its registers.
        if !(name == 0 && size == 0) {
            found.push(Note {
                owner,
                kind,
                content: content..end,
            });
        }
        match padded(size).and_then(|size| content.checked_add(size)) {
            Some(next) => at = next,
            None => break,
        }
    }
    found
}

/// Returns the number of processors with saved registers.
pub(crate) fn processors(bytes: &[u8]) -> usize {
    notes(bytes)
        .iter()
        .filter(|note| note.owner == "CORE" && note.kind == NT_PRSTATUS)
        .count()
}

/// Returns the physical address of each processor's first page table, from QEMU's notes of a PC
/// (`QEMUCPUState`, target/i386/arch_dump.c).
pub(crate) fn qemu_tables(bytes: &[u8]) -> Vec<u64> {
    /// The offset of the register CR3, behind 18 others, ten segments and CR0 to CR2; and its
    /// address bits.
    const CR3: usize = 8 + 18 * 8 + 10 * 24 + 3 * 8;
    const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
    let states = notes(bytes).into_iter().filter(|note| note.owner == "QEMU");
    states
        .filter_map(|note| Some(u64_at(&bytes[note.content], CR3)? & ADDRESS))
        .collect()
}

/// Returns the range of VMCOREINFO's text in the bytes of all notes.
pub(crate) fn vmcoreinfo(bytes: &[u8]) -> Option<Range<usize>> {
    notes(bytes)
        .into_iter()
        .find(|note| note.owner == "VMCOREINFO")
        .map(|note| note.content)
}

/// Returns the bytes of all notes except those of an owner.
pub(crate) fn without(bytes: &[u8], owner: &str) -> Vec<u8> {
    let others = notes(bytes).into_iter().filter(|note| note.owner != owner);
    others
        .flat_map(|note| encode(note.owner, note.kind, &bytes[note.content]))
        .collect()
}

/// The kernel's description of its layout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    lines: BTreeMap<String, String>,
}

impl Info {
    /// Parses the text of a note; skips lines without `=`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&text[..text.len().min(INFO_MAX)]);
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let lines = pairs.map(|(key, value)| {
            let value = value.trim().trim_end_matches('\0');
            (key.trim().to_owned(), value.to_owned())
        });
        Self {
            lines: lines.collect(),
        }
    }

    /// Adds lines whose keys it lacks, or has without a usable number.
    pub(crate) fn add_missing(&mut self, lines: Vec<(String, String)>) {
        for (key, value) in lines {
            let own = self.lines.get(&key).map(String::as_str).unwrap_or_default();
            // Only names and texts are no numbers, and these are never added.
            if !own.starts_with(|c: char| c == '-' || c.is_ascii_hexdigit()) {
                self.lines.insert(key, value);
            }
        }
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns all lines, by key.
    pub fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns a line's value.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.lines.get(key).map(String::as_str)
    }

    /// Returns `NUMBER(name)`.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        let text = self.text(&format!("NUMBER({name})"))?;
        match text.strip_prefix("0x") {
            // Addresses use all 64 bits.
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
            None => text
                .parse()
                .ok()
                .or_else(|| text.parse::<u64>().ok().map(u64::cast_signed)),
        }
    }

    /// Returns `SYMBOL(name)`, an address.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<u64> {
        let text = self.text(&format!("SYMBOL({name})"))?;
        u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    }

    /// Returns `KIND(name)`, such as `OFFSET(page.flags)`, a number of bytes or items.
    #[must_use]
    pub fn size(&self, kind: &str, name: &str) -> Option<usize> {
        self.text(&format!("{kind}({name})"))?.parse().ok()
    }

    /// Returns the size of a page in bytes; `None` if it is no power of two between 1 KiB and 1
    /// MiB.
    #[must_use]
    pub fn page_size(&self) -> Option<u64> {
        let size: u64 = self.text("PAGESIZE")?.parse().ok()?;
        (size.is_power_of_two() && (1 << 10..=1 << 20).contains(&size)).then_some(size)
    }

    /// Returns `NUMBER(name)`, or an error if it is missing.
    pub(crate) fn need_number(&self, name: &str) -> Result<i64, DumpError> {
        self.number(name)
            .ok_or_else(|| DumpError::NoteLacks(format!("NUMBER({name})")))
    }

    /// Returns `SYMBOL(name)`, or an error if it is missing.
    pub(crate) fn need_symbol(&self, name: &str) -> Result<u64, DumpError> {
        self.symbol(name)
            .ok_or_else(|| DumpError::NoteLacks(format!("SYMBOL({name})")))
    }

    /// Returns `KIND(name)`, or an error if it is missing.
    pub(crate) fn need_size(&self, kind: &str, name: &str) -> Result<usize, DumpError> {
        self.size(kind, name)
            .ok_or_else(|| DumpError::NoteLacks(format!("{kind}({name})")))
    }

    /// Makes the error for an impossible number.
    pub(crate) fn lies(&self, key: String, what: &'static str) -> DumpError {
        let value = self.text(&key).unwrap_or_default().to_owned();
        DumpError::NoteLies { key, value, what }
    }
}

/// Returns the bytes of one note.
pub(crate) fn encode(owner: &str, kind: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Both are small: names and notes of one dump.
    for number in [owner.len() as u32 + 1, content.len() as u32, kind] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(owner.as_bytes());
    bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{Info, encode, notes, processors, vmcoreinfo};

    #[test]
    fn notes_are_distinguished() {
        let mut bytes = encode("CORE", 1, &[7; 336]);
        bytes.extend(encode("CORE", 1, &[8; 336]));
        bytes.extend(encode("VMCOREINFO", 0, b"OSRELEASE=6.12\nPAGESIZE=4096\n"));
        assert_eq!(processors(&bytes), 2);
        let text = &bytes[vmcoreinfo(&bytes).unwrap()];
        assert_eq!(Info::parse(text).page_size(), Some(4096));
        assert_eq!(
            notes(&bytes[..bytes.len() - 1]).len(),
            3,
            "padding may be missing"
        );
        assert_eq!(notes(&bytes[..bytes.len() - 4]).len(), 2);
    }

    #[test]
    fn a_note_can_be_taken_out() {
        let first = encode("CORE", 1, &[7; 336]);
        let last = encode("CORE", 1, &[8; 33]);
        let all = [&first[..], &encode("VMCOREINFO", 0, b"PAGESIZE=1"), &last].concat();
        assert_eq!(super::without(&all, "VMCOREINFO"), [first, last].concat());
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let info = Info::parse(
            b"NUMBER(a)=-129\nNUMBER(b)=0xffffffffffffffff\nSYMBOL(c)=ffffffff81000000\nOFFSET(d.e)=8\n\
            NUMBER(f)=18446744073709551615\nNUMBER(g)=x\nPAGESIZE=4097\n",
        );
        assert_eq!(info.number("a"), Some(-129));
        assert_eq!(info.number("b"), Some(-1));
        assert_eq!(info.number("f"), Some(-1));
        assert_eq!(info.number("g"), None);
        assert_eq!(info.symbol("c"), Some(0xffff_ffff_8100_0000));
        assert_eq!(info.size("OFFSET", "d.e"), Some(8));
        assert_eq!(info.page_size(), None);
        insta::assert_snapshot!(info.need_number("g").unwrap_err(), @"the VMCOREINFO note has no usable `NUMBER(g)`, which is needed here; --level 0 and 1 work without it");
    }

    proptest! {
        #[test]
        fn no_notes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for note in notes(&bytes) {
                assert!(bytes.get(note.content).is_some());
            }
        }
    }
}
