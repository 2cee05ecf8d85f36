//! The one function that decides a verdict. What the differences are is `difference.rs`' work.

use model::{Uncertainty, Verdict};

/// Returns the verdict on the differences of one row, one per seed, in percent, positive for better.
///
/// Better when all are above the margin, worse when all are below minus the margin, same when all are within (the
/// margin itself is within), unclear otherwise: no averaging away of a seed that says something else.
#[must_use]
pub fn verdict(differences_percent: &[f64], margin_percent: f64) -> Verdict {
    let missing = |why: &str| Verdict::Unclear(Uncertainty::Missing(why.to_owned()));
    if !margin_percent.is_finite() || margin_percent < 0.0 {
        return missing("the margin is not a percentage");
    }
    if differences_percent.is_empty() {
        return missing("no seed has a value on both sides");
    }
    if differences_percent.iter().any(|d| !d.is_finite()) {
        return missing("a difference is not a number");
    }
    let count = |of: &dyn Fn(f64) -> bool| differences_percent.iter().filter(|d| of(**d)).count();
    let all = differences_percent.len();
    let better = count(&|d| d > margin_percent);
    let worse = count(&|d| d < -margin_percent);
    if better == all {
        Verdict::Better
    } else if worse == all {
        Verdict::Worse
    } else if better == 0 && worse == 0 {
        Verdict::Same
    } else {
        Verdict::Unclear(Uncertainty::SeedsDisagree { better, worse, same: all - better - worse })
    }
}

/// Returns the verdict on a rating of runs that scatter, with the share of false finds `q` at which it is found among the
/// rows that it stands with.
#[must_use]
pub fn scattered_verdict(rating: &stats::Rating, margin_percent: f64, q: f64) -> Verdict {
    let unclear = |why| Verdict::Unclear(why);
    match rating.verdict(margin_percent / 100.0, q) {
        Some(stats::Verdict::Better) => Verdict::Better,
        Some(stats::Verdict::Worse) => Verdict::Worse,
        Some(stats::Verdict::Same) => Verdict::Same,
        Some(stats::Verdict::Unclear(stats::Unclear::Unrated)) => unclear(Uncertainty::Noise { more_runs: None }),
        Some(stats::Verdict::Unclear(stats::Unclear::MoreGroups(more))) => {
            unclear(Uncertainty::Noise { more_runs: Some(more) })
        }
        None => unclear(Uncertainty::Missing("runs that scatter need a margin above 0%".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use model::{Uncertainty, Verdict};
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::verdict;

    #[test]
    fn all_seeds_must_agree() {
        assert_eq!(verdict(&[1.01, 40.0], 1.0), Verdict::Better);
        assert_eq!(verdict(&[-1.01, -40.0], 1.0), Verdict::Worse);
        assert_eq!(verdict(&[-1.0, 0.0, 1.0], 1.0), Verdict::Same);
        assert_eq!(
            verdict(&[5.0, -5.0, 0.5, 0.2], 1.0),
            Verdict::Unclear(Uncertainty::SeedsDisagree { better: 1, worse: 1, same: 2 })
        );
    }

    #[test]
    fn without_a_margin_only_equality_is_the_same() {
        assert_eq!(verdict(&[0.0, -0.0], 0.0), Verdict::Same);
        assert_eq!(verdict(&[f64::MIN_POSITIVE], 0.0), Verdict::Better);
    }

    #[test]
    fn what_is_no_number_is_never_a_verdict() {
        for (differences, margin) in [
            (&[][..], 1.0),
            (&[f64::NAN][..], 1.0),
            (&[5.0, f64::INFINITY][..], 1.0),
            (&[5.0][..], f64::NAN),
            (&[5.0][..], -1.0),
        ] {
            assert!(matches!(verdict(differences, margin), Verdict::Unclear(Uncertainty::Missing(_))));
        }
    }

    proptest! {
        #[test]
        fn turning_the_sides_around_turns_the_verdict_around(
            differences in prop::collection::vec(-10.0..10.0, 1..9),
            margin in 0.0..5.0,
        ) {
            let negated: Vec<f64> = differences.iter().map(|d| -d).collect();
            let expected = match verdict(&differences, margin) {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                Verdict::Unclear(Uncertainty::SeedsDisagree { better, worse, same }) => {
                    Verdict::Unclear(Uncertainty::SeedsDisagree { better: worse, worse: better, same })
                }
                other => other,
            };
            prop_assert_eq!(verdict(&negated, margin), expected);
        }

        #[test]
        fn one_more_seed_never_turns_better_into_worse_or_same(
            differences in prop::collection::vec(-10.0..10.0, 1..9),
            another in -10.0..10.0,
        ) {
            let before = verdict(&differences, 1.0);
            let mut more = differences;
            more.push(another);
            let after = verdict(&more, 1.0);
            prop_assert!(after == before || matches!(after, Verdict::Unclear(_)));
        }
    }
}
