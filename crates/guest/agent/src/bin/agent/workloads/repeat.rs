//! Workloads that are one closure: the same operation again and again, with nothing to prepare.

use std::io;

use super::{Between, Made, Workload};

/// One operation, knowing its number in the iteration.
type Operation = Box<dyn FnMut(usize) -> io::Result<()>>;

struct Repeat(Operation);

impl Workload for Repeat {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        (0..operations as usize).try_for_each(|number| (self.0)(number))
    }
}

/// Makes a workload of its operation.
pub(super) fn repeat(operation: impl FnMut(usize) -> io::Result<()> + 'static) -> Made {
    Ok(Box::new(Repeat(Box::new(operation))))
}

/// Fails where a call did less than it was asked for.
pub(super) fn whole(done: i64, wanted: usize) -> io::Result<()> {
    if usize::try_from(done) == Ok(wanted) {
        Ok(())
    } else {
        Err(io::Error::other(format!("{done} of {wanted}")))
    }
}
