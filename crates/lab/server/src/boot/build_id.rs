//! The build id of a build: the note of its image that the running kernel shows, too.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use model::Build;

/// A program header of a 64-bit ELF file, and its type for notes (include/uapi/linux/elf.h of the
/// kernel).
const HEADER: usize = 56;
const PT_NOTE: u32 = 4;
/// Type of the note with the build id.
const NT_GNU_BUILD_ID: u32 = 3;
/// Limits: a kernel has about five headers, and less than a kilobyte of notes.
const HEADERS_MAX: u16 = 64;
const NOTES_MAX: u64 = 1 << 20;

/// Returns the build id of a build, as hexadecimal digits; `None` if it has none, or only a packed
/// image.
pub(super) fn build_id_of(build: &Build) -> Option<String> {
    read(&build.boot_file().path)
}

fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let part = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let start = part(0, 64)?;
    if !start.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = u64_at(&start, 32)?;
    let count = u16::from_le_bytes(start.get(56..58)?.try_into().ok()?);
    let headers = part(table, HEADER * usize::from(count.min(HEADERS_MAX)))?;
    headers
        .chunks_exact(HEADER)
        .filter(|header| u32_at(header, 0) == Some(PT_NOTE))
        .find_map(|header| {
            let length = u64_at(header, 32).filter(|length| *length <= NOTES_MAX)?;
            find_in_notes(&part(u64_at(header, 8)?, usize::try_from(length).ok()?)?)
        })
}

/// Finds the build id: each note is the lengths of its name and its content, its type, and both,
/// padded to four bytes.
fn find_in_notes(mut notes: &[u8]) -> Option<String> {
    loop {
        let name = u32_at(notes, 0)? as usize;
        let size = u32_at(notes, 4)? as usize;
        let start = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let content = notes.get(start..start.checked_add(size)?)?;
        if u32_at(notes, 8)? == NT_GNU_BUILD_ID && notes.get(12..12 + name)? == b"GNU\0" {
            return Some(model::hexadecimal(content));
        }
        notes = notes.get(start.checked_add(size.checked_next_multiple_of(4)?)?..)?;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::read;

    /// Returns an ELF file with one segment of notes, one of which is the build id.
    pub(crate) fn image(id: &[u8]) -> Vec<u8> {
        let mut notes = Vec::new();
        for (name, kind, content) in [(b"Xen\0", 3_u32, &b"other"[..]), (b"GNU\0", 3, id)] {
            for number in [4, u32::try_from(content.len()).unwrap(), kind] {
                notes.extend(number.to_le_bytes());
            }
            notes.extend(name);
            notes.extend(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        let mut elf = vec![0; 120];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[56], elf[64], elf[72]) = (64, 1, 4, 120);
        elf[96] = u8::try_from(notes.len()).unwrap();
        [elf, notes].concat()
    }

    #[test]
    fn build_id_is_read_from_any_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinux");
        let id = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path)
        };
        let whole = image(&[0xab, 0xcd, 0xef, 1]);
        assert_eq!(id(&whole).as_deref(), Some("abcdef01"));
        assert_eq!(id(b"MZ and more"), None);
        for end in 0..whole.len() {
            assert_eq!(id(&whole[..end]), None, "{end}");
        }
        // Any damaged byte of the headers.
        for at in 0..120 {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let found = id(&damaged);
            assert!(
                found.is_none() || found.as_deref() == Some("abcdef01"),
                "{at}"
            );
        }
    }
}
