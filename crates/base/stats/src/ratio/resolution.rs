//! What the steps of a clock leave open: values that stand still may have moved by half a step.

/// Deviation in steps from which noise moves values over them.
const DITHERED: f64 = 0.505;
/// Least distance of two values that differ, relative to them: less is rounding.
const EQUAL: f64 = 1e-9;
/// A number with more digits was computed: its digits say nothing of a clock.
const DIGITS_MAX: usize = 9;

/// What values of one side tell of the clock that counted them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Resolution {
    /// None where no value is there twice: the clock is finer than the noise.
    steps: Option<Steps>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Steps {
    /// Least distance of two values that differ; infinite for equal ones.
    gap: f64,
    /// How many values are there again; 0 only for one value.
    ties: usize,
    /// The last decimal place that one is written with; none for numbers with the digits of a
    /// computation.
    place: Option<f64>,
    mean: f64,
    deviation: f64,
}

/// What the steps of a clock leave open of two sides, in logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Coarse {
    /// Half of a step: what scatters by less cannot be seen.
    pub(super) half: f64,
    /// By how much the difference of both centres may lie off: half of a step for each side whose
    /// values stand still. Noise that moves values over the steps makes the mean of many right
    /// (dither).
    pub(super) difference: f64,
}

impl Resolution {
    /// That of a clock finer than all noise.
    pub(super) const FINE: Self = Self { steps: None };
    /// As many numbers hold one.
    pub(super) const NUMBERS: usize = 5;

    /// Returns it as numbers, the first not a number where there are no steps.
    pub(super) fn to_numbers(self) -> [f64; Self::NUMBERS] {
        self.steps.map_or([f64::NAN; Self::NUMBERS], |steps| {
            let place = steps.place.unwrap_or(f64::NAN);
            let ties = steps.ties as f64;
            [steps.gap, ties, place, steps.mean, steps.deviation]
        })
    }

    /// Makes it of such numbers.
    pub(super) fn from_numbers(numbers: [f64; Self::NUMBERS]) -> Self {
        let [gap, ties, place, mean, deviation] = numbers;
        let steps = Steps {
            gap,
            ties: ties as usize,
            place: Some(place).filter(|place| !place.is_nan()),
            mean,
            deviation,
        };
        Self {
            steps: Some(steps).filter(|steps| !steps.gap.is_nan()),
        }
    }

    /// Reads it from values, which are above zero and finite.
    pub(super) fn read(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut gap = f64::INFINITY;
        let mut ties = 0_usize;
        for pair in sorted.windows(2) {
            let between = pair[1] - pair[0];
            if between > EQUAL * pair[1] {
                gap = gap.min(between);
            } else {
                ties += 1;
            }
        }
        if gap.is_finite() && ties == 0 {
            return Self::FINE;
        }
        let count = sorted.len() as f64;
        let mean = sorted.iter().map(|value| value / count).sum::<f64>();
        let variance = sorted
            .iter()
            .map(|value| (value - mean).powi(2) / count)
            .sum::<f64>();
        Self {
            steps: Some(Steps {
                gap,
                ties,
                place: last_place(&sorted),
                mean,
                deviation: variance.sqrt(),
            }),
        }
    }

    /// Returns what one clock leaves open of two sides. Its step is the least distance of two
    /// values that differ, or the last decimal place that one is written with, whichever is
    /// less.
    pub(super) fn coarse(self, other: Self) -> Coarse {
        let (Some(one), Some(two)) = (self.steps, other.steps) else {
            return Coarse::default();
        };
        let apart = (one.mean - two.mean).abs();
        let are_equal = apart <= EQUAL * one.mean;
        let gap = match one.gap.min(two.gap) {
            gap if gap.is_finite() || are_equal => gap,
            _ => apart,
        };
        let step = match (one.place, two.place) {
            (Some(one), Some(two)) => gap.min(one).min(two),
            _ => gap,
        };
        if !step.is_finite() || (one.ties + two.ties == 0 && !are_equal) {
            return Coarse::default();
        }
        Coarse {
            half: one.half(step).max(two.half(step)),
            difference: one.off(step) + two.off(step),
        }
    }
}

impl Steps {
    /// Returns half a step of the clock relative to the mean, as a logarithm.
    fn half(self, step: f64) -> f64 {
        (step / 2.0 / self.mean).ln_1p()
    }

    /// Returns by how much the mean may be off.
    fn off(self, step: f64) -> f64 {
        // The mean of rounded normal values is off by less than 1 % of a step from half a step on
        // (Sheppard 1898). Two steps alone never scatter by more than that: they prove
        // nothing.
        if self.deviation > DITHERED * step {
            0.0
        } else {
            self.half(step)
        }
    }
}

/// Returns the last decimal place that one of some values is written with.
fn last_place(values: &[f64]) -> Option<f64> {
    let places = values
        .iter()
        .map(|value| decimals(*value))
        .try_fold(0, |most, places| Some(most.max(places?)))?;
    Some(10.0_f64.powi(-places))
}

/// Returns how many decimal places a number needs; none for one with the digits of a computation.
fn decimals(value: f64) -> Option<i32> {
    let text = value.to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let places = text.split_once('.').map_or(0, |(_, places)| places.len());
    (digits <= DIGITS_MAX).then(|| i32::try_from(places).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::Resolution;

    /// Returns by how much two sides may lie off, in percent.
    fn off(base: &[f64], new: &[f64]) -> f64 {
        100.0
            * Resolution::read(base)
                .coarse(Resolution::read(new))
                .difference
                .exp_m1()
    }

    fn near(base: &[f64], new: &[f64], percent: f64) {
        let found = off(base, new);
        assert!(
            (found - percent).abs() < 0.03 * percent,
            "{base:?} {new:?} {found}"
        );
    }

    #[test]
    fn still_values_are_off_by_half_steps() {
        near(&[0.10, 0.10, 0.10, 0.10, 0.11], &[0.10; 5], 10.15);
        near(&[100.0; 5], &[110.0; 5], 0.96);
        near(&[1500.0; 3], &[1500.0; 3], 0.067);
        near(&[1500.0; 3], &[1503.0, 1500.0, 1500.0], 0.0333);
        near(&[20.0 / 3.0; 4], &[22.0 / 3.0; 4], 10.0);
    }

    #[test]
    fn values_that_move_over_steps_are_not_off() {
        for values in [
            &[103.5, 104.25, 102.125][..],
            &[99.0, 100.0, 101.0, 100.0, 98.0, 100.0],
        ] {
            assert!(off(values, values).abs() < 1e-9);
        }
        // Written with many places: the step is too small to see.
        assert!(off(&[103.000_123; 4], &[103.000_456; 4]) < 0.001);
        assert!(off(&[100.0], &[110.0]).abs() < 1e-9);
    }
}
