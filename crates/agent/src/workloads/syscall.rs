//! System call entry and exit.

use std::io;

use super::{Failure, Workload};

struct Getppid;

impl Workload for Getppid {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            // SAFETY: getppid takes nothing and always succeeds.
            unsafe { libc::getppid() };
        }
        Ok(())
    }
}

/// getppid: the cheapest call that enters the kernel each time.
pub(super) fn getppid() -> Result<Box<dyn Workload>, Failure> {
    Ok(Box::new(Getppid))
}
