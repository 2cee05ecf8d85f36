//! What was set for a process: environment, libraries, the quota of its cgroup; and the host's configuration.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::proc;

/// Beginnings of variables that change how fast programs are.
const VARIABLES: [&str; 18] = [
    "LD_PRELOAD",
    "LD_DEBUG",
    "LD_AUDIT",
    "LD_BIND_NOW",
    "MALLOC_",
    "GLIBC_TUNABLES",
    "ASAN_OPTIONS",
    "TSAN_OPTIONS",
    "UBSAN_OPTIONS",
    "OMP_",
    "KMP_",
    "GOMAXPROCS",
    "GODEBUG",
    "JAVA_TOOL_OPTIONS",
    "PYTHONMALLOC",
    "TCMALLOC_",
    "G_SLICE",
    "G_DEBUG",
];
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

/// Returns the variables of a process that change its speed.
pub(crate) fn environment(process: u32) -> BTreeMap<String, String> {
    let bytes = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    let is_wanted = |name: &str| VARIABLES.iter().any(|wanted| name.starts_with(wanted));
    pairs.filter(|(name, _)| is_wanted(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns the version of glibc that a file of it names.
pub(crate) fn glibc(path: &str) -> Option<(u32, u32)> {
    let bytes = fs::read(path).ok()?;
    let marker = b"stable release version ";
    let at = bytes.windows(marker.len()).position(|window| window == marker)? + marker.len();
    let text: String =
        bytes[at..].iter().map(|byte| char::from(*byte)).take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let (major, minor) = text.trim_end_matches('.').split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// What a cgroup's quota did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) periods: u64,
    pub(crate) throttled: u64,
    /// Thousandths of a processor.
    pub(crate) quota: u64,
}

/// Returns the cgroups with a quota that a process is in, by their directory.
pub(crate) fn quotas(process: u32, mounts: &Mounts) -> BTreeMap<PathBuf, Quota> {
    let folders = folders(process, "cpu", mounts.cpu.as_ref(), mounts);
    folders.into_iter().filter_map(|folder| Some((folder.clone(), quota(&folder)?))).collect()
}

/// Returns the directories of the cgroups that a process is in, for a controller; `own` is its hierarchy, of version 1.
fn folders(process: u32, controller: &str, own: Option<&PathBuf>, mounts: &Mounts) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => mounts.unified.as_ref(),
            list if list.split(',').any(|name| name == controller) => own,
            _ => None,
        };
        let Some(root) = root else { continue };
        let mut folder = root.join(path.trim_start_matches('/'));
        while folder.starts_with(root) && folder != *root {
            found.push(folder.clone());
            folder.pop();
        }
    }
    found
}

/// Returns the directories of the cgroups that limit a process's memory.
pub(crate) fn memory_folders(process: u32, mounts: &Mounts) -> Vec<PathBuf> {
    folders(process, "memory", mounts.memory.as_ref(), mounts)
}

fn quota(folder: &Path) -> Option<Quota> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()))?;
            (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?)
        }
        // A quota of -1 is none, and no u64.
        None => (read("cpu.cfs_quota_us")?.trim().parse().ok()?, read("cpu.cfs_period_us")?.trim().parse().ok()?),
    };
    let stat = read("cpu.stat")?;
    Some(Quota {
        periods: proc::value(&stat, "nr_periods")?,
        throttled: proc::value(&stat, "nr_throttled")?,
        quota: (1000 * quota).checked_div(period)?,
    })
}

/// Returns the file of a cgroup that has its quota.
pub(crate) fn quota_file(folder: &Path) -> PathBuf {
    let unified = folder.join("cpu.max");
    if unified.exists() { unified } else { folder.join("cpu.cfs_quota_us") }
}

/// Where the hierarchies of cgroups are mounted.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    unified: Option<PathBuf>,
    cpu: Option<PathBuf>,
    memory: Option<PathBuf>,
}

impl Mounts {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mut mounts = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, folder, kind, options, ..] = fields[..] else { continue };
            match kind {
                "cgroup2" => mounts.unified = Some(folder.into()),
                "cgroup" if options.split(',').any(|option| option == "cpu") => mounts.cpu = Some(folder.into()),
                "cgroup" if options.split(',').any(|option| option == "memory") => mounts.memory = Some(folder.into()),
                _ => {}
            }
        }
        mounts
    }
}

/// Returns the options of the running kernel that make it slow.
pub(crate) fn debugging(release: &str) -> Vec<String> {
    let config = fs::read_to_string(format!("/boot/config-{release}")).unwrap_or_default();
    let set = DEBUGGING.iter().filter(|option| config.lines().any(|line| line == format!("{option}=y")));
    let words = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let given = DEBUGGING_WORDS.iter().filter(|word| words.split_whitespace().any(|given| given.starts_with(**word)));
    set.chain(given).map(|option| (*option).to_owned()).collect()
}

/// Returns the mitigations that the kernel applies.
pub(crate) fn mitigations() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else { return Vec::new() };
    let mut found: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            let name = entry.file_name().into_string().ok()?;
            text.strip_prefix("Mitigation: ").map(|how| format!("{name}: {}", how.trim()))
        })
        .collect();
    found.sort();
    found
}

/// Returns the frequency governor of the first processor; empty if there is none.
pub(crate) fn governor() -> String {
    let text = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").unwrap_or_default();
    text.trim().to_owned()
}
