//! Seeded noise of known kinds, by which error rates are measured. For tests and benches only:
//! nothing that judges draws a number.

mod bisection;
mod calibration;
mod detection;
mod disturbed;
mod layouts;
mod past;
mod sequence;
mod welch;

pub use bisection::{By, Line, PLACES, Severals, Singles, Start};
pub use calibration::{Calibration, Design, Kind};
pub use detection::{Quality, Short, Trials};
pub use disturbed::{Disturbed, Peer};
pub use layouts::{Layouts, PairRule, PairShares};
pub use past::{Past, PastShares};
pub use sequence::{Between, Course, Ends, Rule};
pub use welch::welch;

/// A stream of pseudo-random numbers; the same seed gives the same numbers.
///
/// SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators").
#[derive(Debug, Clone)]
pub struct Chance {
    state: u64,
    /// The second number of a pair of normal ones.
    spare: Option<f64>,
}

impl Chance {
    /// Returns the stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            spare: None,
        }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number of at least 0 and less than 1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a whole number less than `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.uniform() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// Returns a number of the standard normal distribution (Marsaglia and Bray 1964, the polar
    /// method).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * self.uniform() - 1.0;
            let y = 2.0 * self.uniform() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }
}

/// Kinds of noise, as far as they concern values that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Independent and normal, deviation 1.
    Normal,
    /// The same; 5 % of the values lie 5 to 15 higher.
    Outliers,
    /// Independent, two modes: deviation 0.5, and 30 % of the values 3 higher.
    Bimodal,
    /// Each value remembers half of the one before, deviation 1 in all.
    Autocorrelated,
}

impl Noise {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Normal,
        Self::Outliers,
        Self::Bimodal,
        Self::Autocorrelated,
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Outliers => "5 % outliers",
            Self::Bimodal => "bimodal",
            Self::Autocorrelated => "AR(1) 0.5",
        }
    }

    /// Returns values that follow each other.
    #[must_use]
    pub fn values(self, count: usize, chance: &mut Chance) -> Vec<f64> {
        let mut last = chance.normal();
        let mut next = |_| match self {
            Self::Normal => chance.normal(),
            Self::Outliers if chance.uniform() < 0.05 => {
                chance.normal() + 5.0 + 10.0 * chance.uniform()
            }
            Self::Outliers => chance.normal(),
            Self::Bimodal if chance.uniform() < 0.3 => 0.5 * chance.normal() + 3.0,
            Self::Bimodal => 0.5 * chance.normal(),
            Self::Autocorrelated => {
                // The share of new noise keeps the deviation at 1: 0.5 squared and 0.75 make 1.
                last = 0.5 * last + 0.75_f64.sqrt() * chance.normal();
                last
            }
        };
        (0..count).map(&mut next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Noise};

    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (
            mean,
            (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt(),
        )
    }

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let [one, again, other] =
            [1, 1, 2].map(|seed| Noise::Bimodal.values(5, &mut Chance::new(seed)));
        assert_eq!(one, again);
        assert_ne!(one, other);
    }

    #[test]
    fn the_kinds_have_the_moments_that_they_claim() {
        let expected = [
            (Noise::Normal, 0.0, 1.0),
            (
                Noise::Outliers,
                0.5,
                (1.0_f64 + 0.05 * (100.0 + 100.0 / 12.0) - 0.25).sqrt(),
            ),
            (Noise::Bimodal, 0.9, (0.25_f64 + 0.21 * 9.0).sqrt()),
            (Noise::Autocorrelated, 0.0, 1.0),
        ];
        for (noise, mean, deviation) in expected {
            let (seen, wide) = moments(&noise.values(200_000, &mut Chance::new(7)));
            assert!((seen - mean).abs() < 0.02, "{noise:?} {seen}");
            assert!((wide - deviation).abs() < 0.02, "{noise:?} {wide}");
        }
    }

    #[test]
    fn whole_numbers_stay_below_their_end() {
        let mut chance = Chance::new(3);
        assert!((0..1000).all(|_| chance.below(3) < 3));
        assert_eq!(chance.below(0), 0);
    }
}
