//! Workloads of the contention suite: tasks on all processors share the operations of an iteration,
//! and something besides: an address space, a file, a lock, a line, or nothing at all.
//!
//! Each task is on a processor of its own, and all begin at once (`all_at_once.rs`). An operation
//! is one of any task, so what a workload costs per operation is what two or four tasks cost
//! together.

mod channels;
mod file_systems;
mod files;
mod memory;
mod threads;

use std::io;

pub(super) use channels::owned;

use super::all_at_once::AllAtOnce;
use super::disk_mount::InMemory::{Btrfs, Ext4, Xfs};
use super::scratch::Folder;
use super::split_work::TaskKind;
use super::{Between, Create, Failure, Made, Workload};
use crate::sys;

/// One operation of a task.
type Operation = Box<dyn FnMut() -> io::Result<()>>;

/// The workloads by their names.
pub(super) const SHARE: &[(&str, Create)] = &[
    ("share-no-syscall", threads::no_syscall),
    ("share-no-counter", threads::no_counter),
    ("share-no-clock", threads::no_clock),
    ("share-no-timer", threads::no_timer),
    ("share-counter", threads::counter),
    ("share-false", threads::false_sharing),
    ("share-fault", memory::fault),
    ("share-fault-vma", memory::fault_vma),
    ("share-fault-proc", memory::fault_processes),
    ("share-mmap", memory::mmap),
    ("share-mprotect", memory::mprotect),
    ("share-brk", memory::brk),
    ("share-fork", threads::fork),
    ("share-tlb", memory::shoot_down),
    ("share-fault-file", memory::fault_file),
    ("share-map-file", file_systems::map),
    ("share-map-private", file_systems::map_privately),
    ("share-mmap-proc", memory::mmap_processes),
    ("share-brk-proc", memory::brk_processes),
    ("share-exec-proc", threads::exec),
    ("share-thread", threads::create),
    ("share-open", files::open),
    ("share-open-own", files::open_own),
    ("share-open-folder", files::open_folder),
    ("share-create", files::create),
    ("share-create-own", files::create_own),
    ("share-rename", files::rename),
    ("share-cache", files::cache),
    ("share-pread", files::pread),
    ("share-pread-own", files::pread_own),
    ("share-pwrite", files::pwrite),
    ("share-dup", files::dup),
    ("share-ext4-create", || file_systems::create(Ext4)),
    ("share-ext4-falloc", || file_systems::reserve(Ext4)),
    ("share-xfs-create", || file_systems::create(Xfs)),
    ("share-btrfs-create", || file_systems::create(Btrfs)),
    ("share-btrfs-write", || file_systems::write(Btrfs)),
    ("share-pipe", channels::pipe),
    ("share-pipe-own", channels::pipe_own),
    ("share-pipe-turn", channels::pipe_turn),
    ("share-eventfd", channels::eventfd),
    ("share-epoll", channels::epoll),
    ("share-poll", channels::poll),
    ("share-unix", channels::unix),
    ("share-accept", channels::accept),
    ("share-connect", channels::connect),
    ("share-udp", channels::udp),
    ("share-udp-turn", channels::udp_turn),
    ("share-futex", threads::futex),
    ("share-mutex", threads::mutex),
    ("share-condvar", threads::condvar),
    ("share-signal", threads::signal),
];

/// A group whose tasks share the operations.
struct Share {
    group: AllAtOnce,
    tasks: u64,
}

impl Workload for Share {
    /// The tasks spin at their gate: to rest before it opens would be long.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.group.prepare(operations / self.tasks)
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.group.run(operations / self.tasks)
    }

    fn clear(&mut self, operations: u64) -> io::Result<()> {
        self.group.clear(operations / self.tasks)
    }
}

/// Starts a task on each processor; each makes its own work.
fn all_at_once(
    kind: TaskKind,
    folder: Option<Folder>,
    make: impl Fn(usize) -> Made + Clone + Send + 'static,
) -> Made {
    let tasks = tasks()?;
    Ok(Box::new(Share {
        group: AllAtOnce::start(kind, tasks, folder, make)?,
        tasks: tasks as u64,
    }))
}

/// Returns the number of tasks: all processors.
fn tasks() -> Result<usize, Failure> {
    match sys::processors()?.len() {
        0 | 1 => Err(Failure::Unsupported(
            "what processors share needs two of them: --on exact-smp".into(),
        )),
        tasks => Ok(tasks),
    }
}

struct Each(Operation);

impl Workload for Each {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        (0..operations).try_for_each(|_| (self.0)())
    }
}

/// Starts a task on each processor; each makes its own operation, knowing its number.
fn each(
    kind: TaskKind,
    folder: Option<Folder>,
    make: impl Fn(usize) -> io::Result<Operation> + Clone + Send + 'static,
) -> Made {
    all_at_once(kind, folder, move |number| {
        Ok(Box::new(Each(make(number)?)))
    })
}
