//! Triage decisions about alerts.

use std::fmt;
use std::str::FromStr;

use crate::UnixTime;

/// The outcome of a triage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Triage {
    /// The kernel costs more, without a benefit.
    Real,
    /// The older kernel did less than it should have, or the measurement misleads.
    Apparent,
    /// Something else improved, and that was worth it.
    TradeOff,
    /// A later kernel fixed it.
    Fixed,
    /// Marvin's users decided not to investigate.
    Ignored,
}

/// A decision about the changes between two kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The series of kernels: `cloud-amd64`.
    pub track: String,
    /// Version of the last kernel without the change.
    pub after: String,
    /// Version of the first kernel that certainly has the change.
    pub at: String,
    /// What the alert turned out to be.
    pub triage: Triage,
    /// The user's reason.
    pub note: String,
    /// Number of worse series at the time of the decision.
    pub worse: usize,
    /// When.
    pub decided_unix: UnixTime,
}

/// An unknown outcome of a triage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no outcome: expected real, apparent, trade-off, fixed or ignored")]
pub struct TriageError(String);

impl Triage {
    /// All decisions, in the order of help.
    pub const ALL: [Self; 5] = [
        Self::Real,
        Self::Apparent,
        Self::TradeOff,
        Self::Fixed,
        Self::Ignored,
    ];

    /// Returns the name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
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
        Self::ALL
            .into_iter()
            .find(|triage| triage.name() == text)
            .ok_or_else(|| TriageError(text.to_owned()))
    }
}

impl fmt::Display for Triage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Triage;

    #[test]
    fn words_are_read_as_they_are_written() {
        for triage in Triage::ALL {
            assert_eq!(triage.name().parse(), Ok(triage));
        }
        let error = "Real".parse::<Triage>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`Real` is no outcome: expected real, apparent, trade-off, fixed or ignored"
        );
    }
}
