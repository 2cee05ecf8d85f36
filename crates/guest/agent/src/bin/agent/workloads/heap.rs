//! The heap as AIM9's tests use it: a megabyte more of it, given back by 16 pages and taken again
//! page by page.

use std::io;

use super::memory::set_end_of_heap;
use super::region::PAGE;
use super::{Between, Made, Workload};

/// What the heap is grown by first.
const GROWN: usize = 1024 * 1024;
/// Pages that are given back at a time.
const GIVEN_BACK: usize = 16;
/// Distance of the bytes that are written in a page.
const STEP: usize = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Untouched,
    Touched,
}

struct Heap {
    taken: Taken,
    /// Where it ended, and where it ends in an iteration; the first page of ours begins on a page.
    before: usize,
    end: usize,
}

impl Workload for Heap {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn prepare(&mut self, _operations: u64) -> io::Result<()> {
        self.before = set_end_of_heap(0)?;
        self.end = (self.before + GROWN).next_multiple_of(PAGE);
        set_end_of_heap(self.end)?;
        Ok(())
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for operation in 0..operations as usize {
            if operation % GIVEN_BACK == 0 {
                set_end_of_heap(self.end - GIVEN_BACK * PAGE)?;
            }
            let start = self.end - (GIVEN_BACK - operation % GIVEN_BACK) * PAGE;
            // The system call has no error code: a refusal leaves the end where it was.
            if set_end_of_heap(start + PAGE)? != start + PAGE {
                return Err(io::Error::from_raw_os_error(libc::ENOMEM));
            }
            if self.taken == Taken::Touched {
                for offset in (0..PAGE).step_by(STEP) {
                    // SAFETY: the page has just become part of the heap, and nobody else has it.
                    unsafe {
                        std::ptr::with_exposed_provenance_mut::<u8>(start + offset)
                            .write_volatile(b' ');
                    };
                }
            }
        }
        Ok(())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        set_end_of_heap(self.before).map(|_| ())
    }
}

/// aim9-page: take pages of the heap and write to them.
pub(super) fn page() -> Made {
    Ok(Box::new(Heap {
        taken: Taken::Touched,
        before: 0,
        end: 0,
    }))
}

/// aim9-brk: take pages of the heap.
pub(super) fn brk() -> Made {
    Ok(Box::new(Heap {
        taken: Taken::Untouched,
        before: 0,
        end: 0,
    }))
}
