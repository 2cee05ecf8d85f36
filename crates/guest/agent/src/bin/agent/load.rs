//! What the processors did so far, copied before and after a job: the host computes from both how
//! much others disturbed it. The kernel counts in ticks of a hundredth of a second. And what the
//! agent itself takes of a processor, beside the processes of the workload.

use std::fs;
use std::io;

use guest::clock::now;
use guest::sys::check;
use wire::Clock;

/// Names of the two copies.
pub(crate) const BEFORE: &str = "load before";
pub(crate) const AFTER: &str = "load after";

/// Returns the processors' lines of /proc/stat, those that this process may use, and what it and
/// its children took.
pub(crate) fn copy() -> Vec<u8> {
    let read =
        |path: &str| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let (stat, status, own) = (
        read("/proc/stat"),
        read("/proc/self/status"),
        read("/proc/self/stat"),
    );
    let processors = stat.lines().filter(|line| line.starts_with("cpu"));
    let allowed = status
        .lines()
        .filter(|line| line.starts_with("Cpus_allowed_list:"));
    let lines = processors
        .chain(allowed)
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    format!("{lines}own {own}").into_bytes()
}

/// A moment, and the processor time that this process has had until then (ns).
pub(crate) struct Moment {
    own_ns: u64,
    now_ns: u64,
}

impl Moment {
    pub(crate) fn now() -> io::Result<Self> {
        Ok(Self {
            own_ns: own_ns()?,
            now_ns: now(Clock::Monotonic),
        })
    }

    /// Returns what this process took of a processor since, and how much time has passed (ns).
    pub(crate) fn since(&self, before: &Self) -> String {
        let passed = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        format!(
            "{} {}\n",
            passed(|moment| moment.own_ns),
            passed(|moment| moment.now_ns)
        )
    }
}

/// Returns the processor time of this process without its children (ns).
fn own_ns() -> io::Result<u64> {
    // SAFETY: a rusage of zeroes is a valid value of the C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for the call.
    check(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) })?;
    let ns = |time: libc::timeval| {
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000
    };
    Ok(ns(usage.ru_utime) + ns(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn own_time_passes_while_it_works() {
        let before = Moment::now().unwrap();
        let mut after = Moment::now().unwrap();
        while after.own_ns < before.own_ns + 2_000_000 {
            after = Moment::now().unwrap();
        }
        let text = after.since(&before);
        let numbers: Vec<u64> = text
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect();
        // Threads of other tests count, too: more than passes by the clock.
        assert!(
            numbers.len() == 2 && numbers[0] >= 2_000_000 && numbers[1] > 0,
            "{text}"
        );
    }
}
