//! Sampled profiles: where processors were at regular moments within the measured iterations of a
//! workload.

use crate::Share;

/// What ticks between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SamplingEvent {
    /// Cycles, counted by the processor. Such samples see code that runs with interrupts off.
    Cycles,
    /// A timer, in nanoseconds. It waits until interrupts are on again.
    Timer,
}

impl SamplingEvent {
    const ALL: [Self; 2] = [Self::Cycles, Self::Timer];

    /// Returns the kernel's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Timer => "cpu-clock",
        }
    }

    /// Returns the unit of its period, and of costs.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Timer => "ns",
        }
    }

    /// Finds an event by the kernel's name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == word)
    }
}

/// Whose work was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SamplingScope {
    /// All processors of a machine that does nothing else.
    System,
    /// The workload's processes, and interrupts in their time.
    Processes,
}

impl SamplingScope {
    const ALL: [Self; 2] = [Self::System, Self::Processes];

    /// Returns the name in profiles and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Processes => "processes",
        }
    }

    /// Finds a scope by its name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == word)
    }
}

/// How samples were taken. Only samples taken alike can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// The event whose occurrences are counted.
    pub event: SamplingEvent,
    /// Whose work is sampled.
    pub scope: SamplingScope,
    /// Ticks between two samples of a processor.
    pub period: u64,
}

/// A stack, and how often it was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledStack {
    /// Whose code was executed.
    pub share: Share,
    /// Symbols, outermost first; `[user]` alone for user code.
    pub functions: Vec<String>,
    /// Samples with this stack.
    pub samples: u64,
}

/// The sampled profile of one workload in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledProfile {
    /// How it was sampled.
    pub sampling: Sampling,
    /// Processors that were sampled.
    pub processors: u64,
    /// Operations in all sampled iterations together.
    pub operations: u64,
    /// Samples of idle processors.
    pub idle: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// How often the kernel paused because samples took too long.
    pub throttled: u64,
    /// Samples of too many different stacks, of which nothing else is known.
    pub unkept: u64,
    /// The stacks, each once, sorted.
    pub stacks: Vec<SampledStack>,
}

impl SampledProfile {
    /// Returns the number of samples of work, idle ones left out.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).sum::<u64>() + self.unkept
    }
}
