//! An open dump of any format: the memory that existed, the stored pages, and the notes.
//!
//! `Reader` reads the memory; `memmap` interprets it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::bits;
use crate::compress::Codec;
use crate::elf;
use crate::erase::Erasure;
use crate::error::DumpError;
use crate::kdump::{self, Header, Pages};
use crate::machine::Machine;
use crate::note::{self, Info};
use crate::search;
use crate::segments::{Segment, Segments, Which};
use crate::storage::Storage;
use crate::syscall_counts::Counted;

/// The format of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An ELF core, uncompressed, such as /proc/vmcore.
    Elf,
    /// A kdump-compressed file, or a split set of them.
    Kdump,
    /// A file with a guest's memory.
    Memory,
}

impl Format {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Elf => "elf",
            Self::Kdump => "kdump-compressed",
            Self::Memory => "a guest's memory",
        }
    }
}

/// An open dump.
#[derive(Debug)]
pub struct Dump {
    pub(crate) content: Content,
    format: Format,
    machine: Machine,
    page: u64,
    notes: Vec<u8>,
    info: Info,
    are_notes_damaged: bool,
    are_headers_damaged: bool,
    incomplete: bool,
    /// Ranges to erase on reading.
    erasure: Erasure,
}

/// The storage of the memory.
#[derive(Debug)]
pub(crate) enum Content {
    /// In an ELF file.
    Segments {
        storage: Storage,
        /// By address, without overlaps.
        segments: Segments,
    },
    /// In a kdump file or a set of them.
    Pages(Pages),
}

impl Dump {
    /// Opens a dump: one file, or all files of a split set.
    ///
    /// # Errors
    /// If a file cannot be read, has an unknown format, or its headers are wrong.
    pub fn open(paths: &[PathBuf]) -> Result<Self, DumpError> {
        let mut files = Vec::new();
        for path in paths {
            let storage = Storage::open(path)?;
            let mut start = [0; 8];
            if storage.size() >= 464 {
                storage.fill(0, &mut start)?;
            }
            if start.starts_with(b"\x7fELF") && paths.len() == 1 {
                return Self::of_elf(storage);
            }
            if start != *kdump::SIGNATURE {
                return Err(unknown(path, &storage, start));
            }
            let header = Header::read(&storage)?;
            files.push((storage, header));
        }
        if files.is_empty() {
            return Err(DumpError::Usage("no dump is named".to_owned()));
        }
        Self::of_pages(files)
    }

    fn of_elf(storage: Storage) -> Result<Self, DumpError> {
        let elf = elf::read(&storage)?;
        let info = note::vmcoreinfo(&elf.notes)
            .map(|range| Info::parse(&elf.notes[range]))
            .unwrap_or_default();
        // A note with another size belongs to another architecture's kernel; errors occur where the
        // note is needed.
        let page = info
            .page_size()
            .filter(|page| elf.machine.has_pages_of(*page))
            .unwrap_or(elf.machine.usual_page());
        let segments = elf.loads.finish();
        let incomplete = elf.incomplete || storage.is_cut();
        let content = Content::Segments { storage, segments };
        let format = Format::Elf;
        let erasure = Erasure::default();
        Ok(Self {
            content,
            format,
            machine: elf.machine,
            page,
            notes: elf.notes,
            info,
            are_notes_damaged: false,
            are_headers_damaged: false,
            incomplete,
            erasure,
        })
    }

    /// Makes a dump from a guest's memory, which has no notes: its machine is that of the
    /// VMCOREINFO text, once there is one.
    pub(crate) fn of_memory(storage: Storage, loads: &[Segment]) -> Self {
        let machine = Machine::X86_64;
        let content = Content::Segments {
            storage,
            segments: loads.iter().cloned().collect(),
        };
        let format = Format::Memory;
        let erasure = Erasure::default();
        let notes = Vec::new();
        let info = Info::default();
        Self {
            content,
            format,
            machine,
            page: 4096,
            notes,
            info,
            are_notes_damaged: false,
            are_headers_damaged: false,
            incomplete: false,
            erasure,
        }
    }

    /// Changes the layout of a guest's memory.
    pub(crate) fn laid(mut self, loads: &[Segment]) -> Self {
        if let Content::Segments { segments, .. } = &mut self.content {
            *segments = loads.iter().cloned().collect();
        }
        self
    }

    fn of_pages(mut files: Vec<(Storage, Header)>) -> Result<Self, DumpError> {
        let Some((_, header)) = files.first_mut() else {
            return Err(DumpError::Usage("no dump is named".to_owned()));
        };
        let machine = header.machine;
        let notes = header.notes.clone();
        let are_notes_damaged = header.checks.are_notes_damaged;
        let info = header.info();
        // A block may be several pages of the kernel, as in QEMU's files of Arm.
        let page = info
            .page_size()
            .filter(|page| machine.has_pages_of(*page) && header.page.is_multiple_of(*page))
            .unwrap_or(header.page);
        let erasure = Erasure::of_earlier(std::mem::take(&mut header.erased));
        let cut = files
            .iter()
            .any(|(storage, header)| storage.is_cut() || header.status & kdump::INCOMPLETE != 0);
        let are_headers_damaged = files
            .iter()
            .any(|(_, header)| header.checks.are_heads_damaged);
        let pages = Pages::new(files)?;
        let incomplete = cut || pages.missing().is_some() || are_headers_damaged;
        let content = Content::Pages(pages);
        Ok(Self {
            content,
            format: Format::Kdump,
            machine,
            page,
            notes,
            info,
            are_notes_damaged,
            are_headers_damaged,
            incomplete,
            erasure,
        })
    }

    /// Takes a VMCOREINFO text from a file. One without `NUMBER(phys_base)` is that of a vmlinux:
    /// it does not say where the kernel is, and adds to the dump's own text what that lacks.
    /// Another one replaces the dump's.
    #[must_use]
    pub fn with_given_info(self, text: &[u8]) -> Self {
        let given = Info::parse(text);
        if given.number("phys_base").is_some() || self.info.is_empty() {
            return self.with_info(text);
        }
        let own = note::vmcoreinfo(&self.notes)
            .map(|range| &self.notes[range])
            .unwrap_or_default();
        let more = given
            .lines()
            .filter(|(key, _)| self.info.text(key).is_none());
        let more: String = more
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect();
        let joined = [own, b"\n", more.as_bytes()].concat();
        self.with_info(&joined)
    }

    /// Replaces the VMCOREINFO text, or adds it.
    #[must_use]
    pub fn with_info(mut self, text: &[u8]) -> Self {
        self.info = Info::parse(text);
        self.are_notes_damaged = false;
        self.notes = note::without(&self.notes, "VMCOREINFO");
        self.notes.extend(note::encode("VMCOREINFO", 0, text));
        if let Content::Segments { .. } = &self.content {
            if self.format == Format::Memory {
                self.machine = Machine::from_info(&self.info).unwrap_or(self.machine);
            }
            let page = self
                .info
                .page_size()
                .filter(|page| self.machine.has_pages_of(*page));
            self.page = page.unwrap_or(self.machine.usual_page());
        }
        self
    }

    #[must_use]
    #[cfg(any(test, feature = "live"))]
    pub(crate) fn with_note(mut self, owner: &str, kind: u32, text: &[u8]) -> Self {
        self.notes.extend(note::encode(owner, kind, text));
        self
    }

    /// Searches all pages for a VMCOREINFO text, for a dump without one.
    #[must_use]
    pub fn with_found_info(self) -> Self {
        match search::find(&self) {
            Some(text) if self.info.is_empty() => self.with_info(&text),
            _ => self,
        }
    }

    /// Erases data: readers return the replacement. The erase info of the file is kept.
    pub fn with_erased(mut self, erasure: Erasure) -> Self {
        self.erasure = erasure.behind(&self.erasure);
        self
    }

    /// Returns the erased ranges.
    pub(crate) fn erasure(&self) -> &Erasure {
        &self.erasure
    }

    /// Returns its format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the compression that its writer chose; `None` for ELF.
    #[must_use]
    pub fn codec(&self) -> Option<Codec> {
        match &self.content {
            Content::Segments { .. } => None,
            Content::Pages(pages) => Codec::from_flag(pages.header()?.status & Codec::FLAGS),
        }
    }

    /// Returns whether it is a flattened file.
    #[must_use]
    pub fn flattened(&self) -> bool {
        match &self.content {
            Content::Segments { storage, .. } => storage.flattened(),
            Content::Pages(pages) => pages.flattened(),
        }
    }

    /// Returns its architecture.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Returns the size of its pages in bytes.
    #[must_use]
    pub fn page_size(&self) -> u64 {
        self.page
    }

    /// Returns all notes, concatenated.
    #[must_use]
    pub fn notes(&self) -> &[u8] {
        &self.notes
    }

    /// Returns whether the notes are not what their writer wrote, by their checksum.
    #[must_use]
    pub fn are_notes_damaged(&self) -> bool {
        self.are_notes_damaged
    }

    /// Returns whether the headers are not what their writer wrote, by their checksum: what they say
    /// of the size of memory and of other writers' levels may be wrong.
    #[must_use]
    pub fn are_headers_damaged(&self) -> bool {
        self.are_headers_damaged
    }

    /// Returns which pages of its level were not excluded, and why, as its writers said.
    #[must_use]
    pub fn not_excluded(&self) -> Vec<String> {
        let marks = note::notes(&self.notes)
            .into_iter()
            .filter(|note| (note.owner, note.kind) == note::MARK);
        marks
            .flat_map(|note| {
                let text = String::from_utf8_lossy(&self.notes[note.content]);
                text.lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Returns the kernel's layout; empty without the note.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Returns whether the file is truncated or marked as incomplete, its headers are damaged, or a
    /// file of a split set is missing.
    #[must_use]
    pub fn incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns pages that are in no file, if one of a split set is missing.
    pub fn missing(&self) -> Option<Range<u64>> {
        match &self.content {
            Content::Segments { .. } => None,
            Content::Pages(pages) => {
                let blocks = pages.missing()?;
                Some(blocks.start * self.pages_per_block()..blocks.end * self.pages_per_block())
            }
        }
    }

    /// Returns the number of processors with saved registers.
    #[must_use]
    pub fn processors(&self) -> usize {
        note::processors(&self.notes)
    }

    /// Returns the number after the last page of memory.
    #[must_use]
    pub fn pages(&self) -> u64 {
        match &self.content {
            Content::Segments { segments, .. } => segments.end().div_ceil(self.page),
            Content::Pages(pages) => pages
                .header()
                .map_or(0, |header| header.pages * self.pages_per_block()),
        }
    }

    /// Returns the number of pages in a block of a kdump file.
    fn pages_per_block(&self) -> u64 {
        match &self.content {
            Content::Segments { .. } => 1,
            Content::Pages(pages) => pages.block_size() / self.page,
        }
    }

    /// Returns the level in its header; `None` for ELF, which has none.
    #[must_use]
    pub fn level(&self) -> Option<u32> {
        match &self.content {
            Content::Segments { .. } => None,
            Content::Pages(pages) => pages.header().map(|header| header.level),
        }
    }

    /// Returns ranges of page numbers that contain all memory.
    pub(crate) fn extents(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges(Which::Memory)
    }

    /// Returns the ranges of page numbers with some of the memory; of a kdump file, all.
    fn ranges(&self, which: Which) -> impl Iterator<Item = Range<u64>> + '_ {
        let (segments, all) = match &self.content {
            Content::Segments { segments, .. } => (Some(segments), None),
            Content::Pages(_) => (None, Some(0..self.pages())),
        };
        segments
            .into_iter()
            .flat_map(move |segments| segments.pages(self.page, which, 0..u64::MAX))
            .chain(all)
    }

    /// Returns the ranges of page numbers that an ELF file has bytes of; for a kdump file, those it
    /// may have.
    pub(crate) fn in_file(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges(Which::Stored)
    }

    /// Sets the bits of pages that were memory, from page `first`.
    pub(crate) fn memory(&self, first: u64, words: &mut [u64]) -> Result<(), DumpError> {
        match &self.content {
            Content::Segments { segments, .. } => {
                words.fill(0);
                let pages = first..first + words.len() as u64 * 64;
                bits::set_ranges(
                    words,
                    first,
                    segments.pages(self.page, Which::Memory, pages),
                );
                Ok(())
            }
            Content::Pages(pages) => {
                spread(self.pages_per_block(), first, words, |first, words| {
                    pages.memory(first, words)
                })
            }
        }
    }

    /// Sets the bits of stored pages, from page `first`.
    pub fn stored(&self, first: u64, words: &mut [u64]) -> Result<(), DumpError> {
        match &self.content {
            Content::Segments { segments, .. } => {
                words.fill(0);
                let pages = first..first + words.len() as u64 * 64;
                bits::set_ranges(
                    words,
                    first,
                    segments.pages(self.page, Which::Stored, pages),
                );
                Ok(())
            }
            Content::Pages(pages) => {
                spread(self.pages_per_block(), first, words, |first, words| {
                    pages.stored(first, words)
                })
            }
        }
    }

    /// Returns the virtual address of physical memory in the kernel's direct map, if the dump has
    /// it.
    pub(crate) fn virtual_address(&self, physical: u64) -> u64 {
        match &self.content {
            Content::Segments { segments, .. } => {
                let segment = segments
                    .from(physical)
                    .filter(|segment| segment.start <= physical);
                segment.map_or(0, |segment| {
                    segment.address.wrapping_add(physical - segment.start)
                })
            }
            Content::Pages(_) => 0,
        }
    }

    /// Returns the number of system calls so far.
    #[must_use]
    pub fn calls(&self) -> Counted {
        match &self.content {
            Content::Segments { storage, .. } => storage.calls().counted(),
            Content::Pages(pages) => pages.calls(),
        }
    }

    /// Returns the path of the first file.
    pub fn path(&self) -> &Path {
        match &self.content {
            Content::Segments { storage, .. } => storage.path(),
            Content::Pages(pages) => pages.path(),
        }
    }
}

fn unknown(path: &Path, storage: &Storage, start: [u8; 8]) -> DumpError {
    let what = if storage.size() < 464 {
        format!("it has only {} bytes", storage.size())
    } else if start.starts_with(b"\x7fELF") {
        "only files of one split set are read together, and this one is ELF".to_owned()
    } else {
        format!("it begins with `{}`", start.escape_ascii())
    };
    DumpError::Unknown {
        path: path.to_owned(),
        what,
    }
}

/// Sets the bits of pages from page `first`, with bits that `read` has of blocks of `per_block`
/// pages.
fn spread(
    per_block: u64,
    first: u64,
    words: &mut [u64],
    read: impl FnOnce(u64, &mut [u64]) -> Result<(), DumpError>,
) -> Result<(), DumpError> {
    if per_block == 1 {
        return read(first, words);
    }
    let start = first / per_block;
    let count = (first + words.len() as u64 * 64).div_ceil(per_block) - start;
    let mut blocks = vec![0; usize::try_from(count.div_ceil(64)).unwrap_or_default()];
    read(start, &mut blocks)?;
    words.fill(0);
    for run in bits::runs(&blocks) {
        let pages = (start + run.start as u64) * per_block..(start + run.end as u64) * per_block;
        bits::set_ranges(words, first, std::iter::once(pages));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::spread;
    use crate::bits;

    #[test]
    fn bits_of_blocks_are_those_of_their_pages() {
        // Blocks 3 and 5 to 7, of four pages each.
        let blocks = 0b1110_1000_u64;
        for first in [0, 8, 12, 20, 64] {
            let mut words = [u64::MAX; 2];
            spread(4, first, &mut words, |start, words| {
                words[0] = blocks >> start;
                Ok(())
            })
            .unwrap();
            for bit in 0..128 {
                let is_set = [3, 5, 6, 7].contains(&((first + bit as u64) / 4));
                assert_eq!(bits::has(&words, bit), is_set, "{first} {bit}");
            }
        }
    }
}
