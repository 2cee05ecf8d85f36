//! Drawings in SVG: a sparkline for a cell of a table, a plot of a series. Up is better in both,
//! for any metric.

use compare::difference_percent;
use history::{History, Series, change_size, range};
use model::{Direction, Verdict};

use super::{percent, title, verdict_glyph};

/// Limit on kernels in a sparkline: the newest ones.
const SPARK_POINTS: usize = 20;
/// Size of a sparkline.
const SPARK: (f64, f64) = (48.0, 12.0);
/// Size of a plot, and of its margins: left, right, top, bottom.
pub(crate) const PLOT: (f64, f64) = (960.0, 330.0);
const LEFT: f64 = 78.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 66.0;
/// Half of the widest label of a change.
const LABEL: f64 = 48.0;
/// Limit on names below a plot.
const NAMES_MAX: usize = 24;
/// Limit on seeds drawn for a kernel.
const DOTS_MAX: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spark {
    /// The path of the line.
    pub(crate) line: String,
    /// Its changes: position and class.
    pub(crate) ticks: Vec<(f64, &'static str)>,
}

/// Draws the last points of a series; `None` for a single point.
pub(crate) fn spark(series: &Series) -> Option<Spark> {
    let from = series.points.len().saturating_sub(SPARK_POINTS);
    let points: Vec<Option<f64>> = series.points[from..]
        .iter()
        .map(|point| point.value)
        .collect();
    let scale = Scale::covering(series, points.iter().flatten().copied())?;
    if points.iter().flatten().count() < 2 {
        return None;
    }
    let step = SPARK.0 / (points.len() - 1) as f64;
    let place = |n: usize| ((n as f64) * step).round();
    let mut pieces: Vec<String> = Vec::new();
    let mut pen: Option<f64> = None;
    for (n, value) in points.iter().enumerate() {
        let Some(value) = value else { continue };
        let x = place(n);
        let y = 1.0 + (scale.down(*value) * (SPARK.1 - 2.0)).round();
        let is_level = pen.is_some_and(|before| (before - y).abs() < 0.5);
        // Of consecutive level pieces only the last is needed.
        if is_level && pieces.last().is_some_and(|last| last.starts_with('H')) {
            pieces.pop();
        }
        pieces.push(match pen {
            None => format!("M{x} {y}"),
            Some(_) if is_level => format!("H{x}"),
            Some(_) => format!("L{x} {y}"),
        });
        pen = Some(y);
    }
    let ticks = series
        .changes
        .iter()
        .filter_map(|change| Some((place(change.at.checked_sub(from)?), class(&change.verdict))));
    Some(Spark {
        line: pieces.concat(),
        ticks: ticks.collect(),
    })
}

/// Returns the CSS class of a verdict.
pub(crate) fn class(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "b",
        Verdict::Worse => "w",
        Verdict::Same => "s",
        Verdict::Unclear(_) => "u",
    }
}

/// The range of values between top and bottom of a drawing.
#[derive(Debug, Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    direction: Direction,
}

impl Scale {
    /// Covers all values; differences within the margin look level.
    fn covering(series: &Series, values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = range(values, series.metric.margin_percent)?;
        Some(Self {
            low,
            high,
            direction: series.direction(),
        })
    }

    /// Returns the position of a value: 0 at the top, 1 at the bottom.
    fn down(&self, value: f64) -> f64 {
        let part = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        match self.direction {
            Direction::LowerIsBetter => part,
            Direction::HigherIsBetter => 1.0 - part,
        }
    }
}

/// Where a plot has its kernels and values.
#[derive(Debug, Clone, Copy)]
struct Axes {
    scale: Scale,
    /// The number of kernels.
    count: usize,
}

impl Axes {
    /// Returns the x coordinate of the `n`th kernel.
    fn x(self, n: usize) -> f64 {
        if self.count == 1 {
            return f64::midpoint(LEFT, PLOT.0 - RIGHT);
        }
        let step = (PLOT.0 - LEFT - RIGHT) / self.count.saturating_sub(1).max(1) as f64;
        LEFT + n as f64 * step
    }

    /// Returns the y coordinate of a value.
    fn y(self, value: f64) -> f64 {
        TOP + self.scale.down(value) * (PLOT.1 - TOP - BOTTOM)
    }
}

/// A plot of a series.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Plot {
    /// The line through the medians.
    pub(crate) line: String,
    /// The medians: x, y and tooltip.
    pub(crate) points: Vec<(String, String, String)>,
    /// Values of single seeds: x and y.
    pub(crate) dots: Vec<(String, String)>,
    /// From the best to the worst seed, if visibly different: x and two y.
    pub(crate) spans: Vec<(String, String, String)>,
    /// Labels beside the plot, as differences to the first kernel, positive is better: y and text.
    pub(crate) values: Vec<(String, String)>,
    /// The kernels below it: x and name.
    pub(crate) names: Vec<(String, String)>,
    pub(crate) changes: Vec<Band>,
    /// Its left and right edge.
    pub(crate) edges: (f64, f64),
    /// Its upper and lower edge.
    pub(crate) heights: (f64, f64),
}

/// A change in a plot: the kernels that may have introduced it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Band {
    pub(crate) from: String,
    pub(crate) width: String,
    /// Its middle, moved so that the label fits.
    pub(crate) middle: String,
    pub(crate) class: &'static str,
    pub(crate) title: String,
    /// The size of the change.
    pub(crate) label: String,
}

/// Draws a series; `None` without values.
pub(crate) fn plot(history: &History, series: &Series) -> Option<Plot> {
    let seeds = series
        .points
        .iter()
        .flat_map(|point| &point.seeds)
        .filter_map(|seen| series.value(seen));
    let scale = Scale::covering(series, seeds)?;
    let count = series.points.len();
    let axes = Axes { scale, count };
    let mut plot = Plot {
        edges: (LEFT, PLOT.0 - RIGHT),
        heights: (TOP, PLOT.1 - BOTTOM),
        ..Plot::default()
    };
    for (n, point) in series.points.iter().enumerate() {
        let seeds = point
            .seeds
            .iter()
            .filter_map(|seen| series.value(seen))
            .take(DOTS_MAX);
        let heights: Vec<f64> = seeds.map(|value| axes.y(value)).collect();
        plot.dots.extend(
            heights
                .iter()
                .map(|height| (coordinate(axes.x(n)), coordinate(*height))),
        );
        let (high, low) = heights
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(high, low), y| {
                (high.min(*y), low.max(*y))
            });
        if low - high > 2.0 {
            plot.spans
                .push((coordinate(axes.x(n)), coordinate(high), coordinate(low)));
        }
        if let Some(value) = point.value {
            let pen = if plot.line.is_empty() { "M" } else { "L" };
            plot.line
                .extend([pen, &coordinate(axes.x(n)), " ", &coordinate(axes.y(value))]);
            plot.points.push((
                coordinate(axes.x(n)),
                coordinate(axes.y(value)),
                format!(
                    "{}: {}",
                    title(history, series.points[n].kernel),
                    number(value)
                ),
            ));
        }
    }
    let nth = count.div_ceil(NAMES_MAX).max(1);
    plot.names = (0..count)
        .step_by(nth)
        .map(|n| {
            (
                coordinate(axes.x(n)),
                short(title(history, series.points[n].kernel)),
            )
        })
        .collect();
    let first = series
        .points
        .iter()
        .find_map(|point| point.value)
        .filter(|first| *first > 0.0);
    plot.values = labels(series.direction(), scale, first)
        .into_iter()
        .map(|(value, label)| (coordinate(axes.y(value)), label))
        .collect();
    plot.changes = series
        .changes
        .iter()
        .map(|change| band(history, series, axes, change))
        .collect();
    Some(plot)
}

/// Returns values of an axis with their labels, at round numbers: differences to the first value,
/// because where less is better, values would grow downwards; without it values.
fn labels(direction: Direction, scale: Scale, first: Option<f64>) -> Vec<(f64, String)> {
    let ends = [scale.low, scale.high];
    let differences = first.and_then(|first| {
        Some((
            first,
            difference_percent(direction, first, ends[0])?,
            difference_percent(direction, first, ends[1])?,
        ))
    });
    let Some((first, low, high)) = differences else {
        let values = round_steps(ends[0], ends[1]).into_iter();
        return values.map(|value| (value, number(value))).collect();
    };
    let sign = match direction {
        Direction::LowerIsBetter => -1.0,
        Direction::HigherIsBetter => 1.0,
    };
    round_steps(low.min(high), low.max(high))
        .into_iter()
        .map(|difference| {
            (
                first * (1.0 + sign * difference / 100.0),
                percent(difference),
            )
        })
        .collect()
}

/// Returns the multiples of 1, 2 or 5 times a power of ten in a range: three to seven of them.
fn round_steps(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    if !(rough.is_finite() && rough > 0.0) {
        return vec![low];
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .rfind(|step| *step <= rough)
        .unwrap_or(power);
    let from = (low / step).ceil();
    (0..=10)
        .map(|n| (from + f64::from(n)) * step)
        .take_while(|value| *value <= high)
        // No difference is 0, not -0.
        .map(|value| value + 0.0)
        .collect()
}

/// Draws a change: from the kernel before it to its own.
fn band(history: &History, series: &Series, axes: Axes, change: &history::Change) -> Band {
    let before = series
        .points
        .iter()
        .position(|point| point.kernel == series.before(change).kernel);
    let from = axes.x(before.unwrap_or_default());
    Band {
        from: coordinate(from),
        width: coordinate(axes.x(change.at) - from),
        middle: coordinate(
            f64::midpoint(from, axes.x(change.at)).clamp(LEFT + LABEL, PLOT.0 - RIGHT - LABEL),
        ),
        class: class(&change.verdict),
        title: format!(
            "{} {} between {} and {}",
            change.verdict.name(),
            change_size(change.difference_percent, change.basis),
            history.kernel(series.before(change).kernel).title,
            title(history, series.points[change.at].kernel)
        ),
        label: format!(
            "{} {}",
            verdict_glyph(&change.verdict),
            change_size(change.difference_percent, change.basis)
        ),
    }
}

fn coordinate(number: f64) -> String {
    format!("{number:.1}")
}

fn short(title: &str) -> String {
    if title.chars().count() <= 16 {
        title.to_owned()
    } else {
        title.chars().take(15).chain(['…']).collect()
    }
}

/// Formats a value with about five digits.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 1e9 || (size > 0.0 && size < 1e-3) => format!("{value:.3e}"),
        _ if size >= 1000.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::round_steps;

    #[test]
    fn axis_has_round_numbers_of_any_range() {
        assert_eq!(round_steps(-3.47, 1.12), [-3.0, -2.0, -1.0, 0.0, 1.0]);
        assert_eq!(round_steps(90.0, 170.0), [100.0, 120.0, 140.0, 160.0]);
        assert_eq!(round_steps(5.0, 5.0), [5.0]);
        for size in 1..200 {
            let high = 0.013 * f64::from(size * size);
            let steps = round_steps(-high / 3.0, high);
            assert!((3..=11).contains(&steps.len()), "{high}: {steps:?}");
        }
    }
}
