//! Searches any number of steps in noisy values.
//!
//! Within an interval whose ends differ, it computes the posterior of one step. A found step splits
//! its interval, and each half is searched the same way. If the values of an interval do not fit a
//! single step, it splits at the likeliest place before that place is certain: with two steps of
//! one size, neither would ever become more probable than the other.

use super::endpoint_test::{Endpoints, test_endpoints};
use super::levels::{LevelEstimates, Tolerance};
use super::noisy::{Criteria, NextMeasurement, NoisySearch, NoisyStep, Place, Refusal};
use super::{Cost, Pair, shares};

/// Share of the difference between the ends that a step must exceed, unless the criteria name a
/// least difference. Smaller steps cost many runs and explain little of the difference.
const SHARE: f64 = 0.25;
/// Runs of a place that is judged for the first time: the fewest that show a scatter.
const RUNS: usize = 2;
/// Most runs of a place to judge two ends; the search within an interval may want more.
const RUNS_MAX: usize = 60;

/// What the caller does next.
#[derive(Debug, Clone, PartialEq)]
pub enum MultiStepMeasurement {
    /// Measure a place so many times.
    Measure {
        /// The place to measure.
        place: usize,
        /// How often, at least once.
        runs: usize,
    },
    /// The search is over without an answer.
    Refused(Refusal),
    /// The search is over: all steps in order, none where no two neighbours of the start differ.
    Done(Vec<NoisyStep>),
}

#[derive(Debug, Clone, Copy)]
struct Stretch {
    first: usize,
    last: usize,
    /// Its ends differ, by a test.
    differs: bool,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct MultiStepSearch {
    prior: Vec<f64>,
    criteria: Criteria,
    levels: LevelEstimates,
    unusable: Vec<bool>,
    runs: usize,
    start: Vec<usize>,
    /// Intervals to search, the next one last; `None` until the start is measured.
    open: Option<Vec<Stretch>>,
    found: Vec<NoisyStep>,
    refused: Option<Refusal>,
}

impl MultiStepSearch {
    /// Begins a search as [`NoisySearch::new`] does; at first the line is cut into `intervals`.
    /// With one the ends must be seen to differ; with more, steps that cancel each other are
    /// seen where a cut lies between them.
    ///
    /// Returns `None` for fewer than two places.
    #[must_use]
    pub fn new(prior: &[f64], criteria: Criteria, intervals: usize) -> Option<Self> {
        let last = prior.len().checked_sub(1).filter(|last| *last > 0)?;
        let intervals = intervals.clamp(1, last);
        let mut start = vec![0, last];
        start.extend((1..intervals).map(|n| n * last / intervals));
        let tolerance = Tolerance {
            effect_min: criteria.effect_min,
            bias: criteria.bias,
            runs: RUNS,
            runs_max: RUNS_MAX,
        };
        Some(Self {
            prior: shares(prior),
            criteria,
            levels: LevelEstimates::new(prior.len(), tolerance),
            unusable: vec![false; prior.len()],
            runs: 0,
            start,
            open: None,
            found: Vec::new(),
            refused: None,
        })
    }

    /// Adds values of a place. Ignores values that are not finite, and places outside the line.
    pub fn record(&mut self, place: usize, values: &[f64]) {
        self.runs += values.iter().filter(|value| value.is_finite()).count();
        self.levels.record(place, values);
    }

    /// Marks a place as unmeasurable: its probability stays, and goes to the next place after it
    /// that can be measured.
    pub fn unusable(&mut self, place: usize) {
        if let Some(slot) = self.unusable.get_mut(place) {
            *slot = true;
        }
    }

    /// Returns the number of recorded values.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Returns the difference of the ends and its standard error, if both were measured and scatter
    /// is known.
    #[must_use]
    pub fn whole(&self) -> Option<(f64, f64)> {
        self.levels.difference(0, self.last())
    }

    /// Returns the last place: the end of the range.
    #[must_use]
    pub fn last(&self) -> usize {
        self.prior.len() - 1
    }

    /// Returns the level of a place, if it has one.
    #[must_use]
    pub fn level(&self, place: usize) -> Option<f64> {
        self.levels.level(place)
    }

    /// Returns what is to be done next.
    pub fn next(&mut self, cost: &Cost) -> MultiStepMeasurement {
        if self.open.is_none()
            && let Some(turn) = self.begin()
        {
            return turn;
        }
        while let Some(stretch) = self.open.as_mut().and_then(Vec::pop) {
            // The budget is spent: what is found so far is the answer.
            if self.runs >= self.criteria.runs_max {
                break;
            }
            let turn = if stretch.differs {
                self.inside(stretch, cost)
            } else {
                self.ends(stretch)
            };
            if let Some((place, runs)) = turn {
                let left = self.criteria.runs_max - self.runs;
                return MultiStepMeasurement::Measure {
                    place,
                    runs: runs.clamp(1, left),
                };
            }
        }
        let mut found = self.found.clone();
        found.sort_by_key(|found| found.first);
        MultiStepMeasurement::Done(found)
    }

    /// Measures the start; nothing once that is done.
    fn begin(&mut self) -> Option<MultiStepMeasurement> {
        let last = self.prior.len() - 1;
        if let Some(refused) = self.refused {
            return Some(MultiStepMeasurement::Refused(refused));
        }
        if self.unusable[0] || self.unusable[last] {
            return Some(self.refuse(Refusal::UnusableEnd));
        }
        if self.start.len() == 2 {
            let Criteria {
                bias, effect_min, ..
            } = self.criteria;
            match test_endpoints(
                [&self.levels.tally(0), &self.levels.tally(last)],
                bias,
                effect_min,
            ) {
                Endpoints::More { end, runs } => {
                    return Some(MultiStepMeasurement::Measure {
                        place: end * last,
                        runs,
                    });
                }
                Endpoints::Alike => return Some(self.refuse(Refusal::NoDifference)),
                Endpoints::Differ => {}
            }
            if effect_min <= 0.0 {
                let whole = self.whole().map_or(0.0, |(difference, _)| difference.abs());
                self.levels.set_effect_min(SHARE * whole);
            }
        }
        let fresh = self
            .start
            .iter()
            .find(|place| !self.unusable[**place] && self.levels.tally(**place).count == 0);
        if let Some(place) = fresh {
            return Some(MultiStepMeasurement::Measure {
                place: *place,
                runs: RUNS,
            });
        }
        let mut cuts: Vec<usize> = self
            .start
            .iter()
            .copied()
            .filter(|place| !self.unusable[*place])
            .collect();
        cuts.sort_unstable();
        // With one interval, the test of the endpoints has decided that.
        let differs = self.start.len() == 2;
        let stretches = cuts.windows(2).map(|pair| Stretch {
            first: pair[0],
            last: pair[1],
            differs,
        });
        // The last one is taken first: reversed, the search begins at the first place.
        self.open = Some(stretches.rev().collect());
        None
    }

    fn refuse(&mut self, why: Refusal) -> MultiStepMeasurement {
        self.refused = Some(why);
        MultiStepMeasurement::Refused(why)
    }

    fn push(&mut self, stretch: Stretch) {
        if stretch.first < stretch.last
            && let Some(open) = self.open.as_mut()
        {
            open.push(stretch);
        }
    }

    /// Judges the ends of a stretch; returns what to measure for that.
    fn ends(&mut self, mut stretch: Stretch) -> Option<(usize, usize)> {
        // A place that cannot be measured has no level to judge by.
        while stretch.first < stretch.last && self.unusable[stretch.first] {
            stretch.first += 1;
        }
        while stretch.first < stretch.last && self.unusable[stretch.last] {
            stretch.last -= 1;
        }
        if stretch.first == stretch.last {
            return None;
        }
        match self.levels.judge(stretch.first, stretch.last) {
            Pair::Same => {
                // Equal ends do not exclude two steps that cancel each other: values between them
                // would lie apart from both.
                let (before, after) = self.search(stretch)?.uneven()?;
                self.divide(stretch, before, after);
                None
            }
            Pair::Differs => {
                self.push(Stretch {
                    differs: true,
                    ..stretch
                });
                None
            }
            Pair::Open { place, runs } => {
                self.push(stretch);
                Some((place, runs))
            }
        }
    }

    fn search(&self, Stretch { first, last, .. }: Stretch) -> Option<NoisySearch> {
        let mut places = Vec::new();
        for place in first..=last {
            places.push(if self.unusable[place] {
                Place::Unusable
            } else {
                Place::Known(self.levels.tally(place))
            });
        }
        NoisySearch::within(&self.prior[first..=last], places, self.criteria)
    }

    /// Splits an interval into three parts; the middle one is the gap with the step.
    fn divide(&mut self, Stretch { first, last, .. }: Stretch, before: usize, after: usize) {
        // The order of the search does not matter: found steps are sorted at the end.
        for (from, to) in [
            (first, first + before),
            (first + before, first + after),
            (first + after, last),
        ] {
            self.push(Stretch {
                first: from,
                last: to,
                differs: false,
            });
        }
    }

    /// Searches a stretch whose ends differ; returns what to measure for that.
    fn inside(&mut self, stretch: Stretch, cost: &Cost) -> Option<(usize, usize)> {
        let Stretch { first, last, .. } = stretch;
        let search = self.search(stretch)?;
        // Before the next measurement: more runs would not decide between two steps of one size.
        if let Some((before, after)) = search.misfit() {
            self.divide(stretch, before, after);
            return None;
        }
        let of_stretch = Cost {
            place: cost.place.get(first..).unwrap_or_default().to_vec(),
            run: cost.run,
        };
        match search.next(&of_stretch) {
            NextMeasurement::Measure { place, runs } => {
                self.push(stretch);
                Some((first + place, runs))
            }
            NextMeasurement::Refused(_) => {
                // Three values are the fewest that have a posterior.
                self.push(stretch);
                Some((first, 1))
            }
            NextMeasurement::Found(found) => {
                let found = NoisyStep {
                    first: first + found.first,
                    last: first + found.last,
                    ..found
                };
                self.found.push(found);
                self.push(Stretch {
                    first,
                    last: found.first - 1,
                    differs: false,
                });
                self.push(Stretch {
                    first: found.last,
                    last,
                    differs: false,
                });
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::{MultiStepMeasurement, MultiStepSearch};
    use crate::search::{Cost, Criteria, Refusal};

    const COST: Cost = Cost {
        place: Vec::new(),
        run: 1.0,
    };

    /// Plays a search; the values of a place alternate by one around its level, and one without a
    /// level cannot be measured.
    fn play(
        levels: &[Option<f64>],
        criteria: Criteria,
        intervals: usize,
    ) -> (MultiStepMeasurement, usize) {
        let mut search =
            MultiStepSearch::new(&vec![1.0; levels.len()], criteria, intervals).unwrap();
        let mut turns = 0_u32;
        loop {
            match search.next(&COST) {
                MultiStepMeasurement::Measure { place, runs } => match levels[place] {
                    Some(level) => {
                        let values: Vec<f64> = (0..runs)
                            .map(|_| {
                                turns += 1;
                                level + f64::from(turns % 3) - 1.0
                            })
                            .collect();
                        search.record(place, &values);
                    }
                    None => search.unusable(place),
                },
                end => return (end, search.runs()),
            }
        }
    }

    fn line(last: usize, steps: &[(usize, f64)]) -> Vec<Option<f64>> {
        (0..=last)
            .map(|place| {
                let before = steps.iter().filter(|(at, _)| *at <= place);
                Some(before.map(|(_, size)| size).sum())
            })
            .collect()
    }

    fn places(turn: MultiStepMeasurement) -> Vec<(usize, usize)> {
        match turn {
            MultiStepMeasurement::Done(found) => found
                .iter()
                .map(|found| (found.first, found.last))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn steps_of_one_size_are_both_found() {
        for steps in [
            vec![(30, 8.0)],
            vec![(30, 8.0), (70, 8.0)],
            vec![(10, 9.0), (11, 6.0), (90, -7.0)],
        ] {
            let (turn, runs) = play(&line(100, &steps), Criteria::default(), 1);
            let wanted: Vec<(usize, usize)> = steps.iter().map(|(at, _)| (*at, *at)).collect();
            assert_eq!(places(turn), wanted);
            assert!(runs < 200 * steps.len(), "{runs}");
        }
    }

    #[test]
    fn cuts_show_steps_that_cancel_each_other() {
        let cancel = line(100, &[(20, 9.0), (60, -9.0)]);
        let criteria = Criteria {
            effect_min: 4.0,
            ..Criteria::default()
        };
        assert_eq!(
            play(&cancel, criteria, 1).0,
            MultiStepMeasurement::Refused(Refusal::NoDifference)
        );
        assert_eq!(places(play(&cancel, criteria, 4).0), [(20, 20), (60, 60)]);
    }

    #[test]
    fn what_cannot_be_measured_is_one_answer() {
        let mut levels = line(64, &[(30, 9.0)]);
        levels[25..33].fill(None);
        assert_eq!(places(play(&levels, Criteria::default(), 1).0), [(25, 33)]);
        levels[64] = None;
        assert_eq!(
            play(&levels, Criteria::default(), 1).0,
            MultiStepMeasurement::Refused(Refusal::UnusableEnd)
        );
    }

    proptest! {
        #[test]
        fn any_values_come_to_an_end(
            levels in prop::collection::vec(prop::option::of(any::<f32>()), 2..20),
            bias in 0.0..3.0,
            intervals in 1..6_usize,
        ) {
            let levels: Vec<Option<f64>> = levels
                .into_iter()
                .map(|level| level.map(f64::from))
                .collect();
            let mut search = MultiStepSearch::new(
                &vec![1.0; levels.len()],
                Criteria {
                    runs_max: 90,
                    bias,
                    ..Criteria::default()
                },
                intervals,
            )
            .unwrap();
            for turn in 0.. {
                prop_assert!(turn < 600);
                match search.next(&COST) {
                    MultiStepMeasurement::Measure { place, runs } => match levels[place] {
                        // What is never a number would be asked for forever.
                        Some(level) => search.record(
                            place,
                            &vec![if level.is_finite() { level } else { 0.0 }; runs],
                        ),
                        None => search.unusable(place),
                    },
                    MultiStepMeasurement::Done(found) => {
                        for step in &found {
                            prop_assert!(step.first <= step.last && step.last < levels.len());
                        }
                        prop_assert!(found.windows(2).all(|pair| pair[0].last < pair[1].first));
                        break;
                    }
                    MultiStepMeasurement::Refused(_) => break,
                }
            }
        }
    }
}
