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
    Rating { effect, groups, precision: precision(effect, base, new, history) }
}

fn precision(effect: f64, base: &Scores, new: &Scores, history: &History) -> Option<Precision> {
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
        Some((past, past_degrees)) if noisier(pooled, own, past, past_degrees) => {
            let (error, degrees) = welch(base, new).unwrap_or_else(|| ((pooled * (1.0 / n + 1.0 / m)).sqrt(), own));
            (pooled, degrees, error, Basis::Noisier)
        }
        Some((past, past_degrees)) => {
            let variance = (past_degrees * past + own * pooled) / (past_degrees + own);
            (variance, past_degrees + own, (variance * (1.0 / n + 1.0 / m)).sqrt(), Basis::Moderated)
        }
    };
    if variance < VARIANCE_MIN {
        let p =
            if effect.abs() < VARIANCE_MIN.sqrt() { 1.0 } else { parted(base.count(), new.count(), history.degrees()) };
        return Some(Precision { error: 0.0, degrees: f64::INFINITY, variance: 0.0, basis: Basis::Constant, p });
    }
    let p = student_two_sided(effect / error, degrees);
    (p.is_finite() && error.is_finite()).then_some(Precision { error, degrees, variance, basis, p })
}

/// Tells whether a variance is larger than a past one by more than chance.
fn noisier(own: f64, degrees: f64, past: f64, past_degrees: f64) -> bool {
    if degrees <= 0.0 || own < VARIANCE_MIN {
        return false;
    }
    past < VARIANCE_MIN || fisher_upper(own / past, degrees, past_degrees) < NOISIER_P
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
fn parted(n: usize, m: usize, history: usize) -> f64 {
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
    /// of it among many ([`families`](crate::families())). Better and worse: `q <= 0.05` and the ratio is a margin away from 1
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

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{Basis, History, Rating, Scores, Unclear, Verdict, rate};
    use crate::Better;

    /// One value for each group.
    fn side(values: &[f64]) -> Scores {
        Scores::of(&values.iter().map(|value| [*value]).collect::<Vec<_>>(), Better::Higher).unwrap()
    }

    fn history(sets: &[&[f64]]) -> History {
        let mut history = History::default();
        sets.iter().for_each(|set| history.add(&side(set)));
        history
    }

    fn rated(base: &[f64], new: &[f64], before: &History) -> Rating {
        rate(&side(base), &side(new), before)
    }

    /// With a margin of 2 % and its own p.
    fn verdict(rating: &Rating) -> Verdict {
        rating.verdict(0.02, rating.precision.map_or(1.0, |precision| precision.p)).unwrap()
    }

    fn mirrored(verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        }
    }

    #[test]
    fn each_verdict_has_its_case() {
        let none = History::default();
        let base = [100.0, 101.0, 99.0, 100.5, 99.5];
        assert_eq!(verdict(&rated(&base, &base.map(|v| v * 1.1), &none)), Verdict::Better);
        assert_eq!(verdict(&rated(&base, &base.map(|v| v / 1.1), &none)), Verdict::Worse);
        assert_eq!(verdict(&rated(&base, &base.map(|v| v * 1.001), &none)), Verdict::Same);
        let wide = [100.0, 120.0, 80.0];
        let unclear = rated(&wide, &wide.map(|v| v * 1.05), &none);
        assert!(matches!(verdict(&unclear), Verdict::Unclear(Unclear::MoreGroups(n)) if n > 1000));
        assert_eq!(verdict(&rated(&[100.0], &[200.0], &none)), Verdict::Unclear(Unclear::Unrated));
    }

    #[test]
    fn a_sure_difference_below_the_margin_is_the_same() {
        let base = [100.0, 100.01, 99.99, 100.005, 99.995];
        let rating = rated(&base, &base.map(|v| v * 1.01), &History::default());
        assert!(rating.precision.unwrap().p < 1e-6);
        assert_eq!(verdict(&rating), Verdict::Same);
    }

    #[test]
    fn the_groups_that_are_missing_are_those_of_the_formula() {
        // A variance of (2 tau)²: 15.7 times 4 are 62.8, and 63 less one group are missing.
        let tau = 1.02_f64.ln();
        let past: Vec<f64> = [0.0, 2.0 * tau * 2.0_f64.sqrt()].iter().map(|log| log.exp()).collect();
        let sets: Vec<&[f64]> = vec![&past; 5];
        let rating = rated(&[1.0], &[1.0], &history(&sets));
        assert_eq!(verdict(&rating), Verdict::Unclear(Unclear::MoreGroups(62)));
    }

    #[test]
    fn a_history_rates_one_group_on_each_side() {
        let past: [&[f64]; 10] = [&[100.0, 100.5]; 10];
        let rating = rated(&[100.0], &[110.0], &history(&past));
        let precision = rating.precision.unwrap();
        assert_eq!((precision.basis, precision.degrees), (Basis::Moderated, 10.0));
        assert_eq!(verdict(&rating), Verdict::Better);
    }

    #[test]
    fn sides_noisier_than_their_history_speak_for_themselves() {
        let past: [&[f64]; 10] = [&[100.0, 100.1]; 10];
        let rating = rated(&[100.0, 120.0, 80.0], &[130.0, 90.0, 110.0], &history(&past));
        assert_eq!(rating.precision.unwrap().basis, Basis::Noisier);
        let one = rated(&[100.0, 120.0, 80.0], &[130.0], &history(&past));
        assert_eq!(one.precision.unwrap().basis, Basis::Noisier);
        assert!((one.precision.unwrap().degrees - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_long_history_does_not_outweigh_everything() {
        let past: Vec<&[f64]> = vec![&[100.0, 100.5]; 500];
        let rating = rated(&[100.0, 100.4], &[100.0, 100.4], &history(&past));
        assert!((rating.precision.unwrap().degrees - 32.0).abs() < 1e-12);
    }

    #[test]
    fn what_never_scatters_is_judged_by_how_often_it_was_seen() {
        let p = |count: usize, before: &History| {
            let rating = rated(&vec![100.0; count], &vec![110.0; count], before);
            assert_eq!(rating.precision.unwrap().basis, Basis::Constant);
            rating.precision.unwrap().p
        };
        let none = History::default();
        assert!((p(2, &none) - 2.0 / 6.0).abs() < 1e-12);
        assert!((p(4, &none) - 2.0 / 70.0).abs() < 1e-12);
        let past: [&[f64]; 30] = [&[5.0, 5.0]; 30];
        assert!((p(1, &history(&past)) - 1.0 / 31.0).abs() < 1e-12);
        let equal = rated(&[100.0; 3], &[100.0; 3], &none);
        assert!((equal.precision.unwrap().p - 1.0).abs() < 1e-12);
        assert_eq!(verdict(&equal), Verdict::Same);
        assert!(p(2000, &none) < 1e-300);
    }

    #[test]
    fn what_is_no_margin_and_no_chance_gives_no_verdict() {
        let rating = rated(&[100.0, 101.0], &[150.0, 151.0], &History::default());
        for margin in [f64::NAN, 0.0, -0.1, f64::INFINITY, -2.0] {
            assert_eq!(rating.verdict(margin, 0.01), None);
        }
        for q in [f64::NAN, -0.1, 1.1] {
            assert_eq!(rating.verdict(0.02, q), None);
        }
        for level in [f64::NAN, 0.0, 1.0, 2.0] {
            assert_eq!(rating.interval(level), None);
        }
    }

    #[test]
    fn the_widest_ratio_is_a_number() {
        let rating = rated(&[f64::MIN_POSITIVE], &[f64::MAX], &History::default());
        assert!(rating.ratio().is_finite() && rating.ratio() > 1e300);
        let rating = rated(&[f64::MAX], &[f64::MIN_POSITIVE], &History::default());
        assert!(rating.ratio() > 0.0);
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let near = prop::collection::vec(95.0..105.0, 1..7);
        let wide = prop::collection::vec(1e-3..1e3, 1..7);
        let coarse = prop::collection::vec((1..4_u8).prop_map(f64::from), 1..7);
        proptest::prop_oneof![near, wide, coarse]
    }

    fn histories() -> impl Strategy<Value = History> {
        prop::collection::vec(values(), 0..6).prop_map(|sets| {
            let sets: Vec<&[f64]> = sets.iter().map(Vec::as_slice).collect();
            history(&sets)
        })
    }

    proptest! {
        #[test]
        fn swapped_sides_mirror_the_verdict(base in values(), new in values(), before in histories()) {
            let (one, other) = (rated(&base, &new, &before), rated(&new, &base, &before));
            prop_assert!((one.effect + other.effect).abs() < 1e-12);
            let p = one.precision.map_or(1.0, |precision| precision.p);
            prop_assert_eq!(one.verdict(0.02, p).map(mirrored), other.verdict(0.02, p));
        }

        #[test]
        fn the_unit_and_the_way_it_is_written_are_no_matter(
            base in values(), new in values(), before in histories(), unit in 1e-6..1e6,
        ) {
            let one = rated(&base, &new, &before);
            let of = |values: &[f64], better, unit: &dyn Fn(f64) -> f64| {
                Scores::of(&values.iter().map(|value| [unit(*value)]).collect::<Vec<_>>(), better).unwrap()
            };
            let scaled = |value: f64| value * unit;
            let inverse = |value: f64| 1.0 / value;
            for other in [
                rate(&of(&base, Better::Higher, &scaled), &of(&new, Better::Higher, &scaled), &before),
                rate(&of(&base, Better::Lower, &inverse), &of(&new, Better::Lower, &inverse), &before),
            ] {
                prop_assert!((one.effect - other.effect).abs() < 1e-9);
                prop_assert_eq!(one.precision.is_some(), other.precision.is_some());
                let p = |rating: &Rating| rating.precision.map_or(1.0, |precision| precision.p);
                prop_assert!((p(&one) - p(&other)).abs() < 1e-6, "{one:?} {other:?}");
            }
        }

        #[test]
        fn more_of_the_same_never_turns_better_into_worse(
            base in values(), new in values(), before in histories(), times in 2_usize..5,
        ) {
            let first = verdict(&rated(&base, &new, &before));
            let again = verdict(&rated(&base.repeat(times), &new.repeat(times), &before));
            prop_assert!(first != Verdict::Better || again != Verdict::Worse);
            prop_assert!(first != Verdict::Worse || again != Verdict::Better);
        }

        #[test]
        fn groups_that_do_not_differ_never_turn_better_into_worse(
            pairs in prop::collection::vec((95.0..105.0, 95.0..105.0), 1..6),
            equal in prop::collection::vec(95.0..105.0, 1..6),
            before in histories(),
        ) {
            let (mut base, mut new): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let first = verdict(&rated(&base, &new, &before));
            base.extend(&equal);
            new.extend(&equal);
            let then = verdict(&rated(&base, &new, &before));
            prop_assert!(first != Verdict::Better || then != Verdict::Worse);
            prop_assert!(first != Verdict::Worse || then != Verdict::Better);
        }

        #[test]
        fn nothing_that_is_not_finite_comes_out(
            base in prop::collection::vec(prop::num::f64::POSITIVE | prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL, 1..5),
            new in prop::collection::vec(any::<f64>(), 1..5),
            before in histories(),
        ) {
            let groups = |values: &[f64]| values.iter().map(|value| [*value]).collect::<Vec<_>>();
            let sides = Scores::of(&groups(&base), Better::Lower).and_then(|a| Ok((a, Scores::of(&groups(&new), Better::Lower)?)));
            if let Ok((base, new)) = sides {
                let rating = rate(&base, &new, &before);
                prop_assert!(rating.ratio().is_finite() && rating.ratio() > 0.0);
                if let Some(ends) = rating.interval(0.95) {
                    prop_assert!(ends.low <= rating.ratio() && rating.ratio() <= ends.high && ends.high.is_finite());
                }
                prop_assert!(rating.precision.is_none_or(|found| (0.0..=1.0).contains(&found.p) && found.error.is_finite()));
            }
        }
    }
}
