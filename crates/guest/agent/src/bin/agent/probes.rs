//! Counting entries of kernel functions with kprobes, to show that a workload does what it says.
//! Never on in a measurement. Needs CONFIG_KPROBE_EVENTS; see Documentation/trace/kprobetrace.rst
//! of the kernel.

use std::fs;
use std::io::{self, Write};

use guest::mount;

const TRACE: &str = "/sys/kernel/tracing";

/// Sets a probe on each function that this kernel has; the names it lacks are passed over.
pub(crate) fn set(functions: &[String]) -> io::Result<()> {
    if !fs::exists(format!("{TRACE}/kprobe_events"))? {
        mount("tracefs", TRACE)?;
    }
    let mut events = fs::OpenOptions::new()
        .append(true)
        .open(format!("{TRACE}/kprobe_events"))?;
    let set = functions.iter().filter(|name| {
        events
            .write_all(format!("p:marvin/{name} {name}\n").as_bytes())
            .is_ok()
    });
    match set.count() {
        0 => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "none of the functions can be probed in this kernel",
        )),
        _ => fs::write(format!("{TRACE}/events/marvin/enable"), "1"),
    }
}

/// Returns the kernel's own table of hits, raw.
pub(crate) fn profile() -> io::Result<Vec<u8>> {
    fs::read(format!("{TRACE}/kprobe_profile"))
}
