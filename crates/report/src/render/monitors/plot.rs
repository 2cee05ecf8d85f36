//! Plots as numbers for SVG: axes, ticks, and the lines of the kernels.

use crate::monitors::{Monitored, Plot, title};

/// The picture, and the plot within it, in pixels.
pub(super) const WIDTH: f64 = 340.0;
pub(super) const HEIGHT: f64 = 130.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 20.0;
/// Most points of a line that are drawn; more are no wider than a pixel.
const POINTS_MAX: usize = 600;
/// Most ticks of an axis.
const TICKS_MAX: f64 = 5.0;

/// A plot as texts.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) title: String,
    pub(crate) unit: String,
    /// What a reader hears who cannot see it.
    pub(crate) told: String,
    pub(crate) lines: Vec<PictureLine>,
    /// Where the grid's lines are, and what is written there.
    pub(crate) across: Vec<(String, String)>,
    pub(crate) down: Vec<(String, String)>,
}

/// A kernel's line.
#[derive(Debug)]
pub(crate) struct PictureLine {
    pub(crate) kernel: usize,
    pub(crate) points: String,
}

/// Draws all plots.
pub(super) fn pictures(monitored: &Monitored) -> Vec<Picture> {
    monitored.plots.iter().filter_map(|plot| picture(plot, &monitored.heads)).collect()
}

fn picture(plot: &Plot, heads: &[[String; 2]]) -> Option<Picture> {
    let all = || plot.lines.iter().flat_map(|line| &line.points).filter(|(x, y)| x.is_finite() && y.is_finite());
    let (far, high) = all().fold((0.0_f64, 0.0_f64), |(far, high), (x, y)| (far.max(*x), high.max(*y)));
    if far <= 0.0 || high <= 0.0 {
        return None;
    }
    let (step_x, step_y) = (step(far), step(high));
    let (far, high) = (far, (high / step_y).ceil() * step_y);
    let x = |value: f64| LEFT + value / far * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / high * (HEIGHT - TOP - BOTTOM);
    let lines = plot.lines.iter().map(|line| {
        let points: Vec<String> =
            thinned(&line.points).iter().map(|(px, py)| format!("{:.1},{:.1}", x(*px), y(*py))).collect();
        PictureLine { kernel: line.kernel, points: points.join(" ") }
    });
    let largest = |line: &crate::monitors::Line| {
        let high = line.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        format!("{} up to {}", heads.get(line.kernel).map(title).unwrap_or_default(), short(high))
    };
    let told: Vec<String> = plot.lines.iter().map(largest).collect();
    Some(Picture {
        title: plot.title.clone(),
        unit: plot.unit.clone(),
        told: format!("{} over {} s: {}", plot.title, short(far), told.join(", ")),
        lines: lines.collect(),
        across: ticks(high, step_y).map(|tick| (format!("{:.1}", y(tick)), short(tick))).collect(),
        down: ticks(far, step_x).map(|tick| (format!("{:.1}", x(tick)), format!("{} s", short(tick)))).collect(),
    })
}

/// Returns a round distance of ticks: 1, 2 or 5 times a power of ten.
fn step(largest: f64) -> f64 {
    let power = 10_f64.powf((largest / TICKS_MAX).log10().floor());
    let fits = |factor: &f64| largest / (factor * power) <= TICKS_MAX;
    [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * power
}

fn ticks(largest: f64, step: f64) -> impl Iterator<Item = f64> {
    (0_u8..=10).map(move |number| f64::from(number) * step).take_while(move |tick| *tick <= largest * 1.0001)
}

/// Returns a number for an axis: `1.5k`, `20M`.
fn short(number: f64) -> String {
    let (scaled, unit) = match number {
        n if n >= 1e9 => (n / 1e9, "G"),
        n if n >= 1e6 => (n / 1e6, "M"),
        n if n >= 1e4 => (n / 1e3, "k"),
        n => (n, ""),
    };
    let text = format!("{scaled:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

/// Returns at most so many points as can be told apart: of each stretch the highest, so that no peak is lost.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let stretch = points.len().div_ceil(POINTS_MAX).max(1);
    let highest = |points: &[(f64, f64)]| points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    points.chunks(stretch).filter_map(highest).collect()
}

#[cfg(test)]
mod tests {
    use super::{POINTS_MAX, short, step, thinned, ticks};

    #[test]
    fn ticks_are_round_and_few() {
        for (largest, expected) in [(1.0, 0.2), (9.0, 2.0), (11.0, 5.0), (1_234_567.0, 500_000.0), (0.03, 0.01)] {
            assert!((step(largest) - expected).abs() < expected * 1e-9, "{largest}");
            assert!(ticks(largest, step(largest)).count() <= 6);
        }
        let told = [0.0, 0.25, 1500.0, 12_000.0, 2.5e6, 3e9].map(short);
        assert_eq!(told, ["0", "0.25", "1500", "12k", "2.5M", "3G"]);
    }

    #[test]
    fn peaks_survive() {
        let mut points: Vec<(f64, f64)> = (0_u32..5000).map(|n| (f64::from(n), 1.0)).collect();
        points[3333].1 = 99.0;
        let few = thinned(&points);
        assert!(few.len() <= POINTS_MAX && few.contains(&(3333.0, 99.0)));
        assert_eq!(thinned(&points[..3]).len(), 3);
    }
}
