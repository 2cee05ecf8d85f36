//! Profiles: exact instruction counts by function within the measured iterations of a workload.

use crate::CostlyCounts;

/// Whose code executes instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Share {
    /// User code of the workload's processes.
    User,
    /// The kernel, for these processes: system calls, faults, exits.
    Kernel,
    /// Interrupts in that time, with the softirqs at their end.
    Interrupt,
    /// Other tasks in that time: kernel threads, the idle task.
    Other,
}

impl Share {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::User, Self::Interrupt, Self::Other];

    /// Returns the name in profiles and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Interrupt => "interrupt",
            Self::Other => "other",
        }
    }
}

/// One measured iteration, in instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Region {
    /// User code of the workload's processes.
    pub user: u64,
    /// The kernel, for these processes.
    pub kernel: u64,
    /// Instructions of interrupts.
    pub interrupt: u64,
    /// Instructions of other tasks.
    pub other: u64,
    /// Those of `user` and `kernel` that take many times as long as others, by kind; all 0 in
    /// results from before they were counted, as each iteration enters the kernel.
    pub costly: CostlyCounts,
}

impl Region {
    /// Returns the instructions of all four.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.user + self.kernel + self.interrupt + self.other
    }
}

/// A function in one share, over all regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileLine {
    /// Who executed these instructions.
    pub share: Share,
    /// Its symbol, with a module in brackets after it; `[user]` for user code.
    pub symbol: String,
    /// Instructions without those of `repeated`.
    pub instructions: u64,
    /// Iterations of repeated string instructions, each of which is an instruction on the exact
    /// machine.
    pub repeated: u64,
    /// Executions of its first instruction.
    pub calls: u64,
    /// Those of `instructions` and `repeated` that take many times as long as others, by kind.
    pub costly: CostlyCounts,
}

impl ProfileLine {
    /// Returns instructions and iterations together, its contribution to guest time.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.instructions + self.repeated
    }
}

/// The profile of one workload in one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Operations in all regions together.
    pub operations: u64,
    /// The measured iterations in order.
    pub regions: Vec<Region>,
    /// Functions; their sum equals that of the regions.
    pub lines: Vec<ProfileLine>,
}

impl Profile {
    /// Returns the sum over all lines, in instructions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.lines.iter().map(ProfileLine::total).sum()
    }
}
