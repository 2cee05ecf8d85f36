//! Finds VMCOREINFO in memory, for dumps that QEMU made of guests without the vmcoreinfo device.
//!
//! The kernel keeps the note in separate pages, so it begins at a page's start
//! (`crash_save_vmcoreinfo_init` in kernel/vmcore_info.c, kernel/crash_core.c before 6.9).

use crate::bytes::u32_at;
use crate::dump::Dump;
use crate::reader::{Io, Reader};

/// The note's name with its terminator, and the offset of its text.
const NAME: &[u8] = b"VMCOREINFO\0";
const TEXT: usize = 24;
/// Largest text; the kernel has a page for it.
const TEXT_MAX: usize = 64 << 10;
/// Bytes of a mapped window.
const WINDOW: u64 = 1 << 20;
/// Lines of every kernel.
const LINES: [&[u8]; 2] = [b"OSRELEASE=", b"\nPAGESIZE="];

/// Returns the text of the first note in memory; `None` if there is none.
pub(crate) fn find(dump: &Dump) -> Option<Vec<u8>> {
    next(dump, 0).map(|(_, text)| text)
}

/// Returns the page and the text of the first note from page `from`: an earlier kernel may have
/// left one too.
pub(crate) fn next(dump: &Dump, from: u64) -> Option<(u64, Vec<u8>)> {
    // Only the start of each page is read: larger windows would take memory and gain nothing.
    let mut reader = Reader::new(dump, Io::Windows(WINDOW));
    let page = dump.page_size();
    let mut numbers = dump
        .in_file()
        .flat_map(|range| range.start.max(from)..range.end);
    numbers.find_map(|number| {
        let text = note_at(&mut reader, number.checked_mul(page)?)?;
        Some((number, text))
    })
}

/// Returns the text of the note at a physical address; `None` if there is none.
fn note_at(reader: &mut Reader<'_>, address: u64) -> Option<Vec<u8>> {
    let head = reader.bytes(address, TEXT).ok()?;
    let is_note = u32_at(head, 0) == u32::try_from(NAME.len()).ok() && u32_at(head, 8) == Some(0);
    if !is_note || !head[12..].starts_with(NAME) {
        return None;
    }
    let size = usize::try_from(u32_at(head, 4)?)
        .ok()
        .filter(|size| *size <= TEXT_MAX)?;
    let text = reader.bytes(address.checked_add(TEXT as u64)?, size).ok()?;
    let mut windows = text.windows(LINES[1].len());
    (text.starts_with(LINES[0]) && windows.any(|window| window == LINES[1])).then(|| text.to_vec())
}
