//! Searches one step in noisy values at the least cost.
//!
//! Each place has a tally of its values. The posterior over places follows from the tallies and the
//! prior; the next measurement is the one with the most expected information per cost.

use super::endpoint_test::{Endpoints, test_endpoints};
use super::information::{entropy, information};
use super::posterior::Posterior;
use super::tally::{Tally, pooled, weight};
use super::{Cost, shares};
use crate::distribution::fisher_upper;

/// Numbers of runs whose information is computed. More than one, as a place that is expensive to
/// prepare is worth several runs at once.
const RUNS: [usize; 5] = [1, 2, 4, 8, 16];
/// Runs that are requested at once: after each result the posterior is another, so a long request
/// would measure what is known by then.
const RUNS_AT_ONCE: usize = 2;
/// A run with less information than this (bits) is not worth its cost: the search ends.
const BITS_MIN: f64 = 1e-6;

/// When a search ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    /// Probability that the step must reach.
    pub sure: f64,
    /// Most runs in all; after them the most probable place is the answer.
    pub runs_max: usize,
    /// Variance of a place, the same in all its runs, in variances of a run: found by measuring
    /// places that are known to be equal. 0 where each run starts the place afresh, and its
    /// scatter has both in it.
    pub bias: f64,
    /// Differences of the ends up to this, in the values' unit, are of no interest.
    pub effect_min: f64,
}

impl Default for Criteria {
    /// 98 %, 4,000 runs, no bias, any difference.
    fn default() -> Self {
        Self {
            sure: 0.98,
            runs_max: 4000,
            bias: 0.0,
            effect_min: 0.0,
        }
    }
}

/// What the caller does next.
#[derive(Debug, Clone, PartialEq)]
pub enum NextMeasurement {
    /// Measure a place so many times.
    Measure {
        /// The place to measure.
        place: usize,
        /// How often, at least once.
        runs: usize,
    },
    /// The search is over without an answer.
    Refused(Refusal),
    /// The search is over.
    Found(NoisyStep),
}

/// Why there is nothing to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The ends do not differ.
    NoDifference,
    /// An end cannot be measured.
    UnusableEnd,
}

/// Where the step is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoisyStep {
    /// The first place where it may be.
    pub first: usize,
    /// The last one: the same, unless places between cannot be measured.
    pub last: usize,
    /// The chance that it is there.
    pub chance: f64,
    /// Level after less level before.
    pub effect: f64,
    /// Standard error of that.
    pub error: f64,
}

/// Chance of values of one step to fit it as badly, below which there is more than one.
const MISFIT_MAX: f64 = 1e-3;

/// What is known of a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    Known(Tally),
    Unusable,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct NoisySearch {
    prior: Vec<f64>,
    criteria: Criteria,
    places: Vec<Place>,
    runs: usize,
    endpoints: Endpoints,
}

impl NoisySearch {
    /// Begins a search; `prior` says how probable a step is at each place, the first (which can
    /// have none) included.
    ///
    /// Returns `None` for fewer than two places.
    #[must_use]
    pub fn new(prior: &[f64], criteria: Criteria) -> Option<Self> {
        if prior.len() < 2 {
            return None;
        }
        // The first place begins the old level, so no step is at it.
        let mut weights = prior.to_vec();
        weights[0] = 0.0;
        let mut prior = shares(&weights);
        if prior[0] > 0.0 {
            // No weight at all was given.
            let others = (prior.len() - 1) as f64;
            prior.fill(1.0 / others);
            prior[0] = 0.0;
        }
        let places = vec![Place::Known(Tally::default()); prior.len()];
        let mut search = Self {
            prior,
            criteria,
            places,
            runs: 0,
            endpoints: Endpoints::Alike,
        };
        search.judge();
        Some(search)
    }

    /// Begins a search with what is known already, the ends to differ included.
    pub(super) fn within(prior: &[f64], places: Vec<Place>, criteria: Criteria) -> Option<Self> {
        let search = Self::new(prior, criteria)?;
        Some(Self {
            places,
            endpoints: Endpoints::Differ,
            ..search
        })
    }

    /// Returns the two measured places between which a step is likeliest, if the others do not fit
    /// one step only.
    pub(super) fn misfit(&self) -> Option<(usize, usize)> {
        let posterior = self.posterior()?;
        self.misfits(posterior.scatter, 2).then_some(posterior.gap)
    }

    /// Returns the same, if not all measured places, three at least, fit one level.
    pub(super) fn uneven(&self) -> Option<(usize, usize)> {
        let posterior = self.posterior()?;
        let mut sums = (0.0, 0.0, 0.0);
        for (_, tally) in self.measured() {
            let weight = tally.weight(self.criteria.bias);
            // Differences from a level keep digits that squares of the values would lose.
            let value = tally.mean - posterior.before;
            sums.0 += weight;
            sums.1 += weight * value;
            sums.2 += weight * value * value;
        }
        let scatter = sums.2 - sums.1 * sums.1 / sums.0;
        // Values without any scatter leave no more than the digits of a number.
        let least = (posterior.before.abs() * 1e-9).powi(2);
        (self.measured().count() > 2 && scatter > least && self.misfits(scatter, 1))
            .then_some(posterior.gap)
    }

    /// Tells whether measured places scatter too much about so many levels.
    fn misfits(&self, scatter: f64, levels: usize) -> bool {
        let tallies: Vec<Tally> = self.measured().map(|(_, tally)| tally).collect();
        // Each fitted level takes one degree of freedom.
        let above = tallies.len().saturating_sub(levels) as f64;
        let Some((variance, below)) = pooled(tallies.iter()).filter(|_| above > 0.0) else {
            return false;
        };
        fisher_upper(scatter / above / variance, above, below) < MISFIT_MAX
    }

    /// Adds values of a place. Ignores values that are not finite, and places outside the line.
    pub fn record(&mut self, place: usize, values: &[f64]) {
        if let Some(Place::Known(tally)) = self.places.get_mut(place) {
            for value in values.iter().filter(|value| value.is_finite()) {
                tally.add(*value);
                self.runs += 1;
            }
        }
        self.judge();
    }

    /// Marks a place as unmeasurable: its probability stays, and goes to the next place after it
    /// that can be measured.
    pub fn unusable(&mut self, place: usize) {
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Place::Unusable;
        }
    }

    /// Returns the number of recorded values.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Returns the chance of a step at each place, if enough is known to say.
    #[must_use]
    pub fn chances(&self) -> Option<Vec<f64>> {
        self.posterior().map(|posterior| posterior.step)
    }

    /// Returns what to do next; the same until a result comes in.
    #[must_use]
    pub fn next(&self, cost: &Cost) -> NextMeasurement {
        let last = self.places.len() - 1;
        if [0, last]
            .iter()
            .any(|end| self.places[*end] == Place::Unusable)
        {
            return NextMeasurement::Refused(Refusal::UnusableEnd);
        }
        match self.endpoints {
            Endpoints::More { end, runs } => {
                return NextMeasurement::Measure {
                    place: end * last,
                    runs,
                };
            }
            Endpoints::Alike => return NextMeasurement::Refused(Refusal::NoDifference),
            Endpoints::Differ => {}
        }
        // The test of the endpoints has values of both.
        let Some(posterior) = self.posterior() else {
            return NextMeasurement::Refused(Refusal::NoDifference);
        };
        let found = self.best(&posterior);
        if found.chance >= self.criteria.sure || self.runs >= self.criteria.runs_max {
            return NextMeasurement::Found(found);
        }
        let left = self.criteria.runs_max - self.runs;
        self.choose(&posterior, cost)
            .map_or(NextMeasurement::Found(found), |(place, runs)| {
                NextMeasurement::Measure {
                    place,
                    runs: runs.min(left),
                }
            })
    }

    fn judge(&mut self) {
        // A difference once seen is not tested again: later runs are many, and few of them are at
        // the ends.
        if self.endpoints == Endpoints::Differ {
            return;
        }
        if let [Place::Known(first), .., Place::Known(last)] = self.places.as_slice() {
            self.endpoints =
                test_endpoints([first, last], self.criteria.bias, self.criteria.effect_min);
        }
    }

    fn posterior(&self) -> Option<Posterior> {
        let measured: Vec<(usize, Tally)> = self.measured().collect();
        Posterior::new(&self.prior, &measured, self.criteria.bias)
    }

    fn measured(&self) -> impl Iterator<Item = (usize, Tally)> {
        self.places
            .iter()
            .enumerate()
            .filter_map(|(place, state)| match state {
                Place::Known(tally) if tally.count > 0 => Some((place, *tally)),
                Place::Known(_) | Place::Unusable => None,
            })
    }

    /// Returns the most probable answer: steps that no place between tells apart are one.
    fn best(&self, posterior: &Posterior) -> NoisyStep {
        let effect = posterior.after - posterior.before;
        let error = posterior.error;
        let mut best = NoisyStep {
            first: 1,
            last: 1,
            // Less than any chance: the first place is an answer even at 0.
            chance: -1.0,
            effect,
            error,
        };
        let mut first = 1;
        let mut chance = 0.0;
        for place in 1..self.places.len() {
            chance += posterior.step[place];
            // No value tells a step at such a place from one at the next: they share one answer.
            if self.places[place] == Place::Unusable {
                continue;
            }
            if chance > best.chance {
                best = NoisyStep {
                    first,
                    last: place,
                    chance,
                    ..best
                };
            }
            (first, chance) = (place + 1, 0.0);
        }
        best
    }

    /// Returns the place and the number of runs with most information for their cost; `None` if
    /// none is left.
    fn choose(&self, posterior: &Posterior, cost: &Cost) -> Option<(usize, usize)> {
        let distance = (posterior.after - posterior.before).abs() / posterior.variance.sqrt();
        let mut chance = 0.0;
        let mut fresh: Vec<(f64, f64, usize)> = Vec::new();
        let mut worth = Vec::new();
        for place in 0..self.places.len() {
            chance = (chance + posterior.step[place]).min(1.0);
            match self.places[place] {
                Place::Unusable => {}
                Place::Known(tally) if tally.count > 0 => {
                    worth.push((place, chance, tally.count, 0.0));
                }
                Place::Known(_) => fresh.push((cost.of_place(place), chance, place)),
            }
        }
        // Of the places that must be made ready first only the best by entropy is looked at
        // closely, for each number of runs.
        for runs in RUNS {
            let rates = fresh.iter().map(|place @ (ready, chance, _)| {
                let rate = entropy(*chance) / (ready + runs as f64 * cost.of_run());
                (rate, place)
            });
            let best = rates.max_by(|(one, _), (other, _)| one.total_cmp(other));
            if let Some((_, (ready, chance, place))) = best {
                worth.push((*place, *chance, 0, *ready));
            }
        }
        // Bits per cost decide alone: where builds are dear this halves the line and repeats runs,
        // where runs are dear it goes to new places.
        let mut best: Option<(f64, usize, usize)> = None;
        for (place, chance, count, ready) in worth {
            for runs in RUNS {
                // A place that is off by itself tells ever less with more runs: its weight is
                // bounded by the bias.
                let more =
                    weight(count + runs, self.criteria.bias) - weight(count, self.criteria.bias);
                let bits = information(chance, distance * more.sqrt());
                let rate = bits / (ready + runs as f64 * cost.of_run());
                if bits > BITS_MIN && best.is_none_or(|(most, ..)| rate > most) {
                    best = Some((rate, place, runs));
                }
            }
        }
        // Asked for in parts: once the place is ready, the first values may say that the others are
        // not worth it.
        best.map(|(_, place, runs)| (place, runs.min(RUNS_AT_ONCE)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::{Criteria, NextMeasurement, NoisySearch, NoisyStep, Refusal};
    use crate::search::Cost;

    fn cost(places: usize) -> Cost {
        Cost {
            place: vec![5.0; places],
            run: 1.0,
        }
    }

    /// Plays a search to its end; a place without a value cannot be measured.
    fn play(
        mut search: NoisySearch,
        of: &dyn Fn(usize) -> Option<f64>,
    ) -> (NextMeasurement, Vec<usize>) {
        let mut visited = Vec::new();
        loop {
            match search.next(&cost(100)) {
                NextMeasurement::Measure { place, runs } => {
                    visited.push(place);
                    match of(place) {
                        Some(value) => search.record(place, &vec![value; runs]),
                        None => search.unusable(place),
                    }
                }
                end => return (end, visited),
            }
        }
    }

    fn found(next: NextMeasurement) -> NoisyStep {
        match next {
            NextMeasurement::Found(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_without_noise_are_a_plain_bisection() {
        for step in 1..100 {
            let search = NoisySearch::new(&[1.0; 100], Criteria::default()).unwrap();
            let (end, visited) = play(search, &|place| {
                Some(if place < step { 10.0 } else { 12.0 })
            });
            let found = found(end);
            assert_eq!((found.first, found.last), (step, step));
            assert!(
                (found.effect - 2.0).abs() < 1e-9 && found.chance > 0.99,
                "{found:?}"
            );
            assert!(visited.len() <= 2 + 7, "{visited:?}");
        }
    }

    #[test]
    fn what_cannot_be_measured_stays_possible() {
        let search = NoisySearch::new(&[1.0; 100], Criteria::default()).unwrap();
        let (end, _) = play(search, &|place| match place {
            40..50 => None,
            place => Some(if place < 45 { 10.0 } else { 12.0 }),
        });
        let found = found(end);
        assert_eq!((found.first, found.last), (40, 50));
        assert!(found.chance > 0.98);
    }

    #[test]
    fn equal_or_unmeasurable_ends_are_refused() {
        let search = NoisySearch::new(&[1.0; 10], Criteria::default()).unwrap();
        assert_eq!(
            play(search.clone(), &|_| Some(3.0)).0,
            NextMeasurement::Refused(Refusal::NoDifference)
        );
        let (end, visited) = play(search, &|place| (place != 9).then_some(1.0));
        assert_eq!(end, NextMeasurement::Refused(Refusal::UnusableEnd));
        assert_eq!(visited, [0, 9]);
        assert!(NoisySearch::new(&[1.0], Criteria::default()).is_none());
    }

    #[test]
    fn the_prior_decides_where_to_look_first() {
        let mut prior = [0.01; 100];
        prior[70] = 50.0;
        let search = NoisySearch::new(&prior, Criteria::default()).unwrap();
        let (end, visited) = play(search, &|place| Some(if place < 70 { 1.0 } else { 2.0 }));
        assert_eq!(found(end).first, 70);
        assert!(
            visited.len() <= 5 && visited[2..].iter().all(|place| [69, 70].contains(place)),
            "{visited:?}"
        );
    }

    #[test]
    fn cheap_places_are_preferred() {
        let mut search = NoisySearch::new(&[1.0; 100], Criteria::default()).unwrap();
        search.record(0, &[1.0; 4]);
        search.record(99, &[2.0; 4]);
        let mut cost = cost(100);
        assert!(matches!(
            search.next(&cost),
            NextMeasurement::Measure { place: 49 | 50, .. }
        ));
        cost.place[40] = 0.0;
        assert!(matches!(
            search.next(&cost),
            NextMeasurement::Measure { place: 40, runs: 1 }
        ));
    }

    proptest! {
        #[test]
        fn any_values_come_to_an_end(
            values in prop::collection::vec(prop::option::of(any::<f64>()), 2..20),
            prior in prop::collection::vec(any::<f64>(), 2..20),
            bias in 0.0..3.0,
        ) {
            let criteria = Criteria {
                runs_max: 60,
                bias,
                ..Criteria::default()
            };
            let mut search = NoisySearch::new(&prior, criteria).unwrap();
            let mut turn = 0;
            loop {
                turn += 1;
                prop_assert!(turn < 600);
                match search.next(&cost(prior.len())) {
                    NextMeasurement::Measure { place, runs } => match values[turn % values.len()] {
                        // What is never a number would be asked for forever.
                        Some(value) => search.record(
                            place,
                            &vec![if value.is_finite() { value } else { 0.0 }; runs],
                        ),
                        None => search.unusable(place),
                    },
                    NextMeasurement::Refused(_) => break,
                    NextMeasurement::Found(found) => {
                        prop_assert!(
                            1 <= found.first
                                && found.first <= found.last
                                && found.last < prior.len()
                        );
                        break;
                    }
                }
            }
        }
    }
}
