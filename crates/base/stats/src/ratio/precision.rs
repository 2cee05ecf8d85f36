//! How sure the difference of two sides is: each side's own scatter, moderated by the history, and
//! the ranks where they can tell.

use super::prior::{Prior, Seen, VARIANCE_MIN};
use super::resolution::Coarse;
use super::{Basis, History, Precision, Scores};
use crate::average::median;
use crate::distribution::{student_two_sided, student_upper_quantile};
use crate::noise::OF_MEDIAN;
use crate::rank_test::{rank_test, shift_interval};

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
/// A history is doubted below this chance that both sides scatter as it says.
const TRUSTED: f64 = 0.5;
/// Steps of a search for a quantile, each of which at least halves what is left; and the share of
/// a tail at which it is near enough.
const STEPS_MAX: usize = 40;
const NEAR_ENOUGH: f64 = 1e-6;
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
/// The sides scatter as their history says or otherwise: a rating's chances are those under both,
/// weighed by how likely each is ([`Prior::chance`]). The history never makes a rating weaker:
/// where it says less than the sides alone do, because it is louder, it does not count. That is one
/// more chance to be wrong, which the rest leaves room for (`tests/calibration.rs`).
pub(super) fn judge(
    base: &Scores,
    new: &Scores,
    history: &History,
    margin: f64,
    tails: [f64; 2],
) -> Judged {
    let pair = Paired::new(base, new);
    let own = error(&pair.sides, None);
    let alone = own.and_then(|own| pair.judge(&Beliefs::one(own), history, margin, tails));
    let beliefs = history
        .prior()
        .and_then(|prior| Beliefs::form(&pair.sides, prior, own));
    let with = beliefs.and_then(|beliefs| pair.judge(&beliefs, history, margin, tails));
    Judged {
        effect: pair.effect,
        precision: match (with, alone) {
            (Some(with), Some(alone)) => Some(with.or_surer(alone)),
            (with, alone) => with.or(alone),
        },
    }
}

/// One or two errors that the difference may have, and how likely the first is.
#[derive(Debug, Clone, Copy)]
struct Beliefs {
    first: Precision,
    other: Option<Precision>,
    chance: f64,
}

impl Beliefs {
    fn one(first: Precision) -> Self {
        Self {
            first,
            other: None,
            chance: 1.0,
        }
    }

    /// None where nothing tells of a side's scatter.
    fn form(sides: &[Side; 2], prior: Prior, own: Option<Precision>) -> Option<Self> {
        let first = error(sides, Some(prior))?;
        let seen: Vec<Seen> = sides.iter().filter_map(Side::seen).collect();
        let chance = prior.chance(&seen);
        let degrees: f64 = seen.iter().map(|side| side.degrees).sum();
        let squares: f64 = seen.iter().map(|side| side.degrees * side.variance).sum();
        let basis = if chance >= TRUSTED {
            Basis::Moderated
        } else if squares > degrees * prior.variance {
            Basis::Noisier
        } else {
            Basis::Quieter
        };
        Some(Self {
            first: Precision { basis, ..first },
            other: own.map(|own| Precision { basis, ..own }),
            chance: if own.is_some() { chance } else { 1.0 },
        })
    }

    /// Returns the likelier one, with the variance that both expect.
    fn found(&self) -> Precision {
        let Some(other) = self.other else {
            return self.first;
        };
        let likelier = if self.chance >= TRUSTED {
            self.first
        } else {
            other
        };
        Precision {
            variance: self.chance * self.first.variance + (1.0 - self.chance) * other.variance,
            ..likelier
        }
    }

    /// Returns the chance of a difference at least so large without one, one-sided.
    fn tail(&self, difference: f64) -> f64 {
        let of = |found: &Precision| student_upper(difference / found.error, found.degrees);
        let first = of(&self.first);
        match &self.other {
            Some(other) => self.chance * first + (1.0 - self.chance) * of(other),
            None => first,
        }
    }

    /// Returns the difference that is exceeded with a chance.
    fn quantile(&self, tail: f64) -> f64 {
        let of = |found: &Precision| {
            student_upper_quantile(tail, found.degrees).unwrap_or(f64::INFINITY) * found.error
        };
        let first = of(&self.first);
        let Some(other) = self.other.as_ref().map(of).filter(|_| self.chance < 1.0) else {
            return first;
        };
        if !first.is_finite() || !other.is_finite() {
            return first.max(other);
        }
        // Logarithms of tails are nearly lines: false position, with the Illinois step.
        let mut low = first.min(other);
        let mut high = first.max(other);
        let excess = |difference: f64| (self.tail(difference) / tail).ln();
        let mut above = excess(low);
        let mut below = excess(high);
        for _ in 0..STEPS_MAX {
            let way = above - below;
            if above.abs() < NEAR_ENOUGH || below.abs() < NEAR_ENOUGH || way.is_nan() || way <= 0.0
            {
                break;
            }
            let between = low + (high - low) * above / way;
            let left = excess(between);
            if left > 0.0 {
                low = between;
                above = left;
                below /= 2.0;
            } else {
                high = between;
                below = left;
                above /= 2.0;
            }
        }
        if above.abs() < below.abs() { low } else { high }
    }
}

/// Both sides without wild groups.
struct Paired<'a> {
    scores: [&'a Scores; 2],
    sides: [Side; 2],
    is_cut: bool,
    effect: f64,
    /// By how much the clock's steps leave the difference open.
    coarse: f64,
}

impl<'a> Paired<'a> {
    fn new(base: &'a Scores, new: &'a Scores) -> Self {
        let tame = [base, new].map(|side| without_wild(side.as_slice()));
        let Coarse { half, difference } = base.resolution().coarse(new.resolution());
        let sides = [Side::new(&tame[0], half), Side::new(&tame[1], half)];
        Self {
            scores: [base, new],
            sides,
            is_cut: tame[0].len() < base.count() || tame[1].len() < new.count(),
            effect: sides[1].mean - sides[0].mean,
            coarse: difference,
        }
    }

    /// None for what is not finite.
    fn judge(
        &self,
        beliefs: &Beliefs,
        history: &History,
        margin: f64,
        tails: [f64; 2],
    ) -> Option<Precision> {
        let [base, new] = self.scores;
        let effect = self.effect;
        let mut found = beliefs.found();
        found.coarse = self.coarse;
        let is_moderated = found.basis != Basis::Own;
        let degrees = if is_moderated { history.degrees() } else { 0 };
        let dealt = (2.0 / ways([base.count(), new.count()]) / (1.0 + degrees as f64)).min(1.0);
        if found.variance < VARIANCE_MIN {
            return Some(constant(found, effect, margin, dealt));
        }
        found.p = beyond(effect, self.coarse, |difference| beliefs.tail(difference));
        found.p_margin = beyond(effect, margin + self.coarse, |difference| {
            beliefs.tail(difference)
        });
        found.ends = tails.map(|tail| {
            let half = beliefs.quantile(tail) + self.coarse;
            (effect - half, effect + half)
        });
        let past = if is_moderated {
            history.variance().unwrap_or_default()
        } else {
            0.0
        };
        if base.squares() + new.squares() + past < VARIANCE_MIN && effect.abs() > self.coarse {
            (found.p, found.p_margin) = (found.p.max(dealt), found.p_margin.max(dealt));
        }
        if self.is_cut || base.count() != new.count() {
            ask_ranks(&mut found, [base, new], effect, margin, tails);
        }
        Some(found).filter(|found| found.p.is_finite() && found.error.is_finite())
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

    /// Returns how it scatters; none for one group.
    fn seen(&self) -> Option<Seen> {
        let degrees = self.count - 1.0;
        (degrees > 0.0).then(|| Seen {
            variance: self.squares / degrees,
            degrees,
        })
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
pub(super) fn error(sides: &[Side; 2], prior: Option<Prior>) -> Option<Precision> {
    let single = sides.iter().filter(|side| side.count <= 1.0).count();
    let mut found: Vec<Seen> = Vec::with_capacity(2);
    for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
        found.push(match (side.seen(), prior) {
            (seen, Some(prior)) => pool(seen, prior),
            (Some(seen), None) => seen,
            (None, None) => other.seen()?,
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
    let doubt = if prior.is_some() { 0.0 } else { DEGREES_DOUBT };
    let degrees = if welch.is_finite() {
        welch + doubt * (least.min(welch) - welch)
    } else {
        least
    };
    Some(Precision {
        error: sum.sqrt(),
        degrees: degrees.max(1.0),
        variance: f64::midpoint(found[0].variance, found[1].variance),
        basis: if prior.is_some() {
            Basis::Moderated
        } else {
            Basis::Own
        },
        single: single > 0,
        coarse: 0.0,
        p: 1.0,
        p_margin: 1.0,
        ends: [(0.0, 0.0); 2],
    })
}

/// `(d0 s0² + d s²) / (d0 + d)` (Smyth 2004).
fn pool(seen: Option<Seen>, prior: Prior) -> Seen {
    let Some(seen) = seen else {
        return Seen {
            variance: prior.variance,
            degrees: prior.degrees,
        };
    };
    let degrees = prior.degrees + seen.degrees;
    Seen {
        variance: (prior.degrees * prior.variance + seen.degrees * seen.variance) / degrees,
        degrees,
    }
}

/// Returns the chance of an effect at least so far beyond a margin if the true one is within it:
/// McCarthy and Smyth 2009 (TREAT); two-sided for a margin of zero. `tail` is the chance of a
/// difference at least so large without one, one-sided.
pub(super) fn beyond(effect: f64, margin: f64, tail: impl Fn(f64) -> f64) -> f64 {
    (tail(effect.abs() - margin) + tail(effect.abs() + margin)).min(1.0)
}

/// Returns the chance of a Student's t above one.
pub(super) fn student_upper(t: f64, degrees: f64) -> f64 {
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
