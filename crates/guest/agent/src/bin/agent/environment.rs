//! What is copied out of the guest to say what it was. Whole files, uninterpreted.

use std::fs;

use crate::tool_place::ToolPlace;

/// Largest file that is copied, in bytes; the rest of a larger one is left out.
const SIZE_MAX: usize = 16 * 1024;

const FILES: &[&str] = &[
    "/proc/version",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/kernel/security/lsm",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/sched_autogroup_enabled",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/sem",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/min_free_kbytes",
    "/proc/sys/vm/max_map_count",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/fs/pipe-max-size",
    "/proc/sys/net/core/rmem_default",
    "/proc/sys/net/core/wmem_default",
    "/proc/sys/net/core/somaxconn",
    "/proc/sys/net/ipv4/tcp_rmem",
    "/proc/sys/net/ipv4/tcp_wmem",
    "/proc/sys/net/ipv4/tcp_congestion_control",
    "/proc/sys/net/ipv4/tcp_timestamps",
    "/proc/sys/net/core/default_qdisc",
];
/// What the kernel passed to its first process: words of its command line that it did not know
/// (`print_unknown_bootoptions()` in init/main.c). Another system's first process is none of ours.
const UNKNOWN_WORDS: [&str; 2] = ["/proc/1/cmdline", "/proc/1/environ"];
const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";

/// Returns the files that are there, by path, in a fixed order.
pub(crate) fn copy() -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<String> = FILES.iter().map(|&path| path.to_owned()).collect();
    let mut listed: Vec<String> = fs::read_dir(FOLDER)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().to_str()?.to_owned()))
        .collect();
    listed.sort();
    if ToolPlace::here() == ToolPlace::Guest {
        paths.extend(UNKNOWN_WORDS.map(str::to_owned));
    }
    paths.extend(listed);
    paths
        .into_iter()
        .filter_map(|path| {
            // A file that a kernel does not have says something too: it is absent from the list.
            let mut content = fs::read(&path).ok()?;
            content.truncate(SIZE_MAX);
            Some((path, content))
        })
        .collect()
}
