//! Plots of values over time, as lines of points. `render/monitors` draws them.

use crate::find_meaning;
use model::{MonitorFile, Observation, Reading, TimedReading};
use schemars::JsonSchema;
use serde::Serialize;

/// A line of a plot: one kernel's points, seconds since its first copy and value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Line")]
pub struct PlotLine {
    /// The kernel's index; the base is 0.
    pub kernel: usize,
    /// The points in time order.
    pub points: Vec<(f64, f64)>,
}

/// A plot: one value of all kernels over time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// The unit of its values.
    pub unit: String,
    /// A line for each kernel with data.
    pub lines: Vec<PlotLine>,
}

/// Fewest copies of a line; two copies are only start and end, which the blocks cover.
const COPIES_MIN: usize = 3;
/// Plotted concepts, in units per second.
const CONCEPTS: [&str; 6] = [
    "Kswapd pages scanned",
    "Pages scanned outside kswapd",
    "Swap Ins",
    "Swap Outs",
    "Major Faults",
    "Allocation stalls",
];
/// Plotted stalls, in percent of the time.
const STALLS: [(MonitorFile, &str); 3] = [
    (MonitorFile::PressureCpu, "Stalled for a processor"),
    (MonitorFile::PressureIo, "Stalled for block devices"),
    (MonitorFile::PressureMemory, "Stalled for memory"),
];

/// Returns all plots with data.
pub(super) fn plots(seen: &[&Observation]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for name in CONCEPTS {
        let Some(concept) = find_meaning(name) else {
            continue;
        };
        let value = |reading: &Reading| Some(concept.value(reading.whole()?)? as f64);
        plots.push(plot(
            seen,
            name,
            format!("{}/s", concept.unit),
            &|observation| rates(observation, MonitorFile::Vmstat, &value),
        ));
    }
    let free = |reading: &Reading| Some(reading.whole()?.get("nr_free_pages")? as f64);
    plots.push(plot(
        seen,
        "Free pages",
        "pages".to_owned(),
        &|observation| states(observation, MonitorFile::Vmstat, &free),
    ));
    for (file, title) in STALLS {
        // 1e-4: from us to percent of a second.
        let total = |reading: &Reading| Some(reading.group("some")?.get("total_us")? as f64 * 1e-4);
        plots.push(plot(seen, title, "%".to_owned(), &|observation| {
            rates(observation, file, &total)
        }));
    }
    plots.retain(|plot| {
        plot.lines
            .iter()
            .any(|line| line.points.iter().any(|(_, value)| *value > 0.0))
    });
    plots
}

/// The source of a line.
type Points<'a> = dyn Fn(&Observation) -> Vec<(f64, f64)> + 'a;
/// A value of a reading.
type Of<'a> = dyn Fn(&Reading) -> Option<f64> + 'a;

fn plot(seen: &[&Observation], title: &str, unit: String, points: &Points<'_>) -> Plot {
    let mut lines = Vec::new();
    for (kernel, observation) in seen.iter().enumerate() {
        let points = points(observation);
        if !points.is_empty() {
            lines.push(PlotLine { kernel, points });
        }
    }
    Plot {
        title: title.to_owned(),
        unit,
        lines,
    }
}

/// Returns growth per second between copies, at the later copy.
fn rates(observation: &Observation, file: MonitorFile, of: &Of<'_>) -> Vec<(f64, f64)> {
    let readings: Vec<&TimedReading> = observation.copies_of(file).collect();
    let Some(first) = readings.first().filter(|_| readings.len() >= COPIES_MIN) else {
        return Vec::new();
    };
    let mut points = Vec::new();
    for pair in readings.windows(2) {
        let Some(seconds) = seconds(pair[0], pair[1]).filter(|seconds| *seconds > 0.0) else {
            continue;
        };
        let (Some(before), Some(after)) = (of(&pair[0].reading), of(&pair[1].reading)) else {
            continue;
        };
        let grew = after - before;
        // A counter that fell was reset: the growth in that interval is unknown.
        if grew >= 0.0
            && let Some(time) = self::seconds(first, pair[1])
        {
            points.push((time, grew / seconds));
        }
    }
    points
}

fn states(observation: &Observation, file: MonitorFile, of: &Of<'_>) -> Vec<(f64, f64)> {
    let readings: Vec<&TimedReading> = observation.copies_of(file).collect();
    let Some(first) = readings.first().filter(|_| readings.len() >= COPIES_MIN) else {
        return Vec::new();
    };
    readings
        .iter()
        .filter_map(|timed| Some((seconds(first, timed)?, of(&timed.reading)?)))
        .collect()
}

fn seconds(from: &TimedReading, to: &TimedReading) -> Option<f64> {
    Some(to.at_ns.checked_sub(from.at_ns)? as f64 / 1e9)
}
