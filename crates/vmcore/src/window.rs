//! Windows on a file: parts of it that are mapped, a few at a time.
//!
//! /proc/vmcore gets its page tables filled when it is mapped, for the whole range at once; a plain file is mapped lazily, and
//! what was touched counts as the program's memory. So windows are small, but not so small that mapping them costs more than
//! reading (`marvin-dump experiment map-size`).
//!
//! If a mapped file becomes shorter, touching what is gone ends the program by SIGBUS. The program says so before it
//! ends (`crates/marvin-dump/src/guard.rs`); who cannot rule it out takes `--io read`.

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

use crate::calls::Calls;

/// Most bytes that are asked for at once.
pub(crate) const PIECE_MAX: usize = 256 << 10;
/// Windows that are mapped at the same time.
pub(crate) const WINDOWS: usize = 4;
/// Size of a window, in bytes, where nobody says what memory there is.
const WINDOW: u64 = 4 << 20;

/// Windows on one file.
#[derive(Debug)]
pub(crate) struct Windows<'d> {
    file: &'d File,
    /// Bytes of the file.
    size: u64,
    window: u64,
    slots: Vec<Slot>,
    clock: u64,
    last: usize,
    calls: &'d Calls,
}

#[derive(Debug)]
struct Slot {
    start: u64,
    map: Mmap,
    used: u64,
}

impl<'d> Windows<'d> {
    /// Prepares windows on a file of `size` bytes; nothing is mapped yet. Each has `window` bytes, a multiple of a page, or
    /// as many as are good for the file.
    pub(crate) fn new(file: &'d File, size: u64, window: Option<u64>, calls: &'d Calls) -> Self {
        let window = window.unwrap_or(WINDOW);
        Self { file, size, window, slots: Vec::new(), clock: 0, last: 0, calls }
    }

    /// Returns how many bytes are best asked for at once.
    pub(crate) fn piece(&self) -> usize {
        usize::try_from(self.window).unwrap_or(PIECE_MAX).min(PIECE_MAX)
    }

    /// Returns `length` bytes from `offset`; at most `PIECE_MAX`, all in the file.
    pub(crate) fn slice(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let start = offset - offset % self.window;
        let end = offset + length as u64;
        let holds = |slot: &Slot| slot.start == start && end <= start + slot.map.len() as u64;
        if !self.slots.get(self.last).is_some_and(holds) {
            self.last = match self.slots.iter().position(holds) {
                Some(n) => n,
                None => self.map(start, end - start)?,
            };
            self.clock += 1;
        }
        let slot = &mut self.slots[self.last];
        slot.used = self.clock;
        let at = usize::try_from(offset - start).unwrap_or(usize::MAX);
        slot.map.get(at..at.saturating_add(length)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Maps the window at `start`, in place of the one that was not used for longest; it has `least` bytes.
    fn map(&mut self, start: u64, least: u64) -> io::Result<usize> {
        // What begins at the end of a large window is in it as well.
        let more = if self.window > PIECE_MAX as u64 { PIECE_MAX as u64 } else { 0 };
        let length = (self.window + more).max(least).min(self.size.saturating_sub(start));
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let oldest = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.used).map(|(n, _)| n);
        let full = oldest.filter(|_| self.slots.len() >= WINDOWS);
        if let Some(n) = full {
            drop(self.slots.swap_remove(n));
            self.calls.unmapped(1);
        }
        // SAFETY: the mapping is read-only and its bytes are only copied, compared and compressed; every value of theirs
        // is valid, also if someone writes to the file meanwhile, as happens to the memory of a running machine.
        let map = unsafe { MmapOptions::new().offset(start).len(length).map(self.file) }?;
        self.calls.mapped();
        self.slots.push(Slot { start, map, used: self.clock });
        Ok(self.slots.len() - 1)
    }
}

impl Drop for Windows<'_> {
    fn drop(&mut self) {
        self.calls.unmapped(self.slots.len());
    }
}

#[cfg(test)]
mod tests {
    use super::Windows;
    use crate::calls::Calls;

    #[test]
    fn windows_of_any_size_show_the_file() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
        for window in [4096, 16 << 10, 1 << 20] {
            let calls = Calls::default();
            let mut windows = Windows::new(&file, bytes.len() as u64, Some(window), &calls);
            for (at, length) in [(0, 4096), (4000, 200), (4090, 8192), (90_000, 10_000), (4000, 200), (99_999, 1)] {
                assert_eq!(windows.slice(at as u64, length).unwrap(), &bytes[at..at + length], "{window}");
            }
            assert!(windows.slice(99_999, 2).is_err());
            drop(windows);
            assert_eq!(calls.counted().mmap, calls.counted().munmap);
        }
    }
}
