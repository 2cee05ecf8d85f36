//! From values to one score for each group.

use super::precision::without_wild;
use super::resolution::Resolution;

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Better {
    /// The lower the better.
    Lower,
    /// The higher the better.
    Higher,
}

/// Share of a group's values that is cut off at each end.
const TRIM: f64 = 0.2;
/// Fewer values are not trimmed.
const TRIM_COUNT_MIN: usize = 5;

/// Why values have no score. Groups are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScoresError {
    /// There is no group.
    #[error("no group of values: at least one is needed")]
    NoGroups,
    /// A group has no values.
    #[error("group {} has no values: leave it out", .group + 1)]
    Empty {
        /// The group's index; texts count from 1.
        group: usize,
    },
    /// A value is NaN or infinite.
    #[error("group {} has a value that is not finite: it cannot be judged", .group + 1)]
    NotFinite {
        /// The group's index; texts count from 1.
        group: usize,
    },
    /// A value is negative or zero, and has no logarithm.
    #[error("group {} has a value that is not above zero: no ratio exists", .group + 1)]
    NotPositive {
        /// The group's index; texts count from 1.
        group: usize,
    },
    /// Sets of scores that are to be put together differ in their number of groups.
    #[error(
        "{one} groups and {other} groups cannot be put together: each must have measured everything"
    )]
    Uneven {
        /// Groups of the first set.
        one: usize,
        /// Groups of the one that differs.
        other: usize,
    },
}

/// One score for each group: the mean logarithm of its values, turned so that more is better. At
/// least one; all finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    logs: Vec<f64>,
    resolution: Resolution,
}

impl Scores {
    /// Scores groups: the 20 % trimmed mean of logarithms (Tukey and McLaughlin 1963), of fewer
    /// than five values the mean.
    ///
    /// # Errors
    /// When there is no group, a group is empty, or a value is not finite or not above zero.
    pub fn new<G: AsRef<[f64]>>(groups: &[G], better: Better) -> Result<Self, ScoresError> {
        let scores = groups
            .iter()
            .enumerate()
            .map(|(group, values)| score(group, values.as_ref(), better));
        let scores = scores.collect::<Result<Vec<f64>, ScoresError>>()?;
        if scores.is_empty() {
            return Err(ScoresError::NoGroups);
        }
        let values: Vec<f64> = groups
            .iter()
            .flat_map(|group| group.as_ref().iter().copied())
            .collect();
        Ok(Self {
            logs: scores,
            resolution: Resolution::read(&values),
        })
    }

    /// Returns whether so many values of a group are trimmed.
    #[must_use]
    pub fn is_trimmed(values: usize) -> bool {
        values >= TRIM_COUNT_MIN
    }

    /// Puts several questions to the same groups together: the mean of scores within each group,
    /// which is the logarithm of the geometric mean. Done group by group, what the questions
    /// share through their group is accounted for.
    ///
    /// # Errors
    /// When there is nothing to put together, or the numbers of groups differ.
    pub fn together(parts: &[Self]) -> Result<Self, ScoresError> {
        let first = parts.first().ok_or(ScoresError::NoGroups)?;
        let one = first.count();
        let count = parts.len() as f64;
        if let Some(uneven) = parts.iter().find(|part| part.count() != one) {
            return Err(ScoresError::Uneven {
                one,
                other: uneven.count(),
            });
        }
        // Divided before they are added: sums of finite numbers stay finite.
        let logs = (0..one)
            .map(|group| parts.iter().map(|part| part.logs[group] / count).sum())
            .collect();
        // Steps of many clocks even out.
        Ok(Self {
            logs,
            resolution: Resolution::FINE,
        })
    }

    /// Returns the scores, one for each group.
    #[must_use]
    pub fn as_slice(&self) -> &[f64] {
        &self.logs
    }

    /// Returns the value that stands for the whole side, in the unit of the values: the geometric
    /// mean of its groups without wild ones. The ratio of a rating is the ratio of both sides'
    /// centres.
    #[must_use]
    pub fn centre(&self, better: Better) -> f64 {
        let tame = without_wild(&self.logs);
        let mean = tame.iter().sum::<f64>() / tame.len() as f64;
        match better {
            Better::Lower => (-mean).exp(),
            Better::Higher => mean.exp(),
        }
    }

    /// Returns how many groups there are; at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.logs.len()
    }

    /// Returns what the values tell of the clock.
    pub(super) fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Returns the sum of squares around the mean.
    pub(crate) fn squares(&self) -> f64 {
        let mean = self.logs.iter().sum::<f64>() / self.count() as f64;
        self.logs.iter().map(|score| (score - mean).powi(2)).sum()
    }
}

/// Returns how many of so many values are left out at each end.
pub(super) fn trimmed_at_each_end(values: usize) -> usize {
    if values < TRIM_COUNT_MIN {
        0
    } else {
        (TRIM * values as f64) as usize
    }
}

fn score(group: usize, values: &[f64], better: Better) -> Result<f64, ScoresError> {
    if values.is_empty() {
        return Err(ScoresError::Empty { group });
    }
    if !values.iter().all(|value| value.is_finite()) {
        return Err(ScoresError::NotFinite { group });
    }
    if !values.iter().all(|value| *value > 0.0) {
        return Err(ScoresError::NotPositive { group });
    }
    let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    logs.sort_unstable_by(f64::total_cmp);
    let cut = trimmed_at_each_end(logs.len());
    let tame = &logs[cut..logs.len() - cut];
    let mean = tame.iter().sum::<f64>() / tame.len() as f64;
    Ok(match better {
        Better::Higher => mean,
        Better::Lower => -mean,
    })
}

#[cfg(test)]
mod tests {
    use super::{Resolution, Scores, ScoresError};
    use crate::Better;

    #[test]
    fn a_wild_value_among_five_does_not_count() {
        let scores = Scores::new(
            &[vec![1.0, 1.0, 1.0, 1.0, 1e9], vec![1.0, 1.0, 1.0, 16.0]],
            Better::Higher,
        )
        .unwrap();
        assert!(scores.as_slice()[0].abs() < 1e-12);
        assert!((scores.as_slice()[1] - 2.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn more_is_better_whatever_was_measured() {
        for (better, sign) in [(Better::Higher, 1.0), (Better::Lower, -1.0)] {
            let scores = Scores::new(&[[8.0]], better).unwrap();
            assert!((scores.as_slice()[0] - sign * 8.0_f64.ln()).abs() < 1e-12);
        }
    }

    #[test]
    fn scores_together_give_geometric_mean_of_groups() {
        let sets = [[2.0, 3.0], [8.0, 12.0]]
            .map(|groups| Scores::new(&groups.map(|value| [value]), Better::Higher).unwrap());
        let both = Scores::together(&sets).unwrap();
        assert!((both.as_slice()[0] - 4.0_f64.ln()).abs() < 1e-12);
        assert!((both.as_slice()[1] - 6.0_f64.ln()).abs() < 1e-12);
    }

    fn error_of(groups: &[Vec<f64>]) -> ScoresError {
        Scores::new(groups, Better::Lower).unwrap_err()
    }

    #[test]
    fn what_has_no_score_says_why() {
        assert_eq!(error_of(&[]), ScoresError::NoGroups);
        assert_eq!(
            error_of(&[vec![1.0], vec![]]),
            ScoresError::Empty { group: 1 }
        );
        assert_eq!(
            error_of(&[vec![f64::NAN]]),
            ScoresError::NotFinite { group: 0 }
        );
        assert_eq!(
            error_of(&[vec![f64::INFINITY]]),
            ScoresError::NotFinite { group: 0 }
        );
        assert_eq!(
            error_of(&[vec![0.0]]),
            ScoresError::NotPositive { group: 0 }
        );
        assert_eq!(
            error_of(&[vec![-3.0]]),
            ScoresError::NotPositive { group: 0 }
        );
        assert_eq!(Scores::together(&[]), Err(ScoresError::NoGroups));
        let [one, two] = [vec![1.0], vec![1.0, 2.0]].map(|logs| Scores {
            logs,
            resolution: Resolution::FINE,
        });
        assert_eq!(
            Scores::together(&[one, two]),
            Err(ScoresError::Uneven { one: 1, other: 2 })
        );
        let message = ScoresError::NotPositive { group: 3 }.to_string();
        assert_eq!(
            message,
            "group 4 has a value that is not above zero: no ratio exists"
        );
    }
}
