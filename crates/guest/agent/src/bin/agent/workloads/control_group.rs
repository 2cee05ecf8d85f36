//! What a process costs in a control group with a memory controller: each page and each kernel
//! object is charged to the group (`mm/memcontrol.c`). In a guest only: the agent moves itself.

use std::fs;
use std::io;
use std::path::Path;

use super::region::{PAGE, Region};
use super::{Between, Failure, Made, Workload, in_guest};
use guest::mount;

/// Where the groups are mounted, and ours.
const ROOT: &str = "/tmp/control-groups";
const GROUP: &str = "/tmp/control-groups/marvin";
/// A limit that is never reached.
const LIMIT: &str = "128M";

/// A group with a limit of memory, in which this process is; it goes back when dropped.
struct Group;

impl Group {
    fn enter() -> Result<Self, Failure> {
        if !in_guest() {
            return Err(Failure::Unsupported(
                "needs a guest: it moves the agent into a control group".to_owned(),
            ));
        }
        mount("cgroup2", ROOT).map_err(|error| {
            Failure::Unsupported(format!("the kernel has no control groups: {error}"))
        })?;
        let controllers = fs::read_to_string(Path::new(ROOT).join("cgroup.controllers"))?;
        if !controllers.split_whitespace().any(|name| name == "memory") {
            return Err(Failure::Unsupported(
                "the kernel has no memory controller (CONFIG_MEMCG)".to_owned(),
            ));
        }
        fs::write(Path::new(ROOT).join("cgroup.subtree_control"), "+memory")?;
        fs::create_dir_all(GROUP)?;
        fs::write(Path::new(GROUP).join("memory.max"), LIMIT)?;
        // 0 is the process that writes.
        fs::write(Path::new(GROUP).join("cgroup.procs"), "0")?;
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
    Ok(Box::new(Fault {
        _group: Group::enter()?,
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
        _group: Group::enter()?,
    }))
}
