//! The kernel's image and modules in physical memory, whose pages are never dropped whatever their
//! records say, and the types in the image.

use std::ops::Range;

use crate::bits;
use crate::btf::{self, Types};
use crate::paging::{Architecture, Walker};
use crate::reader::Reader;
use crate::window::PIECE_MAX;

/// The first bytes of BTF, up to the size of its header.
const BTF_START: [u8; 8] = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0];

/// Returns the pages that the kernel's image and its modules are mapped to, sorted and merged.
///
/// Some architectures keep freed memory of the image mapped there after it is reused: see
/// `Rule::evidence`.
pub(crate) fn pages(reader: &mut Reader<'_>, architecture: &dyn Architecture) -> Vec<Range<u64>> {
    let page = reader.dump().page_size();
    let end = reader.dump().pages();
    let mut walker = Walker::new(architecture);
    let mut found: Vec<Range<u64>> = Vec::new();
    for area in architecture.image() {
        walker.range(reader, area.addresses, |address, physical, length| {
            let range = physical / page..((physical + length) / page).min(end);
            // On Arm the image lies among other mappings; its distance tells it from these.
            if area
                .above
                .is_some_and(|above| address.wrapping_sub(above) != physical)
            {
                return;
            }
            match found.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None if range.start < range.end => found.push(range),
                None => {}
            }
        });
    }
    bits::merge(found)
}

/// Most candidates for BTF.
const TRIES: u32 = 16;

/// Returns the kernel's types from its image: the candidate with this enumerator. `start` is where
/// the symbol table says that they begin; without it all of the image is searched.
pub(crate) fn types(
    reader: &mut Reader<'_>,
    architecture: &dyn Architecture,
    image: &[Range<u64>],
    start: Option<u64>,
    enumerator: &str,
) -> Option<Types> {
    let mut walker = Walker::new(architecture);
    start
        .and_then(|start| types_behind(reader, &mut walker, start))
        .filter(|types| types.enumerator(enumerator).is_some())
        .or_else(|| {
            // Not every table has this symbol (`include/asm-generic/vmlinux.lds.h`).
            search_types(reader, image, enumerator)
        })
}

/// Reads all of BTF that begins at a virtual address.
fn types_behind(reader: &mut Reader<'_>, walker: &mut Walker<'_>, start: u64) -> Option<Types> {
    let header = walker.read(reader, start, btf::HEADER).ok()?;
    Types::new(walker.read(reader, start, btf::size(&header)?).ok()?)
}

fn search_types(reader: &mut Reader<'_>, image: &[Range<u64>], enumerator: &str) -> Option<Types> {
    let page = reader.dump().page_size();
    let finder = memchr::memmem::Finder::new(&BTF_START);
    let mut tries = 0;
    for range in image {
        let mut at = range.start * page;
        let end = range.end * page;
        while at < end {
            let length = usize::try_from(end - at)
                .unwrap_or(PIECE_MAX)
                .min(PIECE_MAX);
            let found = reader
                .bytes(at, length)
                .ok()
                .and_then(|bytes| finder.find(bytes));
            if let Some(within) = found {
                let start = at + within as u64;
                let types = types_at(reader, start, end)
                    .filter(|types| types.enumerator(enumerator).is_some());
                if types.is_some() {
                    return types;
                }
                // Only bytes that look like BTF, or the types of another kernel.
                tries += 1;
                if tries == TRIES {
                    return None;
                }
                at = start + 1;
            } else if length < PIECE_MAX {
                break;
            } else {
                // A candidate at the end of a piece is found in the next one.
                at += (length - BTF_START.len()) as u64;
            }
        }
    }
    None
}

/// Reads all of BTF that begins at a physical address.
fn types_at(reader: &mut Reader<'_>, start: u64, end: u64) -> Option<Types> {
    let header = reader.bytes(start, btf::HEADER).ok()?;
    let size = btf::size(header).filter(|size| *size as u64 <= end - start)?;
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        let rest = (size - bytes.len()).min(PIECE_MAX);
        bytes.extend_from_slice(reader.bytes(start + bytes.len() as u64, rest).ok()?);
    }
    Types::new(bytes)
}
