//! Where the time of a series went, in a line.

use std::time::{Duration, Instant};

use crate::session::span;

/// The time of the parts of a series.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    building: Duration,
    /// Finding out what the builds compiled, and of which lines.
    looking: Duration,
    measuring: Duration,
}

impl Spent {
    /// Adds the time since an instant to building kernels, and returns the present one.
    pub(super) fn built(&mut self, since: Instant) -> Instant {
        self.building += since.elapsed();
        Instant::now()
    }

    /// Adds the time since an instant to finding out what is compiled.
    pub(super) fn looked(&mut self, since: Instant) {
        self.looking += since.elapsed();
    }

    /// Adds the time since an instant to measuring.
    pub(super) fn measured(&mut self, since: Instant) {
        self.measuring += since.elapsed();
    }

    /// Says it.
    pub(super) fn sentence(self) -> String {
        let all = self.building + self.looking + self.measuring;
        let [all, building, looking, measuring] =
            [all, self.building, self.looking, self.measuring].map(|time| span(time.as_secs_f64()));
        format!(
            "took {all}: building {building}, finding what is compiled {looking}, measuring {measuring}"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Spent;

    #[test]
    fn parts_of_a_series_are_named() {
        let spent = Spent {
            building: Duration::from_secs(80),
            looking: Duration::from_secs(9),
            measuring: Duration::from_secs(31),
        };
        assert_eq!(
            spent.sentence(),
            "took 2 min: building 80 s, finding what is compiled 9 s, measuring 31 s"
        );
    }
}
