//! What monitors saw as JSON: all rows with their numbers as they are, all samples, all points of plots.

use serde::Serialize;

use crate::monitors::{Block, Monitored, Plot, SampleTable, title};
use crate::render::RenderError;

/// Version of this document's form.
const SCHEMA_VERSION: u32 = 1;

/// What monitors saw, as a document or a part of one.
#[derive(Debug, Serialize)]
pub(crate) struct MonitorsDocument<'a> {
    schema_version: u32,
    kind: &'static str,
    /// What was done meanwhile.
    #[serde(skip_serializing_if = "str::is_empty")]
    subject: &'a str,
    /// The base first; all lists of values are in this order.
    kernels: Vec<String>,
    samples: Vec<Samples<'a>>,
    blocks: Vec<BlockDocument<'a>>,
    plots: Vec<PlotDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct Samples<'a> {
    title: &'a str,
    rows: Vec<SampleDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct SampleDocument<'a> {
    name: &'a str,
    direction: String,
    samples: &'a [Vec<f64>],
}

#[derive(Debug, Serialize)]
struct BlockDocument<'a> {
    title: &'a str,
    rows: Vec<RowDocument<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct RowDocument<'a> {
    name: &'a str,
    unit: &'static str,
    /// Whether all kernels count the same.
    comparable: bool,
    /// Nothing where the kernel does not count it, and for a part of nothing.
    values: Vec<Option<f64>>,
}

#[derive(Debug, Serialize)]
struct PlotDocument<'a> {
    title: &'a str,
    unit: &'a str,
    lines: Vec<LineDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct LineDocument<'a> {
    kernel: usize,
    /// Seconds since the kernel's first copy, and value.
    points: &'a [(f64, f64)],
}

/// Renders what monitors saw as a JSON document that ends in a line break.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn json(monitored: &Monitored) -> Result<String, RenderError> {
    Ok(serde_json::to_string_pretty(&document(monitored))? + "\n")
}

/// Returns what monitors saw as a document.
pub(crate) fn document(monitored: &Monitored) -> MonitorsDocument<'_> {
    MonitorsDocument {
        schema_version: SCHEMA_VERSION,
        kind: "monitors",
        subject: &monitored.subject,
        kernels: monitored.heads.iter().map(title).collect(),
        samples: monitored.tables.iter().map(samples).collect(),
        blocks: monitored.blocks.iter().map(block).collect(),
        plots: monitored.plots.iter().map(plot).collect(),
    }
}

fn samples(table: &SampleTable) -> Samples<'_> {
    let rows = table.rows.iter().map(|row| SampleDocument {
        name: &row.name,
        direction: row.direction.to_string(),
        samples: &row.samples,
    });
    Samples { title: &table.title, rows: rows.collect() }
}

fn block(block: &Block) -> BlockDocument<'_> {
    let rows = block.rows.iter().filter(|row| row.is_counted()).map(|row| RowDocument {
        name: &row.name,
        unit: row.form.unit(),
        comparable: row.comparable,
        values: row.values.iter().map(|value| value.number()).collect(),
    });
    BlockDocument { title: block.title, rows: rows.collect(), notes: &block.notes }
}

fn plot(plot: &Plot) -> PlotDocument<'_> {
    let lines = plot.lines.iter().map(|line| LineDocument { kernel: line.kernel, points: &line.points });
    PlotDocument { title: &plot.title, unit: &plot.unit, lines: lines.collect() }
}
