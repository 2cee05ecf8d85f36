//! A power law through points: least squares in logarithms.

/// Fewest points more than numbers that are fitted: a curve through as many points as it has
/// numbers fits anything.
const SPARE_POINTS: usize = 1;
/// A pivot below this part of its diagonal means that one variable follows from the others, or does
/// not vary.
const INDEPENDENT: f64 = 1e-9;

/// Two variables and what depends on them.
#[derive(Debug, Clone, Copy)]
pub(super) struct FitPoint {
    pub(super) variables: [f64; 2],
    pub(super) result: f64,
}

impl FitPoint {
    /// Returns its logarithms, if all are finite.
    fn ln(self) -> Option<Self> {
        let [a, b] = self.variables;
        Some(Self {
            variables: [ln(a)?, ln(b)?],
            result: ln(self.result)?,
        })
    }
}

fn ln(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then(|| value.ln())
}

/// A power law `y = factor * a^exponents[0] * b^exponents[1]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerLaw {
    /// What a = b = 1 gives.
    pub factor: f64,
    /// The exponents; nothing of a variable that has one value only.
    pub exponents: [Option<f64>; 2],
    /// The part of the variance of ln y that the law explains, at most 1; 1 where y does not vary.
    pub r_squared: f64,
    /// The largest ratio between a point and the law, at least 1: 1.5 means that a point is half
    /// as much again or two thirds of it.
    pub worst_ratio: f64,
    /// How many points there were.
    pub points: usize,
}

/// Returns the power law through points `([a, b], y)` that has the least squares of ln y.
///
/// `None` when a number is not finite or not positive, for fewer points than it takes, when neither
/// variable varies, and when the two vary together, so that they are inseparable.
#[must_use]
pub(super) fn power_law(points: &[FitPoint]) -> Option<PowerLaw> {
    let logs = points
        .iter()
        .map(|point| point.ln())
        .collect::<Option<Vec<FitPoint>>>()?;
    let count = logs.len() as f64;
    let mean = |of: &dyn Fn(&FitPoint) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let means = [
        mean(&|point| point.variables[0]),
        mean(&|point| point.variables[1]),
    ];
    let mean_y = mean(&|point| point.result);
    let sum = |of: &dyn Fn([f64; 2], f64) -> f64| -> f64 {
        logs.iter()
            .map(|point| {
                let [a, b] = point.variables;
                of([a - means[0], b - means[1]], point.result - mean_y)
            })
            .sum()
    };
    let squares = [sum(&|x, _| x[0] * x[0]), sum(&|x, _| x[1] * x[1])];
    let varies = squares.map(|square| square > count * INDEPENDENT);
    let numbers = 1 + varies.iter().filter(|varies| **varies).count();
    if numbers == 1 || logs.len() < numbers + SPARE_POINTS {
        return None;
    }
    let with_y = [sum(&|x, y| x[0] * y), sum(&|x, y| x[1] * y)];
    let exponents = match varies {
        [true, true] => {
            let both = sum(&|x, _| x[0] * x[1]);
            let determinant = squares[0] * squares[1] - both * both;
            if determinant <= squares[0] * squares[1] * INDEPENDENT {
                return None;
            }
            let first = (with_y[0] * squares[1] - with_y[1] * both) / determinant;
            let second = (with_y[1] * squares[0] - with_y[0] * both) / determinant;
            [Some(first), Some(second)]
        }
        [first, second] => [
            first.then(|| with_y[0] / squares[0]),
            second.then(|| with_y[1] / squares[1]),
        ],
    };
    let slopes = exponents.map(|exponent| exponent.unwrap_or(0.0));
    let residuals = || {
        logs.iter().map(|point| {
            let [a, b] = point.variables;
            (point.result - mean_y) - slopes[0] * (a - means[0]) - slopes[1] * (b - means[1])
        })
    };
    let left: f64 = residuals().map(|residual| residual * residual).sum();
    let total = sum(&|_, y| y * y);
    let r_squared = if total > count * INDEPENDENT * INDEPENDENT {
        1.0 - left / total
    } else {
        1.0
    };
    let factor = (mean_y - slopes[0] * means[0] - slopes[1] * means[1]).exp();
    let worst_ratio = residuals().map(f64::abs).fold(0.0, f64::max).exp();
    let law = PowerLaw {
        factor,
        exponents,
        r_squared,
        worst_ratio,
        points: logs.len(),
    };
    [law.factor, law.r_squared, law.worst_ratio]
        .iter()
        .all(|number| number.is_finite())
        .then_some(law)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::{FitPoint, PowerLaw, power_law};

    fn fit(points: &[([f64; 2], f64)]) -> Option<PowerLaw> {
        let points = points
            .iter()
            .map(|&(variables, result)| FitPoint { variables, result });
        power_law(&points.collect::<Vec<_>>())
    }

    fn grid(of: impl Fn(f64, f64) -> f64) -> Vec<([f64; 2], f64)> {
        let steps = [1.0, 10.0, 100.0, 1000.0];
        steps
            .iter()
            .flat_map(|a| {
                steps
                    .iter()
                    .map(|b| ([*a, *b], of(*a, *b)))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-6)
    }

    #[test]
    fn a_law_comes_back_from_its_points() {
        let law = fit(&grid(|a, b| 3.5 * a.powf(0.97) * b.powf(-0.25))).unwrap();
        assert!(
            near(Some(law.factor), 3.5)
                && near(law.exponents[0], 0.97)
                && near(law.exponents[1], -0.25)
        );
        assert!(law.r_squared > 1.0 - 1e-9 && law.worst_ratio < 1.0 + 1e-6 && law.points == 16);
    }

    /// Kepler's third law: years and distances of six planets, exponent 3/2.
    #[test]
    fn the_years_of_planets_follow_their_distances() {
        let planets = [
            (0.387, 0.2408),
            (0.723, 0.6152),
            (1.0, 1.0),
            (1.524, 1.8808),
            (5.203, 11.862),
            (9.537, 29.457),
        ];
        let points: Vec<_> = planets
            .iter()
            .map(|(distance, years)| ([*distance, 1.0], *years))
            .collect();
        let law = fit(&points).unwrap();
        assert!((law.exponents[0].unwrap() - 1.5).abs() < 0.001, "{law:?}");
        assert_eq!(law.exponents[1], None, "it has one value only");
        assert!(
            law.r_squared > 0.999_99 && law.worst_ratio < 1.005,
            "{law:?}"
        );
    }

    /// Worked by hand: ln y at ln a = 0, 1, 2 is 0, 1, 3; the slope is 3/2, the intercept -1/6, R²
    /// is 27/28.
    #[test]
    fn a_fit_worked_by_hand() {
        let e = std::f64::consts::E;
        let law = fit(&[([1.0, 7.0], 1.0), ([e, 7.0], e), ([e * e, 7.0], e.powi(3))]).unwrap();
        assert!(near(law.exponents[0], 1.5) && near(Some(law.factor.ln()), -1.0 / 6.0));
        assert!(
            near(Some(law.r_squared), 27.0 / 28.0) && near(Some(law.worst_ratio.ln()), 1.0 / 3.0)
        );
    }

    #[test]
    fn fixed_part_makes_poor_fit_visible() {
        let law = fit(&grid(|_, b| 1000.0 / b + 10.0)).unwrap();
        assert!(law.worst_ratio > 1.3 && law.r_squared < 0.95, "{law:?}");
        let flat = fit(&grid(|_, _| 7.0)).unwrap();
        assert!(
            near(flat.exponents[0], 0.0) && near(Some(flat.r_squared), 1.0),
            "{flat:?}"
        );
    }

    #[test]
    fn what_cannot_be_fitted_is_not() {
        assert_eq!(fit(&[]), None);
        assert_eq!(
            fit(&[([1.0, 1.0], 1.0), ([2.0, 1.0], 2.0)]),
            None,
            "two points fit anything"
        );
        assert_eq!(fit(&[([1.0, 1.0], 1.0); 5]), None, "nothing varies");
        let together: Vec<_> = [1.0, 2.0, 4.0, 8.0].map(|x| ([x, x], x)).to_vec();
        assert_eq!(fit(&together), None, "who knows which of the two it was");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut points = grid(|a, b| a * b);
            points[3].1 = bad;
            assert_eq!(fit(&points), None);
        }
    }

    proptest! {
        #[test]
        fn a_fit_is_finite_or_there_is_none(
            points in prop::collection::vec(any::<([f64; 2], f64)>(), 0..20),
        ) {
            if let Some(law) = fit(&points) {
                prop_assert!(
                    law.factor.is_finite() && law.r_squared <= 1.0 && law.worst_ratio >= 1.0
                );
            }
        }

        #[test]
        fn any_law_comes_back(factor in 1e-3..1e6, first in -3.0..3.0, second in -3.0..3.0) {
            let law = fit(&grid(|a, b| {
                factor * f64::powf(a, first) * f64::powf(b, second)
            }))
            .unwrap();
            prop_assert!(near(law.exponents[0], first) && near(law.exponents[1], second));
        }
    }
}
