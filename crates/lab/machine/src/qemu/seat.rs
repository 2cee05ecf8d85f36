//! The host processors of each machine: one for an exact machine, all for a virtual machine with
//! several processors.
//!
//! QEMU's main loop and its vCPU thread are exact together only while they do not interleave at
//! certain points (`crates/guest/tracer/src/idle.rs` separates them at the known ones). If both
//! share a host processor and neither preempts the other on wake-up (SCHED_BATCH), they switch only
//! where they wait, and hardly ever interleave. This is a second safeguard: with the tracer alone,
//! about one job in a thousand still differed on a heavily overloaded host.

use std::collections::BTreeMap;
use std::path::Path;

use subprocess::Shared;

use super::program::in_path;
use crate::host::allowed_processors;

/// Number of our machines on each processor.
static TAKEN: Shared<BTreeMap<usize, usize>> = Shared::new(BTreeMap::new());

/// A reserved processor, released on drop; `None` for all.
#[derive(Debug)]
pub(crate) struct Seat(Option<usize>);

impl Seat {
    /// Reserves the allowed processor with the fewest machines.
    pub(crate) fn take() -> Self {
        let mut taken = TAKEN.lock();
        let freest = allowed_processors()
            .into_iter()
            .min_by_key(|cpu| taken.get(cpu).copied().unwrap_or(0))
            .unwrap_or(0);
        *taken.entry(freest).or_default() += 1;
        Self(Some(freest))
    }

    pub(crate) const fn anywhere() -> Self {
        Self(None)
    }

    /// Returns the processor; `None` for all.
    pub(crate) fn processor(&self) -> Option<usize> {
        self.0
    }

    /// Returns the words of chrt(1) before a program that runs here, as util-linux and busybox
    /// understand them; none on a host without it, where the tracer alone keeps machines exact.
    pub(crate) fn scheduling(&self) -> &'static [&'static str] {
        if in_path(Path::new("chrt")).is_none() {
            return &[];
        }
        match self.0 {
            Some(_) => &["chrt", "-b", "0"],
            None => &["chrt", "-o", "0"],
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock();
        if let Some(count) = self.0.and_then(|processor| taken.get_mut(&processor)) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Seat;

    #[test]
    fn machines_get_separate_processors_if_possible() {
        let one = Seat::take();
        let other = Seat::take();
        if std::thread::available_parallelism().unwrap().get() > 1 {
            assert_ne!(one.processor(), other.processor());
        }
    }
}
