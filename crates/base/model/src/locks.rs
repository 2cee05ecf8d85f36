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
    /// Whether it is a variable of the kernel, which all tasks of any workload have in common, rather
    /// than in an object of which there may be many.
    pub is_global: bool,
    /// Times that it was given back.
    pub times: u64,
    /// Guest time from taking it to giving it back, together, in nanoseconds. It is modelled: a
    /// nanosecond for each instruction, and what waiting for lines costs.
    pub ns: u64,
    /// Processors that had one of them, the most of any.
    pub processors: u32,
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
