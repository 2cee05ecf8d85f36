//! Page faults of several processes or threads at a time, after pft.

use std::io;

use super::region::{PAGE, Region};
use super::split_work::{Act, SplitWork, Step, TaskKind};
use super::{Made, Workload};

struct Faults(SplitWork);

impl Workload for Faults {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.0.share(Step::Prepare, operations)
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.0.share(Step::Run, operations)
    }

    fn clear(&mut self, operations: u64) -> io::Result<()> {
        self.0.share(Step::Clear, operations)
    }
}

/// pft-…: so many members write to each page of a mapping of their own for the first time.
pub(super) fn faults(kind: TaskKind, members: usize) -> Made {
    crate::sys::wake_up_politely()?;
    let act = |_| -> Act {
        let mut region: Option<Region> = None;
        Box::new(move |step, pages| {
            match (step, &region) {
                (Step::Prepare, _) => region = Some(Region::small_pages(pages, PAGE)?),
                (Step::Run, Some(region)) => region.touch(PAGE),
                (Step::Run, None) | (Step::Clear, _) => region = None,
            }
            Ok(())
        })
    };
    Ok(Box::new(Faults(SplitWork::start(
        kind,
        (0..members).map(act).collect(),
    )?)))
}
