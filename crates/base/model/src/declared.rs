//! The declared unit and direction of a metric. Each result keeps its declaration, so that Marvin
//! never puts values of different units or directions into one series, whatever later versions
//! declare.

use std::borrow::Cow;
use std::fmt;

use crate::{Clock, Direction, Metric, Quantity};

/// Longest unit name: a store that another program wrote must not fill the memory.
const UNIT_LENGTH_MAX: usize = 64;

/// The declaration of a metric, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// The unit in words; empty if unknown.
    pub unit: Cow<'static, str>,
    /// The good direction; `None` if unknown.
    pub direction: Option<Direction>,
    /// The margin: a difference up to this many percent counts as same.
    pub margin_percent: f64,
}

impl Declared {
    /// Returns the declaration of a metric for a clock.
    #[must_use]
    pub fn from_metric(metric: &Metric, clock: Clock) -> Self {
        let direction = Some(metric.direction);
        let margin_percent = metric.margin_percent;
        Self {
            unit: metric.unit(clock).name(),
            direction,
            margin_percent,
        }
    }

    /// Returns whether values of both are comparable: an unknown field agrees with any value.
    /// Margins may differ.
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        let units = self.unit == other.unit || self.unit.is_empty() || other.unit.is_empty();
        let directions = match (self.direction, other.direction) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        units && directions
    }

    /// Fills unknown fields from another declaration.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let unit = if self.unit.is_empty() {
            other.unit
        } else {
            self.unit
        };
        Self {
            unit,
            direction: self.direction.or(other.direction),
            ..self
        }
    }

    /// Returns it as a metric; `None` if the direction is unknown.
    #[must_use]
    pub fn metric(&self) -> Option<Metric> {
        let unit = if self.unit.is_empty() {
            Cow::Borrowed("(unit not known)")
        } else {
            self.unit.clone()
        };
        let quantity = Quantity::Of(unit);
        let margin_percent = self.margin_percent;
        self.direction.map(|direction| Metric {
            name: Cow::Borrowed("value"),
            quantity,
            direction,
            margin_percent,
        })
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.unit.is_empty() {
            "an unknown unit"
        } else {
            &*self.unit
        };
        match self.direction {
            Some(direction) => write!(f, "{unit}, {direction}"),
            None => write!(f, "{unit}, good in an unknown way"),
        }
    }
}

/// Returns the text if it is a valid unit name, else an empty one.
#[must_use]
pub fn unit_named(text: &str) -> Cow<'static, str> {
    let is_name = text.len() <= UNIT_LENGTH_MAX && !text.chars().any(char::is_control);
    if is_name {
        Cow::Owned(text.to_owned())
    } else {
        Cow::Borrowed("")
    }
}

#[cfg(test)]
mod tests {
    use super::{Declared, unit_named};
    use crate::Direction::{HigherIsBetter, LowerIsBetter};
    use crate::{Clock, Metric};

    fn declared(unit: &str, direction: Option<crate::Direction>) -> Declared {
        Declared {
            unit: unit_named(unit),
            direction,
            margin_percent: 2.0,
        }
    }

    #[test]
    fn known_declarations_must_agree() {
        let seconds = declared("s", Some(LowerIsBetter));
        for (other, agrees) in [
            (declared("s", Some(LowerIsBetter)), true),
            (declared("", Some(LowerIsBetter)), true),
            (declared("s", None), true),
            (declared("ms", Some(LowerIsBetter)), false),
            (declared("s", Some(HigherIsBetter)), false),
        ] {
            assert_eq!(
                (seconds.agrees(&other), other.agrees(&seconds)),
                (agrees, agrees),
                "{other}"
            );
        }
        assert_eq!(declared("", None).or(seconds.clone()), seconds);
        assert!(declared("s", None).metric().is_none());
    }

    #[test]
    fn metric_keeps_its_declaration() {
        let cost = Declared::from_metric(&Metric::COST, Clock::Instructions);
        assert_eq!(cost.to_string(), "instructions/op, lower is better");
        let metric = cost.metric().unwrap();
        assert_eq!(Declared::from_metric(&metric, Clock::Instructions), cost);
        assert_eq!(
            declared("", None).to_string(),
            "an unknown unit, good in an unknown way"
        );
    }

    #[test]
    fn invalid_unit_name_is_dropped() {
        assert_eq!(unit_named("faults/s"), "faults/s");
        assert_eq!(
            [
                unit_named(""),
                unit_named("a\x1b[2J"),
                unit_named(&"x".repeat(65))
            ],
            [""; 3]
        );
    }
}
