//! Decides the verdict of a row: `verdict` on exact differences, `noisy_verdict` on rated ones.
//! `difference.rs` computes the differences, `stats` the ratings.

use model::{Floor, Uncertainty, Verdict};
use stats::{KnownScatter, Spread, Unclear, estimate_pairs};

use crate::comparison::SeedDifference;

/// Seeds that must agree on a difference below the floor.
pub const SEEDS_BELOW_FLOOR: usize = 5;

/// Degrees of freedom of a chaotic workload's floor. It is the deviation of five values, which have
/// four; with four, one seed is wrong in 9 % of the cases where layouts are skewed, with three in
/// 7 % (`make bench-stats`).
const FLOOR_DEGREES: f64 = 2.5;

/// Returns the verdict on the differences of one row, one per seed.
///
/// Of a steady workload: better if all are above the margin, worse if all are below minus the
/// margin, same if all are within (the margin itself is within), else unclear: disagreement of a
/// seed is never averaged away. If the median of the differences is smaller than the floor, five
/// seeds must agree on better or worse: a change of memory layout or of the tick's phase has the
/// same effect.
///
/// Of a chaotic one, any change draws a new layout for each seed: better and worse if the mean
/// difference exceeds the margin by more than layouts drawn at random show in 5 % of the cases,
/// same if its interval of 90 % lies within the margin. A row with a value of zero has no ratio,
/// and is judged as a steady one.
#[must_use]
pub fn verdict(
    differences: &[SeedDifference],
    margin_percent: f64,
    floor: Option<Floor>,
) -> Verdict {
    let percents: Vec<f64> = differences.iter().map(|one| one.percent).collect();
    let chaotic = match floor {
        Some(Floor::Deviation(percent)) => judge_layouts(differences, margin_percent, percent),
        _ => None,
    };
    let unanimous = || verdict_by_agreement(&percents, margin_percent, floor);
    chaotic.unwrap_or_else(unanimous)
}

/// Returns why there is no verdict.
fn missing(differences_percent: &[f64], margin_percent: f64) -> Option<&'static str> {
    if !margin_percent.is_finite() || margin_percent < 0.0 {
        Some("the margin is not a percentage")
    } else if differences_percent.is_empty() {
        Some("no seed has a value on both sides")
    } else if differences_percent.iter().any(|d| !d.is_finite()) {
        Some("a difference is not a number")
    } else {
        None
    }
}

/// Judges by layouts drawn at random; `None` where a difference has no ratio.
fn judge_layouts(
    differences: &[SeedDifference],
    margin_percent: f64,
    floor_percent: f64,
) -> Option<Verdict> {
    let logs: Option<Vec<f64>> = differences
        .iter()
        .map(|one| one.ratio.map(f64::ln))
        .collect();
    // The variance of logarithms of a log-normal number with this deviation, for both sides.
    let known = KnownScatter {
        variance: 2.0 * (floor_percent / 100.0).powi(2).ln_1p(),
        degrees: FLOOR_DEGREES,
    };
    let found = estimate_pairs(&logs?, known, (margin_percent / 100.0).ln_1p())?;
    Some(match found.verdict() {
        stats::Verdict::Better => Verdict::Better,
        stats::Verdict::Worse => Verdict::Worse,
        stats::Verdict::Same => Verdict::Same,
        stats::Verdict::Unclear(why) => Verdict::Unclear(Uncertainty::Layouts {
            floor_percent,
            more_seeds: match why {
                Unclear::MoreGroups(more) => Some(more),
                Unclear::Unrated
                | Unclear::NearMargin
                | Unclear::NoisyHistory
                | Unclear::TooNoisy
                | Unclear::TooCoarse => None,
            },
        }),
    })
}

/// Returns the verdict by what all seeds say: that of a steady workload.
pub(crate) fn verdict_by_agreement(
    differences_percent: &[f64],
    margin_percent: f64,
    floor: Option<Floor>,
) -> Verdict {
    if let Some(why) = missing(differences_percent, margin_percent) {
        return Verdict::Unclear(Uncertainty::Missing(why.to_owned()));
    }
    let differences = differences_percent.iter();
    let all = differences_percent.len();
    let better = differences.clone().filter(|d| **d > margin_percent).count();
    let worse = differences.filter(|d| **d < -margin_percent).count();
    let size = stats::median(differences_percent).map_or(0.0, f64::abs);
    let floor_percent = floor.map(Floor::percent);
    let below = floor_percent.filter(|floor| all < SEEDS_BELOW_FLOOR && size < *floor);
    if let (Some(floor_percent), true) = (below, better == all || worse == all) {
        Verdict::Unclear(Uncertainty::BelowFloor {
            floor_percent,
            seeds: all,
            seeds_least: SEEDS_BELOW_FLOOR,
        })
    } else if better == all {
        Verdict::Better
    } else if worse == all {
        Verdict::Worse
    } else if better == 0 && worse == 0 {
        Verdict::Same
    } else {
        Verdict::Unclear(Uncertainty::SeedsDisagree {
            better,
            worse,
            same: all - better - worse,
        })
    }
}

/// Tells whether another measure of the same row, whose values have these ends, contradicts a
/// verdict: the middle says the opposite of better or worse by more than the margin, or all say more
/// than the margin of what is the same.
pub(crate) fn is_contradicted(verdict: &Verdict, other: Spread, margin_percent: f64) -> bool {
    match verdict {
        Verdict::Better => f64::midpoint(other.min, other.max) < -margin_percent,
        Verdict::Worse => f64::midpoint(other.min, other.max) > margin_percent,
        Verdict::Same => other.max < -margin_percent || other.min > margin_percent,
        Verdict::Unclear(_) => false,
    }
}

/// Returns the verdict on a rating of noisy runs, with its false discovery rate `q` among the rows
/// of the same question.
#[must_use]
pub fn noisy_verdict(rating: &stats::RatioEstimate, q: f64) -> Verdict {
    let why = match rating.verdict(q) {
        Some(stats::Verdict::Better) => return Verdict::Better,
        Some(stats::Verdict::Worse) => return Verdict::Worse,
        Some(stats::Verdict::Same) => return Verdict::Same,
        Some(stats::Verdict::Unclear(stats::Unclear::Unrated)) => {
            Uncertainty::Noise { more_runs: None }
        }
        Some(stats::Verdict::Unclear(stats::Unclear::MoreGroups(more))) => Uncertainty::Noise {
            more_runs: Some(more),
        },
        Some(stats::Verdict::Unclear(Unclear::NearMargin)) => Uncertainty::NearMargin,
        Some(stats::Verdict::Unclear(Unclear::NoisyHistory)) => Uncertainty::NoisyHistory,
        Some(stats::Verdict::Unclear(stats::Unclear::TooNoisy)) => Uncertainty::TooNoisy,
        Some(stats::Verdict::Unclear(stats::Unclear::TooCoarse)) => Uncertainty::TooCoarse,
        None => Uncertainty::Missing("runs that scatter need a margin above 0%".to_owned()),
    };
    Verdict::Unclear(why)
}

#[cfg(test)]
mod tests {
    use model::{Floor, Uncertainty, Verdict};
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use crate::comparison::SeedDifference;

    /// The verdict on a steady row of which more is better.
    fn verdict(percents: &[f64], margin_percent: f64, floor_percent: Option<f64>) -> Verdict {
        by_floor(percents, margin_percent, floor_percent.map(Floor::Range))
    }

    fn by_floor(percents: &[f64], margin_percent: f64, floor: Option<Floor>) -> Verdict {
        let differences: Vec<SeedDifference> = (1..)
            .zip(percents)
            .map(|(seed, percent)| SeedDifference {
                seed,
                percent: *percent,
                ratio: Some(1.0 + percent / 100.0),
            })
            .collect();
        super::verdict(&differences, margin_percent, floor)
    }

    #[test]
    fn one_seed_of_chaos_shows_large_differences() {
        let floor = Some(Floor::Deviation(5.0));
        let unclear = |percents: &[f64], margin| match by_floor(percents, margin, floor) {
            Verdict::Unclear(why) => why.to_string(),
            verdict => panic!("{verdict:?}"),
        };
        // Beyond the floor and the margin, but layouts alone do as much.
        let why = unclear(&[12.0], 3.0);
        let start = "seeds of one build scatter by 5%: ";
        assert!(
            why.starts_with(start) && why.ends_with(" more seeds would probably decide"),
            "{why}"
        );
        let uneven = by_floor(&[12.0], 3.0, Some(Floor::Deviation(20.0 / 3.0)));
        let Verdict::Unclear(why) = uneven else {
            panic!("{uneven:?}");
        };
        let start = "seeds of one build scatter by 6.67%: ";
        assert!(why.to_string().starts_with(start), "{why}");
        assert_eq!(by_floor(&[40.0], 3.0, floor), Verdict::Better);
        assert_eq!(by_floor(&[-25.0], 3.0, floor), Verdict::Worse);
        assert_eq!(by_floor(&[1.0], 25.0, floor), Verdict::Same);
        assert_eq!(
            unclear(&[0.0], 1.0),
            "seeds of one build scatter by 5%: not even 50 seeds would decide; use a larger --margin"
        );
    }

    #[test]
    fn seeds_of_chaos_need_not_all_agree() {
        let floor = Some(Floor::Deviation(5.0));
        let percents = [9.0, 4.0, -1.0, 8.0, 12.0, 6.0, 5.0, 10.0, 2.0, 9.0];
        assert_eq!(by_floor(&percents, 1.0, floor), Verdict::Better);
        assert!(matches!(
            verdict(&percents, 1.0, Some(5.0)),
            Verdict::Unclear(Uncertainty::SeedsDisagree { .. })
        ));
    }

    #[test]
    fn chaotic_row_without_ratio_needs_agreement() {
        let differences = [1, 2].map(|seed| SeedDifference {
            seed,
            percent: 100.0,
            ratio: None,
        });
        let floor = Some(Floor::Deviation(5.0));
        assert_eq!(super::verdict(&differences, 1.0, floor), Verdict::Better);
    }

    #[test]
    fn all_seeds_must_agree() {
        assert_eq!(verdict(&[1.01, 40.0], 1.0, None), Verdict::Better);
        assert_eq!(verdict(&[-1.01, -40.0], 1.0, None), Verdict::Worse);
        assert_eq!(verdict(&[-1.0, 0.0, 1.0], 1.0, None), Verdict::Same);
        assert_eq!(
            verdict(&[5.0, -5.0, 0.5, 0.2], 1.0, None),
            Verdict::Unclear(Uncertainty::SeedsDisagree {
                better: 1,
                worse: 1,
                same: 2
            })
        );
    }

    #[test]
    fn without_a_margin_only_equality_is_the_same() {
        assert_eq!(verdict(&[0.0, -0.0], 0.0, None), Verdict::Same);
        assert_eq!(verdict(&[f64::MIN_POSITIVE], 0.0, None), Verdict::Better);
    }

    #[test]
    fn non_number_is_never_a_verdict() {
        for (differences, margin) in [
            (&[][..], 1.0),
            (&[f64::NAN][..], 1.0),
            (&[5.0, f64::INFINITY][..], 1.0),
            (&[5.0][..], f64::NAN),
            (&[5.0][..], -1.0),
        ] {
            assert!(matches!(
                verdict(differences, margin, None),
                Verdict::Unclear(Uncertainty::Missing(_))
            ));
        }
    }

    #[test]
    fn differences_below_the_floor_need_five_seeds() {
        let floor = Some(0.5);
        let below = |seeds| {
            Verdict::Unclear(Uncertainty::BelowFloor {
                floor_percent: 0.5,
                seeds,
                seeds_least: 5,
            })
        };
        for (seeds, percent, expected) in [
            (1, 0.01, below(1)),
            (4, -0.49, below(4)),
            (5, 0.01, Verdict::Better),
            (1, 0.5, Verdict::Better),
            (1, -0.5, Verdict::Worse),
        ] {
            assert_eq!(verdict(&vec![percent; seeds], 0.0, floor), expected);
        }
        assert_eq!(
            verdict(&[0.01], 0.1, floor),
            Verdict::Same,
            "a difference within the margin needs no more seeds"
        );
        assert_eq!(verdict(&[0.01], 0.0, None), Verdict::Better);
    }

    proptest! {
        #[test]
        fn turning_the_sides_around_turns_the_verdict_around(
            differences in prop::collection::vec(-10.0..10.0, 1..9),
            margin in 0.0..5.0,
            floor in prop::option::of(0.0..5.0),
        ) {
            let negated: Vec<f64> = differences.iter().map(|d| -d).collect();
            let expected = match verdict(&differences, margin, floor) {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                Verdict::Unclear(Uncertainty::SeedsDisagree {
                    better,
                    worse,
                    same,
                }) => Verdict::Unclear(Uncertainty::SeedsDisagree {
                    better: worse,
                    worse: better,
                    same,
                }),
                other => other,
            };
            prop_assert_eq!(verdict(&negated, margin, floor), expected);
        }

        #[test]
        fn one_more_seed_never_reverses_a_verdict(
            differences in prop::collection::vec(-10.0..10.0, 1..9),
            another in -10.0..10.0,
            margin in 0.0..2.0,
            floor in prop::option::of(0.0..5.0),
        ) {
            let before = verdict(&differences, margin, floor);
            let mut more = differences;
            more.push(another);
            let after = verdict(&more, margin, floor);
            let is_decided = matches!(before, Verdict::Better | Verdict::Worse | Verdict::Same);
            prop_assert!(!is_decided || after == before || matches!(after, Verdict::Unclear(_)));
        }
    }
}
