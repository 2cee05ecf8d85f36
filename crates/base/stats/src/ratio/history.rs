//! How much the scores of one series scattered before.

use super::Scores;

/// What earlier sets of groups of the same series teach about its scatter. Each set's groups must
/// be alike: what changed between sets does not matter, what changed within one does.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct History {
    squares: f64,
    degrees: usize,
}

impl History {
    /// Adds a set; one group alone teaches nothing.
    pub fn add(&mut self, scores: &Scores) {
        self.squares += scores.squares();
        self.degrees += scores.count() - 1;
    }

    /// Returns the pooled variance of scores between groups, `sum (B(k) - 1) s(k)² / sum (B(k) -
    /// 1)`, in squares of logarithms; none without a set of two groups.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        (self.degrees > 0).then(|| self.squares / self.degrees as f64)
    }

    /// Returns its degrees of freedom, `sum (B(k) - 1)`.
    #[must_use]
    pub fn degrees(&self) -> usize {
        self.degrees
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
