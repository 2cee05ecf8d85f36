//! Disturbing the guest on purpose before a workload, so that seeds sample its state.
//!
//! Memory is held by a child, never by the process that measures: held by that one it would be copied at each fork.

use std::io;
use std::time::Duration;

use wire::{Clock, Perturbation};

use crate::clock::now;
use crate::sys::{self, Fork};

const PAGE: usize = 4096;

/// The workload starts this long after a round point of guest time, so that what came before it, such as reading a job
/// whose digits differ, does not move it against the timer tick. In nanoseconds.
const ROUND_NS: u64 = 100_000_000;

/// Forks the child that forks and holds pages, waits until it has, and sleeps to the point where the workload starts.
pub(crate) fn perturb(perturbation: &Perturbation) -> io::Result<()> {
    if perturbation.child_pages > 0 || perturbation.child_forks > 0 {
        let (mut ready, holder) = io::pipe()?;
        match sys::fork()? {
            Fork::Child => {
                drop(ready);
                // The holder ends with the guest; a failure shows as a closed pipe.
                if fork_often(perturbation.child_forks).and_then(|()| hold(perturbation.child_pages)).is_ok() {
                    drop(holder);
                    loop {
                        std::thread::sleep(Duration::from_secs(3600));
                    }
                }
                sys::exit_now(1);
            }
            Fork::Parent(_) => {
                drop(holder);
                io::Read::read_to_end(&mut ready, &mut Vec::new())?;
            }
        }
    }
    // A round point further than the next one, so that what was woken by the work above has gone to sleep again.
    let rounds = now(Clock::Monotonic) / ROUND_NS + 2;
    sleep_until(rounds * ROUND_NS + perturbation.delay_us * 1000)
}

fn sleep_until(monotonic_ns: u64) -> io::Result<()> {
    let seconds = libc::time_t::try_from(monotonic_ns / 1_000_000_000).map_err(io::Error::other)?;
    let time = libc::timespec { tv_sec: seconds, tv_nsec: (monotonic_ns % 1_000_000_000) as libc::c_long };
    // SAFETY: `time` is valid and outlives the call; no remaining time is asked for.
    match unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut())
    } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

fn fork_often(times: u64) -> io::Result<()> {
    for _ in 0..times {
        match sys::fork()? {
            Fork::Child => sys::exit_now(0),
            Fork::Parent(pid) => sys::wait_for(pid)?,
        };
    }
    Ok(())
}

fn hold(pages: u64) -> io::Result<()> {
    let pages = usize::try_from(pages).map_err(io::Error::other)?;
    if pages == 0 {
        return Ok(());
    }
    let start = sys::map_anonymous(pages * PAGE, libc::MAP_PRIVATE)?;
    // SAFETY: the advice concerns only the mapping made above.
    // A kernel without huge pages refuses it, and then does what was asked anyway.
    unsafe { libc::madvise(start.cast(), pages * PAGE, libc::MADV_NOHUGEPAGE) };
    for page in 0..pages {
        // SAFETY: each address lies within the mapping.
        unsafe { start.add(page * PAGE).write_volatile(1) };
    }
    Ok(())
}
