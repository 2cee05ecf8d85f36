//! How sure the difference of two sides is: each side's own scatter, moderated by the history, and
//! the ranks where they can tell.

use super::resolution::Coarse;
use super::{Basis, History, Precision, Scores};
use crate::average::median;
use crate::distribution::{fisher_upper, student_two_sided, student_upper_quantile};
use crate::noise::OF_MEDIAN;
use crate::rank_test::{rank_test, shift_interval};

/// The history counts for at most so many degrees of freedom: what comes now must be able to speak
/// against it.
const HISTORY_DEGREES_MAX: usize = 30;
/// The history counts in full for a side whose scatter it makes at least so likely (upper tail of
/// Fisher's F), not at all below the other, and in part between. Calibrated
/// (`tests/calibration.rs`): a side with three times the scatter of its history raises no more
/// false alarms than its own scatter does alone.
const HISTORY_TRUSTED: f64 = 0.8;
const HISTORY_DOUBTED: f64 = 0.4;
/// A side of one group may scatter more than its history by so much in variance, and nothing would
/// show it: three times the deviation, and what a short history leaves open.
const SINGLE: f64 = 12.0;
/// Weight of the smaller of both sides' degrees beside Satterthwaite's: these are too many where
/// the smaller side scatters more (calibrated; Best and Rayner 1987 measure the same).
const DEGREES_DOUBT: f64 = 0.25;
/// Fewest groups of a side among which one can be called wild: the deviation of fewer is too
/// uncertain.
const WILD_GROUPS_MIN: usize = 8;
/// A group is wild if it lies so many median absolute deviations from the median, in deviations of
/// a normal distribution.
const WILD: f64 = 5.0;
/// Most of a side's groups that are wild: more are another mode.
const WILD_SHARE: usize = 5;
/// Variance of logarithms below which scores count as equal: what rounding leaves of equal values.
const VARIANCE_MIN: f64 = 1e-24;
/// Largest p that ranks must be able to reach to be asked.
const RANKS_P_MAX: f64 = 0.05;

/// What both sides say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// Difference of the centres, in logarithms.
    pub(super) effect: f64,
    /// None for one group on each side without a history.
    pub(super) precision: Option<Precision>,
}

/// Judges a new side against a base: `margin` is a logarithm, not negative; `tails` are those
/// outside the intervals that a rating needs, of 95 % for the reader and of 90 % for two one-sided
/// tests.
///
/// The history never makes a rating weaker: where it says less than the sides alone do, because it
/// is louder or had one wild group, it does not count. That is one more chance to be wrong, which
/// both ratings leave room for (`tests/calibration.rs`).
pub(super) fn judge(
    base: &Scores,
    new: &Scores,
    history: &History,
    margin: f64,
    tails: [f64; 2],
) -> Judged {
    let alone = judge_by(base, new, &History::default(), margin, tails);
    if history.variance().is_none() {
        return alone;
    }
    let with = judge_by(base, new, history, margin, tails);
    let precision = match (with.precision, alone.precision) {
        (Some(with), Some(alone)) => Some(with.or_surer(alone)),
        (with, alone) => with.or(alone),
    };
    Judged { precision, ..with }
}

fn judge_by(
    base: &Scores,
    new: &Scores,
    history: &History,
    margin: f64,
    tails: [f64; 2],
) -> Judged {
    let tame = [base, new].map(|side| without_wild(side.as_slice()));
    let Coarse {
        half,
        difference: coarse,
    } = base.resolution().coarse(new.resolution());
    let sides = [Side::new(&tame[0], half), Side::new(&tame[1], half)];
    let effect = sides[1].mean - sides[0].mean;
    let precision = error(&sides, history).map(|mut found| {
        found.coarse = coarse;
        let dealt =
            (2.0 / ways([base.count(), new.count()]) / (1.0 + history.degrees() as f64)).min(1.0);
        if found.variance < VARIANCE_MIN {
            return constant(found, effect, margin, dealt);
        }
        found.p = beyond(effect, 0.0, &found);
        found.p_margin = beyond(effect, margin, &found);
        found.ends = tails.map(|tail| {
            let half = student_upper_quantile(tail, found.degrees).unwrap_or(f64::INFINITY)
                * found.error
                + coarse;
            (effect - half, effect + half)
        });
        let scattered = base.squares() + new.squares() + history.variance().unwrap_or_default();
        if scattered < VARIANCE_MIN && effect.abs() > coarse {
            (found.p, found.p_margin) = (found.p.max(dealt), found.p_margin.max(dealt));
        }
        let is_cut = tame[0].len() < base.count() || tame[1].len() < new.count();
        if is_cut || base.count() != new.count() {
            ask_ranks(&mut found, [base, new], effect, margin, tails);
        }
        found
    });
    Judged {
        effect,
        precision: precision.filter(|found| found.p.is_finite() && found.error.is_finite()),
    }
}

impl Precision {
    fn width(&self) -> f64 {
        self.ends[0].1 - self.ends[0].0
    }

    /// Returns this one, or another one of the same effect where that is surer.
    fn or_surer(self, other: Self) -> Self {
        let surer = if other.width() < self.width() {
            other
        } else {
            self
        };
        // Both are around the same effect: one of the intervals lies within the other.
        let ends = [0, 1].map(|n| {
            (
                self.ends[n].0.max(other.ends[n].0),
                self.ends[n].1.min(other.ends[n].1),
            )
        });
        Self {
            ends,
            p: self.p.min(other.p),
            p_margin: self.p_margin.min(other.p_margin),
            ..surer
        }
    }
}

/// One side: its groups without wild ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Side {
    /// What scatters within a step of the clock cannot be seen: a variance of less than a twelfth
    /// of its square is none (Sheppard 1898).
    pub(super) fn new(scores: &[f64], half: f64) -> Self {
        let count = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
        Self {
            count,
            mean,
            squares: squares.max((count - 1.0) * half * half / 3.0),
        }
    }

    /// Returns a side of so many groups that scatter so much.
    pub(super) fn like(count: f64, variance: f64) -> Self {
        Self {
            count,
            mean: 0.0,
            squares: variance * (count - 1.0),
        }
    }

    /// Returns the sum of squares around the mean.
    pub(super) const fn squares(&self) -> f64 {
        self.squares
    }
}

/// Returns scores without those that are wild, if they are few: one group that went wrong hides
/// what all others agree on.
pub(super) fn without_wild(scores: &[f64]) -> Vec<f64> {
    let Some(middle) = median(scores).filter(|_| scores.len() >= WILD_GROUPS_MIN) else {
        return scores.to_vec();
    };
    let distances: Vec<f64> = scores.iter().map(|score| (score - middle).abs()).collect();
    let reach = WILD * OF_MEDIAN * median(&distances).unwrap_or_default();
    let tame: Vec<f64> = scores
        .iter()
        .copied()
        .filter(|score| (score - middle).abs() <= reach)
        .collect();
    let are_few = scores.len() - tame.len() <= scores.len() / WILD_SHARE;
    if reach > 0.0 && are_few {
        tame
    } else {
        scores.to_vec()
    }
}

/// Returns the error of the difference; none where nothing tells of a side's scatter.
pub(super) fn error(sides: &[Side; 2], history: &History) -> Option<Precision> {
    let past = history
        .variance()
        .map(|variance| (variance, history.degrees().min(HISTORY_DEGREES_MAX) as f64));
    let single = sides.iter().filter(|side| side.count <= 1.0).count();
    let mut found: Vec<Scatter> = Vec::with_capacity(2);
    for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
        found.push(match (side.count > 1.0, past) {
            (true, past) => Scatter::pool(side, past),
            (false, Some((variance, degrees))) => Scatter {
                variance,
                degrees,
                trust: 1.0,
            },
            (false, None) if other.count > 1.0 => Scatter::pool(other, None),
            (false, None) => return None,
        });
    }
    let mut parts = [
        found[0].variance / sides[0].count,
        found[1].variance / sides[1].count,
    ];
    // One of both may be the odd one; that both are would be one doubt too many.
    if single > 0 {
        parts[usize::from(sides[0].count > 1.0)] *= SINGLE;
    }
    let sum = parts[0] + parts[1];
    let least = found[0].degrees.min(found[1].degrees);
    let welch =
        sum * sum / (parts[0].powi(2) / found[0].degrees + parts[1].powi(2) / found[1].degrees);
    let degrees = if welch.is_finite() {
        welch + DEGREES_DOUBT * (least.min(welch) - welch)
    } else {
        least
    };
    let basis = match past {
        None => Basis::Own,
        Some(_) if found.iter().any(|scatter| scatter.trust > 0.0) => Basis::Moderated,
        Some(_) => Basis::Noisier,
    };
    Some(Precision {
        error: sum.sqrt(),
        degrees: degrees.max(1.0),
        variance: f64::midpoint(found[0].variance, found[1].variance),
        basis,
        single: single > 0,
        coarse: 0.0,
        p: 1.0,
        p_margin: 1.0,
        ends: [(0.0, 0.0); 2],
    })
}

/// How a side scatters.
#[derive(Debug, Clone, Copy)]
struct Scatter {
    variance: f64,
    degrees: f64,
    /// How far the history counts.
    trust: f64,
}

impl Scatter {
    /// `(w d0 s0² + d s²) / (w d0 + d)`, with the history's weight `w` (Smyth 2004, where it is 1).
    fn pool(side: Side, past: Option<(f64, f64)>) -> Self {
        let degrees = side.count - 1.0;
        let own = side.squares / degrees;
        let Some((variance, past_degrees)) = past else {
            return Self {
                variance: own,
                degrees,
                trust: 0.0,
            };
        };
        let p = match (own < VARIANCE_MIN, variance < VARIANCE_MIN) {
            (true, _) => 1.0,
            (false, true) => 0.0,
            (false, false) => fisher_upper(own / variance, degrees, past_degrees),
        };
        let trust = ((p - HISTORY_DOUBTED) / (HISTORY_TRUSTED - HISTORY_DOUBTED)).clamp(0.0, 1.0);
        let weight = trust * past_degrees;
        Self {
            variance: (weight * variance + side.squares) / (weight + degrees),
            degrees: weight + degrees,
            trust,
        }
    }
}

/// Returns the chance of an effect at least so far beyond a margin if the true one is within it:
/// McCarthy and Smyth 2009 (TREAT); Student's two-sided p for a margin of zero.
pub(super) fn beyond(effect: f64, margin: f64, found: &Precision) -> f64 {
    let margin = margin + found.coarse;
    let near = student_upper((effect.abs() - margin) / found.error, found.degrees);
    let far = student_upper((effect.abs() + margin) / found.error, found.degrees);
    (near + far).min(1.0)
}

/// Returns the chance of a Student's t above one.
fn student_upper(t: f64, degrees: f64) -> f64 {
    let far = student_two_sided(t, degrees) / 2.0;
    if t > 0.0 { far } else { 1.0 - far }
}

/// Where nothing scatters, p is the share of ways to deal out the groups that part them so.
fn constant(found: Precision, effect: f64, margin: f64, dealt: f64) -> Precision {
    let coarse = found.coarse;
    let p_within = |margin: f64| {
        if effect.abs() <= (margin + coarse).max(VARIANCE_MIN.sqrt()) {
            1.0
        } else {
            dealt
        }
    };
    let ends = [(effect - coarse, effect + coarse); 2];
    Precision {
        error: 0.0,
        degrees: f64::INFINITY,
        variance: 0.0,
        basis: Basis::Constant,
        p: p_within(0.0),
        p_margin: p_within(margin),
        ends,
        ..found
    }
}

/// Returns in how many ways groups can be dealt out to two sides: beyond what a number holds it is
/// infinite.
fn ways([n, m]: [usize; 2]) -> f64 {
    // C(n + m, n) as a product of ratios.
    let few = n.min(m);
    (1..=few).fold(1.0, |ways, k| ways * (n + m - few + k) as f64 / k as f64)
}

/// Lets ranks speak against the rest where they can: skewed noise and two modes deceive Student's t
/// when the sides are of unequal size, and wild groups were left out of it.
fn ask_ranks(
    found: &mut Precision,
    [base, new]: [&Scores; 2],
    effect: f64,
    margin: f64,
    tails: [f64; 2],
) {
    if 2.0 / ways([base.count(), new.count()]) > RANKS_P_MAX {
        return;
    }
    let by = |margin: f64| {
        let shift = effect.signum() * (margin + found.coarse);
        let shifted: Vec<f64> = new.as_slice().iter().map(|score| score - shift).collect();
        let ranks = rank_test(base.as_slice(), &shifted);
        ranks.map_or(1.0, |ranks| {
            if ranks.dominance * effect > 0.0 {
                ranks.p
            } else {
                1.0
            }
        })
    };
    let at_zero = by(0.0);
    let at_margin = by(margin);
    (found.p, found.p_margin) = (found.p.max(at_zero), found.p_margin.max(at_margin));
    for (ends, tail) in found.ends.iter_mut().zip(tails) {
        if let Some((low, high)) = shift_interval(base.as_slice(), new.as_slice(), tail) {
            *ends = (
                ends.0.min(low - found.coarse),
                ends.1.max(high + found.coarse),
            );
        }
    }
}
