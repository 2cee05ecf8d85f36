//! The measured loop: a fixed number of operations per iteration, the clock read only outside of it.

use std::io;

use wire::Clock;

use crate::region;
use crate::resident::touch_program;
use crate::workloads::{self, Between, Failure};
use guest::clock::now;

/// How a workload is measured.
pub(crate) struct Plan {
    /// What time is read from.
    pub(crate) clock: Clock,
    /// Operations per iteration.
    pub(crate) operations: u64,
    /// Iterations before the measured ones.
    pub(crate) warm_up: u32,
    /// Measured iterations.
    pub(crate) iterations: u32,
    /// What is waited for before the workload is made, and before each iteration where it rests.
    pub(crate) wait: fn(u64, u64) -> io::Result<()>,
    /// How long, in microseconds.
    pub(crate) delay_us: u64,
    /// And how many rounds are executed then.
    pub(crate) spins: u64,
}

/// Runs a workload and returns the ticks of each measured iteration.
pub(crate) fn measure(name: &str, plan: &Plan) -> Result<Vec<u64>, Failure> {
    touch_program()?;
    (plan.wait)(plan.delay_us, plan.spins)?;
    let mut workload = workloads::create(name)?;
    // All memory for results is there before the first iteration, so that recording one touches no allocator.
    let mut ticks = Vec::with_capacity(plan.iterations as usize);
    for iteration in 0..plan.warm_up + plan.iterations {
        workload.prepare(plan.operations)?;
        if workload.between() == Between::Rest {
            (plan.wait)(plan.delay_us, plan.spins)?;
        }
        let start = now(plan.clock);
        if iteration >= plan.warm_up {
            region::open();
        }
        workload.run(plan.operations)?;
        // After an iteration that was not opened this means nothing.
        region::close();
        let end = now(plan.clock);
        workload.clear(plan.operations)?;
        if iteration >= plan.warm_up {
            ticks.push(end.checked_sub(start).ok_or_else(|| io::Error::other("the clock went backwards"))?);
        }
    }
    Ok(ticks)
}
