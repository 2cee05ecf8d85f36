//! The ratio of two sides, its error, and the verdict.

use super::{History, Scores};
use crate::distribution::{fisher_upper, normal_upper_quantile, student_two_sided, student_upper_quantile};

/// The history counts for at most so many degrees of freedom: what comes now must be able to speak against it.
const HISTORY_DEGREES_MAX: usize = 30;
/// Below this chance the sides scatter more than their history explains.
const NOISIER_P: f64 = 0.01;
/// Variance of logarithms below which scores count as equal: what rounding leaves of equal values.
const VARIANCE_MIN: f64 = 1e-24;
/// Largest q of a difference.
const Q_MAX: f64 = 0.05;
/// Level of the interval that must lie within the margin: two one-sided tests at 5 %.
const SAME_LEVEL: f64 = 0.90;
/// Chance to see a difference of one margin that the wanted number of groups is to give.
const POWER: f64 = 0.80;

/// Where the error of a rating comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The sides alone (Welch 1947; Student's pooled variance if one side has one group): there is no history.
    Own,
    /// The sides and their history (Smyth 2004, the moderated t of limma).
    Moderated,
    /// The sides alone, although there is a history: they scatter more than it explains (F test at 1 %).
    Noisier,
    /// Nothing scatters at all.
    Constant,
}

/// How sure a ratio is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Standard error of the effect, in logarithms.
    pub error: f64,
    /// Its degrees of freedom; infinite where nothing scatters.
    pub degrees: f64,
    /// Variance of scores between groups, in squares of logarithms.
    pub variance: f64,
    /// Where these come from.
    pub basis: Basis,
    /// Chance of an effect at least so large without a difference, two-sided.
    pub p: f64,
}

/// Two ends, as ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower.
    pub low: f64,
    /// The upper.
    pub high: f64,
}

/// How a new side compares with a base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rating {
    /// Logarithm of the ratio: above 0 is better.
    pub effect: f64,
    /// Groups of the base and of the new side.
    pub groups: (usize, usize),
    /// How sure it is; none for one group on each side and no history: values within a group cannot tell.
    pub precision: Option<Precision>,
}

/// What a rating comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Surely better, by the margin or more.
    Better,
    /// Surely worse, by the margin or more.
    Worse,
    /// Shown to differ by less than the margin.
    Same,
    /// None of these.
    Unclear(Unclear),
}

/// What is missing for a clear verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unclear {
    /// A second group on a side, or a history: the ratio is unrated.
    Unrated,
    /// So many groups more on each side, at least one, to see a difference of one margin with a chance of 80 %.
    MoreGroups(usize),
}

/// Rates a new side against a base.
///
/// With `s²` the pooled variance of scores in `d = B1 + B2 - 2` degrees of freedom and `s0²` the history's in `d0`, at most
/// 30: `(d0 s0² + d s²) / (d0 + d)` in `d0 + d` degrees, error `s sqrt(1/B1 + 1/B2)`, p by Student's t. Without a history,
/// or where the sides scatter more than it explains, Welch's error and degrees. Where nothing scatters, p is the share of
/// ways to deal out the scores that part them so, one more for each degree of the history: `2 / C(B1 + B2, B1) / (1 + d0)`.
///
/// Swapped sides give the negative effect and the same p; values in another unit the same rating.
#[must_use]
pub fn rate(base: &Scores, new: &Scores, history: &History) -> Rating {
    let effect = new.mean() - base.mean();
    let groups = (base.count(), new.count());
    Rating { effect, groups, precision: precision(effect, (base, new), history) }
}

fn precision(effect: f64, (base, new): (&Scores, &Scores), history: &History) -> Option<Precision> {
    let (n, m) = (base.count() as f64, new.count() as f64);
    let own = n + m - 2.0;
    let pooled = if own > 0.0 { (base.squares() + new.squares()) / own } else { 0.0 };
    let before = history.variance().map(|variance| (variance, history.degrees().min(HISTORY_DEGREES_MAX) as f64));
    let (variance, degrees, error, basis) = match before {
        None if own <= 0.0 => return None,
        None => {
            let (error, degrees) = welch(base, new).unwrap_or_else(|| ((pooled * (1.0 / n + 1.0 / m)).sqrt(), own));
            (pooled, degrees, error, Basis::Own)
        }
        Some((past, past_degrees)) if noisier((pooled, own), (past, past_degrees)) => {
            let (error, degrees) = welch(base, new).unwrap_or_else(|| ((pooled * (1.0 / n + 1.0 / m)).sqrt(), own));
            (pooled, degrees, error, Basis::Noisier)
        }
        Some((past, past_degrees)) => {
            let variance = (past_degrees * past + own * pooled) / (past_degrees + own);
            (variance, past_degrees + own, (variance * (1.0 / n + 1.0 / m)).sqrt(), Basis::Moderated)
        }
    };
    if variance < VARIANCE_MIN {
        let p = if effect.abs() < VARIANCE_MIN.sqrt() { 1.0 } else { parted(groups_of(base, new), history.degrees()) };
        return Some(Precision { error: 0.0, degrees: f64::INFINITY, variance: 0.0, basis: Basis::Constant, p });
    }
    let p = student_two_sided(effect / error, degrees);
    (p.is_finite() && error.is_finite()).then_some(Precision { error, degrees, variance, basis, p })
}

fn groups_of(base: &Scores, new: &Scores) -> (usize, usize) {
    (base.count(), new.count())
}

/// Tells whether a variance is larger than a past one by more than chance.
fn noisier((own, degrees): (f64, f64), (past, past_degrees): (f64, f64)) -> bool {
    if degrees <= 0.0 || own < VARIANCE_MIN {
        return false;
    }
    past < VARIANCE_MIN || fisher_upper(own / past, (degrees, past_degrees)) < NOISIER_P
}

/// Returns the error and the degrees of freedom of the difference of two means (Welch 1947, Satterthwaite 1946); none
/// when a side has one group.
fn welch(base: &Scores, new: &Scores) -> Option<(f64, f64)> {
    let of = |side: &Scores| {
        let degrees = (side.count() - 1) as f64;
        (degrees > 0.0).then(|| (side.squares() / degrees / side.count() as f64, degrees))
    };
    let ((a, n), (b, m)) = (of(base)?, of(new)?);
    let degrees = (a + b).powi(2) / (a * a / n + b * b / m);
    Some(((a + b).sqrt(), if degrees.is_finite() { degrees } else { n + m }))
}

/// Returns the chance that groups which never scatter are parted into their sides by chance.
fn parted((n, m): (usize, usize), history: usize) -> f64 {
    // C(n + m, n) as a product of ratios; beyond what a number holds the chance is 0.
    let few = n.min(m);
    let ways = (1..=few).fold(1.0, |ways, k| ways * (n + m - few + k) as f64 / k as f64);
    (2.0 / ways / (1.0 + history as f64)).min(1.0)
}

impl Rating {
    /// Returns how many times better the new side is: above 1 is better. Never zero and never infinite.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        ratio(self.effect)
    }

    /// Returns the interval of the ratio that holds the true one with a chance of `level`.
    ///
    /// `None` for an unrated ratio and a level that does not lie between 0 and 1.
    #[must_use]
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let (low, high) = self.effects(level)?;
        Some(Interval { low: ratio(low), high: ratio(high) })
    }

    fn effects(&self, level: f64) -> Option<(f64, f64)> {
        let precision = self.precision?;
        let tail = Some((1.0 - level) / 2.0).filter(|tail| *tail > 0.0 && *tail < 0.5)?;
        let half = match precision.basis {
            Basis::Constant => 0.0,
            _ => student_upper_quantile(tail, precision.degrees)? * precision.error,
        };
        Some((self.effect - half, self.effect + half))
    }

    /// Returns what it comes to.
    ///
    /// `margin` is the least difference that is news, as a part of one: 0.02 are 2 %. `q` is the rating's p, or what became
    /// of it among many ([`families`](crate::families)). Better and worse: `q <= 0.05` and the ratio is a margin away from 1
    /// or more. Same: the interval of 90 % lies within the margin (two one-sided tests, Schuirmann 1987). Groups wanted:
    /// `2 (z(.975) + z(.80))² s² / ln(1 + margin)²` on each side.
    ///
    /// `None` when the margin is not above zero, or q no chance from 0 to 1: NaN gives no verdict.
    #[must_use]
    pub fn verdict(&self, margin: f64, q: f64) -> Option<Verdict> {
        let margin = Some(margin.ln_1p()).filter(|margin| *margin > 0.0 && margin.is_finite())?;
        if !(0.0..=1.0).contains(&q) || !self.effect.is_finite() {
            return None;
        }
        let (Some(precision), Some((low, high))) = (self.precision, self.effects(SAME_LEVEL)) else {
            return Some(Verdict::Unclear(Unclear::Unrated));
        };
        Some(if q <= Q_MAX && self.effect >= margin {
            Verdict::Better
        } else if q <= Q_MAX && self.effect <= -margin {
            Verdict::Worse
        } else if -margin < low && high < margin {
            Verdict::Same
        } else {
            Verdict::Unclear(Unclear::MoreGroups(self.missing(precision.variance / (margin * margin))?))
        })
    }

    /// Returns how many groups more each side needs, with a variance in squares of the margin.
    fn missing(&self, variance: f64) -> Option<usize> {
        let z = normal_upper_quantile((1.0 - 0.95) / 2.0)? + normal_upper_quantile(1.0 - POWER)?;
        // Saturates: what is too much to count is too much to do.
        let wanted = (2.0 * z * z * variance).ceil() as usize;
        Some(wanted.saturating_sub(self.groups.0.min(self.groups.1)).max(1))
    }
}

fn ratio(effect: f64) -> f64 {
    effect.exp().clamp(f64::MIN_POSITIVE, f64::MAX)
}
