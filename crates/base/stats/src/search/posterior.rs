//! How probable a step is at each place, given what was measured: normal noise, levels and
//! deviation unknown.

use super::tally::Tally;

/// What is believed of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Posterior {
    /// Chance of a step at each place; none at the first.
    pub(crate) step: Vec<f64>,
    /// Level before the step.
    pub(crate) before: f64,
    /// Level from the step on.
    pub(crate) after: f64,
    /// Variance of a run.
    pub(crate) variance: f64,
    /// Standard error of the difference of the levels.
    pub(crate) error: f64,
    /// The two measured places between which the step is likeliest.
    pub(crate) gap: (usize, usize),
    /// Sum of the weighted squares of the other measured places about their levels, if it is
    /// there.
    pub(crate) scatter: f64,
}

/// Sums over places to one side of a step.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    weight: f64,
    values: f64,
    squares: f64,
}

impl Side {
    fn with(self, tally: &Tally, bias: f64, origin: f64) -> Self {
        let weight = tally.weight(bias);
        let value = tally.mean - origin;
        let Self {
            weight: sum,
            values,
            squares,
        } = self;
        Self {
            weight: sum + weight,
            values: values + weight * value,
            squares: squares + weight * value * value,
        }
    }

    fn without(self, other: Self) -> Self {
        Self {
            weight: self.weight - other.weight,
            values: self.values - other.values,
            squares: self.squares - other.squares,
        }
    }

    fn level(self) -> f64 {
        self.values / self.weight
    }

    fn scatter(self) -> f64 {
        (self.squares - self.values * self.values / self.weight).max(0.0)
    }
}

/// What fits between two neighbouring measured places.
struct Gap {
    /// The measured place before and the one after.
    places: (usize, usize),
    likelihood_ln: f64,
    before: f64,
    after: f64,
    variance: f64,
    error_square: f64,
    scatter: f64,
}

impl Posterior {
    /// Weighs each step by its prior share and by how well it explains the measured places, of
    /// which the first and the last are two. Nothing where fewer than two places or three
    /// values are known.
    ///
    /// With flat priors of both levels and of the logarithm of the deviation, what is left of the
    /// likelihood is (weight before × weight after)^(-1/2) × (sum of squares)^(-(values - 2) /
    /// 2).
    pub(crate) fn new(prior: &[f64], measured: &[(usize, Tally)], bias: f64) -> Option<Self> {
        let gaps = gaps(measured, bias)?;
        let best = gaps
            .iter()
            .map(|gap| gap.likelihood_ln)
            .fold(f64::NEG_INFINITY, f64::max);
        let mut step = vec![0.0; prior.len()];
        let mut mass = Vec::with_capacity(gaps.len());
        for gap in &gaps {
            // Relative to the best: the likelihoods themselves would underflow.
            let likelihood = (gap.likelihood_ln - best).exp();
            let places = gap.places.0 + 1..=gap.places.1.min(prior.len().saturating_sub(1));
            let of_gap = places.map(|place| {
                step[place] = prior[place] * likelihood;
                step[place]
            });
            mass.push(of_gap.sum::<f64>());
        }
        let all: f64 = mass.iter().sum();
        if all <= 0.0 || !all.is_finite() {
            return None;
        }
        step.iter_mut().for_each(|chance| *chance /= all);
        let likeliest = gaps.iter().zip(&mass).max_by(|a, b| a.1.total_cmp(b.1))?.0;
        // While the place is open, so are the levels: each gap adds its own, by its chance.
        let mean = |part: fn(&Gap) -> f64| {
            gaps.iter()
                .zip(&mass)
                .map(|(gap, mass)| part(gap) * mass / all)
                .sum::<f64>()
        };
        Some(Self {
            before: mean(|gap| gap.before),
            after: mean(|gap| gap.after),
            variance: mean(|gap| gap.variance),
            error: mean(|gap| gap.error_square).sqrt(),
            gap: likeliest.places,
            scatter: likeliest.scatter,
            step,
        })
    }
}

fn gaps(measured: &[(usize, Tally)], bias: f64) -> Option<Vec<Gap>> {
    let values: usize = measured.iter().map(|(_, tally)| tally.count).sum();
    if measured.len() < 2 || values < 3 {
        return None;
    }
    // Differences from one of the values keep their digits where the values themselves would lose
    // them.
    let origin = measured[0].1.mean;
    let all = measured.iter().fold(Side::default(), |side, (_, tally)| {
        side.with(tally, bias, origin)
    });
    let within: f64 = measured.iter().map(|(_, tally)| tally.squares).sum();
    let reach = measured
        .iter()
        .map(|(_, tally)| (tally.mean - origin).abs())
        .fold(0.0, f64::max);
    // Values without any scatter leave no more than the digits of a number.
    let least = (reach * 1e-12).powi(2).max(f64::MIN_POSITIVE);
    let degrees = (values - 2) as f64;
    let mut left = Side::default();
    let mut gaps = Vec::new();
    for pair in measured.windows(2) {
        let [(before, tally), (after, _)] = pair else {
            continue;
        };
        left = left.with(tally, bias, origin);
        let right = all.without(left);
        let squares = (within + left.scatter() + right.scatter()).max(least);
        let variance = squares / degrees;
        gaps.push(Gap {
            places: (*before, *after),
            likelihood_ln: -0.5 * (left.weight.ln() + right.weight.ln() + degrees * squares.ln()),
            before: origin + left.level(),
            after: origin + right.level(),
            variance,
            error_square: variance * (1.0 / left.weight + 1.0 / right.weight),
            scatter: left.scatter() + right.scatter(),
        });
    }
    Some(gaps)
}

#[cfg(test)]
mod tests {
    use super::Posterior;
    use crate::search::tally::Tally;

    fn tally(values: &[f64]) -> Tally {
        let mut tally = Tally::default();
        values.iter().for_each(|value| tally.add(*value));
        tally
    }

    #[test]
    fn the_step_is_between_the_places_that_differ() {
        let measured = [
            (0, tally(&[1.0, 1.2, 0.9])),
            (4, tally(&[1.1])),
            (6, tally(&[5.0])),
            (10, tally(&[5.1, 4.9])),
        ];
        let prior = [0.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1];
        let found = Posterior::new(&prior, &measured, 0.0).unwrap();
        assert!(found.step[5] + found.step[6] > 0.95, "{found:?}");
        assert!((found.step[5] - found.step[6]).abs() < 1e-12);
        assert!((found.step.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(
            (found.after - found.before - 4.0).abs() < 0.2 && found.error < 0.5,
            "{found:?}"
        );
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(
            Posterior::new(&[0.0, 1.0], &[(0, tally(&[1.0, 1.0, 1.0]))], 0.0),
            None
        );
        assert_eq!(
            Posterior::new(&[0.0, 1.0], &[(0, tally(&[1.0])), (1, tally(&[2.0]))], 0.0),
            None
        );
        assert_eq!(
            Posterior::new(
                &[0.0, 0.0],
                &[(0, tally(&[1.0])), (1, tally(&[2.0, 2.0]))],
                0.0
            ),
            None
        );
    }

    #[test]
    fn values_without_scatter_are_certain() {
        let measured = [
            (0, tally(&[7.0; 3])),
            (1, tally(&[7.0])),
            (2, tally(&[9.0])),
            (3, tally(&[9.0; 3])),
        ];
        let found = Posterior::new(&[0.0, 1.0, 1.0, 1.0], &measured, 0.0).unwrap();
        assert!(found.step[2] > 0.999_999, "{found:?}");
    }
}
