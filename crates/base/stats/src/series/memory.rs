//! Whether levels explain a stretch of points better than memory alone does.
//!
//! Points that each resemble the one before wander, and what wanders far looks like a level. How
//! clear a level is beside noise of that memory is left to the scan and the visits.

/// Least gain in logarithms of the number of points. A step and its place are two numbers, each of
/// which would cost one in Schwarz's criterion (1978); the rest pays for the search (calibrated:
/// `tests/detection.rs`).
const GAIN_MIN: f64 = 5.5;
/// Most memory that is believed, so that what is new in a point never vanishes.
const MOST: f64 = 0.98;
/// Least sum of squares, in squares of the scale's deviation: above rounding.
const SQUARES_MIN: f64 = 1e-12;

/// Tells whether levels that begin at some cuts, with memory around them, explain points better than
/// one level with memory: `n ln(S0 / S1)` of the squares of what is new in each point.
pub(super) fn levels_explain_more(points: &[f64], cuts: &[usize]) -> bool {
    let count = points.len() as f64;
    let gain = count * (news(points, &[]) / news(points, cuts)).ln();
    gain >= GAIN_MIN * count.ln()
}

/// Returns the squares of what is new in points around the means of segments: with memory `r`,
/// `x(t) - r x(t-1)`, and `sqrt(1 - r²) x` of the first.
fn news(points: &[f64], cuts: &[usize]) -> f64 {
    let mut left = Vec::with_capacity(points.len());
    let mut begin = 0;
    for end in cuts.iter().copied().chain([points.len()]) {
        let segment = &points[begin..end];
        let mean = segment.iter().sum::<f64>() / segment.len().max(1) as f64;
        left.extend(segment.iter().map(|point| point - mean));
        begin = end;
    }
    let Some((first, last)) = left.first().zip(left.last()) else {
        return SQUARES_MIN;
    };
    let squares = left.iter().map(|x| x * x).sum::<f64>() - last * last;
    let products: f64 = left.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let memory = if squares > 0.0 {
        (products / squares).clamp(0.0, MOST)
    } else {
        0.0
    };
    let of_first = first * first * (1.0 - memory * memory);
    let of_others: f64 = left
        .windows(2)
        .map(|pair| (pair[1] - memory * pair[0]).powi(2))
        .sum();
    (of_first + of_others).max(SQUARES_MIN)
}

#[cfg(test)]
mod tests {
    use super::levels_explain_more;

    #[test]
    fn one_clear_step_is_no_memory() {
        let mut points: Vec<f64> = (0..30).map(|n| f64::from(n * 7 % 10) / 5.0).collect();
        assert!(!levels_explain_more(&points, &[20]));
        points[20..].iter_mut().for_each(|point| *point += 5.0);
        assert!(levels_explain_more(&points, &[20]));
    }

    #[test]
    fn slow_wave_has_no_levels() {
        let wave: Vec<f64> = (0..30).map(|n| (f64::from(n) / 5.0).sin()).collect();
        assert!(!levels_explain_more(&wave, &[15]));
        assert!(!levels_explain_more(&[0.0; 30], &[15]));
    }
}
