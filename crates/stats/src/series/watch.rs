//! A series that grows by one point at a time.

use super::level::{AHEAD, Scale, Scatter, running_medians};
use super::partition::Partition;
use super::search::{self, Memo, Series};
use super::{Change, Criteria, OnScale, fit};

/// The whole series is looked at again when it has grown by this share of its length.
const GROWTH: usize = 8;

/// A series and its changes so far.
///
/// Between two looks at the whole series, a new point is judged on the scale of the last look; whatever that changes is
/// put right by the next one, after which the changes are those that [`changes`](super::changes) finds.
#[derive(Debug, Clone)]
pub struct Watch {
    criteria: Criteria,
    points: Vec<f64>,
    changes: Vec<Change>,
    known: Option<Known>,
}

/// What the last look at the whole series found, and what came after on the same scale.
#[derive(Debug, Clone)]
struct Known {
    scale: Scale,
    scatter: Scatter,
    /// The points on the scale. The last few will change: their running medians are still without what follows.
    tame: Vec<f64>,
    /// Of all points but those.
    partition: Partition,
    memo: Memo,
    /// Length at which to look at the whole series again.
    until: usize,
}

impl Watch {
    /// Begins with points, perhaps none.
    ///
    /// `None` when a point is not finite, or the points lie so far apart that their range is not.
    #[must_use]
    pub fn new(points: &[f64], criteria: Criteria) -> Option<Self> {
        if !fit(points) {
            return None;
        }
        let mut watch = Self { criteria, points: points.to_vec(), changes: Vec::new(), known: None };
        watch.look();
        Some(watch)
    }

    /// Returns the points so far.
    #[must_use]
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    /// Returns the changes so far, in order.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Takes the next point and returns the changes with it.
    ///
    /// Takes constant time with each change, except that each eighth more of points costs a look at all of them.
    ///
    /// `None` when the point is not finite, or lies so far from the others that the range is not; it is not taken then.
    pub fn append(&mut self, point: f64) -> Option<&[Change]> {
        let count = self.points.len() + 1;
        if !fit(&[point]) {
            return None;
        }
        self.points.push(point);
        match self.known.as_mut().filter(|known| count < known.until && known.scale.reaches(point)) {
            Some(known) => self.changes = known.next(&self.points, &self.criteria),
            None if fit(&self.points) => self.look(),
            None => {
                self.points.pop();
                return None;
            }
        }
        Some(&self.changes)
    }

    /// Looks at the whole series.
    fn look(&mut self) {
        self.known = Known::of(&self.points);
        let criteria = &self.criteria;
        self.changes = self.known.as_mut().map(|known| known.confirm(&self.points, criteria)).unwrap_or_default();
    }
}

impl Known {
    /// None for points that are all equal.
    fn of(points: &[f64]) -> Option<Self> {
        let OnScale { scale, tame, scatter } = OnScale::of(points)?;
        let mut partition = Partition::new(search::price(tame.len(), scatter));
        tame[..tame.len().saturating_sub(AHEAD)].iter().for_each(|point| partition.push(*point));
        Some(Self { scale, scatter, tame, partition, memo: Memo::new(), until: points.len() + points.len() / GROWTH })
    }

    /// Returns the changes of points of which the last is new.
    fn next(&mut self, points: &[f64], criteria: &Criteria) -> Vec<Change> {
        // The running median of one point more is final now.
        let begin = self.partition.count();
        self.tame.truncate(begin);
        let running = running_medians(points, begin);
        self.tame.extend(points[begin..].iter().zip(running).map(|(point, median)| self.scale.tame(*point, median)));
        if let Some(point) = self.tame.get(begin).filter(|_| begin + AHEAD < points.len()) {
            self.partition.push(*point);
        }
        self.confirm(points, criteria)
    }

    fn confirm(&mut self, points: &[f64], criteria: &Criteria) -> Vec<Change> {
        let settled = self.partition.count();
        let cuts = self.partition.cuts_with(&self.tame[settled..]);
        let series = Series { raw: points, tame: &self.tame, scale: self.scale, scatter: self.scatter };
        let found = series.confirm(cuts, criteria, &mut self.memo);
        // What touches points that will change must be found out again.
        self.memo.retain(|(_, _, end), _| *end <= settled);
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::super::{Change, Criteria, changes};
    use super::Watch;
    use crate::synthetic::{Chance, Noise};

    fn has(changes: &[Change], at: usize) -> bool {
        changes.iter().any(|change| change.at.abs_diff(at) <= 8)
    }

    #[test]
    fn a_change_is_seen_soon_after_it_came() {
        let mut points = Noise::Normal.values(220, &mut Chance::new(1));
        points[200..].iter_mut().for_each(|point| *point += 5.0);
        let mut watch = Watch::new(&points[..200], Criteria::default()).unwrap();
        assert!(watch.changes().is_empty());
        let seen: Vec<usize> = (200..220).filter(|at| !watch.append(points[*at]).unwrap().is_empty()).collect();
        assert!(seen[0] <= 206, "{seen:?}");
        assert_eq!(seen.len(), 220 - seen[0]);
        assert_eq!(watch.changes()[0].at, 200);
    }

    #[test]
    fn a_point_that_is_no_number_is_not_taken() {
        for count in [0, 5, 100] {
            let points = Noise::Normal.values(count, &mut Chance::new(2));
            let mut watch = Watch::new(&points, Criteria::default()).unwrap();
            for bad in [f64::NAN, f64::INFINITY] {
                assert_eq!(watch.append(bad), None);
            }
            assert_eq!(watch.points(), points);
            assert!(watch.append(0.5).is_some());
        }
        assert!(Watch::new(&[f64::NAN], Criteria::default()).is_none());
    }

    #[test]
    fn what_is_appended_is_found_as_if_it_had_been_there() {
        for seed in 0..60 {
            let mut chance = Chance::new(seed);
            let mut points = Noise::ALL[chance.below(4)].values(160, &mut chance);
            points[60..].iter_mut().for_each(|point| *point += 7.0);
            points[110..].iter_mut().for_each(|point| *point -= 14.0);
            let mut watch = Watch::new(&[], Criteria::default()).unwrap();
            points.iter().for_each(|point| assert!(watch.append(*point).is_some()));
            let whole = changes(&points, &Criteria::default()).unwrap();
            for at in [60, 110] {
                assert!(has(watch.changes(), at) && has(&whole, at), "{seed} {:?} {whole:?}", watch.changes());
            }
        }
    }

    proptest! {
        #[test]
        fn a_look_at_the_whole_series_puts_all_right(seed in 0_u64..10_000) {
            // 56 and an eighth of it are 63.
            let points = Noise::Autocorrelated.values(63, &mut Chance::new(seed));
            let mut watch = Watch::new(&points[..56], Criteria::default()).unwrap();
            points[56..].iter().for_each(|point| assert!(watch.append(*point).is_some()));
            let whole = changes(&points, &Criteria::default()).unwrap();
            prop_assert_eq!(watch.changes(), &whole[..]);
        }
    }
}
