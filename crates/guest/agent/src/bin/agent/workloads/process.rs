//! Two processes that wait for each other.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::partner::{Partner, PingPong, echo};
use super::region::{PAGE, Region};
use super::{Between, Made, Workload};
use crate::sys;

/// pipe-pingpong: a byte goes to a child process and comes back.
///
/// The only ping-pong in which a process that is woken may displace the other: here the scheduler's
/// policy counts.
pub(super) fn pipe_pingpong() -> Made {
    let (child_from, to) = io::pipe()?;
    let (from, child_to) = io::pipe()?;
    let _partner = Partner::start(move || echo(child_from, child_to))?;
    Ok(Box::new(PingPong { from, to, _partner }))
}

const OURS: u32 = 0;
const THEIRS: u32 = 1;

struct SwitchYield {
    turn: Region,
    _partner: Partner,
}

fn turn(region: &Region) -> &AtomicU32 {
    // SAFETY: the region is page aligned, at least 4 bytes, zeroed by the kernel and lives as long
    // as the reference; both processes use it as an atomic only.
    unsafe { AtomicU32::from_ptr(region.start().cast()) }
}

/// Hands the turn over by giving up the processor until the other side has had it.
fn hand_over(turn: &AtomicU32, other: u32, own: u32) {
    turn.store(other, Ordering::Relaxed);
    await_turn(turn, own);
}

fn await_turn(turn: &AtomicU32, own: u32) {
    while turn.load(Ordering::Relaxed) != own {
        sys::yield_now();
    }
}

impl Workload for SwitchYield {
    /// The other side tries to run all the time.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let turn = turn(&self.turn);
        for _ in 0..operations {
            hand_over(turn, THEIRS, OURS);
        }
        Ok(())
    }
}

/// switch-yield: two processes on one processor that can always run and hand it over with
/// sched_yield(2).
///
/// The turn in shared memory makes sure that each operation is two switches, whatever the scheduler
/// makes of a yield.
pub(super) fn switch_yield() -> Made {
    sys::stay_on_this_cpu()?;
    let region = Region::anonymous(PAGE, libc::MAP_SHARED)?;
    let shared = turn(&region);
    let _partner = Partner::start(|| {
        await_turn(shared, THEIRS);
        loop {
            hand_over(shared, OURS, THEIRS);
        }
    })?;
    Ok(Box::new(SwitchYield {
        turn: region,
        _partner,
    }))
}
