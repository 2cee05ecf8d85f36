//! Drawings of a ledger: a butterfly chart of the largest changes, and the flame graph. A small
//! script zooms into a flame graph; without it the page has the same content.

use askama::Template;

use super::flame::Flame;
use super::{Profiled, rows};
use crate::calls::{CallDifference, CallNode};
use crate::ledger::Ledger;
use document::{Block, RenderError};

/// Most lines of a chart.
const BARS: usize = 20;
/// Half of the chart's width for bars, and the height of a line, in pixels.
const HALF: f64 = 230.0;
const LINE: usize = 22;

#[derive(Template)]
#[template(path = "bars.html")]
struct Bars<'a> {
    heads: &'a Heads<'a>,
    height: usize,
    bars: Vec<Bar>,
}

#[derive(Template)]
#[template(path = "flame.html")]
struct FlameOf<'a> {
    workload: &'a str,
    /// Whether both sides are the same: there is nothing to compare.
    is_one: bool,
    unit: &'static str,
    flame: Flame,
}

/// One line of the chart: instructions of the base and of the new kernel, side by side from the
/// middle.
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

/// The heads of a chart's columns.
#[derive(Debug, Clone, Copy)]
pub struct Heads<'a> {
    /// The base's title.
    pub base: &'a str,
    /// The new kernel's title.
    pub new: &'a str,
    /// What a longer bar of the new kernel means.
    pub more: &'a str,
    /// What a line of the chart is.
    pub name: &'a str,
}

/// Draws the largest changes; `None` if there are none.
pub(super) fn bars(ledger: &Ledger, profiled: &Profiled) -> Result<Option<Block>, RenderError> {
    let (shown, _) = rows(ledger, profiled.lines_max);
    let heads = Heads {
        base: &profiled.base.0,
        new: &profiled.new.0,
        more: "more work +",
        name: "function",
    };
    let named: Vec<(String, [f64; 2])> = shown
        .into_iter()
        .map(|row| (row.name, [row.base, row.new]))
        .collect();
    draw_bars(&heads, &named, 1)
}

/// Draws quantities of both kernels by name, in the given order, with that many digits of their
/// differences; `None` if there are none.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn draw_bars(
    heads: &Heads<'_>,
    named: &[(String, [f64; 2])],
    digits: usize,
) -> Result<Option<Block>, RenderError> {
    let shown = &named[..named.len().min(BARS)];
    let widest = shown
        .iter()
        .flat_map(|(_, sides)| *sides)
        .fold(0.0, f64::max)
        .max(1e-9);
    let bars: Vec<Bar> = (0..)
        .zip(shown)
        .map(|(place, (name, sides))| bar(name, *sides, place, widest, digits))
        .collect();
    let height = bars.len() * LINE + 26;
    let drawing = (height > 26)
        .then(|| {
            Bars {
                heads,
                height,
                bars,
            }
            .render()
        })
        .transpose()?;
    Ok(drawing.map(Block::Drawing))
}

/// Draws a workload's calls.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn draw_calls(workload: &str, calls: &CallDifference) -> Result<Block, RenderError> {
    let flame = FlameOf {
        workload,
        is_one: is_one(&calls.root),
        unit: calls.unit,
        flame: super::flame::flame(calls),
    };
    Ok(Block::Drawing(flame.render()?))
}

fn is_one(node: &CallNode) -> bool {
    node.all[0] == node.all[1] && node.own[0] == node.own[1] && node.children.iter().all(is_one)
}

fn bar(name: &str, [base, new]: [f64; 2], place: usize, widest: f64, digits: usize) -> Bar {
    let [base_width, new_width] = [base, new].map(|value| HALF * value / widest);
    Bar {
        name: name.to_owned(),
        y: place * LINE + 4,
        middle: place * LINE + 16,
        base_x: format!("{:.1}", HALF - base_width),
        base_width: format!("{base_width:.1}"),
        new_width: format!("{new_width:.1}"),
        added: format!("{:+.digits$}", new - base),
        more: new > base,
    }
}
