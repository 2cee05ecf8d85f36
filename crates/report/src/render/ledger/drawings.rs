//! Drawings of a ledger: a butterfly chart of the largest changes, and the flame graph. A small script zooms into a
//! flame graph; without it the page has the same content.

use askama::Template;

use super::flame::Flame;
use super::{Profiled, TableRow, rows};
use crate::calls::CallDifference;
use crate::ledger::Ledger;
use crate::render::RenderError;
use document::Block;

/// Most lines of a chart.
const BARS: usize = 20;
/// Half of the chart's width for bars, and the height of a line, in pixels.
const HALF: f64 = 230.0;
const LINE: usize = 22;

#[derive(Template)]
#[template(path = "bars.html")]
struct Bars<'a> {
    base: &'a str,
    new: &'a str,
    height: usize,
    bars: Vec<Bar>,
}

#[derive(Template)]
#[template(path = "flame.html")]
struct FlameOf<'a> {
    workload: &'a str,
    flame: Flame,
}

/// One line of the chart: instructions of the base and of the new kernel, side by side from the middle.
struct Bar {
    name: String,
    y: usize,
    middle: usize,
    /// The base's left edge, and both widths.
    base_x: String,
    base_width: String,
    new_width: String,
    added: String,
    more: bool,
}

/// Draws the largest changes; `None` if there are none.
pub(super) fn bars(ledger: &Ledger, profiled: &Profiled) -> Result<Option<Block>, RenderError> {
    let (mut shown, _) = rows(ledger, profiled.lines_max);
    shown.truncate(BARS);
    let widest = shown.iter().flat_map(|row| [row.base, row.new]).fold(0.0, f64::max).max(1e-9);
    let bars: Vec<Bar> = shown.iter().enumerate().map(|(place, row)| bar(row, place, widest)).collect();
    let (base, new, height) = (&profiled.base.0, &profiled.new.0, bars.len() * LINE + 26);
    let drawing = (height > 26).then(|| Bars { base, new, height, bars }.render()).transpose()?;
    Ok(drawing.map(Block::Drawing))
}

/// Draws a workload's calls.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn draw_calls(workload: &str, calls: &CallDifference) -> Result<Block, RenderError> {
    Ok(Block::Drawing(FlameOf { workload, flame: super::flame::flame(calls) }.render()?))
}

fn bar(row: &TableRow, place: usize, widest: f64) -> Bar {
    let width = |value: f64| HALF * value / widest;
    Bar {
        name: row.name.clone(),
        y: place * LINE + 4,
        middle: place * LINE + 16,
        base_x: format!("{:.1}", HALF - width(row.base)),
        base_width: format!("{:.1}", width(row.base)),
        new_width: format!("{:.1}", width(row.new)),
        added: format!("{:+.1}", row.added),
        more: row.added > 0.0,
    }
}
