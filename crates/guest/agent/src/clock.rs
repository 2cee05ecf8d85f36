//! Time: reading it, from the time stamp counter, which on the exact machine counts guest
//! instructions, or from CLOCK_MONOTONIC; and waiting for it.

use std::arch::asm;
use std::io;

use wire::Clock;

/// Round points of guest time, in nanoseconds: what starts there is not moved against the timer
/// tick by what came before, such as reading a job whose digits differ or finding a workload among
/// others.
const ROUND_NS: u64 = 100_000_000;

/// Round points of the time stamp counter, in ticks: about a millisecond on the exact machine.
const ROUND_TICKS: u64 = 1 << 20;
/// Ticks that must remain to a round point for it to be met: more than the instructions around the
/// loop that waits.
const ROOM_TICKS: u64 = 1000;

/// Returns the clock's reading in ticks: TSC cycles or nanoseconds.
#[inline(always)]
pub fn now(clock: Clock) -> u64 {
    match clock {
        // SAFETY: RDTSC reads a counter and touches no memory. Linux leaves it open to user space
        // unless a task asked for PR_TSC_SIGSEGV, which we do not.
        Clock::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
        Clock::Monotonic => monotonic_ns(),
    }
}

fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec that outlives the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    debug_assert_eq!(result, 0, "CLOCK_MONOTONIC is always there");
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Sleeps to a round point of guest time, not the next one but one, so that what was woken before
/// has gone to sleep again; and from there a delay in microseconds; and to a round point of the
/// time stamp counter, to the instruction, and so many rounds more.
///
/// # Errors
/// When the kernel refuses to sleep.
pub fn sleep_to_round_point(delay_us: u64, spins: u64) -> io::Result<()> {
    let rounds = now(Clock::Monotonic) / ROUND_NS + 2;
    sleep_until(rounds * ROUND_NS + delay_us * 1000)?;
    for _ in 0..=spins {
        spin_to_round_tick();
    }
    Ok(())
}

/// Executes instructions until the time stamp counter is at a round point. Where it counts
/// instructions this ends at that very one, whatever the reading before: a guest that was woken
/// some instructions late has caught up.
fn spin_to_round_tick() {
    // SAFETY: reads a counter and computes in registers; touches no memory.
    unsafe {
        asm!(
            "rdtsc",
            "shl rdx, 32",
            "or rax, rdx",
            // What remains to the next round point after some room.
            "lea rcx, [rax + {room}]",
            "or rcx, {mask}",
            "sub rcx, rax",
            // Each turn takes two instructions, an odd one is taken first: either way as many as remain.
            "shr rcx, 1",
            "jnc 2f",
            "nop",
            "2:",
            "dec rcx",
            "jnz 2b",
            room = const ROOM_TICKS,
            mask = const ROUND_TICKS - 1,
            out("rax") _,
            out("rcx") _,
            out("rdx") _,
            options(nomem, nostack),
        );
    }
}

fn sleep_until(monotonic_ns: u64) -> io::Result<()> {
    let seconds = libc::time_t::try_from(monotonic_ns / 1_000_000_000).map_err(io::Error::other)?;
    let time = libc::timespec {
        tv_sec: seconds,
        tv_nsec: (monotonic_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is valid and outlives the call; no remaining time is asked for.
    match unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::{ROUND_TICKS, now, spin_to_round_tick};
    use wire::Clock;

    #[test]
    fn spinning_ends() {
        let before = now(Clock::Tsc);
        spin_to_round_tick();
        // A processor that does several instructions in a tick is done sooner, never much later.
        assert!(now(Clock::Tsc) - before < 1000 * ROUND_TICKS);
    }

    #[test]
    fn both_clocks_go_forward() {
        for clock in [Clock::Tsc, Clock::Monotonic] {
            let before = now(clock);
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(now(clock) > before, "{clock:?}");
        }
    }
}
