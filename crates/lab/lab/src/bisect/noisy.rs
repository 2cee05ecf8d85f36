//! The search for noisy values: each seed is a run, and the search next measures what promises the
//! most information.

use stats::{
    LevelEstimates, MultiStepMeasurement, MultiStepSearch, NoisyStep, Pair, SearchCost,
    SearchCriteria, Tolerance,
};

use super::line::{Line, Spot};
use super::search::Search;
use super::{Bisected, BisectionEvent, Certainty, Change, Culprit, Noise, Probe, Refused};
use crate::LabError;

/// Runs of each end at the start.
pub(super) const RUNS: usize = 4;
/// Cost of linking, in runs.
const LINK: f64 = 5.0;
/// Share of the whole difference that a step must exceed; `stats` uses the same.
const SHARE_PERCENT: f64 = 25.0;
/// Limit on runs of a dropped commit next to a culprit.
const PARENT_RUNS_MAX: usize = 60;
/// Half width of the reported range of an effect, in standard errors.
const SIDES: f64 = 1.96;

/// Returns a change with its uncertainty as a range.
fn change(before: f64, after: f64, error: f64, sign: f64) -> Change {
    let percent = |effect: f64| sign * 100.0 * effect / before.abs();
    let effect = after - before;
    let mut differences: Vec<f64> = [-SIDES, 0.0, SIDES]
        .iter()
        .map(|errors| percent(effect + errors * error))
        .collect();
    differences.sort_by(f64::total_cmp);
    Change {
        before,
        after,
        differences_percent: differences,
    }
}

impl Search<'_> {
    /// Returns 1 if more is better and -1 if less is.
    fn sign(&self) -> f64 {
        match self.question.metric.direction {
            model::Direction::HigherIsBetter => 1.0,
            model::Direction::LowerIsBetter => -1.0,
        }
    }

    fn criteria(&self, level: f64) -> SearchCriteria {
        let Noise::Runs { bias, runs_max } = self.question.noise else {
            return SearchCriteria::default();
        };
        let cuts = self.question.intervals > 1;
        let percent = self
            .question
            .margin_percent
            .or(cuts.then_some(self.question.metric.margin_percent));
        let effect_min = percent.map_or(0.0, |percent| percent / 100.0 * level.abs());
        SearchCriteria {
            bias,
            runs_max,
            effect_min,
            ..SearchCriteria::default()
        }
    }

    /// Searches the whole range.
    pub(super) fn search_noisy(&mut self) -> Result<Bisected, LabError> {
        self.rebuild_cost = self.prober.rebuild_cost(self.history)?;
        let line = Line::trunk(self.history, &self.rebuild_cost);
        let (culprits, several) = self.search_noisy_line(&line)?;
        let before = several.level(0).unwrap_or(f64::NAN);
        let (difference, error) = several.whole().unwrap_or((0.0, 0.0));
        let after = several.level(several.last()).unwrap_or(f64::NAN);
        let total = change(before, after, error, self.sign());
        let percent = total.percent().unwrap_or(0.0);
        let Some(culprits) = culprits else {
            let error_percent = 100.0 * error / before.abs();
            return Ok(Bisected::Refused(Refused::NotSeen {
                percent,
                error_percent,
                runs: several.runs(),
            }));
        };
        let least = self.criteria(before).effect_min;
        let least = if least > 0.0 {
            least
        } else {
            SHARE_PERCENT / 100.0 * difference.abs()
        };
        self.margin = 100.0 * least / before.abs();
        Ok(Bisected::Found(self.findings(total, culprits)))
    }

    /// Searches a line, first without commits that cannot matter; `None` if its ends do not differ
    /// visibly.
    fn search_noisy_line(
        &mut self,
        line: &Line,
    ) -> Result<(Option<Vec<Culprit>>, MultiStepSearch), LabError> {
        let mut remaining = line.remaining();
        let places = remaining.len() - 1;
        let builds = if places > 1 {
            (places as f64).log2().ceil() as usize
        } else {
            0
        };
        (self.notify)(BisectionEvent::Range {
            places,
            commits: self.history.count(),
            builds,
        });
        let level = self
            .measure_with(&line.spots[0], RUNS)?
            .and_then(|values| stats::median(&values))
            .unwrap_or(0.0);
        let mut several = self.begin_search(line, &remaining, level)?;
        let mut measured = vec![0; remaining.len()];
        let found = loop {
            if let Some(fewer) = self.without_equal_images(line, &remaining) {
                // What is measured is in the log: the search takes the same values again.
                remaining = fewer;
                several = self.begin_search(line, &remaining, level)?;
                measured = vec![0; remaining.len()];
            }
            let links = self.costs(line, &remaining);
            let cost = SearchCost {
                place: links.into_iter().map(|links| LINK * links).collect(),
                run: 1.0,
            };
            match several.next(&cost) {
                MultiStepMeasurement::Measure { place, runs } => {
                    let upto = measured[place] + runs;
                    match self.measure_with(&line.spots[remaining[place]], upto)? {
                        // The log may have more values from an earlier attempt. The search takes
                        // them only when it asks for them, so that it
                        // repeats its steps.
                        Some(values) if values.len() >= upto => {
                            several.record(place, &values[measured[place]..upto]);
                        }
                        _ => several.unusable(place),
                    }
                    measured[place] = upto;
                }
                MultiStepMeasurement::Refused(_) => return Ok((None, several)),
                MultiStepMeasurement::Done(found) => break found,
            }
        };
        let mut culprits = Vec::new();
        for step in found {
            culprits.extend(self.examine_noisy_step(line, &remaining, step, &several)?);
        }
        Ok((Some(culprits), several))
    }

    fn begin_search(
        &self,
        line: &Line,
        remaining: &[usize],
        level: f64,
    ) -> Result<MultiStepSearch, LabError> {
        MultiStepSearch::new(
            &line.weights(remaining),
            self.criteria(level),
            self.question.intervals,
        )
        .ok_or(LabError::Empty("commits"))
    }

    /// Drops what lies between two measured spots of one image, and the second of them: there is no
    /// step. `None` if no two have one image.
    fn without_equal_images(&self, line: &Line, remaining: &[usize]) -> Option<Vec<usize>> {
        let built: Vec<(usize, &str)> = remaining
            .iter()
            .enumerate()
            .filter_map(|(place, spot)| Some((place, self.image_of(&line.spots[*spot])?)))
            .collect();
        let pair = built.windows(2).find(|pair| pair[0].1 == pair[1].1)?;
        let [first, second] = [pair[0].0, pair[1].0];
        // The ends stay two places: then there is nothing to find.
        if second - first == remaining.len() - 1 {
            return None;
        }
        let mut fewer = remaining.to_vec();
        fewer.drain(first + 1..=second);
        Some(fewer)
    }

    /// Returns the build of a spot that is measured.
    fn image_of(&self, spot: &Spot) -> Option<&str> {
        match self.log.known(spot.commit.as_deref()?)? {
            Probe::Measured { build, .. } => Some(build),
            Probe::Failed(_) => None,
        }
    }

    /// Examines a step: the commits dropped before it, and the commits of a merge.
    fn examine_noisy_step(
        &mut self,
        line: &Line,
        remaining: &[usize],
        step: NoisyStep,
        several: &MultiStepSearch,
    ) -> Result<Vec<Culprit>, LabError> {
        let from = remaining[step.first - 1];
        let at = remaining[step.last];
        let alone = step.first == step.last;
        if alone
            && at - 1 > from
            && self.differ(&line.spots[at - 1], &line.spots[at], step.effect)? == Some(false)
        {
            (self.notify)(BisectionEvent::Unpruned(
                line.spots[at].commit.as_deref().unwrap_or_default(),
            ));
            return Ok(self
                .search_noisy_line(&line.part(from, at))?
                .0
                .unwrap_or_default());
        }
        if alone
            && let Some(within) = self.brought_by(line, at)?
            && let (Some(culprits), _) = self.search_noisy_line(&within)?
            && !culprits.is_empty()
        {
            return Ok(culprits);
        }
        let before = several
            .level(step.first - 1)
            .or_else(|| several.level(0))
            .unwrap_or(f64::NAN);
        let change = change(before, before + step.effect, step.error, self.sign());
        let certainty = Certainty {
            chance: step.chance,
            error_percent: 100.0 * step.error / before.abs(),
        };
        let culprit = self.culprit(line, if alone { at - 1 } else { from }, at, change);
        Ok(vec![Culprit {
            certainty: Some(certainty),
            ..culprit
        }])
    }

    /// Returns whether two spots differ by about `effect`; `None` if one cannot be measured.
    pub(super) fn differ(
        &mut self,
        first: &Spot,
        second: &Spot,
        effect: f64,
    ) -> Result<Option<bool>, LabError> {
        let bias = self.criteria(0.0).bias;
        let tolerance = Tolerance {
            effect_min: effect.abs() / 2.0,
            bias,
            runs: 2,
            runs_max: PARENT_RUNS_MAX,
        };
        let mut levels = LevelEstimates::new(2, tolerance);
        let mut measured = [0; 2];
        loop {
            match levels.judge(0, 1) {
                Pair::Differs => return Ok(Some(true)),
                Pair::Same => return Ok(Some(false)),
                Pair::Open { place, runs } => {
                    let upto = measured[place] + runs;
                    match self.measure_with([first, second][place], upto)? {
                        Some(values) if values.len() >= upto => {
                            levels.record(place, &values[measured[place]..upto]);
                        }
                        _ => return Ok(None),
                    }
                    measured[place] = upto;
                }
            }
        }
    }
}
