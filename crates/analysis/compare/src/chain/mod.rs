//! A chain: the releases between two, and which of them a difference came with. It chooses which
//! release to measure next, by the results: an interval whose ends do not differ is not opened.
//!
//! The points of a row's steps add up to its difference, as all are in percent of the base.

mod json;
mod render;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::Release;

use crate::comparison::Comparison;

pub use json::{json, schema};
pub use render::document;

/// A release of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its upstream version.
    pub version: String,
    /// The name by which Marvin gets it.
    pub name: String,
    /// Why it cannot be had.
    pub missing: Option<String>,
}

/// A workload on the releases that were measured.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainRow {
    /// The workload's name.
    pub workload: String,
    /// Smaller differences do not matter, in percent.
    pub margin_percent: f64,
    /// The difference to the base in percent, positive is better, by the place of the release; none
    /// where the release has no value.
    pub percent: BTreeMap<usize, Option<f64>>,
}

/// What a release changed; of neighbours or, if what lies between has no value, of a wider interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The places of the releases before and after it.
    pub ends: [usize; 2],
    /// What it adds to the difference, in percent of the base.
    pub points: f64,
    /// The function that the difference is in, if a profile says so.
    pub function: Option<String>,
}

/// The releases from a base to a new kernel, and what was measured of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chain {
    /// The releases, oldest first, both ends included.
    pub links: Vec<Link>,
    /// The workloads.
    pub rows: Vec<ChainRow>,
    /// The steps of each row, oldest first; found when nothing is left to measure.
    pub steps: Vec<Vec<Step>>,
    /// The machine's summary.
    pub machine: String,
    /// The seeds of each release.
    pub seeds: Vec<u64>,
    /// The command that continues or repeats it.
    pub command: String,
}

impl Chain {
    /// Takes the values of releases at these places, the base first, from their comparison.
    pub fn record(&mut self, places: &[usize], comparison: &Comparison) {
        for row in &comparison.rows {
            let name = &*row.workload.name;
            let known = self.rows.iter().position(|known| known.workload == name);
            let known = known.unwrap_or_else(|| {
                self.rows.push(ChainRow {
                    workload: name.to_owned(),
                    margin_percent: row.margin_percent,
                    percent: BTreeMap::new(),
                });
                self.rows.len() - 1
            });
            let percent = &mut self.rows[known].percent;
            percent.insert(places[0], row.base.value.map(|_| 0.0));
            for (place, cell) in places[1..].iter().zip(&row.cells) {
                percent.insert(*place, cell.compared.difference_percent);
            }
        }
    }

    /// Returns the release to measure next, with the workloads to measure on it; none if each
    /// difference is down to one release.
    #[must_use]
    pub fn next(&self) -> Option<(usize, Vec<String>)> {
        let mut open: Vec<([usize; 2], f64)> = Vec::new();
        for row in &self.rows {
            for ends in row.intervals() {
                let beyond = row.points(ends).abs() / row.margin_percent.max(f64::MIN_POSITIVE);
                if beyond > 1.0 && self.middle(row, ends).is_some() {
                    open.push((ends, beyond));
                }
            }
        }
        // The widest first: rows then ask for the same releases.
        open.sort_by(|(one, _), (other, _)| {
            let width = |ends: &[usize; 2]| std::cmp::Reverse(ends[1] - ends[0]);
            (width(one), one).cmp(&(width(other), other))
        });
        let (ends, _) = *open.first()?;
        let asking = self.rows.iter().find_map(|row| {
            let is_open = row.intervals().contains(&ends);
            self.middle(row, ends).filter(|_| is_open)
        });
        let place = asking?;
        let workloads = self.rows.iter().filter(|row| {
            let mut intervals = row.intervals().into_iter();
            intervals.any(|[from, to]| from < place && place < to && row.differs([from, to]))
        });
        Some((place, workloads.map(|row| row.workload.clone()).collect()))
    }

    /// Returns the release that divides an interval of a row best: beside a boundary between series,
    /// as stable updates change little, else the middle one.
    fn middle(&self, row: &ChainRow, [from, to]: [usize; 2]) -> Option<usize> {
        let series = |place: usize| Release::parse(&self.links[place].version).series();
        let inside: Vec<usize> = (from + 1..to)
            .filter(|place| {
                self.links[*place].missing.is_none() && !row.percent.contains_key(place)
            })
            .collect();
        let at_boundary = inside.iter().copied().filter(|place| {
            series(place - 1) != series(*place) || series(*place) != series(place + 1)
        });
        let candidates: Vec<usize> = at_boundary.collect();
        let candidates = if candidates.is_empty() {
            inside
        } else {
            candidates
        };
        let distance = |place: &usize| (2 * place).abs_diff(from + to);
        candidates.into_iter().min_by_key(distance)
    }

    /// Finds the steps of each row from what was measured.
    pub fn find_steps(&mut self) {
        let mut all = Vec::new();
        for row in &self.rows {
            let steps = row
                .intervals()
                .into_iter()
                .filter(|ends| row.differs(*ends));
            let steps = steps.map(|ends| Step {
                ends,
                points: row.points(ends),
                function: None,
            });
            all.push(steps.collect());
        }
        self.steps = all;
    }

    /// Returns the places of releases with a result.
    #[must_use]
    pub fn measured(&self) -> Vec<usize> {
        (0..self.links.len())
            .filter(|place| {
                let mut rows = self.rows.iter();
                rows.any(|row| row.percent.contains_key(place))
            })
            .collect()
    }
}

impl ChainRow {
    /// Returns the difference between both ends of the chain; none without both values.
    #[must_use]
    pub fn total(&self) -> Option<f64> {
        let first = self.percent.first_key_value()?.1;
        let last = self.percent.last_key_value()?.1;
        Some((*last)? - (*first)?)
    }

    /// Returns the intervals between neighbouring values.
    fn intervals(&self) -> Vec<[usize; 2]> {
        let valued = self.percent.iter().filter(|(_, value)| value.is_some());
        let places: Vec<usize> = valued.map(|(place, _)| *place).collect();
        places.windows(2).map(|ends| [ends[0], ends[1]]).collect()
    }

    /// Returns what an interval adds to the difference.
    fn points(&self, [from, to]: [usize; 2]) -> f64 {
        let at = |place: usize| self.percent.get(&place).copied().flatten().unwrap_or(0.0);
        at(to) - at(from)
    }

    fn differs(&self, ends: [usize; 2]) -> bool {
        self.points(ends).abs() > self.margin_percent
    }
}
