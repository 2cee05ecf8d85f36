//! Line charts as numbers for SVG: scales, ticks, points, and line names where they fit.

/// The picture and its plot area, in pixels.
pub(super) const WIDTH: f64 = 340.0;
pub(super) const HEIGHT: f64 = 160.0;
pub(super) const LEFT: f64 = 44.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;
/// Margin at the right, and with line names.
const RIGHT: f64 = 8.0;
const NAMES: f64 = 56.0;
/// Smallest distance between line names.
const NEAR: f64 = 10.0;
/// Most points of a line; more would be narrower than a pixel.
const POINTS_MAX: usize = 600;
/// Most ticks of an axis.
const TICKS_MAX: f64 = 5.0;

/// A chart as texts.
#[derive(Debug)]
pub struct Chart {
    /// What it shows, with the unit.
    pub title: String,
    /// The description for screen readers.
    pub told: String,
    pub(super) lines: Vec<Line>,
    /// The grid lines with their labels.
    pub(super) across: Vec<Tick>,
    pub(super) down: Vec<Tick>,
    /// The label of the horizontal axis.
    pub(super) axis: &'static str,
    /// The edges of the plot.
    pub(super) right: f64,
}

/// A line to draw.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) colour: usize,
    pub(super) points: String,
    /// Single points, if there are few.
    pub(super) dots: Vec<[String; 2]>,
    pub(super) name: Option<Name>,
}

/// The line's name and its position.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) x: String,
    pub(super) y: String,
}

/// A position on an axis.
#[derive(Debug)]
pub(super) struct Tick {
    pub(super) at: String,
    pub(super) label: String,
}

/// The points of one kernel, and how they are drawn.
#[derive(Debug)]
pub struct Curve {
    /// Its colour: all curves of a kernel share one.
    pub colour: usize,
    /// Its name, which stands at its end where there is space.
    pub name: Option<String>,
    /// The points as (x, y), ascending by x.
    pub points: Vec<(f64, f64)>,
}

/// The mapping of values to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from 0 on.
    Linear,
    /// Logarithmic: a power law is a straight line; each point is drawn.
    Logarithmic,
}

impl Chart {
    /// Draws curves; `None` if an axis would have no length.
    pub fn new(
        title: String,
        told: String,
        axis: &'static str,
        scale: Scale,
        curves: &[Curve],
    ) -> Option<Self> {
        let right = WIDTH
            - if curves.iter().any(|curve| curve.name.is_some()) {
                NAMES
            } else {
                RIGHT
            };
        let points: Vec<(f64, f64)> = curves
            .iter()
            .flat_map(|curve| &curve.points)
            .copied()
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .collect();
        let x = Axis::new(scale, ends(points.iter().map(|(x, _)| *x)), [LEFT, right])?;
        let y = Axis::new(
            scale,
            round_ends(scale, ends(points.iter().map(|(_, y)| *y))),
            [HEIGHT - BOTTOM, TOP],
        )?;
        let mut named: Vec<f64> = Vec::new();
        let lines = curves
            .iter()
            .map(|curve| line(curve, scale, [&x, &y], &mut named))
            .collect();
        let across = y.ticks("");
        let down = x.ticks(axis);
        // Each tick has the unit; the variable's name is written once.
        Some(Self {
            title,
            told,
            lines,
            across,
            down,
            axis: if scale == Scale::Linear { "" } else { axis },
            right,
        })
    }
}

/// Returns the smallest and the largest value; the largest is at least 0.
fn ends(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, 0.0_f64], |[low, high], value| {
        [low.min(value), high.max(value)]
    })
}

fn line(curve: &Curve, scale: Scale, [x, y]: [&Axis; 2], named: &mut Vec<f64>) -> Line {
    let mut places: Vec<[String; 2]> = Vec::new();
    for (px, py) in thin(&curve.points) {
        places.push([x.at(px), y.at(py)].map(|place| format!("{place:.1}")));
    }
    let name = curve
        .name
        .clone()
        .zip(curve.points.last())
        .and_then(|(text, (end, height))| {
            let height = y.at(*height);
            named
                .iter()
                .all(|other| (other - height).abs() >= NEAR)
                .then(|| {
                    named.push(height);
                    Name {
                        text,
                        x: format!("{:.1}", x.at(*end) + NEAR / 2.0),
                        y: format!("{height:.1}"),
                    }
                })
        });
    let points = places
        .iter()
        .map(|place| place.join(","))
        .collect::<Vec<_>>()
        .join(" ");
    let dots = if scale == Scale::Logarithmic {
        places
    } else {
        Vec::new()
    };
    Line {
        colour: curve.colour,
        points,
        dots,
        name,
    }
}

/// An axis and its position.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    pixels: [f64; 2],
}

impl Axis {
    fn new(scale: Scale, [low, high]: [f64; 2], pixels: [f64; 2]) -> Option<Self> {
        let low = if scale == Scale::Linear { 0.0 } else { low };
        let has_length = high > low && low.is_finite() && (low > 0.0 || scale == Scale::Linear);
        has_length.then_some(Self {
            scale,
            low,
            high,
            pixels,
        })
    }

    fn at(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => value / self.high,
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.pixels[0] + part * (self.pixels[1] - self.pixels[0])
    }

    fn ticks(&self, unit: &str) -> Vec<Tick> {
        let step = step(self.high);
        let first = 10_f64.powf((self.low.log10() - 1e-9).ceil());
        let unit = if self.scale == Scale::Linear && !unit.is_empty() {
            format!(" {unit}")
        } else {
            String::new()
        };
        let mut ticks = Vec::new();
        for number in 0..=20_u8 {
            let value = match self.scale {
                Scale::Linear => f64::from(number) * step,
                Scale::Logarithmic => first * 10_f64.powi(number.into()),
            };
            if value > self.high * 1.0001 {
                break;
            }
            ticks.push(Tick {
                at: format!("{:.1}", self.at(value)),
                label: short(value) + &unit,
            });
        }
        ticks
    }
}

/// Returns the ends of a value axis, on grid lines.
fn round_ends(scale: Scale, [low, high]: [f64; 2]) -> [f64; 2] {
    match scale {
        Scale::Linear => [low, (high / step(high)).ceil() * step(high)],
        Scale::Logarithmic => [
            10_f64.powf(low.log10().floor()),
            10_f64.powf(high.log10().ceil()),
        ],
    }
}

/// Returns a round tick distance: 1, 2 or 5 times a power of ten.
fn step(largest: f64) -> f64 {
    let power = 10_f64.powf((largest / TICKS_MAX).log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| largest / (factor * power) <= TICKS_MAX);
    factor.unwrap_or(10.0) * power
}

/// Formats a number for an axis: `1.5k`, `20M`.
pub fn short(number: f64) -> String {
    let (scaled, unit) = match number {
        n if n >= 0.999e9 => (n / 1e9, "G"),
        n if n >= 0.999e6 => (n / 1e6, "M"),
        n if n >= 0.999e3 => (n / 1e3, "k"),
        n => (n, ""),
    };
    let decimals = if scaled < 0.01 { 6 } else { 2 };
    let text = format!("{scaled:.decimals$}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns a limited number of points: the highest of each section, so that no peak is lost.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let stretch = points.len().div_ceil(POINTS_MAX).max(1);
    points
        .chunks(stretch)
        .filter_map(|points| points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Axis, POINTS_MAX, Scale, short, step, thin};

    #[test]
    fn a_power_law_is_a_straight_line() {
        let axis = Axis::new(Scale::Logarithmic, [1.0, 10_000.0], [0.0, 100.0]).unwrap();
        for (value, expected) in [(1.0, 0.0), (10.0, 25.0), (10_000.0, 100.0)] {
            assert!((axis.at(value) - expected).abs() < 1e-9);
        }
        assert_eq!(axis.ticks("").len(), 5);
        assert!(Axis::new(Scale::Logarithmic, [1.0, 1.0], [0.0, 1.0]).is_none());
    }

    #[test]
    fn ticks_are_round_and_few() {
        for (largest, expected) in [
            (1.0, 0.2),
            (9.0, 2.0),
            (11.0, 5.0),
            (1_234_567.0, 500_000.0),
            (0.03, 0.01),
        ] {
            assert!(
                (step(largest) - expected).abs() < expected * 1e-9,
                "{largest}"
            );
            assert!(
                Axis::new(Scale::Linear, [0.0, largest], [0.0, 1.0])
                    .unwrap()
                    .ticks("s")
                    .len()
                    <= 6
            );
        }
        let told = [0.0, 0.001, 0.25, 1.0, 1500.0, 12_000.0, 2.5e6, 3e9].map(short);
        assert_eq!(
            told,
            ["0", "0.001", "0.25", "1", "1.5k", "12k", "2.5M", "3G"]
        );
    }

    #[test]
    fn peaks_survive() {
        let mut points: Vec<(f64, f64)> = (0_u32..5000).map(|n| (f64::from(n), 1.0)).collect();
        points[3333].1 = 99.0;
        let few = thin(&points);
        assert!(few.len() <= POINTS_MAX && few.contains(&(3333.0, 99.0)));
        assert_eq!(thin(&points[..3]).len(), 3);
    }
}
