//! Alerts with their triage decisions, and with their notices.

use model::{Decision, Release, Told, Triage};

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
    /// Its notices, a row for each channel, oldest first.
    pub told: Vec<Told>,
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

    /// Returns whether it is open and has no notice to this lab's people. A notice holds when later
    /// kernels make the range narrower.
    #[must_use]
    pub fn is_untold(&self) -> bool {
        self.is_open() && self.told.iter().all(|told| told.is_report)
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
/// kernels that follow. Notices are found in the same way.
#[must_use]
pub fn triage_alerts(
    history: &History,
    alerts: Vec<Alert>,
    decisions: &[Decision],
    told: &[Told],
) -> Vec<Triaged> {
    let mut triaged = Vec::new();
    for alert in alerts {
        let newest_first = decisions.iter().rev();
        let decided = newest_first
            .filter(|decided| decided.track == alert.decision_track())
            .find(|decided| covers(history, [&decided.after, &decided.at], &alert))
            .cloned();
        let told = told
            .iter()
            .filter(|told| told.track == alert.decision_track())
            .filter(|told| covers(history, [&told.after, &told.at], &alert))
            .cloned()
            .collect();
        triaged.push(Triaged {
            alert,
            decided,
            told,
        });
    }
    triaged
}

/// Returns whether a range of versions covers an alert of the same track.
fn covers(history: &History, [after, at]: [&str; 2], alert: &Alert) -> bool {
    let version = |kernel: KernelIx| &history.kernel(kernel).release;
    if alert.is_creep() {
        return after == version(alert.after).as_str();
    }
    // A kernel that was decided on and deleted has its version only.
    let begins = match history.ranks_of(&alert.track, after) {
        Some((first, _)) => first <= history.rank(alert.after),
        None => Release::parse(after) <= *version(alert.after),
    };
    let ends = match history.ranks_of(&alert.track, at) {
        Some((_, last)) => history.rank(alert.at) <= last,
        None => *version(alert.at) <= Release::parse(at),
    };
    begins && ends
}
