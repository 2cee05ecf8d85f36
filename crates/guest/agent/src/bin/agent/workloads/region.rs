//! A mapping of memory that is unmapped when dropped.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::sys::{self, check};

/// Size of a page.
pub(super) const PAGE: usize = 4096;
/// Size of a huge page, and of what one page table covers. Regions start at a multiple of it, so
/// that N times the pages need N times the page tables.
pub(super) const HUGE: usize = 2 * 1024 * 1024;

/// A mapping that starts at a multiple of [`HUGE`].
pub(super) struct Region {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a mapping is the whole process's; whichever thread holds the value may use and unmap it.
unsafe impl Send for Region {}

impl Region {
    /// Maps anonymous memory, private or shared by `flags`.
    pub(super) fn anonymous(bytes: usize, flags: i32) -> io::Result<Self> {
        let all = bytes + HUGE;
        let whole = sys::map_anonymous(all, flags)?;
        let before = whole.align_offset(HUGE);
        let after = all - before - bytes;
        // SAFETY: `before` is less than HUGE, so this lies within the mapping just made.
        let start = unsafe { whole.add(before) };
        // SAFETY: both pieces are parts of the mapping just made that nobody uses.
        unsafe {
            unmap(whole, before)?;
            unmap(start.add(bytes), after)?;
        }
        Ok(Self { start, bytes })
    }

    /// Maps private anonymous memory in small pages, for that many operations of that many bytes.
    pub(super) fn small_pages(operations: u64, each: usize) -> io::Result<Self> {
        let region = Self::anonymous(length(operations, each)?, libc::MAP_PRIVATE)?;
        match region.advise(libc::MADV_NOHUGEPAGE) {
            // A kernel without huge pages refuses, and then does what was asked anyway.
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
            _ => Ok(region),
        }
    }

    /// Maps the beginning of a file, private or shared by `flags`.
    pub(super) fn file(file: &File, bytes: usize, flags: i32) -> io::Result<Self> {
        let region = Self::anonymous(bytes, libc::MAP_PRIVATE)?;
        // SAFETY: the file replaces our own mapping, which nobody has a reference to yet.
        let address = unsafe {
            libc::mmap(
                region.start.cast(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags | libc::MAP_FIXED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(region)
    }

    /// Returns its first byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Writes one byte in each piece of `step` bytes.
    pub(super) fn touch(&self, step: usize) {
        for offset in (0..self.bytes).step_by(step) {
            // SAFETY: the offset lies within the mapping, which is writable and has no references
            // to it.
            unsafe { self.start.add(offset).write_volatile(1) };
        }
    }

    /// Gives advice about all of it.
    pub(super) fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the advice concerns our own mapping only, which has no references to it.
        check(unsafe { libc::madvise(self.start.cast(), self.bytes, advice) }).map(|_| ())
    }

    /// Says whether all its pages are in memory.
    pub(super) fn is_resident(&self) -> io::Result<bool> {
        let mut pages = vec![0u8; self.bytes.div_ceil(PAGE)];
        // SAFETY: `pages` has one byte for each page of our own mapping.
        check(unsafe { libc::mincore(self.start.cast(), self.bytes, pages.as_mut_ptr()) })?;
        Ok(pages.iter().all(|page| page & 1 == 1))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and not used after this. It cannot fail for a mapping that is
        // there.
        unsafe { unmap(self.start, self.bytes) }.ok();
    }
}

/// Returns how many bytes that many operations need.
pub(super) fn length(operations: u64, each: usize) -> io::Result<usize> {
    usize::try_from(operations)
        .ok()
        .and_then(|operations| operations.checked_mul(each))
        .ok_or_else(|| io::Error::other("more operations than memory"))
}

/// Unmaps a piece of memory.
///
/// # Safety
/// Nobody may use the piece any more.
unsafe fn unmap(start: *mut u8, bytes: usize) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller vouches for it.
    check(unsafe { libc::munmap(start.cast(), bytes) }).map(|_| ())
}
