//! A block: rows of one kind of counters, a value for each kernel.

use serde::{Serialize, Serializer};

/// What a value is, which decides how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A count.
    Count,
    /// KiB.
    Kib,
    /// A part in percent, which tables of 2013 write without decimals.
    Percent,
    /// A part in percent, which all tables write with two decimals.
    Share,
    /// A number each second.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// A mean number, such as of requests under way.
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
pub enum Value {
    /// A number.
    Number(f64),
    /// A part of nothing: no page was scanned, so no part of them was reclaimed.
    OfNothing,
    /// The kernel does not count it, or nothing was copied.
    Absent,
}

impl Value {
    /// Returns the value of a count.
    pub(super) fn of(count: Option<u64>) -> Self {
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

/// Nothing where the kernel does not count it, and for a part of nothing.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number().serialize(serializer)
    }
}

/// A row of a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockRow {
    /// Its name, as in the tables of 2013.
    pub name: String,
    /// What its values are.
    #[serde(rename = "unit")]
    pub form: Form,
    /// Whether all kernels count the same; a note of the block says why not.
    pub comparable: bool,
    /// One for each kernel.
    pub values: Vec<Value>,
    /// What MMTests prints for a part of nothing.
    #[serde(skip)]
    pub of_nothing: Option<f64>,
    /// Whether tables of 2013 have it, even where no kernel counts it.
    #[serde(skip)]
    pub original: bool,
}

impl BlockRow {
    pub(super) fn new(name: impl Into<String>, form: Form, values: Vec<Value>) -> Self {
        Self { name: name.into(), form, values, of_nothing: None, original: true, comparable: true }
    }

    /// Returns whether any kernel has a number.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.values.iter().any(|value| *value != Value::Absent)
    }

    /// Returns whether any kernel has a number that is not zero.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.values.iter().any(|value| value.number().is_some_and(|number| number.abs() > 0.0))
    }
}

/// Rows of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// What they are about.
    pub title: &'static str,
    /// The word that MMTests of today puts before each row.
    #[serde(skip)]
    pub word: &'static str,
    /// The rows; documents leave out what no kernel counts.
    #[serde(serialize_with = "counted")]
    pub rows: Vec<BlockRow>,
    /// What must be known to read them.
    pub notes: Vec<String>,
}

fn counted<S: Serializer>(rows: &[BlockRow], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().filter(|row| row.is_counted()))
}

impl Block {
    pub(super) fn new(title: &'static str, word: &'static str, rows: Vec<BlockRow>) -> Self {
        Self { title, word, rows, notes: Vec::new() }
    }
}
