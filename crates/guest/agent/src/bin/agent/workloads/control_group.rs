//! What a process costs in a control group with a memory controller: each page and each kernel
//! object is charged to the group (`mm/memcontrol.c`). In a guest only: the agent moves itself.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use super::region::{PAGE, Region};
use super::{Between, Failure, Made, Workload, in_guest, socket};
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
struct Group {
    path: PathBuf,
}

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
        Ok(Self { path: group })
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

/// What goes over a connection.
const PIECE: usize = 64 * 1024;

struct Connections {
    listener: TcpListener,
    buffer: Vec<u8>,
    _group: Group,
}

impl Workload for Connections {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let address = self.listener.local_addr()?;
        for _ in 0..operations {
            let mut own = TcpStream::connect(address)?;
            let (mut other, _) = self.listener.accept()?;
            for end in [&own, &other] {
                socket::fix_buffers(end)?;
                socket::close_with_reset(end)?;
            }
            own.write_all(&self.buffer)?;
            other.read_exact(&mut self.buffer)?;
        }
        Ok(())
    }
}

/// memcg-tcp: a connection is made, 64 KiB go over it, and it ends, within a group, which is charged
/// for its buffers. A connection that stays keeps what it was charged.
pub(super) fn tcp() -> Made {
    let group = Group::enter(1)?;
    Ok(Box::new(Connections {
        listener: socket::bind(TcpListener::bind)?,
        buffer: vec![1; PIECE],
        _group: group,
    }))
}

struct Statistics {
    region: Region,
    group: Group,
}

/// Pages that are touched before the statistics are read.
const PAGES_READ: usize = 64;

impl Workload for Statistics {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.region.touch(PAGE);
            let text = fs::read_to_string(self.group.path.join("memory.stat"))?;
            if text.is_empty() {
                return Err(io::Error::other("memory.stat is empty"));
            }
            self.region.advise(libc::MADV_DONTNEED)?;
        }
        Ok(())
    }
}

/// memcg-stat: pages are touched and given back, and the group's statistics read in between.
pub(super) fn statistics() -> Made {
    let group = Group::enter(1)?;
    Ok(Box::new(Statistics {
        region: Region::small_pages(PAGES_READ as u64, PAGE)?,
        group,
    }))
}

struct OfKernelMemory {
    group: Group,
}

impl Workload for OfKernelMemory {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            drop(io::pipe()?);
            let text = fs::read_to_string(self.group.path.join("memory.stat"))?;
            if text.is_empty() {
                return Err(io::Error::other("memory.stat is empty"));
            }
        }
        Ok(())
    }
}

/// memcg-stat-few: a pipe is made and closed, which changes few statistics, and they are read.
pub(super) fn statistics_of_few() -> Made {
    Ok(Box::new(OfKernelMemory {
        group: Group::enter(1)?,
    }))
}
