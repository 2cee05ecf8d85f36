//! How the host is configured, and the version of the C library.

use std::fs;

/// Options of a kernel config that multiply its time.
const DEBUGGING: [&str; 7] = [
    "CONFIG_KASAN",
    "CONFIG_PROVE_LOCKING",
    "CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "CONFIG_SLUB_DEBUG_ON",
    "CONFIG_KMEMLEAK",
    "CONFIG_KCSAN",
    "CONFIG_DEBUG_OBJECTS",
];
/// The same on its command line.
const DEBUGGING_WORDS: [&str; 3] = ["slub_debug", "slab_debug", "debug_pagealloc=on"];

/// Returns the version of glibc that a file of it names.
pub(crate) fn glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    let marker = b"stable release version ";
    let position = bytes
        .windows(marker.len())
        .position(|window| window == marker)?
        + marker.len();
    let text: String = bytes[position..]
        .iter()
        .map(|byte| char::from(*byte))
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let (major, minor) = text.trim_end_matches('.').split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// Returns the options of the running kernel that make it slow.
pub(crate) fn debugging(release: &str) -> Vec<String> {
    let config = fs::read_to_string(format!("/boot/config-{release}")).unwrap_or_default();
    let set = DEBUGGING
        .iter()
        .filter(|option| config.lines().any(|line| line == format!("{option}=y")));
    let options = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let given = DEBUGGING_WORDS.iter().filter(|word| {
        options
            .split_whitespace()
            .any(|given| given.starts_with(**word))
    });
    set.chain(given)
        .map(|option| (*option).to_owned())
        .collect()
}

/// Returns the mitigations that the kernel applies.
pub(crate) fn mitigations() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            let name = entry.file_name().into_string().ok()?;
            text.strip_prefix("Mitigation: ")
                .map(|how| format!("{name}: {}", how.trim()))
        })
        .collect();
    found.sort();
    found
}

/// Returns what the clock is read from; empty if the kernel tells none.
pub(crate) fn clock_source() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

/// Returns the frequency governor of the first processor; empty if there is none.
pub(crate) fn governor() -> String {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
        .unwrap_or_default();
    text.trim().to_owned()
}
