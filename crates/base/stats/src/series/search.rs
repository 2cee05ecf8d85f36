//! From cuts to changes: each cut moves to where it fits best, and stays if the ranks of both sides
//! confirm it.

use std::cmp::Ordering;

use super::level::{Scale, Scatter};
use super::memory::levels_explain_more;
use super::partition::Partition;
use super::scan::{self, Stretch};
use super::visit;
use super::{Change, Criteria, Span};
use crate::average::median;
use crate::distribution::{normal_two_sided, normal_upper_quantile};
use crate::rank_test::rank_sum;
use crate::ratio::KnownScatter;

/// Price of a cut in the first pass, in log n times the variance.
const PRICE_FIRST: f64 = 10.0;
/// And in the second, in log n times the long-run variance: three free numbers, a place and two
/// levels.
const PRICE: f64 = 3.0;
/// Most points on each side that ranks look at: a change is local.
const NEIGHBOURS: usize = 60;
/// Most points on each side that a level is taken from while a cut is moved.
const LEVEL_POINTS: usize = 120;
/// How far a cut moves at most.
const SHIFT_MAX: usize = 30;
/// A place is as good as another if it is so near: what is looked for is the neighbourhood with
/// most of the probability.
const NEAR: usize = 3;
/// What a step away from the middle of a neighbourhood counts less: decides between neighbourhoods
/// that hold the same.
const NEAR_LOSS: f64 = 0.05;
/// Share of the largest p at which a step counts that only the scan found: what the cut of the
/// whole series did not pay for must be clearer (calibrated: `detection` of the benches, and the
/// labelled series of TCPD).
const SCAN_SHARE: f64 = 0.1;
/// Fewest points before a step that may be the first: one alone says nothing of its level.
const BEFORE_MIN: usize = 2;
/// Probability on each side that the span of a change leaves out.
const TAIL: f64 = 0.025;
/// Share of the largest p for a visit, which is looked for at more places: of all lengths.
const VISIT_SHARE: f64 = 0.005;
/// Share of the largest p for a level while it was the newest, whose end is chosen now.
const WAS_SHARE: f64 = 0.01;

/// A cut that has moved to its place.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Judged {
    span: Span,
    /// Distance of the ranks from those of equal sides, in deviations; negative infinity for a
    /// change below the criteria.
    z: f64,
    /// Chance of the visit that it begins or ends; 1 for a step.
    p: f64,
}

/// A series on its own scale.
#[derive(Debug)]
pub(crate) struct Series<'a> {
    pub(crate) raw: &'a [f64],
    /// The same on the scale, with wild points pulled in.
    pub(crate) tame: &'a [f64],
    pub(crate) scale: Scale,
    pub(crate) scatter: Scatter,
    /// How much points scatter by what is known beside them, on the scale.
    pub(crate) known: Option<KnownScatter>,
}

/// Returns the price of a cut among so many points.
pub(crate) fn price(count: usize, scatter: Scatter) -> f64 {
    PRICE * (count.max(2) as f64).ln() * scatter.variance * scatter.inflation()
}

/// Returns how a series on its scale scatters, by a first pass.
pub(crate) fn first_pass(tame: &[f64]) -> Scatter {
    let guess = Scatter::of_differences(tame);
    let price = PRICE_FIRST * (tame.len().max(2) as f64).ln() * guess.variance;
    let mut partition = Partition::new(price);
    tame.iter().for_each(|point| partition.push(*point));
    Scatter::around(tame, &partition.cuts())
}

impl Series<'_> {
    /// Returns what is left of some cuts, and what they missed.
    pub(crate) fn confirm(&self, mut cuts: Vec<usize>, criteria: &Criteria) -> Vec<Change> {
        let z_min = normal_upper_quantile(criteria.p_max / 2.0).unwrap_or(f64::INFINITY);
        let mut judged: Vec<Judged> = Vec::with_capacity(cuts.len());
        for n in 0..cuts.len() {
            judged.push(self.judge(&mut cuts, n, criteria));
        }
        loop {
            let weakest = (0..cuts.len()).min_by(|a, b| judged[*a].z.total_cmp(&judged[*b].z));
            let Some(weakest) = weakest.filter(|n| judged[*n].z < z_min) else {
                break;
            };
            cuts.remove(weakest);
            judged.remove(weakest);
            // Its neighbours have other points beside them now.
            for (n, judged) in judged
                .iter_mut()
                .enumerate()
                .take(weakest + 1)
                .skip(weakest.saturating_sub(1))
            {
                *judged = self.judge(&mut cuts, n, criteria);
            }
        }
        self.fill(&mut cuts, &mut judged, criteria);
        self.fill_visits(&mut cuts, &mut judged, criteria);
        let scatter = Scatter::around(self.tame, &cuts);
        (0..cuts.len())
            .map(|n| self.change(&cuts, n, judged[n], scatter))
            .collect()
    }

    /// Adds the steps that are clear between the cuts and were not found by them, the first stretch
    /// first.
    fn fill(&self, cuts: &mut Vec<usize>, judged: &mut Vec<Judged>, criteria: &Criteria) {
        let mut n = 0;
        while n <= cuts.len() {
            let begin = n.checked_sub(1).map_or(0, |n| cuts[n]);
            let end = cuts.get(n).copied().unwrap_or(self.tame.len());
            match self.clearest(begin, end, criteria) {
                Some((at, step)) => {
                    cuts.insert(n, at);
                    judged.insert(n, step);
                }
                None => n += 1,
            }
        }
    }

    /// Adds the short levels between the cuts that ended where the old one returned.
    fn fill_visits(&self, cuts: &mut Vec<usize>, judged: &mut Vec<Judged>, criteria: &Criteria) {
        let mut n = 0;
        while n <= cuts.len() {
            let begin = n.checked_sub(1).map_or(0, |n| cuts[n]);
            let end = cuts.get(n).copied().unwrap_or(self.tame.len());
            match self.visit(begin, end, criteria) {
                Some(ends) => {
                    cuts.splice(n..n, ends.map(|(at, _)| at));
                    judged.splice(n..n, ends.map(|(_, judged)| judged));
                }
                None => n += 1,
            }
        }
    }

    /// Returns where the clearest visit between two cuts begins and ends, if it is clear enough.
    fn visit(&self, begin: usize, end: usize, criteria: &Criteria) -> Option<[(usize, Judged); 2]> {
        let stretch = Stretch::new(self, begin, end);
        let after_min = if end == self.raw.len() {
            1
        } else {
            criteria.segment_min
        };
        let found = visit::clearest(
            &stretch,
            &visit::Rule {
                points_min: criteria.visit_min,
                after_min,
                p_max: criteria.p_max,
            },
        )?;
        let from = begin + found.from;
        let to = begin + found.to;
        let within = &self.raw[from..to];
        let left = self.sides(begin, from, end).0;
        let right = self.sides(begin, to, end).1;
        let was = self.chance_before_end(begin, from, to, criteria);
        let p = found.p.min(was.unwrap_or(1.0));
        let fits = (found.p <= VISIT_SHARE * criteria.p_max || was.is_some())
            && levels_explain_more(&stretch.tame, &[found.from, found.to])
            && self.is_enough(left, within, criteria)
            && self.is_enough(right, within, criteria);
        let scatter = Scatter::around(&stretch.tame, &[found.from, found.to]);
        let series = Series {
            raw: &stretch.wild,
            tame: &stretch.tame,
            scale: self.scale,
            scatter,
            known: self.known,
        };
        let judge = |begins: usize, at: usize, ends: usize| {
            let span = series.place(begins, at, ends, 1).1;
            let earliest = span.earliest.min(at);
            let latest = span.latest.max(at);
            let z = normal_upper_quantile(p / 2.0).unwrap_or(f64::INFINITY);
            (
                begin + at,
                Judged {
                    span: Span::new(begin + earliest, begin + latest),
                    z,
                    p,
                },
            )
        };
        let count = end - begin;
        fits.then(|| {
            [
                judge(0, found.from, found.to),
                judge(found.from, found.to, count),
            ]
        })
    }

    /// Returns the chance of a level that ended while it was the newest, if it was a clear step then:
    /// what follows does not undo it.
    fn chance_before_end(
        &self,
        begin: usize,
        from: usize,
        to: usize,
        criteria: &Criteria,
    ) -> Option<f64> {
        let then = Series {
            raw: &self.raw[..to],
            tame: &self.tame[..to],
            scale: self.scale,
            scatter: self.scatter,
            known: self.known,
        };
        let strict = Criteria {
            p_max: WAS_SHARE * criteria.p_max,
            ..*criteria
        };
        let (at, step) = then.clearest(begin, to, &strict)?;
        (at == from).then(|| normal_two_sided(step.z))
    }

    /// Returns the clearest step between two cuts, if it is clear enough, and its place.
    fn clearest(&self, begin: usize, end: usize, criteria: &Criteria) -> Option<(usize, Judged)> {
        let segment_min = criteria.segment_min.max(1);
        let first = if begin == 0 { BEFORE_MIN } else { segment_min };
        let last = (end - begin).checked_sub(if end == self.raw.len() {
            1
        } else {
            segment_min
        })?;
        let stretch = Stretch::new(self, begin, end);
        let step = scan::clearest(&stretch, first, last)?;
        let at = begin + step.at;
        let (left, right) = self.sides(begin, at, end);
        let fits = step.p <= SCAN_SHARE * criteria.p_max
            && levels_explain_more(&stretch.tame, &[step.at])
            && self.is_enough(left, right, criteria)
            && scan::ranks_agree(left, right, criteria.p_max);
        let z = normal_upper_quantile(step.p / 2.0).unwrap_or(f64::INFINITY);
        fits.then(|| {
            let series = self.of_stretch(&stretch, step.at);
            let span = series.place(0, step.at, end - begin, 1).1;
            (
                at,
                Judged {
                    span: Span::new(
                        (begin + span.earliest).min(at),
                        (begin + span.latest).max(at),
                    ),
                    z,
                    p: 1.0,
                },
            )
        })
    }

    /// Returns a stretch as a series that scatters as it does around the two levels of a step.
    fn of_stretch<'a>(&self, stretch: &'a Stretch, at: usize) -> Series<'a> {
        let scatter = Scatter::around(&stretch.tame, &[at]);
        Series {
            raw: &stretch.wild,
            tame: &stretch.tame,
            scale: self.scale,
            scatter,
            known: self.known,
        }
    }

    /// Tells whether the levels of two sides lie far enough apart to be news.
    fn is_enough(&self, left: &[f64], right: &[f64], criteria: &Criteria) -> bool {
        let step = median(left)
            .zip(median(right))
            .map(|(before, after)| (after - before).abs());
        step.and_then(|step| step.partial_cmp(&criteria.magnitude_min))
            .is_some_and(Ordering::is_ge)
    }

    /// Moves a cut to its place and judges it there.
    fn judge(&self, cuts: &mut [usize], n: usize, criteria: &Criteria) -> Judged {
        let (begin, end) = ends(cuts, n, self.tame.len());
        let (at, span) = self.place(begin, cuts[n], end, criteria.segment_min.max(1));
        cuts[n] = at;
        Judged {
            span,
            z: self.weigh(begin, at, end, criteria),
            p: 1.0,
        }
    }

    /// Returns where a cut between others lies best, and where it may lie.
    ///
    /// With levels `a` and `b` and memory `r`, what is new in a point is
    /// `(x(t) - m(t)) - r (x(t-1) - m(t-1))` (Cochrane and Orcutt 1949); the less of it a place
    /// leaves, the likelier it is, by the normal distribution.
    fn place(&self, begin: usize, cut: usize, end: usize, segment_min: usize) -> (usize, Span) {
        let first = begin
            .saturating_add(segment_min)
            .max(cut.saturating_sub(SHIFT_MAX))
            .max(1);
        let last = end.saturating_sub(segment_min).min(cut + SHIFT_MAX);
        if first >= last {
            return (cut, Span::new(cut, cut));
        }
        let before = mean(&self.tame[begin.max(cut.saturating_sub(LEVEL_POINTS))..cut]);
        let after = mean(&self.tame[cut..end.min(cut + LEVEL_POINTS)]);
        let memory = self.scatter.memory;
        let news = |at: usize, level: f64, last: f64| {
            ((self.tame[at] - level) - memory * (self.tame[at - 1] - last)).powi(2)
        };
        // Relative to a cut at `first`: each point in between changes sides.
        let mut sides = 0.0;
        let mut costs = vec![news(first, after, before)];
        for at in first..last {
            sides += news(at, before, before) - news(at + 1, after, after);
            costs.push(sides + news(at + 1, after, before));
        }
        let variance = self.scatter.variance * (1.0 - memory * memory);
        let (at, low, high) = likeliest(&costs, variance);
        (first + at, Span::new(first + low, first + high))
    }

    fn weigh(&self, begin: usize, at: usize, end: usize, criteria: &Criteria) -> f64 {
        let short = at - begin < criteria.segment_min || end - at < criteria.segment_min;
        let (left, right) = self.sides(begin, at, end);
        if short || !self.is_enough(left, right, criteria) {
            return f64::NEG_INFINITY;
        }
        rank_sum(left, right).deviations() / self.scatter.inflation().sqrt()
    }

    fn sides(&self, begin: usize, at: usize, end: usize) -> (&[f64], &[f64]) {
        (
            &self.raw[begin.max(at.saturating_sub(NEIGHBOURS))..at],
            &self.raw[at..end.min(at + NEIGHBOURS)],
        )
    }

    fn change(&self, cuts: &[usize], n: usize, judged: Judged, scatter: Scatter) -> Change {
        let at = cuts[n];
        let (begin, end) = ends(cuts, n, self.tame.len());
        let (left, right) = self.sides(begin, at, end);
        let ranks = normal_two_sided(judged.z) * (end - begin) as f64;
        let distance = scan::clearness(&Stretch::new(self, begin, end), at - begin).unwrap_or(1.0);
        Change {
            at,
            span: judged.span,
            before: median(left).unwrap_or_default(),
            after: median(right).unwrap_or_default(),
            deviation: self.scale.deviation * scatter.variance.sqrt(),
            p: ranks.min(distance).min(judged.p),
        }
    }
}

fn ends(cuts: &[usize], n: usize, count: usize) -> (usize, usize) {
    (
        n.checked_sub(1).map_or(0, |n| cuts[n]),
        cuts.get(n + 1).copied().unwrap_or(count),
    )
}

fn mean(points: &[f64]) -> f64 {
    points.iter().sum::<f64>() / points.len().max(1) as f64
}

/// Returns the place whose neighbourhood holds most of the probability, and the ends of what holds
/// 95 % of it.
fn likeliest(costs: &[f64], variance: f64) -> (usize, usize, usize) {
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let odds: Vec<f64> = costs
        .iter()
        .map(|cost| ((least - cost) / (2.0 * variance)).exp())
        .collect();
    let mut best = (f64::NEG_INFINITY, 0);
    for at in 0..odds.len() {
        let near = at.saturating_sub(NEAR)..(at + NEAR + 1).min(odds.len());
        let held = near
            .map(|other| odds[other] * (1.0 - NEAR_LOSS * other.abs_diff(at) as f64))
            .sum::<f64>();
        if held > best.0 {
            best = (held, at);
        }
    }
    let total: f64 = odds.iter().sum();
    let low = tail_length(odds.iter(), TAIL * total);
    let high = odds.len() - 1 - tail_length(odds.iter().rev(), TAIL * total).min(odds.len() - 1);
    (best.1, low.min(best.1), high.max(best.1))
}

/// Returns how many of the first places together hold less than a mass.
fn tail_length<'a>(odds: impl Iterator<Item = &'a f64>, mass: f64) -> usize {
    let mut passed = 0.0;
    odds.take_while(|odds| {
        passed += **odds;
        passed < mass
    })
    .count()
}

#[cfg(test)]
mod tests {
    use super::likeliest;

    #[test]
    fn one_sure_place_is_taken_as_it_is() {
        let mut costs = [50.0; 21];
        costs[8] = 0.0;
        assert_eq!(likeliest(&costs, 1.0), (8, 8, 8));
    }

    #[test]
    fn neighbourhood_of_good_places_beats_single_better_one() {
        let mut costs = [50.0; 21];
        costs[2] = 0.0;
        costs[12..17].fill(0.5);
        assert_eq!(likeliest(&costs, 1.0), (14, 2, 16));
    }
}
