//! A line of commits to be searched: the trunk, or what a merge brought, with or without what cannot matter.

use kernel::{History, Place};

use super::{Prober, Touches};
use crate::LabError;

/// A place of a line.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    /// The commit, in the history's numbers; the first spot of a line is of none.
    pub(super) place: Option<Place>,
    /// What is measured: the commit itself, or the commit merged onto the trunk. Nothing where it cannot be merged.
    pub(super) commit: Option<String>,
    /// How many commits that matter are new here.
    pub(super) weight: f64,
}

/// Weight of a spot that cannot matter: should all others turn out not to, it is looked at still.
const LEAST: f64 = 1e-6;

/// Commits from one that has not what the last one has.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) spots: Vec<Spot>,
    /// The merge that the line is what it brought of.
    pub(super) merge: Option<String>,
}

fn weight(place: &Place, touches: &Touches) -> f64 {
    place.brings.iter().filter(|commit| touches.matters(**commit)).count() as f64
}

impl Line {
    /// Returns the trunk of a history.
    pub(super) fn trunk(history: &History, touches: &Touches) -> Self {
        let good = Spot { place: None, commit: Some(history.good().to_owned()), weight: 0.0 };
        let spot = |place: Place| Spot {
            commit: Some(history.id(place.commit).to_owned()),
            weight: weight(&place, touches),
            place: Some(place),
        };
        Self { spots: std::iter::once(good).chain(history.trunk().into_iter().map(spot)).collect(), merge: None }
    }

    /// Returns what the merge at `at` brought: from the trunk before it to the merge. Each commit stands for itself merged onto
    /// that, so that only the commits of the line differ between two of its places.
    pub(super) fn within(
        &self,
        at: usize,
        history: &History,
        touches: &Touches,
        prober: &mut dyn Prober,
    ) -> Result<Option<Self>, LabError> {
        let (Some(place), Some(merge)) = (self.spots[at].place.as_ref(), self.spots[at].commit.clone()) else {
            return Ok(None);
        };
        let Some(mut base) = self.spots[at - 1].commit.clone() else { return Ok(None) };
        let sides = history.sides(place);
        if sides.is_empty() {
            return Ok(None);
        }
        let mut spots = vec![Spot { place: None, commit: Some(base.clone()), weight: 0.0 }];
        for side in sides {
            for place in side {
                let weight = weight(&place, touches);
                // What cannot matter need not be merged: it is not measured.
                let commit = if weight > 0.0 { prober.merge(&base, history.id(place.commit))? } else { None };
                spots.push(Spot { place: Some(place), commit, weight });
            }
            // The next side comes on top of this one.
            if let Some(tip) = spots.last().and_then(|spot| spot.commit.clone()) {
                base = tip;
            }
        }
        let own = Place { commit: place.commit, brings: vec![place.commit] };
        let weight = weight(&own, touches);
        spots.push(Spot { place: Some(own), commit: Some(merge), weight });
        Ok(Some(Self { spots, merge: Some(history.id(place.commit).to_owned()) }))
    }

    /// Returns the numbers of the spots that matter, both ends included.
    pub(super) fn kept(&self) -> Vec<usize> {
        let last = self.spots.len() - 1;
        (0..=last).filter(|n| *n == 0 || *n == last || self.spots[*n].weight > 0.0).collect()
    }

    /// Returns a part of the line, in which all is to be looked at.
    pub(super) fn part(&self, first: usize, last: usize) -> Self {
        let whole = |spot: &Spot| Spot { weight: spot.weight.max(1.0), ..spot.clone() };
        Self { spots: self.spots[first..=last].iter().map(whole).collect(), merge: self.merge.clone() }
    }

    /// Returns what building at each spot costs if a commit was built last, in links. One that is none of the line's, such as
    /// another with something taken back, is taken to be like the last.
    pub(super) fn costs(&self, built: Option<&str>, touches: &Touches) -> Vec<f64> {
        let is_built = |spot: &Spot| built.is_some() && spot.commit.as_deref() == built;
        let built = self.spots.iter().position(is_built).unwrap_or(self.spots.len() - 1);
        let brings = self.spots.iter().map(|spot| spot.place.as_ref().map_or(&[][..], |place| &place.brings));
        touches.costs(&brings.collect::<Vec<_>>(), built)
    }

    /// Returns the prior weights of some spots.
    pub(super) fn weights(&self, spots: &[usize]) -> Vec<f64> {
        spots.iter().map(|spot| self.spots[*spot].weight.max(LEAST)).collect()
    }
}
