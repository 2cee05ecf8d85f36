//! What people came to think of an alert.

use std::fmt;
use std::str::FromStr;

/// What an alert turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Triage {
    /// The kernel does cost more, and nobody gains by it.
    Real,
    /// The older kernel did less than it should have, or the measurement misleads.
    Apparent,
    /// Something else gained, and that was worth it.
    TradeOff,
    /// A later kernel mended it.
    Fixed,
    /// Nobody is going to look at it.
    Ignored,
}

/// What somebody decided about the changes between two kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whose kernels follow each other: `cloud-amd64`.
    pub track: String,
    /// Version of the last kernel without the change.
    pub after: String,
    /// Version of the first kernel that surely has it.
    pub at: String,
    /// What it turned out to be.
    pub triage: Triage,
    /// Why.
    pub note: String,
    /// How many series were worse when it was decided.
    pub worse: usize,
    /// When, in seconds since 1970-01-01 UTC.
    pub decided_unix: i64,
}

/// A word that is no outcome of a triage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no outcome: expected real, apparent, trade-off, fixed or ignored")]
pub struct TriageError(String);

impl Triage {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Real, Self::Apparent, Self::TradeOff, Self::Fixed, Self::Ignored];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Apparent => "apparent",
            Self::TradeOff => "trade-off",
            Self::Fixed => "fixed",
            Self::Ignored => "ignored",
        }
    }
}

impl FromStr for Triage {
    type Err = TriageError;

    fn from_str(text: &str) -> Result<Self, TriageError> {
        Self::ALL.into_iter().find(|triage| triage.word() == text).ok_or_else(|| TriageError(text.to_owned()))
    }
}

impl fmt::Display for Triage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::Triage;

    #[test]
    fn words_are_read_as_they_are_written() {
        for triage in Triage::ALL {
            assert_eq!(triage.word().parse(), Ok(triage));
        }
        let error = "Real".parse::<Triage>().unwrap_err().to_string();
        assert_eq!(error, "`Real` is no outcome: expected real, apparent, trade-off, fixed or ignored");
    }
}
