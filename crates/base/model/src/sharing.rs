//! Which lines of memory moved between processors within the measured iterations of a workload but
//! the first, and in which function.

use crate::{Held, Within};

/// How a line moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Movement {
    /// Read by one processor, modified by another.
    Load,
    /// Written by one, modified by another.
    Store,
    /// Written by one, held by others that only read it: they lose it.
    Upgrade,
}

impl Movement {
    /// All kinds of movements.
    pub const ALL: [Self; 3] = [Self::Load, Self::Store, Self::Upgrade];

    /// Returns its name in documents and stores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Upgrade => "upgrade",
        }
    }
}

/// A line that moved in a function, over all iterations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// Why the line moved.
    pub movement: Movement,
    /// Whether it was false sharing: the words of 8 bytes that were asked for are none that others
    /// had used.
    pub is_false: bool,
    /// The function's symbol, with a module in brackets after it; `[user]` for user code.
    pub function: String,
    /// The line: a symbol of the kernel's data or a slab cache, each with a distance, or the kind
    /// of memory.
    pub line: String,
    /// The word of 8 bytes in it that was asked for: a field such as `mm_struct.mmap_lock.count`,
    /// or a symbol.
    pub word: String,
    /// Transfers of the line between processors.
    pub transfers: u64,
}

/// What is counted of a function that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// How often it was entered.
    Times,
    /// Instructions of its own.
    Instructions,
    /// Guest time in it, with what it calls and with sleep. It is modelled: a nanosecond for each
    /// instruction, and what waiting for lines costs.
    Ns,
}

/// Functions that say what processors do to one another: what is counted of each, and what that is.
/// Functions of one name are counted together; a suffix of the compiler, as in `osq_lock.isra.0`,
/// does not matter.
pub const WATCHED: [(&str, Counted, &str); 22] = [
    (
        "asm_sysvec_reschedule_ipi",
        Counted::Times,
        "IPI: reschedule",
    ),
    (
        "asm_sysvec_call_function_single",
        Counted::Times,
        "IPI: call, to one processor",
    ),
    (
        "asm_sysvec_call_function",
        Counted::Times,
        "IPI: call, to several",
    ),
    (
        "asm_sysvec_apic_timer_interrupt",
        Counted::Times,
        "timer interrupts",
    ),
    ("flush_tlb_func", Counted::Times, "TLB flushes"),
    ("__switch_to_asm", Counted::Times, "context switches"),
    ("set_task_cpu", Counted::Times, "migrations"),
    (
        "native_queued_spin_lock_slowpath",
        Counted::Times,
        "spin locks: slow path",
    ),
    // Its name without CONFIG_PARAVIRT_SPINLOCKS.
    (
        "queued_spin_lock_slowpath",
        Counted::Times,
        "spin locks: slow path",
    ),
    (
        "rwsem_down_read_slowpath",
        Counted::Times,
        "rw semaphores: read, slow path",
    ),
    (
        "rwsem_down_write_slowpath",
        Counted::Times,
        "rw semaphores: write, slow path",
    ),
    (
        "__mutex_lock_slowpath",
        Counted::Times,
        "mutexes: slow path",
    ),
    (
        "native_queued_spin_lock_slowpath",
        Counted::Instructions,
        "spin locks: instructions of waiting",
    ),
    (
        "queued_spin_lock_slowpath",
        Counted::Instructions,
        "spin locks: instructions of waiting",
    ),
    (
        "osq_lock",
        Counted::Instructions,
        "sleeping locks: instructions of spinning",
    ),
    (
        "mutex_spin_on_owner",
        Counted::Instructions,
        "sleeping locks: instructions of spinning",
    ),
    (
        "rwsem_spin_on_owner",
        Counted::Instructions,
        "sleeping locks: instructions of spinning",
    ),
    (
        "native_queued_spin_lock_slowpath",
        Counted::Ns,
        "spin locks: ns of wait, modelled",
    ),
    (
        "queued_spin_lock_slowpath",
        Counted::Ns,
        "spin locks: ns of wait, modelled",
    ),
    (
        "rwsem_down_read_slowpath",
        Counted::Ns,
        "rw semaphores, read: ns of wait, modelled",
    ),
    (
        "rwsem_down_write_slowpath",
        Counted::Ns,
        "rw semaphores, write: ns of wait, modelled",
    ),
    (
        "__mutex_lock_slowpath",
        Counted::Ns,
        "mutexes: ns of wait, modelled",
    ),
];

/// Returns a function's name without a suffix of the compiler.
#[must_use]
pub fn without_suffix(function: &str) -> &str {
    function.split_once('.').map_or(function, |(name, _)| name)
}

/// How often a function was entered, and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    /// The symbol of the function.
    pub function: String,
    /// Times that it was entered.
    pub times: u64,
    /// Instructions of its own.
    pub instructions: u64,
    /// Guest time from its first instruction to its last, in nanoseconds.
    pub ns: u64,
}

impl Entered {
    /// Returns one of the three.
    #[must_use]
    pub const fn count(&self, what: Counted) -> u64 {
        match what {
            Counted::Times => self.times,
            Counted::Instructions => self.instructions,
            Counted::Ns => self.ns,
        }
    }
}

/// All lines that moved for one workload in one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sharing {
    /// Operations in these iterations together.
    pub operations: u64,
    /// What moved; the sum equals the transfers of these iterations.
    pub moves: Vec<Move>,
    /// The functions of [`WATCHED`] that were entered.
    pub entered: Vec<Entered>,
    /// Locks that were held.
    pub held: Vec<Held>,
}

impl Sharing {
    /// Returns how many processors had a lock at most: those that run the workload's tasks.
    #[must_use]
    pub fn processors(&self) -> u32 {
        let processors = self.held.iter().map(|held| held.processors);
        processors.max().unwrap_or(0)
    }

    /// Returns the lock of variables of the kernel, or of those in objects, that was held longest
    /// of those which bound what all processors do together, and for how many nanoseconds an
    /// operation ([`Held::bounding_ns`]).
    #[must_use]
    pub fn longest_held(&self, within: Within) -> Option<(&Held, f64)> {
        let processors = self.processors();
        let bounding = self
            .held
            .iter()
            .filter(|held| held.within == within)
            .filter_map(|held| Some((held, held.bounding_ns(self.operations, processors)?)));
        let (longest, ns) = bounding.max_by_key(|(_, ns)| *ns)?;
        Some((longest, ns as f64 / self.operations.max(1) as f64))
    }

    /// Returns the transfers of all lines.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.moves.iter().map(|moved| moved.transfers).sum()
    }
}
