//! Two kernels on one machine, one workload: what a cell of the table says.

use model::{Metric, Uncertainty, Verdict};
use stats::{Rating, Scores, Spread};

use super::series::{Point, Seen, Series, Value, better};
use crate::difference::{difference_percent, ratio};
use crate::render::number;
use crate::scattered::{LEVEL, percent};
use crate::verdict::{scattered_verdict, verdict};

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
    /// One boot of each, and nothing known of how far boots lie apart: no verdict is possible.
    Unrated,
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
            Self::Unrated => "unrated",
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
    /// How sure it is, where runs scatter and seeds pair nothing.
    pub rating: Option<Rating>,
}

/// How the points of a series are held against each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ruler {
    pub(super) metric: Metric,
    /// How far runs of one kernel lay apart, where they do.
    pub(super) scatter: Option<stats::History>,
}

impl Ruler {
    /// Returns that of a series for two of its kernels.
    pub(super) fn of(series: &Series, kernels: &[usize]) -> Self {
        Self { metric: series.metric, scatter: series.scatters.then(|| series.scatter(kernels)) }
    }
}

impl Pair {
    /// Holds a new kernel's point against the base's; each may not be there.
    pub(super) fn of(ruler: &Ruler, base: Option<&Point>, new: Option<&Point>) -> Self {
        let (Some(base), Some(new)) = (base, new) else { return Self::without(State::Missing, "not measured") };
        let unlike = base.seeds.iter().find_map(|old| {
            let other = new.seeds.iter().find(|seen| !seen.declared.agrees(&old.declared))?;
            Some(format!("{} on one side and {} on the other", old.declared, other.declared))
        });
        if let Some(why) = unlike {
            return Self::without(State::Unclear, &why);
        }
        if let Some(scatter) = &ruler.scatter {
            return Self::rated((&ruler.metric, scatter), base, new);
        }
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
        Self::decided(&ruler.metric, &values)
    }

    /// Rates runs against runs: the unit is the boot, and its number pairs nothing.
    fn rated((metric, scatter): (&Metric, &stats::History), base: &Point, new: &Point) -> Self {
        let scores = |point: &Point| {
            let values: Vec<[f64; 1]> =
                point.seeds.iter().filter_map(|seen| Some([seen.value.as_ref().ok()?.time])).collect();
            Scores::of(&values, better(metric.direction)).map_err(|fault| fault.to_string().replace("group", "run"))
        };
        let (old, new) = match (scores(base), scores(new)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(why), _) | (_, Err(why)) => return Self::without(State::Unclear, &why),
        };
        let rating = stats::rate(&old, &new, scatter);
        let ends = rating.interval(LEVEL);
        let mut pair = Self {
            difference_percent: Some(percent(metric.direction, rating.ratio())),
            spread_percent: ends.map(|ends| Spread {
                min: percent(metric.direction, ends.low),
                max: percent(metric.direction, ends.high),
            }),
            ratio: Some(rating.ratio()),
            rating: Some(rating),
            ..Self::without(State::Unrated, "")
        };
        pair.weigh(metric.margin_percent, rating.precision.map_or(1.0, |precision| precision.p));
        pair
    }

    /// Decides a rating anew, with the share of false finds at which it is found among those that it stands with.
    pub(super) fn weigh(&mut self, margin_percent: f64, q: f64) {
        let Some(rating) = &self.rating else { return };
        self.verdict = scattered_verdict(rating, margin_percent, q);
        self.state = match &self.verdict {
            Verdict::Better => State::Better,
            Verdict::Worse => State::Worse,
            Verdict::Same => State::Same,
            Verdict::Unclear(Uncertainty::Noise { more_runs: None }) => State::Unrated,
            Verdict::Unclear(_) => State::Unclear,
        };
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
            rating: None,
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
            rating: None,
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
        if let Some(rating) = &self.rating {
            let (old, new) = rating.groups;
            let ends =
                self.spread_percent.map_or_else(String::new, |ends| format!("95%: {}; ", number::interval(ends, 20)));
            let runs = format!("{old} against {}", number::count(new, "run"));
            let more = match &self.verdict {
                Verdict::Unclear(Uncertainty::Noise { more_runs: Some(more) }) => {
                    format!("; {more} more of each needed")
                }
                Verdict::Unclear(_) => "; unrated: bring two or more of each".to_owned(),
                Verdict::Better | Verdict::Worse | Verdict::Same => String::new(),
            };
            return format!("{} ({ends}{runs}{more})", number::signed_percent(difference));
        }
        let seeds = number::count(self.ratios.len(), "seed");
        let ends = self.spread_percent.filter(|_| self.ratios.len() > 1);
        let over = ends.map_or(seeds.clone(), |ends| format!("{} over {seeds}", number::interval(ends, 20)));
        format!("{} ({over})", number::signed_percent(difference))
    }
}
