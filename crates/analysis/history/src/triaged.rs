//! Alerts with their triage decisions.

use model::{Decision, Release, Triage};

use super::alerts::Alert;
use super::gather::History;

/// An alert and the newest decision about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Triaged {
    /// The alert.
    pub alert: Alert,
    /// The decision.
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
    let about = |alert: &Alert, decided: &&Decision| {
        let version = |kernel: usize| &history.kernel(kernel).release;
        let covers = if alert.is_creep() {
            decided.after == version(alert.after).as_str()
        } else {
            // A kernel that was decided on and deleted has its version only.
            let begins = match history.ranks_of(&alert.track, &decided.after) {
                Some((first, _)) => first <= history.rank(alert.after),
                None => Release::of(&decided.after) <= *version(alert.after),
            };
            let ends = match history.ranks_of(&alert.track, &decided.at) {
                Some((_, last)) => history.rank(alert.at) <= last,
                None => *version(alert.at) <= Release::of(&decided.at),
            };
            begins && ends
        };
        decided.track == alert.decision_track() && covers
    };
    let with = |alert: Alert| {
        let decided = decisions
            .iter()
            .rev()
            .find(|decided| about(&alert, decided))
            .cloned();
        Triaged { alert, decided }
    };
    alerts.into_iter().map(with).collect()
}
