//! Capabilities of a machine. Planning and reports ask for capabilities; only texts for people name
//! the kind of a machine.

use crate::{Machine, MachineKind};

/// The clock of a guest, which gives costs their unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Executed instructions, counted by the tracer.
    Instructions,
    /// Lines of memory that moved between processors.
    Transfers,
    /// Seconds of a clock in the guest or on the host.
    Seconds,
}

/// What a machine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the same build and replicate give bit-identical samples each time. Replicates of
    /// two builds are pairs then; otherwise each is one more noisy sample.
    pub deterministic: bool,
    /// What its values are measured with.
    pub clock: Clock,
    /// Whether it boots builds; otherwise it measures the kernel that it runs.
    pub boots: bool,
    /// Whether another suite measured: the runs are imported, and that suite defines the metrics.
    pub foreign: bool,
    /// How many builds can be booted at the same time.
    pub boots_at_once: usize,
    /// How many processors a job may use. A kind says the fewest; a machine that was opened knows
    /// its own.
    pub processors: u32,
    /// Whether guests can have a scratch disk.
    pub disks: bool,
    /// Whether external tools are those that are installed there: its agent is one process of
    /// many. Guests get images.
    pub installed_tools: bool,
    /// Whether the files of a user's own program go there; otherwise it runs where it lies.
    pub carries_programs: bool,
    /// Whether it counts the instructions of each function.
    pub counts: bool,
    /// Whether it follows calls.
    pub calls: bool,
    /// Whether it simulates a processor's caches and branch prediction.
    pub cost_model: bool,
    /// Whether it follows the lines of memory that processors share.
    pub sharing: bool,
    /// Whether the agent can sample where its processors are, if the kernel lets it.
    pub sampling: bool,
    /// Whether Marvin can read the memory of a kernel that died.
    pub dead_memory: bool,
}

impl Capabilities {
    /// Returns what a replicate is called: the exact machine varies seeds, another suite repeats
    /// runs, and other machines boot again.
    #[must_use]
    pub const fn replicate(self) -> &'static str {
        match (self.deterministic, self.foreign) {
            (true, _) => "seed",
            (false, true) => "run",
            (false, false) => "boot",
        }
    }
}

/// A machine with a clock and nothing else.
const NOISY: Capabilities = Capabilities {
    deterministic: false,
    clock: Clock::Seconds,
    boots: false,
    foreign: false,
    boots_at_once: 0,
    processors: 1,
    disks: false,
    installed_tools: false,
    carries_programs: false,
    counts: false,
    calls: false,
    cost_model: false,
    sharing: false,
    sampling: false,
    dead_memory: false,
};

impl MachineKind {
    /// Returns the capabilities of machines of this kind. Stored runs keep only kind and
    /// fingerprint of their machine, so this is the only place where a kind decides anything. A
    /// machine that boots builds may lack some of these and is asked itself.
    #[must_use]
    pub const fn capabilities(self) -> Capabilities {
        match self {
            Self::Exact => Capabilities {
                deterministic: true,
                clock: Clock::Instructions,
                boots: true,
                foreign: false,
                boots_at_once: usize::MAX,
                processors: 1,
                disks: false,
                installed_tools: false,
                carries_programs: true,
                counts: true,
                calls: true,
                cost_model: true,
                sharing: false,
                sampling: false,
                dead_memory: true,
            },
            Self::ExactSmp => Capabilities {
                deterministic: true,
                clock: Clock::Transfers,
                boots: true,
                boots_at_once: usize::MAX,
                processors: 2,
                carries_programs: true,
                sharing: true,
                dead_memory: true,
                ..NOISY
            },
            Self::Vm => Capabilities {
                boots: true,
                boots_at_once: 1,
                disks: true,
                carries_programs: true,
                sampling: true,
                ..NOISY
            },
            Self::Server => Capabilities {
                boots: true,
                boots_at_once: 1,
                installed_tools: true,
                carries_programs: true,
                sampling: true,
                ..NOISY
            },
            Self::Local => Capabilities {
                boots_at_once: 1,
                installed_tools: true,
                sampling: true,
                ..NOISY
            },
            Self::Imported => Capabilities {
                foreign: true,
                ..NOISY
            },
        }
    }
}

impl Machine {
    /// Returns the capabilities of machines of its kind.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.kind.capabilities()
    }
}
