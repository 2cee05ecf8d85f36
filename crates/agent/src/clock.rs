//! Reading time: the time stamp counter, which on the exact machine counts guest instructions, or CLOCK_MONOTONIC.

use wire::Clock;

/// Returns the clock's reading in ticks: TSC cycles or nanoseconds.
#[inline(always)]
pub(crate) fn now(clock: Clock) -> u64 {
    match clock {
        // SAFETY: RDTSC reads a counter and touches no memory. Linux leaves it open to user space unless a task
        // asked for PR_TSC_SIGSEGV, which we do not.
        Clock::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
        Clock::Monotonic => monotonic_ns(),
    }
}

fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that outlives the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    debug_assert_eq!(result, 0, "CLOCK_MONOTONIC is always there");
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::now;
    use wire::Clock;

    #[test]
    fn both_clocks_go_forward() {
        for clock in [Clock::Tsc, Clock::Monotonic] {
            let before = now(clock);
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(now(clock) > before, "{clock:?}");
        }
    }
}
