//! How much the scores of one series scattered before.

use std::f64::consts::FRAC_PI_2;

use super::prior::{Prior, VARIANCE_MIN};
use super::{KnownScatter, Scores};

/// What earlier sets of groups of the same series teach about its scatter. Each set's groups must
/// be alike: what changed between sets does not matter, what changed within one does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    sets: Vec<Set>,
    degrees: usize,
}

/// How one set scattered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Set {
    /// In squares of logarithms.
    pub(super) variance: f64,
    /// Degrees of freedom, at least one.
    pub(super) degrees: f64,
}

impl History {
    /// Adds a set; one group alone teaches nothing.
    pub fn add(&mut self, scores: &Scores) {
        let degrees = scores.count() - 1;
        if degrees > 0 {
            self.degrees += degrees;
            self.sets.push(Set {
                variance: scores.squares() / degrees as f64,
                degrees: degrees as f64,
            });
        }
    }

    /// Returns the pooled variance of scores between groups, `sum (B(k) - 1) s(k)² / sum (B(k) -
    /// 1)`, in squares of logarithms; none without a set of two groups.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        let squares: f64 = self.sets.iter().map(|set| set.variance * set.degrees).sum();
        (self.degrees > 0).then(|| squares / self.degrees as f64)
    }

    /// Returns its degrees of freedom, `sum (B(k) - 1)`.
    #[must_use]
    pub fn degrees(&self) -> usize {
        self.degrees
    }

    /// Returns how much medians of so many groups scatter by what it says; none without a set of two
    /// groups, and where nothing scatters.
    #[must_use]
    pub fn scatter_of_medians(&self, groups: usize) -> Option<KnownScatter> {
        let Prior { variance, degrees } = self.prior()?;
        let count = groups as f64;
        // Of a normal distribution; one and two are means.
        let loss = if groups > 2 {
            FRAC_PI_2 * count / (count + FRAC_PI_2 - 1.0)
        } else {
            1.0
        };
        (groups > 0 && variance > VARIANCE_MIN).then_some(KnownScatter {
            variance: variance * loss / count,
            degrees,
        })
    }

    /// Returns what it says of the scatter of further groups; none without a set of two groups.
    pub(super) fn prior(&self) -> Option<Prior> {
        Prior::fit(&self.sets)
    }
}

#[cfg(test)]
mod tests {
    use super::{History, Scores};
    use crate::Better;

    fn set(logs: &[f64]) -> Scores {
        let groups: Vec<[f64; 1]> = logs.iter().map(|log| [log.exp()]).collect();
        Scores::new(&groups, Better::Higher).unwrap()
    }

    #[test]
    fn sets_are_pooled_around_their_own_means() {
        let mut history = History::default();
        assert_eq!((history.variance(), history.degrees()), (None, 0));
        history.add(&set(&[7.0]));
        assert_eq!(history.degrees(), 0);
        history.add(&set(&[0.0, 2.0]));
        history.add(&set(&[10.0, 10.0, 10.0]));
        assert_eq!(history.degrees(), 3);
        assert!((history.variance().unwrap() - 2.0 / 3.0).abs() < 1e-12);
    }
}
