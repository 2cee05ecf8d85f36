//! A rating held against the ranks of the same scores.

use super::{RatioEstimate, Scores};
use crate::{RankTest, rank_test};

/// Fewest groups on each side: fewer cannot differ enough in their ranks.
const GROUPS_MIN: usize = 5;
/// Largest p of a difference.
const P_MAX: f64 = 0.05;

/// What ranks say to a rating. It is a reason to look, not a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossCheck {
    /// The ranks of the scores; shift and interval are in logarithms, above 0 is better.
    pub ranks: RankTest,
    /// Whether both see a difference the same way at 5 %, or both see none.
    pub agrees: bool,
}

/// Holds a rating against the exact Mann-Whitney test of the scores that it rates.
///
/// `None` for fewer than five groups on a side and for an unrated ratio.
#[must_use]
pub fn cross_check(base: &Scores, new: &Scores, rating: &RatioEstimate) -> Option<CrossCheck> {
    let precision = rating.precision?;
    if base.count().min(new.count()) < GROUPS_MIN {
        return None;
    }
    let ranks = rank_test(base.as_slice(), new.as_slice())?;
    let one = precision.p <= P_MAX;
    let other = ranks.p <= P_MAX;
    // A difference whose two signs part is none that both see.
    let agrees = one == other && (!one || rating.effect * ranks.dominance > 0.0);
    Some(CrossCheck { ranks, agrees })
}

#[cfg(test)]
mod tests {
    use super::super::{History, Scores, estimate_ratio};
    use super::cross_check;
    use crate::Better;

    fn side(values: &[f64]) -> Scores {
        Scores::new(
            &values.iter().map(|value| [*value]).collect::<Vec<_>>(),
            Better::Higher,
        )
        .unwrap()
    }

    fn agrees(base: &[f64], new: &[f64]) -> Option<bool> {
        let base = side(base);
        let new = side(new);
        cross_check(
            &base,
            &new,
            &estimate_ratio(&base, &new, &History::default(), 0.0),
        )
        .map(|check| check.agrees)
    }

    #[test]
    fn ranks_find_what_one_wild_group_hides() {
        let base = [100.0, 101.0, 99.0, 100.5, 99.5];
        assert_eq!(agrees(&base, &base.map(|v| v * 1.1)), Some(true));
        assert_eq!(
            agrees(&base, &[100.1, 100.9, 99.1, 100.4, 99.6]),
            Some(true)
        );
        // Each is above the base; one so far that nothing is sure of the mean.
        assert_eq!(
            agrees(&base, &[102.0, 103.0, 102.5, 101.5, 400.0]),
            Some(false)
        );
    }

    #[test]
    fn few_groups_are_not_checked() {
        assert_eq!(
            agrees(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0, 9.0]),
            None
        );
        assert_eq!(agrees(&[1.0], &[5.0]), None);
    }
}
