//! How long locks of the kernel are held, and the functions that take them. What is counted comes
//! with the lines that processors share ([`crate::Sharing`]).

/// A kind of lock, and of taking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// A spin lock.
    Spin,
    /// A reader-writer spin lock, for reading.
    Read,
    /// A reader-writer spin lock, for writing.
    Write,
    /// A mutex.
    MutexLock,
    /// A reader-writer semaphore, for reading.
    DownRead,
    /// A reader-writer semaphore, for writing.
    DownWrite,
}

impl LockKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Spin,
        Self::Read,
        Self::Write,
        Self::MutexLock,
        Self::DownRead,
        Self::DownWrite,
    ];

    /// Returns its name in documents and stores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Read => "read",
            Self::Write => "write",
            Self::MutexLock => "mutex",
            Self::DownRead => "down_read",
            Self::DownWrite => "down_write",
        }
    }

    /// Returns whether others that want the lock have to wait, whatever they want it for.
    #[must_use]
    pub const fn is_exclusive(self) -> bool {
        !matches!(self, Self::Read | Self::DownRead)
    }

    /// Returns what such a lock is called in a sentence.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Spin => "spin lock",
            Self::Read | Self::Write => "reader-writer lock",
            Self::MutexLock => "mutex",
            Self::DownRead | Self::DownWrite => "semaphore",
        }
    }
}

/// How the names of locks begin that are known by the function that takes them.
pub const TAKEN_IN: &str = "taken in ";

/// Returns the name of a lock that is known by the function that takes it.
#[must_use]
pub fn taken_in(function: &str) -> String {
    format!("{TAKEN_IN}{function}")
}

/// Returns what a lock of this kind and name is called in a sentence.
#[must_use]
pub fn lock_in_sentence(kind: LockKind, lock: &str) -> String {
    if lock.starts_with(TAKEN_IN) {
        format!("the {} {lock}", kind.noun())
    } else {
        lock.to_owned()
    }
}

/// What a lock is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Within {
    /// A variable of the kernel, which all tasks of any workload have in common.
    Kernel,
    /// A variable of each processor.
    Processor,
    /// An object, of which there may be many.
    Object,
}

impl Within {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Processor, Self::Object];

    /// Returns its name in stores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "global",
            Self::Processor => "processor",
            Self::Object => "object",
        }
    }
}

/// A lock that was held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// How it was taken.
    pub kind: LockKind,
    /// The word of 8 bytes that it is in: a field such as `mm_struct.mmap_lock.count`, or a symbol.
    /// Locks of one name are counted together, but those of one processor apart from those that
    /// several had.
    pub lock: String,
    /// What it is in.
    pub within: Within,
    /// Times that it was given back.
    pub times: u64,
    /// Guest time from taking it to giving it back, together, in nanoseconds. It is modelled: a
    /// nanosecond for each instruction, and what waiting for lines costs.
    pub ns: u64,
    /// Processors that had one of them, the most of any.
    pub processors: u32,
    /// The one of this name that was held longest.
    pub longest: HeldWord,
}

/// One lock of those of a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldWord {
    /// Guest time that it was held (ns).
    pub ns: u64,
    /// Times that it was given back.
    pub times: u64,
    /// Processors that had it.
    pub processors: u32,
    /// Times that another processor had it than the time before.
    pub passed: u64,
}

/// What it takes to hand a lock over to the next processor (ns): its line has to come, while which
/// no other one has it. That is what a transfer costs in the model of `exact-smp`.
const HAND_OVER_NS: u64 = 100;

/// A lock in an object goes to another processor once in so many operations or takes, or more
/// often.
const PASSED_ONCE_IN: u64 = 8;

impl Held {
    /// Returns for how long the lock was held (ns) that bounds what all processors do together, and
    /// handed over; `None` if there is none: others need not wait, or it may be one of many. In a run of so many
    /// operations, locks had up to so many processors.
    ///
    /// Variables of the kernel bound. A lock in an object does if all processors had it, if it went
    /// back and forth between them (memory that is freed and used again does not), and if
    /// it has two thirds of the time of its name (objects of pairs of tasks are several).
    #[must_use]
    pub fn bounding_ns(&self, operations: u64, processors: u32) -> Option<u64> {
        if !self.kind.is_exclusive() || self.processors < 2 {
            return None;
        }
        match self.within {
            Within::Kernel => Some(busy(self.ns, self.times)),
            Within::Processor => None,
            Within::Object => {
                let word = self.longest;
                let is_of_all = word.processors >= processors;
                let least = word.times.min(operations);
                let is_passed = word.passed.saturating_mul(PASSED_ONCE_IN) >= least;
                let leads = word.ns.saturating_mul(3) >= self.ns.saturating_mul(2);
                (is_of_all && is_passed && leads).then(|| busy(word.ns, word.times))
            }
        }
    }
}

/// Returns how long no other processor could have a lock that was held so long, so often (ns).
const fn busy(ns: u64, times: u64) -> u64 {
    ns.saturating_add(times.saturating_mul(HAND_OVER_NS))
}

/// The beginnings of the names of functions that take locks, and what may follow. kernel/locking:
/// spinlock.c, qspinlock.c, qrwlock.c, mutex.c, rwsem.c.
const TAKING: [(&str, LockKind); 15] = [
    ("_raw_spin_lock", LockKind::Spin),
    ("_raw_spin_trylock", LockKind::Spin),
    ("native_queued_spin_lock_slowpath", LockKind::Spin),
    ("queued_spin_lock_slowpath", LockKind::Spin),
    ("_raw_read_lock", LockKind::Read),
    ("_raw_read_trylock", LockKind::Read),
    ("queued_read_lock_slowpath", LockKind::Read),
    ("_raw_write_lock", LockKind::Write),
    ("_raw_write_trylock", LockKind::Write),
    ("queued_write_lock_slowpath", LockKind::Write),
    ("mutex_lock", LockKind::MutexLock),
    ("mutex_trylock", LockKind::MutexLock),
    ("__mutex_lock", LockKind::MutexLock),
    ("down_read", LockKind::DownRead),
    ("down_write", LockKind::DownWrite),
];
/// Slow paths of semaphores, which have names of their own.
const SLOW: [(&str, LockKind); 2] = [
    ("rwsem_down_read_slowpath", LockKind::DownRead),
    ("rwsem_down_write_slowpath", LockKind::DownWrite),
];
/// What may follow the beginning of a name.
const VARIANTS: [&str; 15] = [
    "",
    "_irq",
    "_irqsave",
    "_bh",
    "_nested",
    "_irqsave_nested",
    "_nest_lock",
    "_interruptible",
    "_interruptible_nested",
    "_killable",
    "_killable_nested",
    "_io",
    "_slowpath",
    "_interruptible_slowpath",
    "_killable_slowpath",
];
const TRYING: &str = "_trylock";

/// Returns the kind of locks that a function takes, by its name, if it takes locks.
#[must_use]
pub fn taken_by(function: &str) -> Option<LockKind> {
    let name = crate::without_suffix(function);
    if let Some((_, kind)) = SLOW.iter().find(|(known, _)| *known == name) {
        return Some(*kind);
    }
    TAKING.iter().find_map(|(start, kind)| {
        let rest = name.strip_prefix(start)?;
        (VARIANTS.contains(&rest) || rest == TRYING).then_some(*kind)
    })
}

#[cfg(test)]
mod tests {
    use super::{LockKind, taken_by};

    #[test]
    fn functions_that_take_locks_are_known_by_name() {
        for (function, kind) in [
            ("_raw_spin_lock_irqsave", LockKind::Spin),
            ("native_queued_spin_lock_slowpath", LockKind::Spin),
            ("_raw_write_lock_irq", LockKind::Write),
            ("queued_read_lock_slowpath", LockKind::Read),
            ("__mutex_lock.constprop.0", LockKind::MutexLock),
            ("mutex_trylock", LockKind::MutexLock),
            ("down_read_trylock", LockKind::DownRead),
            ("rwsem_down_write_slowpath", LockKind::DownWrite),
        ] {
            assert_eq!(taken_by(function), Some(kind), "{function}");
        }
        for other in [
            "_raw_spin_unlock",
            "mutex_unlock",
            "up_read",
            "downgrade_write",
            "mutex_lock_owner",
            "down_read_count",
        ] {
            assert_eq!(taken_by(other), None, "{other}");
        }
    }
}
