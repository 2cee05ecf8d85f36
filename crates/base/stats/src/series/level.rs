//! A series made fit for least squares: wild points pulled in, and how the rest scatters.

use crate::noise::OF_MEDIAN;

/// Points of the running median for cuts of a whole series.
pub(crate) const WINDOW: usize = 11;
/// Points of the running median for steps near the ends: a level of three points is none that is
/// wild.
pub(crate) const WINDOW_NARROW: usize = 5;
/// Points further than so many deviations from the running median are pulled in to there.
const REACH: f64 = 3.0;
/// The same for the mean absolute deviation, the root of pi / 2.
const OF_MEAN: f64 = 1.2533;
/// Least deviation as a share of the series' range: keeps squares within what can be counted.
const SHARE_MIN: f64 = 1e-9;
/// Least variance that is reckoned with, in squares of the scale's deviation: above what rounding
/// makes of equal points.
const VARIANCE_MIN: f64 = 1e-6;
/// Most autocorrelation that is believed in.
pub(crate) const MEMORY_MAX: f64 = 0.9;

/// What the points are measured by: `(point - middle) / deviation`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    middle: f64,
    /// In the points' unit, above zero.
    pub(crate) deviation: f64,
}

impl Scale {
    /// Returns the scale of a series; none if all its points are equal, there are none, or their
    /// range is not finite.
    pub(crate) fn measure(points: &[f64], running: &[f64]) -> Option<Self> {
        let low = points.iter().copied().fold(f64::INFINITY, f64::min);
        let high = points.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = high - low;
        if !range.is_finite() || range <= 0.0 {
            return None;
        }
        let mut distances: Vec<f64> = running
            .iter()
            .zip(points)
            .map(|(middle, point)| (point - middle).abs())
            .collect();
        let mean = distances
            .iter()
            .map(|d| d / distances.len() as f64)
            .sum::<f64>();
        let middle = distances.len() / 2;
        let (_, median, _) = distances.select_nth_unstable_by(middle, f64::total_cmp);
        let deviation = if *median > 0.0 {
            OF_MEDIAN * *median
        } else {
            OF_MEAN * mean
        };
        Some(Self {
            middle: low.midpoint(high),
            deviation: deviation.max(range * SHARE_MIN).max(f64::MIN_POSITIVE),
        })
    }

    /// Returns a point on this scale.
    pub(crate) fn wild(&self, point: f64) -> f64 {
        (point - self.middle) / self.deviation
    }

    /// Returns what a number on this scale is in the points' unit.
    pub(crate) fn point(&self, wild: f64) -> f64 {
        self.middle + wild * self.deviation
    }

    /// Returns a point on this scale, pulled in towards the running median.
    pub(crate) fn tame(&self, point: f64, running: f64) -> f64 {
        self.tame_between(point, [running, running])
    }

    /// Returns a point on this scale, pulled in towards what lies between two middle points.
    pub(crate) fn tame_between(&self, point: f64, [low, high]: [f64; 2]) -> f64 {
        self.wild(point)
            .clamp(self.wild(low) - REACH, self.wild(high) + REACH)
    }
}

/// Returns the medians of the `width` points around each from a first one on, at most 11; of fewer
/// points at the ends.
pub(crate) fn running_medians(points: &[f64], first: usize, width: usize) -> Vec<f64> {
    running_middles(points, first, width)
        .into_iter()
        .map(|[low, high]| low.midpoint(high))
        .collect()
}

/// Returns the two middle points of the same windows: one point twice where their number is odd.
/// Any number between them is a median.
pub(crate) fn running_middles(points: &[f64], first: usize, width: usize) -> Vec<[f64; 2]> {
    let mut window = Window::default();
    let ahead = width / 2;
    let begin = first.saturating_sub(ahead);
    points[begin..points.len().min(first + ahead)]
        .iter()
        .for_each(|point| window.insert(*point));
    let mut middles = Vec::with_capacity(points.len() - first);
    for at in first..points.len() {
        if let Some(point) = points.get(at + ahead) {
            window.insert(*point);
        }
        if let Some(point) = at.checked_sub(ahead + 1).filter(|left| *left >= begin) {
            window.remove(points[point]);
        }
        middles.push(window.middles());
    }
    middles
}

#[derive(Debug, Default)]
struct Window {
    // One more: the next comes before the oldest goes.
    sorted: [f64; WINDOW + 1],
    count: usize,
}

impl Window {
    fn insert(&mut self, point: f64) {
        let place = self.sorted[..self.count]
            .iter()
            .filter(|other| **other <= point)
            .count();
        self.sorted.copy_within(place..self.count, place + 1);
        self.sorted[place] = point;
        self.count += 1;
    }

    fn remove(&mut self, point: f64) {
        let place = self.sorted[..self.count]
            .iter()
            .filter(|other| **other < point)
            .count();
        self.sorted.copy_within(place + 1..self.count, place);
        self.count -= 1;
    }

    fn middles(&self) -> [f64; 2] {
        [
            self.sorted[(self.count - 1) / 2],
            self.sorted[self.count / 2],
        ]
    }
}

/// How points scatter around their levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scatter {
    /// Square of the deviation; above zero.
    pub(crate) variance: f64,
    /// Correlation of neighbours, 0 to 0.9.
    pub(crate) memory: f64,
}

impl Scatter {
    /// Returns a first guess that needs no levels: half the mean square of differences (von Neumann
    /// 1941).
    pub(crate) fn of_differences(points: &[f64]) -> Self {
        let squares: f64 = points
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).powi(2))
            .sum();
        let count = points.len().saturating_sub(1).max(1) as f64;
        Self {
            variance: (squares / count / 2.0).max(VARIANCE_MIN),
            memory: 0.0,
        }
    }

    /// Returns the scatter around the means of segments, which begin at the cuts.
    pub(crate) fn around(points: &[f64], cuts: &[usize]) -> Self {
        let mut squares = 0.0;
        let mut products = 0.0;
        let mut begin = 0;
        for end in cuts.iter().copied().chain([points.len()]) {
            let segment = &points[begin..end];
            let mean = segment.iter().sum::<f64>() / segment.len().max(1) as f64;
            squares += segment
                .iter()
                .map(|point| (point - mean).powi(2))
                .sum::<f64>();
            products += segment
                .windows(2)
                .map(|pair| (pair[0] - mean) * (pair[1] - mean))
                .sum::<f64>();
            begin = end;
        }
        let count = points.len() as f64;
        let segments = (cuts.len() + 1) as f64;
        let variance = (squares / (count - segments).max(1.0)).max(VARIANCE_MIN);
        let seen = if variance > VARIANCE_MIN {
            products / squares
        } else {
            0.0
        };
        // Means fitted to the same points make neighbours look less alike (Kendall 1954).
        let memory = seen + (1.0 + 3.0 * seen) * segments / count;
        Self {
            variance,
            memory: memory.clamp(0.0, MEMORY_MAX),
        }
    }

    /// Returns how many times larger the variance of a long mean is than that of independent
    /// points: the long-run variance of an autoregressive series over its variance.
    pub(crate) fn inflation(&self) -> f64 {
        (1.0 + self.memory) / (1.0 - self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::{Scale, Scatter, WINDOW, running_medians};
    use crate::synthetic::{Chance, Noise};

    #[test]
    fn a_running_median_is_narrower_at_the_ends() {
        let points: Vec<f64> = (0..20).map(f64::from).collect();
        let medians = running_medians(&points, 0, WINDOW);
        for (at, expected) in [(0, 2.5), (10, 10.0), (19, 16.5)] {
            assert!((medians[at] - expected).abs() < 1e-12, "{medians:?}");
        }
        assert_eq!(running_medians(&[7.0], 0, WINDOW), vec![7.0]);
        assert!(running_medians(&[], 0, WINDOW).is_empty());
    }

    #[test]
    fn wild_point_is_pulled_in_step_is_not() {
        let mut points = Noise::Normal.values(100, &mut Chance::new(1));
        points[50] = 1000.0;
        points[70..].iter_mut().for_each(|point| *point += 20.0);
        let running = running_medians(&points, 0, WINDOW);
        let scale = Scale::measure(&points, &running).unwrap();
        assert!((0.7..1.3).contains(&scale.deviation), "{scale:?}");
        let tame: Vec<f64> = (0..100)
            .map(|at| scale.tame(points[at], running[at]))
            .collect();
        assert!((tame[50] - tame[49]).abs() < 8.0);
        assert!(tame[75] - tame[65] > 10.0);
    }

    #[test]
    fn no_width_or_too_much_has_no_scale() {
        assert_eq!(Scale::measure(&[], &[]), None);
        assert_eq!(Scale::measure(&[2.0; 9], &[2.0; 9]), None);
        assert_eq!(Scale::measure(&[f64::MAX, -f64::MAX], &[0.0; 2]), None);
    }

    #[test]
    fn memory_is_seen() {
        for (noise, expected) in [(Noise::Normal, 0.0), (Noise::Autocorrelated, 0.5)] {
            let scatter = Scatter::around(&noise.values(20_000, &mut Chance::new(2)), &[]);
            assert!((scatter.memory - expected).abs() < 0.03, "{scatter:?}");
            assert!((scatter.variance - 1.0).abs() < 0.05, "{scatter:?}");
        }
    }
}
