//! What a process costs in a control group with a memory controller: each page and each kernel
//! object is charged to the group (`mm/memcontrol.c`). In a guest only: the agent moves itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::region::{PAGE, Region};
use super::{Between, Failure, Made, Workload, in_guest};
use guest::mount;

/// Where the groups are mounted.
pub(super) const ROOT: &str = "/tmp/control-groups";
/// A limit that is never reached.
const LIMIT: &str = "128M";
/// Groups between the root and a deep one.
const DEPTH: usize = 8;

/// Mounts the groups and hands the memory controller down to those of the root.
pub(super) fn mount_groups() -> Result<(), Failure> {
    mount("cgroup2", ROOT).map_err(|error| {
        Failure::Unsupported(format!("the kernel has no control groups: {error}"))
    })?;
    let controllers = fs::read_to_string(Path::new(ROOT).join("cgroup.controllers"))?;
    if !controllers.split_whitespace().any(|name| name == "memory") {
        return Err(Failure::Unsupported(
            "the kernel has no memory controller (CONFIG_MEMCG)".to_owned(),
        ));
    }
    hand_down(Path::new(ROOT))?;
    Ok(())
}

fn hand_down(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), "+memory")
}

/// A group with a limit of memory, in which this process is; it goes back when dropped.
struct Group;

impl Group {
    /// Enters a group so many levels below the root; each has a limit.
    fn enter(levels: usize) -> Result<Self, Failure> {
        if !in_guest() {
            return Err(Failure::Unsupported(
                "needs a guest: it moves the agent into a control group".to_owned(),
            ));
        }
        mount_groups()?;
        let mut group = PathBuf::from(ROOT);
        for level in 0..levels {
            if level > 0 {
                hand_down(&group)?;
            }
            group.push("marvin");
            fs::create_dir_all(&group)?;
            fs::write(group.join("memory.max"), LIMIT)?;
        }
        // 0 is the process that writes.
        fs::write(group.join("cgroup.procs"), "0")?;
        Ok(Self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // In a guest that ends anyway.
        fs::write(Path::new(ROOT).join("cgroup.procs"), "0").ok();
    }
}

struct Fault {
    region: Option<Region>,
    _group: Group,
}

impl Workload for Fault {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.region = Some(Region::small_pages(operations, PAGE)?);
        Ok(())
    }

    fn run(&mut self, _operations: u64) -> io::Result<()> {
        if let Some(region) = &self.region {
            region.touch(PAGE);
        }
        Ok(())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.region = None;
        Ok(())
    }
}

/// memcg-fault: the first write to a page, which is charged to a group.
pub(super) fn fault() -> Made {
    fault_in(1)
}

/// memcg-deep: the same where a group has eight above it, which are charged too.
pub(super) fn deep_fault() -> Made {
    fault_in(DEPTH + 1)
}

fn fault_in(levels: usize) -> Made {
    Ok(Box::new(Fault {
        _group: Group::enter(levels)?,
        region: None,
    }))
}

struct Pipes {
    _group: Group,
}

impl Workload for Pipes {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            drop(io::pipe()?);
        }
        Ok(())
    }
}

/// memcg-kmem: a pipe is made and closed: inodes, files and buffers of the kernel's are charged.
pub(super) fn kernel_memory() -> Made {
    Ok(Box::new(Pipes {
        _group: Group::enter(1)?,
    }))
}
