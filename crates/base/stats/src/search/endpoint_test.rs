//! Tests that the two ends of a line differ, before a search spends runs between them.
//!
//! A search between equal ends would still end somewhere: the posterior always has a most probable
//! place.

use super::tally::{Tally, pooled, weight};
use crate::distribution::student_two_sided;

/// Runs of each end after which they are tested. The intervals grow, so that few tests cover a long
/// measurement: each test is one more chance for a false alarm.
const LOOKS: [usize; 12] = [4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 200];
/// Probability that one test takes noise for a difference. All tests together stay below ten times
/// this.
const P_MAX: f64 = 1e-4;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Endpoints {
    /// Undecided: measure end 0 or 1 again, so many times.
    More { end: usize, runs: usize },
    /// The ends differ: a step between them is worth searching.
    Differ,
    /// No difference of interest.
    Alike,
}

/// Tests two ends; `bias` is the variance of a place in variances of a run, `effect_min` the
/// largest difference without interest.
pub(crate) fn test_endpoints(ends: [&Tally; 2], bias: f64, effect_min: f64) -> Endpoints {
    let fewest = ends[0].count.min(ends[1].count);
    // The end with fewer runs goes first, so that both reach the next look together.
    let behind = usize::from(ends[1].count < ends[0].count);
    let Some(look) = LOOKS.iter().copied().find(|look| *look > fewest) else {
        // Patience ends: each step of a search between such ends would take as many runs again.
        return if seen(ends, bias) == Some(true) {
            Endpoints::Differ
        } else {
            Endpoints::Alike
        };
    };
    let more = Endpoints::More {
        end: behind,
        runs: look - ends[behind].count,
    };
    // Tested only when both ends have the same number of runs: a test after every run would be
    // more tests than `P_MAX` allows for.
    if ends[0].count != ends[1].count || !LOOKS.contains(&fewest) {
        return more;
    }
    match seen(ends, bias) {
        Some(true) => Endpoints::Differ,
        _ if excluded(ends, bias, effect_min) => Endpoints::Alike,
        _ => more,
    }
}

/// Returns difference and standard error.
fn difference(ends: [&Tally; 2], bias: f64) -> Option<(f64, f64, f64)> {
    let (variance, degrees) = pooled(ends.into_iter())?;
    let error = variance
        * ends
            .iter()
            .map(|end| 1.0 / weight(end.count, bias))
            .sum::<f64>();
    Some(((ends[1].mean - ends[0].mean).abs(), error.sqrt(), degrees))
}

fn seen(ends: [&Tally; 2], bias: f64) -> Option<bool> {
    let (difference, error, degrees) = difference(ends, bias)?;
    if error <= 0.0 {
        return Some(difference > 0.0);
    }
    Some(student_two_sided(difference / error, degrees) < P_MAX)
}

/// Tells whether a difference as large as asked for would have been seen.
fn excluded(ends: [&Tally; 2], bias: f64, effect_min: f64) -> bool {
    difference(ends, bias).is_some_and(|(difference, error, degrees)| {
        let room = effect_min - difference;
        room > 0.0 && (error <= 0.0 || student_two_sided(room / error, degrees) < P_MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::{Endpoints, test_endpoints};
    use crate::search::tally::Tally;

    fn end(values: &[f64]) -> Tally {
        let mut tally = Tally::default();
        values.iter().for_each(|value| tally.add(*value));
        tally
    }

    #[test]
    fn search_waits_for_runs_of_both_ends() {
        let none = Tally::default();
        let four = end(&[1.0, 2.0, 1.0, 2.0]);
        assert_eq!(
            test_endpoints([&none, &none], 0.0, 0.0),
            Endpoints::More { end: 0, runs: 4 }
        );
        assert_eq!(
            test_endpoints([&four, &none], 0.0, 0.0),
            Endpoints::More { end: 1, runs: 4 }
        );
        assert_eq!(
            test_endpoints([&four, &four], 0.0, 0.0),
            Endpoints::More { end: 0, runs: 2 }
        );
    }

    #[test]
    fn clear_difference_opens_search_single_outlier_does_not() {
        let low = end(&[1.0, 1.1, 0.9, 1.0]);
        let high = end(&[9.0, 9.1, 8.9, 9.0]);
        assert_eq!(test_endpoints([&low, &high], 0.0, 0.0), Endpoints::Differ);
        assert_eq!(
            test_endpoints([&low, &high], 1e4, 0.0),
            Endpoints::More { end: 0, runs: 2 }
        );
        let same = end(&[1.0; 4]);
        let other = end(&[2.0; 4]);
        assert_eq!(test_endpoints([&same, &other], 0.0, 0.0), Endpoints::Differ);
        assert_eq!(test_endpoints([&low, &low], 0.0, 5.0), Endpoints::Alike);
    }

    #[test]
    fn patience_ends() {
        let many: Vec<f64> = (0..200).map(|n| f64::from(n % 7)).collect();
        assert_eq!(
            test_endpoints([&end(&many), &end(&many)], 0.0, 0.0),
            Endpoints::Alike
        );
    }
}
