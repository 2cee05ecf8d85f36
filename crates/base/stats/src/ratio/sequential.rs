//! Ratings that are made again after each further group of both sides, and are wrong no more often
//! for it.

use super::estimate::{Q_MAX, Rule, rate_by, rate_neighbours};
use super::forecast::{self, Plan};
use super::spending::bounds;
use super::{History, RatioEstimate, Scores};
use crate::distribution::{normal_two_sided, normal_upper_quantile};

/// Chances of a wrong verdict at any look for which bounds are known; between them, p is
/// interpolated.
const CHANCES: [f64; 11] = [
    0.99,
    0.7,
    0.4,
    0.2,
    2.0 * Q_MAX,
    Q_MAX,
    0.02,
    5e-3,
    1e-3,
    1e-4,
    1e-6,
];
/// Of these, the one of both tails of the interval of 90 %, and of the one of 95 %.
const SAME: usize = 4;
const ALARM: usize = 5;
/// A look takes two groups of each side: one shows no scatter.
pub(crate) const FIRST: usize = 2;
/// Most groups of each side that looks are planned for.
const GROUPS_MAX: usize = 100;

/// A plan to look at two sides after each further group, up to a number of groups of each side,
/// that keeps the chance of a wrong verdict at *any* look to what it is for one.
///
/// Looks share the chance of 5 %: after the part `t` of all groups, `0.05 t³` of it are spent (Lan
/// and DeMets 1983; this function from Kim and DeMets 1987). Each look then has a level, such that
/// a sum of normal increments crosses one of the bounds with that chance, and a rating's p is held
/// against the level instead of 5 % (the significance level approach for Student's t: Pocock 1977;
/// Jennison and Turnbull 2000, chapter 4). Intervals leave out the level's tails, so that all of
/// them together hold the true ratio with a chance of 95 % (repeated confidence intervals, Jennison
/// and Turnbull 1989).
///
/// Chosen by measurement (`make bench-stats` prints it): it finds as much as O'Brien and Fleming's
/// spending and needs fewer groups; Pocock's and an always-valid mixture (Robbins 1970) find much
/// less with ten groups and fewer.
///
/// ```
/// use stats::{Better, Scores, Sequential, Verdict};
///
/// let (base, new) = ([100.0, 101.0, 99.5, 100.5, 99.0], [110.2, 111.0, 109.5, 110.0, 110.7]);
/// let plan = Sequential::new(10);
/// for groups in 2..=5 {
///     let of = |side: &[f64; 5]| Scores::new(&side.map(|value| [value])[..groups], Better::Higher);
///     let look = plan.look(&of(&base)?, &of(&new)?, 0.02);
///     let verdict = look.rating.verdict(look.rating.p());
///     assert_eq!(verdict == Some(Verdict::Better), groups >= 3, "{groups} {look:?}");
/// }
/// # Ok::<(), stats::ScoresError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sequential {
    groups_max: usize,
    /// For each of [`CHANCES`], the bounds of the looks, in deviations.
    bounds: Vec<Vec<f64>>,
}

/// What a look shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// The rating: what it says is as sure as it claims over all looks of the plan. Its p,
    /// two-sided and beyond the margin, is the least chance of a false alarm at any look at
    /// which this one raises one (the repeated p of Jennison and Turnbull 2000, chapter 9),
    /// and may be put among those of other plans ([`families`](crate::families())); its intervals
    /// hold for all looks. The forecast of an unclear verdict takes the later looks' levels,
    /// and those beyond the plan as the last.
    ///
    /// Unrated for one group of a side.
    pub rating: RatioEstimate,
    /// Largest p that one look by itself ([`rate`](crate::estimate_ratio())) may have here for a
    /// difference.
    pub level: f64,
    /// Whether the plan has no further look: what is unclear stays so.
    pub is_final: bool,
}

impl Sequential {
    /// Plans looks at two groups of each side and after each further one, up to a number from 2 to
    /// 100; what lies outside is moved there.
    #[must_use]
    pub fn new(groups_max: usize) -> Self {
        let groups_max = groups_max.clamp(FIRST, GROUPS_MAX);
        Self::with_bounds(groups_max, |chance| {
            bounds(FIRST, groups_max, |share| chance * share.powi(3))
        })
    }

    /// A plan of other bounds: those of looks from [`FIRST`] on, for a chance of all.
    pub(crate) fn with_bounds(groups_max: usize, bounds: impl Fn(f64) -> Vec<f64>) -> Self {
        Self {
            groups_max,
            bounds: CHANCES.into_iter().map(bounds).collect(),
        }
    }

    /// Returns how many groups of each side the last look has.
    #[must_use]
    pub fn groups_max(&self) -> usize {
        self.groups_max
    }

    /// Looks at both sides with all groups that they have so far. `margin` is that of
    /// [`rate`](crate::estimate_ratio()).
    ///
    /// The fewer groups of both sides say which look it is, so that the same groups give the same
    /// answer whenever they are asked: there is no state. A look that was left out makes no
    /// other wrong. Each number of groups has one look; one with more groups than planned
    /// counts as the last.
    ///
    /// A history of the series is not asked: at the small levels of early looks, a side that
    /// scatters more than its history raises false alarms, and from five groups on a history
    /// does not help to find more (measured).
    #[must_use]
    pub fn look(&self, base: &Scores, new: &Scores, margin: f64) -> Look {
        self.look_by(base, new, &|rule| {
            rate_by(base, new, &History::default(), margin, rule)
        })
    }

    /// Looks at sides whose groups of the same place were measured one after the other: from ten
    /// pairs on by what each pair differs by ([`estimate_neighbours`](crate::estimate_neighbours())).
    #[must_use]
    pub fn look_at_neighbours(&self, base: &Scores, new: &Scores, margin: f64) -> Look {
        self.look_by(base, new, &|rule| rate_neighbours(base, new, margin, rule))
    }

    fn look_by(
        &self,
        base: &Scores,
        new: &Scores,
        rate: &dyn Fn(&Rule<'_>) -> RatioEstimate,
    ) -> Look {
        let groups = base.count().min(new.count());
        let is_final = groups >= self.groups_max;
        let at = groups.min(self.groups_max).checked_sub(FIRST);
        let tail =
            |chance: usize| at.map_or(0.0, |at| normal_two_sided(self.bounds[chance][at]) / 2.0);
        let deviations =
            |groups: usize| self.bounds[SAME][groups.clamp(FIRST, self.groups_max) - FIRST];
        let plan = Plan {
            deviations: &deviations,
            groups_max: self.groups_max.max(forecast::GROUPS_MAX),
            doubt: |degrees| 2.0 / degrees,
        };
        let rule = Rule {
            tails: [tail(ALARM), tail(SAME)],
            plan,
        };
        let mut rating = rate(&rule);
        rating.precision = rating.precision.zip(at).map(|(mut found, at)| {
            (found.p, found.p_margin) = (
                self.of_all_looks(at, found.p),
                self.of_all_looks(at, found.p_margin),
            );
            found
        });
        Look {
            rating,
            level: 2.0 * tail(ALARM),
            is_final,
        }
    }

    /// Returns the chance of all looks at which a p is as large as the level of one of them.
    fn of_all_looks(&self, at: usize, p: f64) -> f64 {
        let seen = deviations(p);
        let bound = |chance: usize| self.bounds[chance][at];
        let Some(above) = (0..CHANCES.len()).find(|chance| bound(*chance) > seen) else {
            return CHANCES[CHANCES.len() - 1];
        };
        let Some(below) = above.checked_sub(1) else {
            return 1.0;
        };
        let share = (seen - bound(below)) / (bound(above) - bound(below));
        let few = deviations(CHANCES[below]);
        let many = deviations(CHANCES[above]);
        normal_two_sided(few + share * (many - few))
    }
}

/// Returns how many deviations a two-sided p is.
fn deviations(p: f64) -> f64 {
    normal_upper_quantile(p / 2.0).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{GROUPS_MAX, Look, Sequential};
    use crate::{Better, History, Scores, Unclear, Verdict, estimate_ratio};

    const BASE: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.25];

    fn side(values: &[f64]) -> Scores {
        Scores::new(
            &values.iter().map(|value| [*value]).collect::<Vec<_>>(),
            Better::Higher,
        )
        .unwrap()
    }

    fn verdict(look: &Look) -> Verdict {
        look.rating.verdict(look.rating.p()).unwrap()
    }

    #[test]
    fn plan_with_one_look_rates_alike() {
        let base = side(&BASE[..2]);
        let new = side(&[103.0, 103.5]);
        let look = Sequential::new(2).look(&base, &new, 0.02);
        let once = estimate_ratio(&base, &new, &History::default(), 0.02);
        let one = look.rating.precision.unwrap();
        let other = once.precision.unwrap();
        assert!(
            (one.p - other.p).abs() < 1e-6 && (one.p_margin - other.p_margin).abs() < 1e-6,
            "{one:?} {other:?}"
        );
        let one = look.rating.interval().unwrap();
        let other = once.interval().unwrap();
        assert!(
            (one.low - other.low).abs() < 1e-6 && (one.high - other.high).abs() < 1e-6,
            "{one:?} {other:?}"
        );
        assert!(look.is_final && (look.level - 0.05).abs() < 1e-9);
    }

    /// Returns the verdict on the first groups against others that are a ratio of them.
    fn verdict_on(groups: usize, ratio: f64) -> Verdict {
        let new = BASE.map(|value| value * ratio);
        verdict(&Sequential::new(6).look(&side(&BASE[..groups]), &side(&new[..groups]), 0.02))
    }

    #[test]
    fn each_verdict_has_its_case() {
        assert_eq!(verdict_on(6, 1.1), Verdict::Better);
        assert_eq!(verdict_on(6, 1.0 / 1.1), Verdict::Worse);
        assert_eq!(verdict_on(6, 1.001), Verdict::Same);
        assert!(matches!(verdict_on(2, 1.05), Verdict::Unclear(_)));
        assert_eq!(verdict_on(1, 1.1), Verdict::Unclear(Unclear::Unrated));
    }

    #[test]
    fn levels_grow_and_only_last_is_final() {
        let plan = Sequential::new(6);
        let look = |groups: usize| {
            let values: Vec<f64> = (0..groups).map(|n| BASE[n % 6]).collect();
            plan.look(&side(&values), &side(&BASE), 0.02)
        };
        let levels: Vec<f64> = (1..=7).map(|groups| look(groups).level).collect();
        assert!(
            levels[0].abs() < 1e-12 && levels.windows(2).all(|pair| pair[0] <= pair[1]),
            "{levels:?}"
        );
        // Less than all is left to the last look.
        assert!(
            (0.03..0.05).contains(&levels[5]) && (levels[5] - levels[6]).abs() < 1e-12,
            "{levels:?}"
        );
        assert_eq!(
            [1, 5, 6, 7].map(|groups| look(groups).is_final),
            [false, false, true, true]
        );
    }

    /// Returns how many more groups noisy sides need under a plan.
    fn more(groups_max: usize) -> usize {
        let noisy = [100.0, 102.0, 98.5];
        let other = noisy.map(|value| value * 1.001);
        match verdict(&Sequential::new(groups_max).look(&side(&noisy), &side(&other), 0.02)) {
            Verdict::Unclear(Unclear::MoreGroups(more)) => more,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn forecast_follows_the_levels_of_its_plan() {
        assert!(
            more(3) < more(12) && more(12) <= more(60),
            "{} {} {}",
            more(3),
            more(12),
            more(60)
        );
    }

    #[test]
    fn any_number_of_groups_has_plan() {
        for (asked, planned) in [
            (0, 2),
            (2, 2),
            (GROUPS_MAX, GROUPS_MAX),
            (usize::MAX, GROUPS_MAX),
        ] {
            let plan = Sequential::new(asked);
            assert_eq!(plan.groups_max(), planned);
            assert!(plan.bounds.iter().all(|bounds| bounds.len() == planned - 1));
            for at in 0..planned - 1 {
                let grows = plan.bounds.windows(2).all(|pair| pair[0][at] < pair[1][at]);
                assert!(grows, "{planned} {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn one_of_many_looks_claims_no_more(
            pairs in prop::collection::vec((95.0..105.0, 95.0..105.0), 2..9),
            extra in 0_usize..2,
            groups_max in 2_usize..9,
        ) {
            let (mut base, new): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            base.extend(vec![101.0; extra]);
            let base = side(&base);
            let new = side(&new);
            let look = Sequential::new(groups_max).look(&base, &new, 0.02);
            let once = estimate_ratio(&base, &new, &History::default(), 0.02);
            prop_assert!(look.rating.p() >= once.p() - 1e-9, "{look:?} {once:?}");
            let all = look.rating.interval().unwrap();
            let one = once.interval().unwrap();
            prop_assert!(
                all.low <= one.low + 1e-9 && all.high >= one.high - 1e-9,
                "{all:?} {one:?}"
            );
            // What the level says of one look, the chance of all says of all.
            let alarm = once.p() <= look.level;
            prop_assert!(
                (once.p() - look.level).abs() < 1e-9 || alarm == (look.rating.p() <= 0.05),
                "{look:?} {once:?}"
            );
        }

        #[test]
        fn swapped_sides_mirror_the_look(
            base in prop::collection::vec(95.0..105.0, 2..6),
            new in prop::collection::vec(95.0..105.0, 2..6),
        ) {
            let plan = Sequential::new(5);
            let base = side(&base);
            let new = side(&new);
            let one = plan.look(&base, &new, 0.02);
            let other = plan.look(&new, &base, 0.02);
            prop_assert!((one.rating.effect + other.rating.effect).abs() < 1e-12);
            prop_assert!((one.rating.p() - other.rating.p()).abs() < 1e-9);
            prop_assert_eq!(
                verdict(&one) == Verdict::Same,
                verdict(&other) == Verdict::Same
            );
        }

        #[test]
        fn nothing_that_is_not_finite_comes_out(
            base in prop::collection::vec(
                prop::num::f64::POSITIVE | prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
                1..12,
            ),
            new in prop::collection::vec(any::<f64>().prop_map(f64::abs), 1..12),
            margin in any::<f64>(),
            groups_max in 0_usize..14,
        ) {
            let groups =
                |values: &[f64]| values.iter().map(|value| [*value]).collect::<Vec<_>>();
            let sides = Scores::new(&groups(&base), Better::Lower)
                .and_then(|a| Ok((a, Scores::new(&groups(&new), Better::Lower)?)));
            if let Ok((base, new)) = sides {
                let Look { rating, level, .. } =
                    Sequential::new(groups_max).look(&base, &new, margin);
                prop_assert!(rating.ratio().is_finite() && rating.ratio() > 0.0);
                prop_assert!(
                    (0.0..=0.05 + 1e-9).contains(&level) && (0.0..=1.0).contains(&rating.p())
                );
                if let Some(ends) = rating.interval() {
                    prop_assert!(
                        ends.low <= rating.ratio()
                            && rating.ratio() <= ends.high
                            && ends.high.is_finite()
                    );
                }
                prop_assert_eq!(
                    rating.verdict(rating.p()).is_some(),
                    margin > 0.0 && margin.ln_1p().is_finite()
                );
            }
        }
    }
}
