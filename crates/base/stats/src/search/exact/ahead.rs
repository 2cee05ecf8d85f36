//! Which places a search will ask for, before it knows the answers: who can measure several places
//! at once measures those.
//!
//! The search is played with each answer that the next place may give: the value before it, the
//! value after it, or none. Of all plays the most probable goes on first. The search itself stays
//! as it is, so its places and its answer do too.

use std::collections::BTreeMap;

use super::{Cost, ExactSearch, Pair, Place, Wanted};

/// Chance that a place cannot be measured.
const UNUSABLE: f64 = 0.02;
/// Plays for each place asked for: several plays may come to the same one.
const PLAYS: usize = 8;

/// A place that a search may ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ahead {
    /// A place that was not measured yet.
    pub place: usize,
    /// The chance that the search comes to it by the play that found it.
    pub chance: f64,
}

/// A search with answers that are assumed.
#[derive(Clone)]
struct Play {
    steps: ExactSearch,
    /// The measured place that each assumed one equals.
    equals: BTreeMap<usize, usize>,
    /// The place that was measured last.
    last: Option<usize>,
    chance: f64,
}

impl ExactSearch {
    /// Returns the places that the search asks for next, whatever the answers are: at most `count`,
    /// the most probable first. The first one is that of [`ExactSearch::next`]. `cost` is asked
    /// what places cost after a place was measured, and now.
    #[must_use]
    pub fn ahead(
        &self,
        cost: &dyn Fn(Option<usize>) -> Cost,
        judge: &dyn Fn(usize, usize) -> Pair,
        count: usize,
    ) -> Vec<Ahead> {
        let mut plays = vec![Play {
            steps: self.clone(),
            equals: BTreeMap::new(),
            last: None,
            chance: 1.0,
        }];
        let mut found: Vec<Ahead> = Vec::new();
        for _ in 0..count.saturating_mul(PLAYS) {
            let Some(play) = take_likeliest(&mut plays) else {
                break;
            };
            let missing: Vec<usize> = play.steps.missing_start().collect();
            // The start is asked for without a look at values.
            let next = if missing.is_empty() {
                play.next(cost, judge).into_iter().collect()
            } else {
                missing.clone()
            };
            for place in next {
                if found.len() == count {
                    return found;
                }
                if found.iter().all(|known| known.place != place) {
                    found.push(Ahead {
                        place,
                        chance: play.chance,
                    });
                }
                if missing.is_empty() {
                    plays.extend(play.answered(place));
                }
            }
        }
        found
    }

    fn missing_start(&self) -> impl Iterator<Item = usize> {
        self.start
            .iter()
            .copied()
            .filter(|place| self.places[*place] == Place::Unknown)
    }

    /// Returns the measured places before and after one.
    fn around(&self, place: usize) -> Option<(usize, usize)> {
        Some((
            (0..place).rev().find(|place| self.is_measured(*place))?,
            (place + 1..self.places.len()).find(|place| self.is_measured(*place))?,
        ))
    }

    fn is_measured(&self, place: usize) -> bool {
        self.places[place] == Place::Measured
    }
}

impl Play {
    fn next(
        &self,
        cost: &dyn Fn(Option<usize>) -> Cost,
        judge: &dyn Fn(usize, usize) -> Pair,
    ) -> Option<usize> {
        let next = self.steps.next(
            &cost(self.last),
            &|a, b| match (self.equal(a), self.equal(b)) {
                (a, b) if a == b => Pair::Same,
                (a, b) => judge(a, b),
            },
        );
        match next {
            Wanted::Measure { place, runs: 0 } => Some(place),
            // More runs of a place are no new place.
            Wanted::Measure { .. } | Wanted::Done(_) => None,
        }
    }

    /// Returns the plays after each answer of a place.
    fn answered(&self, place: usize) -> Vec<Self> {
        let Some((before, last)) = self.steps.around(place) else {
            return Vec::new();
        };
        let sum =
            |range: std::ops::RangeInclusive<usize>| self.steps.prior[range].iter().sum::<f64>();
        let left = sum(before + 1..=place);
        let all = sum(before + 1..=last);
        let after = if all > 0.0 {
            left / all
        } else {
            (place - before) as f64 / (last - before) as f64
        };
        let mut without = self.clone();
        without.steps.unusable(place);
        without.last = Some(place);
        without.chance *= UNUSABLE;
        vec![
            self.equated(place, last, after),
            self.equated(place, before, 1.0 - after),
            without,
        ]
    }

    /// Returns the play after a place turns out as another, which has a chance.
    fn equated(&self, place: usize, other: usize, chance: f64) -> Self {
        let mut play = self.clone();
        play.steps.measured(place);
        play.equals.insert(place, self.equal(other));
        Self {
            last: Some(place),
            chance: self.chance * (1.0 - UNUSABLE) * chance,
            ..play
        }
    }

    /// Returns the measured place whose value a place is assumed to have.
    fn equal(&self, place: usize) -> usize {
        self.equals.get(&place).copied().unwrap_or(place)
    }
}

/// Takes the first of the plays with the largest chance.
fn take_likeliest(plays: &mut Vec<Play>) -> Option<Play> {
    let chances = plays.iter().map(|play| play.chance).enumerate();
    let (place, _) = chances.reduce(|best, other| if other.1 > best.1 { other } else { best })?;
    Some(plays.remove(place))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::{Ahead, UNUSABLE};
    use crate::search::{Cost, ExactSearch, Pair, Wanted};

    /// What a place costs depends on what was measured last, as for builds.
    fn cost(places: usize, last: Option<usize>) -> Cost {
        let last = last.unwrap_or(places - 1);
        Cost {
            place: (0..places)
                .map(|place| 1.0 + place.abs_diff(last).min(7) as f64)
                .collect(),
            run: 0.01,
        }
    }

    fn judge(values: &[Option<u8>]) -> impl Fn(usize, usize) -> Pair {
        |a, b| {
            if values[a] == values[b] {
                Pair::Same
            } else {
                Pair::Differs
            }
        }
    }

    /// A search with the places that it asked for.
    struct Asked<'a> {
        steps: ExactSearch,
        values: &'a [Option<u8>],
        last: Option<usize>,
    }

    impl Asked<'_> {
        fn ahead(&self, count: usize) -> Vec<Ahead> {
            let places = self.values.len();
            let now = self.last;
            self.steps.ahead(
                &|last| cost(places, last.or(now)),
                &judge(self.values),
                count,
            )
        }

        /// Asks for a place and takes its value.
        fn go_on(&mut self) -> Option<usize> {
            let cost = cost(self.values.len(), self.last);
            let Wanted::Measure { place, .. } = self.steps.next(&cost, &judge(self.values)) else {
                return None;
            };
            match self.values[place] {
                Some(_) => self.steps.measured(place),
                None => self.steps.unusable(place),
            }
            self.last = Some(place);
            Some(place)
        }
    }

    /// Returns the places asked for if all cost the same.
    fn places_ahead(steps: &ExactSearch, values: &[Option<u8>], count: usize) -> Vec<usize> {
        let even = |_| Cost {
            place: Vec::new(),
            run: 1.0,
        };
        let ahead = steps.ahead(&even, &judge(values), count);
        ahead.iter().map(|ahead| ahead.place).collect()
    }

    #[test]
    fn halves_and_quarters_of_one_step() {
        let values: Vec<Option<u8>> = (0..=64).map(|place| Some(u8::from(place >= 40))).collect();
        let mut steps = ExactSearch::new(&[1.0; 65], 1).unwrap();
        assert_eq!(
            places_ahead(&steps, &values, 6),
            [0, 64],
            "what follows depends on these"
        );
        [0, 64].into_iter().for_each(|end| steps.measured(end));
        let mut seven = places_ahead(&steps, &values, 7);
        assert_eq!(seven[0], 32);
        seven.sort_unstable();
        assert_eq!(seven, [8, 16, 24, 32, 40, 48, 56]);
        assert!(places_ahead(&steps, &values, 0).is_empty());
        let cuts = ExactSearch::new(&[1.0; 65], 4).unwrap();
        assert_eq!(
            places_ahead(&cuts, &values, 9),
            [0, 64, 16, 32, 48],
            "cuts need no answer"
        );
    }

    proptest! {
        /// Whatever is answered, the next places of the search are among those foreseen: all that are more probable than the
        /// least probable of these.
        #[test]
        fn search_asks_for_places_foreseen(
            values in prop::collection::vec(prop::option::weighted(0.9, 0..2_u8), 3..60),
            weights in prop::collection::vec(0.1..4.0_f64, 60),
            begun in 2..6_usize,
            count in 1..40_usize,
        ) {
            let last = values.len() - 1;
            let mut values = values;
            (values[0], values[last]) = (Some(0), Some(1));
            let steps = ExactSearch::new(&weights[..=last], 1).unwrap();
            let mut asked = Asked {
                steps,
                values: &values,
                last: None,
            };
            (0..begun).for_each(|_| assert!(asked.go_on().is_none_or(|place| place <= last)));
            let ahead = asked.ahead(count);
            prop_assert!(ahead.len() <= count);
            // With fewer than asked for, all that can come is there.
            let least = if ahead.len() == count {
                ahead[count - 1].chance
            } else {
                1e-3
            };
            let mut chance = 1.0;
            let mut first = true;
            while chance > least * (1.0 + 1e-9) {
                let before = asked.steps.clone();
                let Some(place) = asked.go_on() else { break };
                prop_assert!(
                    ahead.iter().any(|one| one.place == place),
                    "{place} of {ahead:?}"
                );
                prop_assert!(!first || ahead[0].place == place);
                first = false;
                let Some((left, right)) = before.around(place) else {
                    break;
                };
                let share = weights[left + 1..=place].iter().sum::<f64>()
                    / weights[left + 1..=right].iter().sum::<f64>();
                chance *= match values[place] {
                    None => UNUSABLE,
                    value if value == values[left] && value != values[right] => {
                        (1.0 - UNUSABLE) * (1.0 - share)
                    }
                    value if value == values[right] && value != values[left] => {
                        (1.0 - UNUSABLE) * share
                    }
                    // Like both or like neither: not played.
                    _ => break,
                };
            }
        }

        #[test]
        fn any_weights_end(
            weights in prop::collection::vec(any::<f64>(), 2..30),
            count in 0..100_usize,
            intervals in any::<usize>(),
        ) {
            let steps = ExactSearch::new(&weights, intervals).unwrap();
            let ahead = steps.ahead(
                &|last| cost(weights.len(), last),
                &|_, _| Pair::Differs,
                count,
            );
            prop_assert!(ahead.len() <= count);
        }
    }
}
