//! A block: rows of one kind of counters, a value for each kernel.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// The kind of a value, which determines its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A count of events.
    Count,
    /// Memory, in KiB.
    Kib,
    /// Percent, which tables of 2013 print without decimals.
    Percent,
    /// Percent, which all tables print with two decimals.
    Share,
    /// A rate per second.
    PerSecond,
    /// A time, in seconds.
    Seconds,
    /// A time, in milliseconds.
    Milliseconds,
    /// A mean number, such as of pending requests.
    Mean,
}

impl Form {
    /// Returns the unit in words; empty for counts.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Count | Self::Mean => "",
            Self::Kib => "KiB",
            Self::Percent | Self::Share => "%",
            Self::PerSecond => "/s",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
        }
    }
}

impl Serialize for Form {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.unit())
    }
}

/// A value of one kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MonitorValue {
    /// A number, in the row's form.
    Number(f64),
    /// A share of zero: for example, no page was scanned, so there is no reclaimed share.
    OfNothing,
    /// The kernel does not count it, or no copy was made.
    Absent,
}

impl MonitorValue {
    /// Returns the value of a count.
    pub(super) fn from_count(count: Option<u64>) -> Self {
        count.map_or(Self::Absent, |count| Self::Number(count as f64))
    }

    /// Returns `scale` times one value by another.
    pub(super) fn quotient(scale: f64, part: Option<f64>, whole: Option<f64>) -> Self {
        match (part, whole) {
            (Some(_), Some(whole)) if whole <= 0.0 => Self::OfNothing,
            (Some(part), Some(whole)) => Self::Number(scale * part / whole),
            _ => Self::Absent,
        }
    }

    /// Returns the number, if it is one.
    #[must_use]
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::OfNothing | Self::Absent => None,
        }
    }
}

/// Serializes as null if the kernel does not count it, and for a share of zero.
impl Serialize for MonitorValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number().serialize(serializer)
    }
}

/// A row of a block.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BlockRow {
    /// Its name, as in the tables of 2013.
    pub name: String,
    /// The kind of its values.
    #[serde(rename = "unit")]
    #[schemars(with = "String")]
    pub form: Form,
    /// Whether all kernels count the same; if not, a note of the block gives the reason.
    pub comparable: bool,
    /// One value per kernel.
    #[schemars(with = "Vec<Option<f64>>")]
    pub values: Vec<MonitorValue>,
    /// What MMTests prints for a share of zero.
    #[serde(skip)]
    pub of_nothing: Option<f64>,
    /// Whether tables of 2013 include it even if no kernel counts it.
    #[serde(skip)]
    pub original: bool,
}

impl BlockRow {
    pub(super) fn new(name: impl Into<String>, form: Form, values: Vec<MonitorValue>) -> Self {
        Self {
            name: name.into(),
            form,
            values,
            of_nothing: None,
            original: true,
            comparable: true,
        }
    }

    /// Returns whether any kernel has a number.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.values
            .iter()
            .any(|value| *value != MonitorValue::Absent)
    }

    /// Returns whether any kernel has a number that is not zero.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.values
            .iter()
            .any(|value| value.number().is_some_and(|number| number.abs() > 0.0))
    }
}

/// Rows of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Block {
    /// Their subject.
    pub title: &'static str,
    /// The word that current MMTests prints before each row.
    #[serde(skip)]
    pub word: &'static str,
    /// The rows; documents omit those that no kernel counts.
    #[serde(serialize_with = "counted")]
    pub rows: Vec<BlockRow>,
    /// Notes for reading them.
    pub notes: Vec<String>,
}

fn counted<S: Serializer>(rows: &[BlockRow], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().filter(|row| row.is_counted()))
}

impl Block {
    pub(super) fn new(title: &'static str, word: &'static str, rows: Vec<BlockRow>) -> Self {
        Self {
            title,
            word,
            rows,
            notes: Vec::new(),
        }
    }
}
