//! How many groups a clear verdict takes.

use super::{Precision, RatioEstimate};
use crate::distribution::normal_two_sided;

/// Chance of a clear verdict that the wanted number of groups is to give.
pub(super) const POWER: f64 = 0.80;
/// Beyond so many groups of each side no number is named: only less noise helps.
pub(super) const GROUPS_MAX: usize = 50;

/// Deviations of a normal number that leave out 5 % at one end, and at both.
const ONE_SIDED: f64 = 1.645;
const TWO_SIDED: f64 = 1.96;

/// Odds of equal sides before anything is seen. With more, sides that differ by the margin name
/// numbers that do not suffice; with fewer, equal sides name larger numbers than they need
/// (`tests/forecast.rs`).
const EQUAL_ODDS: f64 = 0.5;

/// When a later verdict is reached.
pub(super) struct Plan<'a> {
    /// Returns how many deviations of a normal number leave out the tail that a look at so many
    /// groups of each side allows.
    pub(super) deviations: &'a dyn Fn(usize) -> f64,
    /// Most groups of each side that are named.
    pub(super) groups_max: usize,
    /// By how much more than seen the sides are taken to scatter, for so many degrees of freedom:
    /// few leave other variances likely (calibrated). After one look it is little, for the
    /// rows that stay unclear are those that show more than usual.
    pub(super) doubt: fn(f64) -> f64,
}

impl Plan<'_> {
    /// One look decides, at 5 %.
    pub(super) const ONCE: Self = Self {
        deviations: &|_| ONE_SIDED,
        groups_max: GROUPS_MAX,
        doubt: |degrees| degrees.powi(-2),
    };
}

/// What further groups would bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlook {
    /// So many more of each side give a clear verdict with a chance of 80 %.
    Clear(usize),
    /// No affordable number does, but one would if there were no difference: what was seen lies too
    /// near to the margin.
    NearMargin,
    /// No affordable number does: the noise is too large.
    TooNoisy,
}

/// Returns what more groups of each side would bring, after what was seen: a clear verdict of any
/// kind, by the rule that decides.
pub(super) fn outlook(
    rating: &RatioEstimate,
    precision: &Precision,
    margin: f64,
    plan: &Plan<'_>,
) -> Outlook {
    let (base, new) = rating.groups;
    let groups = 2.0 * (base * new) as f64 / (base + new) as f64;
    let seen = Seen {
        effect: rating.effect,
        variance: 2.0 * precision.variance * (1.0 + (plan.doubt)(precision.degrees)),
        groups,
        degrees: precision.degrees,
        degrees_per_group: 2.0,
        margin: margin - precision.coarse,
    };
    let fewer = base.min(new);
    let many = plan.groups_max.saturating_sub(fewer);
    let is_clear = |seen: &Seen, more: usize| {
        seen.chance(more as f64, (plan.deviations)(fewer + more)) >= POWER
    };
    let equal = Seen {
        effect: 0.0,
        ..seen
    };
    match least(many, |more| is_clear(&seen, more)) {
        Some(more) => Outlook::Clear(more),
        None if least(many, |more| is_clear(&equal, more)).is_some() => Outlook::NearMargin,
        None => Outlook::TooNoisy,
    }
}

/// Returns the least number from 1 to `most` that is enough, if all after it are.
fn least(most: usize, is_enough: impl Fn(usize) -> bool) -> Option<usize> {
    if most == 0 || !is_enough(most) {
        return None;
    }
    let mut few = 0;
    let mut many = most;
    while many - few > 1 {
        let middle = usize::midpoint(few, many);
        if is_enough(middle) {
            many = middle;
        } else {
            few = middle;
        }
    }
    Some(many)
}

/// What was seen, before more is measured.
pub(super) struct Seen {
    /// In logarithms.
    pub(super) effect: f64,
    /// Variance of the difference that one group more of each side shows.
    pub(super) variance: f64,
    /// Groups of each side.
    pub(super) groups: f64,
    /// Degrees of freedom of the variance, and what each further group adds.
    pub(super) degrees: f64,
    pub(super) degrees_per_group: f64,
    /// In logarithms, not negative.
    pub(super) margin: f64,
}

/// Returns how many pairs more give a clear verdict of any kind with a chance of 80 %, after what
/// was seen of `count` pairs. None where that makes more than [`GROUPS_MAX`].
pub(super) fn pairs_more(seen: &Seen, count: usize) -> Option<usize> {
    let most = GROUPS_MAX.saturating_sub(count);
    least(most, |more| seen.chance(more as f64, ONE_SIDED) >= POWER)
}

impl Seen {
    /// Returns the chance that so many groups more of each side make the verdict clear.
    ///
    /// Some sides are taken to be equal, the others to differ by about what was seen or the margin,
    /// whichever is more; what was seen then says how likely each is (Bayes).
    fn chance(&self, more: f64, deviations: f64) -> f64 {
        let square = self.variance / self.groups;
        let wide = 4.0 * self.margin.max(self.effect.abs()).powi(2);
        let kept = wide / (wide + square);
        let far = self.effect * self.effect * kept / square;
        let odds = EQUAL_ODDS * (1.0 - kept).sqrt().recip() * (-far / 2.0).exp();
        let equal = odds / (1.0 + odds);
        equal * self.chance_around(0.0, more, deviations)
            + (1.0 - equal) * self.chance_around(kept, more, deviations)
    }

    /// Returns the same if the true difference is `kept` of what was seen, as sure as that is.
    fn chance_around(&self, kept: f64, more: f64, deviations: f64) -> f64 {
        let all = self.groups + more;
        let error = (self.variance / all).sqrt();
        let degrees = self.degrees + self.degrees_per_group * more;
        // Within a margin that is narrower than the error, both sides of it count as wrong.
        let outside = if self.margin < error {
            deviations.max(TWO_SIDED)
        } else {
            deviations
        };
        let beyond = self.margin + student_tail(outside, degrees) * error;
        let within = self.margin - student_tail(deviations, degrees) * error;
        let middle = self.effect * (self.groups + more * kept) / all;
        let next = kept * self.variance / self.groups + self.variance / more;
        let deviation = more / all * next.sqrt();
        let under = |end: f64| below((end - middle) / deviation);
        let differs = under(-beyond) + 1.0 - under(beyond);
        let is_same = if within > 0.0 {
            under(within) - under(-within)
        } else {
            0.0
        };
        differs + is_same
    }
}

/// Returns the number that Student's t exceeds with the chance of a normal one beyond `z`, near
/// enough to plan by (Abramowitz and Stegun 26.7.5).
fn student_tail(z: f64, degrees: f64) -> f64 {
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / degrees + second / (degrees * degrees)
}

/// Returns the chance of a normal number below another.
fn below(z: f64) -> f64 {
    let tail = normal_two_sided(z) / 2.0;
    if z > 0.0 { 1.0 - tail } else { tail }
}
