//! Threads that map, copy, search and unmap memory, after ebizzy.

use std::io;
use std::sync::Arc;

use super::region::Region;
use super::split_work::{Act, SplitWork, Step, TaskKind};
use super::{Between, Made, Workload};

/// Chunks that are copied from, and their size.
const CHUNKS: usize = 10;
const CHUNK: usize = 512 * 1024;
/// Members for each processor, of which the guest has one.
const MEMBERS: usize = 2;

type Record = u64;
const RECORDS: usize = CHUNK / size_of::<Record>();

struct Ebizzy(SplitWork);

impl Workload for Ebizzy {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.0.share(Step::Run, operations)
    }
}

/// Returns the next of a row of numbers that look random (Knuth's MMIX generator).
pub(super) fn next_random(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

fn copy_and_search(chunk: &[Record], key: Record) -> io::Result<()> {
    let region = Region::small_pages(1, CHUNK)?;
    // SAFETY: the region is ours alone, page aligned, zeroed, and as long as the records.
    let copy = unsafe { std::slice::from_raw_parts_mut(region.start().cast::<Record>(), RECORDS) };
    copy.copy_from_slice(chunk);
    copy.binary_search(&key)
        .map(|_| ())
        .map_err(|_| io::Error::from_raw_os_error(libc::EIO))
}

/// ebizzy: copy a chunk into new memory, search it, give the memory back.
pub(super) fn ebizzy() -> Made {
    crate::sys::wake_up_politely()?;
    let chunks: Arc<Vec<Vec<Record>>> = Arc::new(
        (0..CHUNKS)
            .map(|_| (0..RECORDS as Record).collect())
            .collect(),
    );
    let act = |member: usize| -> Act {
        let chunks = Arc::clone(&chunks);
        let mut state = member as u64;
        Box::new(move |_, operations| {
            for _ in 0..operations {
                let chunk = &chunks[next_random(&mut state) % CHUNKS];
                copy_and_search(chunk, (next_random(&mut state) % RECORDS) as Record)?;
            }
            Ok(())
        })
    };
    Ok(Box::new(Ebizzy(SplitWork::start(
        TaskKind::Thread,
        (0..MEMBERS).map(act).collect(),
    )?)))
}
