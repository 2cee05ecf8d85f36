//! The statistics of MMTests' tables, as its Stat.pm and Summarise.pm define them: values are taken best first, and means
//! of the best part and percentiles count from there.

use crate::average::{finite, geometric_mean, median};

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Better {
    /// The lower the better.
    Lower,
    /// The higher the better.
    Higher,
}

/// Values best first, of which the rest is asked. All answers but counts and percentages are in the values' unit.
///
/// Each question answers `None` where its formula has no finite answer, and what it says beside.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    best_first: Vec<f64>,
    better: Better,
}

impl Summary {
    /// Sorts values.
    ///
    /// `None` for no values and for values that are not finite.
    #[must_use]
    pub fn of(values: &[f64], better: Better) -> Option<Self> {
        let mut best_first = finite(values)?.to_vec();
        best_first.sort_unstable_by(f64::total_cmp);
        if better == Better::Higher {
            best_first.reverse();
        }
        Some(Self { best_first, better })
    }

    /// Returns how many values there are ("Samples"); at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.best_first.len()
    }

    /// Returns the smallest value ("Min").
    #[must_use]
    pub fn min(&self) -> f64 {
        self.ends().0
    }

    /// Returns the largest value ("Max").
    #[must_use]
    pub fn max(&self) -> f64 {
        self.ends().1
    }

    /// Returns the largest less the smallest value ("Range").
    #[must_use]
    pub fn range(&self) -> Option<f64> {
        some(self.max() - self.min())
    }

    fn ends(&self) -> (f64, f64) {
        // There is at least one value.
        let (first, last) = (self.best_first[0], self.best_first[self.best_first.len() - 1]);
        (first.min(last), first.max(last))
    }

    /// Returns the arithmetic mean, `sum(x) / n` ("Amean").
    #[must_use]
    pub fn amean(&self) -> Option<f64> {
        amean(&self.best_first)
    }

    /// Returns the harmonic mean, `n / sum(1/x)` ("Hmean"); `None` if a value is not above zero.
    #[must_use]
    pub fn hmean(&self) -> Option<f64> {
        hmean(&self.best_first)
    }

    /// Returns the geometric mean ("Gmean"); `None` if a value is not above zero. Reckoned by logarithms, where MMTests
    /// multiplies and can overflow.
    #[must_use]
    pub fn gmean(&self) -> Option<f64> {
        geometric_mean(&self.best_first).and_then(some)
    }

    /// Returns the mean that MMTests prints: the harmonic one where higher is better, else the arithmetic one.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        match self.better {
            Better::Lower => self.amean(),
            Better::Higher => self.hmean(),
        }
    }

    /// Returns the median: the true one, where MMTests' own takes a wrong pair of values.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        median(&self.best_first)
    }

    /// Returns the standard deviation, `sqrt(sum((x - Amean)²) / (n - 1))` ("Stddev"); `None` for one value.
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        let mean = self.amean()?;
        let degrees = (self.count() - 1) as f64;
        (degrees > 0.0).then(|| (self.sum(|x| (x - mean).powi(2)) / degrees).sqrt()).and_then(some)
    }

    /// Returns the deviation that belongs to the harmonic mean, `sqrt(sum((1/x - 1/Hmean)²) Hmean⁴ / n)` ("HStddev");
    /// `None` for one value or if a value is not above zero.
    #[must_use]
    pub fn hstddev(&self) -> Option<f64> {
        let mean = self.hmean()?;
        let squares = self.sum(|x| (1.0 / x - 1.0 / mean).powi(2));
        (self.count() > 1).then(|| (squares / self.count() as f64).sqrt() * mean * mean).and_then(some)
    }

    /// Returns the standard deviation in percent of the arithmetic mean ("CoeffVar"); `None` for one value or a mean of 0.
    #[must_use]
    pub fn coeffvar(&self) -> Option<f64> {
        some(self.stddev()? * 100.0 / self.amean()?)
    }

    /// Returns the harmonic deviation in percent of the harmonic mean ("HCoeffVar").
    #[must_use]
    pub fn hcoeffvar(&self) -> Option<f64> {
        some(self.hstddev()? * 100.0 / self.hmean()?)
    }

    /// Returns the arithmetic mean of the best values: of `int(n percent / 100)`, at least one ("BAmean-50", "-95", "-99").
    ///
    /// `None` if the percentage is above 100.
    #[must_use]
    pub fn best_amean(&self, percent: u8) -> Option<f64> {
        amean(self.best(percent)?)
    }

    /// Returns the harmonic mean of the best values ("BHmean-50", "-95", "-99"); `None` as for both.
    #[must_use]
    pub fn best_hmean(&self, percent: u8) -> Option<f64> {
        hmean(self.best(percent)?)
    }

    /// Returns the worst of the best `int(n percent / 100)` values, at least one ("Max-50", "1st-qrtle" at 25, "Pctile.95"):
    /// no interpolation, and 95 % are at least so good.
    ///
    /// `None` if the percentage is above 100.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Option<f64> {
        self.best(percent)?.last().copied()
    }

    fn best(&self, percent: u8) -> Option<&[f64]> {
        let count = self.count() * usize::from(percent) / 100;
        (percent <= 100).then(|| &self.best_first[..count.max(1)])
    }

    fn sum(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.best_first.iter().map(|x| of(*x)).sum()
    }
}

fn amean(values: &[f64]) -> Option<f64> {
    some(values.iter().sum::<f64>() / values.len() as f64)
}

fn hmean(values: &[f64]) -> Option<f64> {
    let positive = values.iter().all(|x| *x > 0.0);
    positive
        .then(|| values.len() as f64 / values.iter().map(|x| 1.0 / x).sum::<f64>())
        .filter(|mean| *mean > 0.0)
        .and_then(some)
}

/// Lets no number out that is not finite.
fn some(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::{Better, Summary};

    #[test]
    fn best_part_depends_on_direction() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let lower = Summary::of(&values, Better::Lower).unwrap();
        assert_eq!((lower.percentile(95), lower.best_amean(50)), (Some(19.0), Some(5.5)));
        assert_eq!((lower.percentile(25), lower.percentile(1)), (Some(5.0), Some(1.0)));
        let higher = Summary::of(&values, Better::Higher).unwrap();
        assert_eq!((higher.percentile(95), higher.best_amean(50)), (Some(2.0), Some(15.5)));
        assert_eq!((higher.min(), higher.max(), higher.range()), (1.0, 20.0, Some(19.0)));
        assert_eq!(lower.percentile(101), None);
        assert_eq!((lower.mean(), higher.mean()), (lower.amean(), higher.hmean()));
    }

    #[test]
    fn what_has_no_answer_gets_none() {
        assert_eq!(Summary::of(&[], Better::Lower), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN], Better::Lower), None);
        let one = Summary::of(&[4.0], Better::Lower).unwrap();
        assert_eq!((one.amean(), one.stddev(), one.hstddev(), one.coeffvar()), (Some(4.0), None, None, None));
        let zero = Summary::of(&[-1.0, 1.0], Better::Lower).unwrap();
        assert_eq!((zero.hmean(), zero.gmean(), zero.coeffvar(), zero.hcoeffvar()), (None, None, None, None));
        let large = Summary::of(&[f64::MAX, f64::MAX], Better::Higher).unwrap();
        assert_eq!(large.amean(), None);
        let small = Summary::of(&[f64::MIN_POSITIVE * f64::EPSILON], Better::Higher).unwrap();
        assert_eq!(small.hmean(), None);
    }

    proptest! {
        #[test]
        fn means_keep_their_order(values in prop::collection::vec(1e-3..1e6, 1..50)) {
            let summary = Summary::of(&values, Better::Lower).unwrap();
            let (a, g, h) = (summary.amean().unwrap(), summary.gmean().unwrap(), summary.hmean().unwrap());
            prop_assert!(h <= g * (1.0 + 1e-9) && g <= a * (1.0 + 1e-9));
            prop_assert!(summary.best_amean(50).unwrap() <= a * (1.0 + 1e-9));
        }
    }
}
