//! Metrics: declared, never guessed.

use std::borrow::Cow;
use std::fmt;

use crate::Clock;

/// The good direction of a metric.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// Guest instructions per operation. On the exact machine one instruction takes one guest
    /// nanosecond, and idle time counts as the instructions that fit into it.
    InstructionsPerOperation,
    /// Guest nanoseconds per operation, by the guest's clock, including time in which other
    /// processes ran.
    GuestTimePerOperation,
    /// Lines of memory that moved between processors, per operation.
    TransfersPerOperation,
    /// Nanoseconds per operation, by a clock of real time.
    NanosecondsPerOperation,
    /// Operations per second of guest time.
    OperationsPerSecond,
    /// Seconds of guest time.
    Seconds,
    /// A count of things: faults, pages.
    Count,
    /// A share in percent.
    Percent,
    /// A unit of an external tool or another suite.
    Of(Cow<'static, str>),
}

impl Unit {
    /// Returns the unit's name.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::InstructionsPerOperation => "instructions/op",
            Self::GuestTimePerOperation => "guest ns/op",
            Self::TransfersPerOperation => "transfers/op",
            Self::NanosecondsPerOperation => "ns/op",
            Self::OperationsPerSecond => "ops/second",
            Self::Seconds => "seconds",
            Self::Count => "number",
            Self::Percent => "percent",
            Self::Of(name) => return name.clone(),
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// What a metric measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quantity {
    /// The cost of an operation: instructions if the machine counts them.
    Cost,
    /// The guest time of an operation, including time in which it waits for devices.
    Time,
    /// Operations per second of guest time.
    Rate,
    /// A time in any unit.
    Duration,
    /// A count of events.
    Count,
    /// A share of a whole.
    Percent,
    /// A value of an external tool or another suite, in this unit.
    Of(Cow<'static, str>),
}

/// One declared metric of a workload. A run's value is the median over its iterations without the
/// first.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name within the workload.
    pub name: Cow<'static, str>,
    /// What it measures: a cost, a rate, a share.
    pub quantity: Quantity,
    /// The direction in which values are better.
    pub direction: Direction,
    /// The margin: a difference up to this many percent counts as same.
    pub margin_percent: f64,
}

impl Metric {
    /// The cost of one operation, which every micro workload reports.
    pub const COST: Self = Self {
        name: Cow::Borrowed("cost"),
        quantity: Quantity::Cost,
        direction: Direction::LowerIsBetter,
        margin_percent: 1.0,
    };

    /// Returns the unit of this metric for a clock.
    #[must_use]
    pub fn unit(&self, clock: Clock) -> Unit {
        match (clock, &self.quantity) {
            (Clock::Instructions, Quantity::Cost | Quantity::Time) => {
                Unit::InstructionsPerOperation
            }
            (Clock::Transfers, Quantity::Cost | Quantity::Time) => Unit::TransfersPerOperation,
            (Clock::Seconds, Quantity::Cost | Quantity::Time) => Unit::NanosecondsPerOperation,
            (_, Quantity::Rate) => Unit::OperationsPerSecond,
            (_, Quantity::Duration) => Unit::Seconds,
            (_, Quantity::Count) => Unit::Count,
            (_, Quantity::Percent) => Unit::Percent,
            (_, Quantity::Of(unit)) => Unit::Of(unit.clone()),
        }
    }
}
