//! What a machine can do, and what its numbers are worth. Whoever plans work or reads results asks this; only text for
//! people asks which kind of machine it was.

use crate::{Machine, MachineKind};

/// What time is read from in a guest, and so what costs are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Executed instructions.
    Instructions,
    /// Seconds.
    Seconds,
}

/// What a machine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the same build and replicate give the same samples each time, to the last bit. Replicates of two builds are
    /// pairs then; otherwise each is one more look at something that scatters.
    pub deterministic: bool,
    /// What time is read from.
    pub clock: Clock,
    /// Whether another suite measures on it: its runs are imported, and what their metrics mean is that suite's to say.
    pub foreign: bool,
    /// How many builds it can have booted at the same time.
    pub boots_at_once: usize,
    /// Whether it counts the instructions of each function.
    pub counts: bool,
    /// Whether it follows calls.
    pub calls: bool,
    /// Whether it simulates a processor's caches and branch prediction.
    pub cost_model: bool,
    /// Whether it samples where a processor is.
    pub sampling: bool,
    /// Whether the memory of a kernel that died can be had.
    pub dead_memory: bool,
}

impl MachineKind {
    /// Returns what machines of this kind can do. This is how machines of stored runs are read, of which only kind and
    /// fingerprint are kept, and the only place where a kind decides anything. One of them may lack something: a machine that
    /// boots builds is asked itself.
    #[must_use]
    pub const fn capabilities(self) -> Capabilities {
        match self {
            Self::Exact => Capabilities {
                deterministic: true,
                clock: Clock::Instructions,
                foreign: false,
                boots_at_once: usize::MAX,
                counts: true,
                calls: true,
                cost_model: true,
                sampling: false,
                dead_memory: true,
            },
            Self::Imported => Capabilities {
                deterministic: false,
                clock: Clock::Seconds,
                foreign: true,
                boots_at_once: 0,
                counts: false,
                calls: false,
                cost_model: false,
                sampling: false,
                dead_memory: false,
            },
        }
    }
}

impl Machine {
    /// Returns what machines of its kind can do.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.kind.capabilities()
    }
}
