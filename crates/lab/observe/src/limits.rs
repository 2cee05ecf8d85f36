//! Limits that were set outside a program: memory of its cgroup, dirty pages, open files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use explain::facts::{Limit, Limited};
use rustix::fs::{major, minor};

use crate::cgroups::{Mounts, memory_folders};

/// A limit of memory from here on is none: version 1 writes the largest number of pages (bytes).
const NONE: u64 = 1 << 60;
/// A dirty limit so large that none is left (bytes).
const ALL: &str = "1099511627776";
/// Most open files that are counted: a longer list takes too long to read.
const FILES_MAX: u64 = 1 << 16;

/// Limits by their file, each with the most that was used.
pub(crate) type Limits = BTreeMap<String, Limit>;

/// Looks at a process.
pub(crate) fn look(limits: &mut Limits, process: u32, mounts: &Mounts) {
    for folder in memory_folders(process, mounts) {
        // The name of the limit, of what is used, and the word for no limit: of version 2, and of
        // version 1.
        let known = [
            ("memory.high", "memory.current", "max"),
            ("memory.max", "memory.current", "max"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "-1"),
        ];
        for (name, usage, without) in known {
            let (Some(value), Some(used)) =
                (number(&folder.join(name)), number(&folder.join(usage)))
            else {
                continue;
            };
            if value < NONE {
                let file = folder.join(name).to_string_lossy().into_owned();
                note(
                    limits,
                    Limit {
                        of: Limited::Memory,
                        value,
                        used,
                        file,
                        without,
                    },
                );
            }
        }
    }
    let text = fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    if let Some(value) = soft {
        let used = if value <= FILES_MAX {
            fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |entries| entries.count() as u64)
        } else {
            0
        };
        let file = format!("/proc/{process}/limits");
        note(
            limits,
            Limit {
                of: Limited::Files,
                value,
                used,
                file,
                without: "",
            },
        );
    }
}

fn note(limits: &mut Limits, limit: Limit) {
    let before = limits
        .get(&limit.file)
        .filter(|before| before.value == limit.value);
    // A program may set its own limit: what it used of another one does not count.
    let used = before.map_or(limit.used, |before| before.used.max(limit.used));
    limits.insert(limit.file.clone(), Limit { used, ..limit });
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the limits of dirty pages for a file that is written: of its device, if it is known, and
/// of the host.
pub(crate) fn dirty(device: Option<u64>) -> Vec<Limit> {
    let limit = |file: String, without| Limit {
        of: Limited::Dirty,
        value: 1,
        used: 1,
        file,
        without,
    };
    let mut found = Vec::new();
    if let Some(device) = device {
        let strict = format!(
            "/sys/class/bdi/{}:{}/strict_limit",
            major(device),
            minor(device)
        );
        found.extend((number(Path::new(&strict)) == Some(1)).then(|| limit(strict, "0")));
    }
    let bytes = "/proc/sys/vm/dirty_bytes";
    found.extend(
        number(Path::new(bytes))
            .filter(|bytes| *bytes > 0)
            .map(|_| limit(bytes.to_owned(), ALL)),
    );
    found
}

/// Returns the frequency of the fastest processor now, and the highest there is (kHz).
pub(crate) fn frequency(root: &Path) -> Option<[u64; 2]> {
    let entries = fs::read_dir(root).ok()?.flatten();
    let cpufreq = |folder: &Path, name: &str| number(&folder.join("cpufreq").join(name));
    let pairs = entries.filter_map(|entry| {
        let folder = entry.path();
        Some([
            cpufreq(&folder, "scaling_cur_freq")?,
            cpufreq(&folder, "cpuinfo_max_freq")?,
        ])
    });
    pairs.reduce(|one, other| [one[0].max(other[0]), one[1].max(other[1])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fastest_processor_counts() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(frequency(root.path()), None);
        for (name, now) in [("cpu0", "800000\n"), ("cpu1", "1200000\n")] {
            let folder = root.path().join(name).join("cpufreq");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("scaling_cur_freq"), now).unwrap();
            fs::write(folder.join("cpuinfo_max_freq"), "3600000\n").unwrap();
        }
        fs::create_dir(root.path().join("cpufreq")).unwrap();
        assert_eq!(frequency(root.path()), Some([1_200_000, 3_600_000]));
    }

    #[test]
    fn open_files_of_this_process_are_counted() {
        let mut limits = Limits::new();
        look(&mut limits, std::process::id(), &Mounts::read());
        let files = limits.values().find(|limit| limit.of == Limited::Files);
        assert!(
            files.is_none_or(|files| files.used > 2 && files.used <= files.value),
            "{files:?}"
        );
    }
}
