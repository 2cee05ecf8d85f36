//! Decides the verdict of a row: `verdict` on exact differences, `noisy_verdict` on rated ones.
//! `difference.rs` computes the differences, `stats` the ratings.

use model::{Uncertainty, Verdict};

/// Seeds that must agree on a difference below the floor.
pub const SEEDS_BELOW_FLOOR: usize = 5;

/// Returns the verdict on the differences of one row, one per seed, in percent, positive is better.
///
/// Better if all are above the margin, worse if all are below minus the margin, same if all are
/// within (the margin itself is within), else unclear: disagreement of a seed is never averaged
/// away.
///
/// `floor_percent` is the spread between seeds of one build. If the median of the differences is
/// smaller, five seeds must agree on better or worse: a change of memory layout or of the tick's
/// phase has the same effect.
#[must_use]
pub fn verdict(
    differences_percent: &[f64],
    margin_percent: f64,
    floor_percent: Option<f64>,
) -> Verdict {
    let missing = if !margin_percent.is_finite() || margin_percent < 0.0 {
        Some("the margin is not a percentage")
    } else if differences_percent.is_empty() {
        Some("no seed has a value on both sides")
    } else if differences_percent.iter().any(|d| !d.is_finite()) {
        Some("a difference is not a number")
    } else {
        None
    };
    if let Some(why) = missing {
        return Verdict::Unclear(Uncertainty::Missing(why.to_owned()));
    }
    let differences = differences_percent.iter();
    let all = differences_percent.len();
    let better = differences.clone().filter(|d| **d > margin_percent).count();
    let worse = differences.filter(|d| **d < -margin_percent).count();
    let size = stats::median(differences_percent).map_or(0.0, f64::abs);
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
        Some(stats::Verdict::Unclear(stats::Unclear::TooNoisy)) => Uncertainty::TooNoisy,
        Some(stats::Verdict::Unclear(stats::Unclear::TooCoarse)) => Uncertainty::TooCoarse,
        None => Uncertainty::Missing("runs that scatter need a margin above 0%".to_owned()),
    };
    Verdict::Unclear(why)
}

#[cfg(test)]
mod tests {
    use model::{Uncertainty, Verdict};
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::verdict;

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
