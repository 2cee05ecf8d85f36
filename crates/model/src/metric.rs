//! Metrics: declared, never guessed.

use std::fmt;

use crate::MachineKind;

/// Which way a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Less is better: a cost, a latency.
    LowerIsBetter,
    /// More is better: a throughput.
    HigherIsBetter,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LowerIsBetter => "lower is better",
            Self::HigherIsBetter => "higher is better",
        })
    }
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Guest instructions per operation: counted, or by the guest's clock. On the exact machine one instruction lasts one
    /// guest nanosecond, and idle time counts as the instructions it would have been.
    InstructionsPerOperation,
    /// Seconds per operation.
    SecondsPerOperation,
    /// What a metric that was imported is in, in the words of its suite: `MB/s`, `s`.
    Named(&'static str),
}

impl Unit {
    /// Returns it in words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::InstructionsPerOperation => "instructions/op",
            Self::SecondsPerOperation => "seconds/op",
            Self::Named(word) => word,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One declared metric of a workload. A run's value is the median over its iterations without the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Its name within the workload.
    pub name: &'static str,
    /// Which way is good.
    pub direction: Direction,
    /// A difference up to this many percent is no news.
    pub margin_percent: f64,
    /// Its unit, if that is the same on all machines; a cost's is not.
    pub unit: Option<Unit>,
}

impl Metric {
    /// The cost of one operation: what every micro workload reports.
    pub const COST: Self = Self { name: "cost", direction: Direction::LowerIsBetter, margin_percent: 1.0, unit: None };

    /// Returns the unit that this metric has on machines of a kind.
    #[must_use]
    pub fn unit(&self, kind: MachineKind) -> Unit {
        self.unit.unwrap_or(match kind {
            MachineKind::Exact => Unit::InstructionsPerOperation,
            MachineKind::Imported => Unit::SecondsPerOperation,
        })
    }
}
