//! Two kernels on one machine with one workload: a cell of the overview.

use compare::{
    Replicate, Rule, Seeds, SideComparison, compare_sides, noisy_verdict, scores, within_verdict,
};
use document::number;
use model::{Metric, Uncertainty, Verdict, WithinRun};
use stats::{GroupMean, RatioEstimate, WithinEstimate, estimate_within};

use super::index::KernelIx;
use super::series::{Point, Series};

/// The state of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Worse for all seeds.
    Worse,
    /// A kernel failed or lacks support.
    Failed,
    /// Better for all seeds.
    Better,
    /// None of the others.
    Unclear,
    /// One boot of each kernel, and unknown noise between boots: no verdict is possible.
    Unrated,
    /// One run of each kernel, rated by its samples: unclear, as boots may differ more.
    WithinRun(WithinRun),
    /// Within the margin for all seeds.
    Same,
    /// Not measured on one of the kernels.
    Missing,
}

impl State {
    /// Returns the state for a verdict on values.
    fn from_verdict(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Better => Self::Better,
            Verdict::Worse => Self::Worse,
            Verdict::Same => Self::Same,
            Verdict::Unclear(Uncertainty::Noise { more_runs: None }) => Self::Unrated,
            Verdict::Unclear(Uncertainty::WithinRun(within)) => Self::WithinRun(*within),
            Verdict::Unclear(_) => Self::Unclear,
        }
    }

    /// Returns the word for people and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Failed => "failed",
            Self::Better => "better",
            Self::Unclear => "unclear",
            Self::Unrated => "unrated",
            Self::WithinRun(within) => within.name(),
            Self::Same => "same",
            Self::Missing => "missing",
        }
    }

    /// Returns the name of its colour and of its count: what samples say within one run is unclear.
    #[must_use]
    pub fn tone(self) -> &'static str {
        match self {
            Self::WithinRun(_) => Self::Unclear.name(),
            _ => self.name(),
        }
    }
}

/// A new kernel against a base, over their common seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// How the two sides compare, seed by seed or as distributions.
    pub compared: SideComparison,
    /// The outcome, for a cell of an overview.
    pub state: State,
    /// The rating, if the runs are noisy and seeds pair nothing.
    pub rating: Option<RatioEstimate>,
    /// What the samples of one run of each kernel say, where nothing else does.
    pub within: Option<WithinEstimate>,
}

/// How to compare the points of a series.
#[derive(Debug, Clone)]
pub(super) struct Ruler {
    rule: Rule,
    /// The noise between runs of one kernel, if any.
    scatter: Option<stats::History>,
}

impl Ruler {
    /// Returns the rule of a series for two of its kernels.
    pub(super) fn for_kernels(series: &Series, kernels: &[KernelIx]) -> Self {
        let Metric {
            direction,
            margin_percent,
            ..
        } = series.metric;
        let rule = Rule {
            direction,
            margin_percent,
            floor: series.floor,
            seeds: Seeds::OnBoth,
        };
        Self {
            rule,
            scatter: series.scatters.then(|| series.scatter(kernels)),
        }
    }
}

impl Pair {
    /// Compares a new kernel's point with the base's; each may be missing.
    pub(super) fn rate(ruler: &Ruler, base: Option<&Point>, new: Option<&Point>) -> Self {
        let (Some(base), Some(new)) = (base, new) else {
            return Self::missing();
        };
        let unlike = base.seeds.iter().find_map(|old| {
            let other = new
                .seeds
                .iter()
                .find(|seen| !seen.declared.agrees(&old.declared))?;
            Some(format!(
                "{} on one side and {} on the other",
                old.declared, other.declared
            ))
        });
        if let Some(why) = unlike {
            return Self::without(State::Unclear, &why);
        }
        if let Some(scatter) = &ruler.scatter {
            return Self::rate_noisy(&ruler.rule, scatter, base, new);
        }
        let compared = compare_sides(
            &replicates(base, "base"),
            &replicates(new, "new"),
            &ruler.rule,
        );
        let state = match &compared.verdict {
            Verdict::Unclear(_) => {
                let mut seeds = base
                    .seeds
                    .iter()
                    .chain(&new.seeds)
                    .filter(|seen| !compared.left_out.contains(&seen.seed))
                    .peekable();
                if seeds.peek().is_none() {
                    State::Missing
                } else if seeds.any(|seen| seen.value.is_err()) {
                    State::Failed
                } else {
                    State::Unclear
                }
            }
            verdict => State::from_verdict(verdict),
        };
        Self {
            state,
            compared,
            rating: None,
            within: None,
        }
    }

    /// Rates runs against runs: the unit is the boot, and seeds pair nothing.
    fn rate_noisy(rule: &Rule, scatter: &stats::History, base: &Point, new: &Point) -> Self {
        let sides = [base, new].map(|side| scores(&usable_values(side), rule.direction));
        let [old, other] = match sides {
            [Ok(old), Ok(other)] => [old, other],
            [Err(why), _] | [_, Err(why)] => return Self::without(State::Unclear, &why),
        };
        let margin = rule.margin_percent / 100.0;
        let rating = stats::estimate_ratio(&old, &other, scatter, margin);
        let groups = one_run(base).zip(one_run(new));
        let within = groups.and_then(|(old, other)| estimate_within(&rating, old, other, margin));
        let compared = SideComparison::rated(&rating, rule.direction, rating.p());
        let mut pair = Self {
            state: State::from_verdict(&compared.verdict),
            compared,
            rating: Some(rating),
            within,
        };
        if let Some(within) = within {
            pair.weigh_within(within.p_margin);
        }
        pair
    }

    /// Decides a rating again, with its false discovery rate among the ratings of the same
    /// question.
    pub(super) fn weigh(&mut self, q: f64) {
        let Some(rating) = &self.rating else { return };
        self.compared.verdict = noisy_verdict(rating, q);
        self.state = State::from_verdict(&self.compared.verdict);
    }

    /// Decides what samples within one run say, with the false discovery rate among all that are
    /// decided so.
    pub(super) fn weigh_within(&mut self, q: f64) {
        let (Some(rating), Some(within)) = (&self.rating, &self.within) else {
            return;
        };
        self.compared.verdict =
            within_verdict(within, q).unwrap_or_else(|| noisy_verdict(rating, rating.p()));
        self.state = State::from_verdict(&self.compared.verdict);
    }

    /// Makes it unclear, for a reason.
    pub(super) fn doubt(&mut self, why: Uncertainty) {
        self.compared.verdict = Verdict::Unclear(why);
        self.state = State::Unclear;
    }

    /// Returns the text for a kernel that was not measured.
    pub(super) fn missing() -> Self {
        Self::without(State::Missing, "not measured")
    }

    fn without(state: State, why: &str) -> Self {
        Self {
            state,
            compared: SideComparison::nothing(why),
            rating: None,
            within: None,
        }
    }

    /// Describes it: `-4.29% (-4.31..-4.27 over 5 seeds)`, or the reason why there is no verdict.
    #[must_use]
    pub fn describe(&self) -> String {
        let Some(difference) = self.compared.difference_percent else {
            return match &self.compared.verdict {
                Verdict::Unclear(Uncertainty::Missing(why)) => why.clone(),
                other => other.name().to_owned(),
            };
        };
        if let Some(rating) = &self.rating {
            let (old, new) = rating.groups;
            let ends = self
                .compared
                .spread_percent
                .map_or_else(String::new, |ends| {
                    format!("95%: {}; ", number::interval(ends, 20))
                });
            let runs = format!("{old} against {}", number::count(new, "run"));
            let more = match &self.compared.verdict {
                Verdict::Unclear(Uncertainty::Noise {
                    more_runs: Some(more),
                }) => {
                    format!("; {more} more of each needed")
                }
                Verdict::Unclear(Uncertainty::TooNoisy) => {
                    "; more than 50 of each needed".to_owned()
                }
                Verdict::Unclear(Uncertainty::NearMargin) => {
                    "; too near the margin for 50 of each".to_owned()
                }
                Verdict::Unclear(Uncertainty::NoisyHistory) => {
                    "; earlier kernels too noisy: bring three or more of each".to_owned()
                }
                Verdict::Unclear(Uncertainty::TooCoarse) => {
                    "; values in steps as wide as the margin".to_owned()
                }
                Verdict::Unclear(
                    why @ (Uncertainty::Contradicted { .. }
                    | Uncertainty::Mixed { .. }
                    | Uncertainty::Deferred { .. }
                    | Uncertainty::Held { .. }),
                ) => format!("; {why}"),
                Verdict::Unclear(Uncertainty::WithinRun(within)) => {
                    format!("; {}: bring two or more of each", within.name())
                }
                Verdict::Unclear(_) => "; unrated: bring two or more of each".to_owned(),
                Verdict::Better | Verdict::Worse | Verdict::Same => String::new(),
            };
            return format!(
                "{} ({ends}{runs}{more})",
                number::signed_percent(difference)
            );
        }
        let seeds = number::count(self.compared.differences.len(), "seed");
        let ends = self
            .compared
            .spread_percent
            .filter(|_| self.compared.differences.len() > 1);
        let over = ends.map_or(seeds.clone(), |ends| {
            format!("{} over {seeds}", number::interval(ends, 20))
        });
        let without = match self.compared.left_out.as_slice() {
            [] => String::new(),
            seeds => format!("; {} not on both", number::seed_list(seeds)),
        };
        let why = match &self.compared.verdict {
            Verdict::Unclear(Uncertainty::Missing(why)) => format!("; {why}"),
            Verdict::Unclear(
                why @ (Uncertainty::BelowFloor { .. }
                | Uncertainty::Layouts { .. }
                | Uncertainty::Mixed { .. }
                | Uncertainty::Deferred { .. }
                | Uncertainty::Held { .. }
                | Uncertainty::Contradicted { .. }),
            ) => {
                format!("; {why}")
            }
            _ => String::new(),
        };
        format!(
            "{} ({over}{without}{why})",
            number::signed_percent(difference)
        )
    }
}

/// Returns the results of a kernel as one side of a comparison with this name.
fn replicates(point: &Point, side: &str) -> Vec<Replicate> {
    let seeds = point.seeds.iter();
    seeds.map(|seen| seen.replicate(side)).collect()
}

/// Returns what the samples of a kernel with one run of another suite say.
fn one_run(point: &Point) -> Option<&GroupMean> {
    let mut usable = point
        .seeds
        .iter()
        .filter_map(|seen| seen.value.as_ref().ok());
    let only = usable.next()?;
    usable.next().is_none().then_some(only.within.as_deref()?)
}

/// Returns the values of a kernel's runs, on any scale.
fn usable_values(point: &Point) -> Vec<f64> {
    let usable = point
        .seeds
        .iter()
        .filter_map(|seen| seen.value.as_ref().ok());
    usable.map(|value| value.value).collect()
}
