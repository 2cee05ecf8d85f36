//! Memory of programs on the host: the peak of each child process with a given name.
//!
//! The peak is Linux's VmHWM: the most resident pages at any time, including those of shared
//! libraries and of mapped files in the page cache. That is more than a machine costs the host.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Sampling interval. Linux keeps the peak itself: only growth in a process's last moments is
/// missed.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs a closure and returns the peak of the largest program with this name that it started, in
/// bytes; `None` if none was seen. The name is that of `/proc/PID/status`: 15 characters at most
/// (proc(5)).
pub fn peak_during<T>(name: &str, work: impl FnOnce() -> T) -> (T, Option<u64>) {
    let done = AtomicBool::new(false);
    let peak = AtomicU64::new(0);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(
                    children()
                        .iter()
                        .filter_map(|child| peak_of(child, name))
                        .max()
                        .unwrap_or(0),
                    Ordering::Relaxed,
                );
                std::thread::sleep(PAUSE);
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    });
    (result, Some(peak.into_inner()).filter(|bytes| *bytes > 0))
}

/// Returns the processes that threads of this one have started.
fn children() -> Vec<String> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn peak_of(process: &str, name: &str) -> Option<u64> {
    peak_in(
        &fs::read_to_string(format!("/proc/{process}/status")).ok()?,
        name,
    )
}

fn peak_in(status: &str, wanted: &str) -> Option<u64> {
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let kib = field("VmHWM:")
        .filter(|_| field("Name:") == Some(wanted))?
        .strip_suffix("kB")?;
    Some(kib.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::{peak_during, peak_in};

    const QEMU: &str = "qemu-system-x86";

    #[test]
    fn peak_memory_is_read_of_qemu_only() {
        let status =
            "Name:\tqemu-system-x86\nState:\tR (running)\nVmPeak:\t  99999 kB\nVmHWM:\t  2048 kB\n";
        assert_eq!(peak_in(status, QEMU), Some(2 << 20));
        assert_eq!(
            peak_in(&status.replace("qemu-system-x86", "setpriv"), QEMU),
            None
        );
        assert_eq!(peak_in("Name:\tqemu-system-x86\n", QEMU), None);
    }

    #[test]
    fn work_without_a_machine_has_no_peak() {
        assert_eq!(peak_during(QEMU, || 7), (7, None));
    }
}
