//! Metrics: declared, never guessed.

use std::borrow::Cow;
use std::fmt;

use crate::Clock;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// Guest instructions per operation. On the exact machine one instruction lasts one guest nanosecond, and idle time counts
    /// as the instructions it would have been.
    InstructionsPerOperation,
    /// Guest nanoseconds per operation, by the guest's clock: all that passed, whoever executed meanwhile.
    GuestTimePerOperation,
    /// Seconds per operation.
    SecondsPerOperation,
    /// Operations in a second of the guest.
    OperationsPerSecond,
    /// Seconds of the guest.
    Seconds,
    /// A number of things: faults, pages.
    Count,
    /// Parts of a hundred.
    Percent,
    /// What an external tool or another suite says.
    Of(Cow<'static, str>),
}

impl Unit {
    /// Returns the unit's name.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::InstructionsPerOperation => "instructions/op",
            Self::GuestTimePerOperation => "guest ns/op",
            Self::SecondsPerOperation => "seconds/op",
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

/// What a metric is a measure of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quantity {
    /// What an operation takes: instructions where they are counted.
    Cost,
    /// What an operation takes by the guest's clock, waiting for devices included.
    Time,
    /// How many operations there are in a second of the guest.
    Rate,
    /// How long something lasts.
    Duration,
    /// How often something happens.
    Count,
    /// A share.
    Percent,
    /// What an external tool or another suite says, in this unit.
    Of(Cow<'static, str>),
}

/// One declared metric of a workload. A run's value is the median over its iterations without the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name within the workload.
    pub name: Cow<'static, str>,
    /// What it is a measure of.
    pub quantity: Quantity,
    /// Which way is good.
    pub direction: Direction,
    /// A difference up to this many percent is no news.
    pub margin_percent: f64,
}

impl Metric {
    /// The cost of one operation: what every micro workload reports.
    pub const COST: Self = Self {
        name: Cow::Borrowed("cost"),
        quantity: Quantity::Cost,
        direction: Direction::LowerIsBetter,
        margin_percent: 1.0,
    };

    /// Returns the unit that this metric has by a clock.
    #[must_use]
    pub fn unit(&self, clock: Clock) -> Unit {
        match (clock, &self.quantity) {
            (Clock::Instructions, Quantity::Cost | Quantity::Time) => Unit::InstructionsPerOperation,
            (Clock::Seconds, Quantity::Cost | Quantity::Time) => Unit::SecondsPerOperation,
            (_, Quantity::Rate) => Unit::OperationsPerSecond,
            (_, Quantity::Duration) => Unit::Seconds,
            (_, Quantity::Count) => Unit::Count,
            (_, Quantity::Percent) => Unit::Percent,
            (_, Quantity::Of(unit)) => Unit::Of(unit.clone()),
        }
    }
}
