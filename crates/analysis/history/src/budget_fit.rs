//! Decides whether a workload fits its budget after a change, from a comparison with before.
//!
//! A percentage is `compare`'s verdict with the limit as margin; a count is a bound on the value.

use compare::{ComparisonRow, Measured};
use model::{Clock, Limit, Metric, Uncertainty, Verdict};

/// How a workload fits a limit.
#[derive(Debug, Clone, PartialEq)]
pub enum Fit {
    /// It is within.
    Within,
    /// It exceeds the limit, in all seeds.
    Exceeds,
    /// It is above a count, and was so before: the change does not make it worse.
    AboveBefore,
    /// The measurements do not decide, for this reason.
    Undecided(String),
}

/// Returns how the first cell of a row fits a limit. For a percentage, the row's margin is the
/// limit.
#[must_use]
pub fn fit(row: &ComparisonRow, limit: Limit) -> Fit {
    match limit {
        Limit::Percent(percent) => fit_percent(row, percent),
        Limit::Count(count) => fit_count(row, count),
    }
}

fn fit_percent(row: &ComparisonRow, percent: f64) -> Fit {
    let compared = &row.cells[0].compared;
    let is_complete = !matches!(
        compared.verdict,
        Verdict::Unclear(Uncertainty::Missing(_) | Uncertainty::Noise { .. })
    );
    let mut differences = compared.differences.iter();
    match &compared.verdict {
        Verdict::Better | Verdict::Same => Fit::Within,
        Verdict::Worse => Fit::Exceeds,
        // Unclear is then only how much better it is.
        Verdict::Unclear(_)
            if is_complete
                && !compared.differences.is_empty()
                && differences.all(|one| one.percent >= -percent) =>
        {
            Fit::Within
        }
        Verdict::Unclear(why) => Fit::Undecided(why.to_string()),
    }
}

fn fit_count(row: &ComparisonRow, limit: f64) -> Fit {
    let unit = Metric::COST.unit(Clock::Instructions);
    if row.unit != unit {
        return Fit::Undecided(format!("its values are in {}, not in {unit}", row.unit));
    }
    let (Some(before), Some(after)) = (values(&row.base), values(&row.cells[0].measured)) else {
        return Fit::Undecided(match &row.cells[0].compared.verdict {
            Verdict::Unclear(why) => why.to_string(),
            _ => "a seed has no value".to_owned(),
        });
    };
    let above = after.iter().filter(|value| **value > limit).count();
    let worse = before.iter().zip(&after).filter(|(old, new)| new > old);
    let worse = worse.count();
    let all = after.len();
    if above == 0 {
        Fit::Within
    } else if worse == 0 {
        Fit::AboveBefore
    } else if above == all && worse == all {
        Fit::Exceeds
    } else {
        Fit::Undecided(format!(
            "{above} of {all} seeds are above {limit}, {worse} are worse than before"
        ))
    }
}

/// Returns the value of each seed; `None` if one has none.
fn values(measured: &Measured) -> Option<Vec<f64>> {
    let seeds = measured.seeds.iter();
    let values: Option<Vec<f64>> = seeds
        .map(|seed| seed.value.as_ref().ok().map(|sampled| sampled.value))
        .collect();
    values.filter(|values| !values.is_empty())
}
