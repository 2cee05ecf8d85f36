//! Two kernels on one machine, one workload: what a cell of the table says.

use model::{Metric, Uncertainty, Verdict};
use stats::Spread;

use super::series::{Point, Seen, Value};
use crate::difference::{difference_percent, ratio};
use crate::render::number;
use crate::verdict::verdict;

/// What can be seen of two kernels at one glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Worse for all seeds.
    Worse,
    /// A kernel failed or does not support it.
    Failed,
    /// Better for all seeds.
    Better,
    /// None of the others.
    Unclear,
    /// Within the margin for all seeds.
    Same,
    /// Not measured on one of the kernels.
    Missing,
}

impl State {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Failed => "failed",
            Self::Better => "better",
            Self::Unclear => "unclear",
            Self::Same => "same",
            Self::Missing => "missing",
        }
    }
}

/// A new kernel against a base, with the seeds that both have.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// What it comes to.
    pub verdict: Verdict,
    /// The same at one glance.
    pub state: State,
    /// The median of the differences; positive is better.
    pub difference_percent: Option<f64>,
    /// The smallest and the largest of them.
    pub spread_percent: Option<Spread>,
    /// The median of the ratios; above one is better.
    pub ratio: Option<f64>,
    /// The ratio of each seed.
    pub ratios: Vec<(u64, f64)>,
}

impl Pair {
    /// Holds a new kernel's point against the base's; each may not be there.
    pub(super) fn of(metric: &Metric, base: Option<&Point>, new: Option<&Point>) -> Self {
        let (Some(base), Some(new)) = (base, new) else { return Self::without(State::Missing, "not measured") };
        let seeds: Vec<(&Seen, &Seen)> = base
            .seeds
            .iter()
            .filter_map(|old| Some((old, new.seeds.iter().find(|seen| seen.seed == old.seed)?)))
            .collect();
        if seeds.is_empty() {
            return Self::without(State::Missing, "no seed was measured on both");
        }
        let whys = seeds.iter().flat_map(|(old, new)| [(&old.value, "base"), (&new.value, "new")]);
        if let Some((why, side)) = whys.filter_map(|(value, side)| Some((value.as_ref().err()?, side))).next() {
            return Self::without(State::Failed, &format!("{side}: {}", why.why));
        }
        if let Some((old, new)) = seeds.iter().find(|(old, new)| old.operations != new.operations) {
            let why = format!("{} operations on one side and {} on the other", old.operations, new.operations);
            return Self::without(State::Unclear, &why);
        }
        let values: Vec<(u64, Value, Value)> = seeds
            .iter()
            .filter_map(|(old, new)| Some((old.seed, *old.value.as_ref().ok()?, *new.value.as_ref().ok()?)))
            .collect();
        Self::decided(metric, &values)
    }

    fn decided(metric: &Metric, values: &[(u64, Value, Value)]) -> Self {
        let is_counted = values.iter().all(|(_, old, new)| old.counted.is_some() && new.counted.is_some());
        let on_scale = |value: &Value| value.counted.filter(|_| is_counted).unwrap_or(value.time);
        let pairs: Vec<(u64, f64, f64)> =
            values.iter().map(|(seed, old, new)| (*seed, on_scale(old), on_scale(new))).collect();
        let percents: Option<Vec<f64>> =
            pairs.iter().map(|(_, old, new)| difference_percent(metric.direction, *old, *new)).collect();
        let Some(percents) = percents else { return Self::without(State::Unclear, "no percentage exists") };
        let ratios: Vec<(u64, f64)> =
            pairs.iter().filter_map(|(seed, old, new)| Some((*seed, ratio(metric.direction, *old, *new)?))).collect();
        let verdict = verdict(&percents, metric.margin_percent);
        let all: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
        Self {
            state: match verdict {
                Verdict::Better => State::Better,
                Verdict::Worse => State::Worse,
                Verdict::Same => State::Same,
                Verdict::Unclear(_) => State::Unclear,
            },
            verdict,
            difference_percent: stats::median(&percents),
            spread_percent: stats::spread(&percents),
            ratio: stats::median(&all).filter(|_| all.len() == pairs.len()),
            ratios,
        }
    }

    fn without(state: State, why: &str) -> Self {
        Self {
            verdict: Verdict::Unclear(Uncertainty::Missing(why.to_owned())),
            state,
            difference_percent: None,
            spread_percent: None,
            ratio: None,
            ratios: Vec::new(),
        }
    }

    /// Says it in words: `-4.29% (-4.31..-4.27 over 5 seeds)`, or why nothing can be said.
    #[must_use]
    pub fn words(&self) -> String {
        let Some(difference) = self.difference_percent else {
            return match &self.verdict {
                Verdict::Unclear(Uncertainty::Missing(why)) => why.clone(),
                other => other.word().to_owned(),
            };
        };
        let seeds = number::count(self.ratios.len(), "seed");
        let ends = self.spread_percent.filter(|_| self.ratios.len() > 1);
        let over = ends.map_or(seeds.clone(), |ends| format!("{} over {seeds}", number::interval(ends, 20)));
        format!("{} ({over})", number::signed_percent(difference))
    }
}
