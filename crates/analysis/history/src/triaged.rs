//! Alerts with their triage decisions.

use model::{Decision, Release, Triage};

use super::alerts::Alert;
use super::gather::History;
use super::index::KernelIx;

/// An alert and the newest decision about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Triaged {
    /// The alert as the history has it now.
    pub alert: Alert,
    /// The newest decision that covers it, if any.
    pub decided: Option<Decision>,
}

impl Triaged {
    /// Returns whether it is open: there is a regression, and no decision covers it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let grew = self
            .decided
            .as_ref()
            .is_some_and(|decided| self.alert.worse().count() > decided.worse);
        self.alert.worse().next().is_some() && (self.decided.is_none() || grew)
    }

    /// Returns whether its commit must still be found: it is open, or a confirmed regression.
    #[must_use]
    pub fn needs_commit(&self) -> bool {
        let is_real = self
            .decided
            .as_ref()
            .is_some_and(|decided| decided.triage == Triage::Real);
        self.is_open() || (is_real && self.alert.worse().next().is_some())
    }

    /// Returns how many series became worse since the decision.
    #[must_use]
    pub fn more_since(&self) -> usize {
        self.decided.as_ref().map_or(0, |decided| {
            self.alert.worse().count().saturating_sub(decided.worse)
        })
    }
}

/// Finds the newest decision about each alert: about its range of kernels or a wider one, as
/// kernels measured later make ranges narrower. A decision about a creeping level holds for all
/// kernels that follow.
#[must_use]
pub fn triage_alerts(
    history: &History,
    alerts: Vec<Alert>,
    decisions: &[Decision],
) -> Vec<Triaged> {
    let mut triaged = Vec::new();
    for alert in alerts {
        let newest_first = decisions.iter().rev();
        let decided = newest_first
            .filter(|decided| decided.track == alert.decision_track())
            .find(|decided| covers(history, decided, &alert))
            .cloned();
        triaged.push(Triaged { alert, decided });
    }
    triaged
}

/// Returns whether a decision's range of kernels covers an alert of the same track.
fn covers(history: &History, decided: &Decision, alert: &Alert) -> bool {
    let version = |kernel: KernelIx| &history.kernel(kernel).release;
    if alert.is_creep() {
        return decided.after == version(alert.after).as_str();
    }
    // A kernel that was decided on and deleted has its version only.
    let begins = match history.ranks_of(&alert.track, &decided.after) {
        Some((first, _)) => first <= history.rank(alert.after),
        None => Release::parse(&decided.after) <= *version(alert.after),
    };
    let ends = match history.ranks_of(&alert.track, &decided.at) {
        Some((_, last)) => history.rank(alert.at) <= last,
        None => *version(alert.at) <= Release::parse(&decided.at),
    };
    begins && ends
}
