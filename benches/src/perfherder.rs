//! The change detection rule of Mozilla's Perfherder, written from its description: a local maximum
//! above 7 of a weighted t of the points before and after.

/// Points before: at least, and at most.
const BACK: (usize, usize) = (12, 24);
const FORE: usize = 12;
const T_MIN: f64 = 7.0;

/// Returns the changes of a series: the first point of each new level.
pub fn changes(points: &[f64]) -> Vec<usize> {
    let t: Vec<f64> = (0..points.len()).map(|at| t(points, at)).collect();
    (0..points.len())
        .filter(|at| {
            let around = &t[at.saturating_sub(FORE)..t.len().min(at + FORE + 1)];
            t[*at] > T_MIN && around.iter().all(|other| *other <= t[*at])
        })
        .collect()
}

fn t(points: &[f64], at: usize) -> f64 {
    let back = &points[at.saturating_sub(BACK.1)..at];
    let fore = &points[at..points.len().min(at + FORE)];
    if back.len() < BACK.0 || fore.len() < FORE {
        return 0.0;
    }
    let a = weighted(back.iter().rev());
    let b = weighted(fore.iter());
    let error = (a.1 / back.len() as f64 + b.1 / fore.len() as f64).sqrt();
    if error > 0.0 {
        (a.0 - b.0).abs() / error
    } else {
        0.0
    }
}

/// Returns mean and variance with weights that decrease linearly from 1 for the nearest point.
fn weighted<'a>(points: impl ExactSizeIterator<Item = &'a f64> + Clone) -> (f64, f64) {
    let count = points.len() as f64;
    let weighted = points
        .enumerate()
        .map(|(n, point)| ((count - n as f64) / count, *point));
    let total: f64 = weighted.clone().map(|(weight, _)| weight).sum();
    let mean = weighted
        .clone()
        .map(|(weight, point)| weight * point)
        .sum::<f64>()
        / total;
    let squares: f64 = weighted
        .map(|(weight, point)| weight * (point - mean).powi(2))
        .sum();
    (mean, squares / total * count / (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::changes;

    #[test]
    fn a_large_step_is_found_once() {
        let points: Vec<f64> = (0..60)
            .map(|n| f64::from(n % 3) + if n < 30 { 0.0 } else { 20.0 })
            .collect();
        assert_eq!(changes(&points), [30]);
        assert!(changes(&points[..30]).is_empty());
    }
}
