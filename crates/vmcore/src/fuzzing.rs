//! What fuzzing does with bytes: one body for each reader. The targets of `fuzz/` and a bounded run in the tests share them.
//!
//! A body returns for any bytes: with an error inside, or with a result that is held against what it promises. It panics
//! where the result breaks a promise. Bodies for files write the bytes to `scratch` first.

use std::path::Path;

use crate::btf;
use crate::bytes::array;
use crate::compress::Codec;
use crate::dump::Dump;
use crate::filter::Filter;
use crate::layout::Layout;
use crate::log::log;
use crate::lzo;
use crate::machine::Machine;
use crate::note::{self, Info};
use crate::output::kdump::{Style, write};
use crate::output::sink::Nowhere;
use crate::output::{elf, rearrange};
use crate::paging::architecture;
use crate::plan::{Plan, Work};
use crate::reader::{Io, Reader};
use crate::rule::Level;
use crate::system;

/// Most pages that are gone through: more would only take longer.
const PAGES_MAX: u64 = 1 << 14;

/// An ELF vmcore.
pub fn elf(bytes: &[u8], scratch: &Path) {
    file(b"\x7fELF\x02\x01\x01", bytes, scratch);
}

/// A kdump-compressed file.
pub fn kdump(bytes: &[u8], scratch: &Path) {
    file(b"KDUMP   ", bytes, scratch);
}

/// An archive.
pub fn archive(bytes: &[u8], scratch: &Path) {
    file(b"MDUMPARC", bytes, scratch);
}

/// A flattened file, in place and as a stream.
pub fn flattened(bytes: &[u8], scratch: &Path) {
    file(b"makedumpfile\0\0\0\0", bytes, scratch);
    let size = rearrange::rearrange(&mut &*bytes, &Nowhere).unwrap_or_default();
    assert!(size <= i64::MAX as u64 * 2, "{size}");
}

/// Notes, and the text of VMCOREINFO.
pub fn note(bytes: &[u8]) {
    for note in note::notes(bytes) {
        assert!(bytes.get(note.content).is_some(), "a note is in the bytes");
    }
    assert!(note::processors(bytes) <= bytes.len() / 12);
    assert_eq!(note::vmcoreinfo(&note::without(bytes, "VMCOREINFO")), None);
    let info = Info::parse(bytes);
    drop(Layout::new(&info, None));
    for machine in [Machine::X86_64, Machine::Aarch64] {
        if let Ok(found) = architecture(machine, &info) {
            assert!((1..=5).contains(&found.levels().len()), "{found:?}");
        }
    }
}

/// BTF.
pub fn btf(bytes: &[u8]) {
    if let Some(size) = btf::size(bytes) {
        assert!(size <= 64 << 20);
    }
    if let Some(types) = btf::Types::new(bytes.to_vec()) {
        types.enumerator("PG_reserved");
        let lists = types.structure("per_cpu_pages").and_then(|pages| types.member(pages, "lists"));
        lists.map(|lists| types.length(lists.kind));
    }
}

/// An LZO stream.
pub fn lzo(bytes: &[u8]) {
    let mut page = [0xa5; 4096 + 16];
    lzo::decode(bytes, &mut page[..4096]);
    assert_eq!(page[4096..], [0xa5; 16], "nothing is written behind the page");
}

/// A dump whose memory map, page tables or log lie: `bytes` are places in `image`, an ELF vmcore, each with eight bytes
/// that stand there then. Places are counted among those that are not zero.
pub fn image(image: &[u8], bytes: &[u8], scratch: &Path) {
    let full: Vec<usize> = image
        .chunks_exact(8)
        .enumerate()
        .filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 0))
        .map(|(n, _)| n * 8)
        .collect();
    let mut lying = image.to_vec();
    for change in bytes.chunks_exact(12) {
        let place = array(change, 0).map_or(0, u32::from_le_bytes) as usize % full.len().max(1);
        if let Some(at) = full.get(place) {
            lying[*at..*at + 8].copy_from_slice(&change[4..]);
        }
    }
    elf(&lying, scratch);
}

/// Opens a file that begins with `start`, whatever stands in `bytes`, and does all that is done with dumps.
fn file(start: &[u8], bytes: &[u8], scratch: &Path) {
    let mut bytes = bytes.to_vec();
    if let Some(place) = bytes.get_mut(..start.len()) {
        place.copy_from_slice(start);
    }
    // Some file systems write to the disk at once what takes the place of something.
    drop(std::fs::remove_file(scratch));
    if std::fs::write(scratch, &bytes).is_err() {
        return;
    }
    let Ok(dump) = Dump::open(&[scratch.to_owned()]) else { return };
    let io = if bytes.len().is_multiple_of(2) { Io::Map } else { Io::Read };
    let mut reader = Reader::new(&dump, io);
    drop(log(&mut reader));
    let names = system::names(&mut reader);
    let filter = Filter::new(&mut reader, Level::MAX).ok();
    if dump.pages() > PAGES_MAX {
        return;
    }
    let work = Work { threads: 1, io, memory: 1 << 20, folder: None };
    let Ok(plan) = Plan::make(&dump, filter.as_ref(), &work) else { return };
    let style = Style { codec: Codec::Snappy, effort: None, level: Level::MAX, part: None, limit: None, names };
    if let Ok(written) = write(&plan, &style, &work, &Nowhere) {
        assert_eq!(written.pages + written.unreadable, plan.kept(), "each page is written, or said to be missing");
    }
    if let Ok(written) = elf::write(&plan, &work, &Nowhere) {
        assert_eq!(written.pages + written.unreadable, plan.kept(), "each page is written, or said to be missing");
    }
}
