//! The cgroups that a process is in: where their files are, and the quota of the processors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::proc;

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
    let folders = folders(process, "cpu", mounts);
    folders
        .into_iter()
        .filter_map(|folder| Some((folder.clone(), quota(&folder)?)))
        .collect()
}

/// Returns the directories of the cgroups that a process is in, for a controller, innermost first.
fn folders(process: u32, controller: &str, mounts: &Mounts) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let _ = fields.next()?;
        let controllers = fields.next()?;
        let path = fields.next()?;
        let is_wanted =
            controllers.is_empty() || controllers.split(',').any(|name| name == controller);
        let hierarchy = if controllers.is_empty() {
            ""
        } else {
            controller
        };
        is_wanted.then(|| mounts.find(hierarchy, path))?
    };
    let mut found = Vec::new();
    for place in text.lines().filter_map(of_line) {
        let below = place
            .folder
            .ancestors()
            .take_while(|folder| *folder != place.mount);
        found.extend(below.map(Path::to_owned));
    }
    found
}

/// Returns the directories of the cgroups that limit a process's memory.
pub(crate) fn memory_folders(process: u32, mounts: &Mounts) -> Vec<PathBuf> {
    folders(process, "memory", mounts)
}

fn quota(folder: &Path) -> Option<Quota> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text
                .trim()
                .split_once(' ')
                .map(|(a, b)| (a.to_owned(), b.to_owned()))?;
            (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?)
        }
        // A quota of -1 is none, and no u64.
        None => (
            read("cpu.cfs_quota_us")?.trim().parse().ok()?,
            read("cpu.cfs_period_us")?.trim().parse().ok()?,
        ),
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
    if unified.exists() {
        unified
    } else {
        folder.join("cpu.cfs_quota_us")
    }
}

/// Where hierarchies of cgroups are mounted.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Vec<Mount>);

/// A mount of a hierarchy, or of a part of it: containers have mounts of their own part, and a host
/// sees them beside its own.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    /// The controllers of version 1; empty for version 2.
    controllers: Vec<String>,
    /// Which cgroup of the hierarchy is there, seen from the cgroup namespace of this process, as
    /// `/proc/PID/cgroup` is.
    root: String,
    folder: PathBuf,
    device: (u32, u32),
}

/// The directory of a cgroup, and the mount that it is in.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    folder: PathBuf,
    mount: PathBuf,
}

impl Mounts {
    pub(crate) fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(mount).collect())
    }

    /// Returns the directory of a cgroup, by its path in a hierarchy: that of a controller of
    /// version 1, or of version 2. None if no mount shows this cgroup: there is no telling what
    /// another root has at the same path.
    fn find(&self, controller: &str, path: &str) -> Option<Place> {
        let candidates = self
            .0
            .iter()
            .filter_map(|mount| Some((mount, place(mount, controller, path)?)));
        // Another file system may be mounted above it, or another part of this one.
        candidates
            .filter(|(mount, place)| is_of(mount, &place.folder))
            .map(|(_, place)| place)
            .next()
    }
}

/// Returns where a mount shows a cgroup.
fn place(mount: &Mount, controller: &str, path: &str) -> Option<Place> {
    let is_hierarchy = match controller {
        "" => mount.controllers.is_empty(),
        name => mount.controllers.iter().any(|known| known == name),
    };
    // `..` is outside of the namespace of this process: no path below the mount leads there.
    if !is_hierarchy || !is_below_the_root(path) || !is_below_the_root(&mount.root) {
        return None;
    }
    let below = path.strip_prefix(mount.root.trim_end_matches('/'))?;
    let folder = match below.strip_prefix('/') {
        Some("") => mount.folder.clone(),
        Some(below) => mount.folder.join(below),
        None if below.is_empty() => mount.folder.clone(),
        // It only begins alike.
        None => return None,
    };
    Some(Place {
        folder,
        mount: mount.folder.clone(),
    })
}

fn is_below_the_root(path: &str) -> bool {
    path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

fn is_of(mount: &Mount, folder: &Path) -> bool {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    statx(CWD, folder, AtFlags::empty(), wanted).is_ok_and(|status| {
        // Linux before 5.8 does not tell the mount.
        let is_told = status.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        (status.stx_dev_major, status.stx_dev_minor) == mount.device
            && (!is_told || status.stx_mnt_id == mount.id)
    })
}

/// Parses a line of mountinfo (Documentation/filesystems/proc.rst); `None` if it mounts no cgroups.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let fields: Vec<&str> = before.split(' ').collect();
    let [id, _, device, root, folder, ..] = fields[..] else {
        return None;
    };
    let after: Vec<&str> = after.split(' ').collect();
    let [kind, _, options] = after[..] else {
        return None;
    };
    let controllers = match kind {
        "cgroup2" => Vec::new(),
        "cgroup" => options.split(',').map(str::to_owned).collect(),
        _ => return None,
    };
    let (major, minor) = device.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let id = id.parse().ok()?;
    Some(Mount {
        id,
        controllers,
        root: unescape(root),
        folder: unescape(folder).into(),
        device,
    })
}

/// Returns a name without the escapes of mountinfo: `\040` is a blank.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut left = text.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let code = rest
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match code
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
            .filter(|_| *first == b'\\')
        {
            Some(byte) => {
                bytes.push(byte);
                left = &rest[3..];
            }
            None => {
                bytes.push(*first);
                left = rest;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use rustix::fs::Statx;

    use super::*;

    const INFO: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
        90 31 0:38 /docker/abc /var/lib/a\\040b/cgroup rw - cgroup2 cgroup2 rw\n\
        91 31 0:38 /../other /mnt/other rw - cgroup2 cgroup2 rw\n";

    fn status(folder: &Path) -> Statx {
        statx(
            CWD,
            folder,
            AtFlags::empty(),
            StatxFlags::BASIC_STATS | StatxFlags::MNT_ID,
        )
        .unwrap()
    }

    /// Returns the directories that the mounts show for a cgroup.
    fn shown(controller: &str, path: &str) -> Vec<String> {
        let places = Mounts::parse(INFO).0;
        let places = places
            .iter()
            .filter_map(|mount| place(mount, controller, path));
        places
            .map(|place| place.folder.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn cgroup_is_found_in_mounts_that_show_it() {
        assert_eq!(
            shown("", "/user.slice/x"),
            ["/sys/fs/cgroup/unified/user.slice/x"]
        );
        assert_eq!(
            shown("", "/docker/abc/y"),
            [
                "/sys/fs/cgroup/unified/docker/abc/y",
                "/var/lib/a b/cgroup/y"
            ]
        );
        assert_eq!(
            shown("", "/docker/abcd"),
            ["/sys/fs/cgroup/unified/docker/abcd"]
        );
        assert_eq!(shown("", "/"), ["/sys/fs/cgroup/unified"]);
        assert_eq!(shown("cpu", "/x"), ["/sys/fs/cgroup/cpu/x"]);
        assert!(shown("memory", "/x").is_empty());
    }

    #[test]
    fn cgroup_outside_of_the_namespace_is_refused() {
        assert!(shown("", "/../other/x").is_empty() && shown("cpu", "/a/../../x").is_empty());
        let only_other = Mounts::parse(INFO.lines().nth(3).unwrap());
        assert_eq!(only_other.find("", "/user.slice/x"), None);
    }

    #[test]
    fn directory_of_another_file_system_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = status(folder.path());
        let device = format!("{}:{}", own.stx_dev_major, own.stx_dev_minor);
        let line = |device: &str| {
            format!(
                "{} 2 {device} / {} rw - cgroup2 x rw",
                own.stx_mnt_id,
                folder.path().display()
            )
        };
        assert_eq!(Mounts::parse(&line("0:999999")).find("", "/"), None);
        assert!(Mounts::parse(&line(&device)).find("", "/").is_some());
    }

    #[test]
    fn mount_below_another_of_its_hierarchy_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = status(folder.path());
        if own.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return;
        }
        let line = |id: u64, root: &str| {
            let device = format!("{}:{}", own.stx_dev_major, own.stx_dev_minor);
            format!(
                "{id} 2 {device} {root} {} rw - cgroup2 x rw\n",
                folder.path().display()
            )
        };
        // Only the upper one shows its cgroups.
        let mounts =
            Mounts::parse(&(line(own.stx_mnt_id + 1, "/") + &line(own.stx_mnt_id, "/upper")));
        assert_eq!(mounts.find("", "/"), None);
        assert!(mounts.find("", "/upper").is_some());
    }
}
