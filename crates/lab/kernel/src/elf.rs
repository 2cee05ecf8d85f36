//! Checks an ELF file: whether it is for x86-64, complete, a Linux kernel, and bootable by its PVH
//! entry.
//!
//! QEMU boots a vmlinux only through the note XEN_ELFNOTE_PHYS32_ENTRY, which gives the entry of
//! the PVH protocol: `include/xen/interface/elfnote.h` and `arch/x86/platform/pvh/head.S` of the
//! kernel.

use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader64, NoteType, PT_NOTE, ProgramHeader64};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};

use crate::ImageFault;

const MAGIC: &[u8] = b"\x7fELF";
/// `e_machine` of x86-64, as in the file.
const MACHINE_X86_64: [u8; 2] = [62, 0];
const XEN_ELFNOTE_PHYS32_ENTRY: NoteType = NoteType(18);
/// Most bytes of notes: a kernel's have a few hundred. Segments may overlap, and each is read.
const NOTES_MOST: u64 = 1 << 20;
/// Longest release (`__NEW_UTS_LEN` in include/uapi/linux/utsname.h).
const RELEASE_MOST: usize = 64;
/// The beginning of the kernel's banner, which the image contains.
const BANNER: &[u8] = b"Linux version ";

/// Returns whether the file is an ELF file of any kind.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns the header of an ELF file of 64 bits with numbers in this machine's order.
pub(crate) fn header(bytes: &[u8]) -> Option<&FileHeader64<LittleEndian>> {
    let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
    (header.is_class_64() && header.is_little_endian()).then_some(header)
}

/// Checks that an ELF file is for x86-64 and complete; returns whether it has the PVH note.
pub(crate) fn has_pvh(bytes: &[u8]) -> Result<bool, ImageFault> {
    // A file cut short may still name its machine, and another machine is the better reason.
    if bytes.get(18..20) != Some(&MACHINE_X86_64) {
        return Err(ImageFault::OtherMachine);
    }
    if bytes.len() < size_of::<FileHeader64<LittleEndian>>() {
        return Err(ImageFault::Small(bytes.len()));
    }
    let header = header(bytes)
        .filter(|header| header.e_machine(LittleEndian) == EM_X86_64)
        .ok_or(ImageFault::OtherMachine)?;
    let count = u64::from(header.e_phnum(LittleEndian));
    let table_size = count * size_of::<ProgramHeader64<LittleEndian>>() as u64;
    let segments = header
        .program_headers(LittleEndian, bytes)
        .map_err(|_| truncated(bytes, header.e_phoff(LittleEndian), table_size))?;
    let mut has_note = false;
    let mut note_bytes = 0_u64;
    for segment in segments {
        let (offset, size) = segment.file_range(LittleEndian);
        let content = segment
            .data(LittleEndian, bytes)
            .map_err(|()| truncated(bytes, offset, size))?;
        if segment.p_type(LittleEndian) == PT_NOTE {
            note_bytes = note_bytes.saturating_add(size);
            if note_bytes > NOTES_MOST {
                return Err(ImageFault::Notes);
            }
            has_note |= notes_have_pvh(content);
        }
    }
    Ok(has_note)
}

fn truncated(bytes: &[u8], offset: u64, size: u64) -> ImageFault {
    ImageFault::Truncated {
        has: bytes.len(),
        needed: offset.saturating_add(size),
    }
}

fn notes_have_pvh(notes: &[u8]) -> bool {
    // The alignment of a kernel's notes is 4, whatever its segment says.
    let notes = NoteIterator::<FileHeader64<LittleEndian>>::new(LittleEndian, 4, notes);
    notes.is_ok_and(|mut notes| {
        notes.any(|note| {
            note.is_ok_and(|note| {
                note.n_type(LittleEndian) == XEN_ELFNOTE_PHYS32_ENTRY && note.name() == b"Xen"
            })
        })
    })
}

/// Returns the release in the kernel's banner; `None` if there is no banner, so that the file is no
/// kernel.
pub(crate) fn release(bytes: &[u8]) -> Option<&str> {
    let mut rest = bytes;
    loop {
        let position = rest.windows(BANNER.len()).position(|w| w == BANNER)?;
        rest = &rest[position + BANNER.len()..];
        // Skip the format `Linux version %s`, which is there too.
        if rest.first().is_some_and(u8::is_ascii_digit) {
            let end = rest
                .iter()
                .take(RELEASE_MOST + 1)
                .position(u8::is_ascii_whitespace)?;
            return std::str::from_utf8(&rest[..end]).ok();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::{has_pvh, release};
    use crate::ImageFault;

    /// Writes an ELF file with one segment of notes, followed by a banner.
    pub(crate) fn write(note: u32, banner: &str) -> Vec<u8> {
        let mut notes = vec![];
        for (name, kind) in [(&b"GNU\0"[..], 3), (b"Xen\0", note)] {
            for number in [4, 4, kind] {
                notes.extend(u32::to_le_bytes(number));
            }
            notes.extend(name);
            notes.extend([0; 4]);
        }
        let mut elf = vec![0_u8; 120];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[18] = 62;
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = 1;
        elf[64] = 4;
        elf[72] = 120;
        elf[96] = u8::try_from(notes.len()).unwrap();
        elf.extend(notes);
        elf.extend(banner.as_bytes());
        elf
    }

    #[test]
    fn the_note_is_found() {
        assert_eq!(has_pvh(&write(18, "")), Ok(true));
        assert_eq!(has_pvh(&write(17, "")), Ok(false));
    }

    #[test]
    fn other_machines_and_cut_files_are_refused() {
        let elf = write(18, "");
        for at in [4, 5, 18] {
            let mut other = elf.clone();
            other[at] = 9;
            assert_eq!(has_pvh(&other), Err(ImageFault::OtherMachine));
        }
        assert_eq!(has_pvh(&elf[..40]), Err(ImageFault::Small(40)));
        for end in [64, 119, elf.len() - 1] {
            assert!(matches!(
                has_pvh(&elf[..end]),
                Err(ImageFault::Truncated { .. })
            ));
        }
    }

    #[test]
    fn the_banner_is_not_its_format() {
        let elf = write(18, "Linux version %s (%s)\0Linux version 6.9.1-test (x)");
        assert_eq!(release(&elf), Some("6.9.1-test"));
        assert_eq!(release(&write(18, "Linux version %s")), None);
    }

    #[test]
    fn notes_that_overlap_are_read_once() {
        // 60,000 headers, each with all bytes of the file as its notes.
        let mut elf = write(17, "");
        let headers = 60_000_u16;
        elf[32..40].copy_from_slice(&120_u64.to_le_bytes());
        elf[56..58].copy_from_slice(&headers.to_le_bytes());
        elf.truncate(120);
        let size = 120 + u64::from(headers) * 56;
        for _ in 0..headers {
            let mut header = [0_u8; 56];
            header[0] = 4;
            header[32..40].copy_from_slice(&size.to_le_bytes());
            elf.extend(header);
        }
        assert_eq!(has_pvh(&elf), Err(ImageFault::Notes));
    }

    #[test]
    fn a_release_is_at_most_64_bytes() {
        let banner = |length: usize| format!("Linux version 6{} ", "x".repeat(length - 1));
        assert_eq!(release(&write(18, &banner(64))).map(str::len), Some(64));
        assert_eq!(release(&write(18, &banner(65))), None);
    }

    proptest! {
        #[test]
        fn any_damage_can_be_read(
            damage in prop::collection::vec((0_usize..160, any::<u8>()), 1..20),
            end in 0_usize..=200,
        ) {
            let mut elf = write(18, "Linux version 6");
            for (at, byte) in damage {
                elf[at] = byte;
            }
            elf.truncate(end);
            let _ignored = has_pvh(&elf).is_ok();
            release(&elf);
        }
    }
}
