//! Costs over the grid as numbers for SVG: both axes logarithmic, so that a power law is a straight line.

use model::{RmapCase, RmapCell, RmapOperation};

use crate::plain::plain;
use crate::rmap::Rmap;

/// The picture, and the plot within it, in pixels.
pub(super) const WIDTH: f64 = 340.0;
pub(super) const HEIGHT: f64 = 190.0;
const LEFT: f64 = 44.0;
/// Room for the names of lines.
const RIGHT: f64 = 56.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;
/// How near each other names of lines may stand.
const NEAR: f64 = 10.0;

/// A plot as texts.
pub(super) struct Picture {
    pub(super) title: String,
    /// What a reader hears who cannot see it.
    pub(super) told: String,
    pub(super) lines: Vec<PictureLine>,
    /// Where the grid's lines are, and what is written there.
    pub(super) across: Vec<(String, String)>,
    pub(super) down: Vec<(String, String)>,
    /// What the horizontal axis counts.
    pub(super) axis: &'static str,
}

/// A kernel's costs along one row or column of the grid.
pub(super) struct PictureLine {
    pub(super) kernel: usize,
    pub(super) points: String,
    pub(super) dots: Vec<(String, String)>,
    /// `n=10`, and where it stands; nothing where the base's line says so already, or another name is in the way.
    pub(super) name: Option<(String, String, String)>,
}

/// A line: kernel, the number that is fixed, points.
type Line = (usize, u32, Vec<(f64, f64)>);

/// Draws the plots of a case: costs of entries over mappings, those of pages over processes.
pub(super) fn pictures(rmap: &Rmap, case: RmapCase) -> Vec<Picture> {
    let operations = RmapOperation::ALL.into_iter().filter(|operation| operation.is_of(case));
    operations.filter_map(|operation| picture(rmap, case, operation)).collect()
}

fn picture(rmap: &Rmap, case: RmapCase, operation: RmapOperation) -> Option<Picture> {
    let over_mappings = operation.per() == "entry";
    let (along, fixed) =
        if over_mappings { (&rmap.mappings, &rmap.processes) } else { (&rmap.processes, &rmap.mappings) };
    let cell = |moving: u32, fixed: u32| match over_mappings {
        true => RmapCell { case, processes: fixed, mappings: moving },
        false => RmapCell { case, processes: moving, mappings: fixed },
    };
    let mut lines: Vec<Line> = Vec::new();
    for kernel in 0..rmap.kernels.len() {
        for fixed in fixed {
            let point = |moving: &u32| {
                let cost = rmap.value(kernel, cell(*moving, *fixed), operation).cost()?;
                (cost > 0.0).then_some((f64::from(*moving), cost))
            };
            lines.push((kernel, *fixed, along.iter().filter_map(point).collect()));
        }
    }
    lines.retain(|(_, _, points)| points.len() > 1);
    let all = || lines.iter().flat_map(|(_, _, points)| points);
    let ends = |of: fn(&(f64, f64)) -> f64| {
        all().map(of).fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (x, y) = (Axis::new(ends(|point| point.0), (LEFT, WIDTH - RIGHT))?, {
        let (low, high) = ends(|point| point.1);
        // Whole decades, so that there are lines of the grid.
        let decades = (10_f64.powf(low.log10().floor()), 10_f64.powf(high.log10().ceil()));
        Axis::new(decades, (HEIGHT - BOTTOM, TOP))?
    });
    let word = if over_mappings { "n" } else { "m" };
    let told = lines.iter().filter_map(|(kernel, fixed, points)| {
        let (first, last) = (points.first()?, points.last()?);
        Some(format!("{} {word}={fixed} from {:.0} to {:.0}", plain(rmap.kernels.get(*kernel)?), first.1, last.1))
    });
    Some(Picture {
        title: format!("{operation}, ns per {}", operation.per()),
        told: format!("{operation}: {}", told.collect::<Vec<_>>().join(", ")),
        lines: drawn(&lines, (&x, &y), word),
        across: decades(&y).map(|tick| (format!("{:.1}", y.at(tick)), short(tick))).collect(),
        down: along.iter().map(|tick| (format!("{:.1}", x.at(f64::from(*tick))), tick.to_string())).collect(),
        axis: if over_mappings { "m" } else { "n" },
    })
}

fn drawn(lines: &[Line], (x, y): (&Axis, &Axis), word: &str) -> Vec<PictureLine> {
    let mut named: Vec<f64> = Vec::new();
    let line = |(kernel, fixed, points): &Line| {
        let dots: Vec<(String, String)> =
            points.iter().map(|(px, py)| (format!("{:.1}", x.at(*px)), format!("{:.1}", y.at(*py)))).collect();
        let (end, height) = points.last().map_or((0.0, 0.0), |(px, py)| (x.at(*px), y.at(*py)));
        let is_free = *kernel == 0 && named.iter().all(|other| (other - height).abs() >= NEAR);
        let name = is_free.then(|| {
            named.push(height);
            (format!("{word}={fixed}"), format!("{:.1}", end + NEAR / 2.0), format!("{height:.1}"))
        });
        let points: Vec<String> = dots.iter().map(|(px, py)| format!("{px},{py}")).collect();
        PictureLine { kernel: *kernel, points: points.join(" "), dots, name }
    };
    lines.iter().map(line).collect()
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    pixels: (f64, f64),
}

impl Axis {
    /// Returns an axis; nothing where it would have no length.
    fn new((low, high): (f64, f64), pixels: (f64, f64)) -> Option<Self> {
        (low > 0.0 && low.is_finite() && high > low).then_some(Self { low, high, pixels })
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        self.pixels.0 + part * (self.pixels.1 - self.pixels.0)
    }
}

fn decades(axis: &Axis) -> impl Iterator<Item = f64> {
    let (low, high) = (axis.low, axis.high);
    (0..20).map(move |number| low * 10_f64.powi(number)).take_while(move |tick| *tick <= high * 1.0001)
}

/// Returns a number for an axis: `1k`, `10M`.
fn short(number: f64) -> String {
    match number {
        n if n >= 9.99e8 => format!("{:.0}G", n / 1e9),
        n if n >= 9.99e5 => format!("{:.0}M", n / 1e6),
        n if n >= 999.0 => format!("{:.0}k", n / 1e3),
        n if n >= 0.999 => format!("{n:.0}"),
        n => format!("{n}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, pictures, short};
    use crate::rmap::fixtures::two_kernels;

    #[test]
    fn a_power_law_is_a_straight_line() {
        let axis = Axis::new((1.0, 10_000.0), (0.0, 100.0)).unwrap();
        for (value, expected) in [(1.0, 0.0), (10.0, 25.0), (10_000.0, 100.0)] {
            assert!((axis.at(value) - expected).abs() < 1e-9);
        }
        assert!(Axis::new((1.0, 1.0), (0.0, 1.0)).is_none());
        assert_eq!([1.0, 1e3, 1e4, 1e6, 2e9].map(short), ["1", "1k", "10k", "1M", "2G"]);
    }

    #[test]
    fn all_points_lie_within_the_picture() {
        let rmap = two_kernels();
        for case in &rmap.cases {
            let pictures = pictures(&rmap, *case);
            assert!(pictures.len() >= 3, "{case}");
            for (x, y) in pictures.iter().flat_map(|picture| &picture.lines).flat_map(|line| &line.dots) {
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!((0.0..super::WIDTH).contains(&x) && (0.0..super::HEIGHT).contains(&y), "{x},{y}");
            }
        }
    }
}
