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

/// Returns how many groups more each side needs to be shown the same with a chance of 80 %, if
/// there is no difference; a difference of two margins takes fewer. None where that makes more than
/// the plan names.
///
/// The chance is that of the rule which decides (two one-sided tests at 5 %), given what was seen
/// so far.
pub(super) fn groups_more(
    rating: &RatioEstimate,
    precision: &Precision,
    margin: f64,
    plan: &Plan<'_>,
) -> Option<usize> {
    let (base, new) = rating.groups;
    let seen = 2.0 * (base * new) as f64 / (base + new) as f64;
    let forecast = Forecast {
        variance: precision.variance * (1.0 + (plan.doubt)(precision.degrees)),
        effect: rating.effect,
        seen,
        degrees: precision.degrees,
        margin: margin - precision.coarse,
    };
    let enough = |more: usize| {
        forecast.chance(more as f64, (plan.deviations)(base.min(new) + more)) >= POWER
    };
    let mut few = 0;
    let mut many = plan
        .groups_max
        .checked_sub(base.min(new))
        .filter(|many| *many > 0)?;
    if !enough(many) {
        return None;
    }
    while many - few > 1 {
        let middle = usize::midpoint(few, many);
        if enough(middle) {
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
    (1..=most).find(|more| seen.chance(*more as f64, ONE_SIDED) >= POWER)
}

impl Seen {
    /// Returns the chance that so many groups more of each side make the verdict clear, if the
    /// true difference is as likely on one side of what was seen as on the other.
    fn chance(&self, more: f64, deviations: f64) -> f64 {
        let all = self.groups + more;
        let error = (self.variance / all).sqrt();
        let degrees = self.degrees + self.degrees_per_group * more;
        // Within a margin that is narrower than the error, both sides of it count as wrong.
        let outside = if self.margin < error {
            TWO_SIDED
        } else {
            deviations
        };
        let beyond = self.margin + student_tail(outside, degrees) * error;
        let within = self.margin - student_tail(deviations, degrees) * error;
        let deviation = (self.variance * (self.groups.recip() - all.recip())).sqrt();
        let under = |end: f64| below((end - self.effect) / deviation);
        let differs = under(-beyond) + 1.0 - under(beyond);
        let is_same = if within > 0.0 {
            under(within) - under(-within)
        } else {
            0.0
        };
        differs + is_same
    }
}

/// What is known before more is measured.
struct Forecast {
    variance: f64,
    effect: f64,
    /// Groups of each side, the harmonic mean.
    seen: f64,
    degrees: f64,
    margin: f64,
}

impl Forecast {
    /// Returns the chance that so many groups more of each side show them to be the same, if they
    /// are.
    fn chance(&self, more: f64, deviations: f64) -> f64 {
        let all = self.seen + more;
        let t = student_tail(deviations, self.degrees + 2.0 * more);
        let middle = self.effect * self.seen / all;
        let room = self.margin - t * (2.0 * self.variance / all).sqrt();
        let deviation = (2.0 * self.variance * more).sqrt() / all;
        if room > 0.0 {
            below((room - middle) / deviation) - below((-room - middle) / deviation)
        } else {
            0.0
        }
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
