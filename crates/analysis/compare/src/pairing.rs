//! Compares two sides of one workload: for tables, pages, alerts and bisections.

use std::collections::BTreeSet;

use model::{Cycles, Direction, Floor, Uncertainty, Verdict};
use stats::{RatioEstimate, Spread};

use crate::comparison::SeedDifference;
use crate::cycles;
use crate::deferred::{self, DeferredPair};
use crate::difference::{difference_percent, percent_of_ratio, ratio};
use crate::missing::Missing;
use crate::value::{NOT_COUNTED, Scale};
use crate::verdict::{noisy_verdict, verdict};

/// The result of one replicate. On the exact machine a replicate is a seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replicate {
    /// The seed that pairs it with the other side.
    pub seed: u64,
    /// Its value, or why there is none.
    pub given: Given,
}

/// The result of a replicate.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// A value that compares if the other side has its scale and operations.
    Value {
        /// The run's value, on `scale`.
        value: f64,
        /// What one unit of it is.
        scale: Scale,
        /// Operations in one iteration.
        operations: u64,
        /// The estimate of cycles per operation, if there is one.
        cycles: Option<Cycles>,
        /// Deferred work beside the value; zero if not counted.
        deferred: f64,
    },
    /// It was not measured; the text says so.
    NotMeasured(String),
    /// It was measured without a value; the text gives the reason.
    Unusable(String),
}

/// The rule for judging two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The direction in which values are better.
    pub direction: Direction,
    /// The margin: a difference up to this many percent counts as same.
    pub margin_percent: f64,
    /// How far seeds of one build lie apart: a smaller difference needs more seeds. `None` if
    /// unknown.
    pub floor: Option<Floor>,
    /// Which seeds both sides must have.
    pub seeds: Seeds,
}

/// Which seeds a verdict requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seeds {
    /// All: they were requested.
    All,
    /// Those of both sides; others are left out.
    OnBoth,
}

/// The comparison of two sides.
#[derive(Debug, Clone, PartialEq)]
pub struct SideComparison {
    /// The decision by all differences together.
    pub verdict: Verdict,
    /// The difference of each seed with a value on both sides.
    pub differences: Vec<SeedDifference>,
    /// The difference of the sides' values, which are medians over the compared seeds; positive is
    /// better.
    pub difference_percent: Option<f64>,
    /// The smallest and the largest of the differences; for noisy runs the interval that contains
    /// the true one with a probability of 95 %.
    pub spread_percent: Option<Spread>,
    /// The ratio of the sides' values; above one is better.
    pub ratio: Option<f64>,
    /// The least and the most difference of estimated cycles over the assumptions, each the median
    /// over the seeds; positive is better.
    pub cycles_percent: Option<Spread>,
    /// The difference with [deferred work](crate::deferred_work), the median over the seeds; positive
    /// is better.
    pub with_deferred_percent: Option<f64>,
    /// Seeds of only one side.
    pub left_out: Vec<u64>,
}

/// Compares two sides seed by seed.
#[must_use]
pub fn compare_sides(base: &[Replicate], new: &[Replicate], rule: &Rule) -> SideComparison {
    let scale = Scale::common(base.iter().chain(new).filter_map(
        |replicate| match replicate.given {
            Given::Value { scale, .. } => Some(scale),
            Given::NotMeasured(_) | Given::Unusable(_) => None,
        },
    ));
    let seeds: BTreeSet<u64> = base
        .iter()
        .chain(new)
        .map(|replicate| replicate.seed)
        .collect();
    let mut differences = Vec::new();
    let mut left_out = Vec::new();
    let mut missing = Missing::default();
    let mut olds = Vec::new();
    let mut news = Vec::new();
    let mut estimates = Vec::new();
    let mut deferrals = Vec::new();
    if seeds.is_empty() {
        missing.add("no run".to_owned(), None);
    }
    for &seed in &seeds {
        let sides = [base, new].map(|side| {
            side.iter()
                .find(|replicate| replicate.seed == seed)
                .map(|one| &one.given)
        });
        let is_measured =
            |given: &Option<&Given>| !matches!(given, None | Some(Given::NotMeasured(_)));
        if rule.seeds == Seeds::OnBoth && !sides.iter().all(is_measured) {
            left_out.push(seed);
            continue;
        }
        match sides.map(|given| usable(given, scale)) {
            [Ok(old), Ok(new)] => match difference(seed, rule.direction, old, new) {
                Ok(difference) => {
                    differences.push(difference);
                    olds.push(old.value);
                    news.push(new.value);
                    estimates.push(old.cycles.zip(new.cycles));
                    deferrals.push(DeferredPair {
                        values: [old.value, new.value],
                        deferred: [old.deferred, new.deferred],
                    });
                }
                Err(why) => missing.add(why, Some(seed)),
            },
            sides => sides
                .into_iter()
                .filter_map(Result::err)
                .for_each(|why| missing.add(why, Some(seed))),
        }
    }
    let percents: Vec<f64> = differences
        .iter()
        .map(|difference| difference.percent)
        .collect();
    // Of values rather than of differences, so that a reader can compute it from both columns. It
    // lies within the spread.
    let values = stats::median(&olds).zip(stats::median(&news));
    let verdict = match missing.text(seeds.len() - left_out.len()) {
        Some(why) => Verdict::Unclear(Uncertainty::Missing(why)),
        None => verdict(&differences, rule.margin_percent, rule.floor),
    };
    let counted_percent =
        values.and_then(|(old, new)| difference_percent(rule.direction, old, new));
    let cycles_percent = match rule.direction {
        Direction::LowerIsBetter => cycles::differences(&estimates),
        Direction::HigherIsBetter => None,
    };
    let verdict = cycles::weigh(
        verdict,
        counted_percent,
        cycles_percent,
        rule.margin_percent,
    );
    // Of costs: only those are counted.
    if rule.direction == Direction::HigherIsBetter {
        deferrals.clear();
    }
    // One seed may have a batch more than another; as far apart as seeds of one build lie is chance.
    let chance_percent = rule.floor.map_or(0.0, Floor::percent);
    SideComparison {
        verdict: deferred::weigh(
            verdict,
            counted_percent,
            &deferrals,
            rule.margin_percent + chance_percent,
        ),
        with_deferred_percent: deferred::with_deferred_percent(&deferrals),
        difference_percent: counted_percent,
        cycles_percent,
        spread_percent: stats::spread(&percents),
        // A ratio of some seeds only would not represent the row.
        ratio: values
            .and_then(|(old, new)| ratio(rule.direction, old, new))
            .filter(|_| {
                differences
                    .iter()
                    .all(|difference| difference.ratio.is_some())
            }),
        differences,
        left_out,
    }
}

impl SideComparison {
    /// Returns the comparison for a rating of noisy runs, with its false discovery rate `q` among
    /// the rows of the same question.
    #[must_use]
    pub fn rated(rating: &RatioEstimate, direction: Direction, q: f64) -> Self {
        let percent = |ratio| percent_of_ratio(direction, ratio);
        Self {
            verdict: noisy_verdict(rating, q),
            differences: Vec::new(),
            difference_percent: Some(percent(rating.ratio())),
            spread_percent: rating.interval().map(|ends| Spread {
                min: percent(ends.low),
                max: percent(ends.high),
            }),
            ratio: Some(rating.ratio()),
            cycles_percent: None,
            with_deferred_percent: None,
            left_out: Vec::new(),
        }
    }

    /// Returns the comparison for sides that cannot be compared.
    #[must_use]
    pub fn nothing(why: &str) -> Self {
        Self {
            verdict: Verdict::Unclear(Uncertainty::Missing(why.to_owned())),
            differences: Vec::new(),
            difference_percent: None,
            spread_percent: None,
            ratio: None,
            cycles_percent: None,
            with_deferred_percent: None,
            left_out: Vec::new(),
        }
    }
}

/// A comparable value, and the operations per iteration.
#[derive(Clone, Copy)]
struct Usable {
    value: f64,
    operations: u64,
    cycles: Option<Cycles>,
    deferred: f64,
}

/// Returns a value and its operations, or why there is none on the scale.
fn usable(given: Option<&Given>, wanted: Scale) -> Result<Usable, String> {
    match given {
        Some(Given::Value {
            value,
            scale,
            operations,
            cycles,
            deferred,
        }) if *scale == wanted => Ok(Usable {
            value: *value,
            operations: *operations,
            cycles: *cycles,
            deferred: *deferred,
        }),
        Some(Given::Value { .. }) => Err(NOT_COUNTED.to_owned()),
        Some(Given::NotMeasured(why) | Given::Unusable(why)) => Err(why.clone()),
        None => Err("no run".to_owned()),
    }
}

fn difference(
    seed: u64,
    direction: Direction,
    old: Usable,
    new: Usable,
) -> Result<SeedDifference, String> {
    if old.operations != new.operations {
        // The cost of one operation depends on how many share the fixed costs of an iteration.
        return Err(format!(
            "asked for {} operations on one side and {} on the other",
            old.operations, new.operations
        ));
    }
    let percent = difference_percent(direction, old.value, new.value)
        .ok_or_else(|| "no percentage exists".to_owned())?;
    Ok(SeedDifference {
        seed,
        percent,
        ratio: ratio(direction, old.value, new.value),
    })
}

#[cfg(test)]
mod tests {
    use model::{Direction, Verdict};

    use super::{Given, Replicate, Rule, Seeds, SideComparison, compare_sides};
    use crate::value::Scale;

    const COUNTED: Scale = Scale::Counted;

    fn side(values: &[(u64, f64, Scale)]) -> Vec<Replicate> {
        values
            .iter()
            .map(|&(seed, value, scale)| Replicate {
                seed,
                given: Given::Value {
                    value,
                    scale,
                    operations: 1,
                    cycles: None,
                    deferred: 0.0,
                },
            })
            .collect()
    }

    fn compared(base: &[Replicate], new: &[Replicate], seeds: Seeds) -> SideComparison {
        let rule = Rule {
            direction: Direction::LowerIsBetter,
            margin_percent: 1.0,
            floor: None,
            seeds,
        };
        compare_sides(base, new, &rule)
    }

    #[test]
    fn one_sided_seeds_count_only_on_request() {
        let base = side(&[(1, 100.0, COUNTED), (2, 100.0, COUNTED)]);
        let new = side(&[(1, 110.0, COUNTED)]);
        let on_both = compared(&base, &new, Seeds::OnBoth);
        assert_eq!(
            (on_both.verdict, on_both.left_out),
            (Verdict::Worse, vec![2])
        );
        let all = compared(&base, &new, Seeds::All);
        assert!(
            matches!(&all.verdict, Verdict::Unclear(why) if why.to_string() == "no value: no run for seed 2")
        );
        assert_eq!(
            all.difference_percent,
            Some(-10.0),
            "what there is is shown"
        );
    }

    #[test]
    fn difference_follows_from_values_of_both_sides() {
        let base = side(&[
            (1, 100.0, COUNTED),
            (2, 110.0, COUNTED),
            (3, 150.0, COUNTED),
        ]);
        let new = side(&[
            (1, 104.0, COUNTED),
            (2, 110.0, COUNTED),
            (3, 180.0, COUNTED),
        ]);
        let found = compared(&base, &new, Seeds::All);
        // Medians of 110 on both sides, although the median of the differences is -4.
        assert_eq!(
            (found.difference_percent, found.ratio),
            (Some(0.0), Some(1.0))
        );
    }

    #[test]
    fn seeds_that_failed_are_unclear_by_either_rule() {
        let base = side(&[(1, 100.0, COUNTED), (2, 100.0, COUNTED)]);
        let mut new = side(&[(1, 110.0, COUNTED), (2, 110.0, COUNTED)]);
        new[1].given = Given::Unusable("hung".to_owned());
        for seeds in [Seeds::All, Seeds::OnBoth] {
            let verdict = compared(&base, &new, seeds).verdict;
            assert!(
                matches!(&verdict, Verdict::Unclear(why) if why.to_string() == "no value: hung for seed 2")
            );
        }
    }

    #[test]
    fn counts_and_guest_time_are_never_compared() {
        let counted = side(&[(1, 100.0, COUNTED)]);
        let timed = side(&[(1, 90.0, Scale::Reported)]);
        let mixed = compared(&counted, &timed, Seeds::OnBoth);
        assert!(
            matches!(&mixed.verdict, Verdict::Unclear(why) if why.to_string().contains("not counted"))
        );
        assert_eq!(mixed.difference_percent, None);
        assert_eq!(
            compared(&timed, &timed, Seeds::OnBoth).verdict,
            Verdict::Same
        );
    }
}
