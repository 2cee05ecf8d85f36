//! What is known of one place: how many values, their mean and their scatter.

/// Values of a place, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    /// Sum of the squared distances from the mean.
    pub(crate) squares: f64,
}

impl Tally {
    /// Adds a finite value (Welford 1962).
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
    }

    /// Returns the weight of its mean, in runs: a place that is off by itself, by `bias` variances
    /// of a run, weighs at most 1 / bias however many runs it has.
    pub(crate) fn weight(&self, bias: f64) -> f64 {
        weight(self.count, bias)
    }
}

/// Returns the weight of the mean of so many runs of one place.
pub(crate) fn weight(count: usize, bias: f64) -> f64 {
    let count = count as f64;
    count / (1.0 + bias * count)
}

/// Returns the pooled variance of a run, and its degrees of freedom; nothing where no place has two
/// runs.
pub(crate) fn pooled<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Option<(f64, f64)> {
    // All places share one deviation: with a run or two each, none of them has one of its own.
    let (squares, degrees) = tallies.fold((0.0, 0.0), |(squares, degrees), tally| {
        (
            squares + tally.squares,
            degrees + tally.count.saturating_sub(1) as f64,
        )
    });
    (degrees > 0.0).then(|| (squares / degrees, degrees))
}

#[cfg(test)]
mod tests {
    use super::{Tally, pooled};

    #[test]
    fn a_tally_is_mean_and_scatter() {
        let mut tally = Tally::default();
        [2.0, 4.0, 9.0]
            .into_iter()
            .for_each(|value| tally.add(value));
        assert!((tally.mean - 5.0).abs() < 1e-12 && (tally.squares - 26.0).abs() < 1e-12);
        assert!(
            (tally.weight(0.0) - 3.0).abs() < 1e-12 && (tally.weight(1.0) - 0.75).abs() < 1e-12
        );
        assert_eq!(pooled([tally].iter()), Some((13.0, 2.0)));
        assert_eq!(pooled([Tally { count: 1, ..tally }].iter()), None);
    }
}
