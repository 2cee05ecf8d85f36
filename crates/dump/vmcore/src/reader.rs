//! Reads the physical memory of a dump of any format, piece by piece.
//!
//! Each thread has its own reader. Mappable files are read without copying.

use crate::bytes::index_from;
use crate::dump::{Content, Dump};
use crate::erase;
use crate::error::MemoryError;
use crate::kdump::{PageReader, Pages};
use crate::segments::{Segment, Segments};
use crate::storage::Storage;
use crate::window::{PIECE_MAX, WINDOWS, Windows};

/// How to read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// Mapped, in windows of the usual size, 4 MiB.
    Map,
    /// Mapped, in windows of this many bytes, a multiple of 4096.
    Windows(u64),
    /// Copied, by read calls.
    Read,
}

impl Io {
    /// Returns windows that together need no more than half of `memory`; each thread has two
    /// readers.
    ///
    /// Larger ones than 4 MiB gain nothing, and below 64 KiB mapping costs more than reading
    /// (`make bench-access`).
    #[must_use]
    pub fn within(memory: u64, threads: usize) -> Self {
        let readers = 2 * threads.max(1) as u64 * WINDOWS as u64;
        let window = (memory / 2 / readers).clamp(WINDOW_MIN, WINDOW_MAX);
        Self::Windows(window - window % WINDOW_MIN)
    }
}

const WINDOW_MIN: u64 = 64 << 10;
const WINDOW_MAX: u64 = 4 << 20;

/// A reader of physical memory.
#[derive(Debug)]
pub struct Reader<'d> {
    dump: &'d Dump,
    windows: Option<Windows<'d>>,
    buffer: Vec<u8>,
    pages: PageReader,
    /// The number of the block in `buffer`, if it is one of a kdump file.
    held: Option<u64>,
    erased: Vec<u8>,
    /// The segment of the last request, or the one above it: most requests are near each other.
    near: Segment,
}

/// Where the requested bytes are.
enum BytesSource {
    Window { offset: u64 },
    Buffer { at: usize },
}

impl<'d> Reader<'d> {
    /// Makes a reader; falls back to reading if a dump cannot be mapped.
    #[must_use]
    pub fn new(dump: &'d Dump, io: Io) -> Self {
        let window = match io {
            Io::Map => Some(None),
            Io::Windows(size) => Some(Some(size)),
            Io::Read => None,
        };
        let windows = match (&dump.content, window) {
            (Content::Segments { storage, .. }, Some(window)) => storage
                .plain()
                .map(|file| Windows::new(file, storage.size(), window, storage.calls())),
            _ => None,
        };
        let pages = PageReader::default();
        Self {
            dump,
            windows,
            buffer: Vec::new(),
            pages,
            held: None,
            erased: Vec::new(),
            near: Segment::default(),
        }
    }

    /// Returns its dump.
    #[must_use]
    pub fn dump(&self) -> &'d Dump {
        self.dump
    }

    /// Returns whether it maps the file.
    #[must_use]
    pub fn maps(&self) -> bool {
        self.windows.is_some()
    }

    /// Returns the best request size at a physical address, if more than `least` bytes are wanted.
    pub(crate) fn piece(&self, address: u64, least: usize) -> usize {
        match &self.windows {
            Some(windows) if windows.piece() < PIECE_MAX => {
                // Not beyond the window.
                let piece = windows.piece();
                (piece - (address % piece as u64) as usize).max(least)
            }
            _ => PIECE_MAX,
        }
    }

    /// Returns `length` bytes of memory at a physical address, at most 256 KiB. The part of a page
    /// that was no memory is zero.
    ///
    /// # Errors
    /// If one of their pages is not in the dump, or the file cannot be read.
    pub fn bytes(&mut self, address: u64, length: usize) -> Result<&[u8], MemoryError> {
        let pieces = self.dump.erasure().within(address, length.min(PIECE_MAX));
        if pieces.is_empty() {
            return self.as_they_are(address, length);
        }
        let mut bytes = std::mem::take(&mut self.erased);
        bytes.clear();
        bytes.extend_from_slice(self.as_they_are(address, length)?);
        erase::apply(pieces, address, &mut bytes);
        self.erased = bytes;
        Ok(&self.erased)
    }

    /// Returns bytes of memory before erasing.
    fn as_they_are(&mut self, address: u64, length: usize) -> Result<&[u8], MemoryError> {
        let length = length.min(PIECE_MAX);
        let place = match &self.dump.content {
            Content::Segments {
                storage, segments, ..
            } => self.segment(storage, segments, address, length)?,
            Content::Pages(pages) => self.page(pages, address, length)?,
        };
        match (place, &mut self.windows) {
            (BytesSource::Window { offset }, Some(windows)) => windows
                .slice(offset, length)
                .map_err(|error| MemoryError::Unreadable {
                    address,
                    offset,
                    what: error.to_string(),
                }),
            (BytesSource::Window { .. }, None) => Err(MemoryError::Absent(address)),
            (BytesSource::Buffer { at }, _) => Ok(&self.buffer[at..at + length]),
        }
    }

    /// Locates bytes in an ELF file.
    fn segment(
        &mut self,
        storage: &Storage,
        segments: &Segments,
        address: u64,
        length: usize,
    ) -> Result<BytesSource, MemoryError> {
        let end = address.saturating_add(length as u64);
        let has_all = |s: &Segment| s.start <= address && end - s.start <= s.stored;
        if !has_all(&self.near) {
            self.near = segments.from(address).unwrap_or_default();
        }
        if has_all(&self.near) {
            let offset = self.near.offset + (address - self.near.start);
            // If mapping is refused, as for some devices, read instead.
            if self
                .windows
                .as_mut()
                .is_some_and(|windows| windows.slice(offset, length).is_ok())
            {
                return Ok(BytesSource::Window { offset });
            }
            self.enlarge(length);
            fill(storage, &self.near, address, &mut self.buffer[..length])?;
            return Ok(BytesSource::Buffer { at: 0 });
        }
        self.enlarge(length);
        let page = self.dump.page_size();
        let mut at = address;
        while at < end {
            let rest = (end - at).min(page - at % page);
            let within = usize::try_from(at - address).unwrap_or(length);
            let rest = usize::try_from(rest).unwrap_or(length - within);
            gather(
                storage,
                segments,
                at,
                page,
                &mut self.buffer[within..within + rest],
            )?;
            at += rest as u64;
        }
        Ok(BytesSource::Buffer { at: 0 })
    }

    /// Makes room for `length` bytes in the buffer.
    fn enlarge(&mut self, length: usize) {
        // It never shrinks: growing again would fill it with zeros each time.
        self.buffer.resize(length.max(self.buffer.len()), 0);
    }

    /// Unpacks the blocks of a kdump file with the bytes.
    fn page(
        &mut self,
        pages: &Pages,
        address: u64,
        length: usize,
    ) -> Result<BytesSource, MemoryError> {
        let block = pages.block_size();
        // Not more than the largest page: a usize.
        let size = block as usize;
        let first = address / block;
        let skip = (address % block) as usize;
        // QEMU's blocks of Arm are several pages of the kernel: each is unpacked once for all.
        if self.held != Some(first) || skip + length > size {
            self.held = None;
            let count = (skip + length).div_ceil(size);
            self.buffer.resize((count * size).max(self.buffer.len()), 0);
            for n in 0..count {
                self.pages.read(
                    pages,
                    first + n as u64,
                    &mut self.buffer[n * size..(n + 1) * size],
                )?;
            }
            self.held = (count == 1).then_some(first);
        }
        Ok(BytesSource::Buffer { at: skip })
    }

    /// Returns the 64-bit number at a physical address.
    pub(crate) fn u64(&mut self, address: u64) -> Result<u64, MemoryError> {
        let bytes = self.bytes(address, 8)?;
        Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
    }
}

/// Reads within one page into `buffer`; the part of the page that is no memory is
/// zero.
fn gather(
    storage: &Storage,
    segments: &Segments,
    address: u64,
    page: u64,
    buffer: &mut [u8],
) -> Result<(), MemoryError> {
    let end = address + buffer.len() as u64;
    let page_start = address - address % page;
    let page_end = end.next_multiple_of(page);
    let mut any = false;
    let mut at = page_start;
    buffer.fill(0);
    while let Some(segment) = segments.from(at).filter(|segment| segment.start < page_end) {
        any |= segment.stored > 0 && segment.start.max(at) < segment.start + segment.stored;
        fill(storage, &segment, address, buffer)?;
        at = segment.start + segment.memory;
    }
    if any {
        Ok(())
    } else {
        Err(MemoryError::Absent(address))
    }
}

/// Copies a segment's part of the bytes from `address`.
fn fill(
    storage: &Storage,
    segment: &Segment,
    address: u64,
    buffer: &mut [u8],
) -> Result<(), MemoryError> {
    let start = segment.start.max(address);
    let end = segment.start + segment.stored;
    let end = end.min(address + buffer.len() as u64);
    if start >= end {
        return Ok(());
    }
    let offset = segment.offset + (start - segment.start);
    let target = buffer
        .get_mut(index_from(address, start)..index_from(address, end))
        .unwrap_or_default();
    storage
        .fill(offset, target)
        .map_err(|error| MemoryError::Unreadable {
            address,
            offset: storage.place(offset),
            what: error.to_string(),
        })
}
