//! The displayed part of a comparison, and its order.

use std::fmt;
use std::str::FromStr;

use crate::Style;

/// How to show a comparison. Verdicts are the same in all views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    /// The style of the tables.
    pub style: Style,
    /// Whether to unfold everything: environments, kernels, machines, parts of changes.
    pub verbose: bool,
    /// The order of the rows.
    pub sort: Sort,
    /// The displayed rows; by default all.
    pub only: Option<Only>,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// As the suite declares them.
    #[default]
    Suite,
    /// By effect, the worst first.
    Effect,
}

/// Which rows are displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Those that are worse on any kernel.
    Worse,
    /// Those that are better on any kernel.
    Better,
    /// Improvements and regressions.
    Changed,
}

/// An unknown order or filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not one of {known}")]
pub struct ViewError {
    word: String,
    known: &'static str,
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Suite => "suite",
            Self::Effect => "effect",
        })
    }
}

impl FromStr for Sort {
    type Err = ViewError;

    fn from_str(word: &str) -> Result<Self, ViewError> {
        match word {
            "suite" => Ok(Self::Suite),
            "effect" => Ok(Self::Effect),
            _ => Err(ViewError {
                word: word.to_owned(),
                known: "suite, effect",
            }),
        }
    }
}

impl FromStr for Only {
    type Err = ViewError;

    fn from_str(word: &str) -> Result<Self, ViewError> {
        match word {
            "worse" => Ok(Self::Worse),
            "better" => Ok(Self::Better),
            "changed" => Ok(Self::Changed),
            _ => Err(ViewError {
                word: word.to_owned(),
                known: "worse, better, changed",
            }),
        }
    }
}
