//! The ratio of two sides, and the verdict.

use super::forecast::{self, Outlook, Plan};
use super::{History, Scores, neighbours, precision};

/// Largest q of a difference beyond the margin.
pub(super) const Q_MAX: f64 = 0.05;

/// Where the error of a rating comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The sides alone (Welch 1947): there is no history, or it says less than they do.
    Own,
    /// The sides and their history (Smyth 2004, the moderated t of limma, for each side).
    Moderated,
    /// Mostly the sides alone, although there is a history: they scatter more than it explains.
    Noisier,
    /// The same: they scatter less, so that the history would hide what they show.
    Quieter,
    /// The differences of groups that were measured one after the other.
    Neighbours,
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
    /// Variance of scores between groups, mean of both sides, in squares of logarithms.
    pub variance: f64,
    /// Where these come from.
    pub basis: Basis,
    /// Whether a side has one group only: it is taken to scatter twelve times as much in variance
    /// as it should, for nothing would show it.
    pub single: bool,
    /// What the clock's steps leave open, in logarithms: no interval is narrower to either side.
    pub coarse: f64,
    /// Chance of an effect at least so large without a difference, two-sided.
    pub p: f64,
    /// Chance of an effect at least so large if the true one is within the margin: what better and
    /// worse are decided by.
    pub p_margin: f64,
    /// Intervals of the effect of 95 % and of 90 %.
    pub(super) ends: [(f64, f64); 2],
}

/// Two ends, as ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end of the ratio.
    pub low: f64,
    /// The upper end of the ratio.
    pub high: f64,
}

/// How a new side compares with a base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioEstimate {
    /// Logarithm of the ratio: above 0 is better.
    pub effect: f64,
    /// Groups of the base and of the new side.
    pub groups: (usize, usize),
    /// Logarithm of the least ratio that is news.
    margin: f64,
    /// How sure it is; none for one group on each side and no history: values within a group
    /// cannot tell.
    pub precision: Option<Precision>,
    /// What more groups would bring.
    outlook: Outlook,
}

/// What a rating comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Shown to be better by more than the margin.
    Better,
    /// Shown to be worse by more than the margin.
    Worse,
    /// Shown to differ by less than the margin.
    Same,
    /// Neither a change nor sameness is proved.
    Unclear(Unclear),
}

/// What is missing for a clear verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unclear {
    /// A second group on a side, or a history: the ratio is unrated.
    Unrated,
    /// So many groups more on each side, at least one, give a clear verdict with a chance of 80 %,
    /// after what was seen.
    MoreGroups(usize),
    /// The difference lies so near to the margin that no affordable number of groups decides; if
    /// there were none, one would.
    NearMargin,
    /// A side has one group, and the history scatters too much: a second one tells more.
    NoisyHistory,
    /// More than 50 groups of each side, and more than planned: not with this noise.
    TooNoisy,
    /// The clock's steps are as wide as the margin: no number of groups tells.
    TooCoarse,
}

/// Rates a new side against a base. `margin` is the least difference that is news, as a part of
/// one: 0.02 are 2 %.
///
/// Each side scatters with its own variance `s²` in `d = B - 1` degrees of freedom; with the
/// history's `s0²` in `d0` degrees, at most 30, it is `(d0 s0² + d s²) / (d0 + d)`. The history may
/// also be wrong for these sides: chances are those with it and those without it, weighed by how
/// likely what the sides scatter makes each. The error is `sqrt(s1²/B1 + s2²/B2)` with
/// Satterthwaite's degrees. A side of one group is taken to scatter more than the history says. Wild groups of eight or more are left out, and
/// where they are, or where the sides have unequal numbers of groups, ranks must agree (Mann and
/// Whitney, exact). Where nothing scatters, p is the share of ways to deal out the scores that part
/// them so, one more for each degree of the history: `2 / C(B1 + B2, B1) / (1 + d0)`.
///
/// Swapped sides give the negative effect and the same p; values in another unit the same rating,
/// as far as they are not rounded. A margin that is negative or not finite is none: nothing then
/// has a verdict.
#[must_use]
pub fn estimate_ratio(
    base: &Scores,
    new: &Scores,
    history: &History,
    margin: f64,
) -> RatioEstimate {
    rate_by(base, new, history, margin, &Rule::ONCE)
}

/// Rates sides whose groups of the same place were measured one after the other, by what each pair
/// differs by, from ten pairs on; else as [`estimate_ratio`] does without a history.
#[must_use]
pub fn estimate_neighbours(base: &Scores, new: &Scores, margin: f64) -> RatioEstimate {
    rate_neighbours(base, new, margin, &Rule::ONCE)
}

/// Rates as [`estimate_neighbours`] does, by other intervals.
pub(super) fn rate_neighbours(
    base: &Scores,
    new: &Scores,
    margin: f64,
    rule: &Rule<'_>,
) -> RatioEstimate {
    match neighbours::judge(base, new, tested(margin), rule.tails) {
        Some(judged) => finish(base, new, margin.ln_1p(), judged, rule),
        None => rate_by(base, new, &History::default(), margin, rule),
    }
}

/// What a rating's intervals leave out, and what later ones will.
pub(super) struct Rule<'a> {
    /// Chance that the true ratio lies beyond one end of the interval of 95 %, and of the one of
    /// 90 %.
    pub(super) tails: [f64; 2],
    /// The later ones, by which forecasts are made.
    pub(super) plan: Plan<'a>,
}

impl Rule<'_> {
    const ONCE: Self = Self {
        tails: [0.025, 0.05],
        plan: Plan::ONCE,
    };
}

/// Estimates as [`estimate_ratio`] does, by other intervals.
pub(super) fn rate_by(
    base: &Scores,
    new: &Scores,
    history: &History,
    margin: f64,
    rule: &Rule<'_>,
) -> RatioEstimate {
    let judged = precision::judge(base, new, history, tested(margin), rule.tails);
    finish(base, new, margin.ln_1p(), judged, rule)
}

/// Returns the logarithm of a margin; zero for one that is none.
fn tested(margin: f64) -> f64 {
    let margin = margin.ln_1p();
    if margin.is_finite() {
        margin.max(0.0)
    } else {
        0.0
    }
}

/// Adds what more groups would bring; `margin` is a logarithm.
fn finish(
    base: &Scores,
    new: &Scores,
    margin: f64,
    judged: precision::Judged,
    rule: &Rule<'_>,
) -> RatioEstimate {
    let precision::Judged { effect, precision } = judged;
    let tested = tested(margin.exp_m1());
    let rating = RatioEstimate {
        effect,
        groups: (base.count(), new.count()),
        margin,
        precision,
        outlook: Outlook::TooNoisy,
    };
    let outlook = precision.map_or(Outlook::TooNoisy, |precision| {
        forecast::outlook(&rating, &precision, tested, &rule.plan)
    });
    RatioEstimate { outlook, ..rating }
}

impl RatioEstimate {
    /// Returns how many times better the new side is: above 1 is better. Never zero and never
    /// infinite.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        ratio(self.effect)
    }

    /// Returns the interval of the ratio that holds the true one with a chance of 95 %; none for an
    /// unrated ratio.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        let [(low, high), _] = self.precision?.ends;
        Some(Interval {
            low: ratio(low),
            high: ratio(high),
        })
    }

    /// Returns the chance that better and worse are decided by: of an effect at least so large if
    /// the true one is within the margin; 1 for an unrated ratio.
    #[must_use]
    pub fn p(&self) -> f64 {
        self.precision.map_or(1.0, |precision| precision.p_margin)
    }

    /// Returns what it comes to.
    ///
    /// `q` is the rating's [`p`](Self::p), or what became of it among many
    /// ([`families`](crate::families())). Better and worse: `q <= 0.05`, so that the true ratio
    /// is beyond the margin. Same: the interval of 90 % lies within the margin (two
    /// one-sided tests, Schuirmann 1987).
    ///
    /// `None` when the margin is not above zero, or q no chance from 0 to 1: NaN gives no verdict.
    #[must_use]
    pub fn verdict(&self, q: f64) -> Option<Verdict> {
        let margin = Some(self.margin).filter(|margin| *margin > 0.0 && margin.is_finite())?;
        if !(0.0..=1.0).contains(&q) || !self.effect.is_finite() {
            return None;
        }
        let Some(precision) = self.precision else {
            return Some(Verdict::Unclear(Unclear::Unrated));
        };
        let [_, (low, high)] = precision.ends;
        Some(if q <= Q_MAX && self.effect.abs() > margin {
            if self.effect > 0.0 {
                Verdict::Better
            } else {
                Verdict::Worse
            }
        } else if -margin < low && high < margin {
            Verdict::Same
        } else if precision.coarse >= margin {
            Verdict::Unclear(Unclear::TooCoarse)
        } else {
            Verdict::Unclear(match self.outlook {
                Outlook::Clear(more) => Unclear::MoreGroups(more),
                Outlook::NearMargin => Unclear::NearMargin,
                Outlook::TooNoisy if precision.single && precision.basis == Basis::Moderated => {
                    Unclear::NoisyHistory
                }
                Outlook::TooNoisy => Unclear::TooNoisy,
            })
        })
    }
}

fn ratio(effect: f64) -> f64 {
    effect.exp().clamp(f64::MIN_POSITIVE, f64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{
        Basis, History, RatioEstimate, Scores, Unclear, Verdict, estimate_ratio, precision,
    };
    use crate::Better;

    /// One value for each group.
    fn side(values: &[f64]) -> Scores {
        Scores::new(
            &values.iter().map(|value| [*value]).collect::<Vec<_>>(),
            Better::Higher,
        )
        .unwrap()
    }

    fn history(sets: &[&[f64]]) -> History {
        let mut history = History::default();
        sets.iter().for_each(|set| history.add(&side(set)));
        history
    }

    fn rated(base: &[f64], new: &[f64], before: &History) -> RatioEstimate {
        estimate_ratio(&side(base), &side(new), before, 0.02)
    }

    /// By its own p.
    fn verdict(rating: &RatioEstimate) -> Verdict {
        rating.verdict(rating.p()).unwrap()
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
        assert_eq!(
            verdict(&rated(&base, &base.map(|v| v * 1.1), &none)),
            Verdict::Better
        );
        assert_eq!(
            verdict(&rated(&base, &base.map(|v| v / 1.1), &none)),
            Verdict::Worse
        );
        assert_eq!(
            verdict(&rated(&base, &base.map(|v| v * 1.001), &none)),
            Verdict::Same
        );
        let wide = [100.0, 120.0, 80.0];
        let unclear = rated(&wide, &wide.map(|v| v * 1.05), &none);
        assert_eq!(verdict(&unclear), Verdict::Unclear(Unclear::TooNoisy));
        assert_eq!(
            verdict(&rated(&[100.0], &[200.0], &none)),
            Verdict::Unclear(Unclear::Unrated)
        );
    }

    #[test]
    fn sure_difference_below_margin_is_same() {
        let base = [100.0, 100.01, 99.99, 100.005, 99.995];
        let rating = rated(&base, &base.map(|v| v * 1.01), &History::default());
        assert!(rating.precision.unwrap().p < 1e-6);
        assert_eq!(verdict(&rating), Verdict::Same);
    }

    /// Returns the verdict on equal values with a past that scatters.
    fn verdict_after_noise(percent: f64) -> Verdict {
        let past: Vec<f64> = [0.0, percent / 100.0]
            .iter()
            .map(|log| (log * 2.0_f64.sqrt()).exp())
            .collect();
        let sets: Vec<&[f64]> = vec![&past; 30];
        verdict(&rated(&[1.000_123_4], &[1.000_123_5], &history(&sets)))
    }

    #[test]
    fn forecast_grows_with_noise_up_to_fifty() {
        // Two one-sided tests need 2 (1.645 + 1.282)² s² / margin² groups of each side: 4.4 at s of
        // half the margin.
        assert!(
            matches!(
                verdict_after_noise(1.0),
                Verdict::Unclear(Unclear::MoreGroups(3..=9))
            ),
            "{:?}",
            verdict_after_noise(1.0)
        );
        assert_eq!(
            verdict_after_noise(4.0),
            Verdict::Unclear(Unclear::NoisyHistory)
        );
    }

    #[test]
    fn ten_equal_groups_of_each_side_differ() {
        let rating = rated(&[33.33; 10], &[66.67; 10], &History::default());
        assert_eq!(verdict(&rating), Verdict::Better, "{rating:?}");
    }

    #[test]
    fn margin_within_the_clocks_steps_is_too_coarse() {
        let still = rated(&[0.1, 0.1, 0.1, 0.11], &[0.1; 4], &History::default());
        assert_eq!(verdict(&still), Verdict::Unclear(Unclear::TooCoarse));
        let ends = still.interval().unwrap();
        assert!(ends.low < 0.95 && ends.high > 1.05, "{ends:?}");
    }

    #[test]
    fn one_group_off_does_not_hide_a_difference() {
        let base: Vec<f64> = (0..12).map(|n| 1500.25 + f64::from(n * 7 % 12)).collect();
        let mut new: Vec<f64> = base.iter().map(|value| value * 1.05).collect();
        new[3] = 1675.5;
        assert_eq!(
            verdict(&rated(&base, &new, &History::default())),
            Verdict::Better
        );
    }

    #[test]
    fn effect_of_one_margin_is_unclear() {
        let base = [100.0, 100.5, 99.5, 100.25];
        let rating = rated(&base, &base.map(|value| value * 1.02), &History::default());
        let precision = rating.precision.unwrap();
        assert!(
            precision.p < 0.01 && precision.p_margin > 0.4,
            "{precision:?}"
        );
        assert!(matches!(verdict(&rating), Verdict::Unclear(_)));
    }

    #[test]
    fn a_history_rates_one_group_on_each_side() {
        let past: [&[f64]; 10] = [&[100.0, 100.5]; 10];
        let rating = rated(&[100.0], &[110.0], &history(&past));
        let precision = rating.precision.unwrap();
        assert_eq!(
            (precision.basis, precision.single),
            (Basis::Moderated, true)
        );
        assert!((7.0..9.0).contains(&precision.degrees), "{precision:?}");
        assert_eq!(verdict(&rating), Verdict::Better);
    }

    #[test]
    fn sides_noisier_than_their_history_speak_for_themselves() {
        let past: [&[f64]; 10] = [&[100.0, 100.1]; 10];
        let rating = rated(
            &[100.0, 120.0, 80.0],
            &[130.0, 90.0, 110.0],
            &history(&past),
        );
        let precision = rating.precision.unwrap();
        assert_eq!(precision.basis, Basis::Noisier);
        assert!(precision.degrees <= 4.0, "{precision:?}");
        let one = rated(&[100.0, 120.0, 80.0], &[130.0], &history(&past));
        assert!(one.precision.unwrap().single);
    }

    #[test]
    fn one_wild_group_of_a_history_hides_nothing() {
        // 32 sets of ten groups around 100; one group of one of them is ten times as high.
        let near: Vec<f64> = (0..10)
            .map(|n| 100.0 + 0.5 * f64::from(n * 7 % 10))
            .collect();
        let mut wild = near.clone();
        wild[4] *= 10.0;
        let mut sets = vec![near.as_slice(); 32];
        sets[20] = &wild;
        let new: Vec<f64> = near.iter().map(|value| value * 0.901).collect();
        assert_eq!(
            verdict(&rated(&near, &new, &history(&sets))),
            Verdict::Worse
        );
        sets[20] = &near;
        assert_eq!(
            verdict(&rated(&near, &new, &history(&sets))),
            Verdict::Worse
        );
    }

    #[test]
    fn a_long_history_does_not_outweigh_everything() {
        let past: Vec<&[f64]> = vec![&[100.0, 100.5]; 500];
        let near = precision::Side::new(side(&[100.0, 100.1]).as_slice(), 0.0);
        let found = precision::error(&[near, near], history(&past).prior()).unwrap();
        // Two sides of less than 30 and 1 degrees each.
        assert!((50.0..62.0).contains(&found.degrees), "{found:?}");
    }

    /// Returns the p of so many constant values of each side.
    fn p_of_constants(count: usize, before: &History) -> f64 {
        let rating = rated(&vec![100.000_123; count], &vec![110.000_456; count], before);
        rating.precision.unwrap().p
    }

    #[test]
    fn constant_values_are_judged_by_their_number() {
        let none = History::default();
        assert!((p_of_constants(2, &none) - 2.0 / 6.0).abs() < 1e-12);
        assert!((p_of_constants(4, &none) - 2.0 / 70.0).abs() < 1e-12);
        let past: [&[f64]; 30] = [&[5.0, 5.0]; 30];
        assert!((p_of_constants(1, &history(&past)) - 1.0 / 31.0).abs() < 1e-12);
        let equal = rated(&[100.000_123; 3], &[100.000_123; 3], &none);
        assert!((equal.precision.unwrap().p - 1.0).abs() < 1e-12);
        assert_eq!(verdict(&equal), Verdict::Same);
        assert!(p_of_constants(2000, &none) < 1e-12);
    }

    #[test]
    fn invalid_margin_or_chance_gives_no_verdict() {
        let rating = rated(&[100.0, 101.0], &[150.0, 151.0], &History::default());
        for margin in [f64::NAN, 0.0, -0.1, f64::INFINITY, -2.0] {
            let rating = estimate_ratio(
                &side(&[100.0, 101.0]),
                &side(&[150.0, 151.0]),
                &History::default(),
                margin,
            );
            assert_eq!(rating.verdict(0.01), None);
        }
        for q in [f64::NAN, -0.1, 1.1] {
            assert_eq!(rating.verdict(q), None);
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
        proptest::prop_oneof![near, wide]
    }

    /// And numbers of few digits, which say how coarse their clock is.
    fn written_values() -> impl Strategy<Value = Vec<f64>> {
        let coarse = prop::collection::vec((1..4_u8).prop_map(f64::from), 1..7);
        proptest::prop_oneof![values(), coarse]
    }

    fn histories() -> impl Strategy<Value = History> {
        prop::collection::vec(values(), 0..6).prop_map(|sets| {
            let sets: Vec<&[f64]> = sets.iter().map(Vec::as_slice).collect();
            history(&sets)
        })
    }

    fn scores_in(values: &[f64], better: Better, unit: &dyn Fn(f64) -> f64) -> Scores {
        let groups: Vec<[f64; 1]> = values.iter().map(|value| [unit(*value)]).collect();
        Scores::new(&groups, better).unwrap()
    }

    proptest! {
        #[test]
        fn history_never_makes_a_rating_weaker(
            base in values(),
            new in values(),
            past in prop::collection::vec(values(), 0..6),
        ) {
            let sets: Vec<&[f64]> = past.iter().map(Vec::as_slice).collect();
            let alone = rated(&base, &new, &History::default());
            let with = rated(&base, &new, &history(&sets));
            prop_assert!(with.p() <= alone.p());
            if let Verdict::Better | Verdict::Worse | Verdict::Same = verdict(&alone) {
                prop_assert_eq!(verdict(&with), verdict(&alone));
            }
            if let (Some(with), Some(alone)) = (with.interval(), alone.interval()) {
                prop_assert!(alone.low <= with.low && with.high <= alone.high);
            }
        }

        #[test]
        fn swapped_sides_mirror_the_verdict(
            base in written_values(),
            new in written_values(),
            before in histories(),
        ) {
            let one = rated(&base, &new, &before);
            let other = rated(&new, &base, &before);
            prop_assert!((one.effect + other.effect).abs() < 1e-12);
            prop_assert!((one.p() - other.p()).abs() < 1e-12);
            prop_assert_eq!(one.verdict(one.p()).map(mirrored), other.verdict(one.p()));
        }

        #[test]
        fn unit_and_inverse_give_same_rating(
            base in values(),
            new in values(),
            before in histories(),
            unit in 1e-6..1e6,
        ) {
            let one = rated(&base, &new, &before);
            let scaled = |value: f64| value * unit;
            let inverse = |value: f64| 1.0 / value;
            for other in [
                estimate_ratio(
                    &scores_in(&base, Better::Higher, &scaled),
                    &scores_in(&new, Better::Higher, &scaled),
                    &before,
                    0.02,
                ),
                estimate_ratio(
                    &scores_in(&base, Better::Lower, &inverse),
                    &scores_in(&new, Better::Lower, &inverse),
                    &before,
                    0.02,
                ),
            ] {
                prop_assert!((one.effect - other.effect).abs() < 1e-9);
                prop_assert_eq!(one.precision.is_some(), other.precision.is_some());
                let p_one = one.precision.map_or(1.0, |precision| precision.p);
                let p_other = other.precision.map_or(1.0, |precision| precision.p);
                prop_assert!((p_one - p_other).abs() < 1e-6, "{one:?} {other:?}");
            }
        }

        #[test]
        fn repeated_groups_never_turn_better_into_worse(
            base in written_values(),
            new in written_values(),
            before in histories(),
            times in 2_usize..5,
        ) {
            let first = verdict(&rated(&base, &new, &before));
            let again = verdict(&rated(&base.repeat(times), &new.repeat(times), &before));
            prop_assert!(first != Verdict::Better || again != Verdict::Worse);
            prop_assert!(first != Verdict::Worse || again != Verdict::Better);
        }

        #[test]
        fn equal_groups_never_turn_better_into_worse(
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
            base in prop::collection::vec(
                prop::num::f64::POSITIVE | prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
                1..5,
            ),
            new in prop::collection::vec(any::<f64>(), 1..5),
            before in histories(),
        ) {
            let groups =
                |values: &[f64]| values.iter().map(|value| [*value]).collect::<Vec<_>>();
            let sides = Scores::new(&groups(&base), Better::Lower)
                .and_then(|a| Ok((a, Scores::new(&groups(&new), Better::Lower)?)));
            if let Ok((base, new)) = sides {
                let rating = estimate_ratio(&base, &new, &before, 0.02);
                prop_assert!(rating.ratio().is_finite() && rating.ratio() > 0.0);
                if let Some(ends) = rating.interval() {
                    prop_assert!(
                        ends.low <= rating.ratio()
                            && rating.ratio() <= ends.high
                            && ends.high.is_finite()
                    );
                }
                prop_assert!(rating.precision.is_none_or(
                    |found| (0.0..=1.0).contains(&found.p) && found.error.is_finite()
                ));
            }
        }
    }
}
