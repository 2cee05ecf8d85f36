//! Counts of many things in few groups: how often each was seen, over how much of what they are
//! counted per. Tells which rates differ between two sides.
//!
//! The groups of a side scatter more than counts of chance alone do, and differently for each
//! thing; a few groups show that badly. So the things teach each other: a count scatters by `f m +
//! v m²` around its mean `m`, with `f` and `v` common to all, and what its own groups say counts
//! beside it (Robinson and Smyth 2007, "Moderated statistical tests for assessing differences in
//! tag abundance"; quasi-likelihood as in Lund et al. 2012).

use crate::distribution::{student_two_sided, student_upper_quantile};

/// Degrees of freedom of the common scatter, found by calibration on samples of real processors.
const COMMON_DEGREES: f64 = 6.0;
/// A thing seen less often per group, both sides together, teaches nothing of the common scatter.
const TEACHING: f64 = 5.0;
/// Rounds of the fit; a thing that scatters so many times more than the line says is left out of
/// the later ones.
const ROUNDS: usize = 8;
const WILD: f64 = 8.0;
/// Chance beyond each end of an interval.
const TAIL: f64 = 0.025;

/// What groups of two sides were counted over: positive and finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposures([Vec<f64>; 2]);

/// The rates of one thing on two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateDifference {
    /// The rate of each side: all it was seen over all it was counted over.
    pub rates: [f64; 2],
    /// Half the interval of 95 % of the difference; none where a side has one group and nothing
    /// tells how it scatters.
    pub half: Option<f64>,
    /// Chance of a difference at least so large without one, two-sided; 1 where nothing tells.
    pub p: f64,
    /// How many times more than chance alone the counts scatter.
    pub dispersion: f64,
}

impl RateDifference {
    /// Returns the second rate less the first.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.rates[1] - self.rates[0]
    }
}

/// How much more than chance alone counts scatter, as many things have it in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommonScatter {
    /// Times the mean, at least 1.
    linear: f64,
    square: f64,
}

impl CommonScatter {
    fn expected_dispersion(&self, thing: &Seen) -> f64 {
        self.linear + self.square * thing.mean
    }

    fn fit([weights, means, squares, own, products]: [f64; 5]) -> Self {
        let determinant = weights * squares - means * means;
        let slope = (weights * products - means * own) / determinant;
        let slope = if determinant > 0.0 && slope > 0.0 {
            slope
        } else {
            0.0
        };
        let linear = if weights > 0.0 {
            (own - slope * means) / weights
        } else {
            1.0
        };
        if linear >= 1.0 {
            return Self {
                linear,
                square: slope,
            };
        }
        // Nothing scatters less than chance alone: the line then begins there.
        let slope = if squares > 0.0 {
            ((products - means) / squares).max(0.0)
        } else {
            0.0
        };
        Self {
            linear: 1.0,
            square: slope,
        }
    }
}

impl Exposures {
    /// Takes what the groups of both sides were counted over; `None` without a group, or for what
    /// is not positive and finite.
    #[must_use]
    pub fn new(sides: [Vec<f64>; 2]) -> Option<Self> {
        let mut all = sides.iter().flatten();
        let is_valid = all.all(|over| *over > 0.0 && over.is_finite())
            && sides.iter().all(|side| !side.is_empty());
        is_valid.then_some(Self(sides))
    }

    /// Returns the rates of things and their differences, in the order given. Each thing has a
    /// count for each group; a missing one is 0.
    #[must_use]
    pub fn differences(
        &self,
        things: &[[Vec<u64>; 2]],
        common: &CommonScatter,
    ) -> Vec<RateDifference> {
        things
            .iter()
            .map(|counts| self.difference(&Seen::count(self, counts), *common))
            .collect()
    }

    /// Returns the scatter that things have in common: fits it to their own, a line by weighted
    /// least squares, each weighed as the squares of its counts scatter (the trend of Anders
    /// and Huber 2010 and of Love et al. 2014).
    #[must_use]
    pub fn common_scatter(&self, things: &[[Vec<u64>; 2]]) -> CommonScatter {
        let mut common = CommonScatter {
            linear: 1.0,
            square: 0.0,
        };
        let seen = things.iter().map(|counts| Seen::count(self, counts));
        let teaching: Vec<Seen> = seen.filter(|thing| thing.mean >= TEACHING).collect();
        if self.degrees() < 1.0 {
            return common;
        }
        for round in 0..ROUNDS {
            // Sums of weights, means, squares of means, dispersions, and products of both.
            let mut sums = [0.0; 5];
            for thing in &teaching {
                let expected = common.expected_dispersion(thing);
                // The first rounds take all: what is wild is known only from a fit.
                if round > 1 && thing.dispersion > WILD * expected {
                    continue;
                }
                let weight = expected.powi(-2);
                let mean = thing.mean;
                let own = thing.dispersion;
                let parts = [1.0, mean, mean * mean, own, mean * own];
                sums.iter_mut()
                    .zip(parts)
                    .for_each(|(sum, part)| *sum += weight * part);
            }
            common = CommonScatter::fit(sums);
        }
        common
    }

    /// Returns the number of groups of each side.
    #[must_use]
    pub fn groups(&self) -> [usize; 2] {
        self.0.each_ref().map(Vec::len)
    }

    /// Degrees of freedom of a thing's own scatter.
    fn degrees(&self) -> f64 {
        (self.0[0].len() + self.0[1].len() - 2) as f64
    }

    fn difference(&self, thing: &Seen, common: CommonScatter) -> RateDifference {
        let own = self.degrees();
        let expected = common.expected_dispersion(thing);
        let degrees = own + COMMON_DEGREES;
        let dispersion = ((COMMON_DEGREES * expected + own * thing.dispersion) / degrees).max(1.0);
        let whole = [0, 1].map(|side| self.0[side].iter().sum::<f64>());
        let rates = [0, 1].map(|side| thing.totals[side] / whole[side]);
        if own < 1.0 {
            return RateDifference {
                rates,
                half: None,
                p: 1.0,
                dispersion: 1.0,
            };
        }
        let pooled = (thing.totals[0] + thing.totals[1]) / (whole[0] + whole[1]);
        // Without a difference both sides have the pooled rate; the interval goes by the rates that
        // were seen, and half a count stands for none.
        let error = (dispersion * pooled * (1.0 / whole[0] + 1.0 / whole[1])).sqrt();
        let seen = [0, 1].map(|side| thing.totals[side].max(0.5) / whole[side].powi(2));
        let spread = (dispersion * (seen[0] + seen[1])).sqrt();
        let t = student_upper_quantile(TAIL, degrees).unwrap_or(f64::INFINITY);
        let p = if error > 0.0 {
            student_two_sided((rates[1] - rates[0]) / error, degrees)
        } else {
            1.0
        };
        RateDifference {
            rates,
            half: Some(t * spread),
            p: if p.is_finite() { p } else { 1.0 },
            dispersion,
        }
    }
}

/// What was seen of one thing.
struct Seen {
    totals: [f64; 2],
    /// Per group, both sides together.
    mean: f64,
    /// Pearson's chi square per degree of freedom.
    dispersion: f64,
}

impl Seen {
    fn count(exposures: &Exposures, counts: &[Vec<u64>; 2]) -> Self {
        let count =
            |side: usize, group: usize| counts[side].get(group).copied().unwrap_or(0) as f64;
        let groups = (exposures.0[0].len() + exposures.0[1].len()) as f64;
        let totals = [0, 1].map(|side| {
            (0..exposures.0[side].len())
                .map(|group| count(side, group))
                .sum::<f64>()
        });
        let mut squares = 0.0;
        for (side, over) in exposures.0.iter().enumerate() {
            let rate = totals[side] / over.iter().sum::<f64>();
            squares += if rate > 0.0 {
                let groups = over.iter().enumerate();
                groups
                    .map(|(group, over)| (count(side, group) - rate * over).powi(2) / (rate * over))
                    .sum()
            } else {
                0.0
            };
        }
        let degrees = exposures.degrees();
        let dispersion = if degrees < 1.0 {
            1.0
        } else {
            squares / degrees
        };
        Self {
            totals,
            mean: (totals[0] + totals[1]) / groups,
            dispersion,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::Exposures;

    fn exposures(groups: usize) -> Exposures {
        Exposures::new([vec![1000.0; groups], vec![1000.0; groups]]).unwrap()
    }

    #[test]
    fn clear_difference_stands_out_among_equals() {
        let equal: Vec<[Vec<u64>; 2]> = (0..40)
            .map(|n| {
                [
                    vec![100 + n, 110, 95, 104, 99],
                    vec![105, 98, 102 + n, 96, 107],
                ]
            })
            .collect();
        let mut things = equal;
        things.push([vec![100, 96, 104, 99, 101], vec![131, 140, 127, 133, 136]]);
        let found = exposures(5).differences(&things, &exposures(5).common_scatter(&things));
        let q =
            crate::benjamini_hochberg(&found.iter().map(|one| one.p).collect::<Vec<_>>()).unwrap();
        assert!(q[40] < 0.05 && q[..40].iter().all(|q| *q > 0.05), "{q:?}");
        assert!((found[40].difference() - 0.0334).abs() < 1e-9);
        assert!(found[40].difference() > found[40].half.unwrap());
    }

    #[test]
    fn one_group_of_each_tells_nothing() {
        let things = [[vec![10], vec![1000]]];
        let found = exposures(1).differences(&things, &exposures(1).common_scatter(&things));
        assert_eq!((found[0].half, found[0].p), (None, 1.0));
        assert!((found[0].difference() - 0.99).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_exposure_gets_no_answer() {
        for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            assert_eq!(Exposures::new([vec![1.0, bad], vec![1.0]]), None);
        }
        assert_eq!(Exposures::new([vec![], vec![1.0]]), None);
    }

    proptest! {
        #[test]
        fn swapped_sides_say_the_opposite(
            things in prop::collection::vec(
                (prop::collection::vec(0..500_u64, 4),
                prop::collection::vec(0..500_u64, 4)),
                1..30,
            ),
        ) {
            let one: Vec<[Vec<u64>; 2]> =
                things.iter().map(|(a, b)| [a.clone(), b.clone()]).collect();
            let other: Vec<[Vec<u64>; 2]> = things.into_iter().map(|(a, b)| [b, a]).collect();
            let exposures = exposures(4);
            let differences = |things: &[[Vec<u64>; 2]]| {
                exposures.differences(things, &exposures.common_scatter(things))
            };
            for (one, other) in differences(&one).iter().zip(differences(&other)) {
                prop_assert!((one.difference() + other.difference()).abs() < 1e-12);
                prop_assert!((one.p - other.p).abs() < 1e-9 && (0.0..=1.0).contains(&one.p));
                prop_assert!(one.half.is_some_and(|half| half.is_finite() && half > 0.0));
            }
        }
    }
}
