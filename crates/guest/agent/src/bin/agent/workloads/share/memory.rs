//! One address space, or several.

use std::io;
use std::sync::Arc;

use super::{all_at_once, each, tasks};
use crate::sys::{self, check};
use crate::workloads::fault;
use crate::workloads::memory::set_end_of_heap;
use crate::workloads::region::{PAGE, Region};
use crate::workloads::scratch::{self, Folder};
use crate::workloads::split_work::TaskKind;
use crate::workloads::{Made, Workload};

/// What is mapped and protected at a time.
const PIECE: usize = 16 * PAGE;
/// Most pages that a task touches in an iteration of `share-fault-vma`.
const PAGES_MAX: u64 = 2_048;

/// share-fault: threads write to pages of mappings of their own.
pub(super) fn fault() -> Made {
    all_at_once(TaskKind::Thread, None, |_| fault::anon())
}

/// share-fault-proc: processes do that.
pub(super) fn fault_processes() -> Made {
    all_at_once(TaskKind::Process, None, |_| fault::anon())
}

/// A task's part of a mapping that all tasks use.
struct Part {
    whole: Arc<SharedRegion>,
    number: usize,
}

struct SharedRegion(Region);

// SAFETY: each task uses its own part of the mapping only, by its address.
unsafe impl Sync for SharedRegion {}

impl Part {
    fn start(&self) -> *mut u8 {
        // SAFETY: the mapping has a part of that size for each task.
        unsafe {
            self.whole
                .0
                .start()
                .add(self.number * PAGES_MAX as usize * PAGE)
        }
    }
}

impl Workload for Part {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        if operations > PAGES_MAX {
            Err(super::threads::other("more pages than the mapping has"))
        } else {
            Ok(())
        }
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for page in 0..operations.min(PAGES_MAX) as usize {
            // SAFETY: within this task's part, which is writable and has no references to it.
            unsafe { self.start().add(page * PAGE).write_volatile(1) };
        }
        Ok(())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        // SAFETY: this task's own part, which has no references to it.
        check(unsafe {
            libc::madvise(
                self.start().cast(),
                PAGES_MAX as usize * PAGE,
                libc::MADV_DONTNEED,
            )
        })
        .map(|_| ())
    }
}

/// share-fault-vma: threads write to pages of one mapping, each in its own part.
pub(super) fn fault_vma() -> Made {
    let whole = Arc::new(SharedRegion(Region::small_pages(
        PAGES_MAX * tasks()? as u64,
        PAGE,
    )?));
    all_at_once(TaskKind::Thread, None, move |number| {
        Ok(Box::new(Part {
            whole: Arc::clone(&whole),
            number,
        }))
    })
}

/// share-fault-file: threads write to pages of a shared mapping of one file, each in its own part.
/// The pages are in memory, and no longer mapped after an iteration.
pub(super) fn fault_file() -> Made {
    let folder = Folder::new()?;
    let mut file = folder.file("file")?;
    let bytes = PAGES_MAX as usize * PAGE * tasks()?;
    scratch::fill(&mut file, bytes)?;
    let whole = Arc::new(SharedRegion(Region::file(&file, bytes, libc::MAP_SHARED)?));
    all_at_once(TaskKind::Thread, Some(folder), move |number| {
        Ok(Box::new(Part {
            whole: Arc::clone(&whole),
            number,
        }))
    })
}

/// share-tlb: threads write to a page of their own and give it back, while the others use the same
/// address space: each time their processors have to forget the page.
pub(super) fn shoot_down() -> Made {
    each(TaskKind::Thread, None, |_| {
        let region = Region::small_pages(1, PAGE)?;
        Ok(Box::new(move || {
            region.touch(PAGE);
            region.advise(libc::MADV_DONTNEED)
        }))
    })
}

/// share-mmap: threads map and unmap memory.
pub(super) fn mmap() -> Made {
    map_and_unmap(TaskKind::Thread)
}

/// share-mmap-proc: processes do that.
pub(super) fn mmap_processes() -> Made {
    map_and_unmap(TaskKind::Process)
}

fn map_and_unmap(kind: TaskKind) -> Made {
    each(kind, None, |_| {
        Ok(Box::new(|| {
            let start = sys::map_anonymous(PIECE, libc::MAP_PRIVATE)?;
            // SAFETY: the mapping was just made and has no references to it.
            check(unsafe { libc::munmap(start.cast(), PIECE) }).map(|_| ())
        }))
    })
}

/// share-mprotect: threads make the middle of a mapping of their own read-only and writable again.
pub(super) fn mprotect() -> Made {
    each(TaskKind::Thread, None, |_| {
        let region = Region::small_pages(3, PIECE)?;
        region.touch(PAGE);
        Ok(Box::new(move || {
            for protection in [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE] {
                // SAFETY: the region is three pieces long; the middle one is ours and has no
                // references to it.
                check(unsafe {
                    libc::mprotect(region.start().add(PIECE).cast(), PIECE, protection)
                })?;
            }
            Ok(())
        }))
    })
}

/// share-brk: threads move the end of the heap up and down.
pub(super) fn brk() -> Made {
    move_end(TaskKind::Thread)
}

/// share-brk-proc: processes move the ends of their own heaps.
pub(super) fn brk_processes() -> Made {
    move_end(TaskKind::Process)
}

fn move_end(kind: TaskKind) -> Made {
    each(kind, None, |_| {
        Ok(Box::new(|| {
            // Another thread may have moved it meanwhile; it never gets below where it was.
            let end = set_end_of_heap(0)?;
            set_end_of_heap(end + PIECE)?;
            set_end_of_heap(end).map(|_| ())
        }))
    })
}
