//! ELF vmcores: reads QEMU's, and writes the same memory in the form of /proc/vmcore, which more
//! programs can read.
//!
//! makedumpfile expects the program headers at offset 64, and virtual addresses; QEMU has them
//! elsewhere, and writes physical addresses only.
#![expect(
    clippy::unwrap_used,
    reason = "for tests and benches: one that cannot go on has failed"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, ReadCache};

use crate::pages::{direct_map, image_to_physical};

const PAGE: u64 = 4096;
/// The size of the separate mapping of the kernel's image: more than any text.
const TEXT: u64 = 32 << 20;
/// Non-memory ranges of a PC below 1 MiB, and right below 4 GiB.
const WINDOWS: [(u64, u64); 2] = [(0xa_0000, 0x10_0000), (0xfffc_0000, 0x1_0000_0000)];

/// A piece of memory in a file.
#[derive(Debug, Clone, Copy)]
struct Load {
    offset: u64,
    virtual_address: u64,
    physical: u64,
    size: u64,
}

#[derive(Debug)]
pub struct Elf {
    file: File,
    loads: Vec<Load>,
    notes: Vec<u8>,
    /// The kernel's note, by key.
    pub vmcoreinfo: BTreeMap<String, String>,
}

impl Elf {
    /// Opens a vmcore with VMCOREINFO.
    pub fn open(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let cache = ReadCache::new(&file);
        let header = FileHeader64::<LittleEndian>::parse(&cache).unwrap();
        let mut loads = Vec::new();
        let mut notes = Vec::new();
        for segment in header.program_headers(LittleEndian, &cache).unwrap() {
            match segment.p_type(LittleEndian) {
                elf::PT_LOAD => loads.push(Load {
                    offset: segment.p_offset(LittleEndian),
                    virtual_address: segment.p_vaddr(LittleEndian),
                    physical: segment.p_paddr(LittleEndian),
                    size: segment.p_filesz(LittleEndian),
                }),
                elf::PT_NOTE => notes = segment.data(LittleEndian, &cache).unwrap().to_owned(),
                _ => {}
            }
        }
        let vmcoreinfo = vmcoreinfo(&notes);
        Self {
            file,
            loads,
            notes,
            vmcoreinfo,
        }
    }

    /// Returns the address of a symbol in the note.
    pub fn symbol(&self, name: &str) -> u64 {
        u64::from_str_radix(&self.vmcoreinfo[&format!("SYMBOL({name})")], 16).unwrap()
    }

    /// Returns the offset of a physical address in the file.
    pub fn place(&self, physical: u64) -> u64 {
        let load = self
            .loads
            .iter()
            .find(|load| (load.physical..load.physical + load.size).contains(&physical));
        let load = load.unwrap_or_else(|| panic!("no memory at {physical:#x}"));
        load.offset + physical - load.physical
    }

    /// Reads memory at a physical address.
    pub fn read(&self, physical: u64, bytes: &mut [u8]) {
        self.file
            .read_exact_at(bytes, self.place(physical))
            .unwrap();
    }
}

fn vmcoreinfo(notes: &[u8]) -> BTreeMap<String, String> {
    let name = b"VMCOREINFO\0";
    let at = notes
        .windows(name.len())
        .position(|window| window == name)
        .unwrap();
    let size = u32::from_le_bytes(notes[at - 8..at - 4].try_into().unwrap()) as usize;
    // The name is padded to 12 bytes.
    let text = String::from_utf8_lossy(&notes[at + 12..at + 12 + size]).into_owned();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// Writes the memory of a vmcore like the kernel after a crash: in pages, with the addresses of the
/// direct map, and the kernel's text once more with its own.
pub fn rewrite(from: &Elf, to: &Path) {
    let base = direct_map(from);
    let mut place = (PAGE + from.notes.len() as u64).next_multiple_of(PAGE);
    let mut loads = Vec::new();
    for piece in memory(&from.loads) {
        loads.push((
            piece,
            Load {
                offset: place,
                virtual_address: base + piece.physical,
                ..piece
            },
        ));
        place += piece.size;
    }
    let file = File::create(to).unwrap();
    file.set_len(place).unwrap();
    for (piece, load) in &loads {
        copy(&from.file, piece, &file, load.offset);
    }
    let text = from.symbol("_stext") & !0x1f_ffff;
    let physical = image_to_physical(from, text);
    let around =
        |load: &Load| load.physical <= physical && physical + TEXT <= load.physical + load.size;
    let (_, around) = loads.iter().find(|(_, load)| around(load)).unwrap();
    let text = Load {
        offset: around.offset + physical - around.physical,
        virtual_address: text,
        physical,
        size: TEXT,
    };
    let headers: Vec<Load> = [text]
        .into_iter()
        .chain(loads.iter().map(|(_, load)| *load))
        .collect();
    file.write_all_at(&header(&headers, from.notes.len() as u64), 0)
        .unwrap();
    file.write_all_at(&from.notes, PAGE).unwrap();
}

/// Returns the pieces of memory, in whole pages and in order.
fn memory(loads: &[Load]) -> Vec<Load> {
    let mut pieces = Vec::new();
    for load in loads {
        let mut start = load.physical;
        let end = load.physical + load.size;
        for (window, after) in WINDOWS.into_iter().chain([(u64::MAX, u64::MAX)]) {
            let stop = end.min(window) & !(PAGE - 1);
            let first = start.next_multiple_of(PAGE);
            if first < stop {
                let offset = load.offset + first - load.physical;
                pieces.push(Load {
                    offset,
                    virtual_address: 0,
                    physical: first,
                    size: stop - first,
                });
            }
            start = start.max(after.min(end));
        }
    }
    pieces.sort_by_key(|piece| piece.physical);
    pieces
}

/// Copies non-zero data, so that the file stays sparse.
fn copy(from: &File, piece: &Load, to: &File, offset: u64) {
    let mut bytes = vec![0; 1 << 16];
    let mut done = 0;
    while done < piece.size {
        let count = bytes.len().min(usize::try_from(piece.size - done).unwrap());
        from.read_exact_at(&mut bytes[..count], piece.offset + done)
            .unwrap();
        if bytes[..count].iter().any(|byte| *byte != 0) {
            to.write_all_at(&bytes[..count], offset + done).unwrap();
        }
        done += count as u64;
    }
}

/// Returns ELF and program headers: the notes at the second page, and the loads.
fn header(loads: &[Load], notes: u64) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_CORE, EM_X86_64, EV_CURRENT; no entry; program headers right behind; no sections.
    bytes.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    for number in [0_u64, 64, 0] {
        bytes.extend(number.to_le_bytes());
    }
    let count = u16::try_from(loads.len() + 1).unwrap();
    for number in [0, 0, 64, 56, count, 0, 0, 0_u16] {
        bytes.extend(number.to_le_bytes());
    }
    let note = Load {
        offset: PAGE,
        virtual_address: 0,
        physical: 0,
        size: notes,
    };
    for (kind, load) in [(elf::PT_NOTE, &note)]
        .into_iter()
        .chain(loads.iter().map(|load| (elf::PT_LOAD, load)))
    {
        bytes.extend(kind.0.to_le_bytes());
        bytes.extend(7_u32.to_le_bytes());
        for number in [
            load.offset,
            load.virtual_address,
            load.physical,
            load.size,
            load.size,
            0,
        ] {
            bytes.extend(number.to_le_bytes());
        }
    }
    assert!(bytes.len() as u64 <= PAGE);
    bytes
}
