//! ELF vmcores: headers, program headers, notes, and the file offset of each piece of physical
//! memory.
//!
//! Includes QEMU's, whose program headers are not after the ELF header (`e_phoff`), and files with
//! more than 65535 of them.

use crate::bytes::{u16_or_zero, u32_at, u64_or_zero};
use crate::error::DumpError;
use crate::machine::{Machine, elf_name};
use crate::segments::{Collector, Segment};
use crate::storage::Storage;

/// Size of a 64-bit program header, in bytes.
pub(crate) const PROGRAM_HEADER: usize = 56;
/// Offset of the flags in the ELF header, and the flag of an incomplete dump
/// (`DUMP_ELF_INCOMPLETE`, makedumpfile's `elf_info.h`).
pub(crate) const FLAGS: usize = 48;
pub(crate) const INCOMPLETE: u32 = 1;
const ET_CORE: u16 = 4;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// Stands for a number of program headers that does not fit; the first section header then has it.
pub(crate) const PN_XNUM: u16 = 0xffff;
/// Most program headers: one for every other 4 MiB of 64 TiB.
const HEADERS_MAX: u64 = 1 << 20;
/// Program headers that are read at once.
const HEADERS_PIECE: u64 = 1024;
/// Bits of the longest physical address of the supported architectures.
pub(crate) const ADDRESS_MAX: u64 = 1 << 52;

/// The headers of an ELF vmcore.
#[derive(Debug)]
pub(crate) struct Elf {
    pub(crate) machine: Machine,
    pub(crate) loads: Collector,
    pub(crate) notes: Vec<u8>,
    /// The file is truncated, or marked as incomplete.
    pub(crate) incomplete: bool,
}

pub(crate) fn read(storage: &Storage) -> Result<Elf, DumpError> {
    let header = storage.bytes(0, 64, "the ELF header")?;
    if header[4] != 2 {
        return Err(unknown(storage, "a 32-bit ELF file".to_owned()));
    }
    if header[5] != 1 {
        let machine = u16_or_zero(&header, 18).swap_bytes();
        let what = format!("a big-endian ELF file: {}", elf_name(machine));
        return Err(unknown(storage, what));
    }
    let machine = Machine::from_elf(u16_or_zero(&header, 18))
        .ok_or_else(|| unknown(storage, elf_name(u16_or_zero(&header, 18))))?;
    if u16_or_zero(&header, 16) != ET_CORE {
        return Err(unknown(
            storage,
            format!(
                "an ELF file of type {}, not a core",
                u16_or_zero(&header, 16)
            ),
        ));
    }
    let count = headers(storage, u16_or_zero(&header, 56), u64_or_zero(&header, 40))?;
    let table = u64_or_zero(&header, 32);
    let size = u16_or_zero(&header, 54);
    if usize::from(size) < PROGRAM_HEADER {
        return Err(storage.malformed(54, format!("program headers of {size} bytes")));
    }
    let mut elf = Elf {
        machine,
        loads: Collector::default(),
        notes: Vec::new(),
        incomplete: u32_at(&header, FLAGS) == Some(INCOMPLETE),
    };
    // In pieces: a capture kernel has little memory, and the table may have 56 MiB.
    let mut done = 0;
    while done < count {
        let piece = (count - done).min(HEADERS_PIECE);
        let start = table.saturating_add(done * u64::from(size));
        let bytes = storage.bytes(
            start,
            piece * u64::from(size),
            "the table of program headers",
        )?;
        for (n, header) in bytes.chunks_exact(usize::from(size)).enumerate() {
            elf.program_header(storage, header, start + n as u64 * u64::from(size))?;
        }
        done += piece;
    }
    Ok(elf)
}

fn unknown(storage: &Storage, what: String) -> DumpError {
    DumpError::Unknown {
        path: storage.path().to_owned(),
        what,
    }
}

/// Returns the number of program headers.
fn headers(storage: &Storage, count: u16, sections: u64) -> Result<u64, DumpError> {
    let count = if count == PN_XNUM {
        let section = storage.bytes(sections, 64, "the first section header")?;
        // sh_info
        u64::from(u32_at(&section, 44).unwrap_or_default())
    } else {
        u64::from(count)
    };
    if count == 0 || count > HEADERS_MAX {
        return Err(storage.malformed(56, format!("{count} program headers")));
    }
    Ok(count)
}

impl Elf {
    fn program_header(
        &mut self,
        storage: &Storage,
        header: &[u8],
        at: u64,
    ) -> Result<(), DumpError> {
        let offset = u64_or_zero(header, 8);
        let stored = u64_or_zero(header, 32);
        let memory = u64_or_zero(header, 40);
        match u32_at(header, 0) {
            Some(PT_NOTE) if self.notes.len() as u64 + stored.min(NOTES_MAX + 1) > NOTES_MAX => {
                return Err(storage.malformed(at, "more than 16 MiB of notes".to_owned()));
            }
            Some(PT_NOTE) => self
                .notes
                .extend(storage.bytes(offset, stored, "the notes")?),
            Some(PT_LOAD) => {
                let start = u64_or_zero(header, 24);
                let memory = memory.max(stored);
                if start == u64::MAX {
                    // Virtual memory of /proc/kcore without a fixed physical address
                    // (`update_kcore_size` and `read_kcore_iter` in
                    // fs/proc/kcore.c).
                    return Ok(());
                }
                if start
                    .checked_add(memory)
                    .is_none_or(|end| end > ADDRESS_MAX)
                {
                    let what = format!(
                        "memory from {start:#x} of {memory:#x} bytes, beyond any machine's"
                    );
                    return Err(storage.malformed(at, what));
                }
                // Truncated dumps are accepted: there may be no other record of the crash.
                let stored_here = storage.size().saturating_sub(offset).min(stored);
                self.incomplete |= stored_here < stored;
                self.loads.push(Segment {
                    start,
                    memory,
                    stored: stored_here,
                    offset,
                    address: u64_or_zero(header, 16),
                });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Limit of all notes in bytes: those of thousands of processors.
const NOTES_MAX: u64 = 16 << 20;
