//! Processor time, which is independent of other load on the host.

use std::fs;

/// Ticks per second of `/proc/PID/stat`: USER_HZ, fixed on x86-64 (include/asm-generic/param.h of
/// the kernel).
pub const TICKS_PER_S: f64 = 100.0;

/// Returns the processor seconds of the children that have ended. Those behind walls are not among
/// them: bwrap ends before it has waited for what it started. A bench that counts them removes the
/// walls first.
pub fn children_s() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    Ok(waited_ticks(&stat) as f64 / TICKS_PER_S)
}

/// Returns the processor seconds of this thread: the first field of schedstat, in ns
/// (`Documentation/scheduler/sched-stats.rst`).
pub fn own_s() -> anyhow::Result<f64> {
    // Yielding the processor updates the field.
    std::thread::yield_now();
    let stat = fs::read_to_string("/proc/thread-self/schedstat")?;
    let spent: f64 = stat.split(' ').next().unwrap_or_default().parse()?;
    Ok(spent / 1e9)
}

/// Returns the processor seconds of everything on this host: the first line of /proc/stat
/// (proc(5)).
pub fn host_s() -> anyhow::Result<f64> {
    Ok(busy_ticks(&fs::read_to_string("/proc/stat")?) as f64 / TICKS_PER_S)
}

/// Returns the load average of the last minute.
pub fn load() -> anyhow::Result<f64> {
    Ok(fs::read_to_string("/proc/loadavg")?
        .split(' ')
        .next()
        .unwrap_or_default()
        .parse()?)
}

/// Fields 16 and 17 of proc(5); the name in field 2 may contain spaces, so count from its closing
/// parenthesis.
fn waited_ticks(stat: &str) -> u64 {
    let fields = stat
        .rsplit_once(") ")
        .map_or("", |(_, rest)| rest)
        .split(' ');
    fields
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum()
}

/// User, nice, system, interrupts and soft interrupts; not idle, and not waiting for disks.
fn busy_ticks(stat: &str) -> u64 {
    let fields = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .enumerate();
    let busy = fields.filter(|(place, _)| matches!(place, 1..=3 | 6 | 7));
    busy.filter_map(|(_, field)| field.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{busy_ticks, waited_ticks};

    #[test]
    fn the_time_of_the_host_is_read() {
        assert_eq!(
            busy_ticks("cpu  100 20 3 1000 500 4 5 0 0 0\ncpu0 1 2 3 4 5\n"),
            132
        );
        assert_eq!(busy_ticks(""), 0);
    }

    #[test]
    fn the_time_of_children_is_read() {
        assert_eq!(
            waited_ticks("1 (a) b) S 0 1 1 0 -1 4194560 2 3 4 5 10 20 300 4000 20 0 1 0 5"),
            4300
        );
        assert_eq!(waited_ticks(""), 0);
    }
}
