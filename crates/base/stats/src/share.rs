//! How often something happens: the interval of a share that was counted.

use crate::average::Spread;
use crate::distribution::normal_upper_quantile;

/// Returns the interval that holds the true share with a chance of about `level`, where `hits` of
/// `count` were counted (Wilson 1927): it never leaves 0 to 1, and says something where nothing was
/// hit.
///
/// `None` for a count of 0, more hits than were counted, and a level that does not lie between 0
/// and 1.
#[must_use]
pub fn share_interval(hits: usize, count: usize, level: f64) -> Option<Spread> {
    if count == 0 || hits > count {
        return None;
    }
    let tail = Some((1.0 - level) / 2.0).filter(|tail| *tail > 0.0 && *tail < 0.5)?;
    let n = count as f64;
    let z = normal_upper_quantile(tail)?;
    let share = hits as f64 / n;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    // At the ends rounding would leave a little of what is exactly 0 or 1.
    let min = if hits == 0 {
        0.0
    } else {
        (middle - half).max(0.0)
    };
    let max = if hits == count {
        1.0
    } else {
        (middle + half).min(1.0)
    };
    Some(Spread { min, max })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::share_interval;

    #[test]
    fn known_intervals_are_given() {
        // The formula worked out with Python's statistics.NormalDist.
        for (hits, count, low, high) in [
            (0, 10, 0.0, 0.277_532_799_862_889),
            (1, 20, 0.008_881_448_800_795, 0.236_131_193_446_742),
            (5, 10, 0.236_593_090_512_565, 0.763_406_909_487_436),
        ] {
            let found = share_interval(hits, count, 0.95).unwrap();
            assert!(
                (found.min - low).abs() < 1e-9 && (found.max - high).abs() < 1e-9,
                "{hits}/{count}: {found:?}"
            );
        }
    }

    #[test]
    fn what_is_no_share_has_none() {
        assert_eq!(share_interval(0, 0, 0.95), None);
        assert_eq!(share_interval(3, 2, 0.95), None);
        assert_eq!(share_interval(1, 2, 1.0), None);
        assert_eq!(share_interval(1, 2, f64::NAN), None);
    }

    proptest! {
        #[test]
        fn more_hits_raise_both_ends_of_share(count in 1_usize..5000, hits in 0_usize..5000) {
            let hits = hits.min(count - 1);
            let share = |hits: usize| hits as f64 / count as f64;
            let one = share_interval(hits, count, 0.95).unwrap();
            let more = share_interval(hits + 1, count, 0.95).unwrap();
            prop_assert!(
                one.min <= share(hits)
                    && share(hits) <= one.max
                    && one.min >= 0.0
                    && one.max <= 1.0
            );
            prop_assert!(one.min < more.min && one.max <= more.max);
        }
    }
}
