//! What the processors did so far, copied before and after a job: the host computes from both how much others disturbed
//! it. The kernel counts in ticks of a hundredth of a second.

use std::fs;

/// Names of the two copies.
pub(crate) const BEFORE: &str = "load before";
pub(crate) const AFTER: &str = "load after";

/// Returns the processors' lines of /proc/stat, those that this process may use, and what it and its children took.
pub(crate) fn copy() -> Vec<u8> {
    let read = |path: &str| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let (stat, status, own) = (read("/proc/stat"), read("/proc/self/status"), read("/proc/self/stat"));
    let processors = stat.lines().filter(|line| line.starts_with("cpu"));
    let allowed = status.lines().filter(|line| line.starts_with("Cpus_allowed_list:"));
    let lines = processors.chain(allowed).map(|line| format!("{line}\n")).collect::<String>();
    format!("{lines}own {own}").into_bytes()
}
