//! Change points: where the level of a series changes for good.
//!
//! Points are in order and all observed; what was not observed is left out by the caller, never
//! made up. The steps: wild points are pulled in towards the running median of 11; a least-squares
//! cut of the series gives its levels, and so its scatter and its memory (autocorrelation); a
//! second cut pays for that memory; each cut moves to where an autoregressive series with the two
//! levels fits best; then the weakest cut falls, one by one, until the ranks of up to 60 neighbours
//! on each side confirm all that are left; last, each stretch between them is scanned for one more
//! step, which finds what came with the newest points, and for a short level that ended again; both
//! must explain the stretch better than memory alone.
//! Which points are worth a look, and what a change means, is left to the callers.

mod alert;
mod creep;
mod level;
mod memory;
mod partition;
mod scan;
mod search;
mod visit;

pub use alert::{FollowUp, Group, Span, follow_up, groups};
pub use creep::{Creep, creep};
use level::{Scale, Scatter, running_medians};
use partition::Partition;
use search::Series;

use crate::ratio::KnownScatter;

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    /// Fewest points of a level between two changes, at least 1. One point after the last change
    /// and two before the first are enough if they lie far enough away.
    pub segment_min: usize,
    /// Fewest points of a level that ends where the old one returns: fewer are wild. 0 looks for
    /// none.
    pub visit_min: usize,
    /// Least difference of the levels, in the points' unit: for points that are logarithms, the
    /// logarithm of a ratio.
    pub magnitude_min: f64,
    /// Largest p of the rank test, above 0 and at most 1; with what is no such chance nothing is
    /// found. What only the scan finds is asked a tenth of it, the search for the place
    /// included.
    pub p_max: f64,
}

impl Default for Criteria {
    /// Four points, three of a level that ends again, any difference, one in a thousand.
    fn default() -> Self {
        Self {
            segment_min: 4,
            visit_min: 3,
            magnitude_min: 0.0,
            p_max: 1e-3,
        }
    }
}

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first point of the new level.
    pub at: usize,
    /// Where that point lies with a probability of 95 %.
    pub span: Span,
    /// Median of up to 60 points before, in the points' unit.
    pub before: f64,
    /// Median of up to 60 points from the change on, in the points' unit.
    pub after: f64,
    /// Deviation of points around their level, in their unit.
    pub deviation: f64,
    /// Chance of a step as clear as this anywhere between its neighbours without one: by ranks or
    /// by distance, whichever is rarer; two-sided, memory and the search for the place taken
    /// into account.
    pub p: f64,
}

/// Returns the changes of a series, in order.
///
/// Equal points, and fewer than six, have none. The answer does not depend on the points' unit or
/// origin (but `magnitude_min` is in their unit). Time grows as n log n.
///
/// `None` when a point is not finite, or the points lie so far apart that their range is not.
#[must_use]
pub fn changes(points: &[f64], criteria: &Criteria) -> Option<Vec<Change>> {
    changes_beside(points, None, criteria)
}

/// Returns the changes of a series of which it is known how much its points scatter around their
/// level, as medians of repeats show: few points alone tell little of it.
///
/// What is known counts as far as the points around both levels of a step scatter like it: points
/// that scatter more are judged by themselves.
///
/// `None` as for [`changes`].
#[must_use]
pub fn changes_beside(
    points: &[f64],
    known: Option<KnownScatter>,
    criteria: &Criteria,
) -> Option<Vec<Change>> {
    if !fit(points) {
        return None;
    }
    let Some(OnScale {
        scale,
        tame,
        scatter,
    }) = OnScale::fit(points)
    else {
        return Some(Vec::new());
    };
    let mut partition = Partition::new(search::price(tame.len(), scatter));
    tame.iter().for_each(|point| partition.push(*point));
    let series = Series {
        raw: points,
        tame: &tame,
        scale,
        scatter,
        known: known.map(|known| KnownScatter {
            variance: known.variance / (scale.deviation * scale.deviation),
            ..known
        }),
    };
    Some(series.confirm(partition.cuts(), criteria))
}

/// A series on its own scale, and how it scatters there.
struct OnScale {
    scale: Scale,
    tame: Vec<f64>,
    scatter: Scatter,
}

impl OnScale {
    /// None for points that are all equal.
    fn fit(points: &[f64]) -> Option<Self> {
        let running = running_medians(points, 0, level::WINDOW);
        let scale = Scale::measure(points, &running)?;
        let tame: Vec<f64> = points
            .iter()
            .zip(&running)
            .map(|(point, running)| scale.tame(*point, *running))
            .collect();
        let scatter = search::first_pass(&tame);
        Some(Self {
            scale,
            tame,
            scatter,
        })
    }
}

/// Tells whether points can be reckoned with: all finite, and so is their range.
fn fit(points: &[f64]) -> bool {
    let low = points.iter().copied().fold(0.0, f64::min);
    let high = points.iter().copied().fold(0.0, f64::max);
    points.iter().all(|point| point.is_finite()) && (high - low).is_finite()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

    use super::{Criteria, changes};
    use crate::synthetic::{Chance, Noise};

    fn stepped(noise: Noise, step: f64, seed: u64) -> Vec<f64> {
        let mut points = noise.values(200, &mut Chance::new(seed));
        points[120..].iter_mut().for_each(|point| *point += step);
        points
    }

    /// Huge ones, the smallest ones, and both.
    fn any_finite() -> impl Strategy<Value = f64> {
        let small = prop::num::f64::SUBNORMAL | prop::num::f64::ZERO;
        proptest::prop_oneof![small, prop::num::f64::NORMAL, -1.0..1.0]
    }

    fn places(points: &[f64]) -> Vec<usize> {
        changes(points, &Criteria::default())
            .unwrap()
            .iter()
            .map(|change| change.at)
            .collect()
    }

    #[test]
    fn a_step_is_found_with_its_levels() {
        let found = changes(&stepped(Noise::Normal, 5.0, 1), &Criteria::default()).unwrap();
        assert_eq!(found.len(), 1);
        let change = found[0];
        assert_eq!(change.at, 120);
        assert!(change.span.earliest <= 120 && 120 <= change.span.latest);
        assert!(
            (change.before - 0.0).abs() < 0.5 && (change.after - 5.0).abs() < 0.5,
            "{change:?}"
        );
        assert!(
            (change.deviation - 1.0).abs() < 0.2 && change.p < 1e-9,
            "{change:?}"
        );
    }

    #[test]
    fn what_does_not_change_has_no_changes() {
        assert!(places(&[]).is_empty());
        assert!(places(&[1.0]).is_empty());
        assert!(places(&[7.5; 300]).is_empty());
        assert!(places(&[1.0, 2.0, 1.0, 2.0, 1.0]).is_empty());
    }

    #[test]
    fn a_step_without_any_noise_is_found() {
        let mut points = [1.0e9; 60];
        points[40..].fill(1.0e9 + 1.0);
        assert_eq!(places(&points), [40]);
    }

    #[test]
    fn tiny_numbers_have_no_changes() {
        let mut points = [0.0; 60];
        points[40..].fill(f64::MIN_POSITIVE * f64::EPSILON);
        assert!(places(&points).is_empty());
    }

    #[test]
    fn one_wild_point_or_two_are_no_change() {
        let mut points = Noise::Normal.values(200, &mut Chance::new(4));
        points[100] = 500.0;
        points[101] = 400.0;
        assert!(places(&points).is_empty());
    }

    #[test]
    fn change_below_criteria_is_none() {
        let points = stepped(Noise::Normal, 5.0, 1);
        let with = |criteria: Criteria| changes(&points, &criteria).unwrap().len();
        assert_eq!(
            with(Criteria {
                magnitude_min: 4.0,
                ..Criteria::default()
            }),
            1
        );
        assert_eq!(
            with(Criteria {
                magnitude_min: 6.0,
                ..Criteria::default()
            }),
            0
        );
        assert_eq!(
            with(Criteria {
                magnitude_min: f64::NAN,
                ..Criteria::default()
            }),
            0
        );
        assert_eq!(
            with(Criteria {
                p_max: f64::NAN,
                ..Criteria::default()
            }),
            0
        );
        assert_eq!(
            with(Criteria {
                segment_min: 0,
                ..Criteria::default()
            }),
            1
        );
    }

    #[test]
    fn what_is_not_finite_gets_no_answer() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(changes(&[1.0, bad, 2.0], &Criteria::default()), None);
        }
        assert_eq!(changes(&[f64::MAX, -f64::MAX], &Criteria::default()), None);
    }

    proptest! {
        #[test]
        fn unit_and_origin_are_no_matter(
            seed in 0_u64..1000,
            scale in -20..20_i32,
            origin in -1e3..1e3,
        ) {
            let points = stepped(Noise::Bimodal, 4.0, seed);
            // A power of two keeps every digit.
            let other: Vec<f64> = points
                .iter()
                .map(|point| point * 2.0_f64.powi(scale))
                .collect();
            prop_assert_eq!(places(&points), places(&other));
            let other: Vec<f64> = points.iter().map(|point| point + origin).collect();
            prop_assert_eq!(places(&points), places(&other));
        }

        #[test]
        fn series_upside_down_changes_at_same_places(seed in 0_u64..1000) {
            let points = stepped(Noise::Outliers, 3.0, seed);
            let other: Vec<f64> = points.iter().map(|point| -point).collect();
            prop_assert_eq!(places(&points), places(&other));
        }

        #[test]
        fn any_finite_points_get_an_answer_in_order(
            points in prop::collection::vec(any_finite(), 0..80),
            segment_min in 0_usize..9,
        ) {
            let criteria = Criteria {
                segment_min,
                p_max: 0.5,
                ..Criteria::default()
            };
            for change in changes(&points, &criteria).unwrap_or_default() {
                prop_assert!(change.at >= segment_min.min(2) && change.at < points.len());
                prop_assert!(change.span.earliest <= change.at && change.at <= change.span.latest);
                prop_assert!(change.before.is_finite() && change.after.is_finite());
                prop_assert!((0.0..=1.0).contains(&change.p));
            }
        }
    }
}
