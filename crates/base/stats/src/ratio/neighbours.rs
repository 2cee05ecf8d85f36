//! Sides whose groups were measured in pairs, one group of each side after the other: what disturbs
//! both groups of a pair cancels.
//!
//! Whether groups are neighbours is known before they are measured, and is the caller's to say.

use super::precision::{Judged, beyond, student_upper, without_wild};
use super::prior::VARIANCE_MIN;
use super::{Basis, Precision, Scores};
use crate::distribution::{normal_two_sided, student_upper_quantile};

/// Fewest pairs: with fewer, the degrees of freedom that pairs cost are worth more than what they
/// share (`tests/disturbed.rs`).
const PAIRS_MIN: usize = 10;
/// More pairs have a normal distribution of their ranks, near enough.
const EXACT_MAX: usize = 60;

/// Judges pairs; `None` for few of them, for unequal numbers, and where nothing scatters.
///
/// Wild differences are left out as wild groups are; ranks must then agree (Wilcoxon's signed
/// ranks, 1945), and the intervals are those of all differences.
pub(super) fn judge(base: &Scores, new: &Scores, margin: f64, tails: [f64; 2]) -> Option<Judged> {
    if base.count() != new.count() || base.count() < PAIRS_MIN {
        return None;
    }
    let differences: Vec<f64> = new
        .as_slice()
        .iter()
        .zip(base.as_slice())
        .map(|(new, base)| new - base)
        .collect();
    let coarse = base.resolution().coarse(new.resolution()).difference;
    let tame = without_wild(&differences);
    let Mean {
        value,
        error,
        count,
    } = Mean::of(&tame);
    let degrees = count - 1.0;
    let square = error * error * count;
    if square < VARIANCE_MIN || coarse > 0.0 {
        return None;
    }
    let tail = |difference: f64| student_upper(difference / error, degrees);
    let mut found = Precision {
        error,
        degrees,
        variance: square / 2.0,
        basis: Basis::Neighbours,
        single: false,
        coarse,
        p: beyond(value, 0.0, tail),
        p_margin: beyond(value, margin, tail),
        ends: [(0.0, 0.0); 2],
    };
    let is_cut = tame.len() < differences.len();
    if is_cut {
        found.p = found.p.max(signed_ranks(&differences, 0.0, value));
        found.p_margin = found
            .p_margin
            .max(signed_ranks(&differences, margin, value));
    }
    let all = Mean::of(&differences);
    for (ends, tail) in found.ends.iter_mut().zip(tails) {
        let half = student_upper_quantile(tail, degrees)? * error;
        *ends = (value - half, value + half);
        if is_cut {
            let wide = student_upper_quantile(tail, all.count - 1.0)? * all.error;
            *ends = (ends.0.min(all.value - wide), ends.1.max(all.value + wide));
        }
    }
    Some(Judged {
        effect: value,
        precision: Some(found),
    })
}

/// A mean and its standard error.
struct Mean {
    value: f64,
    error: f64,
    count: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
        Self {
            value,
            error: (squares / (count - 1.0) / count).sqrt(),
            count,
        }
    }
}

/// Returns the chance, both ways, that ranks of differences beyond a margin lie so far on the side
/// of an effect, if that is as likely as the other side.
fn signed_ranks(differences: &[f64], margin: f64, effect: f64) -> f64 {
    let mut turned: Vec<f64> = differences
        .iter()
        .map(|one| one * effect.signum() - margin)
        .collect();
    turned.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
    let against: usize = (1..)
        .zip(&turned)
        .filter(|(_, one)| **one <= 0.0)
        .map(|(rank, _)| rank)
        .sum();
    let count = turned.len();
    let most = count * (count + 1) / 2;
    if count > EXACT_MAX {
        let middle = most as f64 / 2.0;
        let deviation = (most as f64 * (2 * count + 1) as f64 / 12.0).sqrt();
        let z = (middle - against as f64) / deviation;
        return if z > 0.0 { normal_two_sided(z) } else { 1.0 };
    }
    // Shares of all signs that give each sum of ranks.
    let mut shares = vec![0.0; most + 1];
    shares[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=most).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = (shares[sum] + with) / 2.0;
        }
    }
    (2.0 * shares[..=against].iter().sum::<f64>()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::signed_ranks;
    use crate::{Basis, Better, Scores, estimate_neighbours};

    fn side(values: &[f64]) -> Scores {
        let groups: Vec<[f64; 1]> = values.iter().map(|value| [*value]).collect();
        Scores::new(&groups, Better::Higher).unwrap()
    }

    #[test]
    fn signed_ranks_are_exact() {
        // All of five on one side: 2 of 32.
        assert!((signed_ranks(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.0, 1.0) - 0.0625).abs() < 1e-12);
        // The least one on the other: sums 0 and 1.
        assert!((signed_ranks(&[-1.0, 2.0, 3.0, 4.0, 5.0], 0.0, 1.0) - 0.125).abs() < 1e-12);
    }

    #[test]
    fn what_pairs_share_cancels() {
        let mut base = Vec::new();
        let mut new = Vec::new();
        for pair in 0..10 {
            let shared = 100.0 + f64::from(pair);
            base.push(shared + 0.1 * f64::from(pair % 2));
            new.push(shared * 1.05 + 0.1 * f64::from(pair % 3));
        }
        let found = estimate_neighbours(&side(&base), &side(&new), 0.02);
        let precision = found.precision.unwrap();
        assert_eq!(precision.basis, Basis::Neighbours);
        assert!(precision.p_margin < 1e-6, "{precision:?}");
        let few = estimate_neighbours(&side(&base[..9]), &side(&new[..9]), 0.02);
        assert_eq!(few.precision.unwrap().basis, Basis::Own);
    }
}
