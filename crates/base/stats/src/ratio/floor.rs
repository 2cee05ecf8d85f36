//! The noise floor: how much groups of the same subject scatter, and which change of another
//! subject they would show.

use super::Scores;
use super::estimate::Q_MAX;
use super::forecast::POWER;
use super::precision::{Side, beyond, error, student_upper, without_wild};
use crate::distribution::student_upper_quantile;

/// Steps of a bisection: as many as a number has bits.
const STEPS: usize = 64;

/// How groups of the same subject scatter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// How many groups showed it, without wild ones.
    pub groups: usize,
    /// Variance of their scores, in squares of logarithms.
    variance: f64,
}

impl Floor {
    /// Returns the floor of sets of groups. The groups of a set measured the same; sets may differ
    /// in what they measured. `None` without a set of two groups.
    #[must_use]
    pub fn estimate<'a>(sets: impl IntoIterator<Item = &'a Scores>) -> Option<Self> {
        let mut groups = 0;
        let mut degrees = 0;
        let mut squares = 0.0;
        for scores in sets {
            let tame = without_wild(scores.as_slice());
            if tame.len() > 1 {
                groups += tame.len();
                degrees += tame.len() - 1;
                squares += Side::new(&tame, 0.0).squares();
            }
        }
        (degrees > 0).then(|| Self {
            groups,
            variance: squares / degrees as f64,
        })
    }

    /// Returns the coefficient of variation between groups, as a part of one.
    #[must_use]
    pub fn variation(&self) -> f64 {
        // Of a logarithmic normal distribution.
        self.variance.exp_m1().sqrt()
    }

    /// Returns the least change, as a part of one, that so many groups of each side show to exceed
    /// a margin with a chance of 80 %, if both scatter like these: by the rule of
    /// [`rate`](super::estimate_ratio()), for one question without a history.
    ///
    /// `None` for fewer than two groups of each side, and for a margin that is negative or not
    /// finite.
    #[must_use]
    pub fn least_change(&self, groups: usize, margin: f64) -> Option<f64> {
        let margin = Some(margin.ln_1p()).filter(|margin| *margin >= 0.0 && margin.is_finite())?;
        let count = Some(groups).filter(|groups| *groups > 1)? as f64;
        let side = Side::like(count, self.variance);
        let found = error(&[side, side], None)?;
        // The least effect that counts as shown.
        let mut few = margin;
        let mut many = margin + student_upper_quantile(Q_MAX / 2.0, found.degrees)? * found.error;
        for _ in 0..STEPS {
            let middle = f64::midpoint(few, many);
            let tail = |difference: f64| student_upper(difference / found.error, found.degrees);
            if beyond(middle, margin, tail) > Q_MAX {
                few = middle;
            } else {
                many = middle;
            }
        }
        let missed = student_upper_quantile(1.0 - POWER, found.degrees)? * found.error;
        Some((many + missed).exp_m1()).filter(|change| change.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::Floor;
    use crate::synthetic::Chance;
    use crate::{Better, History, Scores, Verdict, estimate_ratio};

    fn side(values: &[f64]) -> Scores {
        Scores::new(
            &values.iter().map(|value| [*value]).collect::<Vec<_>>(),
            Better::Higher,
        )
        .unwrap()
    }

    /// Returns groups around a centre with 2 % noise.
    fn noisy(count: usize, centre: f64, chance: &mut Chance) -> Vec<f64> {
        (0..count)
            .map(|_| centre * (0.02 * chance.normal()).exp())
            .collect()
    }

    #[test]
    fn variation_is_that_between_groups() {
        let floor = Floor::estimate([&side(&noisy(2000, 50.0, &mut Chance::new(1)))]).unwrap();
        assert!((floor.variation() - 0.02).abs() < 0.001, "{floor:?}");
        assert_eq!(Floor::estimate([&side(&[7.0])]), None);
        let equal = Floor::estimate([&side(&[7.0; 9])]).unwrap();
        assert!(equal.variation() < 1e-9 && equal.least_change(5, 0.02).unwrap() < 0.0201);
    }

    #[test]
    fn least_change_is_shown_four_times_of_five() {
        let mut chance = Chance::new(2);
        let floor = Floor::estimate([&side(&noisy(2000, 50.0, &mut chance))]).unwrap();
        for (groups, margin) in [(5, 0.02), (20, 0.02), (5, 0.001), (20, 0.001)] {
            let change = floor.least_change(groups, margin).unwrap();
            let shown = (0..1000).filter(|_| {
                let base = side(&noisy(groups, 50.0, &mut chance));
                let new = side(&noisy(groups, 50.0 * (1.0 + change), &mut chance));
                let rating = estimate_ratio(&base, &new, &History::default(), margin);
                rating.verdict(rating.p()) == Some(Verdict::Better)
            });
            let share = shown.count() as f64 / 1000.0;
            assert!(
                (0.76..=0.86).contains(&share),
                "{groups} groups, margin {margin}, change {change}: {share}"
            );
        }
    }

    #[test]
    fn impossible_questions_have_no_answer() {
        let floor = Floor::estimate([&side(&[1.0, 1.1, 1.2])]).unwrap();
        assert_eq!(floor.least_change(1, 0.02), None);
        for margin in [-0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(floor.least_change(5, margin), None);
        }
    }

    proptest! {
        #[test]
        fn more_groups_show_smaller_changes(
            values in prop::collection::vec(1.0..2.0, 2..20),
            groups in 2..40_usize,
        ) {
            let floor = Floor::estimate([&side(&values)]).unwrap();
            let [few, many] = [groups, groups + 1].map(|groups| floor.least_change(groups, 0.01));
            prop_assert!(
                many.unwrap() <= few.unwrap_or(f64::INFINITY) && many.unwrap() >= 0.01 - 1e-12
            );
        }
    }
}
