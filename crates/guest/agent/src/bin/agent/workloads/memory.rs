//! Changing the address space.

use std::io;

use super::region::{PAGE, Region};
use super::{Between, Made, Workload};
use crate::sys::{self, check};

/// What is mapped, protected or added at a time.
const PIECE: usize = 16 * PAGE;
/// What is given back at a time: less, as all of it must be there at the beginning of an iteration.
const DROPPED: usize = 4 * PAGE;

struct MapUnmap;

impl Workload for MapUnmap {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            let start = sys::map_anonymous(PIECE, libc::MAP_PRIVATE)?;
            // SAFETY: the mapping was just made and nobody has a reference to it.
            check(unsafe { libc::munmap(start.cast(), PIECE) })?;
        }
        Ok(())
    }
}

/// mem-mmap: map anonymous memory and unmap it untouched.
pub(super) fn mmap_munmap() -> Made {
    Ok(Box::new(MapUnmap))
}

struct Protect(Region);

impl Protect {
    fn set(&self, protection: i32) -> io::Result<()> {
        // SAFETY: the region is three pieces long, the middle one is ours and nobody has a
        // reference to it.
        check(unsafe { libc::mprotect(self.0.start().add(PIECE).cast(), PIECE, protection) })
            .map(|_| ())
    }
}

impl Workload for Protect {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.set(libc::PROT_READ)?;
            self.set(libc::PROT_READ | libc::PROT_WRITE)?;
        }
        Ok(())
    }
}

/// mem-mprotect: make the middle of a mapping read-only and writable again, which splits it and
/// joins it.
pub(super) fn mprotect() -> Made {
    let region = Region::small_pages(3, PIECE)?;
    region.touch(PAGE);
    Ok(Box::new(Protect(region)))
}

struct Brk {
    end: usize,
}

/// Moves the end of the heap and returns where it is then; it is left alone for 0 or when the
/// kernel refuses. Workloads move it down only to where it was, and allocate nothing in between.
pub(super) fn set_end_of_heap(address: usize) -> io::Result<usize> {
    // SAFETY: moving the end of the heap up takes nothing from anybody, and what is below where it
    // was stays.
    let end = check(unsafe { libc::syscall(libc::SYS_brk, address) })?;
    usize::try_from(end).map_err(io::Error::other)
}

impl Workload for Brk {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    /// The allocator may have moved the end since the last iteration.
    fn prepare(&mut self, _operations: u64) -> io::Result<()> {
        self.end = set_end_of_heap(0)?;
        Ok(())
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            // The system call has no error code: a refusal leaves the end where it was.
            if set_end_of_heap(self.end + PIECE)? == self.end {
                return Err(io::Error::from_raw_os_error(libc::ENOMEM));
            }
            set_end_of_heap(self.end)?;
        }
        Ok(())
    }
}

/// mem-brk: move the end of the heap up and down again.
pub(super) fn brk() -> Made {
    Ok(Box::new(Brk { end: 0 }))
}

struct DontNeed(Option<Region>);

impl Workload for DontNeed {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        let region = Region::small_pages(operations, DROPPED)?;
        region.touch(PAGE);
        self.0 = Some(region);
        Ok(())
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let Some(region) = &self.0 else {
            return Ok(());
        };
        for piece in 0..operations as usize {
            // SAFETY: the piece lies within our region, which nobody has a reference to.
            check(unsafe {
                libc::madvise(
                    region.start().add(piece * DROPPED).cast(),
                    DROPPED,
                    libc::MADV_DONTNEED,
                )
            })?;
        }
        Ok(())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.0 = None;
        Ok(())
    }
}

/// mem-dontneed: give back memory that is there.
pub(super) fn madvise_dontneed() -> Made {
    Ok(Box::new(DontNeed(None)))
}
