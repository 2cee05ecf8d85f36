//! Searches any number of steps: halves the space between neighbours that differ until no place is
//! left between them.
//!
//! The caller's judge decides whether two places differ, for certain or with enough runs, and keeps
//! the values: this search knows only which places were measured.

mod ahead;

pub use ahead::Ahead;

use super::information::entropy;
use super::{Cost, shares};

/// The judgement on two measured places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// Between them lies a step.
    Differs,
    /// Between them lies nothing worth looking for.
    Same,
    /// So many more runs of this place will tell.
    Open {
        /// One of the two.
        place: usize,
        /// How many, at least one.
        runs: usize,
    },
}

/// What the caller does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Measure a place, for the first time or again.
    Measure {
        /// The place to measure.
        place: usize,
        /// How often; for places that are measured for the first time that is the caller's to
        /// know, and 0 here.
        runs: usize,
    },
    /// All steps are found, in order; none where no two neighbours of the start differ.
    Done(Vec<Step>),
}

/// A step: at one of the places from `first` to `last`, which are one unless places between cannot
/// be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The last measured place before it.
    pub before: usize,
    /// The first place where it may be.
    pub first: usize,
    /// The last one; it was measured.
    pub last: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Unknown,
    Measured,
    Unusable,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct ExactSearch {
    prior: Vec<f64>,
    places: Vec<Place>,
    start: Vec<usize>,
}

impl ExactSearch {
    /// Begins a search; `prior` says how probable a step is at each place. At first the line is cut
    /// into `intervals`, 1 for the two ends only: steps that cancel each other are seen where a
    /// cut lies between them.
    ///
    /// Returns `None` for fewer than two places.
    #[must_use]
    pub fn new(prior: &[f64], intervals: usize) -> Option<Self> {
        let last = prior.len().checked_sub(1).filter(|last| *last > 0)?;
        let intervals = intervals.clamp(1, last);
        // Ends first: where they cannot be measured the rest is not worth it.
        let mut start = vec![0, last];
        start.extend((1..intervals).map(|n| n * last / intervals));
        Some(Self {
            prior: shares(prior),
            places: vec![Place::Unknown; prior.len()],
            start,
        })
    }

    /// Marks a place as measured.
    pub fn measured(&mut self, place: usize) {
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Place::Measured;
        }
    }

    /// Marks a place as unmeasurable: its probability stays, and goes to the next place after it
    /// that can be measured.
    pub fn unusable(&mut self, place: usize) {
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Place::Unusable;
        }
    }

    /// Returns the next measurement; the same until a place is marked.
    #[must_use]
    pub fn next(&self, cost: &Cost, judge: &dyn Fn(usize, usize) -> Pair) -> Wanted {
        if let Some(place) = self
            .start
            .iter()
            .find(|place| self.places[**place] == Place::Unknown)
        {
            return Wanted::Measure {
                place: *place,
                runs: 0,
            };
        }
        let measured: Vec<usize> = (0..self.places.len())
            .filter(|place| self.places[*place] == Place::Measured)
            .collect();
        let mut steps = Vec::new();
        for pair in measured.windows(2) {
            let before = pair[0];
            let last = pair[1];
            match judge(before, last) {
                Pair::Same => {}
                Pair::Open { place, runs } => {
                    return Wanted::Measure {
                        place,
                        runs: runs.max(1),
                    };
                }
                Pair::Differs => match self.middle(before, last, cost) {
                    Some(place) => return Wanted::Measure { place, runs: 0 },
                    None => steps.push(Step {
                        before,
                        first: before + 1,
                        last,
                    }),
                },
            }
        }
        Wanted::Done(steps)
    }

    /// Returns the place between two that tells most for its cost, of those after which the rest
    /// takes no place more than after the one that tells most, or that cost nothing; nothing
    /// where none can be measured.
    fn middle(&self, before: usize, last: usize, cost: &Cost) -> Option<usize> {
        let all: f64 = self.prior[before + 1..=last].iter().sum();
        let mut left = 0.0;
        let mut unknown = Vec::new();
        for place in before + 1..last {
            left += self.prior[place];
            if self.places[place] == Place::Unknown {
                // Where nothing is probable all is equally so.
                let even = (place - before) as f64 / (last - before) as f64;
                let chance = if all > 0.0 {
                    (left / all).clamp(1e-9, 1.0 - 1e-9)
                } else {
                    even
                };
                unknown.push((place, entropy(chance)));
            }
        }
        let (telling, _) = first_most(unknown.iter().copied())?;
        let least = halvings(before, telling, last);
        let mut rates = Vec::new();
        for (place, bits) in unknown {
            let price = cost.of_place(place);
            // Builds near the last one are cheap, but a place near an end leaves more to search:
            // it is worth its price only while the worst case takes no build more.
            if halvings(before, place, last) <= least || price <= 0.0 {
                rates.push((place, bits / (price + cost.of_run())));
            }
        }
        first_most(rates.into_iter()).map(|(place, _)| place)
    }
}

/// Returns the larger part of an interval that is cut at a place, rounded up to a power of two: the
/// same for all places after which as many halvings are left.
fn halvings(before: usize, place: usize, last: usize) -> usize {
    (place - before).max(last - place).next_power_of_two()
}

/// Returns the first of those that have most.
fn first_most(all: impl Iterator<Item = (usize, f64)>) -> Option<(usize, f64)> {
    all.reduce(|best, other| if other.1 > best.1 { other } else { best })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{ExactSearch, Pair, Step, Wanted};
    use crate::search::Cost;

    const COST: Cost = Cost {
        place: Vec::new(),
        run: 1.0,
    };

    /// Plays a search over values that are certain; a place without one cannot be measured.
    fn play(values: &[Option<f64>], intervals: usize) -> (Vec<Step>, usize) {
        let mut search = ExactSearch::new(&vec![1.0; values.len()], intervals).unwrap();
        let judge = |a: usize, b: usize| match (values[a], values[b]) {
            (Some(a), Some(b)) if (a - b).abs() > 0.5 => Pair::Differs,
            _ => Pair::Same,
        };
        let mut visited = 0;
        loop {
            match search.next(&COST, &judge) {
                Wanted::Measure { place, .. } if values[place].is_some() => {
                    visited += 1;
                    search.measured(place);
                }
                Wanted::Measure { place, .. } => search.unusable(place),
                Wanted::Done(steps) => return (steps, visited),
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

    #[test]
    fn one_step_takes_places_of_a_bisection() {
        for at in 1..=64 {
            let (steps, visited) = play(&line(64, &[(at, 1.0)]), 1);
            assert_eq!(
                steps,
                [Step {
                    before: at - 1,
                    first: at,
                    last: at
                }]
            );
            assert!(visited <= 2 + 6, "{at} {visited}");
        }
    }

    /// Returns the place that is measured next between 0 and 22.
    fn visited(expensive: std::ops::Range<usize>) -> usize {
        let mut search = ExactSearch::new(&[1.0; 23], 1).unwrap();
        [0, 22].into_iter().for_each(|end| search.measured(end));
        let place = (0..23)
            .map(|place| if expensive.contains(&place) { 5.0 } else { 1.0 })
            .collect();
        match search.next(&Cost { place, run: 0.01 }, &|_, _| Pair::Differs) {
            Wanted::Measure { place, .. } => place,
            Wanted::Done(_) => panic!("nothing is known"),
        }
    }

    #[test]
    fn cheaper_place_is_taken_at_equal_count() {
        assert_eq!(visited(0..0), 11);
        assert_eq!(visited(0..14), 14, "at most 16 are left");
        assert_eq!(visited(0..18), 11, "of 18 five would be too few");
        assert_eq!(visited(9..23), 8);
    }

    fn places(steps: Vec<Step>) -> Vec<usize> {
        steps.into_iter().map(|step| step.last).collect()
    }

    #[test]
    fn cuts_show_steps_that_cancel() {
        let three = line(1000, &[(100, 1.0), (101, 2.0), (700, 4.0)]);
        assert_eq!(places(play(&three, 1).0), [100, 101, 700]);
        let cancel = line(1000, &[(100, 1.0), (700, -1.0)]);
        assert!(play(&cancel, 1).0.is_empty());
        assert_eq!(places(play(&cancel, 4).0), [100, 700]);
    }

    #[test]
    fn what_cannot_be_measured_is_one_answer() {
        let mut values = line(64, &[(30, 1.0)]);
        values[25..33].fill(None);
        assert_eq!(
            play(&values, 1).0,
            [Step {
                before: 24,
                first: 25,
                last: 33
            }]
        );
        values[1..64].fill(None);
        assert_eq!(
            play(&values, 1),
            (
                vec![Step {
                    before: 0,
                    first: 1,
                    last: 64
                }],
                2
            )
        );
    }

    #[test]
    fn line_without_middle_is_answered_at_once() {
        assert_eq!(
            play(&line(1, &[(1, 1.0)]), 8),
            (
                vec![Step {
                    before: 0,
                    first: 1,
                    last: 1
                }],
                2
            )
        );
        assert!(ExactSearch::new(&[1.0], 1).is_none());
    }

    proptest! {
        #[test]
        fn last_step_between_unequal_ends_is_real(
            values in prop::collection::vec(prop::option::of(0..3_u8), 2..60),
            intervals in any::<usize>(),
        ) {
            let values: Vec<_> = values
                .into_iter()
                .map(|value| value.map(f64::from))
                .collect();
            let (steps, visited) = play(&values, intervals);
            prop_assert!(visited <= values.len());
            for step in &steps {
                let (Some(before), Some(after)) = (values[step.before], values[step.last]) else {
                    panic!("a place that was measured")
                };
                prop_assert!((before - after).abs() > 0.5 && step.first == step.before + 1);
                prop_assert!(values[step.first..step.last].iter().all(Option::is_none));
            }
            if let (Some(first), Some(last)) = (values[0], values[values.len() - 1]) {
                prop_assert_eq!((first - last).abs() > 0.5 && steps.is_empty(), false);
            }
        }

        #[test]
        fn any_weights_and_costs_find_the_same(
            weights in prop::collection::vec(any::<f64>(), 30),
            place in prop::collection::vec(any::<f64>(), 0..40),
            at in 1..30_usize,
        ) {
            let mut search = ExactSearch::new(&weights, 1).unwrap();
            let cost = Cost { place, run: 0.0 };
            let judge = |a: usize, b: usize| {
                if a < at && at <= b {
                    Pair::Differs
                } else {
                    Pair::Same
                }
            };
            let found = loop {
                match search.next(&cost, &judge) {
                    Wanted::Measure { place, .. } => search.measured(place),
                    Wanted::Done(steps) => break steps,
                }
            };
            prop_assert_eq!(
                found,
                vec![Step {
                    before: at - 1,
                    first: at,
                    last: at
                }]
            );
        }
    }
}
