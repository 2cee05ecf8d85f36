//! Windows on a file: a few mapped parts of it.
//!
//! Mapping /proc/vmcore fills the page tables of the whole range at once; a plain file is mapped
//! lazily, and touched pages count as the program's memory. So windows are small, but large enough
//! that mapping them is cheaper than reading (`make bench-access`).
//!
//! If a mapped file is truncated, touching the lost part ends the program with SIGBUS, after a
//! message (`crates/dump/marvin-dump/src/guard.rs`); `--io read` avoids this.

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

use crate::syscall_counts::Calls;

/// Largest request, in bytes.
pub(crate) const PIECE_MAX: usize = 256 << 10;
/// Number of mapped windows.
pub(crate) const WINDOWS: usize = 4;
/// Default size of a window, in bytes: the smallest of the fastest. Filtering 2 TB took 2.59 s of
/// processor time with it, 3.58 s with 512 KiB, 2.66 s with 2 MiB and 2.57 s with 16 MiB.
const WINDOW: u64 = 4 << 20;

/// Windows on one file.
#[derive(Debug)]
pub(crate) struct Windows<'d> {
    file: &'d File,
    /// Size of the file.
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

impl Slot {
    /// Returns whether the window at `start` is mapped up to `end`; a shorter one may be there, from
    /// a request near the end of the file.
    fn holds(&self, start: u64, end: u64) -> bool {
        self.start == start && end <= start + self.map.len() as u64
    }
}

impl<'d> Windows<'d> {
    /// Prepares windows on a file of `size` bytes, without mapping. Each has `window` bytes, a
    /// multiple of a page, or a good size for the file.
    pub(crate) fn new(file: &'d File, size: u64, window: Option<u64>, calls: &'d Calls) -> Self {
        let window = window.unwrap_or(WINDOW);
        Self {
            file,
            size,
            window,
            slots: Vec::new(),
            clock: 0,
            last: 0,
            calls,
        }
    }

    /// Returns the best request size.
    pub(crate) fn piece(&self) -> usize {
        usize::try_from(self.window)
            .unwrap_or(PIECE_MAX)
            .min(PIECE_MAX)
    }

    /// Returns `length` bytes from `offset`; at most `PIECE_MAX`, all within the file.
    pub(crate) fn slice(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let start = offset - offset % self.window;
        let end = offset + length as u64;
        let last = self.slots.get(self.last);
        if !last.is_some_and(|slot| slot.holds(start, end)) {
            let mapped = self.slots.iter().position(|slot| slot.holds(start, end));
            self.last = match mapped {
                Some(n) => n,
                None => self.map(start, end - start)?,
            };
            self.clock += 1;
        }
        let slot = &mut self.slots[self.last];
        slot.used = self.clock;
        let at = usize::try_from(offset - start).unwrap_or(usize::MAX);
        slot.map
            .get(at..at.saturating_add(length))
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Maps the window at `start` with `least` bytes, instead of the least recently used one.
    fn map(&mut self, start: u64, least: u64) -> io::Result<usize> {
        // A request at the end of a large window fits in it as well.
        let more = if self.window > PIECE_MAX as u64 {
            PIECE_MAX as u64
        } else {
            0
        };
        let length = (self.window + more)
            .max(least)
            .min(self.size.saturating_sub(start));
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let oldest = self
            .slots
            .iter()
            .enumerate()
            .min_by_key(|(_, slot)| slot.used)
            .map(|(n, _)| n);
        let full = oldest.filter(|_| self.slots.len() >= WINDOWS);
        if let Some(n) = full {
            drop(self.slots.swap_remove(n));
            self.calls.unmapped(1);
        }
        // SAFETY: the mapping is read-only and its bytes are only copied, compared and compressed;
        // any values are valid, even if another process changes the file, as with the
        // memory of a running machine.
        // Not populated: with MAP_POPULATE, filtering 2 TB took 3.4 s of processor time, not 2.6.
        let map = unsafe { MmapOptions::new().offset(start).len(length).map(self.file) }?;
        self.calls.mapped();
        self.slots.push(Slot {
            start,
            map,
            used: self.clock,
        });
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
    use crate::syscall_counts::Calls;

    #[test]
    fn windows_of_any_size_show_the_file() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
        for window in [4096, 16 << 10, 1 << 20] {
            let calls = Calls::default();
            let mut windows = Windows::new(&file, bytes.len() as u64, Some(window), &calls);
            for (at, length) in [
                (0, 4096),
                (4000, 200),
                (4090, 8192),
                (90_000, 10_000),
                (4000, 200),
                (99_999, 1),
            ] {
                assert_eq!(
                    windows.slice(at as u64, length).unwrap(),
                    &bytes[at..at + length],
                    "{window}"
                );
            }
            assert!(windows.slice(99_999, 2).is_err());
            drop(windows);
            assert_eq!(calls.counted().mmap, calls.counted().munmap);
        }
    }
}
