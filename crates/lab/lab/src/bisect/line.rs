//! A line of commits to search: the trunk, or the commits of a merge, with or without those that
//! cannot matter.

use kernel::{CommitGraph, LinePoint};

use super::{Prober, RebuildCost};
use crate::LabError;

/// A position in a line.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    /// The commit, as a number of the history; `None` for the first spot of a line.
    pub(super) place: Option<LinePoint>,
    /// What is measured: the commit itself, or the commit merged onto the trunk. `None` if the
    /// merge conflicts.
    pub(super) commit: Option<String>,
    /// Number of new commits here that matter.
    pub(super) weight: f64,
}

/// Weight of a spot that cannot matter: Marvin looks at it only after all others turned out
/// innocent.
const LEAST: f64 = 1e-6;

/// The commits between two ends.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) spots: Vec<Spot>,
    /// The merge whose commits these are.
    pub(super) merge: Option<String>,
}

fn weight(place: &LinePoint, rebuild_cost: &RebuildCost) -> f64 {
    place
        .brings
        .iter()
        .filter(|commit| rebuild_cost.matters(**commit))
        .count() as f64
}

impl Line {
    /// Returns the trunk of a history.
    pub(super) fn trunk(history: &CommitGraph, rebuild_cost: &RebuildCost) -> Self {
        let good = Spot {
            place: None,
            commit: Some(history.good().to_owned()),
            weight: 0.0,
        };
        Self {
            spots: std::iter::once(good)
                .chain(history.trunk().into_iter().map(|place: LinePoint| Spot {
                    commit: Some(history.id(place.commit).to_owned()),
                    weight: weight(&place, rebuild_cost),
                    place: Some(place),
                }))
                .collect(),
            merge: None,
        }
    }

    /// Returns the commits of the merge at `at`, from the trunk before it to the merge. Each commit
    /// stands for itself merged onto the trunk, so that two spots differ only by commits of the
    /// line.
    pub(super) fn within(
        &self,
        at: usize,
        history: &CommitGraph,
        rebuild_cost: &RebuildCost,
        prober: &mut dyn Prober,
    ) -> Result<Option<Self>, LabError> {
        let (Some(place), Some(merge)) =
            (self.spots[at].place.as_ref(), self.spots[at].commit.clone())
        else {
            return Ok(None);
        };
        let Some(mut base) = self.spots[at - 1].commit.clone() else {
            return Ok(None);
        };
        let sides = history.sides(place);
        if sides.is_empty() {
            return Ok(None);
        }
        let mut spots = vec![Spot {
            place: None,
            commit: Some(base.clone()),
            weight: 0.0,
        }];
        for side in sides {
            for place in side {
                let weight = weight(&place, rebuild_cost);
                // A commit that cannot matter is not measured and needs no merge.
                let commit = if weight > 0.0 {
                    prober.merge(&base, history.id(place.commit))?
                } else {
                    None
                };
                spots.push(Spot {
                    place: Some(place),
                    commit,
                    weight,
                });
            }
            // The next side is merged on top of this one.
            if let Some(tip) = spots.last().and_then(|spot| spot.commit.clone()) {
                base = tip;
            }
        }
        let own = LinePoint {
            commit: place.commit,
            brings: vec![place.commit],
        };
        let weight = weight(&own, rebuild_cost);
        spots.push(Spot {
            place: Some(own),
            commit: Some(merge),
            weight,
        });
        Ok(Some(Self {
            spots,
            merge: Some(history.id(place.commit).to_owned()),
        }))
    }

    /// Returns the indices of the spots that matter, both ends included.
    pub(super) fn remaining(&self) -> Vec<usize> {
        let last = self.spots.len() - 1;
        (0..=last)
            .filter(|n| *n == 0 || *n == last || self.spots[*n].weight > 0.0)
            .collect()
    }

    /// Returns a part of the line with every spot kept.
    pub(super) fn part(&self, first: usize, last: usize) -> Self {
        Self {
            spots: self.spots[first..=last]
                .iter()
                .map(|spot: &Spot| Spot {
                    weight: spot.weight.max(1.0),
                    ..spot.clone()
                })
                .collect(),
            merge: self.merge.clone(),
        }
    }

    /// Returns the build cost of each spot, in links, if `built` was built last. A commit outside
    /// the line, such as one with a revert on top, counts as the last spot.
    pub(super) fn costs(&self, built: Option<&str>, rebuild_cost: &RebuildCost) -> Vec<f64> {
        let is_built = |spot: &Spot| built.is_some() && spot.commit.as_deref() == built;
        let built = self
            .spots
            .iter()
            .position(is_built)
            .unwrap_or(self.spots.len() - 1);
        let brings = self
            .spots
            .iter()
            .map(|spot| spot.place.as_ref().map_or(&[][..], |place| &place.brings));
        rebuild_cost.costs(&brings.collect::<Vec<_>>(), built)
    }

    /// Returns the prior weights of `spots`.
    pub(super) fn weights(&self, spots: &[usize]) -> Vec<f64> {
        spots
            .iter()
            .map(|spot| self.spots[*spot].weight.max(LEAST))
            .collect()
    }
}
